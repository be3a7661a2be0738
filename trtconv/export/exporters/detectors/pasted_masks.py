"""torchvision's masks in the size of the image, for all boxes at once.

`paste_masks_in_image` loops over the boxes, resizes each mask to the size of its box and writes it into an image of
zeros: as many steps as the values decide, of sizes that the values decide. A bilinear resize is a product with a matrix
of weights for each axis; with a matrix of the size of the image, whose rows outside of the box are zero, it is the
pasted mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trtconv.export.exporters.detectors.swapped_code import swapped

OWNER = "torchvision.models.detection.roi_heads"


@contextmanager
def pasted_masks() -> Iterator[None]:
    """Trace `paste_masks_in_image` so for the time of the block, where torchvision's detectors are imported."""
    with swapped(OWNER, "paste_masks_in_image", paste_masks_in_image):
        yield


def paste_masks_in_image(masks: Any, boxes: Any, img_shape: Any, padding: int = 1) -> Any:
    """float[D,1,H,W] of masks float[D,1,M,M]. Its globals are those of `roi_heads` when it runs.

    Positions are those of `interpolate(mode="bilinear", align_corners=False)`, in FP32 as there.
    """
    masks, scale = expand_masks(masks, padding=padding)  # type: ignore[name-defined]  # noqa: F821
    boxes = expand_boxes(boxes, scale).to(dtype=torch.int64)  # type: ignore[name-defined]  # noqa: F821
    length, weights = masks.shape[-1], []
    cells = torch.arange(length)  # type: ignore[name-defined]  # noqa: F821
    for axis, size in ((1, img_shape[0]), (0, img_shape[1])):
        low, extent = boxes[:, axis, None], boxes[:, axis + 2, None] - boxes[:, axis, None] + 1
        position = torch.arange(size)[None] - low  # type: ignore[name-defined]  # noqa: F821
        source = ((position.float() + 0.5) * (length / extent.clamp(min=1).float()) - 0.5).clamp(min=0)
        before = source.floor().clamp(max=length - 1)
        share = (source - before)[..., None].clamp(max=1)
        after = (before + 1).clamp(max=length - 1)
        weight = (1 - share) * (cells == before[..., None]) + share * (cells == after[..., None])
        inside = (position >= 0) & (position < extent)
        weights.append(weight * inside[..., None])
    return (weights[0] @ (masks[:, 0] @ weights[1].mT))[:, None]
