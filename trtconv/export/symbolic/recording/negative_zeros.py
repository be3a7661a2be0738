"""Negative zeros among a call's numbers, which every exporter takes for positive ones.

torch's tracer and both exporters share constants that are equal, and to them 0.0 is equal to -0.0: what a graph has
first decides the sign of all its zeros. The sign counts where something is divided by the zero or has its sign copied
(torch.copysign, torch.signbit, torch.atan2). A tensor that is computed by a change of sign is no such constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Functions in which a tensor without axes may stand for a number.
TAKE_TENSORS = (
    "where", "masked_fill", "masked_fill_", "fill_", "__setitem__",
    "mul", "multiply", "mul_", "__mul__", "__rmul__", "__imul__",
    "add", "add_", "__add__", "__radd__", "__iadd__", "sub", "subtract", "sub_", "__sub__", "__rsub__", "__isub__",
    "div", "divide", "true_divide", "div_", "__truediv__", "__rtruediv__", "__rdiv__", "copysign", "copysign_",
)  # fmt: skip
# Functions that fill a new tensor with a number: the position of that number.
FILL = {"full": 1, "full_like": 1, "new_full": 2}


def is_negative_zero(value: Any) -> bool:
    """True for the number -0.0, and for no tensor."""
    return isinstance(value, float) and value == 0.0 and math.copysign(1.0, value) < 0.0


def with_negative_zeros(
    name: str, args: Sequence[Any], named: Mapping[str, Any], call: Callable[[Any, Any], Any]
) -> Any:
    """What `call(args, named)` gives where the numbers that are -0.0 keep their sign, or NotImplemented without any."""
    import torch

    numbers = [*args, *named.values()]
    if not any(is_negative_zero(n) for n in numbers):
        return NotImplemented
    if name in FILL:
        position = FILL[name]
        if len(args) > position:
            return -call((*args[:position], 0.0, *args[position + 1 :]), named)
        return -call(args, {**named, "fill_value": 0.0})
    if name not in TAKE_TENSORS:
        return NotImplemented
    floating = (n.dtype for n in numbers if isinstance(n, torch.Tensor) and n.dtype.is_floating_point)
    zero = -torch.zeros((), dtype=next(floating, torch.get_default_dtype()))
    if name in ("masked_fill", "masked_fill_") and len(args) == 3:
        filled = _turned_choice(args[1], args[0], zero)
        return filled if name == "masked_fill" else args[0].copy_(filled)
    if name == "where" and len(args) == 3 and is_negative_zero(args[1]):
        return _turned_choice(args[0], args[2], zero)
    if name == "fill_":
        return args[0].copy_(-torch.zeros_like(args[0]))
    if name == "where" and len(args) == 3 and is_negative_zero(args[1]):
        return torch.where(torch.logical_not(args[0]), args[2], zero)
    exact = {k: zero if is_negative_zero(v) else v for k, v in named.items()}
    return call(tuple(zero if is_negative_zero(a) else a for a in args), exact)


def _turned_choice(mask: Any, other: Any, zero: Any) -> Any:
    """-0.0 where the mask is True: ONNX Runtime's Where loses the sign of a zero in its second input."""
    import torch

    if isinstance(other, torch.Tensor):
        turned = -(other if other.dtype.is_floating_point else other.to(zero.dtype))
    else:
        turned = zero if other == 0 and not is_negative_zero(other) else -float(other)
    return -torch.where(mask, 0.0, turned)
