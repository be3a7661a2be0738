# ruff: noqa: E501 - the text of a model stands on one line
"""Attention as exporters write it: packed rows of timm, separate rows of transformers, windows with biases and masks."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.plugin.plugin_attention import RULE

T = "tensorrt==8.6"
OP = "TrtconvAttention"
SIZES = ({"N": 2, "L": 5}, {"N": 1, "L": 9}, {"N": 3, "L": 1})
MADE = {"target": T, "present": (OP,), "absent": ("Softmax", "MatMul"), "sizes": SIZES, "outputs": "float[a,b,c] y"}

PACKED = (
    "r = Reshape(x, s5) p = Transpose<perm=[2,0,3,1,4]>(r) "
    "q0 = Slice(p, i0, i1, i0, i1) q = Squeeze(q0, i0) k0 = Slice(p, i1, i2, i0) k = Squeeze(k0, i0) v0 = Slice(p, i2, i3, i0) v = Squeeze(v0, i0) "
)
SPLIT = "r = Reshape(x, s5) p = Transpose<perm=[2,0,3,1,4]>(r) q0, k0, v0 = Split<axis=0>(p) q = Squeeze(q0, i0) k = Squeeze(k0, i0) v = Squeeze(v0, i0) "
GATHERED = "r = Reshape(x, s5) p = Transpose<perm=[2,0,3,1,4]>(r) q = Gather(p, g0) k = Gather(p, g1) v = Gather(p, gl) "
SEPARATE = (
    "qr = Reshape(x, s4) q = Transpose<perm=[0,2,1,3]>(qr) kr = Reshape(z, s4) k = Transpose<perm=[0,2,1,3]>(kr) "
    "vr = Reshape(z, s4) v = Transpose<perm=[0,2,1,3]>(vr) "
)
TURNED = "t = Transpose<perm=[0,1,3,2]>(k) m = MatMul(q, t) "
END = "w = Softmax<axis=-1>(b) o = MatMul(w, v) u = Transpose<perm=[0,2,1,3]>(o) y = Reshape(u, s3)"
NUMBERS = (
    "int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64 g0 = {0}, int64 g1 = {1}, int64 gl = {-1}, "
    "int64[5] s5 = {0,-1,3,2,4}, int64[4] s4 = {0,-1,2,4}, int64[3] s3 = {0,-1,8}, float c = {0.5}, float[1] half = {2.0}"
)
ROWS = "float[N,L,24] x"
SHAPES5 = "int64[5] s5 = {-1,5,3,2,4}"


def fixed(numbers: str) -> str:
    """The same where rows have a fixed length of 5, as windows have."""
    return numbers.replace("int64[5] s5 = {0,-1,3,2,4}", SHAPES5).replace("s3 = {0,-1,8}", "s3 = {-1,5,8}")


def bias(name: str, *dims: int) -> str:
    count = 1
    for d in dims:
        count *= d
    values = ",".join(f"{((7 * i) % 11 - 5) / 4:g}" for i in range(count))
    return f"float[{','.join(map(str, dims))}] {name} = {{{values}}}"


WINDOWS = ({"N": 1}, {"N": 3}, {"N": 2})
WINDOW = {**MADE, "sizes": WINDOWS}
CASES = [
    Case("packed rows", PACKED + "qs = Mul(q, c) " + TURNED.replace("q,", "qs,") + END.replace("(b)", "(m)"), ROWS, constants=NUMBERS, **MADE),
    Case("Split, scale of the scores", SPLIT + TURNED + "b = Div(m, half) " + END, ROWS, constants=NUMBERS, **MADE),
    Case("Gather, both sides scaled", GATHERED + "qs = Mul(q, c) t0 = Transpose<perm=[0,1,3,2]>(k) t = Mul(t0, c) b = MatMul(qs, t) " + END, ROWS, constants=NUMBERS, **MADE),
    Case("another tensor's keys", SEPARATE + TURNED + "b = Mul(m, c) " + END, "float[N,L,8] x, float[N,7,8] z", constants=NUMBERS, **MADE),
    Case("keys turned at once", SEPARATE.replace("k = Transpose<perm=[0,2,1,3]>", "t = Transpose<perm=[0,2,3,1]>") + "m = MatMul(q, t) b = Mul(m, c) " + END, "float[N,L,8] x, float[N,7,8] z", constants=NUMBERS, **MADE),
    Case("a mask of the batch", SEPARATE + TURNED + "b0 = Mul(m, c) b = Add(b0, mask) " + END, "float[N,L,8] x, float[N,7,8] z, float[N,1,1,7] mask", constants=NUMBERS, **MADE),
    Case("a bias of each head", PACKED + TURNED + "b = Add(m, bias) " + END, "float[N,5,24] x", constants=f"{fixed(NUMBERS)}, {bias('bias', 1, 2, 5, 5)}", **WINDOW),
    Case("a bias without heads, on the left", PACKED + TURNED + "b = Add(bias, m) " + END, "float[N,5,24] x", constants=f"{fixed(NUMBERS)}, {bias('bias', 5, 5)}", **WINDOW),
    Case("windows of an image: bias, then a mask by group", PACKED + TURNED + "b0 = Add(m, bias) b1 = Reshape(b0, grouped) b2 = Add(b1, masks) b = Reshape(b2, whole) " + END, "float[4,5,24] x", constants=f"{fixed(NUMBERS)}, {bias('bias', 1, 2, 5, 5)}, {bias('masks', 1, 4, 1, 5, 5)}, int64[5] grouped = {{-1,4,2,5,5}}, int64[4] whole = {{-1,2,5,5}}", **MADE),
    Case("a mask by group that moves", PACKED + TURNED + "b1 = Reshape(m, grouped) b2 = Add(b1, masks) b3 = Reshape(b2, whole) b = Add(b3, bias) " + END, "float[4,5,24] x, float[1,2,1,5,5] masks", constants=f"{fixed(NUMBERS)}, {bias('bias', 2, 5, 5)}, int64[5] grouped = {{-1,2,2,5,5}}, int64[4] whole = {{-1,2,5,5}}", **MADE),
]  # fmt: skip
NEAR = {"target": T, "sizes": SIZES, "outputs": "float[a,b,c] y"}
NEAR_MISSES = [
    Case("weights are an output too", PACKED + TURNED + "b = Mul(m, c) " + END + " e = ReduceMax<keepdims=0>(w)", ROWS, constants=NUMBERS, skip="elsewhere", **{**NEAR, "outputs": "float[a,b,c] y, float e"}),
    Case("another axis", PACKED + TURNED + "b = Mul(m, c) " + END.replace("axis=-1", "axis=2"), ROWS, constants=NUMBERS, skip="another axis", **NEAR),
    Case("scale after a bias", PACKED + TURNED + "b0 = Add(m, bias) b = Mul(b0, c) " + END, "float[N,5,24] x", constants=f"{fixed(NUMBERS)}, {bias('bias', 5, 5)}", skip="more than products", **NEAR),
    Case("scaled values", PACKED.replace("v = ", "vv = ") + "v = Mul(vv, c) " + TURNED + "b = Mul(m, c) " + END, ROWS, constants=NUMBERS, skip="not heads of rows", **NEAR),
    Case("heads inside parts", PACKED.replace("[2,0,3,1,4]", "[3,0,2,1,4]").replace("i2, i3", "i1, i2"), ROWS, constants=NUMBERS.replace("{0,-1,3,2,4}", "{0,-1,2,3,4}"), **{**NEAR, "outputs": "float[a,b,c,d] v"}),
    Case("another order of the result", PACKED + TURNED + "b = Mul(m, c) " + END.replace("u = Transpose<perm=[0,2,1,3]>(o)", "u = Transpose<perm=[2,0,1,3]>(o)"), ROWS, constants=NUMBERS, **NEAR),
    Case("a mask whose rows are not known", SEPARATE + TURNED + "b0 = Mul(m, c) b = Add(b0, mask) " + END, "float[N,L,8] x, float[N,7,8] z, float[N,1,M,7] mask", constants=NUMBERS, skip="not known to be theirs", **{**NEAR, "sizes": ({"N": 2, "L": 5, "M": 5}, {"N": 1, "L": 9, "M": 1}, {"N": 3, "L": 1, "M": 1})}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
