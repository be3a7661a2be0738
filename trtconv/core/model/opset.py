"""The version of ONNX's own operators that a model is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def opset_of(model: onnx.ModelProto, default: int = 1) -> int:
    """The version of the default domain; `default` for a model that names none."""
    return next((int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")), default)
