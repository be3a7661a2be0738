"""Dims that follow from others: how they are read, what they come to, where they are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper as h

from trtconv.check.session import _fitting_sizes
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.dim_names import name_dims
from trtconv.core.shape_space.derived import derived_from, names_of, size_of, solve_names
from trtconv.core.shape_space.padding import padded_inputs
from trtconv.core.shape_space.space import DimRange, parse_space, space_of_axes
from trtconv.core.tensors import parse_tensor, require_ranges

SPACE = parse_space(["N=1:2:4", "P=0:4:7", "S=1:1:3"])


@pytest.mark.parametrize(
    ("dim", "names", "size"),
    [
        ("P+S", ("P", "S"), 7),
        ("past + 2*S - 1", ("past", "S"), 15),
        ("(P+7)//8", ("P",), 1),
        ("P*S", ("P", "S"), 12),
        ("2*(P-1)", ("P",), 6),
        ("(P-9)*(S-9)", (), None),
        ("P", (), 4),
        ("unk-name", (), None),
        ("9-P", (), None),
        ("P//S", (), None),
        ("P//0", (), None),
        ("-P", (), None),
        ("max(P,S)", (), None),
        ("P+1.5", (), None),
        ("images:0", (), None),
        ("P+" * 300 + "P", (), None),
    ],
)
def test_an_expression_that_rises_with_each_dim_is_one(dim, names, size):
    assert derived_from(dim) == names
    sizes = {"P": 4, "S": 3, "past": 10}
    if size is None:
        assert names_of(dim) == (dim,)
        with pytest.raises(KeyError):
            size_of(dim, sizes)
    else:
        assert size_of(dim, sizes) == size
        grids = {name: np.full((2, 1), value) for name, value in sizes.items()}
        assert np.all(size_of(dim, grids) == size)


def test_an_input_has_the_shapes_and_the_range_that_follow():
    mask = parse_tensor("mask:int64[N, P+S]=0:1")
    assert str(mask) == "mask:int64[N,P+S]=0:1"
    assert mask.shape({"N": 2, "P": 5, "S": 1}) == (2, 6)
    assert mask.names() == ("N", "P", "S")
    assert "P+S" in SPACE
    assert SPACE["P+S"] == DimRange(1, 5, 10)
    assert "P+T" not in SPACE
    assert list(SPACE) == ["N", "P", "S"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("x:float32[N,P,S]", "m:float32[N,2*P-3]"), "the dim '2*P-3' of input 'm' is -3 at the least sizes"),
        (("x:float32[N,P,S]", "m:float32[N,9-P]"), "nor follows from named ones"),
        (("x:float32[N,P,S]", "m:float32[N,P+U]"), "input 'm' has a dim 'U' without a range"),
    ],
)
def test_one_that_cannot_be_is_refused(inputs, message):
    with pytest.raises(InvalidRequestError) as caught:
        require_ranges([parse_tensor(i) for i in inputs], SPACE)
    assert message in caught.value.message
    assert caught.value.hint


def test_names_that_no_axis_has_by_itself_are_solved_for():
    assert solve_names([("N", 2), ("P", 5), ("P+S", 6)]) == {"N": 2, "P": 5, "S": 1}
    assert solve_names([("2*T+1", 13), ("N", 2), (3, 3)]) == {"N": 2, "T": 6}
    assert solve_names([("H//16", 20)]) == {"H": 320}
    assert solve_names([("2*T+1", 12)]) == {}
    assert solve_names([("P+S", 6)]) == {}
    assert solve_names([("P+S+U", 9), ("P+S", 7), ("P", 4)]) == {"P": 4, "S": 3, "U": 2}
    space = space_of_axes([("2*T+1", DimRange(3, 13, 25)), ("N", DimRange(1, 2, 3)), ("P+S", DimRange(1, 2, 3))])
    assert dict(space.dims) == {"N": DimRange(1, 2, 3), "T": DimRange(1, 6, 12)}


def test_arrays_of_a_name_that_no_axis_has_by_itself():
    spec = parse_tensor("x:float32[N,2*T+1]")
    assert _fitting_sizes([spec], {"x": np.ones((2, 13), np.float32)}) == {"N": 2, "T": 6}
    alone = parse_tensor("x:float32[N,P+S]")
    assert _fitting_sizes([alone], {"x": np.ones((2, 5), np.float32)}) == {"N": 2}


def test_a_padded_dim_has_none_that_follow():
    specs = tuple(parse_tensor(i) for i in ("x:float32[N,P,S]", "m:float32[N,P+S]"))
    with pytest.raises(InvalidRequestError, match=r"'P\+S' of input 'm' follows from a dim that is padded"):
        padded_inputs(specs, SPACE, {"S": 2}, "zero")


def test_arrays_have_to_fit_them():
    specs = tuple(parse_tensor(i) for i in ("mask:int64[N,P+S]", "past:float32[N,P]", "ids:int64[N,S]"))
    arrays = {"mask": np.ones((2, 6), np.int64), "past": np.ones((2, 5), np.float32), "ids": np.ones((2, 1), np.int64)}
    assert _fitting_sizes(specs, arrays) == {"N": 2, "P": 5, "S": 1}
    arrays["mask"] = np.ones((2, 5), np.int64)
    with pytest.raises(InvalidRequestError, match=r"mask:int64\[N,P\+S\] cannot be int64\[2,5\] where N=2, P=5, S=1"):
        _fitting_sizes(specs, arrays)


def _file(*dims):
    inputs = [h.make_tensor_value_info(f"x{i}", onnx.TensorProto.FLOAT, d) for i, d in enumerate(dims)]
    outputs = [h.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = h.make_graph([h.make_node("Identity", ["x0"], ["y"])], "graph", inputs, outputs)
    return h.make_model(graph)


def test_a_file_s_own_expressions_stay_where_their_names_are_dims():
    others = ["batch", "past + tokens"], ["batch-1", "unk-1", "past * heads"]
    model = _file(["batch", "past"], ["batch", "tokens"], *others)
    changed = {c.old: c.new for c in name_dims(model)}
    # What no other axis is called is a name that cannot be typed, as `unk-1`.
    assert changed == {"unk-1": "unk_1", "past * heads": "past_heads"}
