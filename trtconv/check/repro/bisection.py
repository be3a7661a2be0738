"""Making a failing list of nodes small while it keeps failing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[int]], bool]


def smallest_failing(count: int, fails: Fails, tries: int = 120) -> list[int]:
    """A small part of `range(count)` that fails, where the whole is known to fail.

    First the shortest beginning by halving, then its shortest end, then parts are left out from within (Zeller and
    Hildebrandt, "Simplifying and isolating failure-inducing input", 2002). What is returned was seen to fail, also
    where the failure does not come and go evenly. At most about `tries` calls of `fails`.
    """
    left = tries

    def check(part: Sequence[int]) -> bool:
        nonlocal left
        left -= 1
        return bool(part) and fails(part)

    low, end = 0, count
    while low + 1 < end:
        middle = (low + end) // 2
        low, end = (low, middle) if check(range(middle)) else (middle, end)
    start, high = 0, end
    while start + 1 < high:
        middle = (start + high) // 2
        start, high = (middle, high) if check(range(middle, end)) else (start, middle)
    part = list(range(start, end))
    size = len(part) // 2
    while size >= 1 and left > 0:
        index = 0
        while index < len(part) and left > 0:
            without = part[:index] + part[index + size :]
            if check(without):
                part = without
            else:
                index += size
        size //= 2
    return part
