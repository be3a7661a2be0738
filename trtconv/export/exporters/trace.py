"""What both exporters take and return."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.branches.guards import Region

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class Trace:
    """A module ready to be traced: flat inputs in the order of `specs`, flat outputs named `outputs`.

    `sizes` are the dims at which the tensors in `inputs` were made; `base` is the directory that source paths are
    shown relative to. `region` are conditions on sizes that narrow the space further.
    """

    flat: nn.Module
    inputs: tuple[torch.Tensor, ...]
    specs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    space: ShapeSpace
    sizes: tuple[tuple[str, int], ...]
    base: Path
    region: Region = ()

    def dynamic(self, name: str) -> bool:
        """True when the named dim has more than one value."""
        return self.space[name].min != self.space[name].max


@dataclass(frozen=True)
class ExportCandidate:
    """An ONNX file that an exporter wrote, not yet proven. `model` may have external data beside it."""

    model: Path
    exporter: str
    opset: int
    sizes: tuple[tuple[str, int], ...]
    seconds: float
    notes: tuple[str, ...] = ()
