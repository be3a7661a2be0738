"""Ensembles of decision trees as tables that one Gather a level walks through.

The way of Hummingbird's tree traversal (Nakandala et al., "A Tensor Compiler for Unified Machine Learning Prediction
Serving", OSDI 2020, section 4.1): inner nodes and leaves share one numbering, a leaf leads to itself, and after as many
steps as the deepest tree has levels every walk stands at its leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]

DOMAIN = "ai.onnx.ml"
OPERATORS = ("TreeEnsemble", "TreeEnsembleRegressor")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
# By number (ONNX-ML 5, TreeEnsemble).
ALL_MODES = (*MODES, "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass(frozen=True)
class Trees:
    """An ensemble. A walk at node i goes on to `lower[i]` where `x[feature[i]] <= split[i]`, else to `upper[i]`.

    `nan_is_lower` says where a NaN goes. `weights` is [nodes, targets]: what a node adds as the end of a walk. Splits
    are FP32 numbers that decide for every FP32 feature as the operator's own do.
    """

    roots: Array
    feature: Array
    split: Array
    lower: Array
    upper: Array
    nan_is_lower: Array
    weights: Array
    base: Array
    aggregate: str
    transform: str


@dataclass(frozen=True)
class TreeWalk:
    """The nodes in the order of a walk: level by level, the two that follow a node side by side.

    From node i one goes to `following[i] + (x[feature[i]] > split[i])`. A leaf leads to itself: its split is infinite.
    The roots are the first nodes; `nodes` are the numbers in the ensemble. Where `upper_for_nan`, a NaN goes to the
    upper side.
    """

    nodes: Array
    feature: Array
    split: Array
    following: Array
    upper_for_nan: Array
    depth: int


def walk_of(trees: Trees) -> TreeWalk:
    """The walk through all trees. Raises ValueError for trees that are none: a cycle, or many ways to one node."""
    levels, following, count = [trees.roots], [], trees.roots.size
    while True:
        level = levels[-1]
        inner = trees.lower[level] != level
        count += 2 * int(inner.sum())
        if count > 2 * (trees.feature.size + trees.roots.size):
            raise ValueError("its nodes are no trees: several ways lead to one node")
        start = sum(x.size for x in levels)
        own = start - level.size + np.arange(level.size)
        following.append(np.where(inner, start + 2 * (np.cumsum(inner) - 1), own))
        if not inner.any():
            break
        levels.append(np.stack([trees.lower[level[inner]], trees.upper[level[inner]]], axis=1).reshape(-1))
    nodes = np.concatenate(levels)
    leaf = trees.lower[nodes] == nodes
    split = np.where(leaf, np.float32(np.inf), trees.split[nodes])
    upper_for_nan = ~leaf & ~trees.nan_is_lower[nodes]
    return TreeWalk(nodes, trees.feature[nodes], split, np.concatenate(following), upper_for_nan, len(levels) - 1)


def read_trees(node: onnx.NodeProto) -> Trees:
    """The trees of a node. Raises ValueError for what is not supported or not well formed."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    trees = _ensemble(attributes) if node.op_type == "TreeEnsemble" else _regressor(attributes)
    count = trees.feature.size
    for table in (trees.roots, trees.lower, trees.upper):
        if table.size and (table.min() < 0 or table.max() >= count):
            raise ValueError("a tree leads to a node that is not there")
    if np.isnan(trees.split).any():
        raise ValueError("it splits at a NaN")
    if trees.base.any() and trees.weights.shape[1] > 1:
        # ONNX Runtime leaves it out of targets that no tree voted for.
        raise ValueError("it adds base values to several targets")
    if trees.aggregate in ("MIN", "MAX") and trees.weights.shape[1] > 1:
        raise ValueError(f"it takes the {trees.aggregate} for each of several targets")
    if trees.transform not in ("NONE", "LOGISTIC") and (trees.transform != "SOFTMAX" or trees.weights.shape[1] == 1):
        raise ValueError(f"its scores go through {trees.transform}")
    return trees


def _ensemble(attributes: Mapping[str, Any]) -> Trees:
    """`TreeEnsemble` of version 5: inner nodes and leaves are numbered apart."""
    if attributes.get("post_transform", 0):
        raise ValueError("ONNX and ONNX Runtime number the transforms of its scores differently")
    modes = _modes_of(attributes)
    weights = numpy_helper.to_array(attributes["leaf_weights"]).astype(np.float64)
    inner, leaves = len(modes), np.arange(weights.size)
    table = np.zeros((inner + weights.size, int(attributes.get("n_targets", 1))))
    table[inner + leaves, np.asarray(attributes["leaf_targetids"])] = weights
    children = [
        np.asarray(attributes[f"nodes_{side}nodeids"]) + inner * np.asarray(attributes[f"nodes_{side}leafs"], np.int64)
        for side in ("true", "false")
    ]
    return _trees(
        np.asarray(attributes["tree_roots"]),
        np.asarray(attributes["nodes_featureids"]),
        numpy_helper.to_array(attributes["nodes_splits"]),
        modes,
        (children[0], children[1]),
        np.asarray(attributes.get("nodes_missing_value_tracks_true") or [0] * inner, bool),
        table,
        np.zeros(1),
        AGGREGATES[attributes.get("aggregate_function", 1)],
        "NONE",
    )


