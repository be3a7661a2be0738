"""Graphs over weights that lie in memory once compute what graphs with weights of their own compute."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.backends.onnxruntime.shared_weights import LEAST_BYTES, SharedWeights
from trtconv.core.errors import TrtconvError
from trtconv.proof.power.fault import FaultGraph

RANDOM = np.random.default_rng(0)


def graph_of(width, *, op="Sigmoid", dtype=np.float32, fed=False):
    weight = RANDOM.standard_normal((width, width)).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(weight.dtype)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node(op, ["p"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", kind, [None, width])]
    inputs += [helper.make_tensor_value_info("w", kind, [width, width])] if fed else []
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("op", ["Relu", "Sigmoid"])
@pytest.mark.parametrize("width", [128, 131, 200])
def test_the_same_bits_come_out_where_a_weight_is_shared(width, op):
    model = graph_of(width, op=op)
    weights = SharedWeights(model)
    light = FaultGraph(model, stand_ins=weights.stand_ins).unchanged()
    # Far below zero, where a graph's sigmoids run in another form.
    x = {"x": 30 * RANDOM.standard_normal((3, width)).astype(np.float32)}
    assert set(weights.stand_ins) == {"w"}
    assert light.ByteSize() < 2048 < model.ByteSize()
    assert np.array_equal(weights.open(light)(x)["y"], emulated_runner(model)(x)["y"])


@pytest.mark.parametrize(
    "model",
    [graph_of(64), graph_of(200, dtype=np.float16), graph_of(200, fed=True)],
    ids=["small", "halves", "default of an input"],
)
def test_other_weights_stay_in_the_graph(model):
    assert not SharedWeights(model).stand_ins


def test_a_graph_that_is_refused_is_told_as_it_is():
    model = graph_of(128)
    weights = SharedWeights(model)
    model.graph.node[0].op_type = "Unheard"
    light = FaultGraph(model, stand_ins=weights.stand_ins).unchanged()
    with pytest.raises(TrtconvError) as expected:
        OnnxRuntimeRunner(model.SerializeToString())
    with pytest.raises(TrtconvError) as actual:
        weights.open(light)
    assert actual.value.message == expected.value.message


def test_the_model_itself_is_left_as_it_was():
    model = graph_of(128)
    before = model.SerializeToString(deterministic=True)
    weights = SharedWeights(model)
    FaultGraph(model, stand_ins=weights.stand_ins).unchanged()
    assert model.SerializeToString(deterministic=True) == before
    assert weights.stand_ins["w"].data_location == TensorProto.EXTERNAL
    assert len(onnx.numpy_helper.to_array(model.graph.initializer[0]).tobytes()) >= LEAST_BYTES
