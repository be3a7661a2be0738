# ruff: noqa: E501 - attacks are written as users write them
"""Tensors of values that torch itself turns into plain numbers, where an argument takes one; a rare value moves them. NaN in ordinary operators."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X4 = "x:float32[N,T,4]"
BASE = np.random.RandomState(0).randn(1, 3, 4).astype(np.float32)
NAN = float("nan")


def points(x: np.ndarray) -> tuple:
    """Points at which a value is the key, and at which it is not."""
    return tuple(partial(dict, {"x": x, "m": np.array([[0.5, v, 1.0]], np.float32)}) for v in (777.0, 776.0, 3.0))


def told(name: str, function: object, scale: float = 1.0) -> type:
    """A module whose function is given x and a truth without dims."""
    def init(self: nn.Module) -> None:
        nn.Module.__init__(self)
        self.register_buffer("key", torch.tensor(700.0) + 77)
    def run(self: nn.Module, x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return function(x, (m.round() == self.key).any())
    members = {"__init__": init, "forward": run, "__module__": __name__, "__doc__": f"{name} by a tensor."}
    return attack(X4, "m:float32[N,T]", dims="N=1:2:3 T=3:9:20", kinds=("normal", "zeros"), feeds=points(BASE * np.float32(scale)))(type(name, (nn.Module,), members))


I01 = told("A45I01LayerEpsilon", lambda x, g: F.layer_norm(x, (4,), eps=g + 1e-5))
I02 = told("A45I02Decimals", lambda x, g: x.round(decimals=2 - g.long()))
I03 = told("A45I03Shifts", lambda x, g: x.roll(g.long(), 1))
I04 = told("A45I04Kept", lambda x, g: x.topk(1 + g.long(), 1).values.sum(1))
I05 = told("A45I05Slope", lambda x, g: F.leaky_relu(x, g + 0.1))
I06 = told("A45I06Alpha", lambda x, g: torch.add(x, x, alpha=g + 0.5))
I07 = told("A45I07PadValue", lambda x, g: F.pad(x, (1, 1), value=g * 2.0))
I08 = told("A45I08Softplus", lambda x, g: F.softplus(x, g + 1.0))
I09 = told("A45I09Hardtanh", lambda x, g: F.hardtanh(x, -1.0 - g, g + 0.5))
I10 = told("A45I10Tolerance", lambda x, g: torch.isclose(x, x.roll(1, -1), atol=g * 10.0))
I11 = told("A45I11Huber", lambda x, g: F.huber_loss(x, -x, delta=g + 0.3, reduction="none"))
I12 = told("A45I12ForNaN", lambda x, g: torch.where(x > 0, x, NAN).nan_to_num(g + 0.5))
I13 = told("A45I13Full", lambda x, g: torch.full((4,), g + 0.5) + x)
I14 = told("A45I14Slice", lambda x, g: x[:, g.long():].sum(1))
I15 = told("A45I15Range", lambda x, g: torch.arange(3 + g.long()).sum() + x)
I16 = told("A45I16Quantile", lambda x, g: x.quantile(g * 0.5, 1))
I17 = told("A45I17FakeQuantise", lambda x, g: torch.fake_quantize_per_tensor_affine(x, g + 0.1, g.int(), -128, 127))
I18 = told("A45I18Power", lambda x, g: x.pow(g + 1) + torch.float_power(x, g.float() + 1).float())
I19 = told("A45I19Linspace", lambda x, g: torch.linspace(0, g + 1.0, 4) + x)
I20 = told("A45I20Diagonal", lambda x, g: x.triu(g.int()) + x.diagonal(g.int(), 1, 2).sum())
I21 = told("A45I21Dim", lambda x, g: x.cumsum(g.long() + 1).flip(g.long()))
I22 = told("A45I22Groups", lambda x, g: x.chunk(2 - g.long(), -1)[0].sum())
I23 = told("A45I23Bool", lambda x, g: x.sort(dim=1, descending=g).values)
I24 = told("A45I24Local", lambda x, g: F.local_response_norm(x.mT, 3, alpha=g + 1e-3))
I25 = told("A45I25Resize", lambda x, g: F.interpolate(x.mT, scale_factor=(2.0 + g), mode="nearest").sum(-1))
I26 = told("A45I26ListIndex", lambda x, g: (x, -x)[g.long()])
ODD = {"dims": "N=1:2:3 H=2:4:9 W=2:5:9", "kinds": ("normal", "zeros"), "feeds": (partial(dict, {"x": np.where(np.arange(32).reshape(1, 2, 4, 4) % 5 == 0, np.float32(NAN), np.float32(1.5)).astype(np.float32)}),)}


@forward("x:float32[N,2,H,W]", **ODD)
def A45N01MaxPool(self, x):
    """max_pool2d of NaN."""
    return F.max_pool2d(x, 2)
@attack("x:float32[N,2,H,W]", **ODD)
class A45N02PoolBehindConvolution(nn.Module):
    """A stem whose pool comes behind a convolution of one pixel."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return F.max_pool2d(self.conv(x), 2, 2).mean((2, 3)), F.adaptive_max_pool2d(x, 1)
@forward("x:float32[N,2,H,W]", **ODD)
def A45N03Xlogy(self, x):
    """xlogy of none and NaN."""
    return torch.xlogy(torch.zeros_like(x), x)
@forward("x:float32[N,2,H,W]", **ODD)
def A45N04ReluPool(self, x):
    """A pool of a relu, and its places."""
    v, i = F.max_pool2d(F.relu(x), 2, return_indices=True)
    return v, i
