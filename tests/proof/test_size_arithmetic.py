"""Arithmetic on shapes at all joint sizes, beside onnx's own evaluator at each of them."""

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.sizes.intervals import Bounds
from trtconv.proof.joint_sizes import size_grids
from trtconv.proof.size_arithmetic import SizeArithmetic, sizes_beside_turns, truths
from trtconv.proof.size_elements import NotSizesError

SPECS = (parse_tensor("x:float32[N,T]"),)
SPACE = parse_space(["N=1:1:3", "T=1:9:40"])
BODIES = {
    "a row of a table": "kk = Gather(k, zero) c = LessOrEqual(kk, t) i = Cast<to=7>(c) y = ReduceSum<keepdims=0>(i)",
    "a column of a table": "kk = Gather<axis=1>(k, two) y = Add(kk, t)",
    "rows of a vector with an axis more": "u = Unsqueeze(s, zeros) r = Gather(u, zero) y = Mul(r, r)",
    "a column of it": "u = Unsqueeze(s, ones) r = Gather(u, zero) y = Squeeze(r)",
    "a part of the columns": "y = Slice(k, zeros, two1, ones)",
    "backwards": "kk = Gather(k, one) y = Slice(kk, minus, least, zeros, minus)",
    "side by side": "u = Reshape(s, column) y = Concat<axis=1>(u, u)",
    "one below the other": "u = Reshape(s, row) y = Concat<axis=0>(u, k2)",
    "broadcast both ways": "u = Reshape(s, column) y = Mul(k2, u)",
    "a choice in a table": "c = Less(k, t) y = Where(c, k, t)",
    "a sum of all that keeps its axes": "p = Mul(k, t) a = ReduceSum(p) y = Squeeze(a)",
    "a narrow whole number that wraps": "b = Mul(t, fifty) c = Cast<to=3>(b) y = Cast<to=7>(c)",
    "arithmetic in bytes": "b = Cast<to=2>(t) c = Mul(b, b) d = Div(c, b) y = Cast<to=7>(d)",
    "a quotient of narrow numbers": "b = Sub(one, t) c = Cast<to=3>(b) d = Div(c, small) y = Cast<to=7>(d)",
    "sums in FP64": "b = Cast<to=11>(t) c = Add(b, big) d = Sub(c, big) y = Cast<to=7>(d)",
    "kept sizes of a shape": "u = Reshape(k, kept) y = Add(u, t)",
}
CONSTANTS = """
    int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] zeros = {0}, int64[1] ones = {1}, int64[1] two1 = {2},
    int64[1] minus = {-1}, int64[1] least = {-9223372036854775807}, int64[2] column = {-1, 1}, int64[2] row = {1, -1},
    int64 fifty = {50}, double big = {9007199254740000.0}, int8 small = {2},
    int64[2] kept = {0, -1}, int64[2,3] k = {1, 20, 30, 4, 5, 36}, int64[1,2] k2 = {3, 7}
"""


def model_of(body):
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[N,T] x) => (int64 y) <{CONSTANTS}> {{ s = Shape(x) t = Gather(s, one) {body} }}"""
    return parser.parse_model(text)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_element_is_onnxs_at_every_size(body):
    model = model_of(body)
    arithmetic, evaluator = SizeArithmetic(model.graph, SPECS), ReferenceEvaluator(model)
    grids = next(iter(size_grids(SPACE, ["N", "T"])))
    elements = [np.broadcast_to(e, (3, 40)) for e in arithmetic.value("y", grids, np.float32)]
    for n in (1, 3):
        for t in (1, 4, 5, 20, 37, 40):
            (expected,) = evaluator.run(None, {"x": np.zeros((n, t), np.float32)})
            assert [int(e[n - 1, t - 1]) for e in elements] == np.ravel(expected).tolist()


def test_a_condition_on_a_row_of_a_table_comes_out_both_ways():
    body = f"{BODIES['a row of a table'].replace('y =', 'n =')} y = Equal(n, two)"
    assert truths(model_of(body).graph, "y", SPECS, SPACE) == {True, False}


@pytest.mark.parametrize(
    "body", ["y = Gather(k, t)", "r = Concat<axis=0>(k, k2) y = Add(r, t)", "u = Reshape(k, s) y = Add(u, t)"]
)
def test_what_another_size_decides_or_does_not_fit_is_no_arithmetic(body):
    arithmetic = SizeArithmetic(model_of(body).graph, SPECS)
    with pytest.raises(NotSizesError):
        arithmetic.value("y", next(iter(size_grids(SPACE, ["N", "T"]))), np.float32)


def test_a_dim_that_is_taken_from_the_back_of_a_part_of_a_shape():
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N,T,H,W] x) => (int64 y) <int64 last = {-1}> { s = Shape<start=1, end=3>(x) y = Gather(s, last) }"""
    model, specs = parser.parse_model(text), (parse_tensor("x:float32[N,T,H,W]"),)
    space = parse_space(["N=1:1:3", "T=1:9:40", "H=2:6:7", "W=1:1:1"])
    assert SizeArithmetic(model.graph, specs).dims("y") == {"H"}
    bounds = Bounds(model.graph, specs, space).of("y")
    assert (bounds.low, bounds.high) == (2, 7)


def test_the_model_is_valid():
    onnx.checker.check_model(model_of("y = Identity(t)"))


HALVES = {
    "no 2049": ("h = Cast<to=10>(t) i = Cast<to=7>(h) y = Equal(i, t)", 2048, {True}),
    "2049": ("h = Cast<to=10>(t) i = Cast<to=7>(h) y = Equal(i, t)", 2049, {True, False}),
    "infinite from 256 on": ("h = Cast<to=10>(t) q = Mul(h, h) b = Add(q, q) y = Equal(b, q)", 300, {True, False}),
    "thirds": (
        "h = Cast<to=10>(t) p = Cast<to=10>(three) d = Div(h, p) m = Mul(d, p) y = Equal(m, h)", 2047, {True, False},
    ),
}


@pytest.mark.parametrize(("body", "most", "answers"), HALVES.values(), ids=HALVES)
def test_a_size_in_half_precision_is_rounded_as_onnx_says(body, most, answers):
    body = f"three = Constant<value = int64[1] {{3}}>() {body}"
    assert truths(model_of(body).graph, "y", SPECS, parse_space(["N=1:1:3", f"T=1:9:{most}"])) == answers


def test_a_size_in_bfloat16_is_not_evaluated():
    with pytest.raises(NotSizesError):
        truths(model_of("h = Cast<to=16>(t) i = Cast<to=7>(h) y = Equal(i, two)").graph, "y", SPECS, SPACE)


def test_a_float_beyond_a_whole_type_is_not_evaluated():
    body = "m = Mul(t, fifty) f = Cast<to=1>(m) i = Cast<to=3>(f) j = Cast<to=7>(i) y = Equal(j, two)"
    with pytest.raises(NotSizesError):
        truths(model_of(body).graph, "y", SPECS, SPACE)


def test_sizes_of_both_sides_of_a_turn():
    body = "seven = Constant<value_int = 7>() y = Less(seven, t)"
    beside = sizes_beside_turns(model_of(body).graph, "y", SPECS, SPACE, 4)
    assert sorted(sizes["T"] for sizes in beside) == [7, 8]
