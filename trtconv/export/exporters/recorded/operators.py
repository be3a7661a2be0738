"""The forms of operators that stand in for torch's own, or for none, while a run is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trtconv.export.exporters.recorded import bits, floats, indices, integers, narrow, pointwise, values

Form = Callable[..., Any]
HYPERBOLIC = ("sinh", "cosh", "asinh", "acosh", "atanh")
MATRIX_TRANSPOSES = ("mT", "mH", "adjoint")


@contextmanager
def recorded_forms(opset: int) -> Iterator[None]:
    """Register the forms for the time of the block. They reach parts that torch.jit.script made, too."""
    from torch.onnx import register_custom_op_symbolic, unregister_custom_op_symbolic

    forms = {**_missing(opset), **narrow.forms(opset), **bits.forms(opset), **pointwise.forms()}
    forms |= {**integers.forms(opset), **floats.forms(opset), **indices.forms(opset)}
    names = {**{f"aten::{name}": form for name, form in forms.items()}, "prim::abs": _written_as("Abs")}
    for name, form in names.items():
        # Torch's own forms are registered by opset, and the one of the highest that is not above the file's is taken.
        register_custom_op_symbolic(name, form, opset)
    try:
        yield
    finally:
        for name in names:
            unregister_custom_op_symbolic(name, opset)


def _missing(opset: int) -> dict[str, Form]:
    """Operators that have a form from opset 9 on and that this exporter does not know."""
    from torch.onnx._internal.torchscript_exporter.registration import registry

    values.load_plain_forms()
    forms: dict[str, Form] = {n: _written_as(n.capitalize()) for n in HYPERBOLIC}
    forms |= dict.fromkeys(MATRIX_TRANSPOSES, _transposed_last)
    return {name: form for name, form in forms.items() if not registry.is_registered_op(f"aten::{name}", opset)}


def _written_as(operator: str) -> Form:
    return lambda graph, x: graph.op(operator, x)


def _transposed_last(graph: Any, x: Any) -> Any:
    """The last two axes swapped. Complex numbers have no ONNX type, so that their conjugates do not come here."""
    rank = x.type().dim()
    if rank is None or rank < 2:
        raise ValueError("a matrix is transposed whose rank the trace does not tell")
    return graph.op("Transpose", x, perm_i=[*range(rank - 2), rank - 1, rank - 2])
