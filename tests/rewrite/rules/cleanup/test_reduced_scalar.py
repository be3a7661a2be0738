"""Reductions of a tensor without axes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.reduced_scalar import RULE, SAME

ONE = {"inputs": "float[N,H] x", "outputs": "float[a,b] y"}
BODY = "m = ReduceMax<keepdims=0>(x) r = {}(m) y = Sub(x, r)"
CASES = [Case(op, BODY.format(op), absent=(op,) if op != "ReduceMax" else (), **ONE) for op in SAME] + [
    Case("ReduceL1", BODY.format("ReduceL1"), present=("Abs",), **ONE),
    Case("ReduceL2", BODY.format("ReduceL2"), present=("Abs",), **ONE),
    Case("ReduceSumSquare", BODY.format("ReduceSumSquare"), present=("Mul",), **ONE),
    Case("ReduceLogSum", "m = ReduceL1<keepdims=0>(x) r = ReduceLogSum(m) y = Sub(x, r)", present=("Log",), **ONE),
    Case("for 8.6", BODY.format("ReduceMean"), absent=("ReduceMean",), target="tensorrt==8.6", **ONE),
    Case("whole numbers", BODY.format("ReduceSum"), inputs="int64[N,H] x", outputs="int64[a,b] y"),
]
NEAR_MISSES = [Case("one axis of one", "y = ReduceMean<axes=[1]>(x)", "float[N,1] x", "float[a,b] y")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
