"""What a file's own rounding is measured by."""

import numpy as np
import onnx
from onnx import helper

from tests.foreign.models import conv_net, recurrent_net, save, value
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


def test_coordinates_are_moved_too(tmp_path):
    """The twins of other seeds only round the weights, of which there are none before the Resize."""
    scales = np.array([1, 1, 1.7, 1.7], np.float32)
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["r"], mode="linear"),
        helper.make_node("Mul", ["r", "w"], ["y"]),
    ]
    weights = [("scales", scales), ("w", np.ones((17, 17), np.float32))]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [1, 1, 10, 10])], [value("y", None)], weights)
    original = FileOriginal(path)
    image = {"x": np.random.default_rng(0).standard_normal((1, 1, 10, 10)).astype(np.float32)}
    plain = original(image)["y"]
    errors = [np.abs(original.perturbed(seed)(image)["y"] - plain).max() for seed in (0, 2)]
    assert errors[0] > errors[1]


def test_a_twin_that_computes_something_else_is_not_believed(tmp_path):
    path = recurrent_net(tmp_path / "m.onnx")
    original = FileOriginal(path)
    original({"x": X, "state": X})
    model = onnx.load(path)
    # In FP64 this is not a rounding: 0.1 seven times over.
    model.graph.node[0].op_type = "Sub"
    onnx.save(model, path)
    assert original.exact() is None


def test_contrib_operators_have_no_twin(tmp_path):
    model = onnx.load(recurrent_net(tmp_path / "m.onnx"))
    model.graph.node[0].domain = "com.microsoft"
    assert in_float64(model) is None
