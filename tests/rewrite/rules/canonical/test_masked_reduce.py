# ruff: noqa: E501 - the text of a model stands on one line
"""Reductions over what a mask selects."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.masked_reduce import RULE

C = "float z = {-9.0}"
PICK = "m = Greater(x, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) g = GatherND(x, t) "
ROWS = "q = ReduceMax<axes=[1,2,3],keepdims=0>(x) m = Greater(q, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) g = GatherND(x, t) "
CASES = [
    Case("sum", PICK + "y = ReduceSum<keepdims=0>(g)", outputs="float y", constants=C, absent=("NonZero", "GatherND")),
    Case("mean", PICK + "y = ReduceMean<keepdims=0>(g)", outputs="float y", constants=C, absent=("NonZero",)),
    Case("maximum, dims kept", PICK + "y = ReduceMax<axes=[0],keepdims=1>(g)", outputs="float[a] y", constants=C, absent=("NonZero",)),
    Case("minimum, opset 18", PICK + "y = ReduceMin<keepdims=0>(g, a)", outputs="float y", constants=C + ", int64[1] a = {0}", opset=18, absent=("NonZero",)),
    Case("product", PICK + "h = Tanh(g) y = ReduceProd<keepdims=0>(h)", outputs="float y", constants=C, absent=("NonZero",)),
    Case("mean of squares", PICK + "h = Mul(g, g) y = ReduceMean<keepdims=0>(h)", outputs="float y", constants=C, absent=("NonZero",)),
    Case("spread", PICK + "a = ReduceMean<axes=[0]>(g) d = Sub(g, a) q = Mul(d, d) y = ReduceMean<keepdims=0>(q)", outputs="float y", constants=C, fires=2, absent=("NonZero",)),
    Case("half of a whole reduction by rows", ROWS + "y = ReduceSum<keepdims=0>(g)", outputs="float y", constants=C, absent=("NonZero", "GatherND")),
    Case("mean of rows", ROWS + "y = ReduceMean<axes=[0],keepdims=0>(g)", outputs="float[a,b,c] y", constants=C, absent=("NonZero",)),
    Case("mean of rows and columns, kept", ROWS + "y = ReduceMean<axes=[0,2]>(g)", constants=C, absent=("NonZero",)),
    Case("maximum of rows", ROWS + "y = ReduceMax<axes=[0,3],keepdims=0>(g)", outputs="float[a,b] y", constants=C, absent=("NonZero",)),
    Case("8.6", PICK + "y = ReduceSum<keepdims=0>(g)", outputs="float y", constants=C, absent=("NonZero",), target="tensorrt==8.6"),
]  # fmt: skip
NEAR_MISSES = [
    Case("the values themselves", PICK + "y = Relu(g)", outputs="float[a] y", constants=C),
    Case(
        "columns only",
        ROWS + "y = ReduceSum<keepdims=0>(g, one)",
        outputs="float[a,c,d] y",
        constants=C + ", int64[1] one = {1}",
        skip="over all",
    ),
    Case(
        "a running sum",
        PICK + "h = CumSum(g, a) y = ReduceSum<keepdims=0>(h)",
        outputs="float y",
        constants=C + ", int32 a = {0}",
    ),
    Case(
        "integers",
        "m = Greater(i, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) g = GatherND(i, t) y = ReduceSum<keepdims=0>(g)",
        "int64[N,H] i",
        "int64 y",
        "int64 z = {2}",
        skip="FP32",
    ),
    Case("a plain sum", "y = ReduceSum<keepdims=0>(x)", outputs="float y"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
