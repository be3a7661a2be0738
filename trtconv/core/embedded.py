"""Plugins whose kernel lies in the engine: what a plugin says of itself, and what its kernel needs.

`trtconv.plugins` makes these records, `trtconv.backends` compiles the kernels and gives them to TensorRT; neither knows
the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trtconv.core.sizes import Size

LARGEST = 2**31 - 1
"""A kernel's arguments and its grid are 32-bit."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class EmbeddedInput:
    """An input as the builder describes it.

    `dtype` is `float32`, `float16` or `bfloat16`; `dims` are integers where the size is fixed for every shape of the
    network; `opt` and `high` are the profile's opt and max shapes.
    """

    dtype: str
    dims: tuple[Size, ...]
    opt: Shape
    high: Shape


@dataclass(frozen=True)
class KernelTarget:
    """The GPU that a kernel is compiled for, compute capability as in `9.0`."""

    compute_capability: str
    multiprocessors: int


@dataclass(frozen=True)
class KernelSource:
    """A CUDA file, the folders of its headers and the macros that complete it."""

    path: Path
    include: tuple[Path, ...]
    macros: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EmbeddedKernel:
    """One launch. The kernel's parameters are the inputs, then `arguments` (32-bit, by name), then the outputs.

    `grid` and `block` count along x alone; `shared` is in bytes, at most 48 KiB with what the kernel declares itself.
    """

    entry: str
    source: KernelSource
    grid: Size
    block: Size
    shared: Size
    arguments: tuple[tuple[str, Size], ...]


@dataclass(frozen=True)
class EmbeddedAttribute:
    """An attribute as the builder passes it: an int, a float or a list of ints."""

    name: str
    kind: Literal["int", "float", "ints"]


OutputDims = Callable[[Sequence[tuple[Size, ...]], Mapping[str, Any]], tuple[tuple[Size, ...], ...]]
MakeKernel = Callable[[Sequence[EmbeddedInput], Mapping[str, Any], KernelTarget], EmbeddedKernel]


@dataclass(frozen=True)
class EmbeddedPlugin:
    """A plugin that needs no library at run time.

    `output_types` has for every output the number of the input whose dtype it takes. `checked` gives every attribute
    its type and default, `check_shapes` raises InvalidRequestError for input shapes that the plugin refuses (None where
    a size is not known), `output_dims` gives the outputs' dims and `kernel` the launch; it raises UnsupportedError for
    what only the library can do.
    """

    op_type: str
    namespace: str
    version: str
    inputs: tuple[str, ...]
    attributes: tuple[EmbeddedAttribute, ...]
    output_types: tuple[int, ...]
    checked: Callable[[Mapping[str, Any]], dict[str, Any]]
    check_shapes: Callable[[Sequence[tuple[int | None, ...]], Mapping[str, Any]], object]
    output_dims: OutputDims
    kernel: MakeKernel
