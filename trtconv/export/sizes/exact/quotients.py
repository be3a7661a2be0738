"""Sizes that Python computes in floats of several dims, as one whole quotient.

`int(min(320 / min(h, w), 640 / max(h, w)) * w)` keeps the sides of an image in proportion. In whole numbers it is
`min(320 * max(h, w), 640 * min(h, w)) * w // (min(h, w) * max(h, w))`, but for the few joint sizes at which the last
bit of Python's doubles decides otherwise; these stand apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.evaluate import UnreadableError
from trtconv.export.sizes.exact.lines import LARGEST, MOST_EXCEPTIONS
from trtconv.export.sizes.exact.nodes import SizeNodes
from trtconv.export.sizes.exact.program import ROUNDS, is_size, operator_name, symbol_of, values_over

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_JOINT = 4_000_000
LARGEST_DIVISOR = 10_000


@dataclass(frozen=True)
class WholeFormula:
    """A formula in whole numbers: an ONNX operator of two formulas, a number, the size of a dim, or a value by name."""

    operator: str
    operands: tuple[WholeFormula, ...] = ()
    number: int = 0
    name: str = ""
    node: Any = None

    def evaluate(self, sizes: Mapping[str, Array], by_symbol: Mapping[Any, Array]) -> Array:
        """At all joint sizes, of which both have the dims, one by name and one by symbol.

        Raises UnreadableError for numbers that TensorRT does not hold, or below zero.
        """
        import numpy as np

        if self.operator == "number":
            values = np.asarray(self.number, np.int64)
        elif self.operator == "size":
            values = sizes[self.name]
        elif self.operator == "value":
            values = values_over(self.node, by_symbol, np.float64)
        else:
            first, second = (o.evaluate(sizes, by_symbol) for o in self.operands)
            function = {"Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Min": np.minimum, "Max": np.maximum}
            values = np.asarray(first // second if self.operator == "Div" else function[self.operator](first, second))
        if values.min() < 0 or values.max() > LARGEST:
            raise UnreadableError
        return values

    def write(self, nodes: SizeNodes) -> str:
        """Write what computes it, int64 []; returns its name."""
        if self.operator == "number":
            return nodes.constant(self.number)
        if self.operator in ("size", "value"):
            return nodes.size(self.name) if self.operator == "size" else self.name
        return nodes.op(self.operator, *(o.write(nodes) for o in self.operands))


@dataclass(frozen=True)
class Quotient:
    """A whole number of several dims: `formula`, and more by a number at some joint sizes.

    An exception is (key, number); the key is the sum of the sizes times `strides`.
    """

    name: str
    formula: WholeFormula
    strides: tuple[tuple[str, int], ...]
    exceptions: tuple[tuple[int, int], ...]

    def write(self, nodes: SizeNodes) -> str:
        """Write what computes the number, int64 []; returns its name."""
        value = self.formula.write(nodes)
        if not self.exceptions:
            return nodes.op("Identity", value)
        parts = [nodes.op("Mul", nodes.size(dim), nodes.constant(stride)) for dim, stride in self.strides]
        key = parts[0]
        for part in parts[1:]:
            key = nodes.op("Add", key, part)
        return nodes.add_where_equal(value, key, [k for k, _ in self.exceptions], [m for _, m in self.exceptions])


def quotient_of(node: Any, symbols: Mapping[Any, str], dims: tuple[str, ...], trace: Trace) -> Quotient | None:
    """A node that FP32 rounds to another whole number somewhere in the space of its dims; None where it does not.

    None too where too many joint sizes are exceptions. Raises UnreadableError for what is not followed.
    """
    import numpy as np

    ranges = [trace.space[dim].values() for dim in dims]
    if prod(map(len, ranges)) > MOST_JOINT:
        return None
    sizes = dict(zip(dims, np.meshgrid(*ranges, indexing="ij"), strict=True))
    by_symbol = {s: sizes[d] for s, d in symbols.items() if d in sizes}
    with np.errstate(all="ignore"):
        exact = values_over(node, by_symbol, np.float64)
        if np.array_equal(exact, values_over(node, by_symbol, np.float32)):
            return None
    formula = _rounded(node, symbols)
    difference = exact - np.broadcast_to(formula.evaluate(sizes, by_symbol), exact.shape)
    others = np.nonzero(difference)
    if len(others[0]) > MOST_EXCEPTIONS:
        return None
    strides, stride = [], 1
    for dim in reversed(dims):
        strides.append((dim, stride))
        stride *= trace.space[dim].max + 1
    if stride > LARGEST:
        return None
    keys = sum(sizes[dim][others] * s for dim, s in strides)
    exceptions = tuple(zip(np.ravel(keys).tolist(), difference[others].tolist(), strict=True))
    return Quotient(node.name, formula, tuple(strides), exceptions)


def _rounded(node: Any, symbols: Mapping[Any, str]) -> WholeFormula:
    """A node that rounds, as a quotient in whole numbers."""
    numerator, denominator = _fraction(node.args[0], symbols)
    name = operator_name(node)
    if name == "ceil":
        numerator = _combine("Add", numerator, _combine("Sub", denominator, _number(1)))
    elif name == "round":
        # Half-way numbers, which go to the even one, are exceptions.
        numerator = _combine("Add", _combine("Mul", numerator, _number(2)), denominator)
        denominator = _combine("Mul", denominator, _number(2))
    return _combine("Div", numerator, denominator)


def _fraction(node: Any, symbols: Mapping[Any, str]) -> tuple[WholeFormula, WholeFormula]:
    """Numerator and denominator of a number. Raises UnreadableError for one that is no fraction of sizes."""
    if not hasattr(node, "target"):
        ratio = Fraction(node).limit_denominator(LARGEST_DIVISOR)
        return _number(ratio.numerator), _number(ratio.denominator)
    if is_size(node):
        return WholeFormula("size", name=symbols[symbol_of(node)]), _number(1)
    name = operator_name(node)
    if name in ROUNDS or name in ("floordiv", "mod"):
        return WholeFormula("value", name=node.name, node=node), _number(1)
    parts = [_fraction(a, symbols) for a in node.args]
    if name == "sym_float":
        return parts[0]
    (first, under_first), (second, under_second) = parts
    if name == "mul":
        return _combine("Mul", first, second), _combine("Mul", under_first, under_second)
    if name == "truediv":
        return _combine("Mul", first, under_second), _combine("Mul", under_first, second)
    kind = {"add": "Add", "sub": "Sub", "sym_min": "Min", "sym_max": "Max"}.get(name)
    if kind is None:
        raise UnreadableError
    if under_first == under_second:
        return _combine(kind, first, second), under_first
    crossed = _combine("Mul", first, under_second), _combine("Mul", second, under_first)
    return _combine(kind, *crossed), _combine("Mul", under_first, under_second)


def _number(value: int) -> WholeFormula:
    return WholeFormula("number", number=value)


def _combine(operator: str, first: WholeFormula, second: WholeFormula) -> WholeFormula:
    """The formula of two, without what changes nothing."""
    one = _number(1)
    if operator == "Mul" and one in (first, second):
        return second if first == one else first
    if operator == "Div" and second == one:
        return first
    if first.operator == second.operator == "number" and operator in ("Mul", "Add", "Sub"):
        a, b = first.number, second.number
        return _number({"Mul": a * b, "Add": a + b, "Sub": a - b}[operator])
    return WholeFormula(operator, (first, second))
