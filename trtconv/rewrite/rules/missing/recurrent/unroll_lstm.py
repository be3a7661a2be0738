"""LSTM over a fixed number of steps, written out: TensorRT 8.6 runs a loop of small kernels, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.concrete import run_node
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# A step is a dozen nodes; measured with 40.
MOST_STEPS = 64
MOST_WEIGHTS = 1 << 26
MOVES = ("Slice", "Concat", "Unsqueeze", "Squeeze", "Transpose", "Reshape", "Identity")
FLOATS = (1, 10)
SEQUENCE_LENS, INITIAL_H, INITIAL_C, PEEPHOLES = 4, 5, 6, 7
# The proof's large values are 1e4: before a sigmoid stand sums of some 1e4 that FP32 rounds by 1e-3, in another order.
PROOF = Tolerance(rtol=1e-4, atol=1e-3, why="sums of about 1e4 before a sigmoid, added up in another order")
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Weights:
    """ONNX's W [directions, 4 hidden, inputs], R [directions, 4 hidden, hidden] and B's halves added up."""

    input: Array
    recurrent: Array
    bias: Array
    reverse: tuple[bool, ...]

    @property
    def hidden(self) -> int:
        """Size of the state."""
        return int(self.recurrent.shape[2])


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an LSTM of plain form whose number of steps is written in the graph."""
    return Skip("it has a clip") if node.attr("clip") else unroll(graph, node)


def unroll(graph: Graph, node: Node) -> Found | Skip:
    """The steps of an LSTM, written out, with the clip of its gates; why not, where they cannot be."""
    dims = graph.dims(node.inputs[0])
    steps = dims[0] if dims else None
    if not isinstance(steps, int):
        return Skip("the number of steps is not fixed")
    if not 2 <= steps <= MOST_STEPS:
        return Skip(f"{steps} steps; 2 to {MOST_STEPS} are written out")
    if graph.dtype(node.inputs[0]) not in FLOATS or node.attr("layout", 0):
        return NOT_THIS
    if node.input(SEQUENCE_LENS) or node.input(PEEPHOLES):
        return Skip("it has sequence lengths or peepholes")
    if node.attr("activations") or node.attr("input_forget"):
        return Skip("it has activations of its own, or coupled gates")
    makers: dict[str, Node] = {}
    weights = _weights(graph, node, makers)
    if weights is None:
        return Skip("its weights are computed while the model runs")
    states = [_state(graph, node.input(i), makers) for i in (INITIAL_H, INITIAL_C)]
    return Found(
        (*makers.values(), node), lambda g: _build(g, node, steps, weights, states), note=f"{steps} steps written out"
    )


def _weights(graph: Graph, node: Node, makers: dict[str, Node]) -> Weights | None:
    """The weights; `makers` takes the nodes that make them out of constants."""
    input_weights, recurrent = (_value(graph, node.inputs[i], makers) for i in (1, 2))
    if input_weights is None or recurrent is None:
        return None
    bias = np.zeros(recurrent.shape[:2], recurrent.dtype)
    if node.input(3):
        both = _value(graph, node.inputs[3], makers)
        if both is None:
            return None
        bias = both[:, : bias.shape[1]] + both[:, bias.shape[1] :]
    direction = node.attr("direction", "forward")
    return Weights(input_weights, recurrent, bias, DIRECTIONS[direction])


def _value(graph: Graph, name: str, makers: dict[str, Node]) -> Array | None:
    """A constant, or what some slicing and joining of constants gives: exporters reorder the gates in the graph."""
    value = graph.constant(name, MOST_WEIGHTS)
    node = graph.maker(name, *MOVES)
    if value is not None or node is None:
        return value
    inputs = [_value(graph, i, makers) if i else None for i in node.inputs]
    if any(v is None and i for v, i in zip(inputs, node.inputs, strict=True)):
        return None
    makers[node.output] = node
    return np.asarray(run_node(node.proto, inputs, graph.opset)[node.outputs.index(name)])


