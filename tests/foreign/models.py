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


def conv_net(path, dims=("DynamicDimension.0", 3, "?", "?"), out=("DynamicDimension.0", 4, "?", "?"), bias=0.0):
    weights = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        h.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        h.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    more = [("w", weights), ("b", np.full(4, bias, np.float32))]
    return save(path, nodes, [value("x", list(dims))], [value("y", list(out))], more)


def recurrent_net(path):
    """A second input, all of whose dims are unnamed, and which has to have the batch of the first one."""
    nodes = [h.make_node("Add", ["x", "state"], ["y"], name="add"), h.make_node("MatMul", ["y", "w"], ["z"], name="m")]
    weights = [("w", RNG.standard_normal((6, 6)).astype(np.float32))]
    return save(path, nodes, [value("x", [None, 6]), value("state", [None, 6])], [value("z", [None, 6])], weights)


def one_name_for_two_sizes(path):
    """Both axes are called N, and the second one has to be 8."""
    nodes = [h.make_node("MatMul", ["x", "w"], ["y"], name="matmul")]
    weights = [("w", RNG.standard_normal((8, 8)).astype(np.float32))]
    return save(path, nodes, [value("x", ["N", "N"])], [value("y", ["N", "N"])], weights)


def table_net(path):
    """Indices into a table of two rows."""
    nodes = [h.make_node("Gather", ["table", "ids"], ["y"], name="gather")]
    weights = [("table", RNG.standard_normal((2, 4)).astype(np.float32))]
    return save(path, nodes, [value("ids", ["N", "T"], T.INT64)], [value("y", ["N", "T", 4])], weights)


def rate_net(path):
    """An If inside an If; the outer one asks for the sampling rate, the inner one for the rank."""
    rank = [
        h.make_node("Shape", ["x"], ["shape"]),
        h.make_node("Size", ["shape"], ["rank"]),
        h.make_node("Constant", [], ["two"], value=nh.from_array(np.array(2, np.int64))),
        h.make_node("Equal", ["rank", "two"], ["flat"]),
    ]
    graph = h.make_graph([h.make_node("Mul", ["x", "gain"], ["kept"])], "kept", [], [value("kept", None)])
    wider = h.make_graph(
        [
            h.make_node("Constant", [], ["one"], value=nh.from_array(np.array([1], np.int64))),
            h.make_node("Unsqueeze", ["x", "one"], ["wider"]),
        ],
        "wider",
        [],
        [value("wider", None)],
    )
    inner = h.make_node("If", ["flat"], ["inside"], name="inner", then_branch=graph, else_branch=wider)
    fast = h.make_graph([*rank, inner], "fast", [], [value("inside", None)])
    slow = h.make_graph([h.make_node("Neg", ["x"], ["negative"])], "slow", [], [value("negative", None)])
    nodes = [
        h.make_node("Equal", ["sr", "rate"], ["is_fast"]),
        h.make_node("If", ["is_fast"], ["y"], name="outer", then_branch=fast, else_branch=slow),
    ]
    weights = [("rate", np.array(16000, np.int64)), ("gain", np.array([3.0], np.float32))]
    inputs = [value("x", ["N", 8]), value("sr", [], T.INT64)]
    return save(path, nodes, inputs, [value("y", ["N", 8])], weights)
