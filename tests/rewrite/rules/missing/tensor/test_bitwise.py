# ruff: noqa: E501 - the text of a model stands on one line
"""Bit operations."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.patterns.bits import runs
from trtconv.rewrite.rules.missing.tensor.bitwise import RULE

OPS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
WIDE = {"opset": 18, "ranges": {"i": (-300, 300), "j": (-300, 300)}}
BYTES = {"opset": 18, "ranges": {"i": (0, 255), "j": (0, 255)}}


def unary(kind):
    return {"inputs": f"{kind}[N,H] i", "outputs": f"{kind}[a,b] y"}


def binary(kind):
    return {"inputs": f"{kind}[N,H] i, {kind}[N,H] j", "outputs": f"{kind}[a,b] y"}


CASES = [
    Case(f"{op} {mask}", f"y = {op}(i, m)", constants=f"int32 m = {{{mask}}}", absent=(op,), **unary("int32"), **WIDE)
    for op in OPS for mask in (7, 12, 5, 2147483646, -8, -1, 0)
] + [
    Case(f"{op} mask first, {kind}", f"y = {op}(m, i)", constants=f"{kind} m = {{{mask}}}", absent=(op,), **unary(kind), **WIDE)
    for op in OPS for kind, mask in (("int64", 20), ("int64", -5))
] + [
    Case(f"{op} of two, {kind}", f"y = {op}(i, j)", absent=(op,), **binary(kind), **(BYTES if kind == "uint8" else WIDE))
    for op in OPS for kind in ("int32", "int64", "uint8")
] + [
    Case(f"{op} of two, 8.6", f"y = {op}(i, j)", absent=(op,), target="tensorrt==8.6", **binary("int64"), **WIDE) for op in OPS
] + [
    Case("and, uint8", "y = BitwiseAnd(i, m)", constants="uint8 m = {102}", absent=("BitwiseAnd",), **unary("uint8"), **BYTES),
    Case("xor, uint8", "y = BitwiseXor(i, m)", constants="uint8 m = {255}", absent=("BitwiseXor",), **unary("uint8"), **BYTES),
    Case("masks of each column", "y = BitwiseAnd(i, m)", "int32[N,4] i", "int32[a,b] y", "int32[4] m = {1, 2, 4, 8}", absent=("BitwiseAnd",), **WIDE),
    Case("broadcast", "y = BitwiseOr(i, j)", "int32[N,H] i, int32[W,1,H] j", "int32[a,b,c] y", absent=("BitwiseOr",), **WIDE),
    Case("not", "y = BitwiseNot(i)", absent=("BitwiseNot",), **unary("int32"), **WIDE),
    Case("not, uint8", "y = BitwiseNot(i)", absent=("BitwiseNot",), **unary("uint8"), **BYTES),
    Case("shift right", 'u = Cast<to=13>(i) s = BitShift<direction="RIGHT">(u, m) y = Cast<to=7>(s)',
         constants="uint64 m = {3}", absent=("BitShift",), ranges={"i": (0, 200)}, **unary("int64")),
    Case("shift left", 'u = Cast<to=12>(i) s = BitShift<direction="LEFT">(u, m) y = Cast<to=6>(s)',
         constants="uint32 m = {3}", absent=("BitShift",), ranges={"i": (-200, 200)}, **unary("int32")),
    Case("bytes shifted right", 'y = BitShift<direction="RIGHT">(i, m)', constants="uint8 m = {2}", absent=("BitShift",), **unary("uint8"), **BYTES),
    Case("bytes shifted left", 'y = BitShift<direction="LEFT">(i, m)', constants="uint8 m = {3}", absent=("BitShift",), **unary("uint8"), **BYTES),
    Case("bytes shifted by several", 'y = BitShift<direction="LEFT">(i, m)', "uint8[N,4] i", "uint8[a,b] y", "uint8[4] m = {0, 1, 7, 4}", absent=("BitShift",), **BYTES),
]  # fmt: skip
NEAR_MISSES = [
    Case("64 bits without a sign", "y = BitwiseAnd(i, m)", constants="uint64 m = {7}", skip="uint64", opset=18, **unary("uint64")),
    Case("uint32 on 8.6", "y = BitwiseAnd(i, j)", target="tensorrt==8.6", skip="uint32", opset=18, **binary("uint32")),
    Case("shift by a value", 'y = BitShift<direction="LEFT">(i, j)', skip="not a constant", opset=18, **binary("uint8")),
    Case("too many values", "y = BitwiseOr(i, j)", "int32[5000,1000] i, int32[5000,1000] j", "int32[a,b] y", opset=18, skip="into 31 bits"),
    Case("logical", "c = Cast<to=9>(i) d = Cast<to=9>(j) e = And(c, d) y = Cast<to=6>(e)", **binary("int32")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_the_whole_range(op, kind):
    name = np.dtype(kind).name
    model = model_of(Case("range", f"y = {op}(i, j)", opset=18, **binary(name)))
    masked = model_of(Case("range", f"y = {op}(i, m)", constants=f"{name} m = {{1431655765}}", opset=18, **unary(name)))
    ends = np.iinfo(kind)
    rng = np.random.default_rng(0)
    i = np.concatenate([rng.integers(ends.min, ends.max, 60, dtype=kind), [ends.min, ends.max, -1, 0]]).astype(kind)[
        None
    ]
    j = rng.permutation(i[0])[None]
    truth = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op]
    for graph, other in ((model, j), (masked, np.asarray(1431655765, kind))):
        assert apply(graph, (RULE,), "tensorrt-rtx").entries
        assert (runner(graph)({"i": i, "j": j})["y"] == truth(i, other)).all()


def test_runs_of_ones():
    assert runs(0b110101) == [(0, 1), (2, 3), (4, 6)]
    assert runs(0) == []
