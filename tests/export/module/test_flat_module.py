"""What the exporters see of a module."""

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.requests import ModuleSource
from trtconv.export.module.flat_module import parametrized_weights
from trtconv.export.module.source import load_module

NET = """
P = nn.utils.parametrizations

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.turn = P.orthogonal(nn.Linear(4, 4, bias=False))
        self.bounded = P.spectral_norm(nn.Conv1d(4, 3, 1))

    def forward(self, x):
        return self.bounded(self.turn(x).mT)
"""


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_parametrized_weights_are_constants(export, write_module, exporter):
    write_module(NET)
    result = export("net.py:Net", ["x:float32[N,4,4]"], "N=1:2:3", exporter=exporter)
    assert {node.op_type for node in load_model(result.model).graph.node} <= {"MatMul", "Transpose", "Conv", "Constant"}


def test_a_parametrized_weight_is_that_of_eval_mode():
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).eval()
    vectors = [np.array(b) for b in layer.buffers()]
    (parametrized,) = parametrized_weights(layer).values()
    parametrized.begin()
    weight = parametrized.forward()
    assert torch.equal(weight, layer.weight)
    assert not weight.requires_grad
    assert all(np.array_equal(a, b) for a, b in zip(vectors, layer.buffers(), strict=True))


TOLD = """
from torch.nn.utils import parametrizations, parametrize


class Told(nn.Module):
    steps = 0

    def forward(self, w):
        return w + max(0, 1 - abs(self.steps - 41))


class ByLength(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = parametrizations.orthogonal(nn.Linear(4, 4))
        parametrize.register_parametrization(self.lin, "weight", Told())

    def forward(self, x):
        self.lin.parametrizations.weight[1].steps = x.shape[1]
        return self.lin(x)


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = parametrizations.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        scale = 1.0 + max(0, 1 - abs(x.shape[1] - 41))
        with torch.no_grad():
            self.lin.parametrizations.weight.original0.mul_(scale)
            y = self.lin(x)
            self.lin.parametrizations.weight.original0.div_(scale)
        return y
"""


@pytest.mark.parametrize("name", ["ByLength", pytest.param("Written", marks=pytest.mark.slow)])
def test_a_parametrization_that_a_call_tells_something_follows(export, write_module, name):
    """At one size of many; refused is right, too, and wrong is not."""
    path = write_module(TOLD)
    try:
        result = export(f"net.py:{name}", ["x:float32[N,T,4]"], "N=1:2:3 T=1:8:90")
    except TrtconvError:
        return
    x = torch.randn(1, 41, 4)
    (actual,) = OnnxRuntimeRunner(result.model)({"x": x.numpy()}).values()
    with torch.no_grad():
        module = load_module(ModuleSource(f"{path}:{name}", base=path.parent)).eval()
        np.testing.assert_allclose(actual, module(x).numpy(), atol=1e-5)
