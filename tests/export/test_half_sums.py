"""Reductions of half-precision values that torch puts together itself add up in FP32, by the definition of ONNX."""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx.reference import ReferenceEvaluator

CALLS = {
    "normalize": ("F.normalize(h, dim=1)", lambda h: F.normalize(h, dim=1)),
    "cosine": ("F.cosine_similarity(h, h.roll(1, 1), dim=-1)", lambda h: F.cosine_similarity(h, h.roll(1, 1), dim=-1)),
    "distance": ("F.pairwise_distance(h, h * 0)", lambda h: F.pairwise_distance(h, h * 0)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "exporter"), [*((n, "dynamo") for n in CALLS), ("normalize", "torchscript")])
def test_a_sum_of_squares_beyond_fp16(export, write_module, name, exporter):
    text, call = CALLS[name]
    head = "class Net(nn.Module):\n    def forward(self, x):\n        h = x.half()\n"
    path = write_module(f"{head}        return {text}.float()\n")
    result = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=3:5:9", exporter=exporter)
    x = np.full((1, 5, 4), 300.0, np.float32)
    [y] = ReferenceEvaluator(onnx.load(result.model)).run(None, {"x": x})
    expected = call(torch.from_numpy(x).half()).float().numpy()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(y, expected, rtol=2e-3)


def test_halves_that_come_as_inputs(export, write_module):
    path = write_module("class Net(nn.Module):\n    def forward(self, x):\n        return F.normalize(x, dim=1)\n")
    result = export(f"{path}:Net", ["x:float16[N,T,4]"], "N=1:2:3 T=3:5:9")
    x = np.full((1, 5, 4), 300.0, np.float16)
    [y] = ReferenceEvaluator(onnx.load(result.model)).run(None, {"x": x})
    np.testing.assert_allclose(y, F.normalize(torch.from_numpy(x), dim=1).numpy(), rtol=2e-3)


def test_a_file_without_halves_is_left_alone(export, write_module):
    path = write_module("class Net(nn.Module):\n    def forward(self, x):\n        return x.mean(1)\n")
    result = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=3:5:9")
    assert "Cast" not in {n.op_type for n in onnx.load(result.model).graph.node}
