"""Python's floats keep their digits beside FP64 tensors."""

import math

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NET = """
class Net(nn.Module):
    def forward(self, x):
        turns = (x.double() * 0.37).cumsum(1)
        return torch.sin(2 * math.pi * (turns - turns.floor())).float(), x + 0.1
"""


@pytest.fixture
def exported(export, write_module):
    write_module("import math\n" + NET)
    return export("net.py:Net", ["x:float32[N,T]=50:400"], "N=1:2:3 T=40:50:60", exporter="dynamo").model


def test_factors_beside_fp64_are_exact(exported):
    model = onnx.load(exported)
    wide = [onnx.numpy_helper.to_array(i) for i in model.graph.initializer if i.data_type == onnx.TensorProto.DOUBLE]
    assert {float(w) for w in wide} == {0.37, 2 * math.pi}


def test_phase_of_many_turns_equals_that_of_fp64(exported):
    x = np.random.default_rng(0).uniform(50, 400, (2, 50)).astype(np.float32)
    turns = (x.astype(np.float64) * 0.37).cumsum(1)
    first, second = OnnxRuntimeRunner(exported)({"x": x}).values()
    assert np.abs(first - np.sin(2 * math.pi * (turns - np.floor(turns)))).max() < 1e-6
    assert second.dtype == np.float32
