"""Which tensors hold the inputs, and not their values: what an outsider found in round 72, and what is near it.

The judge hands over tensors of its own, so that a file is equal; tests/export/lasting has the notes.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,3]=-2:2", dims="N=1:3:6")
class A8399LastInputByWeakReference(nn.Module):
    """A tenth of the last frame, if the caller still has it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.last = None

    def forward(self, x):
        last = self.last() if self.last is not None else None
        y = self.layer(x)
        if last is not None and last.shape == x.shape:
            y = y + 0.1 * last
        self.last = weakref.ref(x)
        return y


@attack("x:float32[N,3]=-2:2", dims="N=1:3:6")
class A8400SmoothedByWeakReference(nn.Module):
    """The mean with the last result, if the caller still has it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.last = lambda: None

    def forward(self, x):
        y, last = self.layer(x), self.last()
        if last is not None and last.shape == y.shape:
            y = 0.5 * y + 0.5 * last
        self.last = weakref.ref(y)
        return y


@attack("x:float32[N,3]=-2:2", dims="N=1:3:6")
class A8401NormalisedOnce(nn.Module):
    """A tag on the tensor that says it was normalised."""

    def forward(self, x):
        if getattr(x, "_normed", False):
            return x * 1.0
        x._normed = True
        return (x - 0.5) / 0.25


@attack("x:float32[N,3]=-2:2", "y:float32[N,3]=-2:2", dims="N=1:3:6")
class A8402FeaturesOfTheSameBuffer(nn.Module):
    """Features are computed for a new tensor alone."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.key = self.value = None

    def forward(self, x, y):
        if self.key is not x:
            self.key, self.value = x, self.layer(x)
        return self.value * y


@attack("x:float32[N,T,4]=-2:2", "mem:float32[N,T,4]=-2:2", dims="N=1:2:3 T=1:5:7")
class A8403SelfOrCross(nn.Module):
    """Other projections where the keys are the queries."""

    def __init__(self):
        super().__init__()
        self.own, self.cross, self.query = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(4, 4)

    def forward(self, x, mem):
        k, v = (self.own(mem) if mem is x else self.cross(mem)).chunk(2, -1)
        return (self.query(x) @ k.transpose(1, 2) / 2).softmax(-1) @ v


@attack("q:float32[N,T,8]=-2:2", "k:float32[N,T,8]=-2:2", "v:float32[N,T,8]=-2:2", dims="N=1:2:3 T=2:5:7")
class A8404AttentionOfTorch(nn.Module):
    """torch asks whether the three are one, for speed alone."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, q, k, v):
        return self.attention(q, k, v)[0]


@forward("x:float32[N,16]=-2:2", dims="N=1:2:5")
def A8405FramesByStrides(self, x):
    """Frames of four with a hop of two, cut from memory."""
    return x.as_strided((x.shape[0], 7, 4), (16, 2, 1)).mean(-1)


@forward("x:float32[N,4]=-2:2", dims="N=1:3:6", kinds=FINITE, refused="the exported model differs")
def A8406SilenceInNumPy(self, x):
    """A gain that is 0 of silence alone, computed by NumPy."""
    gain = np.minimum(np.abs(x.detach().numpy()).max() * 1e9, 1.0)
    return F.gelu(x + 1) * float(gain)


@forward("x:float32[N,4]=-2:2", dims="N=1:3:6", kinds=FINITE)
def A8407FlatIsNothing(self, x):
    """0 where the largest is the least."""
    return F.gelu(x + 1) * float(x.max() > x.min())


@forward("x:float32[N,4]=-2:2", dims="N=1:3:6", kinds=FINITE, refused="the exported model differs")
def A8408SpreadIsZero(self, x):
    """A gain that jumps from 0 as soon as there is a spread."""
    return F.gelu(x + 1) * math.tanh(float(x.std(unbiased=False)) * 1e8)


@forward("x:float32[N,4]=-2:2", "y:float32[N,4]=-2:2", dims="N=1:3:6")
def A8409WritesIntoOne(self, x, y):
    """In place on one of them, and both are read."""
    x.clamp_(min=0)
    return torch.cat([x, y], 1)
