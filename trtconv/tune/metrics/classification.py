"""Top-1 accuracy: the share of samples whose largest score is that of their label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.metrics.metric import Metric, Outputs, first_of


def top1(outputs: Outputs, labels: Sequence[Any]) -> float:
    """Scores are [K], or [K, ...] of which each place is a decision; a label is an integer, or one per place."""
    import numpy as np

    scores = first_of(outputs, 1, "scores [K] for top1")
    right = total = 0
    for score, label in zip(scores, labels, strict=True):
        chosen, truth = np.asarray(score.argmax(0)), np.asarray(label)
        if truth.dtype.kind not in "iu" or truth.reshape(-1).shape != chosen.reshape(-1).shape:
            raise InvalidRequestError(
                f"a label {list(truth.shape)} of {truth.dtype} does not fit scores {list(score.shape)}",
                hint="top1 wants the number of the right class, from 0",
            )
        # NaN is the largest to argmax, and no answer.
        finite = ~np.isnan(score).any(0)
        right += int(np.sum((chosen.reshape(-1) == truth.reshape(-1)) & np.asarray(finite).reshape(-1)))
        total += truth.size
    return right / total


TOP1 = Metric("top1", True, top1)
