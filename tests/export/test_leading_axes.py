# ruff: noqa: E501 - the lines of a module
"""Axes of reductions from the front: of a tensor without elements ONNX Runtime keeps those that count from the back."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

from trtconv.export.leading_axes import count_axes_from_front

BOXES = """<ir_version: 8, opset_import: ["": OPSET]>
g (float[N,S,4] x) => (float y, float z) <CONSTANT> { r = Mul(x, x) y = REDUCE z = ReduceMax<axes=[2], keepdims=0>(x) }"""


@pytest.mark.parametrize(
    ("opset", "reduce", "constant", "count"),
    [
        (17, "ReduceProd<axes=[-1], keepdims=0>(r)", "", 1),
        (17, "ReduceSum<keepdims=0>(r, back)", "int64[1] back = {-1}", 1),
        (17, "ReduceSum<keepdims=0>(r, front)", "int64[1] front = {2}", 0),
        (17, "ReduceMin<axes=[-1, 1], keepdims=0>(r)", "", 1),
        (17, "Cast<to=1>(index)", "", 1),
    ],
)
def test_the_shape_of_nothing_is_torchs(opset, reduce, constant, count):
    text = BOXES.replace("OPSET", str(opset)).replace("REDUCE", reduce).replace("CONSTANT", constant)
    text = text.replace("y = Cast", "index = ArgMax<axis=-1, keepdims=0>(r) y = Cast")
    model = parser.parse_model(text)
    assert count_axes_from_front(model) == count
    onnx.checker.check_model(model)
    session = ort.InferenceSession(model.SerializeToString())
    empty, few = (session.run(["y"], {"x": np.ones((2, n, 4), np.float32)})[0] for n in (0, 3))
    assert empty.ndim == few.ndim
    if "1]" not in reduce.replace("-1]", ""):
        assert empty.shape == (2, 0)
    assert count_axes_from_front(model) == 0


def test_an_unknown_rank_is_left():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[N,S,4] x, int64[K] s) => (float y) { r = Reshape(x, s) y = ReduceProd<axes=[-1], keepdims=0>(r) }"""
    )
    assert count_axes_from_front(model) == 0


def test_behind_a_squeeze_of_whatever_is_one_the_rank_is_open():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,5] x) => (int64 y) <float[N,5] r> { r = Squeeze(x) y = ArgMax<axis=-1, keepdims=0>(r) }"""
    )
    assert count_axes_from_front(model) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_no_boxes(write_module, export, tmp_path, exporter):
    path = write_module(
        "class Net(nn.Module):\n    def forward(self, a, b):\n"
        "        low, high = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])\n"
        "        return (high - low).clamp(min=0).prod(-1), b.amax(-1, keepdim=True), b.sum((-1, -2))\n"
    )
    export(f"{path}:Net", ["a:float32[T,4]", "b:float32[S,4]"], "T=1:5:9 S=0:3:7", exporter=exporter)
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    a = np.random.default_rng(0).random((2, 4), np.float32)
    shapes = [v.shape for v in session.run(None, {"a": a, "b": np.zeros((0, 4), np.float32)})]
    assert shapes == [(2, 0), (0, 1), ()]
