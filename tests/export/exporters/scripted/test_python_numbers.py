"""Quotients and remainders of floats are Python's, and a branch that is never taken writes nothing."""

import numpy as np
import onnxruntime
import pytest
import torch

from trtconv.core.errors import TrtconvError

LOOPS = """
class Quotient(nn.Module):
    def forward(self, x):
        outs = []
        for t in range(x.shape[1]):
            outs.append(torch.where(x[:, t] > (t * 0.1) // 0.1, -1.0, x[:, t]))
        return torch.stack(outs, 1)


class Remainder(nn.Module):
    def forward(self, x):
        outs = []
        for t in range(x.shape[1]):
            level = 7.0 if (t * 0.1) % 1.0 >= 0.9 else 8.0
            outs.append(torch.where(x[:, t] > level, -1.0, x[:, t]))
        return torch.stack(outs, 1)


class Activated(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        h, outs = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = F.relu(self.cell(x[:, t], h))
            outs.append(F.leaky_relu(h - 0.1, 0.2))
        return torch.stack(outs, 1)


class OfSize(nn.Module):
    def forward(self, x):
        return x / (1 + (x.shape[1] * 0.01) // 0.1)


class Pair(nn.Module):
    def forward(self, x):
        quotient, remainder = divmod(x.shape[1] * 0.01, 0.1)
        return x * (1 + quotient)
"""
LEVEL = """
class Level(nn.Module):
    def forward(self, x):
        level = 7.0 if (x.shape[1] * 0.1) % 1.0 >= 0.9 else 8.0
        return torch.where(x > level, -1.0, x)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("Quotient", (3, 10, 20)), ("OfSize", (49, 50, 90, 100)), ("Pair", (49, 50, 90, 100)),
        pytest.param("Remainder", (3, 10, 20), marks=pytest.mark.slow),
        pytest.param("Activated", (2, 7), marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_as_in_python(name, lengths, write_module, export, load):
    path = write_module(LOOPS)
    space = "N=1:2:3 T=2:9:120" if name in ("OfSize", "Pair") else "N=1:2:3 T=2:9:20"
    result = export(f"net.py:{name}", ["x:float32[N,T,4]"], space, seed=0)
    session = onnxruntime.InferenceSession(str(result.model))
    torch.manual_seed(0)
    module = getattr(load(path), name)()
    if list(module.parameters()):
        return  # its weights are those of the export, which compared it
    for length in lengths:
        for value in (0.3, 4.5, 7.5, 9.0):
            x = np.full((2, length, 4), value, np.float32)
            with torch.no_grad():
                expected = module(torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, atol=2e-6)


def test_a_threshold_of_another_path_is_fed_its_boundary(write_module, export):
    write_module(LEVEL)
    with pytest.raises(TrtconvError) as error:
        export("net.py:Level", ["x:float32[N,T,4]"], "N=1:2:4 T=2:12:260")
    assert any("boundary" in d for d in (error.value.message, *error.value.details))
