"""How FP32 spreads: forward from a sum to the division that brings its size down, backward to what only feeds FP32."""

from __future__ import annotations

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.operators import (
    ANY_TYPE,
    ARITHMETIC,
    COMPARISONS,
    CONTRACTIONS,
    EXACT,
    FEEDS_COORDINATES,
    FEEDS_QUANTIZE,
    FEEDS_SUM,
    GATHERS,
    PICKS,
    RESHAPES,
    VIEWS,
    Reason,
)
from trtconv.rewrite.precision.state import DATA, EXACT_VALUE, FREE, PrecisionPlan

BOOL = 9
# The first of these that enters a node is passed on.
PLACES = frozenset({"coordinates", "decisions"})
GROWING = ("epsilon", "overflow", "range")
# A value of ordinary size comes out where a large one meets data here; an epsilon is still to be divided by.
ENDS = ("Div", "Mul", "Sub")
SCALE_AND_SHIFT = RESHAPES | {"Add", "Mul", "Sub"}
AFFINE = "affine"
Grows = dict[str, str]
"""Values that are in FP32 and spread it: the kind of the reason, or AFFINE."""
SUMS = ("Add", "Sub", "Sum")
CARRIES_EPSILON = ("Add", "Max", "Min", "Sub", "Where")


def origin_of_outputs(plan: PrecisionPlan, graph: Graph, node: Node) -> int:
    """What the outputs of a node are made of."""
    names = plan.floats(graph, node.inputs)
    if node.key == "Constant":
        return FREE
    if node.key == "Cast":
        source = plan.types.of(graph, node.inputs[0])
        if names:
            return plan.origin(graph, names[0])
        return FREE if source == BOOL else EXACT_VALUE if source in range(2, 14) and source not in (10, 11) else DATA
    if node.key not in EXACT or not plan.floats(graph, node.outputs):
        return DATA
    if node.key in GATHERS:
        return EXACT_VALUE if plan.origin(graph, node.inputs[0]) == EXACT_VALUE else DATA
    origins = [plan.origin(graph, n) for n in names]
    if DATA in origins:
        return DATA
    return EXACT_VALUE if EXACT_VALUE in origins else FREE


def reason_from_growth(plan: PrecisionPlan, graph: Graph, node: Node, grows: Grows) -> tuple[Reason, str] | None:
    """FP32 because an FP32 value that may be out of half precision's range enters it, or as scale and shift after.

    With the reason comes how FP32 goes on behind the node: a kind, or AFFINE once the value is of ordinary size again.
    """
    large = sorted({grows[n] for n in node.inputs if n in grows} - {AFFINE})
    if node.key not in ARITHMETIC | VIEWS or not plan.floats(graph, node.outputs):
        return None
    others = [n for n in plan.floats(graph, node.inputs) if grows.get(n, AFFINE) == AFFINE]
    if not large:
        scaled = [n for n in others if n in grows]
        met = any(n not in grows and plan.origin(graph, n) == DATA for n in others)
        fits = scaled and not met and node.key in SCALE_AND_SHIFT
        return (Reason("range", "scales or shifts a value made in FP32"), AFFINE) if fits else None
    kind = next(k for k in GROWING if k in large)
    met = any(n in grows or plan.origin(graph, n) == DATA for n in others)
    if not met:
        ratio = node.key == "Div" and not others
        return Reason(kind, "goes on with a value that has to stay in FP32"), AFFINE if ratio else kind
    if kind == "epsilon" and node.key in CARRIES_EPSILON:
        return Reason(kind, "adds a value that is too small for half precision"), kind
    if kind == "overflow" and node.key in SUMS:
        return Reason(kind, "adds a value that is too large for half precision"), kind
    if node.key in ENDS:
        return Reason(kind, "brings a value that has to stay in FP32 back to ordinary size"), AFFINE
    return None


def reason_from_users(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    """FP32 because everything that uses the node's values is in FP32."""
    outputs = plan.floats(graph, node.outputs)
    kinds: set[str] = set()
    for name in outputs:
        if name in graph.outputs:
            if graph.parent is not None or not plan.fp32_outputs:
                return None
            kinds.add("output")
        for user in graph.uses(name):
            if user.key in PICKS:
                kinds.add("decisions")
            if user.key in ANY_TYPE:
                continue
            kinds.add("half" if user.bodies or id(user) not in plan.fp32_reasons else plan.fp32_reasons[id(user)].kind)
    if "half" in kinds:
        return _leads_to_a_place(plan, graph, node, kinds)
    if not kinds or not _may_join(plan, graph, node, kinds):
        return None
    return Reason(min(kinds - {"output"}, default="range"), "only FP32 nodes use it")


def _leads_to_a_place(plan: PrecisionPlan, graph: Graph, node: Node, kinds: set[str]) -> Reason | None:
    """Position arithmetic stays in FP32 also where half nodes use it too.

    In FP16 a position that was clipped to 30.999 is 31, and the pixel after it is out of bounds. Arithmetic on one
    value and constants only, so that it does not run back along a residual stream.
    """
    data = [n for n in plan.floats(graph, node.inputs) if plan.origin(graph, n) == DATA]
    if kinds & PLACES and len(data) <= 1 and node.key in FEEDS_COORDINATES:
        return Reason(min(kinds & PLACES), "a position or a decision is made of it")
    return None


def reason_from_inputs(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    """FP32 because all that enters it is in FP32: positions and what is computed from them, and their comparisons.

    Two halves are compared as halves: with only one of them rounded, `x == max` would never hold.
    """
    data = [n for n in plan.floats(graph, node.inputs) if plan.origin(graph, n) == DATA]
    if not data or node.key not in ARITHMETIC | VIEWS | COMPARISONS:
        return None
    makers = [graph.maker(n) for n in data]
    if node.key in COMPARISONS:
        inputs_are_fp32 = plan.fp32_outputs and graph.parent is None
        all_fp32 = all(
            id(m) in plan.fp32_reasons if m else inputs_are_fp32 and n in graph.inputs
            for n, m in zip(data, makers, strict=True)
        )
        return Reason("decisions", "both sides are in FP32") if all_fp32 else None
    reasons = [plan.fp32_reasons.get(id(m)) for m in makers]
    if all(r is not None and r.kind in PLACES for r in reasons):
        return Reason("coordinates", "made of positions")
    return None


def _may_join(plan: PrecisionPlan, graph: Graph, node: Node, kinds: set[str]) -> bool:
    if kinds == {"output"}:
        # A view of an FP32 value on its way out: rounding it would only lose bits.
        makers = [graph.maker(n) for n in plan.floats(graph, node.inputs)]
        return node.key in VIEWS and any(m is not None and id(m) in plan.fp32_reasons for m in makers)
    if plan.origin(graph, node.outputs[0]) == FREE and node.key in EXACT and "asked" not in kinds:
        return True
    if kinds & {"range", "epsilon", "overflow"} and node.key in FEEDS_SUM:
        return True
    if "quantized" in kinds and node.key in FEEDS_QUANTIZE:
        return True
    # RTX 1.7 cannot build a recurrent operator when a cast stands between it and the transpose before it.
    if "target" in kinds and node.key in RESHAPES:
        return True
    if not kinds & PLACES:
        return False
    exact = any(plan.origin(graph, n) == EXACT_VALUE for n in plan.floats(graph, node.inputs))
    return node.key in FEEDS_COORDINATES or (node.key in CONTRACTIONS and exact)
