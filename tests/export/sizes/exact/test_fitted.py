"""`//` of floats from a size, which is Python's at every size of the range."""

from __future__ import annotations

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

MODULE = """
class Net(nn.Module):
    def forward(self, x):
        t = x.shape[-1]
        count = int({formula})
        return x[:, : max(count, 1)].sum(1) * count
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("formula", ["(t / 1000) // 0.0125", "t // 12.5", "(t / 100) // 0.32"])
def test_frames_by_a_hop_in_seconds(write_module, export, formula):
    path = write_module(MODULE.format(formula=formula))
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:30:130")
    assert result.exporter.startswith("dynamo")
    run = OnnxRuntimeRunner(result.model)
    for t in range(3, 131):
        x = np.arange(t, dtype=np.float32)[None] + 1
        count = int(eval(formula, {"t": t}))
        [own] = run({"x": x}).values()
        np.testing.assert_array_equal(own, x[:, : max(count, 1)].sum(1) * count)
