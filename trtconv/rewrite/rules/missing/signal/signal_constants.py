"""Windows and mel filters of constant size, computed once.

A speech front end in ONNX is often STFT with a HannWindow of 400 and a MelWeightMatrix of 80 filters: all their inputs
are constants. TensorRT has the windows from 10.4 on, and no MelWeightMatrix (onnx-tensorrt, docs/Changelog.md and
docs/operators.md); STFT needs its window as a constant on every target.
"""

from __future__ import annotations

import onnx

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.core.errors import TrtconvError
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node

# 4 MiB of FP32: a mel matrix of 128 filters over a spectrum of 8,192 bins.
MOST = 1 << 20


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match one all of whose inputs are constants, with a result of at most a million elements."""
    values = [graph.constant(name) for name in node.inputs]
    if any(value is None for value in values):
        return Skip("its size is not a constant")
    if node.op == "MelWeightMatrix":
        filters, length = (int(values[i].reshape(())) for i in (0, 1) if values[i] is not None)  # type: ignore[union-attr]
        size = filters * (length // 2 + 1)
    else:
        size = int(values[0].reshape(()))  # type: ignore[union-attr]
    if not 0 < size <= MOST:
        return Skip(f"the result has {size} elements; up to {MOST} are stored")
    try:
        result = _computed(graph, node)
    except TrtconvError as error:
        return Skip(f"ONNX Runtime does not compute it: {error.message}")
    return Found((node,), lambda g: g.const(result, node.op.lower()))


def _computed(graph: Graph, node: Node) -> Array:
    """By ONNX Runtime, whose windows of Hann end in 0 and whose windows of Blackman in 1.5e-8.

    onnx's reference has other last digits there, and a sign decides what an infinity becomes.
    """
    weights = [t for name in node.inputs if (t := graph.constant_tensor(name)) is not None]
    result = onnx.helper.make_empty_tensor_value_info(node.outputs[0])
    body = onnx.helper.make_graph([node.proto], node.op, [], [result], initializer=_named(weights, node))
    model = onnx.helper.make_model(body, opset_imports=[onnx.helper.make_opsetid("", graph.opset)], ir_version=8)
    return GraphRunner(model)({})[node.outputs[0]]


def _named(weights: list[onnx.TensorProto], node: Node) -> list[onnx.TensorProto]:
    """Copies of the constants by the names that the node has for them; a Constant's own tensor has another or none."""
    copies = []
    for name, weight in zip(node.inputs, weights, strict=True):
        copy = onnx.TensorProto()
        copy.CopyFrom(weight)
        copy.name = name
        copies.append(copy)
    return copies


RULE = Rule(
    name="signal-constants",
    why="A window or a mel matrix of constant size is a constant; STFT needs its window as one.",
    ops=("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"),
    find=find,
    before="STFT(x, step, HannWindow(400))",
    after="STFT(x, step, window[400])",
)
