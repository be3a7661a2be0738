"""Mean intersection over union of classes that occur in the labels or in the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.metrics.metric import Metric, Outputs, first_of

# Pixels that nobody labelled, as in Cityscapes and PASCAL VOC.
IGNORED = 255


def miou(outputs: Outputs, labels: Sequence[Any]) -> float:
    """Scores are [C, H, W], a label is [H, W] of class numbers."""
    import numpy as np

    scores = first_of(outputs, 3, "scores [C, H, W] for miou")
    classes = scores[0].shape[0]
    counts = np.zeros((classes, classes), np.int64)
    for score, label in zip(scores, labels, strict=True):
        truth = np.asarray(label)
        if truth.shape != score.shape[1:] or truth.dtype.kind not in "iu":
            raise InvalidRequestError(
                f"a label {list(truth.shape)} of {truth.dtype} does not fit scores {list(score.shape)}",
                hint="miou wants the number of the class of each pixel, [H, W]",
            )
        valid = truth != IGNORED
        if truth[valid].size and (truth[valid].max() >= classes or truth[valid].min() < 0):
            raise InvalidRequestError(
                f"a label has class {int(truth[valid].max())}, the network {classes} classes", hint="count from 0"
            )
        pairs = truth[valid].astype(np.int64) * classes + score.argmax(0)[valid]
        counts += np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
    union = counts.sum(0) + counts.sum(1) - np.diag(counts)
    present = union > 0
    return float(np.mean(np.diag(counts)[present] / union[present])) if present.any() else 0.0


MIOU = Metric("miou", True, miou)
