# ruff: noqa: E501 - the text of a model stands on one line
"""Unique with outputs whose size depends on the data."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.canonical.unique_values import RULE

SIZES = ({"N": 2, "H": 6}, {"N": 3, "H": 17}, {"N": 1, "H": 31})


def recorded(model):
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 H=5:9:40")


INTS = {
    "edit": recorded,
    "inputs": "int64[N,H] i",
    "sizes": SIZES,
    "absent": ("Unique",),
    "ranges": {"i": (-9, 9)},
    "target": "tensorrt==8.6",
}
CASES = [
    Case("values", "y = Unique(i)", outputs="int64[u] y", **INTS),
    Case("values by appearance", "y = Unique<sorted=0>(i)", outputs="int64[u] y", **INTS),
    Case("counts", "a, b, c, y = Unique(i)", outputs="int64[u] y", **INTS),
    Case("first places, by appearance", "a, y = Unique<sorted=0>(i)", outputs="int64[u] y", **INTS),
    Case("all four", "a, b, c, d = Unique(i)", outputs="int64[u] a, int64[u] b, int64[v] c, int64[u] d", **INTS),
    Case("floats along a line", "r = Round(x) y = Unique<axis=0>(r)", "float[H] x", "float[u] y", sizes=SIZES, absent=("Unique",), edit=recorded, target="tensorrt==10"),
    Case("tensorrt==11", "y = Unique(i)", outputs="int64[u] y", **(INTS | {"target": "tensorrt==11"})),
]  # fmt: skip
NEAR = {k: v for k, v in INTS.items() if k != "absent"}
NEAR_MISSES = [
    Case("the inverse alone", "a, b, y = Unique(i)", outputs="int64[a] y", **NEAR),
    Case("rows", "y = Unique<axis=0>(i)", outputs="int64[a,b] y", **NEAR, skip="rows"),
    Case(
        "too many", "y = Unique(i)", outputs="int64[u] y", **(NEAR | {"inputs": "int64[100,50] i"}), skip="5000 values"
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_large_integers_are_kept_to_the_unit():
    model = model_of(CASES[0])
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    i = np.asarray([[2**24 + 1, 2**31 - 1, 2**24 + 1, -(2**31), 2**24, 7]])
    assert runner(model)({"i": i})["y"].tolist() == np.unique(i).tolist()


def test_not_needed_for_rtx():
    assert not RULE.needed(parse_target("tensorrt-rtx"))
