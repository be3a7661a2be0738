"""Whole numbers in a recorded file: quotients, shifts, comparisons and sums as torch defines them.

torch's own forms divide towards zero (`-1 // 2` is 0), compare with numbers beyond the type of a tensor, multiply in
the narrower type, and add up int32 in int32. Parts that torch.jit.script made have no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtconv.export.exporters.recorded import values
from trtconv.export.exporters.recorded.floats import floored_fraction, fraction_left

Form = Callable[..., Any]
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def forms(opset: int) -> dict[str, Form]:
    """The forms by aten's names, without the last underscore of those that end in one: torch registers them so."""
    return {
        **dict.fromkeys(("floor_divide", "floordiv"), floor_divide),
        **dict.fromkeys(("__rshift_", "bitwise_right_shift"), shift_right),
        "div": _divide(values.plain_form("div", opset)),
        "fmod": _cut_remainder(values.plain_form("fmod", opset)),
        "remainder": _remainder(values.plain_form("remainder", opset)),
        "cumsum": _running_sum(values.plain_form("cumsum", opset)),
        **{name: _compare(values.plain_form(name, opset)) for name in COMPARISONS},
        **{name: _with_factor(values.plain_form(name, opset), of=1) for name in ("add", "sub")},
        "rsub": _with_factor(values.plain_form("rsub", opset), of=0),
    }


def floor_divide(graph: Any, dividend: Any, divisor: Any) -> Any:
    """x // y, of fractions too."""
    kind = values.result_kind(graph, dividend, divisor)
    dividend, divisor = (values.cast(graph, v, kind) for v in (dividend, divisor))
    if values.is_float(dividend) or values.is_float(divisor):
        return floored_fraction(graph, dividend, divisor)
    dividend, divisor = (values.cast_to(graph, v, _divided_as(kind)) for v in (dividend, divisor))
    number = values.number_of(divisor)
    quotient = floored_quotient(graph, dividend, divisor, number is not None and number > 0)
    return values.cast(graph, quotient, kind)


def _divided_as(kind: Any) -> Any:
    """The torch.dtype in which whole numbers of a type are divided: every runtime has int32, and not all less."""
    import torch

    dtype = values.dtype_of(kind)
    return torch.int32 if dtype in (torch.uint8, torch.int8, torch.int16) else dtype or torch.int64


def floored_quotient(graph: Any, dividend: Any, divisor: Any, positive: bool) -> Any:
    """The quotient rounded down: one less than ONNX's where the remainder has the other sign than the divisor.

    No step leaves the type, not even at its ends. `positive` says so of the divisor.
    """
    zero = values.constant(graph, 0)
    whole = graph.op("Div", dividend, divisor)
    rest = graph.op("Sub", dividend, graph.op("Mul", whole, divisor))
    below = graph.op("Less", rest, zero)
    if not positive:
        other_sign = graph.op("Xor", below, graph.op("Less", divisor, zero))
        below = graph.op("And", other_sign, graph.op("Not", graph.op("Equal", rest, zero)))
    return graph.op("Where", below, graph.op("Sub", whole, values.constant(graph, 1)), whole)


def shift_right(graph: Any, x: Any, bits: Any) -> Any:
    """x >> bits: the quotient by a power of two, rounded down.

    The type has no power for its last bit, so that a shift by as much is taken in two.
    """
    import torch

    number, kind = values.number_of(bits), values.result_kind(graph, x, bits)
    wide = _divided_as(kind)
    most = torch.iinfo(wide).bits - 2
    x = values.cast_to(graph, x, wide)
    if number is not None:
        steps = [min(int(number), most), *([min(int(number) - most, most)] if number > most else [])]
        powers = [graph.op("Constant", value_t=torch.tensor(2**step, dtype=wide)) for step in steps]
    else:
        bits = values.cast_to(graph, bits, torch.int32)
        limit = graph.op("Constant", value_t=torch.tensor(most, dtype=torch.int32))
        first = graph.op("Min", bits, limit)
        second = graph.op("Min", graph.op("Sub", bits, first), limit)
        # FP32 has each power of two exactly.
        two = values.constant(graph, 2.0)
        powers = [graph.op("Pow", two, values.cast_to(graph, step, torch.float32)) for step in (first, second)]
        powers = [values.cast_to(graph, power, wide) for power in powers]
    for power in powers:
        x = floored_quotient(graph, x, power, positive=True)
    return values.cast(graph, x, kind)


