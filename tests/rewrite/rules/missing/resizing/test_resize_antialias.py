"""Antialiased Resize."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.resizing.resize_antialias import RULE

CASES = [
    Case(
        "down by size",
        'y = Resize<mode="linear",antialias=1>(x, , , s)',
        "float[2,8,H,W] x",
        constants="int64[4] s = {2,8,9,11}",
        opset=18,
        absent=("Resize",),
    ),
    Case(
        "up and down by scales",
        'y = Resize<mode="linear",antialias=1>(x, , s)',
        constants="float[4] s = {1,1,0.6,1.7}",
        opset=18,
        absent=("Resize",),
    ),
    Case(
        "two axes",
        'y = Resize<mode="linear",antialias=1,axes=[2,3]>(x, , , s)',
        constants="int64[2] s = {7,30}",
        opset=18,
        absent=("Resize",),
    ),
    Case(
        "cubic",
        'y = Resize<mode="cubic",antialias=1,cubic_coeff_a=-0.5>(x, , , s)',
        "float[2,8,H,W] x",
        constants="int64[4] s = {2,8,9,11}",
        opset=18,
        absent=("Resize",),
    ),
    Case(
        "cut at the border",
        'y = Resize<mode="linear",antialias=1,exclude_outside=1>(x, , s)',
        constants="float[4] s = {1,1,0.6,1.7}",
        opset=18,
        absent=("Resize",),
    ),
]
NEAR_MISSES = [
    Case("no antialiasing", 'y = Resize<mode="linear">(x, , s)', constants="float[4] s = {1,1,0.6,1.7}", opset=18),
    Case(
        "corners aligned",
        'y = Resize<mode="linear",antialias=1,coordinate_transformation_mode="align_corners">(x, , s)',
        constants="float[4] s = {1,1,0.6,1.7}",
        opset=18,
        skip="half_pixel",
    ),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
