"""Dims that follow from others, found by trying: where U is 2*T, a module that raises elsewhere runs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping

from trtconv.core.effort import Effort
from trtconv.core.shape_space.derived import names_of, size_of
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.proof.undefined_sizes import Problem

FACTORS = (2, 4, 8, 16, 32)
# What is tried of each other dim, and of each two; the simplest first.
OF_ONE = (
    *("{a}", "{a}+1", "{a}-1", "2*{a}+1", "2*{a}-1", "3*{a}"),
    *(f.replace("k", str(k)).replace("j", str(k - 1)) for k in FACTORS for f in ("k*{a}", "{a}//k", "({a}+j)//k")),
)
OF_TWO = ("{a}+{b}", "{a}*{b}", "{a}+{b}+1")
POINTS = 4
# Beside its expression it raises at most points: a size of 1 fits every other one.
MOST = 0.8
# A module of multiples alone runs at some of these steps.
STEPS = tuple(sign * step for step in (1, *FACTORS) for sign in (1, -1))
SECONDS, FEWEST = 5.0, 200


def find_ties(problem: Problem, space: ShapeSpace) -> dict[str, str]:
    """By dim the expression of others with which the module runs, where it raises beside that.

    `problem` says what the module raises at some sizes, or None. Looks around the opt sizes where it runs there, so
    that several dims may follow from others, then anywhere. Ends after some five seconds each.
    """
    opt = space.pick("opt")
    for base in (opt, None) if problem(opt) is None else (None,):
        ties = _ties(problem, space, base)
        # At one opt size of a third dim, `K` is `P+1`; that is not so everywhere.
        points = [_with(ties, p) for p in _random_sizes(space)]
        if ties and not any(problem(p) for p in points if space.contains(p)):
            return ties
    return {}


def _random_sizes(space: ShapeSpace) -> list[dict[str, int]]:
    chance = random.Random(1)
    return [{n: chance.choice(r.values()) for n, r in space.dims} for _ in range(POINTS)]


def _with(ties: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, int]:
    return {**sizes, **{name: int(size_of(expression, sizes)) for name, expression in ties.items()}}


def _ties(problem: Problem, space: ShapeSpace, base: Mapping[str, int] | None) -> dict[str, str]:
    effort = Effort(SECONDS, FEWEST)
    ties: dict[str, str] = {}
    for name in (n for n, r in space.dims if r.min < r.max):
        for expression in _expressions(space, name, ties):
            if not effort.step():
                return ties
            if _holds(problem, space, name, expression, base):
                ties[name] = expression
                break
    return ties


def _expressions(space: ShapeSpace, name: str, ties: Mapping[str, str]) -> Iterator[str]:
    """Of the dims that do not follow from others themselves."""
    others = [n for n, r in space.dims if n != name and n not in ties and r.min < r.max]
    for form in OF_ONE:
        yield from (form.format(a=a) for a in others)
    for form in OF_TWO:
        yield from (form.format(a=a, b=b) for a, b in itertools.combinations(others, 2))


def _holds(
    problem: Problem, space: ShapeSpace, name: str, expression: str, base: Mapping[str, int] | None
) -> bool:
    """True where the module runs at some points of that form, and raises at most of those beside them."""
    chance = random.Random(0)
    others = names_of(expression)
    points: list[dict[str, int]] = []
    for _ in range(POINTS * 8):
        random_sizes = {n: chance.choice(r.values()) for n, r in space.dims if base is None or n in others}
        sizes = {**(base or {}), **random_sizes}
        sizes[name] = int(size_of(expression, sizes))
        if sizes[name] in space[name] and sizes not in points:
            points.append(sizes)
    points = points[:POINTS]
    # Of one size alone every expression is true.
    if len({p[name] for p in points}) < 2 or any(problem(p) is not None for p in points):
        return False
    beside = [{**p, name: p[name] + step} for p in points for step in STEPS if p[name] + step in space[name]]
    return bool(beside) and sum(problem(p) is not None for p in beside) >= MOST * len(beside)
