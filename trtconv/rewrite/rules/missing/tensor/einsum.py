"""Einsum as Transpose, Reshape and MatMul, pair by pair."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.einsum_plan import Plan, plan_of


def needed(target: Target) -> bool:
    """Ellipsis, diagonals and three operands came with TensorRT 10.12."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an equation with an ellipsis, a diagonal or over two operands."""
    ranks = [graph.rank(i) for i in node.inputs]
    if any(r is None for r in ranks):
        return Skip("a rank is not known")
    plan = plan_of(node.attr("equation"), [r or 0 for r in ranks])
    if plan is None:
        return Skip("the equation is not understood")
    if not plan.special:
        return NOT_THIS
    return Found((node,), lambda b: _build(b, node, plan))


def _build(b: Builder, node: Node, plan: Plan) -> str:
    terms = [_undiagonal(b, x, t) for x, t in zip(node.inputs, plan.terms, strict=True)]
    value, labels = terms[0]
    for index, (other, more) in enumerate(terms[1:], 2):
        later = set("".join(t for _, t in terms[index:])) | set(plan.result)
        value, labels = _pair(b, value, labels, other, more, later)
    value, labels = _summed(b, value, labels, set(plan.result))
    order = [labels.index(c) for c in plan.result]
    return value if order == sorted(order) else b.transpose(value, *order)


def _undiagonal(b: Builder, x: str, labels: str) -> tuple[str, str]:
    """Keep only the diagonal of an axis that is named twice: what is off it becomes zero, then sum."""
    source = x
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            size = b.squeeze(b.size(x, first), 0)
            places = b.op("Range", b.scalar(0, dtype=7), size, b.scalar(1, dtype=7))
            rank = len(labels)
            row = b.unsqueeze(places, *(a for a in range(rank) if a != first))
            column = b.unsqueeze(places, *(a for a in range(rank) if a != second))
            kept = b.op("Where", b.op("Equal", row, column), x, b.like(0.0, source))
            x = b.reduce("ReduceSum", kept, [second], keepdims=False)
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _summed(b: Builder, x: str, labels: str, keep: set[str]) -> tuple[str, str]:
    gone = [i for i, c in enumerate(labels) if c not in keep]
    if gone:
        x = b.reduce("ReduceSum", x, gone, keepdims=False)
    return x, "".join(c for c in labels if c in keep)


def _pair(b: Builder, x: str, one: str, y: str, two: str, later: set[str]) -> tuple[str, str]:
    """Contract two operands: batch labels in front, then MatMul over the labels that only they share."""
    x, one = _summed(b, x, one, later | set(two))
    y, two = _summed(b, y, two, later | set(one))
    shared = [c for c in one if c in two]
    batch = [c for c in shared if c in later]
    inner = [c for c in shared if c not in later]
    left, right = [c for c in one if c not in shared], [c for c in two if c not in shared]
    first, (batches, rows, _) = _arranged(b, x, one, [batch, left, inner])
    second, (_, _, columns) = _arranged(b, y, two, [batch, inner, right])
    product = b.op("MatMul", first, second)
    dims = b.concat(*[d for d in (batches, rows, columns) if d]) if (batch or left or right) else b.ints()
    return b.op("Reshape", product, dims), "".join([*batch, *left, *right])


def _arranged(b: Builder, x: str, labels: str, groups: list[list[str]]) -> tuple[str, list[str]]:
    """The operand as [batch.., rows, columns] and the shapes of its three groups of labels."""
    order = [labels.index(c) for g in groups for c in g]
    turned = x if order == sorted(order) else b.transpose(x, *order)
    shape = b.shape_once(turned)
    parts: list[str] = []
    at = 0
    for group in groups:
        places = range(at, at + len(group))
        parts.append(b.op("Gather", shape, b.ints(*places), axis=0) if group else "")
        at += len(group)
    flat = [b.reduce("ReduceProd", p, [0]) if p else b.ints(1) for p in parts]
    return b.op("Reshape", turned, b.concat(*flat)), parts


RULE = Rule(
    name="einsum",
    why="TensorRT before 10.12 crashes on Einsum with an ellipsis, a diagonal or three operands; MatMul is everywhere.",
    ops=("Einsum",),
    find=find,
    needed=needed,
    before='Einsum(a, b, c, equation="bij,bjk,bkl->bil")',
    after="MatMul(MatMul(a, b), c), with Transpose and Reshape around",
)
