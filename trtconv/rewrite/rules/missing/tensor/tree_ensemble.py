"""Ensembles of decision trees (`ai.onnx.ml`) as one walk through tables."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, INT64, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.trees import DOMAIN, OPERATORS, Trees, TreeWalk, read_trees, walk_of

# Nodes of the result: up to nine for each level.
DEEPEST = 64


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a whole ensemble; sets of members, equality and some transforms of scores are left."""
    try:
        trees = read_trees(node.proto)
        walk = walk_of(trees)
    except (KeyError, ValueError, IndexError) as error:
        return Skip(f"{error}" if type(error) is ValueError else "its attributes do not fit each other")
    if not 0 < walk.depth <= DEEPEST:
        return Skip(f"its deepest tree has {walk.depth} levels")
    value, splits = node.inputs[0], trees.split
    splits = splits[np.isfinite(splits)]
    span = (float(splits.min(initial=0.0)) - 1.0, float(splits.max(initial=0.0)) + 1.0)
    note = f"{trees.roots.size} trees of up to {walk.depth} levels"
    return Found(
        (node,), lambda g: _scores(g, _ends(g, value, trees.roots.size, walk), trees, walk), {value: span}, note
    )


def _ends(g: Replacement, value: Value, count: int, walk: TreeWalk) -> Value:
    """The leaves at which `count` trees end: [rows, trees]."""
    features = value if g.dtype(value) == FLOAT else g.cast(value, FLOAT)
    # No comparison is true of a NaN, so it goes to the lower side by itself.
    missing = walk.upper_for_nan.astype(np.int64)
    tables = [walk.feature, walk.split, walk.following, *([missing] if missing.any() else [])]
    # At the roots each tree looks at one column, whatever the row.
    feature, *rest = (t[:count] for t in tables)
    x = g.gather(features, feature, axis=1)
    constants = [g.const(t) for t in tables]
    position: Value = ""
    for level in range(walk.depth):
        if level:
            feature, *rest = (g.gather(t, position) for t in constants)
            x = g.gather_elements(features, feature, axis=1)
        split, following, *here = rest
        upper = g.cast(g.greater(x, split), INT64)
        position = g.add(g.where(g.op("IsNaN", x), here[0], upper) if here else upper, following)
    return position


def _scores(g: Replacement, position: Value, trees: Trees, walk: TreeWalk) -> Value:
    """What the trees say together: [rows, targets]."""
    weights = trees.weights[walk.nodes]
    if weights.shape[1] == 1:
        kind = {"AVERAGE": "ReduceMean", "SUM": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}[trees.aggregate]
        scores = g.reduce(kind, g.gather(g.const(weights[:, 0]), position), (1,))
    else:
        kind = "ReduceMean" if trees.aggregate == "AVERAGE" else "ReduceSum"
        scores = g.reduce(kind, g.gather(g.const(weights), position), (1,), keepdims=False)
    if trees.base.any():
        scores = g.add(scores, g.const(trees.base))
    if trees.transform == "LOGISTIC":
        return g.sigmoid(scores)
    return g.softmax(scores, axis=-1) if trees.transform == "SOFTMAX" else scores


RULE = Rule(
    name="tree-ensemble",
    why="No TensorRT has ensembles of decision trees; one Gather a level walks through all trees at once.",
    ops=tuple(f"{DOMAIN}::{name}" for name in OPERATORS),
    find=find,
    before="TreeEnsemble(x), 300 trees of up to 11 levels",
    after="11 x (i = following[i] + (x[feature[i]] > split[i])); ReduceSum(weight[i])",
)
