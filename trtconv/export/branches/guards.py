"""What torch.export says about sizes when it refuses: the guards that it could not prove, and in plain words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.sizes.evaluate import FUNCTIONS, UnreadableError, evaluate_text
from trtconv.proof.joint_sizes import CHUNK, count_sizes, size_grids, sizes_where

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# `  - Not all values of T = L['x'].size()[1] in the specified range 40 <= T <= 200 satisfy the generated guard ... .`
# A second headline may follow the last one without a line break.
_GUARD = re.compile(
    r"^\s*- Not all values of .* satisfy the generated guard (?P<guard>.+?)\.?(?:Specializations unexpectedly .*)?$",
    re.MULTILINE,
)
# That a size is not 1, which torch asks wherever two shapes might broadcast.
_OVER_ONE = re.compile(r"(?:!= 1|>= 2|> 1)$|^(?:1 !=|2 <=|1 <) ")
_NAME = re.compile(r"(?P<name>\w+) = (?P<size>L\[[^=]*?\.size\(\)\[\d+\])")
# `  - The values of W = L['x'].size()[3] and H = L['x'].size()[2] must always be equal.`
_ALWAYS_EQUAL = re.compile(r"^\s*- (The values of .*) must always be equal\.", re.MULTILINE)
# `  H = 2*_H - 1` under "Suggested fixes".
_MULTIPLE = re.compile(r"^\s*(?P<name>[A-Za-z]\w*) = (?P<times>\d+)\*_\w+(?P<offset> [+-] \d+)?$", re.MULTILINE)
# `  - solving the guards generated for T = L['x'].size()[1] resulted in a specialized value of 11.`: of guards that
# torch cannot solve it takes the traced size for the only one; where they hold everywhere, it is not.
_SOLVED = re.compile(
    r"^\s*- solving the guards generated for (?P<name>\w+) = .* specialized value of \d+", re.MULTILINE
)
# `  W = H` and `  W = 2*H - 7` under "Suggested fixes".
_EQUAL = re.compile(
    r"^\s*(?P<name>[A-Za-z]\w*) = (?P<expression>(?:\d+\*)?(?P<other>[A-Za-z]\w*)(?: [+-] \d+)?)$", re.MULTILINE
)
# `  H = Dim('H', min=30, max=99)`: what a guard of the message says of it as well.
_BOUNDED = re.compile(r"^\s*(?P<name>\w+) = Dim\('(?P=name)'(?:, (?:min|max)=\d+)+\)$")
# `  1 + T*T + ((-2)*T) = Dim('1 + T*T + ((-2)*T)')`: an expression of sizes by its own name, which bounds nothing.
BOUNDS_NOTHING = re.compile(r"^\s*(?P<name>.+?) = Dim\('(?P=name)'\)$", re.MULTILINE)
_PREFIX = re.compile(r"\b(?:math|torch)\.(?=[a-z_]+\()")
# A condition is evaluated at every combination of sizes; one with more than these is not taken for true.
MOST_TRIED = 1 << 26
MOST_FAILING = 1000
# Sizes at each end of a part of the space that may be cases of their own.
NEAR_END = 3


@dataclass(frozen=True)
class Guard:
    """A condition on named dims that torch's trace needs, as `1 % (8*(T // 8)) != 0`."""

    text: str
    names: tuple[str, ...]

    def fails_at(self, space: ShapeSpace, region: Region = ()) -> dict[str, int] | None:
        """Sizes of the space (within `region`) at which it does not hold, or None when it holds at all of them.

        Raises ValueError for a condition that cannot be read, or has too many sizes to try them all.
        """
        return next(self.failing(space, region), None)

    def failing(self, space: ShapeSpace, region: Region = (), *, some: bool = False) -> Iterator[dict[str, int]]:
        """All sizes at which it does not hold, by the names in it. Raises ValueError as `fails_at` does.

        With `some` those among the first `MOST_TRIED`. At most `MOST_FAILING` of each chunk of sizes are given.
        """
        names = tuple(dict.fromkeys((*self.names, *(n for guard, _ in region for n in guard.names))))
        if not self.names or not all(n in space for n in names):
            raise ValueError(self.text)
        if count_sizes(space, names) > MOST_TRIED and not some:
            raise ValueError(f"{self.text} (too many sizes to try)")
        for tried, grids in enumerate(size_grids(space, names)):
            if tried >= MOST_TRIED // CHUNK:
                return
            yield from sizes_where(self._fails_within(region, grids), grids, MOST_FAILING)

    def _fails_within(self, region: Region, grids: Mapping[str, Array]) -> Array:
        """Where it fails. Outside of the region it is not evaluated: `T % (T // 16)` has no value below 16."""
        import numpy as np

        if not region:
            return ~self.holds_at(grids)
        inside = np.ones(np.broadcast_shapes(*(g.shape for g in grids.values())), bool)
        for guard, side in region:
            inside &= guard.holds_at(grids) if side else ~guard.holds_at(grids)
        failing = np.zeros(inside.shape, bool)
        if inside.any():
            failing[inside] = ~self.holds_at({n: np.broadcast_to(g, inside.shape)[inside] for n, g in grids.items()})
        return failing

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """At these sizes. Raises ValueError for a condition that cannot be read."""
        import numpy as np

        return bool(self.holds_at({n: np.asarray(v, np.int64) for n, v in sizes.items()}))

    def holds_at(self, grids: Mapping[str, Array]) -> Array:
        """At arrays of sizes. Raises ValueError for a condition that cannot be read."""
        try:
            return evaluate_text(self.text, grids).astype(bool)
        except UnreadableError as error:
            raise ValueError(self.text) from error