def _state(graph: Graph, name: str, makers: dict[str, Node]) -> str:
    """An initial state; "" for one that is zero, which needs no step of its own."""
    source, cuts = graph.behind(name, "Slice")
    zeros = graph.maker(source, "Expand") if name else None
    if zeros is None or graph.scalar(zeros.inputs[0]) != 0.0:
        return name
    makers.update({n.output: n for n in (zeros, *cuts)})
    return ""


def _build(g: Replacement, node: Node, steps: int, weights: Weights, states: list[Value]) -> tuple[Value, ...]:
    backwards = g.ints(*range(steps - 1, -1, -1))
    gates = _steps(g, _input_gates(g, node.inputs[0], weights, backwards), steps)
    recurrent = g.const(weights.recurrent.transpose(0, 2, 1))
    (h, c), shown = states, []
    for gate in gates:
        h, c = _step(g, _clipped(g, g.add(gate, g.matmul(h, recurrent)) if h else gate, node), c, weights.hidden)
        shown.append(h)
    results = (_in_time(g, shown, weights, backwards) if node.outputs[0] else "", h, c)
    return tuple(r if o else "" for r, o in zip(results, node.outputs, strict=False))


def _input_gates(g: Replacement, x: Value, weights: Weights, backwards: Value) -> Value:
    """What the inputs add to the gates of every step, [steps, directions, N, 4 hidden], in the order of computing."""
    gates = []
    for direction, reverse in enumerate(weights.reverse):
        source = g.gather(x, backwards, axis=0) if reverse else x
        product = g.matmul(source, g.const(weights.input[direction].T))
        gates.append(g.unsqueeze(g.add(product, g.const(weights.bias[direction])), 1))
    return g.concat(*gates, axis=1)


def _steps(g: Replacement, gates: Value, steps: int) -> list[Value]:
    return [g.squeeze(part, 0) for part in g.ops("Split", steps, gates, g.ints(*[1] * steps), axis=0)]


def _clipped(g: Replacement, gates: Value, node: Node) -> Value:
    bound = node.attr("clip")
    return g.op("Min", g.op("Max", gates, g.scalar(-bound, gates)), g.scalar(bound, gates)) if bound else gates


def _step(g: Replacement, gates: Value, c: Value, hidden: int) -> tuple[Value, Value]:
    """The next hidden and cell state, both directions at once; ONNX orders the gates as input, output, forget, cell."""
    input_gate, output_gate, forget_gate, cell_gate = g.ops("Split", 4, gates, g.ints(*[hidden] * 4), axis=2)
    fresh = g.mul(g.sigmoid(input_gate), g.tanh(cell_gate))
    c = g.add(g.mul(g.sigmoid(forget_gate), c), fresh) if c else fresh
    return g.mul(g.sigmoid(output_gate), g.tanh(c)), c


def _in_time(g: Replacement, states: list[Value], weights: Weights, backwards: Value) -> Value:
    """[steps, directions, N, hidden] in the order of the inputs."""
    together = g.concat(*(g.unsqueeze(s, 0) for s in states), axis=0)
    if weights.reverse == (False,):
        return together
    if weights.reverse == (True,):
        return g.gather(together, backwards, axis=0)
    ahead, behind = g.ops("Split", 2, together, g.ints(1, 1), axis=1)
    return g.concat(ahead, g.gather(behind, backwards, axis=0), axis=1)


RULE = Rule(
    name="unroll-lstm",
    why="TensorRT 8.6 runs an LSTM as a loop; a network with 40 steps took 0.87 (batch 1), 0.64 (batch 8) without.",
    ops=("LSTM",),
    find=find,
    needed=only_tensorrt_8,
    tolerance=PROOF,
    before="y, h, c = LSTM(x[40,N,C], w, r, b)",
    after="MatMul(x, w) of all steps at once; 40 times MatMul(h, r), Sigmoid, Tanh, Mul, Add; Concat",
    keeps_infinities=False,
)
