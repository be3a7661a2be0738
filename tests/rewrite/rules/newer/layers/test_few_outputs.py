# ruff: noqa: E501 - the text of a model stands on one line
"""Convolutions that give few channels, a block of pixels at a time."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.few_outputs import RULE

OLD = {"target": "tensorrt==8.6", "present": ("DepthToSpace",)}


def weights(*shape):
    count = int(np.prod(shape))
    values = ",".join(f"{v:.4f}" for v in np.random.default_rng(0).standard_normal(count))
    return f"float[{','.join(map(str, shape))}] w = {{{values}}}"


BIAS = "float[3] b = {0.1,-0.2,0.3}"
CASES = [
    Case("nine by nine", "y = Conv(x, w, b)", "float[N,16,H,W] x", constants=f"{weights(3, 16, 9, 9)}, {BIAS}", **OLD),
    Case("with pads", "y = Conv<pads=[3,2,3,4]>(x, w)", "float[N,16,H,W] x", constants=weights(1, 16, 7, 7), **OLD),
    Case("of fixed size", "y = Conv<pads=[3,3,3,3]>(x, w)", "float[N,16,8,12] x", constants=weights(2, 16, 7, 7), absent=("Slice",), **OLD),
    Case("of a fixed size that ends in a block", "y = Conv(x, w)", "float[N,16,15,17] x", constants=weights(4, 16, 7, 8), **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("many channels", "y = Conv(x, w)", "float[N,16,9,9] x", "float[a,b,c,d] y", constants=weights(5, 16, 7, 7), target="tensorrt==8.6"),
    Case("a small kernel", "y = Conv(x, w)", "float[N,16,9,9] x", "float[a,b,c,d] y", constants=weights(3, 16, 5, 5), target="tensorrt==8.6"),
    Case("few inputs", "y = Conv(x, w)", "float[N,3,9,9] x", "float[a,b,c,d] y", constants=weights(3, 3, 7, 7), target="tensorrt==8.6"),
    Case("strides", "y = Conv<strides=[2,1]>(x, w)", "float[N,16,9,9] x", "float[a,b,c,d] y", constants=weights(3, 16, 7, 7), target="tensorrt==8.6"),
    Case("groups", "y = Conv<group=2>(x, w)", "float[N,32,9,9] x", "float[a,b,c,d] y", constants=weights(4, 16, 7, 7), target="tensorrt==8.6"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
