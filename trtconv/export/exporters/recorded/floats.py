"""Fractions in a recorded file where torch's own forms are other functions than torch's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtconv.export.exporters.recorded import values

Form = Callable[..., Any]
# From here on softplus(x) is x to the last digit of FP32: log1p(exp(-20)) is 2e-9.
LINEAR_FROM = 20.0


def forms(opset: int) -> dict[str, Form]:
    """The forms by aten's names."""
    return {
        "softplus": _softplus(values.plain_form("softplus", opset)), "cosine_similarity": cosine_similarity,
        "cdist": _distances(values.plain_form("cdist", opset)),
    }  # fmt: skip


def floored_fraction(graph: Any, dividend: Any, divisor: Any) -> Any:
    """x // y by the exact remainder, as `trtconv.export.symbolic.arithmetic.division` has it; x / y where y is 0."""
    zero, one = values.constant(graph, 0.0), values.constant(graph, 1.0)
    rest = graph.op("Mod", dividend, divisor, fmod_i=1)
    whole = graph.op("Div", graph.op("Sub", dividend, rest), divisor)
    whole = graph.op("Where", _other_sign(graph, rest, divisor), graph.op("Sub", whole, one), whole)
    low = graph.op("Floor", whole)
    # What is left is rounding, to either side of a whole number.
    above = graph.op("Greater", graph.op("Sub", whole, low), values.constant(graph, 0.5))
    nearest = graph.op("Where", above, graph.op("Add", low, one), low)
    # A zero has the sign of the quotient.
    quotient = graph.op("Div", dividend, divisor)
    signed_zero = graph.op("Mul", quotient, zero)
    nearest = graph.op("Where", graph.op("Equal", nearest, zero), signed_zero, nearest)
    return graph.op("Where", graph.op("Equal", divisor, zero), quotient, nearest)


def fraction_left(graph: Any, x: Any, divisor: Any) -> Any:
    """x % y: the exact remainder, moved to the divisor's sign."""
    rest = graph.op("Mod", x, divisor, fmod_i=1)
    return graph.op("Where", _other_sign(graph, rest, divisor), graph.op("Add", rest, divisor), rest)


def _other_sign(graph: Any, rest: Any, divisor: Any) -> Any:
    zero = values.constant(graph, 0.0)
    unlike = graph.op("Xor", graph.op("Less", rest, zero), graph.op("Less", divisor, zero))
    return graph.op("And", unlike, graph.op("Not", graph.op("Equal", rest, zero)))


def _softplus(plain: Form) -> Form:
    def softplus(graph: Any, x: Any, beta: Any, threshold: Any) -> Any:
        """log(1 + exp(beta x)) / beta, and x where beta x is above the threshold, which torch's form leaves out."""
        limit, factor = values.number_of(threshold), values.number_of(beta)
        curved = plain(graph, x, beta, threshold)
        if limit is None or factor is None or limit >= LINEAR_FROM:
            return curved
        scaled = graph.op("Mul", x, values.constant(graph, float(factor)))
        return graph.op("Where", graph.op("Greater", scaled, values.constant(graph, float(limit))), x, curved)

    return softplus


def cosine_similarity(graph: Any, first: Any, second: Any, dim: Any, epsilon: Any) -> Any:
    """The product of two directions; each length is at least `epsilon`, and torch's form held the product to that."""
    from torch.onnx import symbolic_helper

    axis = symbolic_helper._get_const(dim, "i", "dim")
    least = values.constant(graph, float(symbolic_helper._get_const(epsilon, "f", "eps")))
    directions = []
    for vector, other in ((first, second), (second, first)):
        if _sizes(first) is None or _sizes(first) != _sizes(second):
            vector = graph.op("Expand", vector, graph.op("Shape", other))
        squares = graph.op("Mul", vector, vector)
        length = graph.op("Sqrt", symbolic_helper._reducesum_helper(graph, squares, axes_i=[axis], keepdims_i=1))
        directions.append(graph.op("Div", vector, graph.op("Max", length, least)))
    return symbolic_helper._reducesum_helper(graph, graph.op("Mul", *directions), axes_i=[axis], keepdims_i=0)


def _distances(plain: Form) -> Form:
    def cdist(graph: Any, rows: Any, others: Any, exponent: Any = 2.0, mode: Any = None) -> Any:
        """Distances of all pairs of rows; torch's form adds 1e-6 to each difference and takes roots of its sign."""
        from torch.onnx import symbolic_helper

        power = symbolic_helper._maybe_get_const(exponent, "f")
        if power not in (1.0, 2.0):
            return plain(graph, rows, others, exponent, mode)
        pairs = (symbolic_helper._unsqueeze_helper(graph, x, [axis]) for x, axis in ((rows, -2), (others, -3)))
        gap = graph.op("Sub", *pairs)
        size = graph.op("Abs", gap) if power == 1.0 else graph.op("Mul", gap, gap)
        total = symbolic_helper._reducesum_helper(graph, size, axes_i=[-1], keepdims_i=0)
        return total if power == 1.0 else graph.op("Sqrt", total)

    return cdist


def _sizes(value: Any) -> list[int] | None:
    """The sizes that the recording tells, where it tells all of them."""
    sizes: list[int] | None = value.type().varyingSizes()
    return sizes if sizes is not None and all(size is not None for size in sizes) else None
