"""-0.0 among a module's numbers stays negative beside 0.0."""

import numpy as np
import onnxruntime

SOURCE = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        chosen = torch.copysign(torch.ones_like(x), torch.where(x > 0, 0.0, -0.0))
        first = torch.signbit(torch.where(x > 0, -0.0, x * 0.0 + 1))
        filled = 1 / x.masked_fill(x < 9, 0.0), 1 / x.masked_fill(x < 9, -0.0)
        product = 1 / ((x * 0 + 1) * -0.0)
        new = torch.atan2(torch.full_like(x, -0.0), x * 0 - 1), torch.atan2(torch.full_like(x, 0.0), x * 0 - 1)
        y = x * 1.0
        y.masked_fill_(x < 9, -0.0)
        z = x.clone()
        z.fill_(-0.0)
        z[:, 0] = 0.0
        return chosen, first, *filled, product, *new, 1 / y, 1 / z
"""


def test_a_file_keeps_their_sign(write_module, export):
    path = write_module(SOURCE)
    result = export(f"{path}:Net", ["x:float32[N,T]=-2:2"], "N=1:2:3 T=2:4:7")
    x = np.array([[0.5, -0.5, 1.0]], np.float32)
    chosen, first, plus, minus, product, new, other, masked, filled = onnxruntime.InferenceSession(
        str(result.model)
    ).run(None, {"x": x})
    assert chosen.tolist() == [[1, -1, 1]]
    assert first.tolist() == [[True, False, True]]
    assert (plus > 0).all()
    assert (minus < 0).all()
    assert (product < 0).all()
    assert (new < 0).all()
    assert (other > 0).all()
    assert (masked < 0).all()
    assert filled[0, 0] > 0
    assert (filled[0, 1:] < 0).all()
