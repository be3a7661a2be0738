# ruff: noqa: E501 - attacks are written as users write them
"""Beside a scripted part, which is recorded: plain numbers of the length in operators whose result shows them at rare values only."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack

X4 = "x:float32[N,T,4]"


def scaled(*scales: float) -> tuple:
    """Normal numbers times a scale at four sizes."""
    def make(t: int, s: float) -> object:
        return lambda: {"x": (np.random.RandomState(t).randn(1, t, 4) * s).astype(np.float32)}
    return tuple(make(t, s) for t in (1, 37, 151, 300) for s in (1.0, *scales))


def beside(name: str, function: object, *scales: float) -> type:
    """A module of a scripted Sequential and a function of x and its length."""
    def init(self: nn.Module) -> None:
        nn.Module.__init__(self)
        self.part = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    def run(self: nn.Module, x: torch.Tensor) -> tuple:
        return self.part(x), function(x, x.shape[1])
    members = {"__init__": init, "forward": run, "__module__": __name__, "__doc__": f"{name}, recorded."}
    return attack(X4, dims="N=1:2:3 T=1:20:300", kinds=("normal", "zeros", "halves"), feeds=scaled(*scales))(type(name, (nn.Module,), members))


R01 = beside("A45R01NothingForNaN", lambda x, t: (x + 100).log().nan_to_num(float(t)), 100.0)
R02 = beside("A45R02Tolerance", lambda x, t: torch.isclose(x, x.roll(1, -1), rtol=0.0, atol=1e-6 * t), 1e-4)
R03 = beside("A45R03Threshold", lambda x, t: F.threshold(x, -1e3 * t, float(t)), 1e4, 1e6)
R04 = beside("A45R04Hardtanh", lambda x, t: F.hardtanh(x, -1e3 * t, 1e3 * t), 1e4, 1e6)
R05 = beside("A45R05NormalizeEpsilon", lambda x, t: F.normalize(x, dim=-1, eps=1e-9 * t), 1e-8)
R06 = beside("A45R06CosineEpsilon", lambda x, t: F.cosine_similarity(x, x.roll(1, -1), -1, eps=1e-10 * t), 1e-5)
R07 = beside("A45R07FakeQuantise", lambda x, t: torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 100 + t), 100.0)
R08 = beside("A45R08PadValue", lambda x, t: F.pad(x, (1, 0), value=t / 1000))
R09 = beside("A45R09ClampAndFill", lambda x, t: x.clamp(max=50.0 * t).masked_fill(x < -90, t), 1e3)
R10 = beside("A45R10Decimals", lambda x, t: x.round(decimals=t % 3))
R11 = beside("A45R11LocalResponse", lambda x, t: F.local_response_norm(x.mT, 3, alpha=1e-7 * t), 1e3)
R12 = beside("A45R12Renorm", lambda x, t: torch.renorm(x.flatten(0, 1), 2, 0, 100.0 * t), 1e3, 1e4)
R13 = beside("A45R13Huber", lambda x, t: F.huber_loss(x, -x, delta=100.0 * t, reduction="none"), 1e3, 1e4)
R14 = beside("A45R14SmoothBeta", lambda x, t: F.smooth_l1_loss(x, -x, beta=1e-5 * t, reduction="none"), 1e-4)
R15 = beside("A45R15Softplus", lambda x, t: F.softplus(x, 1.0, 8.0 + t / 300), 9.0)
R16 = beside("A45R16Logit", lambda x, t: torch.logit(x, 1e-7 * t), 1e-6)
R17 = beside("A45R17RmsEpsilon", lambda x, t: F.rms_norm(x, (4,), eps=1e-12 * t), 1e-5)
R18 = beside("A45R18DistanceEpsilon", lambda x, t: F.pairwise_distance(x, x.roll(1, -1), eps=1e-9 * t), 1e-7)
R19 = beside("A45R19Elu", lambda x, t: F.elu(x + 5e4, t / 10), 1e5)
R20 = beside("A45R20Correction", lambda x, t: x.std(-1, correction=t % 2))
R21 = beside("A45R21LayerEpsilon", lambda x, t: F.layer_norm(x, (4,), eps=1e-12 * t), 1e-5)
R22 = beside("A45R22Gaussian", lambda x, t: F.gaussian_nll_loss(x, x.roll(1, -1), x.square(), eps=1e-11 * t, reduction="none"), 1e-5)
R23 = beside("A45R23Margin", lambda x, t: F.hinge_embedding_loss(x, -torch.ones_like(x), margin=100.0 * t, reduction="none"), 1e4)
R24 = beside("A45R24GroupMember", lambda x, t: F.group_norm(x.flatten(0, 1), 2, eps=1e-12 * t), 1e-5)
R25 = beside("A45R25LinspaceAndFull", lambda x, t: torch.where(x > 90, torch.full_like(x, 1 / t), x) + torch.where(x < -90, torch.linspace(0, t / 7, 4), x), 100.0)
R26 = beside("A45R26TorchCosh", lambda x, t: torch.where(x > 60, x * t**0.5, x) + torch.where(x < -60, x % (t / 7), x), 100.0)
R27 = beside("A45R27DistanceAsItIs", lambda x, t: F.pairwise_distance(x, x.roll(1, -1)), 1e-5, 1e-6, 0.0)
R28 = beside("A45R28DistanceWithEpsilon", lambda x, t: F.pairwise_distance(x, x.roll(1, -1), eps=1e-8), 1e-7, 0.0)
R29 = beside("A45R29LogOfADistance", lambda x, t: torch.log(F.pairwise_distance(x, x.round() + x * 0)), 1e-5, 1e-6)
