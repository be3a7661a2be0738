"""A Resize by whole scales that is added to another map takes that map's size: TensorRT 8.6 cannot tell them equal."""

from __future__ import annotations

import numpy as np

from trtconv.core.model.provenance import rule_of
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# The assertion is `residual->extent == output->extent`: 2 * (H / 8) and H / 4 are not the same expression to it.
NAME = "resize-like-summand"
_ATTRIBUTES = ("mode", "coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Add(Resize(x, whole scales), y) where neither size is a number."""
    for value, other in (node.inputs, reversed(node.inputs)):
        resize = graph.maker(value, "Resize")
        scales = None if resize is None else graph.constant(resize.input(2))
        if resize is None or scales is None or not scales.size or np.any(scales != np.round(scales)):
            continue
        dims, other_dims = graph.dims(value), graph.dims(other)
        if resize.attr("axes") or dims is None or other_dims is None or len(dims) != len(other_dims):
            return Skip("the rank is not known, or only some axes are resized")
        if all(isinstance(d, int) for d in dims[2:]):
            return NOT_THIS
        # A map that is stretched by the sum has another size; where dims have no numbers the proof decides.
        if any(d == 1 for d in other_dims) or any(_differ(a, b) for a, b in zip(dims, other_dims, strict=True)):
            return Skip("the summands may have different sizes")
        return Found((resize, node), lambda g, r=resize, o=other: _build(g, r, o))  # type: ignore[misc]
    return NOT_THIS


def _differ(one: int | str | None, other: int | str | None) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _build(g: Replacement, resize: Node, other: Value) -> Value:
    attributes = {name: resize.attr(name) for name in _ATTRIBUTES}
    resized = g.resize(resize.inputs[0], "", "", g.shape(other), **attributes)
    return g.add(other, resized)


def made_here(node: Node) -> bool:
    """True for a Resize that this rule made: its sizes are whole multiples."""
    return rule_of(node.proto) == NAME


RULE = Rule(
    name=NAME,
    why="TensorRT 8.6 cannot tell a map resized by scale from one of the same dynamic size, and fails an assertion.",
    ops=("Add",),
    find=find,
    needed=only_tensorrt_8,
    before="Add(y, Resize(x, scales=[1, 1, 2, 2]))",
    after="Add(y, Resize(x, sizes=Shape(y)))",
)
