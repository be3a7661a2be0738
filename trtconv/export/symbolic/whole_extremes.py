"""`amax` and `amin` over all axes as ONNX has them, for the branches of torch.cond and the loops of while_loop.

Their operators are traced by dynamo, where no handler of functions sees them, and torch.onnx's own form asks for axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def translations() -> dict[Any, Callable[..., Any]]:
    """By operator, the function that torch.onnx.export takes for it (`custom_translation_table`)."""
    import torch

    aten = torch.ops.aten
    return {aten.amax.default: _reduction("ReduceMax"), aten.amin.default: _reduction("ReduceMin")}


def _reduction(name: str) -> Callable[..., Any]:
    def translate(x: Any, dim: int | Sequence[int] = (), keepdim: bool = False) -> Any:
        from onnxscript import opset18

        axes = [dim] if isinstance(dim, int) else list(dim)
        over = opset18.Constant(value_ints=axes) if axes else None
        return getattr(opset18, name)(x, over, keepdims=int(keepdim))

    return translate
