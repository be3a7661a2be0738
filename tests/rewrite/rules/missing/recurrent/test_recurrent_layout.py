# ruff: noqa: E501 - the text of a model stands on one line
"""Recurrent layers with the batch first."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss, model_of, runner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules.missing.recurrent.recurrent_layout import RULE

SIZES = ({"N": 2, "H": 5}, {"N": 3, "H": 7}, {"N": 1, "H": 4})
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def small(model):
    # ONNX Runtime lacks layout 1, and the reference evaluator loops in Python.
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 H=4:5:8")


def weights(op, directions=1):
    rows = 3 * GATES[op]
    return f"float[N,H,4] x, float[{directions},{rows},4] w, float[{directions},{rows},3] r"


S = {"sizes": SIZES, "edit": small, "present": ("Transpose",)}
BOTH = "float[a,b,c,d] y, float[e,f,g] h"
CASES = [
    Case(op, f"y, h = {op}<hidden_size=3,layout=1>(x, w, r)", weights(op), BOTH, **S) for op in GATES
] + [
    Case("8.6", "y, h = GRU<hidden_size=3,layout=1>(x, w, r)", weights("GRU"), BOTH, target="tensorrt==8.6", **S),
    Case("all outputs but the states", "y = RNN<hidden_size=3,layout=1>(x, w, r)", weights("RNN"), "float[a,b,c,d] y", **S),
    Case("last state only", "v, y = GRU<hidden_size=3,layout=1>(x, w, r)", weights("GRU"), "float[a,b,c] y", **S),
    Case("initial state", "y, h = GRU<hidden_size=3,layout=1>(x, w, r, , , s)", weights("GRU") + ", float[N,1,3] s", BOTH, **S),
]  # fmt: skip
NEAR_MISSES = [
    Case("steps first", "y = GRU<hidden_size=3,layout=0>(x, w, r)", weights("GRU"), "float[a,b,c,d] y"),
    Case("no layout", "y = LSTM<hidden_size=3>(x, w, r)", weights("LSTM"), "float[a,b,c,d] y"),
]


def evaluates_layout_1():
    """Whether this onnx does; 1.17 mixes up the batch and the directions."""
    x = np.zeros((4, 5, 4), np.float32), np.zeros((1, 9, 4), np.float32), np.zeros((1, 9, 3), np.float32)
    case = Case("probe", "y = GRU<hidden_size=3,layout=1>(x, w, r)", weights("GRU"), "float[a,b,c,d] y")
    try:
        return runner(model_of(case))(dict(zip("xwr", x, strict=True)))["y"].shape == (4, 5, 1, 3)
    except TrtconvError:
        return False


@pytest.mark.skipif(not evaluates_layout_1(), reason="this onnx evaluates layout 1 wrongly")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
