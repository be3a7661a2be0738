"""Sizes that stand as keys in the tables that a line of the module can reach.

A look-up such as `TABLE.get((h, w), 1.0)` compares nothing that could be recorded, but its keys are whole numbers that
lie about: in the dictionaries, sets and lists that the line's names lead to, and among the constants of its function.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.module.user_code import is_library

DEEPEST = 4
MOST_KEYS = 20_000
MOST_SIZES = 4096
LONGEST_TEXT = 64
MACHINERY = frozenset(("builtins", "torch", "numpy", "sympy", "trtconv"))
Key = tuple[int, ...]


def table_keys(frame: FrameType, *, text: bool = False) -> list[Key]:
    """The whole numbers, alone or in tuples, that the frame's names and constants lead to, in order.

    With `text` also those that stand in strings and names (`"64x96"`, `head_37`): a size may be put into such a text.
    """
    names = set(frame.f_code.co_names)
    shared = [v for n, v in frame.f_globals.items() if n in names]
    roots = [*frame.f_locals.values(), *shared, *_constants(frame.f_code)]
    keys: dict[Key, None] = {}
    visited: set[int] = set()
    for root in roots:
        for key in _keys(root, visited, 0, text):
            keys[key] = None
            if len(keys) >= MOST_KEYS:
                return list(keys)
    return list(keys)


def _constants(code: CodeType) -> Iterator[Any]:
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _constants(value)
        else:
            yield value


def _keys(value: Any, visited: set[int], depth: int, text: bool) -> Iterator[Key]:
    key = _key_in_text(value) if text and isinstance(value, str) else _as_key(value)
    if key is not None:
        yield key
    if depth >= DEEPEST or id(value) in visited or isinstance(value, (int, float, str, bytes)):
        return
    visited.add(id(value))
    if isinstance(value, Mapping):
        for entry, content in itertools.islice(value.items(), MOST_KEYS):
            yield from _keys(entry, visited, depth + 1, text)
            yield from _keys(content, visited, depth + 1, text)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for entry in itertools.islice(value, MOST_KEYS):
            yield from _keys(entry, visited, depth + 1, text)
    elif callable(getattr(value, "__wrapped__", value)) and hasattr(getattr(value, "__wrapped__", value), "__code__"):
        # A function that the line calls; `functools.cache` looks the size up before it, and keeps no key in sight.
        function = getattr(value, "__wrapped__", value)
        names = set(function.__code__.co_names)
        shared = [v for n, v in getattr(function, "__globals__", {}).items() if n in names]
        if not is_library(function.__code__.co_filename):
            for entry in (*_constants(function.__code__), *shared):
                yield from _keys(entry, visited, depth + 1, text)
    elif _may_hold_tables(value):
        inner = {n: v for n, v in getattr(value, "__dict__", {}).items() if not n.startswith("__")}
        tables = [v for v in vars(type(value)).values() if isinstance(v, (Mapping, set, frozenset, list, tuple))]
        names_in_text = [*inner, *vars(type(value))] if text else []
        for entry in (*names_in_text, *inner.values(), *tables):
            yield from _keys(entry, visited, depth + 1, text)


def _may_hold_tables(value: Any) -> bool:
    """True for modules and for objects of classes that are not torch's and the like.

    A fake tensor leads to its mode, and that to torch's cache of every operator since the process began.
    """
    from torch import nn

    return isinstance(value, nn.Module) or type(value).__module__.partition(".")[0] not in MACHINERY


def _key_in_text(value: str) -> Key | None:
    """The numbers of a short text."""
    numbers = tuple(int(n) for n in re.findall(r"[0-9]{1,9}", value)) if len(value) <= LONGEST_TEXT else ()
    return numbers if 0 < len(numbers) <= 4 else None


def _as_key(value: Any) -> Key | None:
    if type(value) is int:
        return (value,)
    if isinstance(value, tuple) and 0 < len(value) <= 4 and all(type(v) is int for v in value):
        return value
    return None


def sizes_of_keys(keys: list[Key], space: ShapeSpace, base: Mapping[str, int]) -> list[dict[str, int]]:
    """Joint sizes of the space at which dims are the numbers of a key, in every order of dims, the others as in `base`.

    Numbers that stand alone are tried for every dim, and the few first of them for two dims at once.
    """
    unique_sizes: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}

    def add(part: Mapping[str, int]) -> None:
        if all(v in space[n] for n, v in part.items()) and len(unique_sizes) < MOST_SIZES:
            sizes = {**base, **part}
            unique_sizes.setdefault(tuple(sizes.items()), sizes)

    names = [n for n, r in space.dims if r.min != r.max]
    for key in sorted(keys, key=len, reverse=True):
        for chosen in itertools.permutations(names, len(key)):
            add(dict(zip(chosen, key, strict=True)))
    alone = list(dict.fromkeys(v for key in keys for v in key))[:24]
    for pair in itertools.permutations(names, 2):
        for values in itertools.product(alone, repeat=2):
            add(dict(zip(pair, values, strict=True)))
    return list(unique_sizes.values())
