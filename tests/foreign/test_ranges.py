"""Dims without a range: what is proposed works."""

import shlex

import pytest

from tests.foreign.models import conv_net, one_name_for_two_sizes, recurrent_net, table_net
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.foreign import points_for


def proposed(path, space=None):
    """The options that the error says to add."""
    with pytest.raises(InvalidRequestError, match="nothing says how large") as caught:
        points_for(path, (), space)
    assert caught.value.hint.startswith("add --")
    words = shlex.split(caught.value.hint.partition(" (")[0].removeprefix("add "))
    inputs = [words[i + 1] for i, w in enumerate(words) if w == "--input"]
    ranges = words[words.index("--dynamic") + 1 :] if "--dynamic" in words else []
    return inputs, ranges


def take(path, inputs, ranges):
    return points_for(path, [parse_tensor(t) for t in inputs], parse_space(ranges))


def test_each_dim_gets_a_range_that_runs(tmp_path):
    path = conv_net(tmp_path / "m.onnx")
    inputs, ranges = proposed(path)
    assert (inputs, ranges) == ([], ["DynamicDimension_0=1:1:4", "x_dim2=64:96:128", "x_dim3=64:96:128"])
    file = take(path, inputs, ranges)
    assert "x_dim2 (axis 2 of 'x', was '?')" in file.notes[0]


def test_what_was_given_is_not_proposed_again(tmp_path):
    _, ranges = proposed(conv_net(tmp_path / "m.onnx"), parse_space(["x_dim3=8:8:8"]))
    assert ranges == ["DynamicDimension_0=1:1:4", "x_dim2=64:96:128"]


def test_dims_that_move_together_get_one_name(tmp_path):
    """Once a KeyError: 'state_dim0'."""
    path = recurrent_net(tmp_path / "m.onnx")
    inputs, ranges = proposed(path)
    assert inputs == ["state:float32[x_dim0,6]"]
    assert ranges == ["x_dim0=1:1:4"]
    assert take(path, inputs, ranges).space == parse_space(ranges)


def test_one_name_for_two_sizes_is_split(tmp_path):
    path = one_name_for_two_sizes(tmp_path / "m.onnx")
    _, ranges = proposed(path)
    assert ranges in (["N=8"], ["N=8:8:8"])
    with pytest.raises(InvalidRequestError, match="calls axis 0 of 'x' and axis 1 of 'x' 'N'") as caught:
        points_for(path, (), parse_space(["N=1:1:4"]))
    assert "x_dim0=1:1:4 x_dim1=8:8:8" in caught.value.hint
    assert take(path, (), ["x_dim0=1:1:4", "x_dim1=8"]).inputs[0].dims == ("x_dim0", "x_dim1")


def test_whole_numbers_are_small_where_that_is_what_runs(tmp_path):
    path = table_net(tmp_path / "m.onnx")
    inputs, ranges = proposed(path)
    assert inputs == ["ids:int64[N,T]=0:1"]
    assert take(path, inputs, ranges).inputs[0].value_range == (0.0, 1.0)


def test_a_range_of_no_dim_lists_the_dims(tmp_path):
    with pytest.raises(InvalidRequestError, match=r"no input of .* has a dim called 'H'") as caught:
        points_for(conv_net(tmp_path / "m.onnx"), (), parse_space(["H=1:1:4"]))
    assert "x_dim2" in caught.value.hint


def test_what_the_file_says_where_nothing_runs(tmp_path):
    path = conv_net(tmp_path / "m.onnx", dims=("N", 7, 8, 8), out=("N", 4, 8, 8))
    with pytest.raises(InvalidRequestError) as caught:
        points_for(path)
    assert "Input channels C is not equal to kernel channels" in caught.value.details[1]
