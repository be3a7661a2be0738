"""Which nodes stay in FP32. Two passes forward and one backward over each scope: linear in the number of nodes."""

from __future__ import annotations

from collections.abc import Collection

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.half import HalfFormat
from trtconv.rewrite.precision.islands import (
    GROWING,
    Grows,
    origin_of_outputs,
    reason_from_growth,
    reason_from_inputs,
    reason_from_users,
)
from trtconv.rewrite.precision.operators import Reason
from trtconv.rewrite.precision.reasons import reason_alone
from trtconv.rewrite.precision.state import EXACT_VALUE, FREE, PrecisionPlan
from trtconv.rewrite.precision.types import ElementTypes, Signatures


def make_plan(
    root: Graph,
    types: ElementTypes,
    signatures: Signatures,
    to: HalfFormat,
    block: frozenset[str],
    keep: Collection[str],
    *,
    fp32_outputs: bool,
) -> PrecisionPlan:
    """Decide for every node of every scope. Raises InvalidRequestError for a name in `keep` that no node has."""
    names = {n.name for g in root.scopes() for n in g.nodes.values()}
    for name in keep:
        if name not in names:
            raise InvalidRequestError(
                f"no node is called '{name}'{did_you_mean(name, names)}", hint="`trtconv inspect --layers` lists them"
            )
    plan = PrecisionPlan(to, types, signatures, block, frozenset(keep), fp32_outputs)
    _plan_scope(plan, root)
    return plan


def _plan_scope(plan: PrecisionPlan, graph: Graph) -> None:
    """Reasons of their own and growth along the graph; what feeds FP32 against it; what FP32 makes; then the bodies."""
    plan.made_of[id(graph)] = origins = {}
    grows: Grows = {}
    for node in graph.nodes.values():
        origin = origin_of_outputs(plan, graph, node)
        reason, kind = _decide(plan, graph, node, grows)
        if reason is not None and reason.kind == "overflow" and origin == FREE:
            origin = EXACT_VALUE
        origins.update(dict.fromkeys(node.outputs, origin))
        if reason is None and origin == EXACT_VALUE and plan.floats(graph, node.outputs):
            reason = Reason("integers", "made of shapes and integers alone, which half precision would round")
        if reason is not None:
            plan.fp32_reasons[id(node)] = reason
        if kind:
            grows.update(dict.fromkeys(node.outputs, kind))
    for node in reversed(list(graph.nodes.values())):
        if id(node) not in plan.fp32_reasons and (reason := reason_from_users(plan, graph, node)) is not None:
            plan.fp32_reasons[id(node)] = reason
    for node in graph.nodes.values():
        if id(node) not in plan.fp32_reasons and (reason := reason_from_inputs(plan, graph, node)) is not None:
            plan.fp32_reasons[id(node)] = reason
    for node in graph.nodes.values():
        for body in node.bodies:
            _plan_scope(plan, body)


def _decide(plan: PrecisionPlan, graph: Graph, node: Node, grows: Grows) -> tuple[Reason | None, str]:
    """The reason, and how FP32 spreads behind the node (empty: it does not)."""
    alone = reason_alone(plan, graph, node)
    if alone is not None:
        return alone, alone.kind if alone.kind in GROWING else ""
    return reason_from_growth(plan, graph, node, grows) or (None, "")
