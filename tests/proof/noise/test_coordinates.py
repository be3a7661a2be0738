"""Interpolations are moved by a rounding of their coordinates, and by no more."""

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise.coordinates import MOVED_BY, move_coordinates

RESIZES = {
    "by scales": ('y = Resize<mode="linear">(x, , s)', "float[4] s = {1,1,0.6,1.7}"),
    "by sizes": ('y = Resize<mode="cubic">(x, , , s)', "int64[4] s = {2,3,5,31}"),
    "by sizes of axes": ('y = Resize<mode="linear",antialias=1,axes=[2,3]>(x, , , s)', "int64[2] s = {5,31}"),
    "grid": ("y = GridSample(x, s)", "float[2,1,2,2] s = {0.1,-0.3,0.5,0.7,-0.9,0.2,0.3,0.4}"),
}


def graph(body: str, constants: str) -> onnx.ModelProto:
    head = '<ir_version: 9, opset_import: ["" : 18]> g (float[2,3,16,24] x) => (float[a,b,c,d] y)'
    return onnx.parser.parse_model(f"{head} <{constants}> {{ {body} }}")


@pytest.mark.parametrize("name", RESIZES)
def test_the_outputs_move_by_a_rounding_of_the_coordinates(name: str) -> None:
    run = GraphRunner(graph(*RESIZES[name]))
    x = np.random.default_rng(0).normal(size=(2, 3, 16, 24)).astype(np.float32)
    moved = [r({"x": x})["y"] for r in run.resampled()]
    expected = run({"x": x})["y"]
    changes = [np.abs(m - expected).max() for m in moved if m.shape == expected.shape]
    assert changes
    # A slope is at most the difference of two neighbours, in cubic some more.
    slope = np.abs(np.diff(x, axis=3)).max() + np.abs(np.diff(x, axis=2)).max()
    assert 0 < max(changes) <= 4 * 24 * MOVED_BY * slope


@pytest.mark.parametrize(
    "body", ["y = Relu(x)", 'y = Resize<mode="nearest">(x, , s)', 'y = GridSample<mode="nearest">(x, s)']
)
def test_what_decides_or_does_not_interpolate_stays(body: str) -> None:
    assert move_coordinates(graph(body, "float[4] s = {1,1,0.6,1.7}")) is None


@pytest.mark.parametrize(("corners", "mode"), [(False, "bilinear"), (True, "bilinear"), (False, "bicubic")])
def test_a_module_is_moved_likewise(corners: bool, mode: str) -> None:
    import torch
    from torch import nn

    class Up(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.interpolate(x, size=(5, 31), mode=mode, align_corners=corners)

    x = np.random.default_rng(0).normal(size=(2, 3, 16, 24))
    runner = ModuleRunner(Up())
    exact = runner.exact()
    assert exact is not None
    (expected,) = exact({"x": x}).values()
    changes = [next(iter(run({"x": x}).values())) - expected for run in runner.resampled(exact)]
    for change in changes:
        assert 0 < np.abs(change).max() <= 4 * 24 * MOVED_BY * np.abs(x).max() * 4
    # To all four sides of a picture: two by two they are opposite, but for the rounding of sums in FP64.
    np.testing.assert_allclose(changes[0], -changes[1], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(changes[2], -changes[3], rtol=1e-5, atol=1e-12)
    assert np.abs(changes[0] - changes[2]).max() > 0
    plain = ModuleRunner(nn.ReLU())
    for run in plain.resampled(plain.exact()):
        run({"input": x})
    assert plain.resampled(plain.exact()) == ()
