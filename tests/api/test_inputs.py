"""Inputs and ranges of a Python call."""

import numpy as np
import pytest

from trtconv.api.inputs import folder_of, input_texts, range_texts
from trtconv.core.errors import InvalidRequestError

IDS = np.array([[3, 7]])


def texts(inputs, dims=None):
    return input_texts(inputs, dims, lambda: ("images", "ids"))


@pytest.mark.parametrize(
    ("inputs", "dims", "expected"),
    [
        (None, None, ()),
        ({"x": "float32[N,8]"}, None, ("x:float32[N,8]",)),
        ({"x=images": "[N,8]=0:1"}, None, ("x=images[N,8]=0:1",)),
        ("x:float32[N,8]", None, ("x:float32[N,8]",)),
        (["x:int64[N]", "y[2]"], None, ("x:int64[N]", "y[2]")),
        (np.zeros((1, 3), np.float16), None, ("images:float16[1,3]",)),
        ([np.zeros(2, bool), IDS], {"ids": ["N", 2]}, ("images:bool[2]", "ids:int64[N,2]=3:7")),
        ({"ids": np.zeros((0,), np.int32)}, None, ("ids:int32[0]",)),
        ({"a": np.float32(3)}, None, ("a:float32[]",)),
        ({"x": np.zeros((1, 3), np.float32)}, {"x": "N, 3"}, ("x:float32[N,3]",)),
        ({"x": np.zeros((1, 3), np.float32)}, {"x": {0: "N"}}, ("x:float32[N,3]",)),
        ({"x": np.zeros((1, 3), np.float32)}, {"x": {-1: "T"}}, ("x:float32[1,T]",)),
        (np.zeros((1, 3), np.float16), "N,3", ("images:float16[N,3]",)),
        (np.zeros((1, 3), np.float16), ("N", 3), ("images:float16[N,3]",)),
        (np.zeros((1, 3), np.float16), {0: "N", 1: "T"}, ("images:float16[N,T]",)),
    ],
)
def test_as_the_command_line_writes_them(inputs, dims, expected):
    assert texts(inputs, dims) == expected


@pytest.mark.parametrize(
    ("inputs", "dims", "message"),
    [
        ({"x": 3}, None, "input 'x' must be a text or a tensor, got int"),
        ([IDS, IDS, IDS], None, "3 inputs are given, but forward takes 2: images, ids"),
        ({"x": IDS}, {"y": "N"}, "dims names no input 'y'"),
        ({"x": IDS}, {"x": "N"}, "do not fit the example of input 'x', whose shape is (1, 2)"),
        ({"x": IDS}, {"x": "N,3"}, "do not fit"),
        ({"x": "float32[N]"}, {"x": "N"}, "has its dims in it"),
        (IDS, 3, "dims must be a dictionary by input, got 3"),
        ([IDS, IDS], "N,2", "dims must be a dictionary by input, got 'N,2'"),
        (IDS, {5: "N"}, "the dims {5: 'N'} do not fit the example of input 'images'"),
        ({"x": IDS}, {"x": 3}, "the dims of input 'x' must be a text, got 3"),
    ],
)
def test_wrong_inputs(inputs, dims, message):
    with pytest.raises(InvalidRequestError) as caught:
        texts(inputs, dims)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (None, ()),
        ("N=1:1:4  H=8", ("N=1:1:4", "H=8")),
        ({"N": "1:1:4", "H": (8, 16, 32, 8), "W": [1, 2, 3], "T": 5}, ("N=1:1:4", "H=8:16:32%8", "W=1:2:3", "T=5")),
    ],
)
def test_ranges(ranges, expected):
    assert range_texts(ranges) == expected


def test_integers_of_numpy_are_sizes():
    assert range_texts({"N": tuple(np.array([1, 2, 4])), "T": np.int32(7)}) == ("N=1:2:4", "T=7")


@pytest.mark.parametrize("value", [(1, 2), 1.5, (1, 2, "3"), True and (True, True, True), None, range(1, 5)])
def test_wrong_ranges(value):
    with pytest.raises(InvalidRequestError, match="the range of 'N' must be a size, or min, opt and max"):
        range_texts({"N": value})


def test_a_sparse_example_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidRequestError, match="the example of input 'x' is sparse"):
        texts({"x": torch.eye(4).to_sparse()})


def test_a_folder_is_named_as_a_shell_would(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert str(folder_of("~/out")) == "/home/someone/out"
    assert folder_of(None) is None
    for nothing in ("", b"out", 3):
        with pytest.raises(InvalidRequestError, match="output must be a folder"):
            folder_of(nothing)
