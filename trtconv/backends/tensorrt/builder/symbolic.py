"""Sizes as TensorRT's plugin module has them: expressions over the dims of a plugin's inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trtconv.core.sizes import Dim, Size


def operations(trtp: Any) -> Mapping[str, Callable[[Any, Any], Any]]:
    """What each of our operations is called in `tensorrt.plugin`."""
    return {
        "sum": operator.add,
        "sub": operator.sub,
        "prod": operator.mul,
        "floor_div": operator.floordiv,
        "equal": operator.eq,
        "less": operator.lt,
        "ceil_div": trtp.cdiv,
        "max": trtp.max,
        "min": trtp.min,
    }


def as_expression(trtp: Any, size: Size, descriptors: Sequence[Any], expressions: dict[Size, Any]) -> Any:
    """The `ShapeExpr` of a size. `expressions` has those of the same inputs made before, since sizes share parts."""
    if size in expressions:
        return expressions[size]
    if isinstance(size, int):
        expression = trtp.ShapeExpr(size)
    elif isinstance(size, Dim):
        expression = descriptors[size.input].shape_expr[size.axis]
    else:
        left, right = (as_expression(trtp, part, descriptors, expressions) for part in (size.left, size.right))
        expression = operations(trtp)[size.name](left, right)
    expressions[size] = expression
    return expression


def dims_of(descriptor: Any, number: int) -> tuple[Size, ...]:
    """The dims of an input: integers where the size is fixed in the network, else as input `number`'s."""
    dims: list[Size] = []
    for axis, expression in enumerate(descriptor.shape_expr):
        fixed = not expression.is_fake and expression.is_constant
        dims.append(int(expression.constant_value()) if fixed else Dim(number, axis))
    return tuple(dims)
