"""Small ONNX files for the tests of backends and of the build room, made with onnx alone (it runs on Python 3.10)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}


def _save(path: Path, nodes, inputs, outputs, weights=(), *, space="", specs=(), opset=17, external=False) -> Path:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    for key, value in (("trtconv.space", space), ("trtconv.inputs", "\n".join(specs))):
        if value:
            model.metadata_props.add(key=key, value=value)
    path.parent.mkdir(parents=True, exist_ok=True)
    if external:
        onnx.save(model, str(path), save_as_external_data=True, location=path.name + ".data", size_threshold=0)
    else:
        onnx.save(model, str(path))
    return path


def value(name: str, kind: int, dims) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(dims))


def weight(name: str, array: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(array), name)


def conv_net(path: Path, *, dtype=np.float32, recorded=True, external=False, depth=1, channels=8, low=1) -> Path:
    """`depth` convolutions with ReLU over x[N,3,H,W]; multiples of 8 recorded for H and W."""
    rng = np.random.default_rng(0)
    nodes, weights, last, width = [], [], "x", 3
    for index in range(depth):
        scale = 1.0 / np.sqrt(width * 9)
        weights.append(weight(f"w{index}", (rng.standard_normal((channels, width, 3, 3)) * scale).astype(dtype)))
        out = "y" if index == depth - 1 else f"r{index}"
        nodes.append(helper.make_node("Conv", [last, f"w{index}"], [f"c{index}"], name=f"conv{index}", pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{index}"], [out], name=f"relu{index}"))
        last, width = out, channels
    kind = FLOATS[dtype]
    name = np.dtype(dtype).name
    return _save(
        path,
        nodes,
        [value("x", kind, ["N", 3, "H", "W"])],
        [value("y", kind, ["N", channels, "H", "W"])],
        weights,
        space=f"N={low}:2:4 H=16:32:64%8 W=16:32:64%8" if recorded else "",
        specs=[f"x:{name}[N,3,H,W]"] if recorded else (),
        external=external,
    )


def refused_net(path: Path) -> Path:
    """Two nodes that no TensorRT takes, with the places in the PyTorch code that they come from."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu0"),
        helper.make_node("Det", ["r"], ["d"], name="det0"),
        helper.make_node("Unique", ["d"], ["y"], name="unique0", sorted=1),
    ]
    model = helper.make_model(
        helper.make_graph(
            nodes, "g", [value("x", TensorProto.FLOAT, ["N", 4, 4])], [value("y", TensorProto.FLOAT, ["U"])]
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    for node, line in zip(model.graph.node, (10, 31, 44), strict=True):
        if hasattr(node, "metadata_props"):
            node.metadata_props.add(key="trtconv.module", value=f"head.{node.name}")
            node.metadata_props.add(key="trtconv.source", value=f"net.py:{line}")
    model.metadata_props.add(key="trtconv.space", value="N=1:2:4")
    model.metadata_props.add(key="trtconv.inputs", value="x:float32[N,4,4]")
    onnx.save(model, str(path))
    return path


def token_net(path: Path) -> Path:
    """ids:int64[N,T] -> embedding sum (float) and the ids plus one (int64): 8.6 computes these in int32."""
    table = np.random.default_rng(1).standard_normal((100, 6)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], name="gather", axis=0),
        helper.make_node("ReduceMean", ["e"], ["mean"], name="mean", axes=[1], keepdims=0),
        helper.make_node("Add", ["ids", "one"], ["next"], name="add"),
    ]
    return _save(
        path,
        nodes,
        [value("ids", TensorProto.INT64, ["N", "T"])],
        [value("mean", TensorProto.FLOAT, ["N", 6]), value("next", TensorProto.INT64, ["N", "T"])],
        [weight("table", table), weight("one", np.array(1, np.int64))],
        space="N=1:2:4 T=1:8:16",
        specs=["ids:int64[N,T]=0:99"],
    )


def nonzero_net(path: Path) -> Path:
    """Where x > 0: an output whose size only the data decide."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["b"], name="greater"),
        helper.make_node("Cast", ["b"], ["f"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("NonZero", ["f"], ["where"], name="nonzero"),
        helper.make_node("Relu", ["x"], ["y"], name="relu"),
    ]
    return _save(
        path,
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 5])],
        [value("where", TensorProto.INT64, [2, "K"]), value("y", TensorProto.FLOAT, ["N", 5])],
        [weight("zero", np.array(0, np.float32))],
        space="N=1:4:8",
        specs=["x:float32[N,5]"],
    )


def expand_net(path: Path) -> Path:
    """x[1,C] expanded to a shape that is itself an input: a shape tensor in host memory."""
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["e"], name="expand"),
        helper.make_node("Relu", ["e"], ["y"], name="relu"),
    ]
    return _save(
        path,
        nodes,
        [value("x", TensorProto.FLOAT, [1, 1]), value("shape", TensorProto.INT64, [2])],
        [value("y", TensorProto.FLOAT, ["A", "B"])],
        specs=["x:float32[1,1]", "shape:int64[2]=1:16"],
    )


def plugin_net(path: Path) -> Path:
    """A node that only a plugin computes."""
    node = helper.make_node(
        "TrtconvL2Norm", ["x"], ["y"], name="l2", domain="trtconv", plugin_version="1", plugin_namespace="trtconv"
    )
    return _save(
        path,
        [node],
        [value("x", TensorProto.FLOAT, [1, 4])],
        [value("y", TensorProto.FLOAT, [1, 4])],
    )
