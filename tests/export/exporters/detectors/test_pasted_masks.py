"""torchvision's masks in the size of the image, in the form that does not loop over the boxes."""

from __future__ import annotations

import sys
import types

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from trtconv.export.exporters.detectors.pasted_masks import OWNER, pasted_masks

# What torchvision 0.28 does, for whole boxes with a border of nothing: written from its documentation and results.
SOURCE = '''
def expand_masks(masks, padding):
    return F.pad(masks, (padding,) * 4), (masks.shape[-1] + 2 * padding) / masks.shape[-1]

def expand_boxes(boxes, scale):
    centres, halves = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2 * scale
    return torch.cat([centres - halves, centres + halves], 1)

def paste_masks_in_image(masks, boxes, img_shape, padding=1):
    masks, scale = expand_masks(masks, padding)
    pasted = masks.new_zeros(len(masks), 1, *img_shape)
    for mask, image, (x0, y0, x1, y1) in zip(masks, pasted, expand_boxes(boxes, scale).long().tolist()):
        size = max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)
        resized = F.interpolate(mask[None], size=size, mode="bilinear", align_corners=False)[0, 0]
        for y in range(max(y0, 0), min(y1 + 1, img_shape[0])):
            for x in range(max(x0, 0), min(x1 + 1, img_shape[1])):
                image[0, y, x] = resized[y - y0, x - x0]
    return pasted
'''


@pytest.fixture
def roi_heads(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType(OWNER)
    module.__dict__.update(torch=torch, F=F)
    exec(SOURCE, module.__dict__)
    monkeypatch.setitem(sys.modules, OWNER, module)
    return module


def drawn(boxes: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Masks, and boxes inside and over the edges of the image, one of them without any extent."""
    chance = torch.Generator().manual_seed(height)
    corner = torch.rand(boxes, 2, generator=chance) * torch.tensor([width, height])
    extent = torch.rand(boxes, 2, generator=chance) * torch.tensor([width, height])
    places = torch.cat([corner - extent / 3, corner + extent], 1)
    places[:1, 2:] = places[:1, :2]
    return torch.rand(boxes, 1, 14, 14, generator=chance), places


@pytest.mark.parametrize(("boxes", "height", "width"), [(5, 40, 60), (4, 23, 17), (0, 20, 20), (3, 9, 80)])
def test_it_is_what_the_loop_gives(roi_heads: types.ModuleType, boxes: int, height: int, width: int) -> None:
    masks, places = drawn(boxes, height, width)
    expected = roi_heads.paste_masks_in_image(masks, places, (height, width))
    with pasted_masks():
        pasted = roi_heads.paste_masks_in_image(masks, places, (height, width))
    assert pasted.shape == expected.shape
    torch.testing.assert_close(pasted, expected, rtol=0, atol=1e-5)


def test_the_function_is_its_own_again(roi_heads: types.ModuleType) -> None:
    own = roi_heads.paste_masks_in_image.__code__
    with pasted_masks():
        assert roi_heads.paste_masks_in_image.__code__ is not own
    assert roi_heads.paste_masks_in_image.__code__ is own


def test_without_torchvision_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, OWNER, raising=False)
    with pasted_masks():
        assert OWNER not in sys.modules
