"""The networks of ultralytics, made of the YAML files that it ships, as plain modules: no export flag is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import Network

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = (
    "ultralytics==8.4.190", "torchvision==0.28.0", "pillow", "opencv-python-headless", "pyyaml", "requests", "urllib3",
    "idna", "certifi", "charset-normalizer", "psutil", "matplotlib", "cycler", "kiwisolver", "contourpy", "fonttools",
    "pyparsing", "python-dateutil", "six", "polars", "scipy", "ultralytics-thop",
)  # fmt: skip
PIXELS = "N=1:1:4 H=64:96:160%32 W=64:128:160%32"


def _of(yaml: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import os

        os.environ.setdefault("YOLO_VERBOSE", "False")
        from ultralytics import RTDETR, YOLO

        model = (RTDETR if "rtdetr" in yaml else YOLO)(f"{yaml}.yaml")
        module: nn.Module = model.model
        return module

    return make


def _with_suppression(yaml: str) -> Callable[[], nn.Module]:
    """A detector as it is used: boxes over a score, suppressed by class, at most 100 of one image."""

    def make() -> nn.Module:
        import torch
        from torchvision.ops import batched_nms, box_convert

        class Suppressed(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.detector = _of(yaml)()

            def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
                rows = self.detector(x)[0][0].T
                scores, labels = rows[:, 4:].max(1)
                # Of random weights; a trained network's is 0.25.
                chosen = scores > 5e-4
                boxes, scores, labels = box_convert(rows[chosen, :4], "cxcywh", "xyxy"), scores[chosen], labels[chosen]
                best = batched_nms(boxes, scores, labels, 0.45)[:100]
                return boxes[best], scores[best], labels[best]

        return Suppressed()

    return make


DETECTORS = ("yolov3-tiny", "yolov5n", "yolov8n", "yolov9t", "yolov10n", "yolo11n", "yolo12n", "yolo26n")
TASKS = (
    "yolov8n-seg", "yolov8n-pose", "yolov8n-obb", "yolov8n-cls", "yolo11n-seg", "yolo11n-pose", "yolo11n-obb",
    "yolo11n-cls", "yolov8n-p2", "yolov8n-ghost",
)  # fmt: skip

NETWORKS = (
    *(Network(n, _of(n), space=PIXELS) for n in (*DETECTORS, *TASKS)),
    Network("yolov8n-nms", _with_suppression("yolov8n"), ("x:float32[1,3,96,128]=0:1",), ""),
    Network("yolov8n-worldv2", _of("yolov8n-worldv2"), space=PIXELS),
    Network("yolov8n-rtdetr", _of("yolov8n-rtdetr"), space=PIXELS),
    Network("rtdetr-resnet50", _of("rtdetr-resnet50"), space=PIXELS),
)
