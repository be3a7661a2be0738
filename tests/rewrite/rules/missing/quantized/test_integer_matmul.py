# ruff: noqa: E501 - the text of a model stands on one line
"""Matrix products of whole numbers."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.quantized.integer_matmul import RULE

WHOLE = {"absent": ("MatMul",), "present": ("ReduceSum",)}
BIG = {"ranges": {"x": (-(1 << 22), 1 << 22), "y": (-(1 << 22), 1 << 22)}}
CASES = [
    Case("int64", "z = MatMul(x, y)", "int64[N,H] x, int64[H,W] y", "int64[a,b] z", **WHOLE, **BIG),
    Case("int32", "z = MatMul(x, y)", "int32[N,H] x, int32[H,W] y", "int32[a,b] z", ranges={"x": (-900, 900), "y": (-900, 900)}, **WHOLE),
    Case("batches", "z = MatMul(x, y)", "int64[N,2,H,W] x, int64[2,W,3] y", "int64[a,b,c,d] z", **WHOLE, **BIG),
    Case("a vector on the left", "z = MatMul(x, y)", "int64[H] x, int64[N,H,W] y", "int64[a,b] z", **WHOLE, **BIG),
    Case("a vector on the right", "z = MatMul(x, y)", "int64[N,H,W] x, int64[W] y", "int64[a,b] z", **WHOLE, **BIG),
    Case("two vectors", "s = MatMul(x, y) z = Add(s, x)", "int64[W] x, int64[W] y", "int64[a] z", **WHOLE, **BIG),
    Case("for 8.6", "z = MatMul(x, y)", "int32[N,H] x, int32[H,W] y", "int32[a,b] z", target="tensorrt==8.6", ranges={"x": (-900, 900), "y": (-900, 900)}, **WHOLE),
]
NEAR_MISSES = [Case("floats", "z = MatMul(x, y)", "float[N,H] x, float[H,W] y", "float[a,b] z")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
