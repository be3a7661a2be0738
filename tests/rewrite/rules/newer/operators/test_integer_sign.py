"""The sign of integers."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.newer.operators.integer_sign import RULE

OLD = {"target": "tensorrt==8.6", "ranges": {"i": (-9, 9)}}
CASES = [
    Case(kind, "y = Sign(i)", f"{kind}[N,H] i", f"{kind}[a,b] y", absent=("Sign",), **OLD)
    for kind in ("int32", "int64")
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


def test_floats_stay():
    check_near_miss(RULE, Case("floats", "y = Sign(x)", target="tensorrt==8.6"))


def test_the_ends_of_the_range():
    model = model_of(CASES[1])
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    ends = np.iinfo(np.int64)
    i = np.asarray([[ends.min, ends.max, 0, -1, 1]], np.int64)
    assert (runner(model)({"i": i})["y"] == np.sign(i)).all()
