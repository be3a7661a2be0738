"""RotaryEmbedding before TensorRT 11."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.rotary_embedding import RULE

CASES = [
    Case(
        "four axes",
        "y = RotaryEmbedding(x, c, s)",
        "float[N,3,H,8] x, float[N,H,4] c, float[N,H,4] s",
        opset=23,
        absent=("RotaryEmbedding",),
        target="tensorrt==10",
    ),
    Case(
        "interleaved",
        "y = RotaryEmbedding<interleaved=1>(x, c, s)",
        "float[N,3,H,8] x, float[N,H,4] c, float[N,H,4] s",
        opset=23,
        absent=("RotaryEmbedding",),
        target="tensorrt==10",
    ),
    Case(
        "a part of the head, positions",
        "y = RotaryEmbedding<rotary_embedding_dim=4>(x, c, s, p)",
        "float[N,3,H,8] x, float[50,2] c, float[50,2] s, int64[N,H] p",
        opset=23,
        ranges={"p": (0, 49)},
        absent=("RotaryEmbedding",),
        target="tensorrt==10",
    ),
    Case(
        "heads in the last axis",
        "y = RotaryEmbedding<num_heads=2>(x, c, s)",
        "float[N,H,16] x, float[N,H,4] c, float[N,H,4] s",
        "float[a,b,c] y",
        opset=23,
        absent=("RotaryEmbedding",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case(
        "head not known",
        "y = RotaryEmbedding(x, c, s)",
        "float[N,3,H,D] x, float[N,H,4] c, float[N,H,4] s",
        opset=23,
        target="tensorrt==8.6",
        skip="head",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
