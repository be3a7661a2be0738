"""max_pool1d of a moving length, of which torch wants plain numbers, and of [C, T], which ONNX does not pool."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

POOLED = """
class Pooled(nn.Module):
    def forward(self, x):
        {body}


def make():
    return Pooled().eval()
"""
BODIES = {
    "windows": "return nn.functional.max_pool1d(x, 3, 2, 1)",
    "the default stride": "return nn.functional.max_pool1d(x, 4)",
    "a rest of a window": "return nn.functional.max_pool1d(x, 3, 2, 1, ceil_mode=True)",
    "dilated": "return nn.functional.max_pool1d(x, 2, 1, dilation=3)",
    "with places": "return nn.functional.max_pool1d(x, 2, return_indices=True)",
    "one series": "return nn.functional.max_pool1d(x[:, 0], 3, 2, 1)",
    "in one way of two": "return nn.functional.max_pool1d(x, 4, 1) if x.shape[2] > 9 else x",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", BODIES)
def test_the_file_pools_as_torch_does(write_module, export, case):
    path = write_module(POOLED.format(body=BODIES[case]))
    result = export(f"{path}:make", ["x:float32[N,2,T]"], "N=1:2:3 T=8:20:40")
    runner = OnnxRuntimeRunner(result.model)
    scope = {"nn": torch.nn}
    exec(POOLED.format(body=BODIES[case]), scope)
    module = scope["make"]()
    for length in (8, 9, 10, 23, 40):
        x = np.random.default_rng(length).normal(size=(2, 2, length)).astype(np.float32)
        expected = module(torch.from_numpy(x))
        parts = expected if isinstance(expected, tuple) else (expected,)
        for output, part in zip(runner({"x": x}).values(), parts, strict=True):
            np.testing.assert_array_equal(output, part.numpy())
