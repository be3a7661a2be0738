# ruff: noqa: E501 - the text of a model stands on one line
"""ONNX Runtime's attention."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.packed_attention import RULE

SIZES = ({"N": 2, "T": 4, "S": 3, "P": 2}, {"N": 1, "T": 7, "S": 5, "P": 1}, {"N": 3, "T": 1, "S": 2, "P": 3})
W = "float[4,12] w = {-1.04, 0.117, 0.204, 0.0741, 0.388, -0.377, 0.413, 0.417, -0.0823, 0.319, 0.164, 0.462, 0.267, -0.374, 0.593, 0.465, 0.0581, 1.05, 0.125, 0.248, -0.193, -0.408, 0.637, -0.595, 0.551, -0.1, 0.2, 0.3, -0.4, 0.5, -0.6, 0.7, 0.15, 0.25, -0.35, 0.45, 0.55, -0.65, 0.75, 0.85, -0.95, 0.05, 0.11, 0.12, -0.13, 0.14, 0.16, -0.17}, float[12] b = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 0.15, -0.25, 0.35}"
X = {"inputs": "float[N,T,4] x, int32[N,T] m", "outputs": "float[a,b2,c] y", "sizes": SIZES, "constants": W, "ranges": {"m": (0, 1)}}
PAST = {**X, "inputs": "float[N,T,4] x, float[2,N,2,P,2] past", "outputs": "float[a,b2,c] y, float[d,e,f,g,h] present"}
CROSS = {"inputs": "float[N,T,4] q, float[N,S,4] k, float[N,S,6] v, int32[N,S] m, float[1,2,T,S] r", "outputs": "float[a,b2,c] y", "sizes": SIZES,
         "constants": "float[14] b = {-1.1, -0.0078, -0.418, -0.653, 0.748, -0.583, 0.05, -0.109, -0.236, -0.265, 0.907, -0.289, 0.241, -0.459}", "ranges": {"m": (0, 1)}}  # fmt: skip
CACHE = {**CROSS, "inputs": "float[N,T,4] q, float[N,S,4] k, float[N,S,4] v, float[N,2,P,2] pk, float[N,2,P,2] pv", "outputs": "float[a,b2,c] y, float[d,e,f,g] k2, float[h,i,j,l] v2", "constants": "", "ranges": {}}
ATTENTION, HEADS = "com.microsoft.Attention<num_heads=2", "com.microsoft.MultiHeadAttention<num_heads=2"
CASES = [
    Case("plain", f"y = {ATTENTION}>(x, w, b)", absent=("Attention",), **X),
    Case("a mask of tokens", f"y = {ATTENTION}>(x, w, b, m)", **X),
    Case("another low number", f"y = {ATTENTION}, mask_filter_value=-3.4e38>(x, w, b, m)", **X),
    Case("causal", f"y = {ATTENTION}, unidirectional=1>(x, w, b)", **X),
    Case("sizes", f"y = {ATTENTION}, qkv_hidden_sizes=[2, 2, 8], scale=0.3>(x, w, b)", **X),
    Case("past", f"y, present = {ATTENTION}, unidirectional=1>(x, w, b, , past)", **PAST),
    Case("crossed", f"y = {HEADS}>(q, k, v)", absent=("MultiHeadAttention",), **CROSS),
    Case("crossed with all", f"y = {HEADS}, scale=0.4>(q, k, v, b, m, r)", **CROSS),
    Case("a cache", f"y, k2, v2 = {HEADS}>(q, k, v, , , , pk, pv)", **CACHE),
]
NEAR_MISSES = [
    Case("turned", f"y = {ATTENTION}, do_rotary=1>(x, w, b)", skip="turns its queries", **X),
    Case("lengths", f"l = ReduceSum<keepdims=0>(m, one) y = {ATTENTION}>(x, w, b, l)", skip="lengths", **{**X, "constants": W + ", int64[1] one = {1}"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
