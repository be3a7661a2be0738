"""The search for sizes at which something is undefined, and for the multiple of a dim that makes it defined.

What is searched is given as a function of sizes: strict shape inference of a graph, or a run of a module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.alignment import covering_range, round_up
from trtconv.core.shape_space.space import DimRange, ShapeSpace

# Powers of two come from strides; the others from windows, patches and pixel shuffles.
MULTIPLES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
# Sizes looked at per dim: all of a small range, of a large one these many from both ends and around opt.
MANY = 24

# What is wrong at the given sizes, in a few words, or None.
Problem = Callable[[Mapping[str, int]], str | None]


@dataclass(frozen=True)
class UndefinedDim:
    """A dim with sizes at which the graph is undefined. `multiple` is None when no multiple up to 64 helps.

    `least` is the smallest defined size where only smaller ones are undefined: a window that they do not fill.
    """

    name: str
    sizes: tuple[int, ...]
    multiple: int | None
    problem: str
    least: int | None = None

    def __str__(self) -> str:
        text = f"the graph is undefined at {self.where}"
        if self.least is not None:
            return f"{text}; it is defined from {self.least} on: give the range as {self.name}={self.least}:OPT:MAX"
        if self.multiple is None:
            return f"{text}; no multiple up to 64 helps"
        remedy = f"give the range as {self.name}=MIN:OPT:MAX%{self.multiple}"
        return f"{text}; multiples of {self.multiple} are defined: {remedy}, or add --align or --pad-to-multiple"

    @property
    def where(self) -> str:
        """`H = 33, 34, ... (what is wrong)`."""
        if not self.name:
            return f"min, opt, max and every size tried beside them ({self.problem})"
        shown = ", ".join(map(str, self.sizes[:4])) + (", ..." if len(self.sizes) > 4 else "")
        return f"{self.name} = {shown} ({self.problem})"


def find_undefined(
    problem: Problem, space: ShapeSpace, *, many: int = MANY, cover: bool = False
) -> tuple[UndefinedDim, ...]:
    """Look at each dim on its own, the others at opt, or at a size that is defined when opt is not.

    With `cover` a multiple has to be defined at the sizes that padding gives, which may lie above max.
    """
    base = defined_base(problem, space)
    if base is None:
        return (UndefinedDim("", (), None, problem(space.pick("opt")) or ""),)
    searched = (_look(problem, base, name, rng, many, cover) for name, rng in space.dims)
    return tuple(u for u in searched if u is not None)


def required_multiples(undefined_dims: tuple[UndefinedDim, ...]) -> dict[str, int]:
    """The multiple of each undefined dim. Raises InvalidRequestError for a dim that no multiple helps."""
    for dim in undefined_dims:
        if not dim.name:
            raise InvalidRequestError(
                f"no sizes were found at which the graph is defined: {dim.problem}",
                hint="give ranges with an opt at which it is defined",
            )
        if dim.multiple is None:
            raise InvalidRequestError(
                f"no multiple of {dim.name} up to 64 makes the graph defined: it is undefined at {dim.where}",
                hint=f"give a range of {dim.name} in which it is defined",
            )
    return {d.name: d.multiple for d in undefined_dims if d.multiple is not None}


def defined_base(problem: Problem, space: ShapeSpace, *, smallest: bool = False) -> dict[str, int] | None:
    """Sizes at which all is defined: opt, or multiples near it, within the ranges where possible.

    The `smallest` come first where each size costs a run.
    """
    opt = space.pick("opt")
    candidates = [space.pick("min"), opt] if smallest else [opt]
    for step in (64, 60, 56):
        up = {n: round_up(v, step) for n, v in opt.items()}
        # A batch of 64 would be costly to run, and batches have no multiples.
        spatial = {n: v if space[n].min > 4 else opt[n] for n, v in up.items()}
        candidates += [{n: min(v, space[n].max) for n, v in spatial.items()}, spatial, up]
    candidates[2:2] = [space.pick("max")] if smallest else [space.pick("max"), space.pick("min")]
    for sizes in candidates:
        if problem(sizes) is None:
            return sizes
    return None


def problems_of(
    problem: Problem, base: Mapping[str, int], name: str, sizes: Iterable[int]
) -> Iterator[tuple[int, str | None]]:
    """Each size of one dim with what is wrong there, the others held at a size that works."""
    return ((size, problem({**base, name: size})) for size in sizes)


def _look(
    problem: Problem, base: dict[str, int], name: str, rng: DimRange, many: int, cover: bool
) -> UndefinedDim | None:
    tried = sizes_of(rng, many)
    problems = {s: p for s, p in problems_of(problem, base, name, tried) if p is not None}
    if not problems:
        return None
    # Two good sizes at the end of a range may be what is left between multiples.
    only_small = len(tried) - len(problems) > 2 and list(problems) == tried[: len(problems)]
    steps = MULTIPLES if cover else sorted({math.lcm(m, rng.multiple) for m in MULTIPLES})
    multiple = next((m for m in steps if _all_defined(problem, base, name, rng, m, many, cover)), None)
    if cover:
        # In a short range a size may be defined by chance (39 where 40 is meant), which says nothing of outputs.
        wide = (m for m in steps if _all_defined(problem, base, name, _widened(rng, m), m, many, cover))
        multiple = next(wide, multiple)
    least = tried[len(problems)] if only_small else None
    return UndefinedDim(name, tuple(sorted(problems)), multiple, problems[min(problems)], least)


def _all_defined(
    problem: Problem, base: dict[str, int], name: str, rng: DimRange, multiple: int, many: int, cover: bool
) -> bool:
    low, high = round_up(rng.min, multiple), rng.max // multiple * multiple
    # A range without any multiple: those around it tell which one would help.
    around = covering_range(rng, multiple) if cover or low > high else DimRange(low, low, high, multiple)
    return all(problem({**base, name: s}) is None for s in sizes_of(around, many))


def _widened(rng: DimRange, multiple: int) -> DimRange:
    """The range with two more multiples above it."""
    return DimRange(rng.min, rng.opt, round_up(rng.max, multiple) + 2 * multiple)


def sizes_of(rng: DimRange, many: int = MANY) -> list[int]:
    """The sizes of a range that are looked at, in order."""
    values = rng.values()
    if len(values) <= 3 * many:
        return list(values)
    middle = values.index(rng.opt) if rng.opt in values else len(values) // 2
    near = range(max(0, middle - many // 2), min(len(values), middle + many // 2))
    return sorted({*values[:many], *(values[i] for i in near), *values[-many:]})
