"""Sizes that are written into tensors stay sizes."""

import numpy as np
import onnxruntime as ort
import pytest

ELEMENT = """
class Net(nn.Module):
    def forward(self, x):
        shape = torch.empty((2,), dtype=torch.long)
        shape[0] = x.shape[2]
        shape[1] = x.shape[3]
        return x / shape.prod() + shape.to(x.dtype).view(1, 2, 1, 1)
"""
LISTED = """
class Net(nn.Module):
    def forward(self, x):
        shape = torch.tensor([x.shape[2], x.shape[3]], dtype=torch.float32)
        return x / shape.view(1, 2, 1, 1)
"""
ROWS = """
class Net(nn.Module):
    def forward(self, x):
        shapes = torch.as_tensor([[x.shape[2], x.shape[3]], [x.shape[2] // 2, x.shape[3] // 2]])
        starts = torch.cat((shapes.new_zeros(1), shapes.prod(1).cumsum(0)[:-1]))
        return x + starts.view(1, 2, 1, 1)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", [ELEMENT, LISTED, ROWS], ids=["element", "listed", "rows"])
def test_sizes_in_tensors_stay_sizes(export, write_module, source):
    write_module(source)
    result = export("net.py:Net", ["x:float32[N,2,H,W]"], "N=1:1:2 H=4:8:16%4 W=4:12:16%4", exporter="dynamo")
    assert result.exporter == "dynamo"


MASKED = """
class Net(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        taller, wider = ((h - 1) | 7) + 1, -(-w & ~3)
        return F.pad(x, [0, wider - w, 0, taller - h]) * (h & 3)
"""


def test_bits_of_sizes_are_arithmetic(export, write_module, tmp_path):
    write_module(MASKED)
    export("net.py:Net", ["x:float32[N,2,H,W]"], "N=1:1:2 H=9:20:40 W=9:20:40", exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    for h, w in ((9, 12), (16, 13), (17, 40), (39, 33)):
        (padded,) = session.run(None, {"x": np.ones((1, 2, h, w), np.float32)})
        assert padded.shape == (1, 2, -(-h // 8) * 8, -(-w // 4) * 4)
        assert padded[0, 0, 0, 0] == h % 4


NEW = """
class Net(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        corner, share = x.new_tensor([[w - 1, h - 1]]), x.new_tensor(h)
        return x * corner.view(1, 2, 1, 1) / share, x.new_tensor([h / w, 0.5], dtype=torch.float64), x.new_tensor(3)
"""


@pytest.mark.slow
def test_new_tensors_of_sizes_stay_sizes(export, write_module, tmp_path):
    write_module(NEW)
    export("net.py:Net", ["x:float32[N,2,H,W]"], "N=1:1:2 H=3:8:17 W=3:12:17", exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    for h, w in ((3, 4), (8, 17), (13, 5)):
        scaled, ratio, three = session.run(None, {"x": np.ones((1, 2, h, w), np.float32)})
        np.testing.assert_allclose(scaled[0, :, 0, 0], [(w - 1) / h, (h - 1) / h], rtol=1e-6)
        np.testing.assert_allclose(ratio, [h / w, 0.5], rtol=1e-7)
        assert three == 3
