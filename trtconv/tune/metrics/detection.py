"""Mean average precision of boxes as COCO counts it: over IoU 0.50 to 0.95, precision at 101 recalls, per class.

Outputs are found by name: one with `box` in it [M, 4] as x1, y1, x2, y2, one with `score` [M] and one with `label` or
`class` [M]; or a single [M, 6] of box, score and class. A label is a dict of `boxes` [G, 4] and `labels` [G].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.metrics.metric import Metric, Outputs

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

HINT = "map wants outputs called boxes, scores and labels, or one [M, 6]; see `trtconv help quantise`"
THRESHOLDS = tuple(0.5 + 0.05 * i for i in range(10))


def mean_average_precision(outputs: Outputs, labels: Sequence[Any]) -> float:
    """The mean over classes that occur in the labels and over the thresholds."""
    import numpy as np

    detections = [_detections(outputs, i) for i in range(len(labels))]
    truths = [_truth(label) for label in labels]
    classes = sorted({int(c) for _, kinds in truths for c in kinds})
    values = [_average(detections, truths, kind, limit) for kind in classes for limit in THRESHOLDS]
    return float(np.mean(values)) if values else 0.0


def _detections(outputs: Outputs, index: int) -> tuple[Array, Array, Array]:
    """Boxes, scores and classes of a sample."""
    import numpy as np

    if len(outputs) == 1:
        rows = next(iter(outputs.values()))[index]
        if rows.ndim == 2 and rows.shape[1] == 6:
            return rows[:, :4], rows[:, 4], np.rint(rows[:, 5]).astype(np.int64)
        raise InvalidRequestError(f"an output {list(rows.shape)} holds no detections", hint=HINT)
    columns = []
    for words in (("box",), ("score", "conf"), ("label", "class")):
        name = next((n for n in outputs if any(w in n.lower() for w in words)), None)
        if name is None:
            raise InvalidRequestError(f"no output is called {' or '.join(words)}: {', '.join(outputs)}", hint=HINT)
        columns.append(outputs[name][index])
    boxes, scores, kinds = columns
    return boxes.reshape(-1, 4), scores.reshape(-1), np.rint(kinds.reshape(-1)).astype(np.int64)


def _truth(label: Any) -> tuple[Array, Array]:
    import numpy as np

    if not isinstance(label, Mapping) or not {"boxes", "labels"} <= set(label):
        raise InvalidRequestError("a label for map is a dict of boxes [G, 4] and labels [G]", hint=HINT)
    boxes, kinds = np.asarray(label["boxes"], np.float64).reshape(-1, 4), np.asarray(label["labels"]).reshape(-1)
    # Labels of a file are padded to one length with class -1.
    return boxes[kinds >= 0], kinds[kinds >= 0].astype(np.int64)


def _average(
    detections: Sequence[tuple[Array, Array, Array]], truths: Sequence[tuple[Array, Array]], kind: int, limit: float
) -> float:
    """Average precision of one class: each detection, best score first, takes the nearest box that is still free."""
    import numpy as np

    scores, hits, total = [], [], 0
    for (boxes, confidence, kinds), (real, real_kinds) in zip(detections, truths, strict=True):
        mine, goal = kinds == kind, real[real_kinds == kind]
        total += len(goal)
        order = np.argsort(-confidence[mine], kind="stable")
        free = np.ones(len(goal), bool)
        overlaps = intersection_over_union(boxes[mine][order].astype(np.float64), goal)
        for row, score in zip(overlaps, confidence[mine][order], strict=True):
            best = int(np.argmax(np.where(free, row, -1.0))) if len(goal) else -1
            hit = best >= 0 and free[best] and row[best] >= limit
            if hit:
                free[best] = False
            scores.append(float(score))
            hits.append(hit)
    if not total or not scores:
        return 0.0
    ranked = np.array(hits)[np.argsort(-np.array(scores), kind="stable")]
    right = np.cumsum(ranked)
    recall, precision = right / total, right / np.arange(1, len(ranked) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(recall, np.linspace(0, 1, 101), side="left")
    return float(np.mean([envelope[i] if i < len(envelope) else 0.0 for i in at]))


def intersection_over_union(first: Array, second: Array) -> Array:
    """[A, 4] and [B, 4] give [A, B]."""
    import numpy as np

    top = np.maximum(first[:, None, :2], second[None, :, :2])
    bottom = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = np.prod(np.clip(bottom - top, 0, None), axis=2)
    areas = [np.prod(np.clip(b[:, 2:] - b[:, :2], 0, None), axis=1) for b in (first, second)]
    result: Array = shared / np.maximum(areas[0][:, None] + areas[1][None, :] - shared, 1e-12)
    return result


MAP = Metric("map", True, mean_average_precision)
