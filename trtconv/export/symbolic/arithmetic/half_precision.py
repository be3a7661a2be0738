"""Functions of half-precision tensors that torch computes in FP32 inside and rounds once.

The exporters write their steps in the type of the tensor: a mean then adds up in FP16, which ends at 65,504, and an
activation is rounded at every step. Here the call is made in FP32 and its results are rounded, as torch does it on a
CPU (`at::opmath_type`, and the accumulation types of its reductions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# torch's own operators alone: what Python or C++ puts together of them (`normalize`, `softmin`) rounds in between.
REDUCTIONS = frozenset((
    "mean", "norm", "linalg_vector_norm", "softmax", "log_softmax",
    *(f"{kind}_pool{rank}d" for kind in ("avg", "adaptive_avg") for rank in (1, 2, 3)),
    "layer_norm", "group_norm",
))  # fmt: skip
# These may write into their input, where the result has to be that tensor.
ACTIVATIONS = frozenset((
    "silu", "mish", "gelu", "elu", "celu", "selu", "softplus", "logsigmoid", "log_sigmoid",
    "hardswish", "hardsigmoid", "glu", "leaky_relu", "softshrink", "rsqrt",
))  # fmt: skip
# Of these each step is FP32 whatever the numbers are.
FUSED = frozenset(("addcmul", "addcdiv", "lerp"))
# A number beside halves: torch's kernels multiply and divide by it in FP32 (`opmath_type`), add it and compare with it
# as a half. So it was measured for torch 2.13 on a CPU, over 8,000 values with five numbers in both types.
PRODUCTS = frozenset(("mul", "multiply", "__mul__", "__rmul__", "lerp", "addcmul", "addcdiv"))
QUOTIENTS = frozenset(("div", "divide", "true_divide", "__truediv__", "__div__", "floor_divide", "__floordiv__"))
IN_PLACE = {
    "mul_": "mul", "multiply_": "mul", "__imul__": "mul", "div_": "div", "divide_": "div", "__itruediv__": "div",
    "__idiv__": "div", "addcmul_": "addcmul", "addcdiv_": "addcdiv", "lerp_": "lerp", "add_": "add", "sub_": "sub",
}  # fmt: skip
REVERSED_QUOTIENTS = frozenset(("__rtruediv__", "__rdiv__"))
SUMS = frozenset(("add", "sub", "subtract"))
COMPARISONS = frozenset((
    "gt", "ge", "lt", "le", "eq", "ne", "greater", "greater_equal", "less", "less_equal", "not_equal", "hardshrink",
    "threshold",
    *(f"__{name}__" for name in ("gt", "ge", "lt", "le", "eq", "ne")),
))  # fmt: skip
# Beside a tensor of whole numbers, halves are what both are: 2049 is 2048 then, and 257 in bfloat16 256. torch's own
# definitions of these (`_prims_common.elementwise_dtypes`), which exporters write, take both to FP32 instead.
OF_TWO_TENSORS = frozenset((
    "maximum", "minimum", "fmax", "fmin", "fmod", "remainder", "__mod__", "atan2", "arctan2", "hypot", "pow", "__pow__",
    "isclose", "copysign", "logaddexp", "logaddexp2", "xlogy", "special_xlogy", "nextafter", "heaviside",
))  # fmt: skip
BESIDE_NUMBERS = OF_TWO_TENSORS | PRODUCTS | QUOTIENTS | frozenset(IN_PLACE) | REVERSED_QUOTIENTS | SUMS | COMPARISONS


def computed_in_float32(name: str, args: Sequence[Any], named: Mapping[str, Any], call: Callable[..., Any]) -> Any:
    """What `call(args, named)` gives in FP32, in the type of the first tensor; NotImplemented for other calls."""
    import torch

    halves = (torch.float16, torch.bfloat16)
    if name not in REDUCTIONS and name not in ACTIVATIONS:
        return NotImplemented
    if not args or not isinstance(args[0], torch.Tensor) or args[0].dtype not in halves:
        return NotImplemented
    if named.get("dtype") is not None or any(isinstance(a, torch.dtype) for a in args) or "out" in named:
        return NotImplemented
    if name in ACTIVATIONS and (named.get("inplace") or any(a is True for a in args[1:])):
        return NotImplemented

    def wide(value: Any) -> Any:
        return value.to(torch.float32) if isinstance(value, torch.Tensor) and value.dtype in halves else value

    result = call([wide(a) for a in args], {k: wide(v) for k, v in named.items()})
    return result.to(args[0].dtype) if isinstance(result, torch.Tensor) else result


def with_numbers_of_torch(name: str, args: Sequence[Any], named: Mapping[str, Any], call: Callable[..., Any]) -> Any:
    """What `call(name, args, named)` gives for a half tensor beside a number, as torch computes it.

    NotImplemented for other calls, and for a number that a half holds as it is.
    """
    import torch

    if name not in BESIDE_NUMBERS:
        return NotImplemented
    dtype = half_of(args)
    if dtype is None or "out" in named:
        return NotImplemented
    wholes = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.dim() and is_whole(a.dtype)]
    if wholes and name in IN_PLACE:
        return NotImplemented
    if name in OF_TWO_TENSORS and not wholes:
        return NotImplemented
    if wholes:
        return call(name, [a.to(dtype) if i in wholes else a for i, a in enumerate(args)], named)
    if name in COMPARISONS:
        rounded, options = [as_half(a, dtype) for a in args], {k: as_half(v, dtype) for k, v in named.items()}
        pairs = zip((*args, *named.values()), (*rounded, *options.values()), strict=True)
        return NotImplemented if all(a is b for a, b in pairs) else call(name, rounded, options)
    if IN_PLACE.get(name, name) in SUMS:
        alpha = named.get("alpha", 1)
        if _is_exact(alpha, dtype) and alpha in (1, -1):
            return NotImplemented
        if name in IN_PLACE:
            return args[0].copy_(with_numbers_of_torch(IN_PLACE[name], args, named, call))
        return call(name, [_wide(a) for a in args], {**named, "alpha": as_half(alpha, dtype)}).to(dtype)
    numbers = [a for a in (*args, *named.values()) if not (isinstance(a, torch.Tensor) and a.dim())]
    is_exact = IN_PLACE.get(name, name) not in FUSED and all(_is_exact(n, dtype) for n in numbers)
    if is_exact or isinstance(named.get("rounding_mode"), str):
        return NotImplemented
    if name in REVERSED_QUOTIENTS:
        return with_numbers_of_torch("mul", (args[0].reciprocal(), args[1]), {}, call)
    if name in IN_PLACE:
        return args[0].copy_(with_numbers_of_torch(IN_PLACE[name], args, named, call))
    is_quotient = name in QUOTIENTS and isinstance(args[0], torch.Tensor) and args[0].dim() > 0
    if name not in PRODUCTS and not is_quotient:
        return NotImplemented
    return call(name, [_wide(a) for a in args], {k: _wide(v) for k, v in named.items()}).to(dtype)


def half_of(args: Sequence[Any]) -> Any:
    """The type of the halves among tensors of one number or more, where no other decimals are; None else."""
    import torch

    types = {a.dtype for a in args if isinstance(a, torch.Tensor) and a.dim() and not is_whole(a.dtype)}
    return types.pop() if len(types) == 1 and types <= {torch.float16, torch.bfloat16} else None


def is_whole(dtype: Any) -> bool:
    """True for a type of whole numbers."""
    import torch

    return not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool


def _wide(value: Any) -> Any:
    import torch

    return value.to(torch.float32) if isinstance(value, torch.Tensor) else value


def _is_exact(number: Any, dtype: Any) -> bool:
    """True for a number that a half holds as it is; no tensor of one element is known to be one, and no size."""
    import torch

    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return not math.isfinite(number) or _rounded(number, dtype) == number
    if isinstance(number, torch.Tensor):
        return number.dtype not in (torch.float32, torch.float64)
    return not isinstance(number, (torch.SymInt, torch.SymFloat))


def as_half(number: Any, dtype: Any) -> Any:
    """The number rounded as a tensor of this type holds it; itself when it is one."""
    import torch

    if isinstance(number, torch.Tensor):
        return number if number.dim() or number.dtype in (dtype, torch.bool) else number.to(dtype)
    if isinstance(number, (torch.SymInt, torch.SymFloat)):
        return torch.full((), number, dtype=dtype)
    if isinstance(number, (int, float)) and not _is_exact(number, dtype):
        return _rounded(number, dtype)
    return number


def _rounded(number: float, dtype: Any) -> float:
    """The number in a half-precision type, by way of FP32 as torch makes it; no tensor, which would be traced."""
    import ml_dtypes
    import numpy as np
    import torch

    with np.errstate(over="ignore"):
        return float(np.float32(number).astype(np.float16 if dtype is torch.float16 else ml_dtypes.bfloat16))
