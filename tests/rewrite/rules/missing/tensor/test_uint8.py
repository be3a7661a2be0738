# ruff: noqa: E501 - the text of a model stands on one line
"""Arithmetic on bytes."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.rules.cleanup.merge_casts import RULE as MERGE
from trtconv.rewrite.rules.missing.tensor.uint8 import RULE

EIGHT = "tensorrt==8.6"
TWO = {
    "inputs": "uint8[N,H] i, uint8[N,H] j",
    "outputs": "uint8[a,b] y",
    "ranges": {"i": (0, 255), "j": (1, 255)},
    "opset": 18,
}
ONE = {"inputs": "uint8[N,8,H,W] x", "outputs": "uint8[a,b,c,d] y", "ranges": {"x": (0, 255)}, "present": ("Cast",)}
ALL = "uint8 k = {7}, int64[1] one = {1}, int64[1] nine = {9}, int64[8] p = {0,0,1,2,0,0,1,0}, int64[4] s = {0,0,1,-1}"
CASES = [
    Case(op, f"y = {op}(i, j)", **TWO) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")
] + [
    Case(op, f"y = {op}(i, j)", **(TWO | {"outputs": "bool[a,b] y"})) for op in ("Equal", "Less", "GreaterOrEqual")
] + [
    Case(op, f"y = {op}(x, k)", constants=ALL, **ONE) for op in ("Div", "Mod", "Sub")
] + [
    Case("Transpose", "y = Transpose<perm=[0,2,3,1]>(x)", **ONE),
    Case("Slice", "y = Slice(x, one, nine, one)", constants=ALL, **ONE),
    Case("Pad", "y = Pad(x, p, k)", constants=ALL, **ONE),
    Case("Reshape", "y = Reshape(x, s)", constants=ALL, **ONE),
    Case("Split", "a, b = Split<axis=1>(x) y = Concat<axis=1>(b, a)", **(ONE | {"fires": 4})),
    Case("Where", "c = Greater(i, j) y = Where(c, i, j)", **(TWO | {"fires": 2})),
    Case("Clip", "y = Clip(x, k)", constants=ALL, **ONE),
    Case("ArgMax", "y = ArgMax<axis=1>(i)", **(TWO | {"inputs": "uint8[N,H] i", "outputs": "int64[a,b] y"})),
    Case("TopK", "y, k = TopK<axis=1>(i, one)", **(TWO | {"inputs": "uint8[N,H] i", "outputs": "uint8[a,b] y, int64[a,b] k"}), constants="int64[1] one = {1}"),
    Case("MaxPool", "y = MaxPool<kernel_shape=[2,2]>(x)", **ONE),
    Case("remainder of the C language", "y = Mod<fmod=1>(i, j)", **TWO),
    Case("filled", "s = Shape(i) y = ConstantOfShape<value=uint8[1] {200}>(s)", **(TWO | {"inputs": "uint8[N,H] i"})),
    Case("8.6", "y = Div(i, j)", target=EIGHT, **TWO),
    Case("float to byte to float", "u = Cast<to=2>(x) y = Cast<to=1>(u)", ranges={"x": (0, 255)}, present=("Mod",)),
    Case("int to byte to float", "u = Cast<to=2>(x) y = Cast<to=1>(u)", "int64[N,H] x", "float[a,b] y", ranges={"x": (-400, 700)}),
    Case("byte to int on 8.6", "y = Cast<to=6>(x)", "uint8[N,H] x", "int32[a,b] y", target=EIGHT, ranges={"x": (0, 255)}),
    Case("int to byte on 8.6 wraps", "y = Cast<to=2>(x)", "int32[N,H] x", "uint8[a,b] y", target=EIGHT, ranges={"x": (-700, 900)}),
    Case("int64 to byte on 8.6 wraps", "y = Cast<to=2>(x)", "int64[N,H] x", "uint8[a,b] y", target=EIGHT, ranges={"x": (-700, 900)}),
]  # fmt: skip
NEAR_MISSES = [
    Case("a cast at the input", "c = Cast<to=1>(x) y = Relu(c)", "uint8[N,8,H,W] x"),
    Case("a cast at the output", "c = Relu(x) y = Cast<to=2>(c)", outputs="uint8[a,b,c,d] y"),
    Case("other integers", "y = Add(x, x)", "int32[N,H] x", "int32[a,b] y"),
    Case("indices of a pool", "y, i = MaxPool<kernel_shape=[2,2]>(x)", "uint8[N,8,H,W] x", "uint8[a,b,c,d] y, int64[a,b,c,d] i", skip="indices"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Mod"])
def test_every_pair_of_bytes(op):
    model = model_of(Case(op, f"y = {op}(i, j)", **TWO))
    assert apply(model, (RULE,), "tensorrt-rtx").entries
    i, j = (a.astype(np.uint8) for a in np.meshgrid(np.arange(256), np.arange(1, 256)))
    truth = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide, "Mod": np.mod}[op](i, j)
    assert (runner(model)({"i": i, "j": j})["y"] == truth).all()


@pytest.mark.parametrize("target", ["tensorrt-rtx", EIGHT])
def test_a_chain_keeps_no_byte_inside(target):
    body = "t = Transpose<perm=[0,3,1,2]>(x) s = Slice(t, o, n, o2) d = Div(s, k) f = Cast<to=1>(d) y = Mul(f, r)"
    case = Case(
        "camera",
        body,
        "uint8[N,H,W,3] x",
        "float[a,b,c,d] y",
        "int64[1] o = {1}, int64[1] n = {9}, int64[1] o2 = {2}, uint8 k = {2}, float r = {0.01}",
    )
    before, after = model_of(case), model_of(case)
    record = apply(after, tuple(r for r in RULES if not r.plugin), target)
    assert not record.rejected
    assert [n.input[0] for n in after.graph.node if n.op_type == "Cast"] == ["x"]
    x = np.random.default_rng(0).integers(0, 256, (2, 11, 13, 3)).astype(np.uint8)
    assert np.allclose(runner(before)({"x": x})["y"], runner(after)({"x": x})["y"])


def test_casts_over_float_stay_for_8():
    model = model_of(Case("chain", "f = Cast<to=1>(x) y = Cast<to=6>(f)", "uint8[N,H] x", "int32[a,b] y"))
    assert not apply(model, (RULE, MERGE), EIGHT).entries
    assert len(apply(model, (RULE, MERGE), "tensorrt-rtx").entries) == 1
