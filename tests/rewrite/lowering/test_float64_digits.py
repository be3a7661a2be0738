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
