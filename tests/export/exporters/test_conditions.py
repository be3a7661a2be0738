"""torch.cond, whose branches dynamo traces under trtconv's own modes."""

import onnxruntime
import pytest
import torch

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))
"""


ASKING = "\n\ndef asks():\n    return torch.compiler.is_exporting() or torch.compiler.is_dynamo_compiling()\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("more", ["", ASKING], ids=["alone", "beside_a_question_about_exports"])
def test_a_condition_on_a_value_converts(more, export, write_module):
    write_module(NET + more)
    result = export("net.py:Net", ["x:float32[N,T,4]"], "N=1:2:4 T=3:9:30")
    assert result.exporter == "dynamo"
    session = onnxruntime.InferenceSession(str(result.model), providers=["CPUExecutionProvider"])
    for sign in (1.0, -1.0):
        x = sign * torch.rand(3, 7, 4)
        [output] = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(output), x * 2 if sign > 0 else x - 1)