# Where something is looked at: at sizes at which each guard holds, or does not.
Region = tuple[tuple[Guard, bool], ...]


def sizes_within(space: ShapeSpace, region: Region, usual: Mapping[str, int]) -> dict[str, int] | None:
    """The `usual` sizes where they lie in the region, else others of the space that do; None where none does."""
    if all(guard.holds(usual) is side for guard, side in region):
        return dict(usual)
    name = region[0][0].names[0]
    inside = list(itertools.islice(Guard(f"{name} < 0", (name,)).failing(space, region), MOST_FAILING))
    return {**usual, **without_special_sizes(inside)} if inside else None


def without_special_sizes(choices: Sequence[dict[str, int]]) -> dict[str, int]:
    """The first sizes that are all above 2, differ from each other and are none of the ends of the choices.

    torch takes 0 and 1 for special cases; small sizes happen to equal others; at an end (of `H >= 16`) the module may
    have a case of its own (`H == 16`), for which alone a trace there would hold. A dim that never exceeds 2 has its
    largest size. Without such sizes the first above 2, or the first.
    """
    least = {name: min(3, max(sizes[name] for sizes in choices)) for name in choices[0]}
    ordinary = [sizes for sizes in choices if all(sizes[name] >= size for name, size in least.items())]
    values = {name: sorted({sizes[name] for sizes in ordinary}) for name in choices[0]}
    near = {name: min(NEAR_END, (len(v) - 1) // 2) for name, v in values.items()}
    ends = {name: {*v[: near[name]], *v[-near[name] :]} for name, v in values.items() if near[name]}
    inner = (
        sizes
        for sizes in ordinary
        if len(set(sizes.values())) == len(sizes) and all(sizes[name] not in ends[name] for name in ends)
    )
    return next(inner, next(iter(ordinary), choices[0]))


def unproved_guards(text: str) -> tuple[Guard, ...]:
    """The guards in torch.export's message, sizes by the names of `--dynamic`; empty for another message."""
    names = {m["size"]: m["name"] for m in _NAME.finditer(text)}
    guards = []
    for match in _GUARD.finditer(text):
        guard = _PREFIX.sub("", match["guard"])
        for size, name in names.items():
            guard = guard.replace(size, name)
        identifiers = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", guard))
        guards.append(Guard(guard, tuple(w for w in identifiers if w not in FUNCTIONS and not iskeyword(w))))
    guards += [Guard(f"{a} == {b}", (a, b)) for a, *others in _equal_names(text) for b in others]
    # A fix would prove the guards on its dim, which may hold without it: `2*((H - 1)//8) < 1 + (H - 1)//4` at any H.
    dims_of_guards = {name for guard in guards for name in guard.names}
    return (*guards, *(fix for fix in _of_fixes(text) if not dims_of_guards.intersection(fix.names)))


def _equal_names(text: str) -> list[list[str]]:
    return [[m["name"] for m in _NAME.finditer(line)] for line in _ALWAYS_EQUAL.findall(text)]


def _of_fixes(text: str) -> list[Guard]:
    """`H = 2*_H - 1` among torch's suggested fixes, as the condition `(H - (-1)) % 2 == 0`; `W = H` as `W == H`."""
    _, _, fixes = text.partition("Suggested fixes:")
    guards = []
    for match in _MULTIPLE.finditer(fixes):
        offset = (match["offset"] or "0").replace(" ", "")
        guards.append(Guard(f"({match['name']} - ({offset})) % {match['times']} == 0", (match["name"],)))
    for match in _EQUAL.finditer(fixes):
        guards.append(Guard(f"{match['name']} == {match['expression']}", (match["name"], match["other"])))
    return guards


def _all_read(text: str) -> bool:
    """False when torch suggests something besides multiples, equal sizes, and bounds that a guard says too: a fixed
    size that does not come from the guards.
    """
    guarded = {name for guard in unproved_guards(text) for name in guard.names}
    solved_names = {m["name"] for m in _SOLVED.finditer(text) if m["name"] in guarded}
    # What is equal to one that was solved is solved with it.
    solved_names |= {n for names in _equal_names(text) if solved_names.intersection(names) for n in names}
    solved = [re.compile(rf"\s*{name} = \d+$") for name in solved_names]
    bounded = [_BOUNDED.match(line) for line in _fixes(text)]
    return all(
        _MULTIPLE.match(line)
        or _EQUAL.match(line)
        or any(one.match(line) for one in solved)
        or (bound is not None and bound["name"] in guarded)
        for line, bound in zip(_fixes(text), bounded, strict=True)
    )


def _fixes(text: str) -> list[str]:
    _, _, fixes = text.partition("Suggested fixes:")
    fixes = BOUNDS_NOTHING.sub("", fixes.partition("\n\n")[0])
    return [line for line in fixes.splitlines() if "=" in line and not line.strip().startswith("_")]


def bounds_some(text: str) -> bool:
    """True when torch suggests bounds of dims: they may follow from one condition on several, as from H < W."""
    return any(_BOUNDED.match(line) is not None for line in _fixes(text))


def ask_for_ones(text: str) -> bool:
    """True when torch.export refused for nothing but computed sizes that are 1 at some sizes and more at most."""
    guards = [m["guard"] for m in _GUARD.finditer(text)]
    reasons = len(re.findall(r"^\s*- ", text, re.MULTILINE))
    return 0 < len(guards) == reasons and all(_OVER_ONE.search(g) for g in guards)


def hold_everywhere(text: str, space: ShapeSpace, region: Region = ()) -> bool:
    """True when torch.export refused for guards alone that it could not prove, and they hold at every size tried.

    In a region torch states bounds of each dim that follow from its guard. It takes no dim for one of 1, so that
    `T <= 5` follows from `T + P <= 7`: such sizes are left out there, and the file is compared at them.
    """
    guards = unproved_guards(text)
    if not guards or not _all_read(text):
        return False
    try:
        return all(g.fails_at(_from_two(space) if region else space, region) is None for g in guards)
    except ValueError:
        return False


def _from_two(space: ShapeSpace) -> ShapeSpace:
    """The space without the sizes 0 and 1 of dims that have others."""
    values = {n: [v for v in r.values() if v >= 2] for n, r in space.dims}
    dims = [(n, replace(r, min=v[0], opt=max(r.opt, v[0]))) for n, r in space.dims if (v := values[n])]
    return space.merged(ShapeSpace(tuple(dims)))


def fails_somewhere(guard: Guard, space: ShapeSpace, region: Region = ()) -> bool:
    """True when it fails at some sizes of the space; False for one that cannot be read.

    Where there are too many sizes to try them all, the lowest are tried.
    """
    try:
        return next(guard.failing(space, region, some=True), None) is not None
    except ValueError:
        return False


def guarded_sizes(text: str, space: ShapeSpace) -> list[dict[str, int]]:
    """For each guard in torch's message sizes at which it does not hold: the first ones, and the last found."""
    failing_sizes: list[dict[str, int]] = []
    for guard in unproved_guards(text):
        try:
            failing = list(itertools.islice(guard.failing(space, some=True), MOST_FAILING))
        except ValueError:
            continue
        failing_sizes += [failing[0], failing[-1]] if failing else []
    return [sizes for i, sizes in enumerate(failing_sizes) if sizes not in failing_sizes[:i]]


def requirements(text: str) -> str:
    """What torch.export's "Suggested fixes" say about the dims, in the words of `--dynamic`; empty without them."""
    if "Constraints violated" not in text:
        return ""
    if "Suggested fixes" not in text:
        named = re.search(r"Constraints violated \(([^)]*)\)", text)
        dims = sorted({d.removesuffix("_unit") for d in re.findall(r"[A-Za-z_]\w*", named[1])}) if named else []
        return f"the module was traced for some sizes of {', '.join(dims)} only" if dims else ""
    constraints = []
    for line in BOUNDS_NOTHING.sub("", text.split("Suggested fixes:", 1)[1]).splitlines():
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or name.startswith(("_", 'File "')):
            continue
        multiple, bounds = re.fullmatch(r"(\d+)\*_\w+", value), re.search(r"min=(\d+)(?:, max=(\d+))?", value)
        if value.isdigit():
            constraints.append(f"{name} must be {value}")
        elif multiple:
            constraints.append(f"{name} must be a multiple of {multiple[1]}")
        elif bounds or "max=" in value:
            constraints.append(f"{name} is within {value.partition(', ')[2].rstrip(')')}")
        else:
            constraints.append(f"{name} must be {re.sub('_[A-Za-z]+', 'k', value)} for a whole k")
    return "the module was traced for some sizes only: " + "; ".join(constraints) if constraints else ""


def in_words(text: str) -> str:
    """The guards as one sentence for people; empty without them."""
    guards = unproved_guards(text)
    if not guards:
        return ""
    shown = "; ".join(dict.fromkeys(g.text for g in guards))
    return f"torch.export traces it under a condition on the sizes that it cannot prove for the whole range: {shown}"
