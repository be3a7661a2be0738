"""Resize by sizes that were computed: constant scales where the ratio is constant, else one flat shape tensor."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.sizes import Size, dim_size, same_dim, size_element

KEPT = (
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "mode",
    "nearest_mode",
    "antialias",
)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Resize with a computed `sizes` input, or with `axes` (opset 18)."""
    rank = graph.rank(node.inputs[0])
    if not node.input(3):
        return _scales_with_axes(graph, node, rank) if node.attr("axes") else NOT_THIS
    if node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return Skip("keep_aspect_ratio_policy is not 'stretch'")
    if rank is None:
        return Skip("the input's rank is not known")
    if node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        return Skip("a region of interest is cropped")
    if _is_a_shape(graph, node):
        return NOT_THIS
    axes = [a % rank for a in node.attr("axes") or range(rank)]
    own = [dim_size(graph, node.inputs[0], a) for a in range(rank)]
    target: list[Size | None] = list(own)
    for position, axis in enumerate(axes):
        target[axis] = size_element(graph, node.inputs[3], position)
    scales = _constant_ratio(graph, own, target)
    if scales is not None:
        return Found((node,), lambda g: _resize(g, node, scales=g.const(np.asarray(scales, np.float32))))
    if any(t is None or not (t.is_dim or t.is_constant) for t in target):
        return _pad_axes(node, axes, rank)
    if _is_flat(graph, node, target):
        return NOT_THIS
    return Found((node,), lambda g: _resize(g, node, sizes=_sizes(g, [t for t in target if t is not None])))


def _is_a_shape(graph: Graph, node: Node) -> bool:
    """Sizes that are one whole shape: all targets take them, and 8.6 needs them as they are (`resize-like-summand`)."""
    maker = graph.maker(node.inputs[3], "Shape")
    return maker is not None and not node.attr("axes") and not maker.attr("start") and maker.attr("end") is None


def _constant_ratio(graph: Graph, own: list[Size], target: list[Size | None]) -> list[float] | None:
    """The scale per axis, when each new size is a constant multiple of the old one."""
    scales: list[float] = []
    for old, new in zip(own, target, strict=True):
        if new is None or (old.is_constant != new.is_constant):
            return None
        if old.is_constant:
            ratio = new.add / old.add if old.add else 0.0
            # The number of rows is floor(in * scale): only a scale that gives the same number is taken.
            if ratio <= 0 or int(np.float32(old.add) * np.float32(ratio)) != new.add:
                return None
            scales.append(ratio)
        elif same_dim(graph, old, new) and new.mul >= 1 and new.add == 0:
            scales.append(float(new.mul))
        else:
            return None
    return scales if any(not o.is_constant for o in own) else None


def _is_flat(graph: Graph, node: Node, target: list[Size | None]) -> bool:
    """True when sizes are already what this rule makes: a constant, or one Concat of constants and picked dims."""
    if node.attr("axes"):
        return False
    maker = graph.maker(node.inputs[3])
    if maker is None:
        return graph.is_constant(node.inputs[3])
    parts = maker.inputs if maker.key == "Concat" else [node.inputs[3]]
    for part in parts:
        picked = graph.maker(part, "Gather")
        source = None if picked is None else graph.maker(picked.inputs[0], "Shape")
        flat = source is not None and not source.attr("start") and source.attr("end") is None
        if not graph.is_constant(part) and not flat:
            return False
    return len(parts) <= len(_groups([t for t in target if t is not None]))


def _groups(target: list[Size]) -> list[list[Size]]:
    """Neighbours that come from the same value, or are all constant, stand in one group."""
    groups: list[list[Size]] = []
    for size in target:
        if groups and groups[-1][0].value == size.value:
            groups[-1].append(size)
        else:
            groups.append([size])
    return groups


def _sizes(g: Replacement, target: list[Size]) -> Value:
    parts = []
    for group in _groups(target):
        if group[0].is_constant:
            parts.append(g.ints(*(s.add for s in group)))
        else:
            parts.append(g.gather(g.shape_of(group[0].value), g.ints(*(s.axis for s in group)), axis=0))
    return g.concat(*parts)


def _resize(g: Replacement, node: Node, *, scales: Value = "", sizes: Value = "") -> Value:
    attributes = {k: node.attr(k) for k in KEPT}
    return g.resize(node.inputs[0], "", scales, sizes, **attributes)


def _pad_axes(node: Node, axes: list[int], rank: int) -> Found | Skip:
    """Sizes in no closed form: only bring a subset of axes to all of them."""
    if not node.attr("axes"):
        return NOT_THIS
    if axes != list(range(rank - len(axes), rank)):
        return Skip(f"sizes are given for the axes {axes}, which are not the last ones")

    def build(g: Replacement) -> Value:
        head = g.gather(g.shape_of(node.inputs[0]), g.ints(*range(rank - len(axes))), axis=0)
        return _resize(g, node, sizes=g.concat(head, node.inputs[3]))

    return Found((node,), build)


def _scales_with_axes(graph: Graph, node: Node, rank: int | None) -> Found | Skip:
    scales = graph.constant(node.input(2))
    if scales is None or rank is None:
        return Skip("scales for some axes are computed while the model runs")
    full = np.ones(rank, np.float32)
    full[list(node.attr("axes"))] = scales
    return Found((node,), lambda g: _resize(g, node, scales=g.const(full)))


RULE = Rule(
    name="resize-by-size",
    why="Constant scales, or sizes read straight from a shape, are what every TensorRT resolves at all sizes.",
    ops=("Resize",),
    find=find,
    before="Resize(x, sizes=Concat(Slice(Shape(x)), Cast(Mul(Cast(Gather(Shape(x))), 2))))",
    after="Resize(x, scales=[1, 1, 2, 2])",
)
