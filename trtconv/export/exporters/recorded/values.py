"""Values of the graph that torch's recording exporter builds: their types, numbers among them, casts."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def load_plain_forms() -> None:
    """Let torch register its forms of all opsets, as it does in its first export alone.

    Before that an operator has the form of opset 9: `cumsum` none.
    """
    from torch.onnx._internal import torchscript_exporter

    for module in pkgutil.iter_modules(torchscript_exporter.__path__, f"{torchscript_exporter.__name__}."):
        if ".symbolic_opset" in module.name:
            import_module(module.name)


def plain_form(name: str, opset: int) -> Callable[..., Any]:
    """Torch's own form of an operator at an opset."""
    from torch.onnx._internal.torchscript_exporter.registration import registry

    load_plain_forms()
    group = registry.get_function_group(f"aten::{name}")
    form: Callable[..., Any] | None = group.get(opset) if group is not None else None
    if form is None:
        raise LookupError(f"torch has no form of aten::{name} at opset {opset}")
    return form


def constant(graph: Any, number: float) -> Any:
    """A constant without dims, which takes the type of the tensors that it meets."""
    import torch

    return graph.op("Constant", value_t=torch.tensor(number))


def number_of(value: Any) -> float | None:
    """The number that a value without dims is, where it is a constant."""
    import torch
    from torch.onnx import symbolic_helper

    scalar = symbolic_helper._maybe_get_scalar(value)
    if not isinstance(scalar, torch.Tensor) or scalar.is_complex():
        return None
    number: float = scalar.item()
    return number


def kind_of(value: Any) -> Any:
    """The element type of a value as torch names it in a recording; None where it is not known."""
    from torch.onnx._internal.torchscript_exporter._type_utils import JitScalarType

    kind = JitScalarType.from_value(value, JitScalarType.UNDEFINED)
    return None if kind == JitScalarType.UNDEFINED else kind


def dtype_of(kind: Any) -> Any:
    """The torch.dtype of an element type; None for None."""
    return kind.dtype() if kind is not None else None


def result_kind(graph: Any, *operands: Any) -> Any:
    """The element type that torch gives a result; None where neither the recording nor the two operands tell."""
    import torch
    from torch.onnx._internal.torchscript_exporter._type_utils import JitScalarType

    node = graph.original_node
    recorded = kind_of(node.output()) if node is not None and node.outputsSize() == 1 else None
    if recorded is not None or len(operands) != 2 or None in map(kind_of, operands):
        return recorded
    return JitScalarType.from_dtype(torch.result_type(*map(_stand_in, operands)))


def common_kind(one: Any, other: Any) -> Any:
    """The element type in which torch computes with two values of which one has axes; None where none is known to.

    Without axes in either, a constant may be a number or a tensor, which counts differently.
    """
    import torch
    from torch.onnx._internal.torchscript_exporter._type_utils import JitScalarType

    if None in (kind_of(one), kind_of(other)) or all(v.type().dim() == 0 for v in (one, other)):
        return None
    return JitScalarType.from_dtype(torch.result_type(_stand_in(one), _stand_in(other)))


def promoted_kind(*operands: Any) -> Any:
    """The element type in which torch computes with these values; None where that of one is not known."""
    from functools import reduce

    import torch
    from torch.onnx._internal.torchscript_exporter._type_utils import JitScalarType

    if None in map(kind_of, operands):
        return None
    stand_ins = [_stand_in(v) for v in operands]
    if len(stand_ins) == 1:
        return kind_of(operands[0])
    if not any(isinstance(v, torch.Tensor) for v in stand_ins):
        return None
    first, *others = sorted(stand_ins, key=lambda v: not isinstance(v, torch.Tensor))
    dtypes = reduce(lambda x, y: torch.empty((1,), dtype=torch.result_type(x, y)), others, first)
    return JitScalarType.from_dtype(dtypes.dtype)


def _stand_in(value: Any) -> Any:
    """What counts for the type of a result as the value does: a tensor of its type, with dims or without, a number.

    Numbers of the code are constants of Python's two types here.
    """
    import torch

    number, dtype = number_of(value), dtype_of(kind_of(value))
    if number is not None and dtype in (torch.int64, torch.float64):
        return number
    return torch.empty((1,) if value.type().dim() != 0 else (), dtype=dtype)


def cast(graph: Any, value: Any, kind: Any) -> Any:
    """The value in an element type; as it is where that is its own, or none is known. Numbers are wrapped to it."""
    import torch

    if kind is None or kind_of(value) == kind:
        return value
    number = number_of(value)
    if number is not None:
        return graph.op("Constant", value_t=torch.tensor(number).to(kind.dtype()))
    return graph.op("Cast", value, to_i=kind.onnx_type())


def cast_to(graph: Any, value: Any, dtype: Any) -> Any:
    """The value in a torch.dtype."""
    from torch.onnx._internal.torchscript_exporter._type_utils import JitScalarType

    return cast(graph, value, JitScalarType.from_dtype(dtype))


def is_none(value: Any) -> bool:
    """True for an argument that was not given."""
    return value is None or bool(value.node().mustBeNone())


def is_tensor(value: Any) -> bool:
    """True for a tensor: neither a number of the code, nor a list, nor nothing."""
    import torch

    if is_none(value) or number_of(value) is not None:
        return False
    return isinstance(value.type(), torch.TensorType)


def is_float(value: Any) -> bool:
    """True for a value of fractions."""
    dtype = dtype_of(kind_of(value))
    return dtype is not None and dtype.is_floating_point


def is_whole(value: Any) -> bool:
    """True for a value of whole numbers, which booleans are not."""
    import torch

    dtype = dtype_of(kind_of(value))
    return dtype is not None and not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)
