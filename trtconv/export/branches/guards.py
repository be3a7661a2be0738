"""What torch.export says about sizes when it refuses: the guards that it could not prove, and in plain words."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from trtconv.core.shape_space.space import ShapeSpace

# `  - Not all values of T = L['x'].size()[1] in the specified range 40 <= T <= 200 satisfy the generated guard ... .`
_GUARD = re.compile(r"^\s*- Not all values of .* satisfy the generated guard (?P<guard>.+?)\.?$", re.MULTILINE)
_NAME = re.compile(r"(?P<name>\w+) = (?P<size>L\[[^=]*?\.size\(\)\[\d+\])")
# `  H = 2*_H - 1` under "Suggested fixes".
_MULTIPLE = re.compile(r"^\s*(?P<name>[A-Za-z]\w*) = (?P<times>\d+)\*_\w+(?P<offset> [+-] \d+)?$", re.MULTILINE)
# Digits, names and operators, with a point in numbers only.
_PLAIN = re.compile(r"(?:[\w\s+\-*/%()<>=!,]|(?<=\d)\.(?=\d))+\Z")
_PREFIX = re.compile(r"\b(?:math|torch)\.(?=[a-z_]+\()")
# A condition is tried at every combination of sizes; one with more than these is not taken for true.
MOST_TRIED = 200_000
MOST_FAILING = 1000
FUNCTIONS = {
    "Mod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b,
    "Max": max, "Min": min, "Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b,
    "IntTrueDiv": lambda a, b: a / b, "CeilDiv": lambda a, b: math.ceil(a / b), "Abs": abs, "abs": abs,
    "trunc": math.trunc, "ceil": math.ceil, "floor": math.floor, "sym_float": float, "sym_int": int,
}  # fmt: skip


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

        With `some` those among as many sizes as can be tried.
        """
        names = tuple(dict.fromkeys((*self.names, *(n for guard, _ in region for n in guard.names))))
        if not self.names or not all(n in space for n in names):
            raise ValueError(self.text)
        each = int(MOST_TRIED ** (1 / len(names)))
        ranges = [_some(space[n].values(), each) if some else space[n].values() for n in names]
        if math.prod(map(len, ranges)) > MOST_TRIED:
            raise ValueError(f"{self.text} (too many sizes to try)")
        for values in itertools.product(*ranges):
            sizes = dict(zip(names, values, strict=True))
            if all(guard.holds(sizes) is side for guard, side in region) and not self.holds(sizes):
                yield sizes

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """At these sizes. Raises ValueError for a condition that cannot be read."""
        try:
            return bool(eval(self.code, {"__builtins__": {}}, {**FUNCTIONS, **sizes}))
        except (NameError, TypeError, SyntaxError, ZeroDivisionError) as error:
            raise ValueError(self.text) from error


    @cached_property
    def code(self) -> CodeType:
        """The condition compiled: only digits, names and operators are in it, and no name but a few is known."""
        if not _PLAIN.match(self.text) or "**" in self.text:
            raise ValueError(self.text)
        return compile(self.text.strip(), "<guard>", "eval")


# Where something is looked at: at sizes at which each guard holds, or does not.
Region = tuple[tuple[Guard, bool], ...]


def unproved_guards(text: str) -> tuple[Guard, ...]:
    """The guards in torch.export's message, sizes by the names of `--dynamic`; empty for another message."""
    names = {m["size"]: m["name"] for m in _NAME.finditer(text)}
    found = []
    for match in _GUARD.finditer(text):
        guard = _PREFIX.sub("", match["guard"])
        for size, name in names.items():
            guard = guard.replace(size, name)
        words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", guard))
        found.append(Guard(guard, tuple(w for w in words if w not in FUNCTIONS)))
    return (*found, *_of_fixes(text))


def _of_fixes(text: str) -> list[Guard]:
    """`H = 2*_H - 1` among torch's suggested fixes, as the condition `(H - (-1)) % 2 == 0`."""
    _, _, fixes = text.partition("Suggested fixes:")
    found = []
    for match in _MULTIPLE.finditer(fixes):
        offset = (match["offset"] or "0").replace(" ", "")
        found.append(Guard(f"({match['name']} - ({offset})) % {match['times']} == 0", (match["name"],)))
    return found


def _all_read(text: str) -> bool:
    """False when torch suggests something besides multiples: a fixed size, a bound."""
    _, _, fixes = text.partition("Suggested fixes:")
    fixes = fixes.partition("\n\n")[0]
    lines = [line for line in fixes.splitlines() if "=" in line and not line.strip().startswith("_")]
    return all(_MULTIPLE.match(line) for line in lines)


def hold_everywhere(text: str, space: ShapeSpace, region: Region = ()) -> bool:
    """True when torch.export refused for guards alone that it could not prove, and they hold at every size tried."""
    guards = unproved_guards(text)
    if not guards or not _all_read(text):
        return False
    try:
        return all(g.fails_at(space, region) is None for g in guards)
    except ValueError:
        return False


def fails_somewhere(guard: Guard, space: ShapeSpace, region: Region = ()) -> bool:
    """True when it fails at some sizes of the space; False for one that cannot be read.

    Where there are too many sizes to try them all, the lowest and others drawn at random are tried.
    """
    try:
        return next(guard.failing(space, region, some=True), None) is not None
    except ValueError:
        return False


def _some(values: range, most: int) -> Sequence[int]:
    if len(values) <= most:
        return values
    return [*values[: most // 2], *random.Random(most).sample(values[most // 2 :], most - most // 2)]


def guarded_sizes(text: str, space: ShapeSpace) -> list[dict[str, int]]:
    """For each guard in torch's message sizes at which it does not hold: the first ones, and the last found."""
    found: list[dict[str, int]] = []
    for guard in unproved_guards(text):
        try:
            failing = list(itertools.islice(guard.failing(space, some=True), MOST_FAILING))
        except ValueError:
            continue
        found += [failing[0], failing[-1]] if failing else []
    return [sizes for i, sizes in enumerate(found) if sizes not in found[:i]]


def in_words(text: str) -> str:
    """The guards as one sentence for people; empty without them."""
    guards = unproved_guards(text)
    if not guards:
        return ""
    shown = "; ".join(dict.fromkeys(g.text for g in guards))
    return f"torch.export traces it under a condition on the sizes that it cannot prove for the whole range: {shown}"
