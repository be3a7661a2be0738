"""Attention in FP32."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.attention import RULE

CASES = [
    Case(
        "four axes",
        "y = Attention(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        opset=23,
        gone=("Attention",),
    ),
    Case(
        "causal",
        "y = Attention<is_causal=1>(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        opset=23,
        gone=("Attention",),
    ),
    Case(
        "scale and mask",
        "y = Attention<scale=0.3>(q, k, v, m)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v, float[H,W] m",
        opset=23,
        gone=("Attention",),
    ),
    Case(
        "boolean mask",
        "y = Attention(q, k, v, m)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v, bool[N,1,H,W] m",
        opset=23,
        gone=("Attention",),
        edit=None,
    ),
    Case(
        "heads in the last axis",
        "y = Attention<q_num_heads=4,kv_num_heads=2>(q, k, v)",
        "float[N,H,32] q, float[N,W,16] k, float[N,W,16] v",
        "float[a,b,c] y",
        opset=23,
        gone=("Attention",),
    ),
]
NEAR_MISSES = [
    Case(
        "half precision has a kernel",
        "y = Attention(q, k, v)",
        "float16[N,4,H,8] q, float16[N,4,W,8] k, float16[N,4,W,8] v",
        "float16[a,b,c,d] y",
        opset=23,
    ),
    Case(
        "scores are given",
        "y, a, c, z = Attention(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        "float[a,b,c,d] y, float[a,b,c,e] z",
        opset=23,
        skip="cache",
    ),
    Case(
        "a window",
        "y = Attention<is_causal=1, left_window_size=2>(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        opset=25,
        skip="window",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
