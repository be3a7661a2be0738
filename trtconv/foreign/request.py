"""What converting a foreign file asks for, in place of an export."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.core.tolerance import Tolerance


@dataclass(frozen=True)
class ForeignRequest:
    """The ONNX file `original` is taken over as `output`.

    `inputs` name dims and value ranges of inputs (`--input`); the others are as in the file. One with a `parameter` is
    the file's input of that name, and gets another one. `output_names` are the outputs', in the file's order; without
    any they keep theirs. `space` has the ranges.
    `config` is the file that the request came from; its digest is recorded, nothing is read from it.
    """

    original: Path
    output: Path
    inputs: tuple[TensorSpec, ...] = ()
    space: ShapeSpace = field(default_factory=ShapeSpace)
    tolerance: Tolerance | None = None
    seed: int = 0
    config: Path | None = None
    output_names: tuple[str, ...] = ()
