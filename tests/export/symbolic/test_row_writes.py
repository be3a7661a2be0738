"""Rows that are written into an axis of fixed size: no scatter of single elements is left in the file."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module

WRITES = {
    "the first": "y[:, 0] = x[:, 1] + 1",
    "the last": "y[:, -1] = x[:, 0] * 3",
    "between": "y[:, 1].copy_(x[:, 0])",
    "the only one": "y = x.new_zeros(1, 3, t + 2)\n        y[0, :, :t].copy_(x[0])",
    "beginning in the middle": "y[:, 1:, 2:] = x[:, 1:, 2:] * 3",
    "up to the last": "y[:, :-1] = 5\n        y[:, :, : t - 1] *= 2",
    "from the back": "y[..., -2:] = 8",
    "each other": "y[:, :, ::2] = 9",
    "nothing": "y[:, 2:1] = 4",
    "on a canvas": "y = x.new_full((x.shape[0], 5, t + 4), 2.5)\n        y[:, 1:4, 2 : t + 2] = x",
    "by the operator": "y = torch.select_scatter(x, x[:, 0] * 3, 1, 2)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", WRITES)
def test_a_row_is_where_torch_writes_it(write_module, export, tmp_path, name):
    import torch

    path = write_module(
        "class Net(nn.Module):\n    def forward(self, x):\n        t, y = x.shape[2], x * 2\n"
        f"        {WRITES[name]}\n        return y\n"
    )
    export(f"{path}:Net", ["x:float32[N,3,T]"], "N=1:2:3 T=2:9:40", exporter="dynamo")
    model = onnx.load(tmp_path / "out" / "model.onnx")
    operators = {n.op_type for n in model.graph.node}
    assert "ScatterElements" not in operators
    assert ("ScatterND" in operators) == (name in ("from the back", "each other"))
    assert ("Pad" in operators) == (name in ("the only one", "on a canvas"))
    session, module = ort.InferenceSession(model.SerializeToString()), load_module(ModuleSource(f"{path}:Net"))
    for n, t in ((1, 2), (2, 9), (3, 40)):
        x = torch.rand(n, 3, t)
        np.testing.assert_array_equal(session.run(None, {"x": x.numpy()})[0], module(x).numpy())


def test_a_row_of_a_moving_axis_is_scattered(write_module, export, tmp_path):
    path = write_module(
        "class Net(nn.Module):\n    def forward(self, x):\n        return torch.select_scatter(x, x[:, 0] * 3, 1, 2)\n"
    )
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:9:40", exporter="dynamo")
    assert "ScatterElements" in {n.op_type for n in onnx.load(tmp_path / "out" / "model.onnx").graph.node}
