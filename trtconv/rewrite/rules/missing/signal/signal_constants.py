"""Windows and mel filters of constant size, computed once.

A speech front end in ONNX is often STFT with a HannWindow of 400 and a MelWeightMatrix of 80 filters: all their inputs
are constants. TensorRT has the windows from 10.4 on, and no MelWeightMatrix (onnx-tensorrt, docs/Changelog.md and
docs/operators.md); STFT needs its window as a constant on every target.
"""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.concrete import run_node
from trtconv.rewrite.graph.index import Graph, Node

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
    with np.errstate(all="ignore"):
        result = np.asarray(run_node(node.proto, values, graph.opset)[0])
    return Found((node,), lambda g: g.const(result, node.op.lower()))


RULE = Rule(
    name="signal-constants",
    why="A window or a mel matrix of constant size is a constant; STFT needs its window as one.",
    ops=("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"),
    find=find,
    before="STFT(x, step, HannWindow(400))",
    after="STFT(x, step, window[400])",
)
