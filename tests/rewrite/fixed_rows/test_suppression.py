"""Suppression at a fixed size against ONNX Runtime's own, and against the definition that torchvision follows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.fixed_rows.graphs import assert_same, both, parsed, selected, suppression
from trtconv.core.errors import UnsupportedError


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize(("batch", "classes"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_of_images_and_classes(batch: int, classes: int, center: int) -> None:
    model = suppression(batch, classes, limit=4, score=0.3, center=center)
    feeds = [selected(batch, classes, count, seed) for seed, count in enumerate((1, 5, 17, 40))]
    if center:
        feeds = [{**f, "boxes": np.abs(f["boxes"])} for f in feeds]
    record, pairs = both(model, 100, *feeds)
    assert record.outputs[0].rows == 4 * batch * classes
    assert_same(pairs)


@pytest.mark.parametrize(("batch", "classes"), [("N", 1), (1, "C"), ("N", "C")])
def test_of_as_many_images_and_classes_as_there_are(batch: object, classes: object) -> None:
    model = suppression(batch, classes, limit=5, score=0.2)
    sizes = (2 if batch == "N" else 1, 3 if classes == "C" else 1)
    record, pairs = both(model, 20, selected(*sizes, 12, 0), selected(*sizes, 30, 1))
    assert record.outputs[0].rows == 20
    assert_same(pairs)


def test_ties_go_to_the_first() -> None:
    _, pairs = both(suppression(1, 2), 50, *(selected(1, 2, 40, seed, steps=0.25) for seed in range(6)))
    assert_same(pairs)


def test_equal_boxes_with_equal_scores() -> None:
    feed = {"boxes": np.tile(np.float32([0, 0, 2, 2]), (1, 9, 1)), "scores": np.full((1, 1, 9), 0.5, np.float32)}
    _, pairs = both(suppression(), 10, feed)
    assert_same(pairs)
    assert pairs[0][1]["num_detections"].tolist() == [1]


def test_nothing_over_the_threshold() -> None:
    _, pairs = both(suppression(1, 2, score=5.0), 10, selected(1, 2, 20, 0))
    assert_same(pairs)
    assert pairs[0][1]["num_detections"].tolist() == [0]
    assert not pairs[0][1]["chosen"].any()


def test_empty_boxes_overlap_nothing() -> None:
    feed = {"boxes": np.zeros((1, 6, 4), np.float32), "scores": np.linspace(0, 1, 6, dtype=np.float32)[None, None]}
    _, pairs = both(suppression(), 10, feed)
    assert_same(pairs)
    assert pairs[0][1]["num_detections"].tolist() == [6]


def test_infinite_scores_and_negative_ones() -> None:
    feed = selected(1, 1, 8, 0)
    feed["scores"][0, 0, :4] = [-np.inf, np.inf, -3.0, -np.inf]
    _, pairs = both(suppression(), 10, feed)
    assert_same(pairs)


def test_a_box_that_was_left_out_leaves_nothing_out() -> None:
    """Of a row of boxes, each overlapping the next: every other one stays."""
    left = np.arange(9, dtype=np.float32)
    boxes = np.stack([left, 0 * left, left + 2, 0 * left + 1], 1)[None]
    feed = {"boxes": boxes, "scores": np.linspace(1, 0.1, 9, dtype=np.float32)[None, None]}
    _, pairs = both(suppression(overlap=0.3), 10, feed)
    assert_same(pairs)
    assert pairs[0][1]["chosen"][:5, 2].tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("most", [1, 3, 7])
def test_more_than_there_is_room_for_is_told(most: int) -> None:
    record, pairs = both(suppression(overlap=0.9), most, selected(1, 1, 30, 0))
    assert_same(pairs)
    assert record.outputs[0].rows == most
    assert pairs[0][1]["num_detections"].tolist() == [most + 1]
    assert "says that there were more" in record.describe()


def test_without_a_limit_nothing_is_selected() -> None:
    model = parsed("""g (float[1,T,4] boxes, float[1,1,T] scores) => (int64[D,3] chosen) {
        chosen = NonMaxSuppression(boxes, scores)
    }""")
    with pytest.raises(UnsupportedError, match=r"NonMaxSuppression selects nothing"):
        both(model, 5, selected(1, 1, 9, 0))


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
def test_every_opset(opset: int) -> None:
    _, pairs = both(suppression(1, 2, score=0.4, opset=opset), 30, selected(1, 2, 25, 3))
    assert_same(pairs)


def test_as_torchvision_defines_it() -> None:
    """`networks/` has the definition for torchvision wheels that do not load."""
    torch = pytest.importorskip("torch")
    from networks.torchvision_operators import suppress

    for seed in range(4):
        feed = selected(1, 1, 30, seed, steps=0.1)
        corners = np.sort(feed["boxes"].reshape(1, -1, 2, 2), axis=2).reshape(1, -1, 4)
        chosen = suppress(torch.from_numpy(corners[0]), torch.from_numpy(feed["scores"][0, 0]), 0.5).numpy()
        _, [(_, actual)] = both(suppression(), 40, {**feed, "boxes": corners})
        count = int(actual["num_detections"][0])
        assert actual["chosen"][:count, 2].tolist() == chosen.tolist()


@pytest.mark.parametrize("whole", ["ReduceSum", "ReduceMax"])
def test_what_takes_all_rows_together_takes_those_too_that_an_output_leaves_out(whole: str) -> None:
    model = parsed(
        f"""g (float[1,T,4] boxes, float[1,1,T] scores) => (int64[D,3] chosen, float[1,4] together)
        <int64 limit = {{1000}}, float overlap = {{1.0}}, int64[1] two = {{2}}, int64[1] three = {{3}},
         int64[1] ax0 = {{0}}, int64[1] ax1 = {{1}}> {{
            chosen = NonMaxSuppression(boxes, scores, limit, overlap)
            box_ = Slice(chosen, two, three, ax1)
            box = Squeeze(box_, ax1)
            all = Squeeze(boxes, ax0)
            rows = Gather<axis=0>(all, box)
            together = {whole}(rows{", ax0" if whole == "ReduceSum" else ""})
        }}""".replace("together = ReduceMax(", "together = ReduceMax<axes=[0]>(")
    )
    _, pairs = both(model, 5, selected(1, 1, 30, 0), selected(1, 1, 3, 1))
    for expected, actual in pairs:
        np.testing.assert_allclose(actual["together"], expected["together"], rtol=1e-5)
        np.testing.assert_array_equal(actual["chosen"], expected["chosen"])