def _regressor(attributes: Mapping[str, Any]) -> Trees:
    """`TreeEnsembleRegressor`: nodes are named by their tree and number, and a leaf has the mode LEAF."""
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    index = {key: i for i, key in enumerate(keys)}
    modes = _modes_of(attributes)
    leaf = np.array([m == "LEAF" for m in modes])
    children = []
    for side in ("true", "false"):
        pairs = zip((tree for tree, _ in keys), attributes[f"nodes_{side}nodeids"], strict=True)
        children.append(np.array([i if leaf[i] else index.get(p, -1) for i, p in enumerate(pairs)]))
    table = np.zeros((len(keys), int(attributes.get("n_targets", 1))))
    rows = [index[key] for key in zip(attributes["target_treeids"], attributes["target_nodeids"], strict=True)]
    votes = list(zip(rows, attributes["target_ids"], strict=True))
    if len(set(votes)) < len(votes):
        # ONNX Runtime takes the first of them where there is one target, and all where there are several.
        raise ValueError("a leaf has two weights for one target")
    np.add.at(table, (np.asarray(rows), np.asarray(attributes["target_ids"])), _values(attributes, "target_weights"))
    base = _values(attributes, "base_values")
    order = np.argsort(leaf, kind="stable")
    rank = np.argsort(order)
    inner = order[: int((~leaf).sum())]
    if (children[0] < 0).any() or (children[1] < 0).any():
        raise ValueError("a tree leads to a node that is not there")
    return _trees(
        rank[[i for i, (_, number) in enumerate(keys) if number == 0]],
        np.asarray(attributes["nodes_featureids"])[inner],
        _values(attributes, "nodes_values")[inner],
        [modes[i] for i in inner],
        (rank[children[0][inner]], rank[children[1][inner]]),
        np.asarray(attributes.get("nodes_missing_value_tracks_true") or [0] * len(keys), bool)[inner],
        table[order],
        base if base.size else np.zeros(1),
        attributes.get("aggregate_function", b"SUM").decode(),
        attributes.get("post_transform", b"NONE").decode(),
    )


def _modes_of(attributes: Mapping[str, Any]) -> list[str]:
    """How each node branches, in the words of the older operators; version 5 numbers them."""
    modes = attributes["nodes_modes"]
    if isinstance(modes, onnx.TensorProto):
        return [ALL_MODES[m] if m < len(ALL_MODES) else f"mode {m}" for m in numpy_helper.to_array(modes).tolist()]
    return [m.decode() for m in modes]


def _strict(modes: list[str]) -> Array:
    """Where a node parts the numbers below its split from the split itself."""
    return np.array([m in ("BRANCH_LT", "BRANCH_GTE") for m in modes], bool)


def _values(attributes: Mapping[str, Any], name: str) -> Array:
    """An attribute as floats, or as a tensor of doubles."""
    tensor = attributes.get(f"{name}_as_tensor")
    values: Array = np.asarray(attributes.get(name, ())) if tensor is None else numpy_helper.to_array(tensor)
    return values.astype(np.float64)


def _trees(
    roots: Array,
    feature: Array,
    splits: Array,
    modes: list[str],
    children: tuple[Array, Array],
    missing_is_true: Array,
    weights: Array,
    base: Array,
    aggregate: str,
    transform: str,
) -> Trees:
    """The tables of inner nodes, which come first, with the leaves behind them."""
    other = sorted(set(modes) - set(MODES))
    if other:
        raise ValueError(f"it branches by {', '.join(other)}")
    inner, count = len(modes), len(weights)
    leaves = np.arange(inner, count)
    swapped = np.array([m in ("BRANCH_GTE", "BRANCH_GT") for m in modes], bool)
    lower, upper = np.where(swapped, children[1], children[0]), np.where(swapped, children[0], children[1])
    if ((lower == np.arange(inner)) | (upper == np.arange(inner))).any():
        raise ValueError("its nodes are no trees: one leads to itself")
    padding = np.zeros(count - inner)
    return Trees(
        roots.astype(np.int64),
        np.concatenate([feature, padding]).astype(np.int64),
        np.concatenate([lower_bounds(splits, modes), padding]).astype(np.float32),
        np.concatenate([lower, leaves]).astype(np.int64),
        np.concatenate([upper, leaves]).astype(np.int64),
        np.concatenate([missing_is_true != swapped, padding]).astype(bool),
        weights.astype(np.float32),
        base.astype(np.float32),
        aggregate,
        transform,
    )


def lower_bounds(splits: Array, modes: list[str]) -> Array:
    """For each split the FP32 number b with which `x <= b` holds for the FP32 numbers that are lower by its mode.

    `x <= t` and `x > t` part at the largest FP32 number that is at most t, `x < t` and `x >= t` below t.
    """
    nearest = splits.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    beyond = np.where(_strict(modes), nearest.astype(np.float64) >= splits, nearest.astype(np.float64) > splits)
    bounds: Array = np.where(beyond, below, nearest)
    return bounds


def narrow_splits(node: onnx.NodeProto) -> None:
    """Give a node FP32 splits in place of FP64 ones that send every FP32 feature where the FP64 ones send it."""
    by_name = {a.name: a for a in node.attribute}
    attribute = by_name.get("nodes_splits" if node.op_type == "TreeEnsemble" else "nodes_values_as_tensor")
    if attribute is None or attribute.t.data_type != onnx.TensorProto.DOUBLE:
        return
    modes = _modes_of({"nodes_modes": helper.get_attribute_value(by_name["nodes_modes"])})
    bounds = lower_bounds(numpy_helper.to_array(attribute.t), modes)
    # `x < b` holds for the same FP32 numbers as `x <= the one before b`.
    bounds = np.where(_strict(modes), np.nextafter(bounds, np.float32(np.inf)), bounds)
    tensor = numpy_helper.from_array(bounds.astype(np.float64), attribute.t.name)
    attribute.t.CopyFrom(tensor)
