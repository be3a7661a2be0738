"""What the independent judge takes for the original's own noise, and that a fault is none of it."""

import numpy as np
import pytest
import torch
from torch import nn

from networks.judge import FARTHEST, distance, own_answers, without_own_flips
from trtconv.core.tensors import parse_tensor
from trtconv.export.module.runner import ModuleRunner

WIDTH, ROWS = 33, 40


class Detector(nn.Module):
    """Boxes and scores of anchors, sorted by score; the anchors 20 and 21 have the same score but for its rounding."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        weight = torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.float64)
        # The same sum in another order of its terms, a hair larger.
        weight[21] = weight[20].flip(0) * (1 + 1e-8)
        self.weight = nn.Parameter(weight.float())
        self.boxes = nn.Parameter(torch.rand(ROWS, 4, generator=generator))

    def forward(self, x):
        terms = torch.stack([x if anchor != 21 else x.flip(1) for anchor in range(ROWS)], 1)
        scores = (terms * self.weight).sum(-1) / 10
        top, order = torch.sort(scores, dim=1, descending=True, stable=True)
        return {"boxes": self.boxes[order], "scores": top, "labels": order}


@pytest.fixture(scope="module")
def detector():
    return ModuleRunner(Detector(), [parse_tensor(f"x:float32[N,{WIDTH}]")])


@pytest.fixture(scope="module")
def inputs():
    return {"x": np.random.default_rng(3).standard_normal((2, WIDTH)).astype(np.float32)}


def rows_of(outputs, sample):
    """The rows of the two anchors that tie."""
    places = outputs["labels"][sample].argsort()
    return int(places[20]), int(places[21])


def swapped(outputs, sample, first, second, names=("boxes", "scores", "labels")):
    changed = {n: v.copy() for n, v in outputs.items()}
    for name in names:
        changed[name][sample, [first, second]] = outputs[name][sample, [second, first]]
    return changed


def judged(detector, inputs, actual):
    expected = detector(inputs)
    mended, count = without_own_flips(expected, actual, own_answers(detector, inputs))
    return max(distance(v, mended[n]) for n, v in expected.items()), count


def test_a_near_tie_that_the_original_does_not_keep_is_its_own(detector, inputs):
    first, second = rows_of(detector(inputs), 0)
    assert abs(first - second) == 1
    off, count = judged(detector, inputs, swapped(detector(inputs), 0, first, second))
    assert off <= FARTHEST
    assert count == 2


def test_other_rows_in_another_order_are_a_fault(detector, inputs):
    first, second = rows_of(detector(inputs), 0)
    elsewhere = next(r for r in range(ROWS - 1) if not {r, r + 1} & {first, second})
    off, count = judged(detector, inputs, swapped(detector(inputs), 0, elsewhere, elsewhere + 1))
    assert off > FARTHEST
    assert count == 0


@pytest.mark.parametrize("names", [("boxes",), ("labels",), ("boxes", "scores")])
def test_a_tie_of_which_some_outputs_change_places_alone_is_a_fault(detector, inputs, names):
    first, second = rows_of(detector(inputs), 0)
    off, _ = judged(detector, inputs, swapped(detector(inputs), 0, first, second, names))
    assert off > FARTHEST


def test_one_row_of_a_tie_given_twice_is_a_fault(detector, inputs):
    outputs = detector(inputs)
    first, second = rows_of(outputs, 0)
    changed = {n: v.copy() for n, v in outputs.items()}
    for name in changed:
        changed[name][0, first] = outputs[name][0, second]
    off, count = judged(detector, inputs, changed)
    assert off > FARTHEST
    assert count == 0


def test_a_layer_that_was_replaced_is_a_fault(detector, inputs):
    other = Detector()
    with torch.no_grad():
        other.weight.mul_(1.01)
        other.boxes.mul_(1.01)
    actual = ModuleRunner(other, [parse_tensor(f"x:float32[N,{WIDTH}]")])(inputs)
    off, _ = judged(detector, inputs, actual)
    assert off > FARTHEST


def test_an_output_of_another_shape_is_a_fault(detector, inputs):
    actual = {n: v[:, :-1] for n, v in detector(inputs).items()}
    mended, count = without_own_flips(detector(inputs), actual, own_answers(detector, inputs))
    assert count == 0
    assert distance(detector(inputs)["boxes"], mended["boxes"]) == float("inf")


def test_weights_move_where_inputs_are_whole_numbers():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(9, 5)

        def forward(self, ids):
            return self.table(ids).sum(1)

    bag = ModuleRunner(Bag(), [parse_tensor("ids:int64[N,T]=0:8")])
    feed = {"ids": np.arange(8).reshape(2, 4)}
    expected = bag(feed)
    (name,) = expected
    answers = list(own_answers(bag, feed))
    assert any(np.any(a[name] != expected[name]) for a in answers)
    assert all(distance(expected[name], a[name]) < 1e-5 for a in answers)
