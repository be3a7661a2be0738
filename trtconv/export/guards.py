"""What torch.export says about sizes when it refuses: the guards that it could not prove, and in plain words."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

from trtconv.core.defined_sizes import sizes_of
from trtconv.core.shapes import ShapeSpace

# `  - Not all values of T = L['x'].size()[1] in the specified range 40 <= T <= 200 satisfy the generated guard ... .`
_GUARD = re.compile(r"^\s*- Not all values of .* satisfy the generated guard (?P<guard>.+?)\.?$", re.MULTILINE)
_NAME = re.compile(r"(?P<name>\w+) = (?P<size>L\[[^=]*?\.size\(\)\[\d+\])")
_PLAIN = re.compile(r"[\w\s+\-*/%()<>=!,]+\Z")
# Values of a dim at both ends and in the middle; of one dim alone that is all of a range of 3072.
MANY_ALONE, MANY_TOGETHER = 1024, 16
FUNCTIONS = {
    "Mod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b,
    "Max": max, "Min": min, "Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b,
    "IntTrueDiv": lambda a, b: a / b, "CeilDiv": lambda a, b: math.ceil(a / b),
}  # fmt: skip


@dataclass(frozen=True)
class Guard:
    """A condition on named dims that torch's trace needs, as `1 % (8*(T // 8)) != 0`."""

    text: str
    names: tuple[str, ...]

    def fails_at(self, space: ShapeSpace) -> dict[str, int] | None:
        """Sizes of the space at which it does not hold (the first that is found), or None when it holds at all tried.

        Raises ValueError for a condition that cannot be read.
        """
        if not self.names or not all(n in space for n in self.names) or not _PLAIN.match(self.text):
            raise ValueError(self.text)
        many = MANY_ALONE if len(self.names) == 1 else MANY_TOGETHER
        for values in itertools.product(*(sizes_of(space[n], many) for n in self.names)):
            sizes = dict(zip(self.names, values, strict=True))
            try:
                # Only digits, names and operators are in it, and no name but these is known.
                holds = eval(self.text, {"__builtins__": {}}, {**FUNCTIONS, **sizes})
            except (NameError, TypeError, SyntaxError, ZeroDivisionError) as error:
                raise ValueError(self.text) from error
            if not holds:
                return sizes
        return None


def unproved_guards(text: str) -> tuple[Guard, ...]:
    """The guards in torch.export's message, sizes by the names of `--dynamic`; empty for another message."""
    names = {m["size"]: m["name"] for m in _NAME.finditer(text)}
    found = []
    for match in _GUARD.finditer(text):
        guard = match["guard"]
        for size, name in names.items():
            guard = guard.replace(size, name)
        words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", guard))
        found.append(Guard(guard, tuple(w for w in words if w not in FUNCTIONS)))
    return tuple(found)


def hold_everywhere(text: str, space: ShapeSpace) -> bool:
    """True when torch.export refused for guards alone that it could not prove, and they hold at every size tried."""
    guards = unproved_guards(text)
    if not guards or "Suggested fixes" in text:
        return False
    try:
        return all(g.fails_at(space) is None for g in guards)
    except ValueError:
        return False


def in_words(text: str) -> str:
    """The guards as one sentence for people; empty without them."""
    guards = unproved_guards(text)
    if not guards:
        return ""
    shown = "; ".join(dict.fromkeys(g.text for g in guards))
    return f"torch.export traces it under a condition on the sizes that it cannot prove for the whole range: {shown}"
