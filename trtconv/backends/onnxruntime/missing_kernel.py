"""Why ONNX Runtime has no kernel for a node: it names the node, and not the type that it has none for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from trtconv.backends.onnxruntime.half_emulation import inferred_types
from trtconv.core.model.opset import opset_of

WITHOUT_KERNEL = re.compile(r"Could not find an implementation for (\w+)\(\d+\) node with name '([^']*)'")


# ONNX Runtime has the operators of ai.onnx from this opset on.
OLDEST_OPSET = 7


class MissingKernel(NamedTuple):
    """An operator that ONNX Runtime does not compute on CPUs, in which element type, and what to do.

    `opset` is the file's where that is the cause; `domain` is empty for an operator of ONNX.
    """

    operator: str
    dtype: str
    domain: str = ""
    opset: int = 0

    def __str__(self) -> str:
        judge = "ONNX Runtime, which judges here, has no"
        if self.domain:
            return f"{judge} {self.domain}'s {self.operator} on CPUs"
        if self.opset:
            return f"{judge} {self.operator} of opset {self.opset}"
        return f"{judge} {self.operator} in {self.dtype}"

    @property
    def hint(self) -> str:
        """What to do."""
        if self.domain:
            return "convert the file from before its optimizer ran: that operator is written for GPUs"
        if self.opset:
            return "bring the file to a later opset: onnx.version_converter.convert_version(model, 17)"
        return f"compute in float32, or int64 for whole numbers, around {self.operator}"


def missing_kernel(message: str, model: Path | bytes) -> MissingKernel | None:
    """What kernel a session was refused for; None for another cause, or where the node's type cannot be read."""
    import onnx
    from google.protobuf.message import DecodeError

    named = WITHOUT_KERNEL.search(message)
    if named is None:
        return None
    try:
        loaded = (
            onnx.load_model_from_string(model)
            if isinstance(model, bytes)
            else onnx.load(model, load_external_data=False)
        )
        graph = inferred_types(loaded).graph
    except (DecodeError, OSError, ValueError, RuntimeError, onnx.shape_inference.InferenceError):
        return None  # what ONNX Runtime said is told then
    node = next((n for n in graph.node if n.op_type == named[1] and n.name == named[2]), None)
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.output, *graph.value_info)}
    numbers = [kinds[name] for name in (*node.input, *node.output) if name in kinds] if node is not None else []
    # A node of several types has one that is not everybody's.
    unusual = [k for k in numbers if k not in (onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL)]
    if node is None or not numbers:
        return None
    dtype = onnx.TensorProto.DataType.Name((unusual or numbers)[0]).lower()
    own, opset = node.domain in ("", "ai.onnx"), opset_of(loaded)
    return MissingKernel(named[1], dtype, "" if own else node.domain, opset if own and opset < OLDEST_OPSET else 0)
