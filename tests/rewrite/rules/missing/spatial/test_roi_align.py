# ruff: noqa: E501 - the text of a model stands on one line
"""RoiAlign where TensorRT is one of its wheels, or RTX."""

from dataclasses import replace

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.spatial.roi_align import RULE

CASES = [
    Case(
        "half pixel",
        "y = RoiAlign<output_height=3,output_width=5,sampling_ratio=2,spatial_scale=0.5>(x, r, i)",
        "float[1,4,H,W] x, float[K,4] r, int64[K] i",
        absent=("RoiAlign",),
        sizes=({"H": 16, "W": 24, "K": 2}, {"H": 17, "W": 23, "K": 5}, {"H": 31, "W": 13, "K": 1}),
        ranges={"r": (-3, 35), "i": (0, 0)},
    ),
    Case(
        "whole pixel",
        'y = RoiAlign<output_height=7,output_width=7,sampling_ratio=2,coordinate_transformation_mode="output_half_pixel">(x, r, i)',
        "float[1,4,H,W] x, float[K,4] r, int64[K] i",
        absent=("RoiAlign",),
        sizes=({"H": 16, "W": 24, "K": 2}, {"H": 17, "W": 23, "K": 5}, {"H": 31, "W": 13, "K": 1}),
        ranges={"r": (-3, 35), "i": (0, 0)},
    ),
    Case(
        "opset 20",
        "y = RoiAlign<output_height=2,output_width=3,sampling_ratio=3>(x, r, i)",
        "float[1,4,H,W] x, float[K,4] r, int64[K] i",
        opset=20,
        absent=("RoiAlign",),
        sizes=({"H": 16, "W": 24, "K": 2}, {"H": 17, "W": 23, "K": 5}, {"H": 31, "W": 13, "K": 1}),
        ranges={"r": (-3, 35), "i": (0, 0)},
    ),
    Case(
        "three images",
        "y = RoiAlign<output_height=4,output_width=4,sampling_ratio=2>(x, r, i)",
        "float[3,4,H,W] x, float[K,4] r, int64[K] i",
        absent=("RoiAlign",),
        sizes=({"H": 16, "W": 24, "K": 2}, {"H": 17, "W": 23, "K": 5}, {"H": 31, "W": 13, "K": 1}),
        ranges={"r": (-3, 35), "i": (0, 2)},
    ),
]
CASES += [replace(CASES[0], name=f"half pixel for {target}", target=target) for target in ("tensorrt==8.6", "tensorrt==10.9")]
NEAR_MISSES = [
    Case(
        "samples by size",
        "y = RoiAlign<output_height=3,output_width=5>(x, r, i)",
        "float[1,4,H,W] x, float[K,4] r, int64[K] i",
        skip="sampling_ratio",
    ),
    Case(
        "maximum",
        'y = RoiAlign<output_height=3,output_width=5,sampling_ratio=2,mode="max">(x, r, i)',
        "float[1,4,H,W] x, float[K,4] r, int64[K] i",
        skip="maximum",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize(("row", "box"), [(0, (2, 0.1, 3, 0.3)), (-1, (2, -0.4, 3, 0.2))], ids=["first", "last"])
def test_a_place_on_the_border_takes_nothing_from_beside_it(row, box):
    case = next(c for c in CASES if c.name == "three images")
    before, after = model_of(case), model_of(case)
    apply(after, (RULE,), case.target)
    runners = runner(before), runner(after)
    for height in range(3, 24):
        for image in range(3):
            x = np.full((3, 4, height, 8), 1e9, np.float32)
            x[image, :, row] = 1e-4
            # Beyond the row, but by less than a pixel: every place is clamped to it.
            boxes = np.array([box], np.float32) + np.float32([0, 1, 0, 1]) * (height if row else 0)
            feed = {"x": x, "r": boxes, "i": np.array([image])}
            for run in runners:
                np.testing.assert_allclose(next(iter(run(feed).values())), 1e-4, rtol=1e-6, err_msg=f"{height} {image}")
