"""Ifs of one answer."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.foreign.models import rate_net
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting
from trtconv.rewrite.lowering.settled_ifs import settle_ifs

SETTING = RewriteSetting(
    parse_target("tensorrt-rtx"),
    parse_space(["N=1:2:3"]),
    (parse_tensor("x:float32[N,8]"), parse_tensor("sr:int64[]")),
    True,
)
X = np.arange(16, dtype=np.float32).reshape(2, 8)


def operators(model):
    return {n.op_type for n in model.graph.node}


def test_both_ifs_go_when_the_rate_is_a_constant(tmp_path):
    model = onnx.load(rate_net(tmp_path / "m.onnx"))
    del model.graph.input[1]
    model.graph.initializer.append(numpy_helper.from_array(np.array(16000, np.int64), "sr"))
    record = RewriteRecord()
    settled = settle_ifs(model, SETTING, record)
    assert "If" not in operators(settled)
    assert [e.node for e in record.entries] == ["outer", "if0/inner"]
    onnx.checker.check_model(settled)
    assert np.array_equal(OnnxRuntimeRunner(settled.SerializeToString())({"x": X})["y"], 3 * X)


def test_an_if_on_a_value_stays(tmp_path):
    model = onnx.load(rate_net(tmp_path / "m.onnx"))
    before = model.SerializeToString()
    assert settle_ifs(model, SETTING, RewriteRecord()).SerializeToString() == before


def test_an_if_whose_answer_changes_with_the_size_stays(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    g (float[N,8] x) => (float[N,8] y) <int64 zero = {0}, int64 two = {2}> {
      shape = Shape(x)
      rows = Gather(shape, zero)
      few = Less(rows, two)
      y = If(few)<then_branch = a () => (float[N,8] p) {p = Relu(x)}, else_branch = b () => (float[N,8] q) {q = Neg(x)}>
    }""")
    assert "If" in operators(settle_ifs(model, SETTING, RewriteRecord()))


def test_an_if_that_one_pair_of_sizes_decides_stays():
    """No sampling comes to 13 x 17."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    g (float[H,W] x) => (float[H,W] y) <int64 zero = {0}, int64 one = {1}, int64 area = {221}> {
      shape = Shape(x)
      height = Gather(shape, zero)
      width = Gather(shape, one)
      product = Mul(height, width)
      equal = Equal(product, area)
      y = If(equal)<then_branch = a () => (float[H,W] p) {p = Relu(x)},
                    else_branch = b () => (float[H,W] q) {q = Neg(x)}>
    }""")
    specs = (parse_tensor("x:float32[H,W]"),)
    wide = RewriteSetting(SETTING.target, parse_space(["H=5:8:400 W=6:9:400"]), specs, True)
    assert "If" in operators(settle_ifs(model, wide, RewriteRecord()))
    narrow = RewriteSetting(SETTING.target, parse_space(["H=5:8:12 W=6:9:400"]), specs, True)
    assert "If" not in operators(settle_ifs(model, narrow, RewriteRecord()))


@pytest.mark.parametrize("dtype", [onnx.TensorProto.INT8, onnx.TensorProto.FLOAT16])
def test_an_if_of_a_size_in_a_narrow_type_is_asked_at_every_size(dtype):
    """253 as int8 is -3, and 2049 as FP16 is 2048: at one size of 3000 the other branch is taken."""
    sought = -3 if dtype == onnx.TensorProto.INT8 else 2048
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[N,T] x) => (float[N,T] y) <int64 one = {{1}}, int64 sought = {{{sought}}}, int64 most = {{2049}}> {{
      shape = Shape(x)
      size = Gather(shape, one)
      narrow = Cast<to={int(dtype)}>(size)
      wide = Cast<to=7>(narrow)
      is_sought = Equal(wide, sought)
      is_most = Equal(size, most)
      condition = And(is_sought, is_most)
      y = If(condition) <then_branch = a () => (float[N,T] b) {{ b = Neg(x) }},
        else_branch = c () => (float[N,T] d) {{ d = Abs(x) }}>
    }}""")
    if dtype == onnx.TensorProto.INT8:
        next(n for n in model.graph.node if n.op_type == "If").input[0] = "is_sought"
    specs, record = (parse_tensor("x:float32[N,T]"),), RewriteRecord()
    space = parse_space(["N=1:2:300", "T=1:500:3000"])
    settled = settle_ifs(model, RewriteSetting(parse_target("tensorrt==8.6"), space, specs, True), record)
    assert "If" in operators(settled)
    assert not record.notes
