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
        **dict.fromkeys(("__lshift_", "bitwise_left_shift"), shift_left),
        "div": _divide(values.plain_form("div", opset)),
        "fmod": _cut_remainder(values.plain_form("fmod", opset)),
        "remainder": _remainder(values.plain_form("remainder", opset)),
        "cumsum": _running_sum(values.plain_form("cumsum", opset)),
        **{name: _compare(values.plain_form(name, opset)) for name in COMPARISONS},
        **{name: _with_factor(values.plain_form(name, opset), of=1) for name in ("add", "sub")},
        "full": _full(values.plain_form("full", opset)),
        "rsub": _with_factor(values.plain_form("rsub", opset), of=0),
    }


def _full(plain: Form) -> Form:
    """A tensor of one number, which without a type has that of the number; torch's form makes floats."""

    def full(graph: Any, sizes: Any, value: Any, dtype: Any, *rest: Any) -> Any:
        from torch.onnx import symbolic_helper
        from torch.onnx._internal.torchscript_exporter._type_utils import JitScalarType

        if symbolic_helper._is_none(dtype) and values.kind_of(value) in (JitScalarType.INT64, JitScalarType.BOOL):
            dtype = values.kind_of(value)
        return plain(graph, sizes, value, dtype, *rest)

    return full


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
    """x >> bits: the quotient by a power of two, rounded down; of an amount below zero the sign, as in aten."""
    kind = values.result_kind(graph, x, bits)
    wide = _divided_as(kind)
    x = values.cast_to(graph, x, wide)
    for power in _powers(graph, bits, wide, below_zero=_bits_of(wide)):
        x = floored_quotient(graph, x, power, positive=True)
    return values.cast(graph, x, kind)


def shift_left(graph: Any, x: Any, bits: Any) -> Any:
    """x << bits: the product with a power of two; 0 of an amount below zero or of all bits of the type, as in aten."""
    import torch

    kind = values.result_kind(graph, x, bits)
    wide = _divided_as(kind)
    shifted = values.cast_to(graph, x, wide)
    for power in _powers(graph, bits, wide, below_zero=0):
        shifted = graph.op("Mul", shifted, power)
    amount = values.cast_to(graph, bits, torch.int32)
    ends = [graph.op("Constant", value_t=torch.tensor(end, dtype=torch.int32)) for end in (0, _bits_of(kind))]
    outside = graph.op("Or", graph.op("Less", amount, ends[0]), graph.op("Not", graph.op("Less", amount, ends[1])))
    zero = graph.op("Constant", value_t=torch.tensor(0, dtype=wide))
    return values.cast(graph, graph.op("Where", outside, zero, shifted), kind)


def _bits_of(kind: Any) -> int:
    """How many bits a type has, of ONNX or of torch."""
    import torch

    dtype = kind if isinstance(kind, torch.dtype) else values.dtype_of(kind)
    return int(torch.iinfo(dtype or torch.int64).bits)


def _powers(graph: Any, bits: Any, dtype: Any, below_zero: int) -> list[Any]:
    """Two powers of two whose product is 2**bits, as the type has none for its last bit; `below_zero` stands for
    amounts that are.
    """
    import torch

    most, number = _bits_of(dtype) - 2, values.number_of(bits)
    if number is not None:
        amount = below_zero if number < 0 else int(number)
        steps = (min(amount, most), min(max(amount - most, 0), most))
        return [graph.op("Constant", value_t=torch.tensor(2**step, dtype=dtype)) for step in steps]

    def constant(number: int) -> Any:
        return graph.op("Constant", value_t=torch.tensor(number, dtype=torch.int32))

    bits = values.cast_to(graph, bits, torch.int32)
    bits = graph.op("Where", graph.op("Less", bits, constant(0)), constant(below_zero), bits)
    first = graph.op("Min", bits, constant(most))
    second = graph.op("Min", graph.op("Sub", bits, first), constant(most))
    # FP32 has each power of two exactly.
    two = values.constant(graph, 2.0)
    powers = [graph.op("Pow", two, values.cast_to(graph, step, torch.float32)) for step in (first, second)]
    return [values.cast_to(graph, power, dtype) for power in powers]


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
