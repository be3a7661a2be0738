"""What is measured: the trained digits networks with their data, and large ones with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
TARGET = "tensorrt==8.6"
PRECISIONS = ("fp32", "fp16", "int8")


@dataclass(frozen=True)
class Case:
    """A trained network: `data` is a function of `examples/digits/data.py`, `size` the side of its images."""

    kind: str
    data: str = "digits"
    metric: str = "top1"
    size: int = 8

    @property
    def input(self) -> str:
        return f"x:float32[N,1,{self.size},{self.size}]=0:1"

    @property
    def source(self) -> str:
        return f"{DIGITS / 'data.py'}:{self.data}"


CASES = {
    case.kind: case
    for case in (
        *(Case(kind) for kind in ("cnn", "resnet", "mobilenet", "vit", "lstm")),
        Case("segmenter", "masks", "miou", 16),
        Case("denoiser", "clean", "psnr", 16),
        Case("detector", "boxes", "map", 24),
    )
}
DYNAMIC = "N=1:16:32"

# Networks with random weights, and the batch sizes at which they are timed, in the order of what matters.
SPEED = (("resnet50", 8), ("resnet50", 32), ("vit_small", 8), ("mobilenetv2", 8), ("vit_small", 32))
SPEED_INPUT = "x:float32[N,3,224,224]=-2:2"

# Quantised in other ways, to see which part of it an engine gets wrong: the rest in another precision, or without the
# layers of an operator ("depthwise" for convolutions of one channel in each group).
VARIANTS = {
    "mobilenet": {"int8": {}, "int8-rest-fp32": {"rest": "fp32"}, "int8-no-depthwise": {"without": "depthwise"}},
    "segmenter": {"int8": {}, "int8-rest-fp32": {"rest": "fp32"}, "int8-no-transposed": {"without": "ConvTranspose"}},
    "vit": {"int8": {}},
    "lstm": {"int8": {}},
}
