"""Suppression by class is traced in one form, whatever the number of boxes."""

import sys
import types

import pytest

from trtconv.export.exporters.detectors.separate_classes import OWNER, separate_classes

torch = pytest.importorskip("torch")
# As in torchvision: what is chosen depends on how many boxes there are, and `nms` is found in the module.
SOURCE = """
import torch

def nms(boxes, scores, iou_threshold):
    return boxes, scores, iou_threshold

def batched_nms(boxes, scores, idxs, iou_threshold):
    if boxes.numel() > 4000:
        return "class by class"
    return "moved apart"
"""


@pytest.fixture
def owner(monkeypatch):
    module = types.ModuleType(OWNER)
    exec(SOURCE, module.__dict__)
    monkeypatch.setitem(sys.modules, OWNER, module)
    return module


def test_the_branch_is_gone_while_tracing_and_back_afterwards(owner):
    imported = owner.batched_nms
    boxes = torch.tensor([[0.0, 0.0, 2.0, 3.0], [1.0, 1.0, 4.0, 5.0]])
    with separate_classes():
        apart, _, overlap = imported(boxes, torch.ones(2), torch.tensor([0, 2]), 0.5)
    assert apart.tolist() == [[0.0, 0.0, 2.0, 3.0], [13.0, 13.0, 16.0, 17.0]]
    assert overlap == 0.5
    assert imported(boxes, None, None, 0.5) == "moved apart"


def test_an_image_without_boxes(owner):
    with separate_classes():
        apart, _, _ = owner.batched_nms(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.int64), 0.5)
    assert apart.shape == (0, 4)


def test_it_comes_back_after_an_error(owner):
    with pytest.raises(RuntimeError, match="stop"), separate_classes():
        raise RuntimeError("stop")
    assert owner.batched_nms(torch.zeros(1, 4), None, None, 0.5) == "moved apart"


def test_without_torchvision(monkeypatch):
    monkeypatch.delitem(sys.modules, OWNER, raising=False)
    with separate_classes():
        pass
