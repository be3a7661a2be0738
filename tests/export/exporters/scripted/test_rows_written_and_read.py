"""Loops that write rows of a new tensor and read others, as recursive filters and overlapping sums do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
BODIES = {
    "a recursive filter": """
        y = torch.zeros_like(x)
        y[:, 0] = x[:, 0]
        for t in range(1, x.shape[1]):
            y[:, t] = 0.7 * y[:, t - 1] + x[:, t]
        return y
""",
    "there and back": """
        y = torch.zeros_like(x)
        for t in range(x.shape[1]):
            y[:, t] = x[:, t] * 2
        z = y.sum(1)
        for t in range(x.shape[1] - 2, -1, -1):
            y[:, t] = y[:, t + 1] * 0.5 + y[:, t] + z
        return y, z
""",
    "on one of two sides": """
        y = x.clone()
        for t in range(1, x.shape[1]):
            if t % 2 == 0:
                y[:, t] = y[:, t - 1] + x[:, t]
            else:
                y[:, t] = y[:, t - 1] * 0.5
        return y
""",
    "element by element": """
        y = torch.zeros_like(x)
        for t in range(1, x.shape[1]):
            for k in range(x.shape[2]):
                y[:, t, k] = y[:, t - 1, k] + x[:, t, k] * k
        return y
""",
    "overlapping sums": """
        y = torch.zeros(x.shape[0], x.shape[1] + 3, 4)
        for t in range(x.shape[1]):
            y[:, t : t + 3] = y[:, t : t + 3] + x[:, t].unsqueeze(1)
        return y[:, 1:]
""",
    "into a view of a new tensor": """
        y, s = torch.empty_like(x).view(x.shape[0], x.shape[1], 2, 2), torch.zeros(x.shape[0], 2, 2)
        for t in range(x.shape[1]):
            s = s * 0.5 + x[:, t].view(-1, 2, 2)
            y[:, t] = s
        return y.reshape(x.shape)
""",
    "with all that was written": """
        y = torch.zeros_like(x)
        for t in range(x.shape[1]):
            y[:, t] = x[:, t] + y.mean(1)
        return y
""",
}


SLOW = (
    "element by element", "there and back", "overlapping sums", "a recursive filter", "with all that was written",
    "on one of two sides",
)  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [pytest.param(body, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, body in BODIES.items()],
)
def test_equal_at_every_length(write_module, export, load, body):
    path = write_module(HEAD + body)
    result = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=2:9:24")
    module, run = load(path).Net(), OnnxRuntimeRunner(result.model)
    for length in range(2, 25):
        x = torch.randn(2, length, 4, generator=torch.Generator().manual_seed(length))
        expected = module(x)
        outputs = run({"x": x.numpy()}).values()
        for one, other in zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-5)
