# ruff: noqa: E501 - the text of a model stands on one line
"""Nearest Resize for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.resize_nearest import RULE

CASES = (
    [
        Case(
            "scale 1.7",
            'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , s)',
            constants="float[4] s = {1,1,1.7,1.7}",
            gone=("Resize",),
            target="tensorrt==8.6",
        ),
        Case(
            "half pixel",
            'y = Resize<mode="nearest">(x, , s)',
            constants="float[4] s = {1,1,0.6,2.3}",
            gone=("Resize",),
            target="tensorrt==8.6",
        ),
        Case(
            "by sizes",
            'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , , s)',
            "float[2,8,H,W] x",
            constants="int64[4] s = {2,8,19,21}",
            gone=("Resize",),
            target="tensorrt==8.6",
        ),
    ]
    + [
        Case(
            f"{mode}, {rounding}",
            f'y = Resize<mode="nearest",coordinate_transformation_mode="{mode}",nearest_mode="{rounding}">(x, , s)',
            constants="float[4] s = {1,1,1.7,0.6}",
            gone=("Resize",),
            target="tensorrt==8.6",
        )
        for mode, rounding in (
            ("pytorch_half_pixel", "floor"),
            ("pytorch_half_pixel", "round_prefer_ceil"),
            ("align_corners", "floor"),
            ("align_corners", "ceil"),
            ("tf_half_pixel_for_nn", "floor"),
        )
    ]
    + [
        Case(
            "one row by sizes",
            'y = Resize<mode="nearest",coordinate_transformation_mode="pytorch_half_pixel",nearest_mode="floor">(x, , , s)',
            "float[2,8,H,W] x",
            constants="int64[4] s = {2,8,1,21}",
            gone=("Resize",),
            target="tensorrt==8.6",
        ),
    ]
)
NEAR_MISSES = [
    Case(
        "scale 2",
        'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , s)',
        constants="float[4] s = {1,1,2,2}",
        target="tensorrt==8.6",
    ),
    Case(
        "cropped",
        'y = Resize<mode="nearest",coordinate_transformation_mode="tf_crop_and_resize">(x, r, s)',
        constants="float[4] s = {1,1,1.7,1.7}, float[8] r = {0,0,0,0,1,1,0.5,0.5}",
        target="tensorrt==8.6",
        skip="tf_crop",
    ),
    Case("linear", 'y = Resize<mode="linear">(x, , s)', constants="float[4] s = {1,1,1.7,1.7}", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
