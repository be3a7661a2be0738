"""The norm and its learnable scale as one TrtconvL2Norm node, when plugins are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.norm_forms import Norm, read_norm
from trtconv.rewrite.rules.canonical.l2norm import HALF

FLOATS = (1, *HALF)
MODES = {"none": "outside", "outside": "outside", "inside": "inside", "clamp": "max", "clamp-inside": "max"}


@dataclass(frozen=True)
class Scaled:
    """The last node of the norm with its scale, the nodes after the division, and the scale per channel."""

    nodes: tuple[Node, ...]
    scale: Array


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match x / norm(x) over one axis, with a cast back to half precision and a constant scale after it."""
    norm = read_norm(graph, node.inputs[1])
    if norm is None or graph.behind(node.inputs[0])[0] != graph.behind(norm.value)[0]:
        return NOT_THIS
    value = norm.value
    cast = graph.maker(value, "Cast")
    if cast is not None and graph.dtype(cast.inputs[0]) in HALF:
        value = cast.inputs[0]
    dims = graph.dims(value)
    if dims is None or graph.dtype(value) not in FLOATS:
        return Skip("rank or element type is not known")
    if len(norm.axes) != 1 or not isinstance(dims[norm.axes[0]], int):
        return Skip("it is not over one axis of known size")
    axis, size = norm.axes[0], int(dims[norm.axes[0]] or 0)
    scaled = _scaled(graph, node, value, axis, size, len(dims))
    if graph.dtype(scaled.nodes[-1].output) not in (0, graph.dtype(value)):
        return Skip("the result has another element type than the value")
    nodes = (*((cast,) if cast is not None and value != norm.value else ()), *norm.nodes, *scaled.nodes)
    return Found(nodes, lambda g: _build(g, value, norm, axis, scaled.scale))


def _scaled(graph: Graph, node: Node, value: str, axis: int, size: int, rank: int) -> Scaled:
    """Follow the division to a cast back and a product with a constant per channel, each used by nothing else."""
    nodes: list[Node] = [node]
    half = graph.dtype(value) in HALF
    scale: Array = np.ones(size, np.float32)
    while graph.used_once(nodes[-1].output):
        user = graph.uses(nodes[-1].output)[0]
        if half and user.key == "Cast" and user.attr("to") == graph.dtype(value) and len(nodes) == 1:
            nodes.append(user)
            continue
        operands = graph.operand(user) if user.key == "Mul" else None
        channels = None if operands is None else _per_channel(operands[1], axis, size, rank)
        if channels is not None and not user.bodies:
            nodes.append(user)
            scale = channels
        break
    return Scaled(tuple(nodes), scale)


def _per_channel(array: Array, axis: int, size: int, rank: int) -> Array | None:
    if array.size == 1 and array.ndim <= rank:
        return np.full(size, array.reshape(-1)[0], np.float32)
    shape = (1,) * (rank - array.ndim) + array.shape
    fits = array.ndim <= rank and array.size == size and shape[axis] == size
    return np.asarray(array.reshape(-1), np.float32) if fits else None


def _build(g: Replacement, value: Value, norm: Norm, axis: int, scale: Array) -> Value:
    epsilon = float(np.sqrt(norm.epsilon)) if norm.location == "clamp-inside" else norm.epsilon
    return g.plugin("TrtconvL2Norm", value, g.const(scale), axis=axis, epsilon=epsilon, eps_mode=MODES[norm.location])


RULE = Rule(
    name="plugin-l2norm",
    why="The plugin reads the value once, sums in FP32 and multiplies by the scale in the same pass.",
    ops=("Div",),
    find=find,
    needed=only_with_plugins,
    before="Mul(Div(x, Add(Sqrt(ReduceSum(Mul(x, x))), 1e-10)), scale)",
    after="TrtconvL2Norm(x, scale, axis=1, epsilon=1e-10, eps_mode=outside)",
    judged_as_float32=True,
    plugin="TrtconvL2Norm",
)
