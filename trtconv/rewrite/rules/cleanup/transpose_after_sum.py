"""A residual sum after a Transpose: summed before it, where the other summand has that layout at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# With a constant, these are done in either layout.
WITH_CONSTANT = ("Add", "Div", "Mul", "Sub")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Add(r, Transpose(y)), perhaps with constants between, where r is a Transpose or is transposed elsewhere.

    It has to be worth while: a sum that only convolutions read stays as it is.
    """
    for own, other in ((0, 1), (1, 0)):
        chain = _chain(graph, node.inputs[own])
        if chain is None:
            continue
        perm = [int(axis) for axis in chain[0].attr("perm")]
        if graph.rank(node.inputs[other]) != len(perm):
            continue
        transpose = _transpose_of(graph, node.inputs[other], perm, node)
        if transpose is not None:
            residual = transpose.inputs[0] if transpose.output == node.inputs[other] else transpose.output
            dims = graph.dims(node.inputs[other])
            if graph.dims(residual) is None or dims is None or None in dims or dims != graph.dims(node.inputs[own]):
                return Skip("the summands are not known to have one shape")
            if not _saves(graph, node, transpose, perm):
                return Skip("as many Transposes would be left as there are")
            build = partial(_build, graph=graph, chain=chain, residual=residual, own=own)
            return Found((transpose, *chain, node), build)
    return NOT_THIS


def _chain(graph: Graph, name: str) -> tuple[Node, ...] | None:
    """The Transpose behind a value and what is done with constants after it, each used by nothing else."""
    nodes: list[Node] = []
    while (node := graph.maker(name, "Transpose", *WITH_CONSTANT)) is not None and graph.used_once(name):
        nodes.append(node)
        if node.key == "Transpose":
            return tuple(reversed(nodes)) if node.attr("perm") else None
        operands = graph.operand(node)
        if operands is None or operands[1].ndim > (graph.rank(operands[0]) or 0):
            return None
        name = operands[0]
    return None


def _transpose_of(graph: Graph, name: str, perm: Sequence[int], node: Node) -> Node | None:
    """The Transpose that made `name` by `perm`, or one before `node` that takes it back."""
    maker = graph.maker(name, "Transpose")
    if maker is not None and list(maker.attr("perm", ())) == list(perm):
        return maker
    back = [int(axis) for axis in np.argsort(perm)]
    users = (u for u in graph.uses(name) if u.key == "Transpose" and list(u.attr("perm", ())) == back)
    return next((u for u in users if u.order < node.order), None)


def _saves(graph: Graph, node: Node, transpose: Node, perm: Sequence[int]) -> bool:
    """True where fewer Transposes are left: that of the chain goes, and one is put after the sum.

    Between convolutions that stay channels first it made the first stage of ConvNeXt-T slower on an H200 with TensorRT
    8.6, by IProfiler: 190 us for 145 in another lease.
    """

    def turns_back(user: Node) -> bool:
        return user.key == "Transpose" and list(user.attr("perm", ())) == [int(axis) for axis in np.argsort(perm)]

    users = graph.uses(node.output)
    back = any(turns_back(u) for u in users)
    stays = node.output in graph.outputs or any(not turns_back(u) for u in users)
    alone = transpose.output in node.inputs and transpose.output not in graph.outputs
    alone = alone and all(u is node or turns_back(u) for u in graph.uses(transpose.output))
    return 1 + back + alone - stays > 0


def _build(g: Replacement, graph: Graph, chain: Sequence[Node], residual: str, own: int) -> Value:
    perm = [int(axis) for axis in chain[0].attr("perm")]
    value: Value = chain[0].inputs[0]
    for node in chain[1:]:
        operands = graph.operand(node)
        assert operands is not None  # the match looked
        constant = operands[1].reshape((1,) * (len(perm) - operands[1].ndim) + operands[1].shape)
        moved = (
            constant.reshape(-1)[0]
            if constant.size == 1
            else np.ascontiguousarray(constant.transpose(np.argsort(perm)))
        )
        first = node.inputs[0] == operands[0]
        value = g.op(node.op, *((value, moved) if first else (moved, value)))
    return g.transpose(g.add(*((value, residual) if own == 0 else (residual, value))), *perm)


RULE = Rule(
    name="transpose-after-sum",
    why="Between blocks that compute channels last, the residual sum keeps that layout and the Transposes cancel.",
    ops=("Add",),
    find=find,
    before="r = Transpose(s, [0,3,1,2]); Add(Mul(Transpose(y, [0,3,1,2]), gamma[1,C,1,1]), r)",
    after="Transpose(Add(Mul(y, gamma[1,1,1,C]), s), [0,3,1,2])",
)
