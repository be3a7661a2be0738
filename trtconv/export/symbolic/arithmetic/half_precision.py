"""Functions of half-precision tensors that torch computes in FP32 inside and rounds once.

The exporters write their steps in the type of the tensor: a mean then adds up in FP16, which ends at 65,504, and an
activation is rounded at every step. Here the call is made in FP32 and its results are rounded, as torch does it on a
CPU (`at::opmath_type`, and the accumulation types of its reductions).
"""

from __future__ import annotations

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
    "silu", "mish", "gelu", "elu", "celu", "selu", "softplus", "softsign", "logsigmoid", "log_sigmoid", "tanhshrink",
    "hardswish", "hardsigmoid", "glu",
))  # fmt: skip


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
