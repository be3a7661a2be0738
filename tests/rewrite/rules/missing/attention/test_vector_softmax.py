"""Softmaxes of a vector."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.attention.vector_softmax import RULE

VECTOR = {"inputs": "float[W] x", "outputs": "float[a] y", "present": ("Unsqueeze", "Squeeze")}
CASES = [
    *(Case(op, f"y = {op}<axis=0>(x)", **VECTOR) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    Case("from the back", "y = Softmax(x)", **VECTOR),
    Case("before opset 13", "y = Softmax<axis=0>(x)", opset=11, **VECTOR),
    Case("for 8.6", "y = Softmax(x)", target="tensorrt==8.6", **VECTOR),
]
NEAR_MISSES = [Case("a matrix", "y = Softmax<axis=0>(x)", "float[N,W] x", "float[a,b] y")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
