"""A small added constant is the author's, and stays; torch's own default drops it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NET = """
class Net(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x / (x.pow(2).sum(1, keepdim=True).sqrt() + self.eps)

def make(eps: float = 1e-10):
    return Net(eps)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize("eps", [1e-12, 1e-10, 1e-8])
def test_a_zero_pixel_stays_zero(export, write_module, exporter, eps):
    write_module(NET)
    spec = ["x:float32[N,8,H,W]"]
    result = export("net.py:make", spec, "N=1:2:3 H=5:8:12 W=5:9:12", exporter=exporter, args={"eps": eps})
    zeros = np.zeros((1, 8, 5, 6), dtype=np.float32)
    assert np.array_equal(OnnxRuntimeRunner(result.model)({"x": zeros})["output"], zeros)


def test_why_torchs_own_optimiser_is_not_used(write_module, tmp_path):
    """When this fails, torch keeps the constant itself and `export/exporters/graph_cleanup.py` may be retired."""
    from trtconv.core.requests import ModuleSource
    from trtconv.export.module.source import load_module

    path = write_module(NET)
    module = load_module(ModuleSource("net.py:make", base=path.parent)).eval()
    program = torch.onnx.export(module, (torch.randn(1, 8, 5, 6),), dynamo=True, verbose=False)
    program.save(str(tmp_path / "plain.onnx"))
    runner = OnnxRuntimeRunner(tmp_path / "plain.onnx")
    out = runner({runner.input_names[0]: np.zeros((1, 8, 5, 6), dtype=np.float32)})[runner.output_names[0]]
    assert np.isnan(out).all()


def test_the_cleanup_tidies_without_rules_that_match_numbers():
    from trtconv.export.exporters.graph_cleanup import structural_rules

    names = {str(r.name).lower() for r in structural_rules()}
    assert names
    assert not any("add_0" in n or "mul_by_1" in n or "sub_0" in n or "div_by_1" in n for n in names)


CONV3D = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = nn.Conv3d(2, 4, 3, padding=1, bias=False)
        self.depthwise = nn.Conv3d(4, 4, 3, padding=1, bias=False, groups=4)
        self.biased = nn.Conv3d(4, 3, 1)

    def forward(self, x):
        return self.biased(self.depthwise(self.plain(x)))
"""


def test_a_conv3d_without_a_bias_has_none_in_the_file(export, write_module):
    write_module(CONV3D)
    result = export("net.py:Net", ["x:float32[N,2,T,6,6]"], "N=1:2:3 T=4:5:7")
    assert result.exporter == "dynamo"
    graph = onnx.load(result.model).graph
    assert [len(n.input) for n in graph.node if n.op_type == "Conv"] == [2, 2, 3]
