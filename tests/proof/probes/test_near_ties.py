"""Rankings of values that tie within their own rounding are found, and no others."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.proof.probes.near_ties import find_rankings, near_ties

WIDTH = 33


def scored(nodes, outputs, weight, shape=("N", WIDTH), kind=TensorProto.FLOAT):
    """A graph with `scores` = x @ weight before the nodes."""
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    ends = [helper.make_value_info(n, helper.make_tensor_type_proto(t, None)) for n, t in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(weight, np.float32), "weight")]
    tensors.append(numpy_helper.from_array(np.asarray([2], np.int64), "two"))
    product = [helper.make_node("MatMul", ["x", "weight"], ["scores"], "scoring")]
    if kind != TensorProto.FLOAT:
        product = [
            helper.make_node("Cast", ["x"], ["wide"], "widening", to=TensorProto.FLOAT),
            helper.make_node("MatMul", ["wide", "weight"], ["scores"], "scoring"),
        ]
    graph = helper.make_graph([*product, *nodes], "g", inputs, ends, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


TOP_TWO = helper.make_node("TopK", ["scores", "two"], ["top", "order"], "top-two", axis=-1)
TOP = {"top": TensorProto.FLOAT, "order": TensorProto.INT64}
LARGEST = helper.make_node("ArgMax", ["scores"], ["best"], "largest", axis=1, keepdims=0)
BEST = {"best": TensorProto.INT64}


def weights(*shares):
    """Columns whose scores stand in these shares of one another, but for another rounding."""
    column = np.random.default_rng(0).standard_normal(WIDTH)
    return np.stack([column * s for s in shares], axis=1)


@pytest.fixture
def feed():
    values = np.random.default_rng(1).standard_normal((1, WIDTH)).astype(np.float32)
    positive = values if (values @ weights(1.0)).item() > 0 else -values
    return {"x": positive}


@pytest.mark.parametrize(
    ("shares", "count", "cut"),
    [
        ((1.0, 1.00000003, 0.5, 0.2), 1, False),
        ((2.0, 1.0, 1.00000003, 0.2), 1, True),
        ((2.0, 1.0, 0.5, 0.50000002), 0, False),
        ((2.0, 1.0, 0.999, 0.2), 0, False),
    ],
)
def test_a_top_k_is_told_where_it_ties_among_what_it_takes_or_at_the_cut(feed, shares, count, cut):
    ties = near_ties(scored([TOP_TWO], TOP, weights(*shares)), feed, GraphRunner)
    assert [(t.ranking.node, t.count, t.cut) for t in ties] == ([("top-two", count, cut)] if count else [])
    assert all(t.margin < t.noise < 1e-5 for t in ties)


def test_an_argmax_is_told_where_its_largest_two_tie(feed):
    assert near_ties(scored([LARGEST], BEST, weights(1.0, 0.5, 1.00000003)), feed, GraphRunner)
    assert not near_ties(scored([LARGEST], BEST, weights(1.0, 0.5, 0.50000001)), feed, GraphRunner)


def test_values_that_are_equal_in_every_run_are_no_near_tie(feed):
    clipped = [
        helper.make_node("Relu", ["scores"], ["positive"], "clipping"),
        helper.make_node("TopK", ["positive", "two"], ["top", "order"], "top-two", axis=-1),
    ]
    assert not near_ties(scored(clipped, TOP, weights(-1.0, -2.0, -3.0, 1.0)), feed, GraphRunner)


def test_a_top_k_of_which_only_the_values_are_read_decides_nothing(feed):
    model = scored([TOP_TWO], {"top": TensorProto.FLOAT}, weights(1.0, 1.00000003, 0.5))
    assert find_rankings(model.graph) == ()
    assert near_ties(model, feed, GraphRunner) == ()


def test_what_is_ranked_by_sizes_alone_is_left_out():
    sizes = [
        helper.make_node("Shape", ["x"], ["sizes"], "sizes"),
        helper.make_node("ArgMax", ["sizes"], ["best"], "largest", axis=0),
    ]
    assert find_rankings(scored(sizes, BEST, weights(1.0)).graph) == ()


def test_whole_numbers_at_the_input_are_ranked_beside_moved_weights():
    model = scored([LARGEST], BEST, weights(1.0, 1.00000003), kind=TensorProto.INT64)
    ids = {"x": np.random.default_rng(2).integers(0, 9, (1, WIDTH))}
    (tie,) = near_ties(model, ids, GraphRunner)
    assert tie.margin < tie.noise


def test_rows_that_an_earlier_ranking_swapped_are_no_noise(feed):
    """Behind a top-k whose rows change places, a clear order stays clear."""
    nodes = [
        TOP_TWO,
        helper.make_node("Gather", ["far", "order"], ["rows"], "picking", axis=0),
        helper.make_node("ArgMax", ["rows"], ["best"], "largest", axis=-1),
    ]
    model = scored(nodes, BEST, weights(1.0, 1.00000003, 0.5))
    far = np.asarray([[0.0, 1.0, 5.0], [7.0, 2.0, 3.0], [0.0, 4.0, 9.0]], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(far, "far"))
    assert isinstance(model, onnx.ModelProto)
    assert {t.ranking.node for t in near_ties(model, feed, GraphRunner)} <= {"top-two"}
