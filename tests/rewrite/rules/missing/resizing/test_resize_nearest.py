# ruff: noqa: E501 - the text of a model stands on one line
"""Nearest Resize for TensorRT 8.6."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.resizing.resize_nearest import RULE, whole_ratio

CASES = (
    [
        Case(
            "scale 1.7",
            'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , s)',
            constants="float[4] s = {1,1,1.7,1.7}",
            absent=("Resize",),
            target="tensorrt==8.6",
        ),
        Case(
            "half pixel",
            'y = Resize<mode="nearest">(x, , s)',
            constants="float[4] s = {1,1,0.6,2.3}",
            absent=("Resize",),
            target="tensorrt==8.6",
        ),
        Case(
            "by sizes",
            'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , , s)',
            "float[2,8,H,W] x",
            constants="int64[4] s = {2,8,19,21}",
            absent=("Resize",),
            target="tensorrt==8.6",
        ),
    ]
    + [
        Case(
            f"scale {scale} in whole numbers",
            'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , s)',
            constants=f"float[4] s = {{1,1,{scale},{scale}}}",
            absent=("Resize", "Floor", "Cast"),
            target="tensorrt==8.6",
        )
        for scale in ("0.33333334", "0.5", "0.4", "2.5", "0.75")
    ]
    + [
        Case(
            f"{mode}, {rounding}",
            f'y = Resize<mode="nearest",coordinate_transformation_mode="{mode}",nearest_mode="{rounding}">(x, , s)',
            constants="float[4] s = {1,1,1.7,0.6}",
            absent=("Resize",),
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
            absent=("Resize",),
            target="tensorrt==8.6",
        ),
    ]
)
CASES.append(
    Case(
        "sizes that FP32 rounds up",
        'y = Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x, , s)',
        constants="float[4] s = {1,1,1.9,1.9}",
        absent=("Resize",),
        target="tensorrt==8.6",
        sizes=({"N": 1, "H": 10, "W": 20}, {"N": 2, "H": 30, "W": 9}, {"N": 1, "H": 11, "W": 40}),
    )
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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize(("scale", "high", "ratio"), [
    (0.5, 4096, (1, 2)), (0.3333333432674408, 4096, (1, 3)), (0.3333333, 4096, None), (0.1234567, 4096, None),
    (0.5, 1 << 30, None), (float(np.float32(1.9)), 64, (19, 10)), (float(np.float32(0.7)), 64, (7, 10)),
])  # fmt: skip
def test_sizes_as_whole_numbers_at_every_size(scale, high, ratio):
    result = whole_ratio(scale, 1, high)
    assert result == ratio
    if result:
        assert all(int(np.float32(n) * np.float32(scale)) == n * result[0] // result[1] for n in range(1, high + 1))
