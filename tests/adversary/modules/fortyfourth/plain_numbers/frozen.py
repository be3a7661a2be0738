# ruff: noqa: E501 - attacks are written as users write them
"""Attributes from the size whose effect shows at rare values only: an epsilon of tiny rows, a limit of large ones, what stands for NaN or an infinity."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

XT, X4 = "x:float32[N,T]", "x:float32[N,T,4]"


def scaled(*scales: float, more: tuple = (4,)) -> tuple:
    """Normal numbers times a scale at sizes, which are the least, the largest and two between."""
    def make(t: int, s: float) -> object:
        return lambda: {"x": (np.random.RandomState(t).randn(1, t, *more) * s).astype(np.float32)}
    return tuple(make(t, s) for t in (1, 2, 37, 151, 300) for s in scales)


def by(*scales: float, more: tuple = (4,)) -> dict:
    """Hundreds of lengths and points at scales."""
    return {"dims": "N=1:2:3 T=1:20:300", "kinds": ("normal", "zeros", "halves", "tiny", "large"), "feeds": scaled(1.0, *scales, more=more)}


@forward(X4, **by(1e-3, 1e-4, 1e-5))
def A4971LayerEpsilonTiny(self, x):
    """layer_norm whose epsilon is 1e-9 for each step."""
    return F.layer_norm(x, (4,), eps=1e-9 * x.shape[1])
@forward(X4, **by(1e-4, 1e-5, 1e-6))
def A4972LayerEpsilonTinier(self, x):
    """layer_norm whose epsilon is 1e-12 for each step."""
    return F.layer_norm(x, (4,), eps=1e-12 * x.shape[1])
@forward(X4, **by(1e-3, 1e-4, 1e-5))
def A4973GroupEpsilonTiny(self, x):
    """group_norm and instance_norm whose epsilon is of the length."""
    return F.group_norm(x.mT.repeat(1, 1, 2) * torch.tensor([1.0, 2, 3, 4])[:, None], 2, eps=1e-9 * x.shape[1])
@forward(X4, **by(1e-6, 1e-8, 1e-10))
def A4974NormalizeEpsilon(self, x):
    """normalize and cosine similarity whose epsilon is of the length."""
    return F.normalize(x, dim=-1, eps=1e-9 * x.shape[1])
@forward(X4, **by(1e-6, 1e-4, 1e-5))
def A4975CosineEpsilon(self, x):
    """cosine similarity whose epsilon is of the length."""
    return F.cosine_similarity(x, x.roll(1, -1), -1, eps=1e-10 * x.shape[1])
@forward(X4, **by(1e6, 1e8, 1e10))
def A4976LimitOfMillions(self, x):
    """hardtanh at millions for each step."""
    return F.hardtanh(x, -1e6 * x.shape[1], 1e6 * x.shape[1])
@forward(X4, **by(1e5, 1e8, 1e10))
def A4977SlopeBeyond(self, x):
    """leaky_relu of what lies below minus a million: otherwise nothing; and relu6's like."""
    return F.leaky_relu(x + 1e6, x.shape[1] / 10) - 1e6
@forward(X4, **by(1e4, 1e5))
def A4978EluBeyond(self, x):
    """elu of what is far below."""
    return F.elu(x + 50000.0, x.shape[1] / 10)
@forward(X4, **by(1e-3, 100.0))
def A4979NothingForNaN(self, x):
    """What stands for NaN is the length, where a logarithm has none."""
    return (x + 100).log().nan_to_num(float(x.shape[1]))
@forward(X4, **by(1e20, 1e30))
def A4980LargestForInfinity(self, x):
    """What stands for an infinity of a square is the length."""
    return (x * x).nan_to_num(0.0, float(x.shape[1]), -1.0)
@forward(X4, **by(1e-3))
def A4981NearByTheLength(self, x):
    """isclose whose tolerance is of the length."""
    return torch.isclose(x, x.round(), rtol=0.0, atol=1e-6 * x.shape[1]), torch.isclose(x, x.roll(1, -1), atol=1 / x.shape[1])
@forward(X4, **by(10.0, 30.0))
def A4982SoftplusBeyond(self, x):
    """softplus whose threshold is a tenth of the length."""
    return F.softplus(x, 1.0, x.shape[1] / 10)
@forward(X4, **by(1e3, 1e4, 1e5))
def A4983ThresholdBeyond(self, x):
    """threshold at minus hundreds for each step, replaced by the length."""
    return F.threshold(x, -1e3 * x.shape[1], float(x.shape[1]))
@attack(X4, **by(1e-3, 1e-4, 1e-5), refused="the exported model differs from the module")
class A4984BatchEpsilonMember(nn.Module):
    """A batch norm with one tiny variance whose epsilon is of the length."""
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.norm.running_var.copy_(torch.tensor([1.0, 1.0, 1.0, 1e-3]))
    def forward(self, x):
        self.norm.eps = 1e-8 * x.shape[1]
        return self.norm(x.mT)
@attack(X4, **by(1e-3, 1e-4, 1e-5), refused="the module cannot be exported")
class A4985InstanceEpsilonMember(nn.Module):
    """An instance norm whose epsilon is of the length, over time."""
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(4)
    def forward(self, x):
        self.norm.eps = 1e-9 * x.shape[1]
        return self.norm(F.pad(x.mT, (1, 1)))
@forward(X4, **by(30.0, 300.0))
def A4986NormOfALimit(self, x):
    """renorm whose largest norm is the length; local response whose share is of it."""
    return torch.renorm(x.flatten(0, 1), 2, 0, float(x.shape[1])), F.local_response_norm(x.mT, 3, alpha=1e-6 * x.shape[1])
@forward("i:int64[N,T]=0:9", dims="N=1:2:3 T=1:20:300", feeds=(lambda: {"i": np.array([[9, 0, 1]])}, lambda: {"i": np.array([list(range(10)) * 30])}))
def A4987EmbeddingLimited(self, i):
    """Rows of a table are limited to a norm of the length."""
    return F.embedding(i, torch.arange(20.0).view(10, 2).clone() * 5, max_norm=float(i.shape[1]))
@forward(X4, **by(1e-3))
def A4988WindowOfAValue(self, x):
    """histc between minus and plus the length; arange by a share; one_hot's width where it is seldom reached."""
    t = x.shape[1]
    return torch.histc(x, 5, -t / 30, t / 30), F.one_hot((x[..., 0] * 10).long().clamp(0, 1), t + 2).sum((1, 2)), x.clamp(-9, 9).logsumexp(1) - math.log(t)
@forward(X4, **by(1e-3), refused="the module cannot be exported")
def A4989RreluByLength(self, x):
    """rrelu in eval by the middle of two shares."""
    return F.rrelu(x, 1 / (x.shape[1] + 9), 2 / (x.shape[1] + 9), training=False)
@forward(X4, **by(1e3, 1e6), refused="the module cannot be exported")
def A4990ClampedInPlaceBeyond(self, x):
    """A view is clamped in place at thousands for each step."""
    y = x + 0
    y[:, ::2].clamp_(max=1e3 * x.shape[1])
    F.hardtanh_(y[:, :1], -1e4 * x.shape[1], 1e4)
    F.threshold_(y[..., :1], -5e3 * x.shape[1], 0.5)
    return y
