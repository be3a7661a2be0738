"""Sizes that Python computes in floats, exact in a file: in whole numbers, with what no formula gives apart.

`math.ceil(w * 1.1)` of 50 is 56 in Python, whose product is 55.00000000000001, and 55 in FP32. What the program
computes is known for every size of the range, so it is written as `(11 * w + 9) // 10`, and as 56 where w is 50.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trtconv.core.shape_space.space import DimRange
from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.exact.nodes import MOST_TOGETHER, SizeNodes
from trtconv.export.sizes.exact.program import value_at, values_over

# Sizes that Python looks at one by one, and NumPy at once. A line is fitted to as many, spread over the range.
MOST_SINGLE, MOST_SIZES = 4096, 1 << 20
# TensorRT 8.6 computes sizes in int32.
LARGEST = 2**31 - 1
MOST_EXCEPTIONS = 8 * MOST_TOGETHER
MOST_DIVISOR = 512


@dataclass(frozen=True)
class Exact:
    """A whole number for each size of one dim: `base + (factor * size + shift) // divisor`, but for the exceptions.

    `steps` are sizes from which on it is more by a number.
    """

    name: str
    dim: str
    factor: int
    shift: int
    divisor: int
    exceptions: tuple[tuple[int, int], ...] = ()
    steps: tuple[tuple[int, int], ...] = ()
    base: int = 0

    def beside(self) -> Iterator[tuple[int, int]]:
        """Each exception, and by how much its number is more than that on the line."""
        for size, number in self.exceptions:
            yield size, number - self.base - (self.factor * size + self.shift) // self.divisor

    def write(self, nodes: SizeNodes) -> str:
        """Write what computes the number, int64 []; returns its name."""
        size = nodes.size(self.dim)
        line = nodes.op("Add", nodes.op("Mul", size, nodes.constant(self.factor)), nodes.constant(self.shift))
        value = nodes.op("Div", line, nodes.constant(self.divisor))
        if self.exceptions:
            special, more = zip(*self.beside(), strict=True)
            value = nodes.add_where_equal(value, size, special, more)
        if self.steps:
            value = nodes.add_from(value, size, self.steps)
        return nodes.op("Add", value, nodes.constant(self.base)) if self.base else value


def line_of(node: Any, symbols: Mapping[Any, str], dim: str, trace: Trace) -> Exact | None:
    """A node that FP32 rounds to another whole number somewhere in the range of its one dim; None where it does not.

    None too where no formula gives the numbers. Raises UnreadableError for sizes that are not followed.
    """
    import numpy as np

    sizes = trace.space[dim].values()
    if len(sizes) > MOST_SIZES:
        return None
    if len(sizes) <= MOST_SINGLE:
        exact_values = [value_at(node, symbols, n, float) for n in sizes]
        narrow_values = [value_at(node, symbols, n, np.float32) for n in sizes]
    else:
        by_symbol = dict.fromkeys(symbols, np.array(sizes))
        with np.errstate(all="ignore"):
            exact_values, narrow_values = (values_over(node, by_symbol, k).tolist() for k in (np.float64, np.float32))
    return None if exact_values == narrow_values else fit(node.name, dim, trace.space[dim], exact_values)


def fit(name: str, dim: str, rng: DimRange, exact_values: list[int]) -> Exact | None:
    """Whole numbers for the exact values of each size in the range: a line with exceptions, or stairs with few steps.

    None where there are too many of both.
    """
    import numpy as np

    all_sizes, all_values = np.array(rng.values()), np.array(exact_values)
    if len(all_sizes) < 2:
        return None
    if (lowest := int(all_values.min())) < 0:
        # ONNX's division of a negative number rounds towards zero.
        risen = fit(name, dim, rng, (all_values - lowest).tolist())
        lowered = tuple((n, v + lowest) for n, v in risen.exceptions) if risen else ()
        return replace(risen, base=lowest, exceptions=lowered) if risen else None
    every = np.unique(np.linspace(0, len(all_sizes) - 1, min(len(all_sizes), MOST_SINGLE)).astype(np.int64))
    sizes, values = all_sizes[every], all_values[every]
    slope = (exact_values[-1] - exact_values[0]) / int(sizes[-1] - sizes[0])
    best: tuple[int, int, int, int] | None = None
    for divisor in range(1, MOST_DIVISOR + 1):
        for factor in {math.floor(slope * divisor), math.ceil(slope * divisor)}:
            if abs(factor) * int(sizes[-1]) + divisor * int(values.max()) > LARGEST:
                continue
            # A pair asks for a shift from `low` to `low + divisor - 1`; the best one suits the most pairs.
            lows = np.sort(values * divisor - factor * sizes)
            # The dividend is nowhere negative.
            shifts = np.maximum(lows, -min(factor * int(sizes[0]), factor * int(sizes[-1])))
            suited = np.searchsorted(lows, shifts, "right") - np.searchsorted(lows, shifts - divisor + 1, "left")
            best_index = int(suited.argmax())
            if best is None or len(sizes) - int(suited[best_index]) < best[0]:
                best = len(sizes) - int(suited[best_index]), factor, int(shifts[best_index]), divisor
        if best is not None and best[0] == 0:
            break
    if best is None:
        return None
    _, factor, shift, divisor = best
    others = (factor * all_sizes + shift) // divisor != all_values
    if np.count_nonzero(others) <= MOST_EXCEPTIONS:
        exceptions = zip(all_sizes[others].tolist(), all_values[others].tolist(), strict=True)
        return Exact(name, dim, factor, shift, divisor, tuple(exceptions))
    changes = np.flatnonzero(np.diff(all_values)) + 1
    if len(changes) > MOST_EXCEPTIONS:
        return None
    steps = zip(all_sizes[changes].tolist(), np.diff(all_values)[changes - 1].tolist(), strict=True)
    return Exact(name, dim, 0, int(all_values[0]), 1, steps=tuple(steps))
