# ruff: noqa: E501 - the text of a model stands on one line
"""Reductions over what a mask selects."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.masked_reduce import RULE

C = "float z = {-9.0}"
PICK = "m = Greater(x, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) g = GatherND(x, t) "
CASES = [
    Case("sum", PICK + "y = ReduceSum<keepdims=0>(g)", outputs="float y", constants=C, gone=("NonZero", "GatherND")),
    Case("mean", PICK + "y = ReduceMean<keepdims=0>(g)", outputs="float y", constants=C, gone=("NonZero",)),
    Case("maximum, dims kept", PICK + "y = ReduceMax<axes=[0],keepdims=1>(g)", outputs="float[a] y", constants=C, gone=("NonZero",)),
    Case("minimum, opset 18", PICK + "y = ReduceMin<keepdims=0>(g, a)", outputs="float y", constants=C + ", int64[1] a = {0}", opset=18, gone=("NonZero",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("the values themselves", PICK + "y = Relu(g)", outputs="float[a] y", constants=C),
    Case(
        "a mask of rows",
        "q = ReduceMax<axes=[1,2,3],keepdims=0>(x) m = Greater(q, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) "
        "g = GatherND(x, t) y = ReduceSum<keepdims=0>(g)",
        outputs="float y",
        constants=C,
        skip="shape of the value",
    ),
    Case("a plain sum", "y = ReduceSum<keepdims=0>(x)", outputs="float y"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
