# ruff: noqa: E501 - the text of a model stands on one line
"""Layer normalisations as plugin nodes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from tests.rewrite.rules.faster.test_patch_products import constants
from trtconv.rewrite.rules.plugin.plugin_layer_norm import RULE

ROWS, OUT = "float[N,5,6] x", "float[N,5,6] y"
W = constants((6,), (6,))
NAMES = 'plugin_version="1", plugin_namespace="trtconv"'
BEFORE = f"p = trtconv.TrtconvLayerNorm<{NAMES}>(x, w, w) "
AFTER = f" y = trtconv.TrtconvLayerNorm<{NAMES}>(n, w, w)"
OLD = {"target": "tensorrt==8.6", "absent": ("LayerNormalization",), "present": ("TrtconvLayerNorm",)}
MISS = {"target": "tensorrt==8.6"}
CASES = [
    Case("rows", f"{BEFORE} n = LayerNormalization(p, w, b) {AFTER}", ROWS, OUT, constants=W, **OLD),
    Case("without a shift", f"{BEFORE} n = LayerNormalization<epsilon=0.001>(p, w) {AFTER}", ROWS, OUT, constants=W, **OLD),
    Case("the last axis by number", f"{BEFORE} n = LayerNormalization<axis=3>(p, w, b) {AFTER}", "float[N,3,2,6] x", "float[N,3,2,6] y", constants=W, **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("behind another layer", f"p = Relu(x) n = LayerNormalization(p, w, b) {AFTER}", ROWS, OUT, constants=W, skip="between plugin", **MISS),
    Case("before another layer", f"{BEFORE} n = LayerNormalization(p, w, b) y = Relu(n)", ROWS, OUT, constants=W, skip="between plugin", **MISS),
    Case("an output", f"{BEFORE} y = LayerNormalization(p, w, b)", ROWS, OUT, constants=W, skip="between plugin", **MISS),
    Case("two axes", "y = LayerNormalization<axis=1>(x, w, b)", ROWS, OUT, constants=constants((5, 6), (5, 6)), **MISS),
    Case("the mean is used", "y, m = LayerNormalization(x, w, b)", ROWS, f"{OUT}, float[N,5,1] m", constants=W, skip="more than", **MISS),
    Case("one scale for all", "y = LayerNormalization(x, w)", ROWS, OUT, constants=constants((1,)), skip="each channel", **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
