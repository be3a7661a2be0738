import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from trtconv.core.model.wire import without_weights


def model_with(weights: np.ndarray) -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Sigmoid", ["a"], ["y"], name="gate"),
    ]
    size = list(weights.shape)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", size[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", size[1]])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, producer_name="somebody")


def test_all_but_the_initializers_is_left():
    model = model_with(np.ones((300, 200), np.float32))
    rest = without_weights(model.SerializeToString())
    assert len(rest) < 400
    assert all(word in rest for word in (b"MatMul", b"Sigmoid", b"gate", b"product", b"somebody", b"x", b"y"))


def test_names_within_weights_are_not_seen():
    text = np.frombuffer(b"Sigmoid." * 8, np.uint8).reshape(8, 8)
    model = model_with(text)
    model.graph.node.pop()
    assert b"Sigmoid" in model.SerializeToString()
    assert b"Sigmoid" not in without_weights(model.SerializeToString())


def test_bodies_and_functions_are_kept():
    text = """
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (bool c, float[N] x) => (float[N] y) {
        z = own.twice (x)
        y = If (c) <then_branch = a () => (p) { p = Tanh (z) }, else_branch = b () => (q) { q = Erf (z) }>
    }
    <domain: "own", opset_import: ["" : 17]>
    twice (x) => (y) { y = Add (x, x) }
    """
    rest = without_weights(parser.parse_model(text).SerializeToString())
    assert all(word in rest for word in (b"Tanh", b"Erf", b"Add", b"twice", b"If"))


@pytest.mark.parametrize("junk", [b"", b"\x00\x01", b"not a model at all", b"\xff" * 64])
def test_junk_comes_back_as_it_is(junk):
    assert without_weights(junk) == junk


def test_a_model_that_was_cut_off_comes_back_as_it_is():
    model = model_with(np.ones((30, 20), np.float32)).SerializeToString()
    assert without_weights(model[:-7]) == model[:-7]
