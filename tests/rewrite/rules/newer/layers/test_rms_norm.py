"""RMSNormalization before TensorRT 11."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.rms_norm import RULE

CASES = [
    Case(
        "last axis",
        "y = RMSNormalization(x, s)",
        "float[N,8,H,5] x",
        opset=23,
        constants="float[5] s = {2.0,1,3,4,5}",
        absent=("RMSNormalization",),
        target="tensorrt==10",
    ),
    Case(
        "two axes",
        "y = RMSNormalization<axis=-2,epsilon=0.01>(x, s)",
        "float[N,H,4,5] x",
        opset=23,
        constants="float[5] s = {2.0,1,3,4,5}",
        absent=("RMSNormalization",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case(
        "a layer norm",
        "y = LayerNormalization<axis=-1>(x, s)",
        "float[N,8,H,5] x",
        constants="float[5] s = {2.0,1,3,4,5}",
        target="tensorrt==8.6",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
