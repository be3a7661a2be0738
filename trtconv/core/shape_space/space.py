"""The shape space: named dims with their ranges, `N=1:4:16 H=320:640:1280%32`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.shape_space.derived import LARGEST_SIZE, derived_from, is_derived, size_of, solve_names

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RANGE = re.compile(r"(?P<min>\d+):(?P<opt>\d+):(?P<max>\d+)(?:%(?P<multiple>\d+))?\Z")
_FIXED = re.compile(r"(?P<value>\d+)\Z")


@dataclass(frozen=True)
class DimRange:
    """The values that one named dim takes: from `min` to `max`, tuned for `opt`, all multiples of `multiple`."""

    min: int
    opt: int
    max: int
    multiple: int = 1

    def __str__(self) -> str:
        tail = f"%{self.multiple}" if self.multiple != 1 else ""
        return f"{self.min}:{self.opt}:{self.max}{tail}"

    def __contains__(self, value: int) -> bool:
        return self.min <= value <= self.max and value % self.multiple == 0

    def covers(self, other: DimRange) -> bool:
        """True where each value of another range is one of this."""
        if other.min == other.max:
            return other.min in self
        return other.min in self and other.max in self and other.multiple % self.multiple == 0

    def values(self) -> range:
        """All values, in order."""
        return range(self.min, self.max + 1, self.multiple)


@dataclass(frozen=True)
class ShapeSpace:
    """Named dims with their ranges, in the order given. Hashable and ordered, so that results are deterministic.

    A derived dim (`P+S`) of dims that it has is in it, with the range that follows, and no dim of its own.
    """

    dims: tuple[tuple[str, DimRange], ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{name}={r}" for name, r in self.dims)

    def __iter__(self) -> Iterator[str]:
        return iter(name for name, _ in self.dims)

    def require_within(self, proven: ShapeSpace) -> None:
        """Raise InvalidRequestError for a dim with a range that goes beyond its range in `proven`, where it has one."""
        own = set(proven)
        name = next((n for n, r in self.dims if n in own and not proven[n].covers(r)), None)
        if name is not None:
            raise InvalidRequestError(
                f"{name}={self[name]} goes beyond {name}={proven[name]}, the range over which the file was proven",
                hint=f"export or convert it again with --dynamic {name}={self[name]}, or stay within that range",
            )

    def __contains__(self, name: str) -> bool:
        names = tuple(self)
        return name in names or (is_derived(name) and all(n in names for n in derived_from(name)))

    def __getitem__(self, name: str) -> DimRange:
        for n, r in self.dims:
            if n == name:
                return r
        if name in self:
            return DimRange(*(int(size_of(name, self.pick(which))) for which in ("min", "opt", "max")))
        dim_names = list(self)
        raise InvalidRequestError(
            f"no dim is called '{name}'{did_you_mean(name, dim_names)}",
            hint=f"give its range with --dynamic {name}=MIN:OPT:MAX",
        )

    def pick(self, which: str) -> dict[str, int]:
        """Return every dim at its `min`, `opt` or `max`."""
        return {n: int(getattr(r, which)) for n, r in self.dims}

    def contains(self, dims: Mapping[str, int]) -> bool:
        """True when every dim of `dims` that the space names is inside its range."""
        return all(n not in dims or dims[n] in r for n, r in self.dims)

    def merged(self, other: ShapeSpace) -> ShapeSpace:
        """This space with the ranges of `other` laid over it; new names are appended."""
        overrides = dict(other.dims)
        updated = tuple((n, overrides.pop(n, r)) for n, r in self.dims)
        return ShapeSpace(updated + tuple(overrides.items()))


def require_size(text: str, owner: str) -> None:
    """Raise InvalidRequestError for a size larger than any tensor can have."""
    if len(text.lstrip("0")) > len(str(LARGEST_SIZE)) or int(text) > LARGEST_SIZE:
        raise InvalidRequestError(
            f"the size {text[:30]} of {owner} is too large", hint=f"the largest is {LARGEST_SIZE}"
        )


def parse_range(text: str, name: str = "dim") -> DimRange:
    """Parse `MIN:OPT:MAX[%MULTIPLE]` or a single integer. Raises InvalidRequestError naming what is wrong."""
    for digits in re.findall(r"\d+", text):
        require_size(digits, name)
    fixed = _FIXED.match(text)
    if fixed:
        value = int(fixed["value"])
        return DimRange(value, value, value)
    match = _RANGE.match(text)
    if not match:
        raise InvalidRequestError(
            f"cannot read the range '{text}' of {name}", hint="write MIN:OPT:MAX or MIN:OPT:MAX%MULTIPLE, e.g. 1:4:16"
        )
    low, opt, high = int(match["min"]), int(match["opt"]), int(match["max"])
    multiple = int(match["multiple"] or 1)
    if multiple < 1:
        raise InvalidRequestError(
            f"the multiple of {name} in '{text}' must be at least 1", hint="write MIN:OPT:MAX to allow every size"
        )
    if not low <= opt <= high:
        raise InvalidRequestError(
            f"the range '{text}' of {name} is not ordered: min {low}, opt {opt}, max {high}",
            hint="write it so that MIN <= OPT <= MAX",
        )
    near = {step for v in (low, opt, high) for step in (v // multiple * multiple, -(-v // multiple) * multiple)}
    off = [f"{w} {v}" for w, v in (("min", low), ("opt", opt), ("max", high)) if v % multiple]
    if off:
        are = "is not a multiple" if len(off) == 1 else "are not multiples"
        raise InvalidRequestError(
            f"in the range '{text}' of {name}, {' and '.join(off)} {are} of {multiple}",
            hint="multiples nearby: " + ", ".join(map(str, sorted(near - {0}))),
        )
    return DimRange(low, opt, high, multiple)


def parse_assignment(text: str) -> tuple[str, DimRange]:
    """Parse `NAME=MIN:OPT:MAX[%MULTIPLE]`."""
    name, eq, value = text.partition("=")
    if not eq or not _NAME.match(name):
        form = "write NAME=MIN:OPT:MAX, e.g. H=320:640:1280%32"
        hint = form if name.isascii() else f"{form}; a name has the letters A to Z, digits and underscores"
        raise InvalidRequestError(f"cannot read the dynamic dim '{text}'", hint=hint)
    return name, parse_range(value, name)


def parse_space(items: Iterable[str]) -> ShapeSpace:
    """Parse several assignments (each item may hold more than one, split by blanks). A name given twice is an error."""
    dims: list[tuple[str, DimRange]] = []
    for word in (w for item in items for w in item.split()):
        name, rng = parse_assignment(word)
        if any(name == n for n, _ in dims):
            raise InvalidRequestError(f"the dim '{name}' is given twice", hint="keep one range for it")
        dims.append((name, rng))
    return ShapeSpace(tuple(dims))


def space_of_axes(axes: Iterable[tuple[int | str, DimRange]]) -> ShapeSpace:
    """The ranges of the named dims of axes that have these, those of names in derived dims alone solved for."""
    pairs = list(axes)
    ends = [solve_names((dim, getattr(r, end)) for dim, r in pairs) for end in ("min", "opt", "max")]
    names = [name for name in ends[0] if all(name in end for end in ends)]
    return ShapeSpace(tuple((name, DimRange(*(end[name] for end in ends))) for name in names))
