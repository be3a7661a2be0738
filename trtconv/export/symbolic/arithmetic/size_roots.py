"""Roots of sizes (`math.sqrt(h * w)`) as ONNX has them: torch.onnx has no form of torch.sym_sqrt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def translations() -> dict[Any, Callable[..., Any]]:
    """By function, the one that torch.onnx.export takes for it (`custom_translation_table`)."""
    import torch

    return {torch.sym_sqrt: _root}


def _root(size: Any) -> Any:
    """In FP32, where Python has FP64; what is rounded of it is compared at every size like all that is."""
    from onnx import TensorProto
    from onnxscript import opset18

    return opset18.Sqrt(opset18.Cast(size, to=TensorProto.FLOAT))
