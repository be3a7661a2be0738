"""Rows that tie may change places, all their outputs together, and no others."""

import numpy as np
import pytest

from trtconv.proof.allowance import allow
from trtconv.proof.comparison import compare_outputs
from trtconv.proof.statistics.row_order import LONGEST_TIE, in_order_of

ROWS = 40
LIMIT = 1e-5


def detections(seed=0, batch=2):
    """Boxes, scores that fall, and classes; rows 7 and 8 of the first image tie."""
    chance = np.random.default_rng(seed)
    scores = -np.sort(-chance.uniform(0.1, 0.9, (batch, ROWS)), axis=1)
    scores[0, 8] = scores[0, 7] - 2e-6
    boxes, classes = chance.uniform(0, 100, (batch, ROWS, 4)), chance.integers(0, 80, (batch, ROWS, 1))
    classes[:, ::2] = (classes[:, 1::2] + 1) % 80
    return np.concatenate([boxes, scores[..., None], classes], -1).astype(np.float32)


def swapped(values, one, other, batch=0):
    moved = values.copy()
    moved[batch, [one, other]] = values[batch, [other, one]]
    return moved


def limits(outputs):
    return {n: np.full(v.shape, LIMIT) for n, v in outputs.items()}


def equal(expected, actual):
    ordered = in_order_of(expected, actual, limits(expected))
    return all(np.abs(ordered[n] - v).max() <= LIMIT for n, v in expected.items())


def test_rows_that_tie_may_change_places():
    rows = detections()
    assert equal({"y": rows}, {"y": swapped(rows, 7, 8)})
    assert equal({"y": rows[:1]}, {"y": swapped(rows[:1], 7, 8)}), "a batch of one"
    assert equal({"y": rows[0]}, {"y": swapped(rows, 7, 8)[0]}), "no batch"


@pytest.mark.parametrize(("one", "other", "batch"), [(7, 9, 0), (3, 4, 0), (7, 8, 1)])
def test_other_rows_may_not(one, other, batch):
    rows = detections()
    assert not equal({"y": rows}, {"y": swapped(rows, one, other, batch)})


def test_a_tied_row_is_held_to_its_other_columns():
    rows = detections()
    wrong = swapped(rows, 7, 8)
    wrong[0, 7, 1] += 1.0
    assert not equal({"y": rows}, {"y": wrong})
    half = rows.copy()
    half[0, [7, 8], :4] = rows[0, [8, 7], :4]
    assert not equal({"y": rows}, {"y": half}), "boxes changed places and classes did not"


def test_outputs_that_are_sorted_alike_change_places_together():
    rows = detections()
    expected = {"boxes": rows[..., :4], "scores": rows[..., 4], "labels": rows[..., 5].astype(np.int64)}
    other = swapped(rows, 7, 8)
    actual = {"boxes": other[..., :4], "scores": other[..., 4], "labels": other[..., 5].astype(np.int64)}
    assert equal(expected, actual)
    assert not equal(expected, {**actual, "boxes": expected["boxes"]})


def test_an_output_with_an_order_of_its_own_keeps_it():
    """RT-DETR gives its queries by the score of the encoder, and its detections by that of the decoder."""
    rows, queries = detections(0), detections(1)
    logits = np.concatenate([queries[..., 4:5], queries[..., 4:5] - 1.0, queries[..., 4:5] - 2.0], -1)
    expected = {"y": rows, "logits": logits, "boxes": queries[None, ..., :4]}
    actual = {**expected, "logits": swapped(logits, 7, 8), "boxes": swapped(queries, 7, 8)[None, ..., :4]}
    assert equal(expected, actual)
    assert equal(expected, {**actual, "y": swapped(rows, 7, 8)})
    assert equal(expected, {**expected, "y": swapped(rows, 7, 8)})
    assert not equal(expected, {**actual, "boxes": swapped(queries, 6, 7)[None, ..., :4]})


def test_a_number_beside_rows():
    expected = {"y": detections(), "count": np.array(3)}
    assert equal(expected, {**expected, "y": swapped(expected["y"], 7, 8)})
    assert not equal(expected, {**expected, "count": np.array(4)})


@pytest.mark.parametrize("tied", [LONGEST_TIE + 1, ROWS])
def test_rows_of_which_many_tie_say_nothing_of_an_order(tied):
    rows = detections()
    rows[0, :tied, 4] = rows[0, 0, 4]
    rows[:, :, 4] = -np.sort(-rows[:, :, 4], axis=1)
    assert not equal({"y": rows}, {"y": swapped(rows, 1, 2)})


def test_a_grid_is_no_order():
    """Every row of it ties with its neighbours."""
    y, x = np.meshgrid(np.arange(12)[::-1], np.arange(6), indexing="ij")
    grid = np.stack([x, y], -1).reshape(1, -1, 2).astype(np.float32)
    assert not equal({"y": grid}, {"y": swapped(grid, 1, 2)})


def test_a_comparison_takes_tied_rows_for_equal_and_says_where_others_differ():
    rows = detections()
    allowed = {"y": allow(rows)}
    assert compare_outputs("p", {"y": rows}, {"y": swapped(rows, 7, 8)}, allowed)[0].passed
    result = compare_outputs("p", {"y": rows}, {"y": swapped(rows, 3, 4)}, allowed)[0]
    assert not result.passed
    assert result.at[:2] in ((0, 3), (0, 4))
