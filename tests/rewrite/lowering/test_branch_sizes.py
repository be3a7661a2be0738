"""Ifs whose branches give other sizes, which TensorRT 8.6 takes for those of one of them."""

import onnx
import pytest

from trtconv.core.errors import UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

HEAD = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,T] x) => (float[N,U] y) <int64 one = {1}, int64 fifty = {50}, float half = {0.5}, int64[1] zero = {0},
  int64[1] first = {1}, int64[1] limit = {50}, int64[1] eight = {8}> {
  shape = Shape(x)
  size = Gather(shape, one)
  short = Less(size, fifty)
  lacking = Sub(fifty, size)
  row = Unsqueeze(lacking, zero)
  zeros = Concat<axis=0>(zero, zero, zero)
  pads = Concat<axis=0>(zeros, row)
"""
LONG = "else_branch = c () => (float[N,V] d) { d = Mul(x, half) }"
PADDED = f"y = If(short) <then_branch = a () => (float[N,W] b) {{ b = Pad(x, pads) }}, {LONG}> }}"
ALIKE = f"y = If(short) <then_branch = a () => (float[N,W] b) {{ b = Neg(x) }}, {LONG}> }}"


def rewrite_saved(tmp_path, model, target, space="N=1:2:3 T=20:60:80"):
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    request = RewriteRequest(path, tmp_path / "out.onnx", parse_target(target), space=parse_space([space]))
    return rewrite_model(request, SilentProgress())


def rewritten(tmp_path, body, target, before="", **space):
    return rewrite_saved(tmp_path, onnx.parser.parse_model(HEAD + before + body), target, **space)


@pytest.mark.parametrize(("body", "target"), [(ALIKE, "tensorrt==8.6"), (PADDED, "tensorrt-rtx")])
def test_what_the_target_takes_is_written(tmp_path, body, target):
    rewritten(tmp_path, body, target)
    kinds = {n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node}
    assert "If" in kinds


def test_branches_of_other_sizes_are_refused(tmp_path):
    with pytest.raises(UnsupportedError, match=r"whose branches give other sizes: 'y' gives \[\d, 50\] or"):
        rewritten(tmp_path, PADDED, "tensorrt==8.6")


def test_a_branch_that_is_undefined_where_it_is_not_taken_is_refused(tmp_path):
    # Forty columns as 5 rows of 8: a view that has no sizes elsewhere.
    viewed = """y = If(short) <
      then_branch = a () => (float[N,T] b) { s40 = Constant<value_ints = [0, 5, 8]>() v = Reshape(x, s40)
        s2 = Constant<value_ints = [0, -1]>() b = Reshape(v, s2) }, """ + LONG + "> }"
    is_forty = "forty = Constant<value_int = 40>() is_forty = Equal(size, forty)"
    body = viewed.replace("short", "is_forty")
    with pytest.raises(UnsupportedError, match=r"is undefined at .* where it is not taken"):
        rewritten(tmp_path, body, "tensorrt==8.6", is_forty, space="N=1:2:3 T=20:40:80")