def _divide(plain: Form) -> Form:
    def divide(graph: Any, dividend: Any, divisor: Any, *mode: Any) -> Any:
        """torch.div, whose form for `rounding_mode="floor"` is that of `//`."""
        from torch.onnx import symbolic_helper

        rounding = symbolic_helper._maybe_get_const(mode[0], "s") if mode else None
        if rounding == "floor":
            return floor_divide(graph, dividend, divisor)
        return plain(graph, dividend, divisor, *mode)

    return divide


def _remainder(plain: Form) -> Form:
    def remainder(graph: Any, x: Any, divisor: Any) -> Any:
        """x % y: ONNX's Mod is it for whole numbers of one type."""
        kind = values.result_kind(graph, x, divisor)
        x, divisor = (values.cast(graph, v, kind) for v in (x, divisor))
        if values.is_float(x) or values.is_float(divisor):
            return fraction_left(graph, x, divisor)
        return plain(graph, x, divisor)

    return remainder


def _cut_remainder(plain: Form) -> Form:
    def fmod(graph: Any, x: Any, divisor: Any) -> Any:
        """What truncated division leaves; ONNX Runtime computes Mod with `fmod` in doubles, of int64 as well."""
        kind = values.result_kind(graph, x, divisor)
        x, divisor = (values.cast(graph, v, kind) for v in (x, divisor))
        if kind is None or values.is_float(x) or values.is_float(divisor):
            return plain(graph, x, divisor)
        x, divisor = (values.cast_to(graph, v, _divided_as(kind)) for v in (x, divisor))
        product = graph.op("Mul", graph.op("Div", x, divisor), divisor)
        return values.cast(graph, graph.op("Sub", x, product), kind)

    return fmod


def _running_sum(plain: Form) -> Form:
    def cumsum(graph: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
        """Whole numbers and booleans are summed up as int64, where no type is named."""
        import torch

        unnamed = dtype is None or dtype.node().mustBeNone()
        own = values.dtype_of(values.kind_of(x))
        if unnamed and own is not None and not own.is_floating_point:
            x = values.cast_to(graph, x, torch.int64)
        return plain(graph, x, dim, dtype)

    return cumsum


def _compare(plain: Form) -> Form:
    def compare(graph: Any, x: Any, other: Any) -> Any:
        """Whole numbers are compared in the type that torch gives the two: what has no axes, a number or a size, is
        wrapped to the type of a tensor that has some. A byte of 0 equals 256.
        """
        kind = values.common_kind(x, other)
        if kind is not None and all(values.is_whole(v) for v in (x, other)):
            x, other = (values.cast(graph, v, kind) for v in (x, other))
        return plain(graph, x, other)

    return compare


def _with_factor(plain: Form, of: int) -> Form:
    def add(graph: Any, *operands: Any) -> Any:
        """`torch.add(x, y, alpha=3)`: the product is one of the type of the sum, and not of the narrower of the two."""
        terms, alpha = list(operands[:2]), operands[2:]
        kind = values.result_kind(graph, *terms)
        if alpha and kind is not None and values.number_of(alpha[0]) not in (None, 1) and not is_list(terms[0]):
            terms[of] = values.cast(graph, terms[of], kind)
        return plain(graph, *terms, *alpha)

    return add


def is_list(value: Any) -> bool:
    """True for a list of tensors, which `+` joins."""
    import torch

    return isinstance(value.type(), torch.ListType)
