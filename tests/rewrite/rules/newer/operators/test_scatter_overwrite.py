# ruff: noqa: E501 - the text of a model stands on one line
"""ScatterElements that overwrites."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.newer.operators.scatter_overwrite import RULE


def recorded(model):
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 H=13:17:40 W=13:23:40")


OLD = {"target": "tensorrt==8.6", "absent": ("ScatterElements",), "edit": recorded}
CASES = [
    Case("duplicates along the last axis", "y = ScatterElements<axis=1>(x, i, u)", "float[N,5] x, int64[N,H] i, float[N,H] u", "float[a,b] y",
         ranges={"i": (-5, 4)}, present=("GatherElements",), **OLD),
    Case("the middle axis", "y = ScatterElements<axis=1>(x, i, u)", "float[N,8,H] x, int64[N,6,H] i, float[N,6,H] u", "float[a,b,c] y", ranges={"i": (-8, 7)}, **OLD),
    Case("the first axis, which moves", "y = ScatterElements<axis=0>(x, i, u)", "float[H,4] x, int64[W,4] i, float[W,4] u", "float[a,b] y", ranges={"i": (-13, 12)}, **OLD),
    Case("one index", "y = ScatterElements<axis=1>(x, i, u)", "float[N,H,4] x, int64[N,1,4] i, float[N,1,4] u", "float[a,b,c] y", ranges={"i": (-13, 12)}, present=("Where",), **OLD),
    Case("one index, int32, negative axis", "y = ScatterElements<axis=-1>(x, i, u)", "float[N,H] x, int32[N,1] i, float[N,1] u", "float[a,b] y", ranges={"i": (-13, 12)}, **OLD),
    Case("integers", "y = ScatterElements<axis=0>(x, i, u)", "int64[H] x, int64[W] i, int64[W] u", "int64[a] y", ranges={"i": (0, 12), "x": (-9, 9), "u": (-9, 9)}, **OLD),
]  # fmt: skip
NEAR = {"target": "tensorrt==8.6", "ranges": {"i": (0, 7)}}
NEAR_MISSES = [
    Case("a reduction", 'y = ScatterElements<axis=1,reduction="add">(x, i, u)', "float[N,8] x, int64[N,6] i, float[N,6] u", "float[a,b] y", opset=18, **NEAR),
    Case("indices of a part", "y = ScatterElements<axis=1>(x, i, u)", "float[N,8,8] x, int64[N,6,4] i, float[N,6,4] u", "float[a,b,c] y", skip="cover", **NEAR),
    Case("sizes without a bound", "y = ScatterElements<axis=1>(x, i, u)", "float[N,8] x, int64[N,H] i, float[N,H] u", "float[a,b] y", skip="unknown number", **NEAR),
    Case("too many", "y = ScatterElements<axis=0>(x, i, u)", "float[5000] x, int64[5000] i, float[5000] u", "float[a] y", skip="25000000", **NEAR),
    Case("booleans", "c = Cast<to=9>(x) v = Cast<to=9>(u) z = ScatterElements<axis=1>(c, i, v) y = Cast<to=1>(z)", "float[N,8] x, int64[N,6] i, float[N,6] u", "float[a,b] y", skip="element type", **NEAR),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_the_last_one_wins_and_the_rest_stays():
    model = model_of(CASES[0])
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    x = np.arange(5, dtype=np.float32)[None] * 0 - 7
    i, u = np.asarray([[3, 1, 3, -2, 1]]), np.asarray([[10, 11, 12, 13, 14]], np.float32)
    assert runner(model)({"x": x, "i": i, "u": u})["y"].tolist() == [[-7, 14, -7, 13, -7]]


def test_not_needed_elsewhere():
    assert not any(RULE.needed(parse_target(t)) for t in ("tensorrt==10", "tensorrt==11", "tensorrt-rtx"))
