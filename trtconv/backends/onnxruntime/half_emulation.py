"""What a graph typed FP16 or BF16 computes, on a CPU: FP32 arithmetic with every half value rounded to its type.

ONNX Runtime has few half kernels on the CPU. It puts casts around the other nodes and takes the casts between two of
them out again, so that values are neither rounded nor overflow there: in FP16, Sqrt(x * x) of 300 gives 300 instead
of infinity (seen with 1.22 and 1.31 at every optimization level). Casts that stand in the graph it leaves alone, so
the rounding is written into an FP32 graph. Sums are accumulated in FP32 and rounded once, as GPU kernels do.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of, graphs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

FLOAT, FLOAT16, BFLOAT16 = 1, 10, 16
HALVES = (FLOAT16, BFLOAT16)
# In a serialized node: the attribute `to`, its field i, the type.
_TO_FLOAT16, _TO_BFLOAT16 = (b"\n\x02to\x18" + bytes([kind]) for kind in HALVES)
# The producer of a graph whose halves are rounded FP32 values: its own casts are not to be rounded once more.
_ROUNDED = "trtconv half emulation"
# These give back values that they were given (or zero), so there is nothing to round.
_EXACT = frozenset({
    "Abs", "Clip", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "If", "Loop", "Max", "MaxPool", "Min", "Neg", "Pad", "ReduceMax",
    "ReduceMin", "Relu", "Reshape", "ScatterElements", "Scan", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "TopK", "Transpose", "Trilu", "Unsqueeze", "Where",
})  # fmt: skip


def casts_to_halves(model: bytes, fp16: bool) -> bool:
    """A glance at a serialized model: does a Cast in it make BF16, or, if `fp16`, FP16 numbers not yet rounded?"""
    return (_TO_BFLOAT16 in model or (fp16 and _TO_FLOAT16 in model)) and _ROUNDED.encode() not in model


def has_halves(model: onnx.ModelProto) -> bool:
    """True when a weight, a constant, a Cast or an input or output is FP16 or BF16."""
    from trtconv.core.model.file import all_tensors

    if any(t.data_type in HALVES for t in all_tensors(model.graph)):
        return True
    if any(v.type.tensor_type.elem_type in HALVES for v in (*model.graph.input, *model.graph.output)):
        return True
    return any(a.name == "to" and a.i in HALVES for g in graphs_of(model.graph) for n in g.node for a in n.attribute)


def emulate_halves(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with the same inputs and outputs in which FP16 and BF16 values are FP32 ones that were rounded.

    Weights have to be in memory. Overflow shows as infinity, underflow as zero, as they do in half precision.
    """
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.producer_name = _ROUNDED
    _Scope(copy.graph, inferred_types(model).graph).rewrite_main()
    return copy


