# ruff: noqa: E501 - the text of a model stands on one line
"""ScatterND with reduction add."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules.missing.tensor.scatter_nd import RULE


def recorded(model):
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 H=16:31:40 W=13:24:40")


CASES = [
    Case(
        "rows",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float[H,8] x, int64[W,1] i, float[W,8] u",
        "float[a,b] y",
        ranges={"i": (-12, 12)},
        opset=18,
        absent=("ScatterND",),
    ),
    Case(
        "cells",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float[H,8,4] x, int64[W,2] i, float[W,4] u",
        "float[a,b,c] y",
        ranges={"i": (0, 7)},
        opset=18,
        absent=("ScatterND",),
    ),
    Case(
        "full depth",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float[H,8] x, int64[W,2] i, float[W] u",
        "float[a,b] y",
        ranges={"i": (0, 7)},
        opset=18,
        absent=("ScatterND",),
    ),
] + [
    Case(f"{how}, {kind}", f'y = ScatterND<reduction="{how}">(x, i, u)', f"{kind}[H,8] x, int64[W,1] i, {kind}[W,8] u",
         f"{kind}[a,b] y", ranges={"i": (-12, 12), "x": (-2, 2), "u": (-2, 2)}, opset=18, absent=("ScatterND",), edit=recorded)
    for how, kind in (("max", "float"), ("min", "float"), ("mul", "float"), ("add", "int64"),
                      ("max", "int32"), ("min", "int64"))
] + [
    Case("few rows, any number of updates", 'y = ScatterND<reduction="add">(x, i, u)', "int64[30] x, int64[W,1] i, int64[W] u", "int64[a] y",
         ranges={"i": (0, 29)}, opset=18, absent=("ScatterND",)),
    Case("integers on 8.6", 'y = ScatterND<reduction="max">(x, i, u)', "int64[H,8] x, int64[W,1] i, int64[W,8] u",
         "int64[a,b] y", ranges={"i": (-12, 12)}, opset=18, absent=("ScatterND",), target="tensorrt==8.6", edit=recorded),
]  # fmt: skip
NEAR_MISSES = [
    Case(
        "overwriting",
        "y = ScatterND(x, i, u)",
        "float[H,8] x, int64[W,1] i, float[W,8] u",
        "float[a,b] y",
        ranges={"i": (0, 12)},
        opset=18,
    ),
    Case("sizes without a range", 'y = ScatterND<reduction="max">(x, i, u)', "float[H,8] x, int64[W,1] i, float[W,8] u", "float[a,b] y",
         ranges={"i": (0, 12)}, opset=18, skip="not known"),
    Case("too many", 'y = ScatterND<reduction="add">(x, i, u)', "float[H,W,3000] x, int64[N,H,W,30,2] i, float[N,H,W,30,3000] u", "float[a,b,c] y",
         ranges={"i": (0, 12)}, opset=18, edit=recorded, skip="each row would meet"),
    Case("double", 'y = ScatterND<reduction="max">(x, i, u)', "double[H,8] x, int64[W,1] i, double[W,8] u", "double[a,b] y",
         ranges={"i": (0, 12)}, opset=18, skip="max"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_half_precision_which_onnx_runtime_lacks():
    case = Case(
        "half",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float16[H,8] x, int64[W,1] i, float16[W,8] u",
        "float16[a,b] y",
        opset=18,
    )
    model = model_of(case)
    record = apply(model, (RULE,), "tensorrt-rtx")
    assert [e.rule for e in record.entries] == ["scatter-nd"], record.rejected
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((7, 8)).astype(np.float16), rng.standard_normal((11, 8)).astype(np.float16)
    i = rng.integers(0, 7, (11, 1))
    expected = x.astype(np.float32)
    np.add.at(expected, i[:, 0], u.astype(np.float32))
    assert np.abs(runner(model)({"x": x, "i": i, "u": u})["y"] - expected).max() < 1e-2
