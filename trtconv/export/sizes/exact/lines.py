"""Sizes that Python computes in floats, exact in a file: in whole numbers, with what no formula gives apart.

`math.ceil(w * 1.1)` of 50 is 56 in Python, whose product is 55.00000000000001, and 55 in FP32. What the program
computes is known for every size of the range, so it is written as `(11 * w + 9) // 10`, and as 56 where w is 50.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trtconv.core.shape_space.space import DimRange
from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.exact.nodes import SizeNodes
from trtconv.export.sizes.exact.program import value_at

MOST_SIZES = 4096
# TensorRT computes sizes from vectors of up to 64 numbers.
MOST_EXCEPTIONS = 60
MOST_DIVISOR = 512


@dataclass(frozen=True)
class Exact:
    """A whole number for each size of one dim: `(factor * size + shift) // divisor`, but for the exceptions.

    `steps` are sizes from which on it is more by a number.
    """

    name: str
    dim: str
    factor: int
    shift: int
    divisor: int
    exceptions: tuple[tuple[int, int], ...] = ()
    steps: tuple[tuple[int, int], ...] = ()

    def write(self, nodes: SizeNodes) -> str:
        """Write what computes the number, int64 []; returns its name."""
        size = nodes.size(self.dim)
        line = nodes.op("Add", nodes.op("Mul", size, nodes.constant(self.factor)), nodes.constant(self.shift))
        value = nodes.op("Div", line, nodes.constant(self.divisor))
        if self.exceptions:
            more = [v - (self.factor * n + self.shift) // self.divisor for n, v in self.exceptions]
            value = nodes.add_where_equal(value, size, [n for n, _ in self.exceptions], more)
        if self.steps:
            value = nodes.add_from(value, size, self.steps)
        return value


def line_of(node: Any, symbols: Mapping[Any, str], dim: str, trace: Trace) -> Exact | None:
    """A node that FP32 rounds to another whole number somewhere in the range of its one dim; None where it does not.

    None too where no formula gives the numbers. Raises UnreadableError for sizes that are not followed.
    """
    sizes = trace.space[dim].values()
    if len(sizes) > MOST_SIZES:
        return None
    exact_values = [value_at(node, symbols, n, float) for n in sizes]
    if all(w == value_at(node, symbols, n, _narrow) for w, n in zip(exact_values, sizes, strict=True)):
        return None
    return fit(node.name, dim, trace.space[dim], exact_values)


def _narrow(value: float) -> Any:
    import numpy as np

    return np.float32(value)


def fit(name: str, dim: str, rng: DimRange, exact_values: list[int]) -> Exact | None:
    """Whole numbers for the exact values of each size in the range: a line with exceptions, or stairs with few steps.

    None where there are too many of both.
    """
    import numpy as np

    sizes, values = np.array(rng.values()), np.array(exact_values)
    if len(sizes) < 2 or values.min() < 0:
        return None
    slope = (exact_values[-1] - exact_values[0]) / int(sizes[-1] - sizes[0])
    best: tuple[int, int, int, int] | None = None
    for divisor in range(1, MOST_DIVISOR + 1):
        for factor in {math.floor(slope * divisor), math.ceil(slope * divisor)}:
            # A pair asks for a shift from `low` to `low + divisor - 1`; the best one suits the most pairs.
            lows = np.sort(values * divisor - factor * sizes)
            # ONNX's division of a negative number rounds towards zero.
            shifts = np.maximum(lows, -min(factor * int(sizes[0]), factor * int(sizes[-1])))
            suited = np.searchsorted(lows, shifts, "right") - np.searchsorted(lows, shifts - divisor + 1, "left")
            best_index = int(suited.argmax())
            if best is None or len(sizes) - int(suited[best_index]) < best[0]:
                best = len(sizes) - int(suited[best_index]), factor, int(shifts[best_index]), divisor
        if best is not None and best[0] == 0:
            break
    assert best is not None
    _, factor, shift, divisor = best
    others = (factor * sizes + shift) // divisor != values
    exceptions = tuple((int(n), int(v)) for n, v in zip(sizes[others], values[others], strict=True))
    if len(exceptions) <= MOST_EXCEPTIONS:
        return Exact(name, dim, factor, shift, divisor, exceptions)
    changes = np.flatnonzero(np.diff(values)) + 1
    steps = tuple((int(sizes[i]), int(values[i] - values[i - 1])) for i in changes)
    return Exact(name, dim, 0, int(values[0]), 1, steps=steps) if len(steps) <= MOST_EXCEPTIONS else None
