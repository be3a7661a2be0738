"""Small files as other exporters write them."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

RNG = np.random.default_rng(0)


def value(name, dims, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, dims)


def save(path, nodes, inputs, outputs, weights=(), opset=13):
    graph = h.make_graph(nodes, "graph", inputs, outputs, [nh.from_array(a, n) for n, a in weights])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8), path)
    return path


def conv_net(path, dims=("DynamicDimension.0", 3, "?", "?"), out=("DynamicDimension.0", 4, "?", "?")):
    weights = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        h.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        h.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    return save(path, nodes, [value("x", list(dims))], [value("y", list(out))], [("w", weights)])


def state_net(path):
    """A second input whose dims have no names."""
    nodes = [h.make_node("MatMul", ["x", "state"], ["y"], name="matmul")]
    return save(path, nodes, [value("x", ["N", 4]), value("state", [4, None])], [value("y", ["N", None])])


def two_lengths(path):
    """One name on two axes, which cannot be of one size: 4 columns times 4 rows, and the rows are called like the batch."""
    weights = RNG.standard_normal((8, 4)).astype(np.float32)
    nodes = [
        h.make_node("Concat", ["x", "y"], ["both"], axis=1, name="concat"),
        h.make_node("MatMul", ["both", "w"], ["z"], name="matmul"),
    ]
    inputs = [value("x", [2, "N"]), value("y", [2, "N"])]
    # 8 columns in all: 3 and 5, 4 and 4, but a range of N for both does not exist.
    return save(path, nodes, inputs, [value("z", [2, 4])], [("w", weights)])
