"""Whole numbers past 32 bits that an input has, or that come of sizes, for TensorRT 8.6."""

import onnx
import pytest

from tests.rewrite.lowering.test_branch_sizes import rewrite_saved
from trtconv.core.errors import UnsupportedError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.lowering.wide_integers import require_32_bits

HEAD = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,T] x) => (float[1,T] y) <int64 one = {1}, int64 zero = {0}, int64 seven = {7}, int64[1] ends = {1}> {
  shape = Shape(x)
  size = Gather(shape, one)
  ramp = Range(zero, size, one)
"""
SUMMED = "row = Reshape(size, ends) ones = ConstantOfShape<value = int64[1] {1}>(row)"
BODIES = {
    "a ramp": "wide = Mul(ramp, ramp) rest = Mod(wide, seven)",
    "a size": "wide = Mul(size, size) rest = Mod(wide, seven)",
    "a table of all pairs": "column = Unsqueeze(ramp, ends) pairs = Mul(column, ramp) large = ReduceMax<axes=[0], "
    "keepdims=0>(pairs) rest = Mod(large, seven)",
    "a sum of a sum": f"{SUMMED} first = CumSum(ones, zero) second = CumSum(first, zero) rest = Mod(second, seven)",
}


def rewritten(tmp_path, body, target, largest):
    text = f"{HEAD} {body} f = Cast<to=1>(rest) y = Mul(x, f) }}"
    return rewrite_saved(tmp_path, onnx.parser.parse_model(text), target, f"T=1:100:{largest}")


@pytest.mark.parametrize("case", BODIES)
def test_numbers_of_sizes_are_refused_where_32_bits_do_not_hold_them(tmp_path, case):
    with pytest.raises(UnsupportedError, match=r"in 32 bits, silently, and \d{10} comes out .* \(T=70000\)"):
        rewritten(tmp_path, BODIES[case], "tensorrt==8.6", 70000)


@pytest.mark.parametrize(("target", "largest"), [("tensorrt==8.6", 40000), ("tensorrt==10", 70000)])
@pytest.mark.parametrize("case", ["a ramp", "a size", "a sum of a sum"])
def test_others_are_taken(tmp_path, case, target, largest):
    assert rewritten(tmp_path, BODIES[case], target, largest).whole is not False


IDS = """<ir_version: 8, opset_import: ["": 17]>
g (int64[N] i) => (int64[N] y) <int64 count = {97}> { y = Mod(i, count) }"""
RANGES = [("0:2147483647", True), ("0:5000000000", False), ("-3000000000:5", False)]


@pytest.mark.parametrize(("values", "fits"), RANGES)
def test_the_range_of_an_input(values, fits):
    specs = (parse_tensor(f"i:int64[N]={values}"),)
    setting = RewriteSetting(parse_target("tensorrt==8.6"), parse_space(["N=1:2:3"]), specs, proof=True)
    if fits:
        require_32_bits(onnx.parser.parse_model(IDS), setting)
    else:
        with pytest.raises(UnsupportedError, match=r"the input 'i' has values up to -?\d{10}"):
            require_32_bits(onnx.parser.parse_model(IDS), setting)
