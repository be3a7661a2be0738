# ruff: noqa: E501 - the text of a model stands on one line
"""What a comparison of graphs on a CPU does not show: places written twice, integers beyond 32 bits."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from trtconv.core.errors import UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.graph.observed import observe

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
ELEMENTS = """
agraph (float[N,7] u, int64[N,7] i) => (float[N,12] y) <int64[1] wide = {12}, int64[1] zero = {0}, int64[1] one = {1}> {
  shape = Shape(u)
  rows = Slice(shape, zero, one, zero)
  both = Concat<axis=0>(rows, wide)
  data = ConstantOfShape(both)
  given = {UPDATES}
  y = ScatterElements<axis=1{REDUCTION}>(data, i, given)
}"""
ROWS = """
agraph (float[N,7] u, int64[N,1] i) => (float[12,7] y) <int64[2] shape = {12, 7}> {
  data = ConstantOfShape(shape)
  y = ScatterND(data, i, u)
}"""
HASH = """
agraph (int64[N,7] i) => (int64[N,7] y) <int64 prime = {73856093}, int64 count = {1024}> {
  wide = Mul(i, prime)
  y = Mod(wide, count)
}"""
TEN = parse_target("tensorrt==10")
SPACE = parse_space(["N=2:4:6"])


def observed(text, target="tensorrt==10", inputs=("u:float32[N,7]", "i:int64[N,7]=0:11")):
    return observe(parsed(text), SPACE, specs(*inputs), parse_target(target))


def parsed(text):
    return onnx.parser.parse_model(HEADER + text)


def specs(*inputs):
    return tuple(parse_tensor(t) for t in inputs)


def elements(updates="Identity(u)", reduction=""):
    return ELEMENTS.replace("{UPDATES}", updates).replace("{REDUCTION}", reduction)


def test_a_place_that_is_written_twice_is_noted():
    (note,) = observed(elements())
    assert "ScatterElements" in note
    assert "writes different values to one place at" in note


@pytest.mark.parametrize("text", [elements("Sub(u, u)"), elements(reduction=', reduction="add"')])
def test_equal_values_and_reductions_are_none(text):
    assert observed(text) == ()


def test_each_place_once_is_none():
    text = elements().replace("(data, i, given)", "(data, once, given)")
    text = text.replace("  given =", "  ranks, once = TopK<axis=1>(u, seven)\n  given =")
    assert observed(text.replace("<int64[1] wide", "<int64[1] seven = {7}, int64[1] wide")) == ()
    assert (
        len(observed(text.replace("<int64[1] wide", "<int64[1] seven = {7}, int64[1] wide").replace("once, g", "i, g")))
        == 1
    )


def test_rows_that_are_written_twice_are_noted_and_negative_ones_count_from_the_end():
    assert len(observed(ROWS, inputs=("u:float32[N,7]", "i:int64[N,1]=3:3"))) == 1
    # -9 and 3 are one row of 12.
    mixed = ROWS.replace("(data, i, u)", "(data, other, u)").replace("  y =", "  other = Mul(i, signs)\n  y =")
    mixed = mixed.replace("<int64[2] shape", "<int64[4, 1] signs = {1, 1, 1, -3}, int64[2] shape")
    assert len(observe(parsed(mixed), parse_space(["N=4:4:4"]), specs("u:float32[N,7]", "i:int64[N,1]=3:3"), TEN)) == 1


def test_rows_once_each_are_not_noted():
    once = ROWS.replace("(data, i, u)", "(data, each, u)").replace(
        "  y =",
        "  count = Shape<end=1>(u)\n"
        "  scalar = Squeeze(count)\n  ranks = Range(zero, scalar, one)\n  each = Unsqueeze(ranks, axis)\n  y =",
    )
    once = once.replace("<int64[2] shape", "<int64 zero = {0}, int64 one = {1}, int64[1] axis = {1}, int64[2] shape")
    once = once.replace(", int64[N,1] i", "")
    assert observed(once, inputs=("u:float32[N,7]",)) == ()
    twice = once.replace("each = Unsqueeze(ranks, axis)", "none = Mul(ranks, zero)\n  each = Unsqueeze(none, axis)")
    assert len(observed(twice, inputs=("u:float32[N,7]",))) == 1


@pytest.mark.parametrize(
    ("target", "top", "refused"),
    [
        ("tensorrt==8.6", 5000, True),
        ("tensorrt==8.6", 20, False),
        ("tensorrt==10", 5000, False),
    ],
)
def test_integers_beyond_32_bits_are_refused_where_they_are_computed_in_32(target, top, refused):
    inputs = (f"i:int64[N,7]=0:{top}",)
    if refused:
        with pytest.raises(UnsupportedError, match=r"in 32 bits, silently, and [0-9]+ comes out of it"):
            observed(HASH, target, inputs)
    else:
        assert observed(HASH, target, inputs) == ()


REDUCED = "agraph (int32[N,7] i) => (int32[a,b] y) <int64[1] k = {1}> { y = OPERATOR }"


@pytest.mark.parametrize("operator", ["ReduceMax<axes=[1]>(i)", "ReduceSum(i, k)", "Max(i, i)"])
@pytest.mark.parametrize(("target", "low"), [("tensorrt==8.6", 1 << 24), ("tensorrt==8.6", 5), ("tensorrt==10", 1 << 24)])
def test_integers_that_fp32_does_not_hold_are_refused_where_they_are_reduced_in_it(operator, target, low):
    text, inputs = REDUCED.replace("OPERATOR", operator), (f"i:int32[N,7]={low}:{low + 99}",)
    if target == "tensorrt==8.6" and low > 5 and operator[:3] != "Max":
        with pytest.raises(UnsupportedError, match=r"computes it in FP32, silently, and [0-9]+ at .* is no number of FP32"):
            observed(text, target, inputs)
    else:
        assert observed(text, target, inputs) == ()


@pytest.mark.parametrize(("end", "refused"), [(2147483647, False), (-2147483648, False), (2147483645, True)])
def test_the_ends_of_32_bits_pass_through_fp32(end, refused):
    text = "agraph (int32[N,7] i, bool[N,7] m) => (int32[a,b] y, int64[c,d] z) <int32 end = {END}, int64[1] k = {2}> { w = Where(m, i, end) y, z = TopK(w, k) }"
    inputs = ("i:int32[N,7]=0:99", "m:bool[N,7]")
    if refused:
        with pytest.raises(UnsupportedError, match="2147483645 at"):
            observed(text.replace("END", str(end)), "tensorrt==8.6", inputs)
    else:
        assert observed(text.replace("END", str(end)), "tensorrt==8.6", inputs) == ()


def test_sizes_are_not_looked_at(tmp_path):
    """Only what is computed from data; and the room hands the notes on."""
    model = onnx.parser.parse_model(HEADER + elements())
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    result = rewrite_model(RewriteRequest(path, tmp_path / "out.onnx", parse_target("tensorrt-rtx")), SilentProgress())
    assert np.count_nonzero(["writes different values" in n for n in result.notes]) == 1
