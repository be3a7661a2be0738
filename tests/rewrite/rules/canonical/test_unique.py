# ruff: noqa: E501 - the text of a model stands on one line
"""Unique."""

import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.rules.canonical.unique import RULE

SIZES = ({"N": 2, "H": 6}, {"N": 3, "H": 17}, {"N": 1, "H": 31})


def recorded(model):
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 H=5:9:40")


I = {"edit": recorded, "inputs": "int64[N,H] i", "sizes": SIZES, "absent": ("Unique",), "ranges": {"i": (-9, 9)}}  # noqa: E741
CASES = [
    Case("inverse", "a, b, y = Unique(i)", outputs="int64[a] y", **I),
    Case("inverse, by appearance", "a, b, y = Unique<sorted=0>(i)", outputs="int64[a] y", **I),
    Case("inverse of a line along its axis", "a, b, y = Unique<axis=0>(i)", outputs="int64[a] y", **(I | {"inputs": "int64[H] i"})),
    Case("inverse of floats", "r = Round(x) a, b, y = Unique(r)", "float[N,H] x", "int64[a] y", sizes=SIZES, absent=("Unique",), edit=recorded),
    Case("their number", "a = Unique(i) s = Shape(a) y = Gather(s, z)", outputs="int64 y", constants="int64 z = {0}", **I),
    Case("their number by Size", "a = Unique<sorted=0>(i) y = Size(a)", outputs="int64 y", **I),
    Case("both", "a, b, v = Unique(i) s = Shape(a) y = Add(v, s)", outputs="int64[a] y", **(I | {"fires": 2})),
    Case("8.6", "a, b, y = Unique(i)", outputs="int64[a] y", target="tensorrt==8.6", **I),
]  # fmt: skip
NEAR_MISSES = [
    Case("the values themselves", "y = Unique(i)", "int64[H] i", "int64[a] y", skip="fixed number"),
    Case("how often", "a, b, c, y = Unique(i)", "int64[H] i", "int64[a] y", skip="fixed number"),
    Case("values and inverse", "y, b, v = Unique(i)", "int64[H] i", "int64[a] y, int64[b] v", skip="fixed number"),
    Case("a number that is not known", "a, b, y = Unique(i)", "int64[N,H] i", "int64[a] y", skip="not known to stay"),
    Case("too many", "a, b, y = Unique(i)", "int64[N,H,50] i", "int64[a] y", edit=recorded, skip="6000 values"),
    Case("rows", "a, b, y = Unique<axis=0>(i)", "int64[N,H] i", "int64[a] y", skip="rows"),
    Case("a plain shape", "y = Shape(i)", "int64[N,H] i", "int64[a] y"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_together_with_the_others():
    model = model_of(CASES[0])
    record = apply(model, tuple(r for r in RULES if not r.plugin), "tensorrt-rtx")
    assert not record.rejected
    assert "Unique" not in {n.op_type for n in model.graph.node}
