"""Windows and mel filters of constant size, computed once.

A speech front end in ONNX is often STFT with a HannWindow of 400 and a MelWeightMatrix of 80 filters: all their inputs
are constants. TensorRT has the windows from 10.4 on, and no MelWeightMatrix (onnx-tensorrt, docs/Changelog.md and
docs/operators.md); STFT needs its window as a constant on every target.
"""

from __future__ import annotations

from onnx import helper, numpy_helper

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.core.errors import TrtconvError
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node

# 4 MiB of FP32: a mel matrix of 128 filters over a spectrum of 8,192 bins.
MOST = 1 << 20


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match one all of whose inputs are constants, with a result of at most a million elements."""
    values = [value for name in node.inputs if (value := graph.constant(name)) is not None]
    if len(values) < len(node.inputs):
        return Skip("its size is not a constant")
    size = int(values[0].reshape(()))
    if node.op == "MelWeightMatrix":
        # By the number of filters, and the length of a frame.
        size *= int(values[1].reshape(())) // 2 + 1
    if not 0 < size <= MOST:
        return Skip(f"the result has {size} elements; up to {MOST} are stored")
    try:
        result = _computed(node, values, graph.opset)
    except TrtconvError as error:
        return Skip(f"ONNX Runtime does not compute it: {error.message}")
    return Found((node,), lambda g: g.const(result, node.op.lower()))


def _computed(node: Node, values: list[Array], opset: int) -> Array:
    """By ONNX Runtime, whose windows of Hann end in 0 and whose windows of Blackman in 1.5e-8.

    onnx's reference has other last digits there, and a sign decides what an infinity becomes.
    """
    constants = [numpy_helper.from_array(value, name) for name, value in zip(node.inputs, values, strict=True)]
    result = helper.make_empty_tensor_value_info(node.outputs[0])
    body = helper.make_graph([node.proto], node.op, [], [result], initializer=constants)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return GraphRunner(model)({})[node.outputs[0]]


RULE = Rule(
    name="signal-constants",
    why="A window or a mel matrix of constant size is a constant; STFT needs its window as one.",
    ops=("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"),
    find=find,
    before="STFT(x, step, HannWindow(400))",
    after="STFT(x, step, window[400])",
)