def emulated_runner(model: onnx.ModelProto, *, threads: int = 0) -> OnnxRuntimeRunner:
    """A model made ready to run in ONNX Runtime with its halves emulated; one without halves runs as it is.

    Models over 1 GiB go through a temporary file, since a protobuf of 2 GB cannot be handed over. Raises TrtconvError
    when ONNX Runtime refuses the model.
    """
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.core.model.file import EXTERNAL_ABOVE, save_model

    honest = emulate_halves(model) if has_halves(model) else model
    if sum(len(t.raw_data) for t in honest.graph.initializer) <= EXTERNAL_ABOVE:
        return OnnxRuntimeRunner(honest.SerializeToString(), threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        save_model(honest, Path(folder) / "model.onnx")
        return OnnxRuntimeRunner(Path(folder) / "model.onnx", threads=threads)


def inferred_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without weights and with the type of every value that ONNX can infer."""
    import onnx

    light = onnx.ModelProto()
    light.ir_version = model.ir_version
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    graph = light.graph
    graph.name = "types"
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    input_names = {v.name for v in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name not in input_names:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return onnx.shape_inference.infer_shapes(light)


class _Scope:
    """One graph that is rewritten, beside the same graph with inferred types."""

    def __init__(self, graph: onnx.GraphProto, twin: onnx.GraphProto) -> None:
        self.graph, self.twin = graph, twin
        self.types: dict[str, int] = {
            v.name: v.type.tensor_type.elem_type for v in (*twin.value_info, *twin.input, *twin.output)
        }
        self.renamed: dict[str, str] = {}
        self.nodes: list[onnx.NodeProto] = []

    def half(self, name: str) -> int:
        """The half type of a value, else 0."""
        kind = self.types.get(name, 0)
        return kind if kind in HALVES else 0

    def rewrite_main(self) -> None:
        """Inputs and outputs keep their types; casts stand at the border."""
        for tensor in self.graph.initializer:
            _widen(tensor)
        weights = {t.name for t in self.graph.initializer}
        for value in self.graph.input:
            if value.name in weights:
                _as_float(value)
            elif self.half(value.name):
                self.renamed[value.name] = f"{value.name}/wide"
                self._cast(value.name, f"{value.name}/wide", FLOAT)
        ends = {}
        for value in self.graph.output:
            if self.half(value.name) and value.name not in self.renamed:
                ends[value.name] = self.renamed[value.name] = f"{value.name}/out"
        self._rewrite_nodes(self.renamed)
        for name, source in ends.items():
            self._cast(source, name, self.half(name))
        self._finish()

    def rewrite_body(self, renamed: Mapping[str, str]) -> None:
        """Inputs and outputs of a body are FP32 like everything else."""
        self.renamed = dict(renamed)
        for value in self.graph.input:
            self.renamed.pop(value.name, None)
        for tensor in self.graph.initializer:
            _widen(tensor)
        for value in (*self.graph.input, *self.graph.output):
            _as_float(value)
        self._rewrite_nodes(self.renamed)
        for value in self.graph.output:
            value.name = self.renamed.get(value.name, value.name)
        self._finish()

    def _finish(self) -> None:
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        del self.graph.value_info[:]

    def _rewrite_nodes(self, renamed: Mapping[str, str]) -> None:
        for node, twin in zip(list(self.graph.node), self.twin.node, strict=True):
            for body, other in zip(bodies_of(node), bodies_of(twin), strict=True):
                _Scope(body, other).rewrite_body(renamed)
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    _widen(attribute.t)
            node.input[:] = [renamed.get(i, i) for i in node.input]
            names = list(node.output)
            node.output[:] = [renamed.get(o, o) for o in names]
            self.nodes.append(node)
            if node.op_type not in _EXACT or node.domain not in ("", "ai.onnx"):
                for index, name in enumerate(names):
                    if name and self.half(name):
                        self._round(node, index, self.half(name))

    def _round(self, node: onnx.NodeProto, index: int, half: int) -> None:
        final = node.output[index]
        rounded = f"{final}/half"
        if node.op_type == "Cast":
            node.output[index] = rounded
        else:
            node.output[index] = f"{final}/exact"
            self._cast(f"{final}/exact", rounded, half)
        self._cast(rounded, final, FLOAT)

    def _cast(self, source: str, target: str, to: int) -> None:
        import onnx

        self.nodes.append(onnx.helper.make_node("Cast", [source], [target], to=to))


def _as_float(value: onnx.ValueInfoProto) -> None:
    if value.type.tensor_type.elem_type in HALVES:
        value.type.tensor_type.elem_type = FLOAT


def _widen(tensor: onnx.TensorProto) -> None:
    """Make a half tensor FP32; every half value is an FP32 value."""
    import numpy as np
    from onnx import numpy_helper

    if tensor.data_type not in HALVES:
        return
    if tensor.raw_data:
        bits = np.frombuffer(tensor.raw_data, "<u2")
    else:
        bits = np.asarray(tensor.int32_data, np.uint16)
    if tensor.data_type == FLOAT16:
        values = bits.view(np.float16).astype(np.float32)
    else:
        values = (bits.astype(np.uint32) << 16).view(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(values.reshape(tuple(tensor.dims)), tensor.name))
