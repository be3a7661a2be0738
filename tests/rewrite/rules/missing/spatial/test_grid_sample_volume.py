"""GridSample of volumes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.grid_sample_volume import RULE

SIZES = (
    {"N": 2, "D": 4, "H": 6, "W": 8, "P": 7},
    {"N": 1, "D": 5, "H": 7, "W": 3, "P": 5},
    {"N": 3, "D": 3, "H": 9, "W": 11, "P": 9},
)
V = {"inputs": "float[N,3,D,H,W] x, float[N,P,H,5,3] g", "outputs": "float[a,b,c,d,e] y", "opset": 20, "sizes": SIZES,
     "target": "tensorrt==8.6", "ranges": {"g": (-1.7, 1.7)}, "absent": ("GridSample",)}  # fmt: skip
CASES = [
    Case(
        f"{mode}, {padding}, corners {corners}",
        f'y = GridSample<mode="{mode}",padding_mode="{padding}",align_corners={corners}>(x, g)',
        **V,
    )
    for mode in ("linear", "nearest")
    for padding in ("zeros", "border", "reflection")
    for corners in (0, 1)
] + [
    Case("defaults", "y = GridSample(x, g)", **V),
    Case("11", "y = GridSample(x, g)", **(V | {"target": "tensorrt==11"})),
]
NEAR_MISSES = [
    Case("an image", "y = GridSample(x, g)", "float[N,8,H,W] x, float[N,5,W,2] g", opset=20, target="tensorrt==8.6"),
    Case("cubic", 'y = GridSample<mode="cubic">(x, g)', **(V | {"absent": ()}), skip="cubic"),
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
