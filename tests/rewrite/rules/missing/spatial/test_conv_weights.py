# ruff: noqa: E501 - the text of a model stands on one line
"""Conv with weights whose sizes move."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.conv_weights import RULE

SIZES = (
    {"N": 2, "H": 12, "W": 9, "P": 3, "Q": 5},
    {"N": 1, "H": 11, "W": 13, "P": 2, "Q": 3},
    {"N": 3, "H": 17, "W": 8, "P": 5, "Q": 1},
)
S = {"sizes": SIZES, "absent": ("Conv",)}
X = "float[N,8,H,W] x, "
CASES = [
    Case("filters from the batch", "y = Conv<kernel_shape=[3,3],pads=[1,1,1,1]>(x, w)", X + "float[N,8,3,3] w", **S),
    Case("window that moves", "y = Conv(x, w)", X + "float[4,8,P,Q] w", **S),
    Case("a template per channel", "y = Conv<group=8>(x, w)", X + "float[8,1,P,Q] w", **S),
    Case("groups, strides, dilations, bias", "y = Conv<group=2,strides=[2,1],dilations=[1,2],pads=[2,1,1,2]>(x, w, v)", X + "float[6,4,P,2] w, float[6] v", **S),
    Case("computed filters", "q = Relu(w) y = Conv(x, q)", X + "float[N,8,P,P] w", **S),
    Case("channels that are not known", "t = Transpose<perm=[1,0,2,3]>(x) y = Conv<group=1>(t, w)", "float[N,8,H,W] x, float[5,N,P,Q] w", **S),
    Case("line", "y = Conv<strides=[2]>(x, w)", "float[N,8,H] x, float[4,8,P] w", "float[a,b,c] y", **S),
    Case("volume", "y = Conv(x, w)", "float[N,2,7,H,W] x, float[3,2,2,P,1] w", "float[a,b,c,d,e] y", **S),
    Case("8.6", "y = Conv(x, w)", X + "float[4,8,P,Q] w", target="tensorrt==8.6", **S),
]  # fmt: skip
NEAR_MISSES = [
    Case("constant weights", "y = Conv(x, w)", "float[N,1,H,W] x", constants="float[1,1,1,1] w = {2.0}"),
    Case("weights of known size", "y = Conv(x, w)", X + "float[4,8,3,3] w"),
    Case("weights of known size, bias", "y = Conv(x, w, v)", X + "float[4,8,3,3] w, float[4] v"),
    Case("automatic", 'y = Conv<auto_pad="SAME_UPPER">(x, w)', X + "float[4,8,P,Q] w", sizes=SIZES, skip="automatic"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
