"""More inputs for a module whose values leave torch: a recorded run may hold what they were, and seldom shows it.

Python decides by such a value against numbers that stand in its code. So these are fed: everywhere, in one element, one
step beside, and as the magnitude of random values; and whole powers of ten, both signs, and shifted values, by which
maxima, means and sums cover the number line.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.tensors import TensorSpec
from trtconv.export.module.user_code import Frame, parse_file

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_NUMBERS = 24
SCALES = (-1.0, 100.0, -100.0, 10.0, -10.0, 1e3, -1e3, 0.1, 1e-2, 1e-4, 1e5, -1e5)
SHIFTS = (3.0, -3.0, 30.0, -30.0, 300.0, -300.0)
WHOLE = 32


def numbers_in_code(lines: Iterable[Frame], module: nn.Module) -> tuple[float, ...]:
    """The numbers in the functions that hold these lines, and those that are attributes of the module's parts."""
    numbers: dict[float, None] = {}
    for file, line in lines:
        tree = parse_file(file)
        if tree is None:
            continue
        holding = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno <= line <= _end(n)]
        for node in ast.walk(holding[-1]) if holding else ():
            numbers.update(dict.fromkeys(_numbers(node)))
    for part in module.modules():
        own = (v for k, v in part.__dict__.items() if not k.startswith("_") and k != "training")
        numbers.update(dict.fromkeys(float(v) for v in own if isinstance(v, (int, float))))
    return tuple(n for n in numbers if abs(n) < 1e30)[:MOST_NUMBERS]


def _end(node: ast.FunctionDef) -> int:
    return node.end_lineno or node.lineno


def _numbers(node: ast.AST) -> Iterator[float]:
    """A number as it stands in the code, and its negative."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        yield from (float(node.value), -float(node.value))


def further_inputs(
    specs: Sequence[TensorSpec], random: Sequence[Mapping[str, Array]], numbers: Sequence[float]
) -> Iterator[dict[str, Array]]:
    """Inputs made of random ones; each within its value range.

    Integers take the numbers, each of their first few values, and what sums up to the numbers.
    """
    import numpy as np

    def fed(change: Any, turn: int) -> dict[str, Array]:
        feed = random[turn % len(random)]
        floats = [s for s in specs if feed[s.name].dtype.kind == "f"]
        return {**feed, **{s.name: _within(s, change(feed[s.name]), feed[s.name].dtype) for s in floats}}

    changes: list[Any] = [lambda a, n=n: _with_one(a, n) for n in numbers]
    for number in numbers:
        beside = (number, np.nextafter(np.float32(number), np.float32(np.inf)), np.float32(number) * np.float32(0.999))
        changes += [lambda a, n=n: np.full_like(a, n) for n in beside]
        changes += [lambda a, n=number, f=f: a * (n * f) for f in (0.5, 1.5)]
    changes += [lambda a: a] * len(random)
    changes += [lambda a, s=s: a * s for s in SCALES]
    changes += [lambda a, s=s: a + s for s in SHIFTS]
    changes += [lambda a, c=c: np.sort(a * c, axis=None).reshape(a.shape) * c for c in (1.0, -1.0)]
    floats = (fed(change, turn) for turn, change in enumerate(changes))
    whole = _whole_numbers(specs, random, [int(n) for n in numbers if n == int(n)])
    # In turn, since the effort may end before either does.
    for pair in itertools.zip_longest(floats, whole):
        yield from (feed for feed in pair if feed is not None)
    for spec in specs:
        yield from _full_of_each(spec, random[0])


def _within(spec: TensorSpec, changed: Array, dtype: np.dtype[Any]) -> Array:
    """The changed values in the input's dtype and range."""
    import numpy as np

    if spec.value_range is not None:
        changed = np.clip(changed, *spec.value_range)
    return np.asarray(changed).astype(dtype)


def _with_one(array: Array, number: float) -> Array:
    """A copy with the number as its first element."""
    changed = array.copy()
    changed.flat[:1] = number
    return changed


def _whole_numbers(
    specs: Sequence[TensorSpec], random: Sequence[Mapping[str, Array]], numbers: Sequence[int]
) -> Iterator[dict[str, Array]]:
    """Each integer input with a number of the code among its values, full of it, and so that its sum is the number."""
    import numpy as np

    for spec in specs:
        if random[0][spec.name].dtype.kind not in "iu":
            continue
        low, high = _bounds(spec)
        for turn, number in enumerate(numbers):
            feed = random[turn % len(random)]
            array = feed[spec.name]
            if low <= number <= high:
                yield {**feed, spec.name: _with_one(array, number)}
                yield {**feed, spec.name: np.full_like(array, number)}
            if array.size and low <= number // array.size and -(-number // array.size) <= high:
                parts = np.full_like(array, number // array.size)
                parts.flat[: number % array.size] += 1
                yield {**feed, spec.name: parts}


def _full_of_each(spec: TensorSpec, feed: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """An integer input full of one number after the other, and a mask full of both."""
    import numpy as np

    if feed[spec.name].dtype.kind in "iub":
        low, high = _bounds(spec)
        for value in itertools.islice(range(low, high + 1), WHOLE):
            yield {**feed, spec.name: np.full_like(feed[spec.name], value)}


def _bounds(spec: TensorSpec) -> tuple[int, int]:
    if spec.dtype.kind == "bool":
        return 0, 1
    low, high = spec.value_range or (0, 9)
    return int(low), int(high)
