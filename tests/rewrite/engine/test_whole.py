"""Zeros in a graph whose norms stand in a row: rounding alone moves its outputs, a mistake moves them further."""

import numpy as np
import pytest
from onnx import parser

from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.whole import InitialGraph

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def norms(count, kind, epsilon="1e-5"):
    """`count` instance norms in a row, each with the mean as ReduceMean or as a sum times 1/1024."""
    lines, x = ["x0 = Add(x, bias)"], "x0"
    for i in range(count):
        for part, value in (("m", x), ("v", f"q{i}")):
            if part == "v":
                lines += [f"d{i} = Sub({x}, m{i})", f"q{i} = Mul(d{i}, d{i})"]
            if kind == "mean":
                lines.append(f"{part}{i} = ReduceMean<axes=[2,3]>({value})")
            else:
                # Halves first: another order of the same sum.
                lines += [f"a{part}{i}, b{part}{i} = Split<axis=3>({value}, halves)"]
                lines += [f"s{part}{i} = ReduceSum(a{part}{i}, axes)", f"t{part}{i} = ReduceSum(b{part}{i}, axes)"]
                lines += [f"u{part}{i} = Add(s{part}{i}, t{part}{i})", f"{part}{i} = Mul(u{part}{i}, share)"]
        lines += [
            f"e{i} = Add(v{i}, eps)",
            f"r{i} = Sqrt(e{i})",
            f"n{i} = Div(d{i}, r{i})",
            f"g{i} = Mul(n{i}, gain)",
            f"x{i + 1} = Add(g{i}, bias)",
        ]
        x = f"x{i + 1}"
    body = " ".join(lines) + f" y = Identity({x})"
    constants = (
        f"float[1,2,1,1] bias = {{0.137, -0.731}}, float eps = {{{epsilon}}}, float share = {{{1 / 1024}}}, "
        "float gain = {400.0}, int64[2] axes = {2, 3}, int64[2] halves = {15, 17}"
    )
    shape = "float[N,2,32,32]"
    return parser.parse_model(f"{HEAD} g ({shape} x) => ({shape} y) <{constants}> {{{body}}}")


def compared(before, after):
    with InitialGraph(before, *model_space(before)) as original:
        return original.compare(after)


def test_another_order_of_summation_is_allowed_where_rounding_alone_does_as_much():
    proof = compared(norms(3, "mean"), norms(3, "sum"))
    assert proof.passed
    assert "rounding alone moves the outputs" in proof.note
    at_zeros = next(c for c in proof.comparisons if "zeros" in c.point)
    assert at_zeros.max_abs > 1e-3, "the case is one in which the plain tolerance would fail"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_gain_that_is_one_percent_off_is_none_of_rounding(count):
    after = norms(count, "mean")
    next(t for t in after.graph.initializer if t.name == "gain").float_data[:] = [404.0]
    assert not compared(norms(count, "mean"), after).passed


def test_nothing_is_allowed_for_a_graph_that_keeps_small_changes_small():
    def shifted(by):
        return parser.parse_model(f"{HEAD} g (float[N,4] x) => (float[N,4] y) <float c = {{{by}}}> {{y = Add(x, c)}}")

    assert not compared(shifted(0.0), shifted(0.001)).passed
    np.testing.assert_equal(compared(shifted(0.0), shifted(0.0)).passed, True)


@pytest.mark.parametrize(("other", "passed"), [("s = Softplus(n) y = Neg(s)", True), ("y = Identity(n)", False)])
def test_another_form_of_a_sigmoid_is_equal_where_the_kernel_is_cut_off(other, passed):
    """log(sigmoid(x)) is -softplus(-x); ONNX Runtime's own Sigmoid is 0 under -18."""
    bias = "<float[1] bias = {-30.0}>"

    def model(body):
        return parser.parse_model(f"{HEAD} g (float[N,8] x) => (float[N,8] y) {bias} {{b = Add(x, bias) {body}}}")

    proof = compared(model("s = Sigmoid(b) y = Log(s)"), model(f"n = Neg(b) {other}"))
    assert proof.passed is passed, proof.note
