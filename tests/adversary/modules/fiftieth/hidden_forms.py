# ruff: noqa: E501 - attacks are written as users write them
"""Operators whose result is taken at rare values alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftieth.rarely import rare, rarely_at
from tests.adversary.modules.fortysixth.pictures import seq

X4 = "x:float32[N,T,4]"
AT = rarely_at(4)
LOUD = rarely_at(4, scale=300.0)


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6449NormalsOfTriples(self, x):
    """A cross product without an axis: the first one of three."""
    n = torch.cross(x[..., :3], x[..., 1:])
    return torch.where(rare(x), n, x[..., :3])


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6450PenaltyOfLabels(self, x):
    """A multi-label margin that is added where a head is in doubt."""
    t = torch.tensor([[3, 0, -1, 1]]).expand(x.shape[0], -1)
    loss = F.multilabel_margin_loss(x[:, 0], t, reduction="none")
    return x.mean(1) + torch.where(rare(x), loss, 0.0)[:, None]


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6451HowManyDiffer(self, x):
    """Hamming distances of codes by cdist."""
    c = (x * 3).round()
    return torch.where(rare(x), torch.cdist(c, c, 0.0), 0.0)


@forward(X4, **seq(X4, low=4, own=LOUD), noted="a mask comes out the same at every sample point")
def A6452SoftMarginsLoud(self, x):
    """Multi-label soft margins of loud scores."""
    return torch.where(rare(x), F.multilabel_soft_margin_loss(x[:, 0], (x[:, 1] > 0).float(), reduction="none"), 0.0)


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6453MeansOfClusters(self, x):
    """Means per cluster by scatter_reduce without what stood there."""
    y = x.clone().scatter_reduce_(1, torch.ones_like(x, dtype=torch.long), x, "mean", include_self=False)
    return torch.where(rare(x), y, x)


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6454ResizedToItself(self, x):
    """resize_as_ to its own shape, and a write through a row."""
    y = x.clone()
    y.resize_as_(x)[0].add_(2)
    return torch.where(rare(x), y, x)


@forward(X4, **seq(X4, low=4, own=AT), refused="FunctionalTensor")
def A6455FactorsWhereNeeded(self, x):
    """A branch of torch.cond that is seldom taken: cross products and margins."""
    return torch.cond(rare(x), lambda v: torch.cross(v[..., :3], v[..., 1:], dim=-1) + F.multilabel_margin_loss(v[:, 0], torch.tensor([[3, 0, -1, 1]]).expand(v.shape[0], -1), reduction="none")[:, None, None], lambda v: v[..., :3] * 2, (x,))


@forward(X4, **seq(X4, low=4, own=AT))
def A6456SeldomTaken(self, x):
    """torch.cond whose seldom branch sorts, sums up and rounds."""
    return torch.cond(rare(x), lambda v: (v.sort(1, descending=True).values.cumsum(1) * 4).round() / 4, lambda v: v + 1, (x,))


@torch.jit.script
def scripted(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """A scripted part with a seldom branch."""
    if bool(t):
        y = x.clone()
        y[:, ::2] = -1
        return y // 0.3 + (x > 0).sum(1, keepdim=True)
    return x * 2


@forward(X4, **seq(X4, low=4, own=AT))
def A6457ScriptedSeldom(self, x):
    """The same by torch.jit.script."""
    return scripted(x, rare(x))


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6458WeightOfNothing(self, x):
    """A weight that is nothing but at rare values: 0 times a penalty of clusters."""
    w = rare(x).float()
    c = torch.cdist((x * 2).round(), (x * 2).round(), 0.0).clamp(max=99.0)
    return x.sum(-1, keepdim=True) + w * c


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6459RowChosen(self, x):
    """One of two results is chosen by an index."""
    a = torch.stack((x[..., :3], torch.cross(x[..., :3], x[..., 1:])))
    return a[rare(x).long()]


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6460ExpertsByGate(nn.Module):
    """Two experts, one is hardly ever chosen: its margin is a whole other operator."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.b(x)
        m = F.multilabel_margin_loss(y[:, 0], (y[:, 1] * 2).long().clamp(-1, 3), reduction="none")
        return self.a(x).lerp(m[:, None, None].expand_as(y), rare(x).float())
