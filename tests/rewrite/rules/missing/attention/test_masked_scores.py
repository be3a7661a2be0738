"""Scores chosen by their mask in place of a sum, for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.missing.attention.masked_scores import RULE

SIZES = ({"N": 2, "T": 3}, {"N": 1, "T": 5}, {"N": 3, "T": 4})
INPUTS = "float[N,2,T,4] q, float[N,2,4,T] k, bool[N,1,1,T] m"
CONSTANTS = "float o = {0}, float low = {-1e31}, float some = {-1e4}"
ATTENTION = "s = MatMul(q, k) a = Where({chosen}) t = Add({added}) y = Softmax(t)"


def case(name, chosen="m, o, low", added="s, a", inputs=INPUTS, **more):
    options = {"target": "tensorrt==8.6", "sizes": SIZES, "constants": CONSTANTS, "outputs": "float[a,b,c,d] y"}
    return Case(name, ATTENTION.format(chosen=chosen, added=added), **{**options, "inputs": inputs, **more})


CASES = [
    case("the mask shows"),
    case("the mask hides", chosen="m, low, o"),
    case("the mask first", added="a, s"),
]
MISSES = [
    case("one mask for all", inputs="float[N,2,T,4] q, float[N,2,4,T] k, bool[1,1,1,T] m", skip="the same mask"),
    case("not so low", chosen="m, o, some"),
    case("two low numbers", chosen="m, low, low"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_later_versions_need_it_not():
    assert RULE.needed(parse_target("tensorrt==8.6"))
    assert not RULE.needed(parse_target("tensorrt==10"))
