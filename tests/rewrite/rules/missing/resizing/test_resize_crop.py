# ruff: noqa: E501 - the text of a model stands on one line
"""Regions as TensorFlow crops and resizes them."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.resizing.resize_crop import RULE

ROI = "float[8] roi = {0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.9, 1.3}, int64[4] s = {2, 8, 5, 7}, int64[4] one = {2, 8, 1, 1}"
X = {"inputs": "float[2,8,H,W] x", "constants": ROI, "absent": ("Resize",)}
MODE = "coordinate_transformation_mode=\"tf_crop_and_resize\""
CASES = [
    Case("linear", f"y = Resize<mode=\"linear\",{MODE},extrapolation_value=-1.5>(x, roi, , s)", **X),
    Case("one pixel", f"y = Resize<mode=\"linear\",{MODE}>(x, roi, , one)", **X),
    Case("nearest", f"y = Resize<mode=\"nearest\",{MODE},nearest_mode=\"floor\">(x, roi, , s)", **X),
]
NEAR_MISSES = [
    Case("another mode", "y = Resize<mode=\"linear\">(x, , , s)", **X),
    Case("scales", f"y = Resize<mode=\"linear\",{MODE}>(x, roi, k)", "float[2,8,H,W] x", constants=ROI + ", float[4] k = {1.0, 1.0, 2.0, 2.0}", skip="scales"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
