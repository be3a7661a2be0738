"""LSTM with a clip: of the gates in ONNX Runtime, of the cell state too in TensorRT."""

import pytest

from tests.rewrite.harness import check_case, check_near_miss
from tests.rewrite.rules.missing.recurrent.test_unroll_lstm import ALL, case
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.missing.recurrent.recurrent_clip import RULE

CASES = [
    case("forward", "y, h, c = LSTM<hidden_size=3,clip=0.3>(x, w, r, b)", ALL),
    case("both ways", 'y, h, c = LSTM<hidden_size=3,direction="bidirectional",clip=0.3>(x, w, r, b)', ALL,
         directions=2),
    case("RTX", "y = LSTM<hidden_size=3,clip=0.3>(x, w, r, b)", target="tensorrt-rtx"),
]
NEAR_MISSES = [
    case("no clip", "y = LSTM<hidden_size=3>(x, w, r, b)"),
    case("steps that move", "y = LSTM<hidden_size=3,clip=0.3>(x, w, r, b)", inputs="float[T,N,4] x",
         skip="the clip 0.3 bounds the cell state too in TensorRT"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt==10", "tensorrt-rtx"])
def test_all_parsers_bound_the_cell_state(target):
    assert RULE.needed(parse_target(target))
