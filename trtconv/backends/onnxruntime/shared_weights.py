"""Many graphs over the weights of one model: each session reads them where they lie.

A session of its own copies them into the graph, serialises, parses and copies them again: of a network of 50 MB four
times as long as the run that it is opened for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.byte_products import OPERATORS
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.half_emulation import emulated_runner, has_halves
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import walk_nodes

if TYPE_CHECKING:
    import onnx

# Smaller weights cost nothing, and what decides how a graph is run is among them.
LEAST_BYTES = 1 << 16
LOCATION = "weights-in-memory"


class SharedWeights:
    """The large FP32 weights of a model; none where a graph's weights are changed before it runs (halves, bytes).

    `stand_ins` are tensors without content, by name: what a graph has in the place of these weights.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        import onnxruntime as ort
        from onnx import TensorProto, numpy_helper

        self.stand_ins: dict[str, onnx.TensorProto] = {}
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._values: dict[str, Any] = {}
        if has_halves(model) or any(n.op_type in OPERATORS for n in walk_nodes(model.graph.node)):
            return
        fed = {v.name for v in model.graph.input}
        for tensor in model.graph.initializer:
            embedded = tensor.data_type == TensorProto.FLOAT and tensor.HasField("raw_data")
            if not embedded or tensor.name in fed or 4 * _count(tensor) < LEAST_BYTES:
                continue
            self._tensors[tensor.name] = tensor
            self._values[tensor.name] = ort.OrtValue.ortvalue_from_numpy(numpy_helper.to_array(tensor))
            self.stand_ins[tensor.name] = _stand_in(tensor)

    def open(self, model: onnx.ModelProto) -> OnnxRuntimeRunner:
        """A graph with such tensors made ready to run, as `emulated_runner` does. Raises TrtconvError as that does."""
        values = {t.name: self._values[t.name] for t in model.graph.initializer if _is_stand_in(t)}
        if values:
            try:
                return OnnxRuntimeRunner(model.SerializeToString(), weights=values)
            except TrtconvError:
                # What is wrong with it is told of the graph as it is.
                model = self._whole(model)
        return emulated_runner(model)

    def _whole(self, model: onnx.ModelProto) -> onnx.ModelProto:
        whole = type(model)()
        whole.CopyFrom(model)
        for tensor in whole.graph.initializer:
            if _is_stand_in(tensor):
                tensor.CopyFrom(self._tensors[tensor.name])
        return whole


def _count(tensor: onnx.TensorProto) -> int:
    return math.prod(tensor.dims)


def _stand_in(tensor: onnx.TensorProto) -> onnx.TensorProto:
    import onnx

    stand_in = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    stand_in.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", LOCATION), ("offset", "0"), ("length", str(4 * _count(tensor)))):
        stand_in.external_data.add(key=key, value=value)
    return stand_in


def _is_stand_in(tensor: onnx.TensorProto) -> bool:
    return any(e.key == "location" and e.value == LOCATION for e in tensor.external_data)
