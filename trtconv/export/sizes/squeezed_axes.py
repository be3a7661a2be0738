"""The axes of a Squeeze that torch leaves to the sizes (`x.squeeze()`), stated while the sizes of a part are known.

A file for the whole space may join parts for N = 1 and for N from 2 on. In their graphs a dim is 1 or it is not; in the
joined one it is N in both branches, and TensorRT cannot tell the rank after a Squeeze without axes.
"""

from __future__ import annotations

from typing import Any

from trtconv.export.exporters.trace import Trace


def state_squeezed_axes(model: Any, trace: Trace) -> None:
    """Give each Squeeze of an ir.Model its axes, where every dim is a number or a dim that is nowhere 1.

    The dims are torch's own, in the names of the graph's inputs. Works in place.
    """
    import numpy as np
    import onnx_ir as ir

    never_one = _dims_that_are_never_one(model, trace)
    for node in list(model.graph):
        shape = node.inputs[0].shape if node.op_type == "Squeeze" and node.domain == "" else None
        if shape is None or (len(node.inputs) > 1 and node.inputs[1] is not None):
            continue
        if not all(isinstance(d, int) or str(d) in never_one for d in shape):
            continue
        axes = ir.tensor(np.asarray([i for i, d in enumerate(shape) if d == 1], np.int64), name=f"{node.name}_axes")
        value = ir.Value(name=axes.name, shape=axes.shape, type=ir.TensorType(axes.dtype), const_value=axes)
        model.graph.register_initializer(value)
        node.resize_inputs(2)
        node.replace_input_with(1, value)


def _dims_that_are_never_one(model: Any, trace: Trace) -> set[str]:
    return {
        str(dim)
        for value, spec in zip(model.graph.inputs, trace.specs, strict=True)
        for dim, name in zip(value.shape, spec.dims, strict=True)
        if isinstance(name, str) and not isinstance(dim, int) and trace.space[name].min > 1
    }
