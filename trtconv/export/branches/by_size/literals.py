"""Joint sizes near the numbers that stand in the user's code, for decisions that no run with symbols follows.

`ys[-1] == 135` of `ys = range(0, h, 3)` holds at heights of 136 to 138, and `math.gcd(h, w) == 61` where both are
multiples of 61. A fuzzer that reads a program's constants (a dictionary, Zalewski 2014, AFL) finds such places, and one
that draws at random does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType

from trtconv.core.shape_space.space import DimRange, ShapeSpace

# A size is tried at these distances from a number, nearest first, and at the first multiples of it.
NEAR = (0, 1, -1, 2, 3, 4, -2)
MULTIPLES = (1, 2, 3, 4)
# Below it numbers are axes, strides and windows.
LEAST_NUMBER = 8
MOST_NUMBERS, MOST_SIZES = 16, 512


def numbers_in(code: CodeType) -> Iterator[int]:
    """The whole numbers that stand in a function, in tuples too."""
    waiting = list(code.co_consts)
    while waiting:
        constant = waiting.pop(0)
        if isinstance(constant, (tuple, frozenset)):
            waiting += constant
        elif type(constant) is int and constant >= LEAST_NUMBER:
            yield constant


def sizes_near(numbers: Iterable[int], space: ShapeSpace, base: Mapping[str, int]) -> list[dict[str, int]]:
    """Up to MOST_SIZES joint sizes of which one or two dims lie near the numbers, the others as in `base`."""
    moving = [(n, r) for n, r in space.dims if r.min != r.max]
    chosen = list(dict.fromkeys(numbers))[:MOST_NUMBERS]
    near = {name: _near(chosen, rng) for name, rng in moving}
    sizes: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
    # Pairs first, those with the least distances before others.
    pairs = [
        (abs(i) + abs(j), {a: u, b: v})
        for a, b in itertools.combinations(near, 2)
        for (u, i), (v, j) in itertools.product(near[a].items(), near[b].items())
    ]
    single = [(abs(i), {name: u}) for name in near for u, i in near[name].items()]
    for _, part in sorted((*single, *pairs), key=lambda entry: entry[0]):
        joint = {**base, **part}
        sizes.setdefault(tuple(joint.items()), joint)
    return list(sizes.values())[:MOST_SIZES]


def _near(numbers: Iterable[int], rng: DimRange) -> dict[int, int]:
    """The sizes of a dim that lie near a number or a multiple of it, each with how far."""
    distances: dict[int, int] = {}
    for number in numbers:
        for size, distance in (*((number + d, d) for d in NEAR), *((number * m, 0) for m in MULTIPLES)):
            if size in rng and abs(distance) <= abs(distances.get(size, distance)):
                distances[size] = distance
    return distances
