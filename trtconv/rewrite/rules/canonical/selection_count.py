"""How many values a mask selects, as a sum; and what to do about selections that are needed themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.selection.masks import Mask, mask_of_indices, mask_of_nonzero, spread_mask

INT64 = 7
REMEDY = {
    "NonZero": "--nms topk gives it a fixed size and counts; or give it one in the module: a mask in the place of "
    "x[mask], or topk of the scores",
    "Compress": "--nms topk gives it a fixed size and counts; or give it one in the module: a mask in the place of the "
    "selection, or topk",
    "NonMaxSuppression": "--nms topk suppresses at a fixed size and counts; or end the network before it and suppress "
    "outside",
}
Sizes = Callable[[Replacement], list[Value]]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Shape and Size of NonZero(mask), of its transpose and of what was gathered by it."""
    if node.op in REMEDY:
        if graph.target.is_rtx or node.op == "Compress":
            return Skip(f"the size of its result depends on the data, which {graph.target} refuses: {REMEDY[node.op]}")
        return NOT_THIS
    read = _selected(graph, node.inputs[0])
    if read is None:
        return NOT_THIS
    mask, sizes, passed = read
    return Found((*mask.nodes, *passed, node), partial(_build, node=node, sizes=sizes))


def _selected(graph: Graph, name: str) -> tuple[Mask, Sizes, tuple[Node, ...]] | None:
    """The mask behind a value whose first (or second) size is a count, and how to make all its sizes."""
    mask = mask_of_nonzero(graph, name)
    if mask is not None:
        selection = mask
        return selection, lambda g: [g.ints(selection.rank), _count(g, selection)], ()
    mask = mask_of_indices(graph, name)
    if mask is not None:
        selection = mask
        return selection, lambda g: [_count(g, selection), g.ints(selection.rank)], ()
    gather = graph.maker(name, "GatherND")
    mask = mask_of_indices(graph, gather.inputs[1]) if gather is not None else None
    if gather is None or mask is None or gather.attr("batch_dims", 0):
        return None
    value, selection = gather.inputs[0], mask
    rank = graph.rank(value)
    if rank is None:
        return None

    def sizes(g: Replacement) -> list[Value]:
        tail = [g.size(value, axis) for axis in range(selection.rank, rank)]
        return [_count(g, selection), *tail]

    return selection, sizes, (gather,)


def _count(g: Replacement, mask: Mask) -> Value:
    """The number of ones, 1-D int64."""
    whole = g.reduce("ReduceSum", g.cast(spread_mask(g, mask, 0), INT64), list(range(mask.rank)), keepdims=False)
    return g.unsqueeze(whole, 0)


def _build(g: Replacement, node: Node, sizes: Sizes) -> Value:
    all_sizes = sizes(g)
    if node.op == "Size":
        return g.reduce("ReduceProd", g.concat(*all_sizes), [0], keepdims=False)
    chosen = all_sizes[node.attr("start", 0) : node.attr("end", None)]
    return g.concat(*chosen) if chosen else g.ints()


RULE = Rule(
    name="selection-count",
    why="To count what a mask selects nothing has to be selected, which RTX refuses.",
    ops=("Shape", "Size", *REMEDY),
    find=find,
    before="Gather(Shape(NonZero(mask)), 1)",
    after="ReduceSum(Cast(mask, to=int64))",
)
