"""Initializers that stand among the inputs as well: weights of old files, or defaults that the caller may override.

The ONNX specification (IR.md, "Graphs"): from IR version 4 on such an initializer is a default, and one that is no
input is a constant; before, every initializer had to be listed among the inputs. ONNX Runtime reads it so, too: it lets
nobody override an initializer of a file with IR version 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.text.listing import list_names

if TYPE_CHECKING:
    import onnx

FIRST_WITH_DEFAULTS = 4


def with_fixed_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in the form of IR version 4, in place: initializers of an older one are not inputs any more."""
    if model.ir_version >= FIRST_WITH_DEFAULTS:
        return model
    weights = {t.name for t in model.graph.initializer}
    inputs = [v for v in model.graph.input if v.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = FIRST_WITH_DEFAULTS
    return model


def defaults(model: onnx.ModelProto) -> tuple[str, ...]:
    """A note for inputs with a default: TensorRT's parser makes no input of one."""
    inputs = {v.name for v in model.graph.input}
    names = [t.name for t in model.graph.initializer if t.name in inputs]
    if not names:
        return ()
    return (
        f"inputs with a default, which an engine fixes: {list_names(names)}; no rule took them for constants. Remove "
        "their initializers to feed them, or the inputs to fix them",
    )
