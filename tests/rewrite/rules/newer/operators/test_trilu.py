"""Trilu for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.trilu import RULE

CASES = [
    Case("upper", "y = Trilu(x)", absent=("Trilu",), target="tensorrt==8.6"),
    Case(
        "lower, shifted",
        "y = Trilu<upper=0>(x, k)",
        constants="int64 k = {2}",
        absent=("Trilu",),
        target="tensorrt==8.6",
    ),
    Case(
        "booleans", "y = Trilu<upper=0>(x)", "bool[N,H,W] x", "bool[a,b,c] y", absent=("Trilu",), target="tensorrt==8.6"
    ),
    Case(
        "a plane",
        "y = Trilu(x, k)",
        "int64[H,W] x",
        "int64[a,b] y",
        "int64 k = {-1}",
        absent=("Trilu",),
        target="tensorrt==8.6",
    ),
    Case(
        "shift that is computed",
        "h = Shape(x) k = Gather(h, i0) y = Trilu(x, k)",
        constants="int64 i0 = {0}",
        absent=("Trilu",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case("bytes", "y = Trilu(x)", "uint8[N,H,W] x", "uint8[a,b,c] y", skip="element type", target="tensorrt==8.6"),
    Case(
        "written out already", "t = Less(x, z) y = Where(t, x, z)", constants="float z = {0.0}", target="tensorrt==8.6"
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
