"""Sizes of the shape space at which a graph is undefined."""

import pytest

from tests.rewrite.harness import Case, model_of
from tests.rewrite.test_room import ask
from trtconv.core.model.file import set_metadata
from trtconv.core.shape_space.space import parse_space
from trtconv.proof.undefined_sizes import sizes_of
from trtconv.rewrite.alignment.undefined_sizes import undefined_dims
from trtconv.rewrite.engine.points import model_space

UNET = Case(
    "skip connections over two halvings",
    """a = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) b = MaxPool<kernel_shape=[2,2],strides=[2,2]>(a)
       u = Resize<mode="nearest">(b, , s) c = Concat<axis=1>(a, u) v = Resize<mode="nearest">(c, , s)
       y = Concat<axis=1>(v, x)""",
    constants="float[4] s = {1,1,2,2}",
)
PLAIN = Case("no halving", "y = Relu(x)")


@pytest.mark.parametrize("space", ["N=1:2:4 H=16:32:100 W=16:32:64", "N=1:2:4 H=15:33:100 W=16:35:64"])
def test_the_multiple_that_helps_is_named(space):
    model = model_of(UNET)
    _, specs = model_space(model)
    undefined = {u.name: u for u in undefined_dims(model, parse_space([space]), specs)}
    assert set(undefined) == {"H", "W"}
    assert undefined["H"].multiple == undefined["W"].multiple == 4
    assert set(undefined["H"].sizes) == {v for v in sizes_of(parse_space([space])["H"]) if v % 4}
    assert "H=MIN:OPT:MAX%4" in str(undefined["H"])
    assert "Concat" in undefined["H"].problem


def test_nothing_is_said_of_a_space_of_multiples():
    model = model_of(UNET)
    _, specs = model_space(model)
    assert not undefined_dims(model, parse_space(["N=1:2:4 H=16:32:100%4 W=16:32:64%8"]), specs)


def test_nothing_is_said_of_a_graph_that_is_defined_everywhere():
    model = model_of(PLAIN)
    space, specs = model_space(model)
    assert not undefined_dims(model, space, specs)


def test_the_room_says_so(tmp_path):
    model = model_of(UNET)
    set_metadata(model, "trtconv.space", "N=1:2:4 H=16:32:100 W=16:32:64")
    set_metadata(model, "trtconv.inputs", "x:float32[N,8,H,W]")
    result = ask(model, tmp_path)
    assert [n for n in result.notes if "multiples of 4" in n]
    quiet = model_of(PLAIN)
    set_metadata(quiet, "trtconv.space", "N=1:2:4 H=16:32:100 W=16:32:64")
    assert not ask(quiet, tmp_path, "p").notes


def test_a_branch_that_is_not_taken_may_be_undefined():
    branches = "then_branch = one () => (z) { z = Add(x, ones) }, else_branch = other () => (w) { w = Relu(x) }"
    model = model_of(
        Case(
            "an If on the size",
            f"""shape = Shape(x) h = Gather(shape, axis) c = Equal(h, three) y = If (c) <{branches}>""",
            constants="float[1,1,3,1] ones = {1,1,1}, int64 axis = {2}, int64 three = {3}",
        )
    )
    _, specs = model_space(model)
    assert not undefined_dims(model, parse_space(["N=1:2:4 H=2:3:7 W=2:3:4"]), specs)
