"""The inputs and ranges that an exported program (`*.pt2`) records, for a request that names none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import ShapeSpace, parse_range
from trtconv.core.tensors import Dim, TensorSpec
from trtconv.export.module.exported_program import read_program

# What people call the dims of a batch by rank; the first free name is taken.
_USUAL: dict[int, tuple[str, ...]] = {1: ("N",), 2: ("N", "T"), 3: ("N", "C", "T"), 4: ("N", "C", "H", "W")}
# A program without an upper bound says 2^63 or infinity; no engine is built for that.
_UNBOUNDED = 1 << 31


def program_inputs(path: Path) -> tuple[tuple[TensorSpec, ...], ShapeSpace]:
    """The inputs of an exported program with a name for each symbolic dim, and the ranges that are bounded.

    The opt of a range is the size with which the program was exported. Raises InvalidRequestError for inputs that are
    no tensors by themselves, or a dim that is computed from others.
    """
    program = read_program(path)
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names: dict[str, str] = {}
    ranges: dict[str, str] = {}
    specs = []
    for name in program.graph_signature.user_inputs:
        tensor: Any = placeholders[name].meta.get("val") if name in placeholders else None
        if not hasattr(tensor, "shape"):
            raise _cannot_read(path, f"its input '{name}' is not a tensor")
        dims: list[Dim] = []
        for axis, size in enumerate(tensor.shape):
            if isinstance(size, int):
                dims.append(size)
                continue
            symbol = size.node.expr
            if not symbol.is_Symbol:
                raise _cannot_read(path, f"dim {axis} of its input '{name}' is {symbol}")
            if str(symbol) not in names:
                names[str(symbol)] = _dim_name(axis, len(tensor.shape), set(names.values()))
                bounds = program.range_constraints.get(symbol)
                ranges |= _range(names[str(symbol)], bounds, size.node.hint)
            dims.append(names[str(symbol)])
        specs.append(TensorSpec(name, parse_dtype(str(tensor.dtype).removeprefix("torch.")), tuple(dims)))
    return tuple(specs), ShapeSpace(tuple((n, parse_range(text, n)) for n, text in ranges.items()))


def _dim_name(axis: int, rank: int, used_names: set[str]) -> str:
    usual = _USUAL.get(rank, ())
    name = usual[axis] if axis < len(usual) else f"D{axis}"
    number = 2
    free = name
    while free in used_names:
        free, number = f"{name}{number}", number + 1
    return free


def _range(name: str, bounds: Any, hint: Any) -> dict[str, str]:
    """`MIN:OPT:MAX` where the program has an upper bound; else nothing, so that --dynamic is asked for."""
    try:
        low, high = max(int(bounds.lower), 1), int(bounds.upper)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return {}
    if high >= _UNBOUNDED:
        return {}
    opt = min(max(int(hint), low), high) if isinstance(hint, int) else low
    return {name: f"{low}:{opt}:{high}"}


def _cannot_read(path: Path, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the inputs of '{path}' cannot be read: {why}", hint="name them: --input NAME:DTYPE[D0,D1,...] for each"
    )
