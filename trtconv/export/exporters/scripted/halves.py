"""Half-precision tensors that a script makes beside numbers.

torch compares a half with 0.3 as a half holds it, 0.30004883, and multiplies it by 0.3 in FP32. torch.onnx has no type
for what a script casts, and does the reverse of both. Halves that come into a script as such are compared right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.symbolic.arithmetic.half_precision import COMPARISONS, PRODUCTS, QUOTIENTS, as_half

if TYPE_CHECKING:
    from torch import nn

CASTS = ("aten::half", "aten::bfloat16", "aten::type_as")
# The numbers of float16 and bfloat16 in c10/core/ScalarType.h.
HALF_TYPES = (5, 15)


def require_no_decimals_beside_halves(graphs: Iterable[Any], module: nn.Module, inputs: Sequence[Any]) -> None:
    """Raise UnsupportedError where a module with these scripts casts to half precision in one of them, and compares
    with a number that a half has not, or multiplies by it.
    """
    if not any(map(_casts_to_half, graphs)):
        return
    number = _compared_number(module, inputs)
    if number is not None:
        raise UnsupportedError(
            f"a script casts to half precision and computes with {number:g}, which a file would round otherwise",
            hint="cast before the loop, or compute in float32",
        )


def _casts_to_half(graph: Any) -> bool:
    import torch

    for kind in CASTS:
        if graph.findAllNodes(kind):
            return True
    for node in graph.findAllNodes("aten::to"):
        names = [a.name for a in torch._C.parse_schema(node.schema()).arguments]
        values = dict(zip(names, (v.toIValue() for v in node.inputs()), strict=True))
        if "other" in values or values.get("dtype") in HALF_TYPES:
            return True
    return False


def _compared_number(module: nn.Module, inputs: Sequence[Any]) -> float | None:
    """A number beside a half in a run that it does not hold; None where there is none."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    numbers: list[float] = []

    class Comparing(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket.__name__.rstrip("_") in COMPARISONS | PRODUCTS | QUOTIENTS:
                numbers.extend(_inexact(args))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), torch.jit.optimized_execution(False), Comparing():
        module(*[v.clone() for v in inputs])
    return numbers[0] if numbers else None


def _inexact(operands: Sequence[Any]) -> list[float]:
    import torch

    halves = [o.dtype for o in operands if isinstance(o, torch.Tensor) and o.dim()]
    if len(halves) != 1 or halves[0] not in (torch.float16, torch.bfloat16):
        return []
    scalars = [float(o) for o in operands if not (isinstance(o, torch.Tensor) and o.dim())]
    return [s for s in scalars if as_half(s, halves[0]) != s and s == s]
