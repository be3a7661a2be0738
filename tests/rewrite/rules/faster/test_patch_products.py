# ruff: noqa: E501 - the text of a model stands on one line
"""Convolutions over patches as products."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.faster.patch_products import RULE


def constants(*shapes, **more):
    rng = np.random.default_rng(0)
    texts = []
    for name, shape in zip("wbvu", shapes, strict=False):
        values = ",".join(f"{v:.4f}" for v in rng.standard_normal(int(np.prod(shape))))
        texts.append(f"float[{','.join(map(str, shape))}] {name} = {{{values}}}")
    texts += [f"int64[{len(v)}] {n} = {{{','.join(map(str, v))}}}" for n, v in more.items()]
    return ", ".join(texts)


OLD = {"target": "tensorrt==8.6", "absent": ("Conv",), "present": ("MatMul",)}
MISS = {"target": "tensorrt==8.6"}
PATCH = "kernel_shape=[4,2], strides=[4,2]"
LARGE, LARGE_IMAGE = "kernel_shape=[16,8], strides=[16,8]", "float[N,3,32,24] x"
IMAGE, ROWS = "float[N,3,8,6] x", "float[a,b,c] y"
CASES = [
    Case("tokens of an image", f"c = Conv<{LARGE}>(x, w, b) r = Reshape(c, s) y = Transpose<perm=[0,2,1]>(r)", LARGE_IMAGE, ROWS, constants=constants((5, 3, 16, 8), (5,), s=(-1, 5, 6)), **OLD),
    Case("without a bias", f"c = Conv<{LARGE}>(x, w) r = Reshape(c, s) y = Transpose<perm=[0,2,1]>(r)", LARGE_IMAGE, ROWS, constants=constants((5, 3, 16, 8), s=(-1, 5, 6)), **OLD),
    Case("channels last", f"c = Conv<{LARGE}>(x, w, b) y = Transpose<perm=[0,2,3,1]>(c)", LARGE_IMAGE, constants=constants((5, 3, 16, 8), (5,)), **OLD),
    Case("from channels last", f"i = Transpose<perm=[0,3,1,2]>(x) c = Conv<{PATCH}>(i, w, b) y = Transpose<perm=[0,2,3,1]>(c)", "float[N,8,6,3] x", constants=constants((5, 3, 4, 2), (5,)), **OLD),
    Case("from rows to rows", f"t = Transpose<perm=[0,2,1]>(x) i = Reshape(t, p) c = Conv<{PATCH}>(i, w, b) r = Reshape(c, s) y = Transpose<perm=[0,2,1]>(r)", "float[N,48,3] x", ROWS, constants=constants((5, 3, 4, 2), (5,), p=(-1, 3, 8, 6), s=(-1, 5, 6)), **OLD),
    Case("rows that a Reshape mixes", f"t = Transpose<perm=[0,2,1]>(x) i = Reshape(t, p) c = Conv<{LARGE}>(i, w, b) y = Transpose<perm=[0,2,3,1]>(c)", "float[N,96,24] x", constants=constants((5, 3, 16, 8), (5,), p=(-1, 3, 32, 24)), **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("patches that overlap", "c = Conv<kernel_shape=[4,2], strides=[2,2]>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", IMAGE, constants=constants((5, 3, 4, 2)), **MISS),
    Case("small patches of an image", f"c = Conv<{PATCH}>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", IMAGE, constants=constants((5, 3, 4, 2)), skip="24 elements", **MISS),
    Case("one pixel", "c = Conv<kernel_shape=[1,1], strides=[1,1]>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", IMAGE, constants=constants((5, 3, 1, 1)), **MISS),
    Case("pads", f"c = Conv<{PATCH}, pads=[0,0,4,0]>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", IMAGE, constants=constants((5, 3, 4, 2)), **MISS),
    Case("groups", f"c = Conv<{PATCH}, group=3>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", IMAGE, constants=constants((6, 1, 4, 2)), **MISS),
    Case("a rest", f"c = Conv<{PATCH}>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", "float[N,3,9,6] x", constants=constants((5, 3, 4, 2)), skip="whole numbers", **MISS),
    Case("sizes that move", f"c = Conv<{PATCH}>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", "float[N,3,H,W] x", constants=constants((5, 3, 4, 2)), skip="whole numbers", **MISS),
    Case("channels first", f"c = Conv<{PATCH}>(x, w) y = Transpose<perm=[0,1,3,2]>(c)", IMAGE, constants=constants((5, 3, 4, 2)), **MISS),
    Case("used twice", f"c = Conv<{PATCH}>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", IMAGE, "float[a,b,c,d] y, float[e,f,g,h] c", constants=constants((5, 3, 4, 2)), skip="elsewhere", **MISS),
    Case("weights that are computed", f"w = Relu(v) c = Conv<{PATCH}>(x, w) y = Transpose<perm=[0,2,3,1]>(c)", f"{IMAGE}, float[5,3,4,2] v", skip="computed", **MISS),
    Case("pixels in other rows", f"c = Conv<{PATCH}>(x, w) r = Reshape(c, s) y = Transpose<perm=[0,2,1]>(r)", IMAGE, ROWS, constants=constants((5, 3, 4, 2), s=(-1, 10, 3)), skip="one row", **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
