"""InstanceNormalization, with a Relu after it, as one TrtconvInstanceNorm node, when plugins are asked for."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Graph, Node

FLOATS = (1, 10, 16)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an InstanceNormalization of known rank, and the Relu that alone uses it."""
    rank = graph.rank(node.inputs[0])
    if rank is None or rank < 3 or graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("rank or element type is not known")
    nodes = [node]
    if graph.used_once(node.output) and graph.uses(node.output)[0].key == "Relu":
        nodes.append(graph.uses(node.output)[0])
    relu = "yes" if len(nodes) > 1 else "no"
    epsilon = float(node.attr("epsilon", 1e-5))
    return Found(tuple(nodes), lambda g: g.plugin("TrtconvInstanceNorm", *node.inputs, epsilon=epsilon, relu=relu))


RULE = Rule(
    name="plugin-instance-norm",
    why="The plugin reads a plane once where it fits on the chip, and takes the Relu along.",
    ops=("InstanceNormalization",),
    find=find,
    needed=only_with_plugins,
    before="Relu(InstanceNormalization(x, scale, bias))",
    after="TrtconvInstanceNorm(x, scale, bias, relu=yes)",
    judged_as_float32=True,
    plugin="TrtconvInstanceNorm",
)
