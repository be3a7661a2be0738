# ruff: noqa: E501 - the text of a model stands on one line
"""Resizes of several axes of which one may keep its size, for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.resizing.resize_axes import RULE

EIGHT = {"target": "tensorrt==8.6", "sizes": ({"N": 2, "H": 3, "W": 9}, {"N": 1, "H": 8, "W": 7}, {"N": 3, "H": 5, "W": 2})}
LINEAR = 'mode="linear", coordinate_transformation_mode='
SCALES = "float[4] s = {1.0, 1.0, 1.3, 2.6}"
CASES = [
    Case(mode, f'y = Resize<{LINEAR}"{mode}">(x, , s)', constants=SCALES, **EIGHT)
    for mode in ("half_pixel", "pytorch_half_pixel", "asymmetric")
]
CASES.append(Case("1.1", f'y = Resize<{LINEAR}"half_pixel">(x, , s)', constants="float[4] s = {1.0, 1.0, 0.7, 1.1}", **EIGHT))
NEAR_MISSES = [
    Case("whole numbers", f'y = Resize<{LINEAR}"half_pixel">(x, , s)', constants="float[4] s = {1.0, 1.0, 2.0, 3.0}", **EIGHT),
    Case("one axis", f'y = Resize<{LINEAR}"half_pixel">(x, , s)', constants="float[4] s = {1.0, 1.0, 1.0, 1.3}", **EIGHT),
    Case("corners", f'y = Resize<{LINEAR}"align_corners">(x, , s)', constants=SCALES, **EIGHT),
    Case("nearest", 'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric">(x, , s)', constants=SCALES, **EIGHT),
    Case("smaller", f'y = Resize<{LINEAR}"half_pixel">(x, , s)', constants="float[4] s = {1.0, 1.0, 0.9, 0.6}", **EIGHT),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
