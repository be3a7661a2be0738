"""Reductions and softmaxes with `dtype=`, which convert first and compute in that type.

torch casts the input (`at::softmax`, `make_reduction` in aten/src/ATen/native); torch.onnx writes the function in the
type of the input and casts its result. Beside each other: shares of a half that are 0 below 6e-8, a variance of values
near 10,000 without a digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Of these, a `dtype` that the input has already says nothing.
FLOATING = frozenset((
    "softmax", "log_softmax", "softmin", "special_softmax", "special_log_softmax", "mean", "nanmean", "norm",
    "linalg_vector_norm",
))  # fmt: skip
# Of whole numbers these are int64 else.
ACCUMULATING = frozenset(("sum", "nansum", "prod", "cumsum", "cumprod"))

Call = Callable[[Sequence[Any], Mapping[str, Any]], Any]


def converted_first(
    name: str, args: Sequence[Any], named: Mapping[str, Any], convert: Callable[[Any, Any], Any], call: Call
) -> Any:
    """What `call(args, named)` gives for the input in the type that is asked for; NotImplemented for other calls.

    `convert(tensor, dtype)` casts.
    """
    import torch

    if name not in FLOATING and name not in ACCUMULATING:
        return NotImplemented
    dtype = named.get("dtype") or next((a for a in args if isinstance(a, torch.dtype)), None)
    tensor = args[0] if args else named.get("input")
    if dtype is None or "out" in named or not isinstance(tensor, torch.Tensor) or dtype.is_complex:
        return NotImplemented
    if tensor.dtype == dtype and name in ACCUMULATING:
        return NotImplemented
    rest = [None if isinstance(a, torch.dtype) and name in FLOATING else a for a in args[1:]]
    options = {n: v for n, v in named.items() if n != "input" and (n != "dtype" or name in ACCUMULATING)}
    # A mean in half precision is the one that adds up in FP32 and is rounded at its end.
    computed = torch.float32 if name == "mean" and dtype in (torch.float16, torch.bfloat16) else dtype
    result = call([tensor if tensor.dtype == computed else convert(tensor, computed), *rest], options)
    return result if computed == dtype else convert(result, dtype)
