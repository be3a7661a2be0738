"""`torch.vmap` keeps the sizes of what it maps over: ensembles by their weights, and functions of samples."""

from __future__ import annotations

import onnx
import pytest

ENSEMBLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        nets = [nn.Sequential(nn.Conv1d(4, 5, 3, padding=1), nn.BatchNorm1d(5), nn.Tanh()) for _ in range(3)]
        self.nets = nn.ModuleList(nets)

    def forward(self, x):
        params, buffers = torch.func.stack_module_state(list(self.nets))

        def member(p, b, x):
            return torch.func.functional_call(self.nets[0], (p, b), (x,))

        return torch.vmap(member, in_dims=(0, 0, None))(params, buffers, x.mT).mean(0)
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(3, 5, 4)), nn.Parameter(torch.randn(3, 5))
        self.many = nn.Parameter(torch.randn(20, 5, 4))
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        {body}
"""
BODIES = {
    "several outputs of members": """
        def member(w, b, x):
            return F.linear(x, w, b), x.sum() * w.mean()

        return torch.vmap(member, in_dims=(0, 0, None), out_dims=(1, 0))(self.w, self.b, x)""",
    "more members than are written out": "return torch.vmap(F.linear, in_dims=(None, 0))(x, self.many)",
    "normal samples that are joined": """
        return torch.vmap(lambda r: F.layer_norm(torch.cat([r, r * 2], 0), (4,), self.w[0, 0]))(x)""",
    "a convolution of resized samples": """
        kernel = self.w.transpose(1, 2)
        doubled = torch.vmap(lambda r: F.interpolate(r.t()[None], scale_factor=2.0), out_dims=1)(x)
        return doubled, torch.vmap(lambda r: F.conv1d(r.t(), kernel, padding=2))(x)""",
    "samples along another axis": "return torch.vmap(lambda r: self.norm(r) @ self.w[0].t(), in_dims=1)(x)",
    "two levels": """
        inner = torch.vmap(lambda a, b: torch.stack([(a * b).sum(), a.sum()]), (None, 0))
        return torch.vmap(inner, (0, None))(x[:, 0], self.w[:, 0])""",
}
INPUTS, SPACE = ["x:float32[N,T,4]=-2:2"], "N=1:2:3 T=2:5:9"


def test_an_ensemble_is_its_members(write_module, export):
    result = export(f"{write_module(ENSEMBLE)}:Net", INPUTS, SPACE)
    assert result.exporter == "dynamo"
    assert [n.op_type for n in onnx.load(result.model).graph.node].count("Conv") == 3


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_what_is_mapped_over_keeps_its_sizes(body, write_module, export):
    result = export(f"{write_module(NET.format(body=body))}:Net", INPUTS, SPACE)
    assert result.exporter == "dynamo"
