"""Reductions over no axes."""

import dataclasses

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.reduce_nothing import RULE

EIGHT = {"target": "tensorrt==8.6"}


def empty(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.int64), "none"))


CASES = [
    Case("empty axes", "y = ReduceSum<noop_with_empty_axes=1>(x, none)", edit=empty, absent=("ReduceSum",), **EIGHT),
    Case("in the middle", "s = ReduceSum<noop_with_empty_axes=1,keepdims=0>(x, none) y = Relu(s)", edit=empty, **EIGHT),
    Case(
        "maximum",
        "y = ReduceMax<noop_with_empty_axes=1>(x, none)",
        edit=empty,
        opset=18,
        absent=("ReduceMax",),
        **EIGHT,
    ),
]
NEAR_MISSES = [
    Case("all axes", "y = ReduceSum(x)", **EIGHT),
    Case("one axis", "y = ReduceSum<noop_with_empty_axes=1>(x, a)", constants="int64[1] a = {2}", **EIGHT),
    Case(
        "computed axes",
        "s = Shape(x) e = Slice(s, a, b) y = ReduceSum<noop_with_empty_axes=1>(x, e)",
        constants="int64[1] a = {2}, int64[1] b = {2}",
        skip="computed",
        **EIGHT,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_other_targets_read_it():
    with pytest.raises(AssertionError, match="not needed"):
        check_case(RULE, dataclasses.replace(CASES[0], target="tensorrt-rtx"))
