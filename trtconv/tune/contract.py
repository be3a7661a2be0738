"""What an engine has to keep: a metric on the user's data, and how far it may drop below that of FP32."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.metrics.metric import Metric


@dataclass(frozen=True)
class Drop:
    """A drop that is allowed: `amount` in the metric's unit, or where `relative` as a share of what FP32 reaches."""

    text: str
    amount: float
    relative: bool = False

    def below(self, reference: float) -> float:
        """The lowest value that still keeps it."""
        return reference - (self.amount * abs(reference) if self.relative else self.amount)


def parse_drop(text: str, metric: Metric) -> Drop:
    """Parse `0.5%` or `0.1`.

    Percent are points of a metric that is a share (top1, miou, map: 0.985 may drop to 0.980 by 0.5%), and of FP32's own
    value for others. Raises InvalidRequestError for what is not a number from 0 up.
    """
    percent = text.strip().endswith("%")
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise InvalidRequestError(
            f"cannot read the largest drop '{text}'", hint="write 0.5%, or a number in the metric's unit"
        )
    return Drop(text.strip(), number / 100 if percent else number, percent and not metric.share)


@dataclass(frozen=True)
class Contract:
    """A metric and the drop that is allowed."""

    metric: Metric
    drop: Drop

    def holds(self, value: float, reference: float) -> bool:
        """True where a value keeps the contract; NaN does not. Rounding of the metric's own sums is not a drop."""
        return value >= self.drop.below(reference) - 1e-9

    def __str__(self) -> str:
        return f"{self.metric.name} at most {self.drop.text} below fp32"
