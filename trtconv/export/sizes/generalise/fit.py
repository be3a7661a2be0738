"""Which expression of the dims gives a number that moved with the traced size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

DENOMINATORS = (1, 2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 10, 12)
NUMERATORS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32)
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Term:
    """`(factor * dim + shift) // divisor`."""

    dim: str
    factor: int = 1
    shift: int = 0
    divisor: int = 1

    def at(self, sizes: Sizes) -> int:
        """The value, rounded down."""
        return (self.factor * sizes[self.dim] + self.shift) // self.divisor

    def __str__(self) -> str:
        text = self.dim if self.factor == 1 else f"{self.factor}*{self.dim}"
        if self.shift:
            text += f" {'+' if self.shift > 0 else '-'} {abs(self.shift)}"
        if self.divisor == 1:
            return text
        return f"({text}) // {self.divisor}" if " " in text or "*" in text else f"{text} // {self.divisor}"


@dataclass(frozen=True)
class SizeFormula:
    """A whole number times a product of terms, or (`sums`) a whole number plus their sum.

    `least` and `most` bound the whole: `min(H, 20)` has 20 as `most`.
    """

    terms: tuple[Term, ...]
    constant: int = 1
    sums: bool = False
    least: int | None = None
    most: int | None = None

    def at(self, sizes: Sizes) -> int:
        """The value at the sizes."""
        values = [t.at(sizes) for t in self.terms]
        whole = self.constant + sum(values) if self.sums else self.constant * math.prod(values)
        whole = whole if self.most is None else min(whole, self.most)
        return whole if self.least is None else max(whole, self.least)

    def __str__(self) -> str:
        text = self._unbounded()
        text = text if self.most is None else f"min({text}, {self.most})"
        return text if self.least is None else f"max({text}, {self.least})"

    def _unbounded(self) -> str:
        sign = " + " if self.sums else " * "
        parts = [str(t) if len(self.terms) == 1 or str(t) == t.dim else f"({t})" for t in self.terms]
        if self.constant == -1 and not self.sums:
            return f"-({' * '.join(parts)})"
        neutral = 0 if self.sums else 1
        return sign.join([*([] if self.constant == neutral else [str(self.constant)]), *parts])


@dataclass(frozen=True)
class Observation:
    """A number at some traced sizes."""

    sizes: tuple[tuple[str, int], ...]
    value: int

    @property
    def by_name(self) -> dict[str, int]:
        """The sizes as a dict."""
        return dict(self.sizes)


def fit(observations: Sequence[Observation]) -> SizeFormula | None:
    """The simplest expression that gives every observation; None when there is none of this form.

    The first observation is the base; each of the others changes one dim, or (the last ones) all of them.
    """
    base = observations[0].by_name
    moved = [
        d for d in base if any(o.value != observations[0].value and _only(o.by_name, base, d) for o in observations[1:])
    ]
    if not moved:
        return None
    lines = {d: [o for o in observations if _only(o.by_name, base, d)] for d in moved}
    if len(moved) == 1:
        candidates = _of_one(moved[0], lines[moved[0]])
    elif len(moved) == 2:
        candidates = [*_products(moved, lines, observations[0]), *_sums(moved, lines, observations[0])]
    else:
        return None
    return next((c for c in candidates if all(c.at(o.by_name) == o.value for o in observations)), None)


def _of_one(dim: str, observations: Sequence[Observation]) -> list[SizeFormula]:
    """Expressions of one dim: a term, its negative, or the dim bounded by a number."""
    fits = [SizeFormula((t,)) for t in terms(dim, observations, 1)]
    fits += [SizeFormula((t,), -1) for t in terms(dim, [replace(o, value=-o.value) for o in observations], 1)]
    values = sorted({o.value for o in observations})
    for bound, is_most in ((values[-1], True), (values[0], False)):
        inside = [o for o in observations if o.value != bound]
        if len(inside) < len(observations) - 1 and all(o.value == o.by_name[dim] for o in inside):
            fits.append(SizeFormula((Term(dim),), most=bound if is_most else None, least=None if is_most else bound))
    return fits


def _only(sizes: Sizes, base: Sizes, dim: str) -> bool:
    return all(sizes[d] == base[d] for d in base if d != dim)


def terms(dim: str, observations: Sequence[Observation], scale: int) -> list[Term]:
    """All terms of `dim` that give value / scale at every observation, simplest first."""
    if any(o.value % scale for o in observations):
        return []
    values = [(o.by_name[dim], o.value // scale) for o in observations]
    matching = []
    for divisor in DENOMINATORS:
        for factor in NUMERATORS:
            if math.gcd(divisor, factor) != 1:
                continue
            shift = _shift(values, factor, divisor)
            if shift is not None:
                matching.append(Term(dim, factor, shift, divisor))
    return sorted(matching, key=lambda t: (t.divisor + abs(t.factor) + abs(t.shift), t.divisor))


def _shift(values: Sequence[tuple[int, int]], factor: int, divisor: int) -> int | None:
    """The shift of least magnitude for which all values are (factor * d + shift) // divisor."""
    low = max(v * divisor - factor * d for d, v in values)
    high = min(v * divisor + divisor - 1 - factor * d for d, v in values)
    if low > high:
        return None
    return min(max(0, low), high)


def _products(moved: list[str], lines: Mapping[str, list[Observation]], base: Observation) -> list[SizeFormula]:
    first, second = moved
    if base.value == 0:
        return []
    shared = math.gcd(*(o.value for o in lines[first]))
    formulas = []
    for other in (g for g in range(1, shared + 1) if shared % g == 0):
        for left in terms(first, lines[first], other)[:3]:
            own = left.at(base.by_name)
            if own == 0:
                continue
            for right in terms(second, lines[second], own)[:3]:
                rest = base.value // (own * right.at(base.by_name) or 1)
                formulas.append(SizeFormula((left, right), max(rest, 1)))
    return sorted(formulas, key=lambda e: sum(t.divisor + abs(t.factor) + abs(t.shift) for t in e.terms))


def _sums(moved: list[str], lines: Mapping[str, list[Observation]], base: Observation) -> list[SizeFormula]:
    formulas = []
    for left in _steps(moved[0], lines[moved[0]]):
        for right in _steps(moved[1], lines[moved[1]]):
            constant = base.value - left.at(base.by_name) - right.at(base.by_name)
            formulas.append(SizeFormula((left, right), constant, True))
    return formulas


def _steps(dim: str, observations: Sequence[Observation]) -> list[Term]:
    """Terms without a shift that change as the values do; the rest goes into the constant of the sum."""
    matching = []
    for divisor in DENOMINATORS:
        for factor in NUMERATORS:
            term = Term(dim, factor, 0, divisor)
            rests = {o.value - term.at(o.by_name) for o in observations}
            if math.gcd(divisor, factor) == 1 and len(rests) == 1:
                matching.append(term)
    return matching[:3]
