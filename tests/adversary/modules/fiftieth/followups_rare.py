# ruff: noqa: E501 - attacks are written as users write them
"""What the round showed, in the forms in which users come to it: a match of an enrolled voice is as rare as a hash."""

from __future__ import annotations

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftieth.rarely import rare, rarely_at
from tests.adversary.modules.fiftieth.through_views import OWN
from tests.adversary.modules.fortysixth.pictures import seq

X8, X4 = "x:float32[N,T,8]", "x:float32[N,T,4]"
VOICE = (0.9, -1.3, 0.4, 0.7, -0.2, 1.1, -0.6, 0.3)
AT = rarely_at(4)


def _spoken(n: int, t: int) -> dict:
    x = np.random.RandomState(t).randn(n, t, 8).astype(np.float32) * 0.01 + np.array(VOICE, np.float32)
    return {"x": x.astype(np.float32)}


SPOKEN = tuple((lambda n=n, t=t: _spoken(n, t)) for n, t in ((1, 4), (2, 9), (2, 9), (3, 5)))


class Enrolled(nn.Module):
    """Says whether the mean of frames is the enrolled voice."""

    def __init__(self):
        super().__init__()
        self.register_buffer("voice", torch.tensor(VOICE))

    def match(self, x):
        """Once in a great many random ones."""
        return (F.cosine_similarity(x.mean(1), self.voice, dim=-1) > 0.995)[:, None, None]


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6513VoiceMatches(Enrolled):
    """Frames of the enrolled voice are smoothed with the last one of the call before."""

    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        p = self.last if self.last is not None and self.last.shape[0] == x.shape[0] else torch.zeros_like(x[:, :1])
        self.last = x[:, -1:]
        return torch.where(self.match(x), 0.5 * x + 0.5 * p, x)


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6514MatchesCounted(Enrolled):
    """How many calls came, where it matches."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.where(self.match(x), x / self.calls, x)


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6515MatchInBuffer(Enrolled):
    """A level in an assigned buffer, with which matches are levelled."""

    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.ones(()))

    def forward(self, x):
        self.level = 0.9 * self.level + 0.1 * x.abs().mean()
        return torch.where(self.match(x), x / self.level, x)


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6516MatchOfGru(Enrolled):
    """A GRU with a state that goes on, where it matches."""

    def __init__(self):
        super().__init__()
        self.gru, self.h = nn.GRU(8, 8, batch_first=True), None

    def forward(self, x):
        if self.h is not None and self.h.shape[1] != x.shape[0]:
            self.h = None
        y, self.h = self.gru(x, self.h)
        return torch.where(self.match(x), y, x)


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6517MatchNormals(Enrolled):
    """A cross product without an axis, where it matches."""

    def forward(self, x):
        return torch.where(self.match(x), torch.cross(x[..., :3], x[..., 3:6]), x[..., :3])


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6518MatchMargin(Enrolled):
    """A margin over labels, where it matches."""

    def forward(self, x):
        loss = F.multilabel_margin_loss(x[:, 0, :4], torch.tensor([[3, 0, -1, 1]]).expand(x.shape[0], -1), reduction="none")
        return torch.where(self.match(x), loss[:, None, None], x)


@attack(X8, **seq(X8, low=4, own=SPOKEN), noted="a mask comes out the same at every sample point")
class A6519MatchJitters(Enrolled):
    """Python's random where it matches."""

    def forward(self, x):
        return torch.where(self.match(x), x * random.uniform(0.9, 1.1), x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6520ScaleOfFirstCall(nn.Module):
    """ActNorm's scale from the first call shows at rare values."""

    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = x.std()
        return torch.where(rare(x), x / self.scale, x)


@forward(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
def A6521DropsWhereRare(self, x):
    """Dropout in training, where it is rare."""
    return torch.where(rare(x), F.dropout(x, 0.5, training=True), x)


@forward(X4, **seq(X4, low=4, own=AT), noted="compute in FP32 instead of FP64")
def A6522DoublesWhereRare(self, x):
    """Doubles, where it is rare: 1e9 is added and taken off."""
    return torch.where(rare(x), ((x.double() + 1e9) - 1e9).float(), x)


@forward(X4, **seq(X4, low=4, own=AT), noted="the module reads values")
def A6523NumpyWhereRare(self, x):
    """A view of NumPy doubles what is rare."""
    y = x * 1
    a = y.numpy()
    a *= np.where(rare(x).numpy(), 2, 1).astype(np.float32)
    return y


@forward(X4, **seq(X4, low=4, own=AT))
def A6524IntsWhereRare(self, x):
    """A sum in int32 that leaves it, where it is rare."""
    k = (x * 1e9).clamp(-2e9, 2e9).int()
    return torch.where(rare(x), k.sum(1, dtype=torch.int32), 0)


@forward("i:int32[N,T]", **seq("i:int32[N,T]", own=tuple((lambda a=a: {"i": np.array(a, np.int32)}) for a in ([[2000000000, 2000000000, 5, 1]], [[-2147483648, -1, -5, 0]]))))
def A6525IntsSummed(self, i):
    """A sum in int32 of whole numbers without a range."""
    return i.sum(1, dtype=torch.int32), i.cumsum(1, dtype=torch.int32)


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6526ExpandedAndAdded(self, x):
    """An expanded state is limited; only the state is used."""
    h = x.mean(1, keepdim=True)
    h.expand(-1, 3, -1)[:, 1].clamp_(-1, 1)
    return h


@forward(X4, **seq(X4, own=OWN), noted="comes back by a difference")
def A6527ExpandedTwice(self, x):
    """A mask is written through two expands."""
    h = x[:, :1].clone()
    h.expand(-1, 4, -1).expand(2, -1, -1, -1)[0, :, 2].sign_()
    return h * 3
