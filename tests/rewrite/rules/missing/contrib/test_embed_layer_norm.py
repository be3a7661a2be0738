# ruff: noqa: E501 - the text of a model stands on one line
"""ONNX Runtime's embeddings."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.embed_layer_norm import RULE

SIZES = ({"N": 2, "T": 4}, {"N": 1, "T": 7}, {"N": 3, "T": 1})

ROWS = 40


def table(name, rows, seed):
    """A constant [rows, 4] of numbers that are all others."""
    return f"float[{rows},4] {name} = {{{', '.join(f'{(seed * i * i + 7 * i) % 101 / 50 - 1:.2f}' for i in range(4 * rows))}}}"


TABLES = ", ".join([table("w", 5, 3), table("p", ROWS, 5), table("k", 2, 11), "float[4] g = {0.349, -0.105, 0.315, -0.0932}, float[4] b = {-0.124, -0.0724, 0.018, -0.214}"])
X = {"inputs": "int32[N,T] i, int32[N,T] s, int32[N,T] m", "outputs": "float[a,b,c] y, int32[d] l", "sizes": SIZES,
     "ranges": {"i": (0, 4), "s": (0, 1), "m": (0, 1)}, "constants": TABLES}  # fmt: skip
EMBED = "com.microsoft.EmbedLayerNormalization<epsilon=1e-5>"
CASES = [
    Case("all", f"y, l = {EMBED}(i, s, w, p, k, g, b, m)", absent=("EmbedLayerNormalization",), **X),
    Case("no kinds", f"y, l = {EMBED}(i, , w, p, , g, b, m)", **X),
    Case("no mask", f"y, l = {EMBED}(i, s, w, p, k, g, b)", **X),
    Case("places", f"y, l = {EMBED}(i, s, w, p, k, g, b, , s)", **X),
    Case("old, with the sum", f"y, l, z = {EMBED}(i, s, w, p, k, g, b, m)", opset=13, **{**X, "outputs": "float[a,b,c] y, int32[d] l, float[e,f,h] z"}),
]
NEAR_MISSES = [
    Case("a computed table", f"w2 = Shrink(wn) y, l = {EMBED}(i, s, w2, p, k, g, b, m)", skip="the size of a table", **{**X, "inputs": "int32[N,T] i, int32[N,T] s, int32[N,T] m, float[V,4] wn", "sizes": ({"N": 2, "T": 4, "V": 5}, {"N": 1, "T": 7, "V": 6}, {"N": 3, "T": 1, "V": 5})}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
