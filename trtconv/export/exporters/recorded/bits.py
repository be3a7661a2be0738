"""Bit operations in a recorded file: of whole numbers ONNX has them from opset 18 on, and torch has one of four."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.exporters.recorded import values

Form = Callable[..., Any]
SINCE = 18
NAMES = {
    "And": ("__and_", "__iand_", "bitwise_and"),
    "Or": ("__or_", "__ior_", "bitwise_or"),
    "Xor": ("__xor_", "__ixor_", "bitwise_xor"),
}


class NewerOpsetError(UnsupportedError):
    """A form that the opset of the file does not have, and opset `SINCE` has."""


def forms(opset: int) -> dict[str, Form]:
    """The forms by aten's names, without the last underscore of those that end in one."""
    pairs = {name: _of_two(operator, opset) for operator, names in NAMES.items() for name in names}
    return {**pairs, "bitwise_not": _inverted(opset)}


def _of_two(operator: str, opset: int) -> Form:
    def form(graph: Any, x: Any, other: Any) -> Any:
        """`x & y` of two tensors, or a tensor and a number, in the type that torch gives the result."""
        import torch

        kind = values.result_kind(graph, x, other)
        if kind is None:
            raise ValueError(f"the types of the operands of a bitwise {operator} are not known")
        x, other = values.cast(graph, x, kind), values.cast(graph, other, kind)
        return graph.op(operator if kind.dtype() == torch.bool else _since(operator, opset), x, other)

    return form


def _inverted(opset: int) -> Form:
    def bitwise_not(graph: Any, x: Any) -> Any:
        """`~x`."""
        import torch

        boolean = values.dtype_of(values.kind_of(x)) == torch.bool
        return graph.op("Not" if boolean else _since("Not", opset), x)

    return bitwise_not


def _since(operator: str, opset: int) -> str:
    """The operator of whole numbers. Raises NewerOpsetError where the opset has none."""
    if opset < SINCE:
        raise NewerOpsetError(
            f"ONNX has Bitwise{operator}, for bits of whole numbers, from opset {SINCE} on, and the file has {opset}",
            hint=f"use --opset {SINCE}, or arithmetic: x % 8 for x & 7",
        )
    return f"Bitwise{operator}"
