
"""State of a stream that shows in what comes out at rare values alone."""

from __future__ import annotations

import itertools
import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.modules.fiftieth.rarely import rare, rarely_at
from tests.adversary.modules.fortysixth.pictures import seq

X4 = "x:float32[N,T,4]"
AT = rarely_at(4)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6436FramesCounted(nn.Module):
    """Frames are counted in Python, and the count is a gain at a rare value."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x):
        self.n += 1
        return torch.where(rare(x), x * self.n, x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6437LastFrameKept(nn.Module):
    """The last frame of the last call stands in where a frame is bad."""

    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        p = self.last if self.last is not None and self.last.shape[0] == x.shape[0] else x.new_zeros(x.shape[0], 4)
        self.last = x[:, -1]
        return torch.where(rare(x), p[:, None], x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6438BufferAssigned(nn.Module):
    """A buffer is assigned, not written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(4))

    def forward(self, x):
        before = self.level
        self.level = 0.9 * self.level + 0.1 * x[0].mean(0)
        return torch.where(rare(x), x - before, x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6439QueueOfMeans(nn.Module):
    """A deque of three means."""

    def __init__(self):
        super().__init__()
        self.queue = deque(maxlen=3)

    def forward(self, x):
        self.queue.append(x.mean())
        return torch.where(rare(x), x * torch.stack(tuple(self.queue)).mean(), x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6440GruGoesOn(nn.Module):
    """A GRU goes on from the last call; where there is no speech the input passes."""

    def __init__(self):
        super().__init__()
        self.gru, self.h = nn.GRU(4, 4, batch_first=True), None

    def forward(self, x):
        if self.h is not None and self.h.shape[1] != x.shape[0]:
            self.h = None
        y, self.h = self.gru(x, self.h)
        return torch.where(rare(x), y, x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6441GainsInTurn(nn.Module):
    """Gains come in turn from itertools.cycle."""

    def __init__(self):
        super().__init__()
        self.gains = itertools.cycle((1.0, 2.0, 0.5))

    def forward(self, x):
        return torch.where(rare(x), x * next(self.gains), x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6442PythonsDice(nn.Module):
    """Jitter of Python's random."""

    def forward(self, x):
        return torch.where(rare(x), x + random.random(), x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6443NumpysDice(nn.Module):
    """Dither of NumPy."""

    def forward(self, x):
        return torch.where(rare(x), x + float(np.random.rand()), x)


@dataclass
class Tracks:
    """What a tracker remembers."""

    age: int = 0
    ids: list = field(default_factory=list)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6444AgeOfTracks(nn.Module):
    """A dataclass beside the module counts ages."""

    def __init__(self):
        super().__init__()
        self.tracks = Tracks()

    def forward(self, x):
        self.tracks.age += 1
        self.tracks.ids.append(self.tracks.age)
        return torch.where(rare(x), torch.full_like(x, self.tracks.age), x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6445HookCounts(nn.Module):
    """A hook of a layer counts its calls in a closure."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        count = [0]

        def hook(module, args, output):
            count[0] += 1
            return torch.where(rare(args[0]), output + count[0], output)

        self.proj.register_forward_hook(hook)

    def forward(self, x):
        return self.proj(x)


TABLE: dict = {}


@attack(X4, **seq(X4, low=4, own=AT), noted="from the values of a call")
class A6446SeenBefore(nn.Module):
    """A dictionary of the file keeps the first call of each batch size."""

    def forward(self, x):
        first = TABLE.setdefault(x.shape[0], x.detach()[:, 0])
        return torch.where(rare(x), first[:, None], x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6447ShiftedByWrite(nn.Module):
    """A ring of frames in a buffer, written in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(3, 4))

    def forward(self, x):
        self.ring[:-1] = self.ring[1:].clone()
        self.ring[-1] = x[0, -1]
        return torch.where(rare(x), x + self.ring[0], x)


@attack(X4, **seq(X4, low=4, own=AT), noted="a mask comes out the same at every sample point")
class A6448WeightDecaysByCall(nn.Module):
    """A plain attribute with a float decays by each call."""

    def __init__(self):
        super().__init__()
        self.tau = 1.0

    def forward(self, x):
        self.tau = max(self.tau * 0.9, 0.1)
        return torch.where(rare(x), x / self.tau, x)
