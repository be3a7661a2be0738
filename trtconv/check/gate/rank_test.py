"""The exact Mann-Whitney test: do runs of one measurement tend to be larger than runs of another?

It needs no normal distribution and no estimate of the noise, so a machine on which a few runs take many times longer
neither hides a regression nor makes one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


def p_value_of_larger(high: Sequence[float], low: Sequence[float]) -> float:
    """The probability of runs that lie at least this far above `low` if both came from one distribution.

    Source: H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is stochastically larger
    than the other", 1947. Ties count half; the distribution is that of samples without ties, which is on the safe side.
    """
    pairs_below = sum(1.0 if h < value else 0.5 if h == value else 0.0 for h in high for value in low)
    total = math.comb(len(high) + len(low), len(high))
    return sum(_orderings(len(high), len(low), u) for u in range(math.floor(pairs_below) + 1)) / total


@cache
def _orderings(high: int, low: int, pairs_below: int) -> int:
    """How many orderings of `high` and `low` runs have this many pairs in which the run of `high` is the smaller."""
    if pairs_below < 0:
        return 0
    if not high or not low:
        return int(pairs_below == 0)
    return _orderings(high - 1, low, pairs_below) + _orderings(high, low - 1, pairs_below - high)


def most_pairs_below(high: int, low: int, significance: float) -> int:
    """In how many pairs a run of `high` may be the smaller one for the test to say that `high` is larger still.

    Few runs cannot reach the significance: then they must lie wholly apart, which is 0.
    """
    total, orderings, pairs = math.comb(high + low, high), 0, -1
    while pairs < high * low and (orderings := orderings + _orderings(high, low, pairs + 1)) <= significance * total:
        pairs += 1
    return max(pairs, 0)
