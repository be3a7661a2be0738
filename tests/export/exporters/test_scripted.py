"""Parts that torch.jit.script or torch.jit.trace made."""

import numpy as np
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

TEXT = """
class Part(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0.0):
            return x * 2.0
        return x - 1.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(Part())

    def forward(self, x):
        return self.part(x) + 1.0
"""


def test_both_branches_of_a_scripted_part_are_in_the_file(write_module, export):
    path = write_module(TEXT)
    result = export(f"{path}:Net", ["x:float32[N,4]"], "N=1:2:3")
    assert result.exporter == "torchscript"
    run = OnnxRuntimeRunner(result.model)
    for sign in (1, -1):
        x = sign * np.ones((3, 4), np.float32)
        expected = (x * 2 if sign > 0 else x - 1) + 1
        assert np.array_equal(next(iter(run({"x": x}).values())), expected)
    assert torch.is_grad_enabled()
