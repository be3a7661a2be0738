"""A bidirectional layer whose directions have other activations, as two layers: the parsers take one list for both."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Of these inputs the first axis is the direction: weights of the input, of the state, biases, states, peepholes.
BY_DIRECTION = (1, 2, 3, 5, 6, 7)
DIRECTIONS = ("forward", "reverse")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match two directions whose lists of activations differ."""
    activations = [a.decode() if isinstance(a, bytes) else a for a in node.attr("activations", [])]
    half = len(activations) // 2
    if node.attr("direction", "forward") != "bidirectional" or activations[:half] == activations[half:]:
        return NOT_THIS
    if node.attr("activation_alpha") or node.attr("activation_beta") or node.attr("layout", 0):
        return Skip("its activations have parameters, or the batch comes first")
    return Found((node,), partial(_build, node=node, lists=(activations[:half], activations[half:])))


def _build(g: Replacement, node: Node, lists: tuple[list[str], list[str]]) -> tuple[Value, ...]:
    own = ("direction", "activations")
    attributes = node.attributes(*own)
    passes = []
    for number, (direction, activations) in enumerate(zip(DIRECTIONS, lists, strict=True)):
        inputs = [
            g.slice(v, g.ints(number), g.ints(number + 1), [0]) if i in BY_DIRECTION and v else v
            for i, v in enumerate(node.inputs)
        ]
        values = {**attributes, "direction": direction, "activations": activations}
        passes.append(g.ops(node.op, len(node.outputs), *inputs, **values))
    joined: list[Value] = []
    for number, name in enumerate(node.outputs):
        # Y is [steps, directions, batch, hidden]; the last states are [directions, batch, hidden].
        joined.append(g.concat(passes[0][number], passes[1][number], axis=0 if number else 1) if name else "")
    return tuple(joined)


RULE = Rule(
    name="recurrent-directions",
    why="TensorRT's parsers take one list of activations for both directions of a recurrent layer.",
    ops=("LSTM", "GRU", "RNN"),
    find=find,
    after_rules=("recurrent-layout",),
    before='RNN(x, w, r, direction=bidirectional, activations=["Relu", "Tanh"])',
    after='Concat(RNN(x, w[:1], r[:1], activations=["Relu"]), RNN(x, w[1:], r[1:], direction=reverse))',
)
