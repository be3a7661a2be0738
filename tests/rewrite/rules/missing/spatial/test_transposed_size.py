# ruff: noqa: E501 - the text of a model stands on one line
"""Transposed convolutions that name the size of their result."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.transposed_size import RULE

X = {"inputs": "float[N,1,3,4] x", "outputs": "float[a,b,c,d] y", "sizes": ({"N": 2}, {"N": 1}, {"N": 3}),
     "constants": "float[1,2,3,3] w = {0.5, -1.0, 0.25, 0.1, 0.2, -0.3, 0.7, 0.9, -0.6, 1.5, -2.0, 1.25, 0.3, 0.4, -0.5, 0.8, 0.6, -0.7}, float[2] b = {0.1, -0.2}"}  # fmt: skip
CASES = [
    Case("cut", "y = ConvTranspose<strides=[2, 2], output_shape=[6, 8]>(x, w, b)", **X),
    Case("cut at the end", 'y = ConvTranspose<strides=[2, 2], output_shape=[6, 8], auto_pad="SAME_UPPER">(x, w)', **X),
    Case("cut at the beginning", 'y = ConvTranspose<strides=[2, 2], output_shape=[6, 8], auto_pad="SAME_LOWER">(x, w)', **X),
    Case("one more", "y = ConvTranspose<strides=[2, 3], output_shape=[8, 13]>(x, w, b)", **X),
    Case("one channel each", "y = ConvTranspose<strides=[3, 2], dilations=[1, 2], output_shape=[8, 9]>(x, w, b)", **X),
]
NEAR_MISSES = [
    Case("pads", "y = ConvTranspose<strides=[2, 2], pads=[1, 1, 0, 0]>(x, w, b)", **X),
    Case("too large", "y = ConvTranspose<output_shape=[9, 9]>(x, w)", skip="larger than its strides", **X),
    Case("sizes that move", "y = ConvTranspose<strides=[2, 2], output_shape=[6, 8]>(x, w)", skip="sizes of the image", **{**X, "inputs": "float[N,1,H,4] x", "sizes": ({"N": 2, "H": 3}, {"N": 1, "H": 3}, {"N": 3, "H": 3})}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
