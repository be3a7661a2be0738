"""What the exporters see of a module."""

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.model.file import load_model
from trtconv.export.module.flat_module import parametrized_weights

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
    (weight,) = parametrized_weights(layer).values()
    assert torch.equal(weight, layer.weight)
    assert not weight.requires_grad
    assert all(np.array_equal(a, b) for a, b in zip(vectors, layer.buffers(), strict=True))
