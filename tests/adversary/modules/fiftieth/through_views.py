# ruff: noqa: E501 - attacks are written as users write them
"""Writes through views of large numbers: what is put back has to be what was written."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq

X4 = "x:float32[N,T,4]"
WIDE = tuple((lambda s=s, n=n, t=t: {"x": (np.random.RandomState(t).randn(n, t, 4) * s).astype(np.float32)}) for s in (3e4, 3e7, 1e10) for n, t in ((1, 4), (2, 9), (3, 5), (1, 1)))
STEP = sprinkled(3e7, -1e9, 1e12, sizes=((1, 4), (2, 9), (2, 1)), more=(4,))
OWN = (*WIDE, *STEP)


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6461FilledByExpanded(self, x):
    """A fill through an expanded view."""
    y = x.clone()
    y.expand(2, *y.shape)[0].fill_(2.0)
    return y


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6462SquashedByExpanded(self, x):
    """A sigmoid through an expanded view."""
    y = x.clone()
    y[None].expand(3, *y.shape)[1].sigmoid_()
    return y


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6463FirstFramesHeld(self, x):
    """The first frame is held for a moment: an expand that is one itself at T = 1, made contiguous and clamped."""
    y = x[:, :1].clone()
    z = y.expand(-1, x.shape[1], -1).contiguous()
    z.clamp_(-1, 1)
    return y, z


@forward(X4, **seq(X4, own=OWN))
def A6464ChannelsBroadcast(self, x):
    """broadcast_to and a write of one of its rows."""
    m = x[:, :1].clone()
    m.broadcast_to(x.shape)[:, 0].tanh_()
    return m + x


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6465ExpandedAs(self, x):
    """expand_as of a keepdim maximum, from which one is limited."""
    m = x.amax(1, keepdim=True)
    m.expand_as(x).select(1, -1).clamp_(max=5.0)
    return x / (1 + m.abs())


@forward(X4, **seq(X4, low=2, own=WIDE[:3]))
def A6466WindowsNegated(self, x):
    """Every other sample through unfold."""
    y = x.clone()
    y.unfold(1, 2, 2)[..., 0].hardtanh_() if hasattr(y, "hardtanh_") else y.unfold(1, 2, 2)[..., 0].clamp_(-1, 1)
    return y


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6467Meshed(self, x):
    """meshgrid gives views: a write of one corner reaches the ticks."""
    a = x[0, :, 0].clone()
    g, h = torch.meshgrid(a, torch.arange(3.0), indexing="ij")
    g[:, 0].sigmoid_()
    return a, g + h


@forward(X4, **seq(X4, own=OWN), refused="the exported model differs")
def A6468BroadcastTensors(self, x):
    """broadcast_tensors gives views."""
    a = x.clone()
    b, c = torch.broadcast_tensors(a, torch.ones(2, 1, 1, 4))
    b[1].exp_().clamp_(max=9)
    return a, b * c


@forward(X4, **seq(X4, own=OWN), refused="the exported model differs")
def A6469DiagonalWritten(self, x):
    """The diagonal of a Gram matrix is set, then its trace is taken."""
    g = x @ x.mT
    torch.diagonal(g, 0, 1, 2).copy_(torch.ones(()))
    return g, g.diagonal(0, 1, 2).sum(-1)


@forward(X4, **seq(X4, own=OWN))
def A6470StridedHalves(self, x):
    """as_strided over rows: every other number is rounded."""
    y = x.contiguous().clone()
    torch.as_strided(y, (y.shape[0], 2), (y.stride(0), 2)).mul_(0).add_(1)
    return y


@forward(X4, **seq(X4, own=OWN))
def A6471TiledThenWritten(self, x):
    """repeat copies and expand does not: both are written."""
    y = x[:, :1].clone()
    a, b = y.repeat(1, 2, 1), y.expand(-1, 2, -1)
    a[:, 0].zero_()
    b[:, 1].zero_()
    return y, a, b


@attack(X4, **seq(X4, own=OWN), noted="comes back by a difference")
class A6472InplaceLayerOnExpanded(nn.Module):
    """A ReLU6 in place on the first copy of an expanded state."""

    def __init__(self):
        super().__init__()
        self.act = nn.ReLU6(inplace=True)

    def forward(self, x):
        y = x + 1
        copies = y.unsqueeze(0).expand(4, -1, -1, -1)
        self.act(copies[2])
        return F.softplus(y)


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6473SetItemOfExpanded(self, x):
    """An item of an expanded view is set by a mask."""
    y = x * 1
    v = y.expand(2, -1, -1, -1)[1]
    v[v > 5] = 5
    return y
