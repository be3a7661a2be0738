"""Two Transposes in a row as one, or as none."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Transpose of Transpose; both permutations are written out."""
    first = graph.maker(node.inputs[0], "Transpose")
    if first is None or not first.attr("perm") or not node.attr("perm"):
        return NOT_THIS
    order = [first.attr("perm")[axis] for axis in node.attr("perm")]
    return Found((first, node), lambda g: g.transpose(first.inputs[0], *order))


RULE = Rule(
    name="merge-transposes",
    why="Two Transposes in a row are one; when they undo each other, none.",
    ops=("Transpose",),
    find=find,
    before="Transpose(Transpose(x, [0,2,3,1]), [0,3,1,2])",
    after="x",
)
