"""Functions element by element that torch's recording exporter does not write, or not of all numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trtconv.export.exporters.recorded import values

Form = Callable[..., Any]


def forms() -> dict[str, Form]:
    """The forms by aten's names."""
    return {
        **dict.fromkeys(("trunc", "fix"), trunc), "frac": frac, "exp2": exp2, "threshold": threshold,
        "heaviside": heaviside, "logaddexp": logaddexp, "addcmul": _scaled_sum("Mul"), "addcdiv": _scaled_sum("Div"),
        "signbit": signbit, "copysign": copysign, "fmax": _number_of_two("Greater"), "fmin": _number_of_two("Less"),
        "xlogy": xlogy, "isposinf": _is_infinity(negative=0), "isneginf": _is_infinity(positive=0),
        "deg2rad": _scaled(math.pi / 180.0), "rad2deg": _scaled(180.0 / math.pi),
    }  # fmt: skip


def trunc(graph: Any, x: Any) -> Any:
    """x without its fraction; NaN is kept."""
    if values.is_whole(x):
        return graph.op("Identity", x)
    zero = values.cast(graph, values.constant(graph, 0.0), values.kind_of(x))
    return graph.op("Where", graph.op("Less", x, zero), graph.op("Ceil", x), graph.op("Floor", x))


def frac(graph: Any, x: Any) -> Any:
    """What `trunc` takes away; NaN of an infinity, as in torch."""
    return graph.op("Sub", x, trunc(graph, x))


def exp2(graph: Any, x: Any) -> Any:
    """2 to the power of x; of whole numbers as fractions."""
    kind = values.result_kind(graph)
    return graph.op("Pow", values.cast(graph, values.constant(graph, 2.0), kind), values.cast(graph, x, kind))


def threshold(graph: Any, x: Any, limit: Any, value: Any) -> Any:
    """x above the limit, and the value elsewhere; NaN is not below it."""
    kind = values.kind_of(x)
    limit, value = (values.cast(graph, v, kind) for v in (limit, value))
    return graph.op("Where", graph.op("LessOrEqual", x, limit), value, x)


def heaviside(graph: Any, x: Any, at_zero: Any) -> Any:
    """1 above zero, `at_zero` there, and 0 elsewhere, of NaN too."""
    kind = values.kind_of(x)
    zero, one = (values.cast(graph, values.constant(graph, n), kind) for n in (0.0, 1.0))
    step = graph.op("Where", graph.op("Greater", x, zero), one, zero)
    return graph.op("Where", graph.op("Equal", x, zero), at_zero, step)


def logaddexp(graph: Any, x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) by the greater and the distance, which is none of two equal infinities."""
    kind = values.result_kind(graph)
    x, y = (values.cast(graph, v, kind) for v in (x, y))
    one, two = (values.cast(graph, values.constant(graph, n), kind) for n in (1.0, 2.0))
    distance = graph.op("Neg", graph.op("Abs", graph.op("Sub", x, y)))
    more = graph.op("Log", graph.op("Add", one, graph.op("Exp", distance)))
    more = graph.op("Where", graph.op("Equal", x, y), graph.op("Log", two), more)
    return graph.op("Add", graph.op("Max", x, y), more)


def signbit(graph: Any, x: Any) -> Any:
    """Whether a number is negative, a zero too; no NaN is."""
    zero = values.cast(graph, values.constant(graph, 0.0), values.kind_of(x))
    below = graph.op("Less", x, zero)
    if values.is_whole(x):
        return below
    negative_zero = graph.op("Less", graph.op("Reciprocal", x), zero)
    return graph.op("Or", below, graph.op("And", graph.op("Equal", x, zero), negative_zero))


def copysign(graph: Any, x: Any, other: Any) -> Any:
    """The magnitude of x with the sign of the other, a zero's too; no NaN's."""
    kind = values.result_kind(graph)
    size = graph.op("Abs", values.cast(graph, x, kind))
    return graph.op("Where", signbit(graph, values.cast(graph, other, kind)), graph.op("Neg", size), size)


def _number_of_two(comparison: str) -> Form:
    def form(graph: Any, x: Any, y: Any) -> Any:
        """The greater or the lesser of two; the other one of a NaN."""
        kind = values.result_kind(graph)
        x, y = (values.cast(graph, v, kind) for v in (x, y))
        chosen = graph.op(comparison, x, y)
        if not values.is_whole(x):
            chosen = graph.op("Or", chosen, graph.op("IsNaN", y))
        return graph.op("Where", chosen, x, y)

    return form


def xlogy(graph: Any, x: Any, y: Any) -> Any:
    """x log(y), which is 0 where x is, but for a y of NaN."""
    kind = values.result_kind(graph)
    x, y = (values.cast(graph, v, kind) for v in (x, y))
    zero = values.cast(graph, values.constant(graph, 0.0), kind)
    nothing = graph.op("And", graph.op("Equal", x, zero), graph.op("Not", graph.op("IsNaN", y)))
    return graph.op("Where", nothing, zero, graph.op("Mul", x, graph.op("Log", y)))


def _is_infinity(*, negative: int = 1, positive: int = 1) -> Form:
    return lambda graph, x: graph.op("IsInf", x, detect_negative_i=negative, detect_positive_i=positive)


def _scaled(factor: float) -> Form:
    def form(graph: Any, x: Any) -> Any:
        """x times a number; of whole numbers as fractions."""
        kind = values.result_kind(graph)
        return graph.op("Mul", values.cast(graph, x, kind), values.cast(graph, values.constant(graph, factor), kind))

    return form


def _scaled_sum(operator: str) -> Form:
    def form(graph: Any, x: Any, first: Any, second: Any, scale: Any) -> Any:
        """x + scale * first * second (addcmul), or by the second (addcdiv), in the type of the result."""
        kind = values.result_kind(graph)
        x, first, second = (values.cast(graph, v, kind) for v in (x, first, second))
        if values.number_of(scale) != 1:
            first = graph.op("Mul", values.cast(graph, scale, kind), first)
        return graph.op("Add", x, graph.op(operator, first, second))

    return form
