"""Sizes that a file computes in floats, at all pairs of the range."""

import numpy as np
import pytest
from onnx import TensorProto, parser

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.sizes.file_sizes import differing_sizes
from trtconv.export.sizes.float_sizes import rounding_dims, rounding_nodes

SPECS = (parse_tensor("x:float32[N,4,H,W]"),)
SPACE = parse_space(["N=1:1:4", "H=1:64:1100", "W=1:64:1100"])


def graph_of(body, constants):
    text = f"g (float[N,4,H,W] x) => (int64 y) <{constants}> {{ {body} }}"
    return parser.parse_graph(text)


PRODUCT = """
    s = Shape(x) h = Gather(s, two) w = Gather(s, three) p = Mul(h, w)
    f = Cast<to=1>(p) m = Mul(f, factor) y = Cast<to=7>(m)
"""
NAMES = "int64 two = {2}, int64 three = {3}"


def test_every_pair_that_it_gives_differs_and_there_are_some():
    result = differing_sizes(graph_of(PRODUCT, f"{NAMES}, float factor = {{0.7}}"), SPECS, SPACE)
    assert result
    for sizes in result:
        area = sizes["H"] * sizes["W"]
        assert set(sizes) == {"H", "W"}
        assert int(np.float32(area) * np.float32(0.7)) != int(area * 0.7)


def test_one_that_divides_by_a_power_of_two_is_the_same_everywhere():
    assert differing_sizes(graph_of(PRODUCT, f"{NAMES}, float factor = {{0.25}}"), SPECS, SPACE) == []


def test_a_value_that_comes_from_data_is_left_alone():
    graph = graph_of("r = ReduceMax<keepdims=0>(x) m = Mul(r, factor) y = Cast<to=7>(m)", "float factor = {0.7}")
    assert graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert differing_sizes(graph, SPECS, SPACE) == []


def test_a_logarithm_may_be_cut_otherwise_where_it_is_nearly_whole():
    body = """
    s = Shape(x) h = Gather(s, two) f = Cast<to=1>(h) l = Log(f) m = Div(l, factor) y = Cast<to=7>(m)
"""
    suspects = differing_sizes(graph_of(body, f"{NAMES}, float factor = {{0.6931471805599453}}"), SPECS, SPACE)
    assert {s["H"] for s in suspects} == {2**k for k in range(11)}


def test_the_rest_of_a_logarithm():
    body = """
    s = Shape(x) h = Gather(s, two) f = Cast<to=1>(h) l = Log(f) m = Div(l, factor) y = Mod<fmod=1>(m, one)
"""
    constants = f"{NAMES}, float factor = {{2.302585092994046}}, float one = {{1.0}}"
    assert {s["H"] for s in differing_sizes(graph_of(body, constants), SPECS, SPACE)} >= {10, 100, 1000}


SIDES = """
    s = Shape(x) h = Gather(s, two) w = Gather(s, three) p = Mul(h, w) f = Cast<to=1>(p) taller = Less(w, h)
    y = If (taller) <
        then_branch = high () => (int64 high/y) { high/m = Mul(f, factor) high/y = Cast<to=7>(high/m) },
        else_branch = low () => (int64 low/y) { low/y = Identity(p) }
    >
"""


def test_the_sides_of_an_if_are_looked_at():
    graph = graph_of(SIDES.replace("high/", "high_").replace("low/", "low_"), f"{NAMES}, float factor = {{0.7}}")
    assert differing_sizes(graph, SPECS, SPACE)
    (node,) = rounding_nodes(graph)
    assert node.output[0] == "high_y"


def test_what_is_looked_up_by_a_size_is_left_alone():
    body = "s = Shape(x) h = Gather(s, two) r = Gather(table, h) f = Cast<to=1>(r) m = Mul(f, factor) y = Cast<to=7>(m)"
    table = "int64[5] table = {1, 2, 3, 4, 5}"
    assert differing_sizes(graph_of(body, f"{NAMES}, {table}, float factor = {{0.7}}"), SPECS, SPACE) == []


@pytest.mark.parametrize(
    ("body", "dims"),
    [
        ("s = Shape<start=3, end=4>(x) f = Cast<to=1>(s) m = Mul(f, factor) y = Cast<to=7>(m)", {"W"}),
        ("r = Relu(x) t = Transpose<perm=[2, 0, 1, 3]>(r) s = Shape<start=0, end=1>(t) f = Cast<to=1>(s) "
         "m = Mul(f, factor) y = Cast<to=7>(m)", {"H"}),
        ("p = MaxPool<kernel_shape=[2, 2]>(x) s = Shape<start=2, end=3>(p) f = Cast<to=1>(s) m = Mul(f, factor) "
         "y = Cast<to=7>(m)", {"H"}),
        ("s = Shape<start=2>(x) f = Cast<to=1>(s) m = Mul(f, factor) y = Cast<to=7>(m)", {"H", "W"}),
        ("q = Flatten(x) s = Shape<start=1>(q) f = Cast<to=1>(s) m = Mul(f, factor) y = Cast<to=7>(m)", None),
        ("s = Shape(x) f = Cast<to=1>(x) m = Mul(f, factor) y = Cast<to=7>(m)", set()),
    ],
)  # fmt: skip
def test_the_dims_that_are_rounded(body, dims):
    assert rounding_dims(graph_of(body, "float factor = {0.7}"), SPECS) == dims


MULTIPLE = """
    s = Shape(x) t = Gather(s, three) f = Cast<to=1>(t) m = Mul(f, factor) a = Add(m, four) i = Cast<to=7>(a)
"""


@pytest.mark.parametrize(
    ("rest", "decides"),
    [
        ("q = Div(i, eight) y = Mul(q, eight)", lambda i: i // 8),
        ("q = Mod(i, many) y = Max(q, one)", lambda i: max(i % 250, 1)),
        ("q = Less(i, many) y = Cast<to=7>(q)", lambda i: i < 250),
    ],
)
def test_differences_that_a_later_step_hides_at_most_sizes_are_looked_for_behind_it(rest, decides):
    """`int(t * 0.35 + 4) // 8 * 8`: of 94 sizes at which FP32 differs four show, and none of them is the first."""
    constants = (
        f"{NAMES}, float factor = {{0.35}}, float four = {{4.0}}, int64 eight = {{8}}, int64 many = {{250}}, "
        "int64 one = {1}"
    )
    space = parse_space(["N=1:1:4", "H=1:64:1100", "W=1:500:5000"])
    result = differing_sizes(graph_of(MULTIPLE + rest, constants), SPECS, space)

    def narrow(w):
        return int(np.float32(w) * np.float32(0.35) + np.float32(4))

    def exact(w):
        return int(w * 0.35 + 4)

    showing = [w for w in range(1, 5001) if decides(narrow(w)) != decides(exact(w))]
    assert not showing or {s["W"] for s in result} & set(showing)
    assert all(narrow(s["W"]) != exact(s["W"]) for s in result)
