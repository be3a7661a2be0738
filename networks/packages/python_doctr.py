"""Text detection and recognition of docTR."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.timm import REQUIREMENTS as TIMM

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = (
    "python-doctr==1.1.0",
    "opencv-python-headless",
    "shapely",
    "pyclipper",
    "scipy",
    "langdetect",
    "rapidfuzz",
    "defusedxml",
    "anyascii",
    "pypdfium2",
    "h5py",
    "validators",
    "onnx",
    "six",
    *TIMM,
)


def _of(kind: str, name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import importlib

        import torch

        class Logits(torch.nn.Module):
            """What the network computes, before words are read off it."""

            def __init__(self) -> None:
                super().__init__()
                models: Any = importlib.import_module(f"doctr.models.{kind}")
                # These take a backbone's trained weights from a server unless told not to.
                fetches = kind == "detection" or name.startswith("crnn")
                options = {"pretrained_backbone": False} if fetches else {}
                self.model = getattr(models, name)(pretrained=False, **options)
                self.model.exportable = True

            def forward(self, x: torch.Tensor) -> Any:
                return self.model(x)["logits"]

        return Logits()

    return make


PAGE = ("x:float32[N,3,H,W]=0:1",)
WORD = ("x:float32[N,3,32,128]=0:1",)
NETWORKS = (
    Network(
        "db_mobilenet_v3_large",
        _of("detection", "db_mobilenet_v3_large"),
        PAGE,
        "N=1:1:2 H=96:128:160%32 W=96:128:192%32",
    ),
    Network("linknet_resnet18", _of("detection", "linknet_resnet18"), PAGE, "N=1:1:2 H=96:128:160%32 W=96:128:192%32"),
    Network("fast_tiny", _of("detection", "fast_tiny"), PAGE, "N=1:1:2 H=96:128:160%32 W=96:128:192%32"),
    Network("crnn_mobilenet_v3_small", _of("recognition", "crnn_mobilenet_v3_small"), WORD, "N=1:2:8"),
    Network("vitstr_small", _of("recognition", "vitstr_small"), WORD, "N=1:1:4"),
    Network("parseq", _of("recognition", "parseq"), WORD, "N=1:1:4"),
)
