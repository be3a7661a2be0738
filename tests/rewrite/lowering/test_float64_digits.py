"""Sums in FP64 of values that lie close together far from zero: told, and refused where they are declared."""

from __future__ import annotations

import pytest

from tests.rewrite.lowering.test_float64_range import written
from trtconv.core.errors import UnsupportedError

HEAD = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,8] x) => (float[N,1] y) { d = Cast<to=11>(x) m = ReduceMean<axes=[1]>(d) """
SPREAD = HEAD + "s = Mul(d, d) a = ReduceMean<axes=[1]>(s) b = Mul(m, m) v = Sub(a, b) y = Cast<to=1>(v) }"
STEADY = HEAD + "c = Sub(d, m) s = Mul(c, c) v = ReduceMean<axes=[1]>(s) y = Cast<to=1>(v) }"
STATISTICS = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,8] x) => (float[N,8] y) <double mean = {100000.0001}, double std = {0.01}> {
  d = Cast<to=11>(x) c = Sub(d, mean) v = Div(c, std) y = Cast<to=1>(v)
}"""
TOO_FEW = "FP32 has too few digits"


def test_a_variance_as_a_difference_of_moments_is_told(tmp_path):
    notes = [n for n in written(tmp_path, SPREAD, "x:float32[N,8]").notes if TOO_FEW in n]
    assert len(notes) == 1
    assert "'x' from 99" in notes[0]
    assert "of its magnitude" in notes[0]


def test_a_mean_that_the_graph_holds_is_tried(tmp_path):
    notes = written(tmp_path, STATISTICS, "x:float32[N,8]").notes
    assert any(TOO_FEW in n and "'x' from 99998" in n for n in notes)


def test_within_a_declared_range_it_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="within the declared range, too few digits are left") as caught:
        written(tmp_path, SPREAD, "x:float32[N,8]=0:100000")
    assert "subtract the mean" in caught.value.hint
    assert not (tmp_path / "model.trt.onnx").exists()


def test_what_subtracts_the_mean_first_is_taken(tmp_path):
    written(tmp_path, STEADY, "x:float32[N,8]=0:100000")
    assert (tmp_path / "model.trt.onnx").exists()


def test_a_range_around_zero_is_taken(tmp_path):
    notes = written(tmp_path, SPREAD.replace("v = Sub(a, b)", "v = Add(a, b)"), "x:float32[N,8]=-1:1").notes
    assert not any(TOO_FEW in n for n in notes)


LAST_DIGITS = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,T] x) => (int64[N,T] y) <double k = {1e12}, int64 m = {1024}> {
  d = Cast<to=11>(x) p = Mul(d, k) i = Cast<to=7>(p) y = Mod(i, m)
}"""
PHASE = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,T] x) => (float[N,T] y) <double k = {1e9}> {
  d = Cast<to=11>(x) p = Mul(d, k) s = Floor(p) f = Sub(p, s) y = Cast<to=1>(f)
}"""
THOUSANDS = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,3] x) => (int64[N,3] y) <double k = {1e6}, int64 m = {1024}> {
  d = Cast<to=11>(x) p = Mul(d, k) i = Cast<to=7>(p) y = Mod(i, m)
}"""


@pytest.mark.parametrize(("text", "spec"), [(LAST_DIGITS, "[N,T]"), (PHASE, "[N,T]"), (THOUSANDS, "[N,3]")])
def test_digits_that_fp32_lacks_at_usual_values_are_refused(tmp_path, text, spec):
    """Inputs that move by rounding move these outputs, which is no allowance: FP64 is there so that nothing does."""
    with pytest.raises(UnsupportedError, match=r"of the elements of output 'y' are then off|outputs then differ"):
        written(tmp_path, text, f"x:float32{spec}")
    assert not (tmp_path / "model.trt.onnx").exists()


def test_a_level_of_256_that_falls_to_the_other_side_is_no_reason(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17]>
    agraph (float[N,512] x) => (int64[N,512] y) <double k = {255.0}> {
      d = Cast<to=11>(x) p = Mul(d, k) r = Round(p) y = Cast<to=7>(r)
    }"""
    written(tmp_path, text, "x:float32[N,512]=0:1")
