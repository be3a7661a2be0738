"""`//` of sizes: one Div where none is negative, in both exporters, and rounded down elsewhere."""

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.model.file import load_model

HALVED = """
class Net(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, (x.shape[1] // 2 + 1) // 2))
"""
PADDED = """
class Net(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, 20 + (7 - x.shape[1]) // 2))
"""
OF_VALUES = """
class Net(nn.Module):
    def forward(self, x, n):
        return x * 2, (n - 9) // 4, (x.shape[1] + n) // 8
"""


def operators(path):
    return [n.op_type for n in load_model(path).graph.node]


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_sizes_that_cannot_be_negative_are_divided_plainly(exporter, write_module, export):
    write_module(HALVED)
    result = export("net.py:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9", exporter=exporter)
    assert operators(result.model).count("Div") == 2
    assert not {"Where", "Mod", "Less", "Mul"} & set(operators(result.model))


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_sizes_that_may_be_negative_are_rounded_down(exporter, write_module, export):
    write_module(PADDED)
    result = export("net.py:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:40", exporter=exporter)
    assert "Mod" in operators(result.model)
    assert "Where" not in operators(result.model)
    run = OnnxRuntimeRunner(result.model)
    for length in (6, 7, 8, 10, 39):
        padded = next(iter(run({"x": np.ones((1, length), np.float32)}).values()))
        assert padded.shape[1] == length + 20 + (7 - length) // 2


def test_values_are_rounded_down_in_a_recorded_file(write_module, export):
    write_module(OF_VALUES)
    result = export("net.py:Net", ["x:float32[N,T]", "n:int64[N]=0:9000"], "N=1:2:3 T=1:5:9", exporter="torchscript")
    n = np.array([0, 1, 5, 8], np.int64)
    outputs = list(OnnxRuntimeRunner(result.model)({"x": np.ones((4, 3), np.float32), "n": n}).values())
    assert outputs[1].tolist() == [-3, -2, -1, -1]
    assert outputs[2].tolist() == ((3 + n) // 8).tolist()
