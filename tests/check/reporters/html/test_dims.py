"""Dims of inner tensors in the names of the inputs', where the file itself says little."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from trtconv.check.reporters.html.network.data import graph_of_model
from trtconv.check.reporters.html.network.dims import describe_dim, infer_dims
from trtconv.core.shape_space.space import ShapeSpace, parse_space


def value(name, dims, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, dims)


def foreign_model(dims=("N", 3, "H", None)):
    """A stem of stride 2, pooled, flattened by a Reshape to a shape that is computed, and upsampled."""
    nodes = [
        h.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4, strides=[2, 2]),
        h.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        h.make_node("Shape", ["p"], ["s"]),
        h.make_node("Gather", ["s", "zero"], ["n"]),
        h.make_node("Concat", ["n", "rest"], ["shape"], axis=0),
        h.make_node("Reshape", ["p", "shape"], ["r"]),
        h.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        h.make_node("Resize", ["p", "", "scales"], ["z"]),
        h.make_node("Concat", ["c", "c"], ["k"], axis=1),
    ]
    weights = {
        "w": np.zeros((8, 3, 3, 3), np.float32),
        "zero": np.array([0]),
        "rest": np.array([8, -1]),
        "scales": np.array([1, 1, 4, 4], np.float32),
    }
    tensors = [nh.from_array(array, name) for name, array in weights.items()]
    outputs = [value("t", None), value("z", None), value("k", None)]
    graph = h.make_graph(nodes, "graph", [value("x", list(dims))], outputs, tensors)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def dims_of(model, space=ShapeSpace()):  # noqa: B008
    return {name: dims for name, (_, dims) in infer_dims(model, space).items()}


def test_dims_that_no_file_says():
    dims = dims_of(foreign_model())
    assert dims["c"] == ("N", 8, "H/2", "x_dim3/2")
    assert dims["p"] == ("N", 8, "H/4", "x_dim3/4")
    assert dims["t"] == ("N", "H/4*x_dim3/4", 8)
    assert dims["z"] == ("N", 8, "H", "x_dim3")
    assert dims["k"] == ("N", 16, "H/2", "x_dim3/2")
    assert not any("?" in map(str, d) for d in dims.values())


def test_sizes_come_from_the_recorded_ranges():
    dims = dims_of(foreign_model(("N", 3, "H", "W")), parse_space(["N=1:2:4 H=33:47:95 W=40"]))
    assert dims["c"] == ("N", 8, "H/2", 20), "a dim of one size is a number"
    assert dims["p"][2] == "?", "floor(ceil(H/2)/2) is none of the simple terms"


def test_what_the_file_says_is_left_alone():
    graph = graph_of_model(foreign_model(), Path("m.onnx"))
    assert graph.edges[0][3] == "float32[N,3,H,x_dim3]"
    static = dims_of(foreign_model((1, 3, 32, 32)))
    assert (static["c"], static["t"]) == ((1, 8, 16, 16), (1, 64, 8))


def test_the_model_is_not_changed_and_large_weights_are_not_copied():
    model = foreign_model()
    model.graph.initializer.append(nh.from_array(np.zeros((300, 300), np.float32), "large"))
    before = model.SerializeToString()
    assert dims_of(model)["large"] == (300, 300)
    assert model.SerializeToString() == before


def test_a_graph_that_onnx_cannot_follow_has_the_dims_that_it_states():
    graph = h.make_graph(
        [h.make_node("Custom", ["x"], ["y"], domain="me")], "g", [value("x", ["N", 2])], [value("y", ["N", "M"])]
    )
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("me", 1)])
    assert dims_of(model) == {"x": ("N", 2), "y": ("N", "M")}
    assert onnx.shape_inference.infer_shapes(model) is not None


ASSIGNMENTS = ({"H": 64, "W": 192}, {"H": 128, "W": 128}, {"H": 224, "W": 288})


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((7, 7, 7), 7),
        ((64, 128, 224), "H"),
        ((32, 64, 112), "H/2"),
        ((128, 256, 448), "2*H"),
        ((63, 127, 223), "H-1"),
        ((12288, 16384, 64512), "H*W"),
        ((3, 5, 1), "?"),
    ],
)
def test_a_dim_is_the_simplest_term(sizes, text):
    assert describe_dim(sizes, ASSIGNMENTS) == text


@pytest.mark.parametrize(("sizes", "text"), [([0, 6, 12], "3*P"), ([1, 6, 12], "?"), ([5, 7, 9], "P+5")])
def test_a_dim_of_0_has_no_factor(sizes, text):
    """A cache before its first step."""
    assert describe_dim(sizes, [{"P": 0}, {"P": 2}, {"P": 4}]) == text
