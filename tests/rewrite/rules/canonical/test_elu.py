"""Elu for TensorRT-RTX."""

import numpy as np
import onnx
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.rewrite.rules.canonical.elu import RULE

RTX = {"absent": ("Elu",), "present": ("Selu",), "target": "tensorrt-rtx"}
# The LSTM, and a convolution between two Elus: RTX 1.7 builds every other arrangement that was tried.
RECURRENT = """
    t = Transpose<perm=[2,0,1]>(x) l = LSTM<hidden_size=8>(t, w, r) axis = Constant<value_ints=[1]>()
    q = Squeeze(l, axis) u = Transpose<perm=[1,2,0]>(q) e = Elu(u) c = Conv(e, k) y = Elu<alpha=0.5>(c)"""
WEIGHTS = {"w": (1, 32, 8), "r": (1, 32, 8), "k": (8, 8, 3)}


def add_weights(model: onnx.ModelProto) -> None:
    """Give the LSTM and the convolution weights."""
    chance = np.random.default_rng(0)
    arrays = {n: chance.normal(scale=0.3, size=s).astype(np.float32) for n, s in WEIGHTS.items()}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in arrays.items())


CASES = [
    Case("the default", "y = Elu(x)", **RTX),
    Case("another alpha", "y = Elu<alpha=0.3>(x)", **RTX),
    Case("in half precision", "y = Elu(x)", inputs="float16[N,8,H,W] x", outputs="float16[N,8,H,W] y", **RTX),
    Case(
        "beside a recurrence",
        RECURRENT,
        inputs="float[N,8,W] x",
        outputs="float[N,8,b] y",
        edit=add_weights,
        fires=2,
        **RTX,
    ),
]
NEAR_MISSES = [Case("a Selu already", "y = Selu(x)", target="tensorrt-rtx")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_only_for_rtx():
    assert [t for t in KNOWN_TARGETS if RULE.needed(parse_target(t))] == ["tensorrt-rtx"]
