"""What FP64 reaches and FP32 does not is refused before an engine is built."""

from __future__ import annotations

import onnx
import pytest

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.provenance import INPUTS_KEY, SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

EXPONENTIAL = """<ir_version: 8, opset_import: ["" : 17]>
agraph (double[N,8] x) => (double[N,8] y) <double part = {0.02}> { s = Mul(x, part) y = Exp(s) }"""
# An overflow in FP64 as well: FP32 loses nothing.
INFINITE = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,8] x) => (float[N,8] y) <double big = {1e308}> {
  w = Cast<to=11>(x) s = Mul(w, w) a = Mul(s, big) b = Mul(a, s) c = Greater(b, s) y = Cast<to=1>(c)
}"""


def written(tmp_path, text, spec, **options):
    model = onnx.parser.parse_model(text)
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:5")
    model.metadata_props.add(key=INPUTS_KEY, value=spec)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    request = RewriteRequest(path, tmp_path / "model.trt.onnx", parse_target("tensorrt==8.6"), **options)
    return rewrite_model(request, SilentProgress())


def test_an_exponential_that_only_fp64_reaches_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match=r"elements of output 'y' are then beyond FP32's range") as caught:
        written(tmp_path, EXPONENTIAL, "x:float64[N,8]")
    assert "large" in caught.value.message
    assert "range" in caught.value.hint
    assert not (tmp_path / "model.trt.onnx").exists()


def test_a_declared_range_within_fp32_is_taken(tmp_path):
    assert any("FP32 instead of FP64" in n for n in written(tmp_path, EXPONENTIAL, "x:float64[N,8]=-10:10").notes)


def test_without_a_proof_it_is_written_with_the_note(tmp_path):
    result = written(tmp_path, EXPONENTIAL, "x:float64[N,8]", proof=False)
    assert any("FP32 instead of FP64" in n for n in result.notes)


def test_what_is_infinite_in_both_is_not_refused(tmp_path):
    assert written(tmp_path, INFINITE, "x:float32[N,8]").model.exists()
