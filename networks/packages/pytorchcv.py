"""Networks of pytorchcv that other packages lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import Network

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("pytorchcv==0.0.74", "requests", "urllib3", "idna", "certifi", "charset-normalizer")


def _of(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from pytorchcv.model_provider import get_model

        module: nn.Module = get_model(name, pretrained=False)
        return module

    return make


# Their last pooling has the size that an image of 224 leaves.
NAMES = (
    "preresnet18", "bninception", "shufflenet_g1_wd4", "menet108_8x1_g3", "igcv3_wd4", "darts", "diracnet18v2",
    "sqnxt23_w1", "proxylessnas_mobile", "peleenet", "mobilenet_wd4", "fdmobilenet_wd4",
)  # fmt: skip

NETWORKS = tuple(Network(n, _of(n), ("x:float32[N,3,224,224]",), "N=1:1:4") for n in NAMES)
