"""Loops that index and write rows by a tensor of no dims, as greedy matching and the suppression of boxes do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
BODIES = {
    "soft suppression": """
        out, alive = torch.zeros_like(x), torch.ones_like(x, dtype=torch.bool)
        for _ in range(x.shape[0]):
            i = torch.where(alive, x, -1.0).argmax()
            out[i] = x[i]
            alive[i] = False
            x = x * torch.exp(-((x - x[i]) ** 2))
        return out
""",
    "an order": """
        used = torch.zeros(x.shape[0], dtype=torch.bool)
        order = torch.full((x.shape[0],), -1)
        for t in range(x.shape[0]):
            i = x.masked_fill(used, -1e9).argmax()
            used[i] = True
            order[t] = i
        return order
""",
    "two that read each other": """
        y, z = torch.zeros_like(x), torch.ones_like(x)
        for t in range(x.shape[0]):
            i, j = (x * z).argmax(), (x * z).argmin()
            y[i] = z[j] + y[j]
            z[j] = y[i] * 0.5
            z[i] += 0.25
        return y, z
""",
    "loops in loops": """
        y = torch.zeros_like(x)
        for a in range(x.shape[0]):
            for b in range(x.shape[0]):
                i = (x - y).argmax()
                y[i] = y[i] + 0.5
                y[b] = y[b] - 0.125
        return y
""",
    "another name": """
        y = torch.zeros_like(x)
        for t in range(x.shape[0]):
            last = y
            y[x.argmax()] = 1.0 + t
            x = x - last
        return y
""",
}
ALIASED = {
    "a view that is read behind": """
        y = torch.zeros_like(x)
        v = y[:1]
        for t in range(x.shape[0]):
            y[x.argmin()] = 1.0 + t
            x = x + v * 2 + y
        return y, v
""",
}


@pytest.mark.slow
def test_the_file_writes_as_the_module_does_soft_suppression(write_module, export):
    compared(write_module, export, "soft suppression")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in BODIES if n != "soft suppression"])
def test_the_file_writes_as_the_module_does(write_module, export, name):
    compared(write_module, export, name)


def compared(write_module, export, name):
    """Compare a file with its module at sizes that were not sampled."""
    result = export(f"{write_module(HEAD + BODIES[name])}:Net", ["x:float32[N]"], "N=1:5:12")
    assert result.sizes.complete
    scope = {"torch": torch, "nn": torch.nn}
    exec(HEAD + BODIES[name], scope)
    run = OnnxRuntimeRunner(result.model)
    for length in (1, 2, 7, 12):
        x = np.random.default_rng(length).normal(size=length).astype(np.float32)
        expected = scope["Net"]()(torch.from_numpy(x.copy()))
        parts = expected if isinstance(expected, tuple) else (expected,)
        for output, part in zip(run({"x": x}).values(), parts, strict=True):
            np.testing.assert_allclose(output, part.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALIASED)
def test_what_something_else_reads_is_refused(write_module, export, name):
    with pytest.raises(AccuracyError, match="the path through the module depends on the size"):
        export(f"{write_module(HEAD + ALIASED[name])}:Net", ["x:float32[N]"], "N=1:5:12")
