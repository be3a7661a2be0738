"""Ensembles of trees, as ONNX Runtime's own operators compute them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from tests.rewrite.harness import apply
from trtconv.foreign.operators import REWRITTEN
from trtconv.rewrite.lowering.float64 import without_float64
from trtconv.rewrite.patterns.trees import DOMAIN
from trtconv.rewrite.rules.missing.tensor.tree_ensemble import RULE

ROWS = np.random.default_rng(0).uniform(-2.0, 2.0, (64, 5)).astype(np.float32)
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
# Three trees of three inner nodes: two with a leaf at the first level.
TRUE, TRUE_IS_LEAF = [1, 0, 1, 4, 3, 4, 6, 7, 9], [0, 1, 1, 0, 1, 1, 1, 1, 1]
FALSE, FALSE_IS_LEAF = [2, 2, 9, 5, 5, 6, 7, 8, 10], [0, 1, 1, 0, 1, 1, 0, 0, 1]
FEATURES, ROOTS = [0, 1, 2, 3, 4, 0, 1, 2, 3], [0, 3, 6]


def model_of(node, dtype=TensorProto.FLOAT, output=TensorProto.FLOAT):
    x = helper.make_tensor_value_info("x", dtype, ["N", 5])
    y = helper.make_tensor_value_info("y", output, ["N", None])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 5 if node.op_type == "TreeEnsemble" else 3)]
    model = helper.make_model(helper.make_graph([node], "trees", [x], [y]), opset_imports=opsets, ir_version=10)
    helper.set_model_props(model, {"trtconv.space": "N=1:3:7"})
    return model


def ensemble(modes=(0,), *, dtype=np.float32, targets=1, missing=(0,), splits=None, **attributes):
    generator = np.random.default_rng(1)
    splits = generator.uniform(-1.0, 1.0, 9) if splits is None else np.resize(splits, 9)
    return helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain=DOMAIN, n_targets=targets, tree_roots=ROOTS, nodes_featureids=FEATURES,
        nodes_splits=numpy_helper.from_array(splits.astype(dtype)),
        nodes_modes=numpy_helper.from_array(np.resize(modes, 9).astype(np.uint8)),
        nodes_truenodeids=TRUE, nodes_trueleafs=TRUE_IS_LEAF, nodes_falsenodeids=FALSE, nodes_falseleafs=FALSE_IS_LEAF,
        nodes_missing_value_tracks_true=[int(v) for v in np.resize(missing, 9)],
        leaf_targetids=[i % targets for i in range(11)],
        leaf_weights=numpy_helper.from_array(generator.normal(size=11).astype(dtype)), **attributes,
    )  # fmt: skip


def regressor(**attributes):
    """Two trees, one of a single leaf, and a leaf that votes for both targets."""
    return helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain=DOMAIN, n_targets=2, nodes_treeids=[0, 0, 0, 0, 0, 1],
        nodes_nodeids=[0, 1, 2, 3, 4, 0], nodes_featureids=[0, 3, 0, 0, 0, 0],
        nodes_values=[0.25, -0.5, 0.0, 0.0, 0.0, 0.0], nodes_truenodeids=[1, 3, 0, 0, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0, 0], nodes_modes=["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "LEAF"],
        target_treeids=[0, 0, 0, 0, 1], target_nodeids=[2, 2, 3, 4, 0], target_ids=[0, 1, 0, 1, 1],
        target_weights=[1.0, 2.0, 3.0, 4.0, 5.0], **attributes,
    )  # fmt: skip


def results(model, rows):
    session = InferenceSession(model.SerializeToString())
    return session.run(None, {"x": rows})[0]


def rewritten(model):
    after = onnx.ModelProto()
    after.CopyFrom(model)
    record = apply(after, (RULE,), "tensorrt-rtx")
    assert [e.rule for e in record.entries] == ["tree-ensemble"]
    assert record.entries[0].proof.passed
    assert DOMAIN not in {n.domain for n in after.graph.node}
    return after


@pytest.mark.parametrize("mode", range(4), ids=MODES)
@pytest.mark.parametrize("missing", [(0,), (1,), (0, 1, 1)], ids=["nan false", "nan true", "nan either"])
def test_each_comparison_at_its_splits_and_with_nan(mode, missing):
    splits = [-1.0, -0.5, 0.0, 0.5, 1.0]
    model = model_of(ensemble((mode,), missing=missing, splits=splits))
    rows = np.random.default_rng(2).choice([*splits, 0.7, np.nan, np.inf, -np.inf], (200, 5)).astype(np.float32)
    np.testing.assert_allclose(results(rewritten(model), rows), results(model, rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "node",
    [
        ensemble((0, 1, 2, 3)),
        ensemble(targets=3),
        ensemble(aggregate_function=0),
        ensemble(aggregate_function=2),
        ensemble(aggregate_function=3),
        ensemble(splits=[np.inf, 0.0, -np.inf]),
        regressor(),
        regressor(aggregate_function="AVERAGE"),
        regressor(post_transform="SOFTMAX"),
        regressor(post_transform="LOGISTIC"),
    ],
    ids=["modes", "targets", "mean", "min", "max", "infinite", "regressor", "average", "softmax", "logistic"],
)
def test_what_the_trees_say_together(node):
    model = model_of(node)
    np.testing.assert_allclose(results(rewritten(model), ROWS), results(model, ROWS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", range(4), ids=MODES)
def test_fp64_splits_decide_for_fp32_features_as_before(mode):
    # None of them is an FP32 number; the nearest ones lie on either side.
    splits = np.array([0.1, 0.2, 0.3, 0.7, -0.1])
    model = model_of(ensemble((mode,), dtype=np.float64, splits=splits), TensorProto.DOUBLE, TensorProto.DOUBLE)
    near = splits.astype(np.float32)
    edges = np.concatenate([near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9))])
    rows = np.random.default_rng(3).choice(edges, (200, 5)).astype(np.float64)
    narrow = without_float64(model).model
    np.testing.assert_allclose(results(rewritten(narrow), rows), results(model, rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (ensemble((4,)), "it branches by BRANCH_EQ"),
        (ensemble(splits=[np.nan, 0.0]), "it splits at a NaN"),
        (ensemble(post_transform=1), "differently"),
        (regressor(post_transform="PROBIT"), "PROBIT"),
        (ensemble(targets=3, aggregate_function=2), "MIN"),
        (regressor(base_values=[0.5, -0.5]), "base values"),
    ],
)
def test_what_is_left_as_it_is(node, reason):
    record = apply(model_of(node), (RULE,), "tensorrt-rtx")
    assert not record.entries
    assert reason in record.skipped[0].reason


def test_a_leaf_with_two_weights_for_one_target_is_left():
    node = regressor()
    next(a for a in node.attribute if a.name == "target_ids").ints[:] = [1, 1, 0, 1, 1]
    record = apply(model_of(node), (RULE,), "tensorrt-rtx")
    assert not record.entries
    assert "two weights for one target" in record.skipped[0].reason


def test_nodes_that_are_no_trees_are_left():
    node = ensemble()
    for attribute in node.attribute:
        if attribute.name == "nodes_truenodeids":
            attribute.ints[0] = 0
    record = apply(model_of(node), (RULE,), "tensorrt-rtx")
    assert "no trees" in record.skipped[0].reason


def test_the_room_of_foreign_files_lets_these_operators_in():
    assert set(RULE.ops) == set(REWRITTEN)
