"""torchvision's suppression by class, in the one of its two forms that does not ask how many boxes there are.

`batched_nms` moves the boxes of each class apart and suppresses once, or, where there are many, class by class. A trace
cannot know how many a selection will give; both forms choose the same boxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trtconv.export.exporters.detectors.swapped_code import swapped

OWNER = "torchvision.ops.boxes"


@contextmanager
def separate_classes() -> Iterator[None]:
    """Trace `batched_nms` so for the time of the block, where torchvision is imported."""
    with swapped(OWNER, "batched_nms", batched_nms):
        yield


def batched_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """The indices of the boxes to keep. Its globals are those of `torchvision.ops.boxes` when it runs.

    The row of zeros is for an image without any box, of which there is no largest coordinate.
    """
    farthest = torch.cat([boxes, boxes.new_zeros(1, 4)]).max()  # type: ignore[name-defined]  # noqa: F821
    apart = boxes + (idxs.to(boxes) * (farthest + 1))[:, None]
    return nms(apart, scores, iou_threshold)  # type: ignore[name-defined]  # noqa: F821
