"""LSTM with a clip, written out: TensorRT's parsers bound the cell state by it as well, before its activation.

ONNX has the clip for what goes into activations, and ONNX Runtime bounds the gates alone. The parsers bound the cell
state too (onnx-tensorrt 8.6 and 10.1, DEFINE_BUILTIN_OP_IMPORTER(LSTM); measured on 8.6.0: 0.124 for 0.139).
"""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.rules.missing.recurrent.unroll_lstm import PROOF, unroll


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an LSTM with a clip whose number of steps is written in the graph; of others it says what differs."""
    if not node.attr("clip"):
        return NOT_THIS
    match = unroll(graph, node)
    if isinstance(match, Found):
        return match
    return Skip(
        f"the clip {node.attr('clip'):g} bounds the cell state too in TensorRT, before its activation, and the gates "
        f"alone in ONNX Runtime: they differ where a cell state is larger (not written out: {match.reason})"
    )


RULE = Rule(
    name="recurrent-clip",
    why="TensorRT's parsers apply the clip of an LSTM to its cell state too, ONNX Runtime to its gates alone.",
    ops=("LSTM",),
    find=find,
    tolerance=PROOF,
    before="y, h, c = LSTM(x[40,N,C], w, r, b, clip=3)",
    after="as unroll-lstm, with Min(Max(gates, -3), 3) before their activations",
    keeps_infinities=False,
)
