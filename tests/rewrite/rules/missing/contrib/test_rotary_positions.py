# ruff: noqa: E501 - the text of a model stands on one line
"""ONNX Runtime's rotary embedding."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.rotary_positions import RULE

SIZES = ({"N": 2, "T": 4}, {"N": 1, "T": 7}, {"N": 3, "T": 1})

ROWS = 40


def table(name, seed):
    """A constant [ROWS, 2] of numbers that are all others."""
    return f"float[{ROWS},2] {name} = {{{', '.join(f'{(seed * i * i + 7 * i) % 101 / 50 - 1:.2f}' for i in range(2 * ROWS))}}}"


TABLES = f"{table('c', 3)}, {table('s', 5)}"
HEADS = {"inputs": "float[N,2,T,4] x, int64[N,T] p", "outputs": "float[a,b,e,d] y", "sizes": SIZES, "constants": TABLES, "ranges": {"p": (0, ROWS - 1)}}
FLAT = {**HEADS, "inputs": "float[N,T,8] x, int64[N,T] p", "outputs": "float[a,b,d] y"}
ONE = {**FLAT, "inputs": "float[N,T,8] x, int64[1] p", "ranges": {"p": (0, 0)}}
ROTARY = "com.microsoft.RotaryEmbedding"
CASES = [
    Case("halves", f"y = {ROTARY}(x, p, c, s)", absent=("RotaryEmbedding",), **HEADS),
    Case("pairs", f"y = {ROTARY}<interleaved=1>(x, p, c, s)", **HEADS),
    Case("flat", f"y = {ROTARY}(x, p, c, s)", **FLAT),
    Case("one position", f"y = {ROTARY}(x, p, c, s)", **ONE),
    Case("part of a head", f"y = {ROTARY}<num_heads=1, rotary_embedding_dim=4>(x, p, c, s)", **FLAT),
]
NEAR_MISSES = [Case("scaled", f"y = {ROTARY}<scale=2.0>(x, p, c, s)", skip="packed or scaled", **HEADS)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
