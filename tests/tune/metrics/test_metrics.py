"""Each metric against numbers that are worked out by hand."""

import numpy as np
import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.contract import Contract, parse_drop
from trtconv.tune.metrics.registry import METRICS, find_metric


def rows(*values):
    return [np.asarray(v, np.float32) for v in values]


def test_top1_counts_the_largest_score_and_nan_is_no_answer():
    scores = rows([0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [np.nan, 1.0])
    assert METRICS["top1"].compute({"y": scores}, [1, 0, 0, 0]) == 0.5


def test_miou_is_the_mean_over_classes_that_occur():
    score = np.zeros((3, 2, 2), np.float32)
    score[0, 0], score[1, 1] = 1, 1
    label = np.array([[0, 1], [1, 255]])
    # Class 0: 1 of 2 pixels; class 1: 1 of 2; class 2 occurs nowhere.
    assert METRICS["miou"].compute({"y": [score]}, [label]) == pytest.approx(0.5)


def test_psnr_of_a_known_error():
    target = np.linspace(0, 1, 16).reshape(4, 4)
    assert METRICS["psnr"].compute({"y": rows(target + 0.01)}, [target]) == pytest.approx(40.0, abs=0.01)


def boxes(*values):
    return np.array(values, np.float32).reshape(-1, 4)


TRUTH = {"boxes": boxes([0, 0, 10, 10], [20, 20, 30, 30]), "labels": np.array([0, 0])}


@pytest.mark.parametrize(
    ("given_boxes", "scores", "expected"),
    [
        (boxes([0, 0, 10, 10], [20, 20, 30, 30]), [0.9, 0.8], 1.0),
        (boxes([0, 0, 10, 10]), [0.9], 51 / 101),
        # The better score is wrong: precision 1/2 at each of the two recalls once both are right.
        (boxes([50, 50, 60, 60], [0, 0, 10, 10], [20, 20, 30, 30]), [0.9, 0.8, 0.7], 2 / 3),
        # IoU 0.6 counts at the thresholds 0.50, 0.55 and 0.60 only.
        (boxes([0, 0, 10, 6.0001], [20, 20, 30, 26.0001]), [0.9, 0.8], 0.3),
        (boxes(), [], 0.0),
    ],
)
def test_map_as_coco_counts_it(given_boxes, scores, expected):
    outputs = {"boxes": [given_boxes], "scores": rows(scores), "labels": [np.zeros(len(scores), np.int64)]}
    assert METRICS["map"].compute(outputs, [TRUTH]) == pytest.approx(expected, abs=1e-6)


def test_map_reads_one_output_of_six_columns_and_padded_labels():
    rows_of_six = np.array([[0, 0, 10, 10, 0.9, 0], [20, 20, 30, 30, 0.8, 0]], np.float32)
    padded = {"boxes": np.vstack([TRUTH["boxes"], np.zeros((1, 4))]), "labels": np.array([0, 0, -1])}
    assert METRICS["map"].compute({"detections": [rows_of_six]}, [padded]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("metric", "outputs", "label"),
    [
        ("top1", {"y": rows([1, 0])}, 0.5),
        ("miou", {"y": rows([1, 0])}, 1),
        ("miou", {"y": rows(np.zeros((2, 2, 2)))}, np.full((2, 2), 7)),
        ("psnr", {"y": rows([[1, 0]])}, np.zeros((3, 3))),
        ("map", {"y": rows([[1, 0]])}, TRUTH),
        ("map", {"boxes": rows([[1, 0, 1, 1]]), "scores": rows([1])}, TRUTH),
    ],
)
def test_what_does_not_fit_is_one_error(metric, outputs, label):
    with pytest.raises(InvalidRequestError):
        METRICS[metric].compute(outputs, [label])


def test_missing_labels_are_counted():
    with pytest.raises(InvalidRequestError, match="1 of 2 samples have none"):
        METRICS["top1"].require_labels([1, None])


def test_a_function_of_the_user(tmp_path):
    (tmp_path / "m.py").write_text(
        "def mean(outputs, labels):\n    return outputs['y'].mean() + len(labels)\n"
        "def bad(outputs, labels):\n    return outputs['z']\n"
    )
    metric = find_metric(f"{tmp_path / 'm.py'}:mean")
    assert metric.compute({"y": rows([1, 3], [1, 3])}, [None, None]) == 4.0
    with pytest.raises(InvalidRequestError, match="raised KeyError"):
        find_metric(f"{tmp_path / 'm.py'}:bad").compute({"y": rows([1])}, [None])
    with pytest.raises(InvalidRequestError, match="Did you mean 'top1'"):
        find_metric("top-1")


@pytest.mark.parametrize(
    ("metric", "text", "reference", "lowest"),
    [
        ("top1", "0.5%", 0.9, 0.895),
        ("top1", "0.01", 0.9, 0.89),
        ("psnr", "1%", 40.0, 39.6),
        ("psnr", "0.2", 40.0, 39.8),
    ],
)
def test_percent_are_points_of_shares_and_parts_of_other_metrics(metric, text, reference, lowest):
    contract = Contract(METRICS[metric], parse_drop(text, METRICS[metric]))
    assert contract.drop.below(reference) == pytest.approx(lowest)
    assert contract.holds(lowest, reference)
    assert not contract.holds(lowest - 1e-6, reference)
    assert not contract.holds(float("nan"), reference)


@pytest.mark.parametrize("text", ["a", "-1%", "nan", ""])
def test_a_drop_that_is_no_number_is_refused(text):
    with pytest.raises(InvalidRequestError):
        parse_drop(text, METRICS["top1"])
