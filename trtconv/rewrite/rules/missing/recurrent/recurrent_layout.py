"""LSTM, GRU and RNN with the batch first (layout 1) as Transposes around layout 0: the parsers never read layout."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Inputs that hold states: initial_h, and initial_c of LSTM.
STATES = (5, 6)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match layout 1."""
    return Found((node,), lambda g: _build(g, node)) if node.attr("layout", 0) else NOT_THIS


def _build(g: Replacement, node: Node) -> tuple[Value, ...]:
    inputs = list(node.inputs)
    inputs[0] = g.transpose(inputs[0], 1, 0, 2)
    for position in STATES:
        if node.input(position):
            inputs[position] = g.transpose(inputs[position], 1, 0, 2)
    attributes = node.attributes("layout")
    outputs = g.ops(node.op, len(node.outputs), *inputs, **attributes)
    # Y is [steps, directions, batch, hidden]; the last states are [directions, batch, hidden].
    turned = [g.transpose(outputs[0], 2, 0, 1, 3) if node.outputs[0] else ""]
    turned += [g.transpose(v, 1, 0, 2) if o else "" for v, o in zip(outputs[1:], node.outputs[1:], strict=True)]
    return tuple(turned)


RULE = Rule(
    name="recurrent-layout",
    why="TensorRT's parsers do not read `layout` and take the batch for the steps, silently.",
    ops=("LSTM", "GRU", "RNN"),
    find=find,
    before="y, h = GRU(x[N,T,C], w, r, layout=1)",
    after="y = Transpose(GRU(Transpose(x), w, r))",
)
