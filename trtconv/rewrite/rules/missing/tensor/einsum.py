"""Einsum as Transpose, Reshape and MatMul, pair by pair."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import INTEGERS, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.einsum_plan import ContractionPlan, plan_of


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an equation with an ellipsis, a diagonal or over two operands."""
    ranks = [graph.rank(i) for i in node.inputs]
    if any(r is None for r in ranks):
        return Skip("a rank is not known")
    plan = plan_of(node.attr("equation"), [r or 0 for r in ranks])
    if plan is None:
        return Skip("the equation is not understood")
    # Ellipsis, diagonals and three operands came with TensorRT 10.12; none takes whole numbers.
    special = plan.special and graph.target.generation < 11
    if not special and graph.dtype(node.inputs[0]) not in INTEGERS:
        return NOT_THIS
    return Found((node,), lambda g: _build(g, node, plan))


def _build(g: Replacement, node: Node, plan: ContractionPlan) -> Value:
    terms = [_undiagonal(g, x, t) for x, t in zip(node.inputs, plan.terms, strict=True)]
    value, labels = terms[0]
    for index, (other, more) in enumerate(terms[1:], 2):
        later = set("".join(t for _, t in terms[index:])) | set(plan.result)
        value, labels = _pair(g, value, labels, other, more, later)
    value, labels = _summed(g, value, labels, set(plan.result))
    order = [labels.index(c) for c in plan.result]
    return value if order == sorted(order) else g.transpose(value, *order)


def _undiagonal(g: Replacement, x: Value, labels: str) -> tuple[Value, Value]:
    """Keep only the diagonal of an axis that is named twice: what is off it becomes zero, then sum."""
    source = x
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            size = g.squeeze(g.size(x, first), 0)
            places = g.arange(size)
            rank = len(labels)
            row = g.unsqueeze(places, *(a for a in range(rank) if a != first))
            column = g.unsqueeze(places, *(a for a in range(rank) if a != second))
            diagonal = g.where(g.equal(row, column), x, g.scalar(0.0, source))
            x = g.reduce("ReduceSum", diagonal, [second], keepdims=False)
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _summed(g: Replacement, x: Value, labels: str, keep: set[str]) -> tuple[Value, Value]:
    gone = [i for i, c in enumerate(labels) if c not in keep]
    if gone:
        x = g.reduce("ReduceSum", x, gone, keepdims=False)
    return x, "".join(c for c in labels if c in keep)


def _pair(g: Replacement, x: Value, one: str, y: Value, two: str, later: set[str]) -> tuple[Value, Value]:
    """Contract two operands: batch labels in front, then MatMul over the labels that only they share."""
    x, one = _summed(g, x, one, later | set(two))
    y, two = _summed(g, y, two, later | set(one))
    shared = [c for c in one if c in two]
    batch = [c for c in shared if c in later]
    inner = [c for c in shared if c not in later]
    left, right = [c for c in one if c not in shared], [c for c in two if c not in shared]
    first, (batches, rows, _) = _arranged(g, x, one, [batch, left, inner])
    second, (_, _, columns) = _arranged(g, y, two, [batch, inner, right])
    product = g.matmul(first, second)
    dims = g.concat(*[d for d in (batches, rows, columns) if d]) if (batch or left or right) else g.ints()
    return g.reshape(product, dims), "".join([*batch, *left, *right])


def _arranged(g: Replacement, x: Value, labels: str, groups: list[list[Value]]) -> tuple[Value, list[Value]]:
    """The operand as [batch.., rows, columns] and the shapes of its three groups of labels."""
    order = [labels.index(label) for group in groups for label in group]
    turned = x if order == sorted(order) else g.transpose(x, *order)
    shape = g.shape_of(turned)
    parts: list[Value] = []
    at = 0
    for group in groups:
        places = range(at, at + len(group))
        parts.append(g.gather(shape, g.ints(*places), axis=0) if group else "")
        at += len(group)
    flat = [g.reduce("ReduceProd", p, [0]) if p else g.ints(1) for p in parts]
    return g.reshape(turned, g.concat(*flat)), parts


RULE = Rule(
    name="einsum",
    why="TensorRT before 10.12 crashes on Einsum with ellipsis, diagonal or three operands; none takes whole numbers.",
    ops=("Einsum",),
    find=find,
    before='Einsum(a, b, c, equation="bij,bjk,bkl->bil")',
    after="MatMul(MatMul(a, b), c), with Transpose and Reshape around",
)
