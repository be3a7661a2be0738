"""What a file's own rounding is measured by."""

import numpy as np
import onnx

from tests.foreign.models import conv_net, recurrent_net
from trtconv.foreign import FileOriginal
from trtconv.foreign.twins import in_float64

X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)


def test_the_twin_in_fp64_is_the_same_function(tmp_path):
    original = FileOriginal(recurrent_net(tmp_path / "m.onnx"))
    inputs = {"x": X, "state": X}
    plain = original(inputs)["z"]
    exact = original.exact()({n: v.astype(np.float64) for n, v in inputs.items()})["z"]
    assert exact.dtype == np.float64
    error = np.abs(exact - plain).max()
    assert 0 < error < 1e-5


def test_moved_weights_differ_by_roundings(tmp_path):
    original = FileOriginal(conv_net(tmp_path / "m.onnx"))
    image = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    plain = original({"x": image})["y"]
    moved = original.perturbed(0)({"x": image})["y"]
    assert 0 < np.abs(moved - plain).max() < 1e-5
    assert original.perturbed(0) is original.perturbed(0)
    # ONNX Runtime has no Conv in FP64.
    assert original.exact() is None


def test_a_twin_that_computes_something_else_is_not_believed(tmp_path):
    path = recurrent_net(tmp_path / "m.onnx")
    original = FileOriginal(path)
    original({"x": X, "state": X})
    model = onnx.load(path)
    # In FP64 this is no rounding: 0.1 seven times over.
    model.graph.node[0].op_type = "Sub"
    onnx.save(model, path)
    assert original.exact() is None


def test_contrib_operators_have_no_twin(tmp_path):
    model = onnx.load(recurrent_net(tmp_path / "m.onnx"))
    model.graph.node[0].domain = "com.microsoft"
    assert in_float64(model) is None
