# ruff: noqa: E501 - attacks are written as users write them
"""What modules remember: hooks, copies, caches, generators, shared layers, memory that two things see."""

from __future__ import annotations

import array
import contextvars
import hashlib
import io
import itertools
import mmap
import weakref

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import seq
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
RARE = tuple(values_at(X, N=n, T=t) for n, t in ((1, 37), (2, 37), (3, 37), (2, 9), (1, 29), (3, 34)))
RARE4 = tuple(values_at(X4, N=n, T=t) for n, t in ((1, 37), (2, 37), (3, 37), (2, 9), (1, 29), (3, 34)))


@attack(X4, **seq(X4, own=RARE4))
class A6640FeaturesByHook(nn.Module):
    """Features are taken by a hook that closes over the module itself; a deep copy's hook writes to the first one."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
        self.feats = {}
        self.body[1].register_forward_hook(lambda m, a, out: self.feats.__setitem__("relu", out))

    def forward(self, x):
        y = self.body(x)
        return y, self.feats["relu"].mean(1)


@attack(X4, **seq(X4, own=RARE4))
class A6641CopiesAreFresh(nn.Module):
    """A copy is made anew from the arguments, so a gain set by hand later is gone in it."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.gain = 1.0
        self.born()

    def born(self):
        self.gain = 3.0

    def __deepcopy__(self, memo):
        new = type(self)()
        new.gain = 1.0
        new.load_state_dict(self.state_dict())
        return new

    def forward(self, x):
        return self.lin(x) * self.gain


@attack(X, **seq(X, own=RARE), refused="depends on the size")
class A6642FirstOfALength(nn.Module):
    """What the first batch of a length was like is kept for all later ones of that length."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        m = self.kept.setdefault(x.shape[1], x.mean().detach()) if x.shape[1] > 33 else x.mean()
        return x - m


@attack(X4, **seq(X4, own=RARE4), refused="the exported model differs from the module")
class A6643SharedThrice(nn.Module):
    """One layer used three times counts its uses modulo three; one length uses it twice, and the next call begins elsewhere."""

    class Layer(nn.Module):
        """A linear layer with a gain for each of its turns."""

        def __init__(self):
            super().__init__()
            self.lin, self.turn = nn.Linear(4, 4), 0

        def forward(self, x):
            self.turn = (self.turn + 1) % 3
            return torch.tanh(self.lin(x)) * (1 + self.turn)

    def __init__(self):
        super().__init__()
        self.layer = self.Layer()

    def forward(self, x):
        for _ in range(2 if x.shape[1] == 37 else 3):
            x = x + self.layer(x)
        return x


@attack(X, **seq(X, own=RARE))
class A6644SeenByNumpy(nn.Module):
    """A tensor and an array share memory; the array gets a number by the length before the tensor is used."""

    def __init__(self):
        super().__init__()
        self.array = np.ones(1, np.float32)
        self.tensor = torch.from_numpy(self.array)

    def forward(self, x):
        self.array[0] = 2 if x.shape[1] == 37 else 1
        return x * self.tensor


@attack(X, **seq(X, own=RARE))
class A6645SeenByBuffer(nn.Module):
    """The same by an array of Python's own and frombuffer, with a step at a length."""

    def __init__(self):
        super().__init__()
        self.raw = array.array("f", [1.0, 1.0])
        self.tensor = torch.frombuffer(self.raw, dtype=torch.float32)

    def __deepcopy__(self, memo):
        return type(self)()

    def forward(self, x):
        self.raw[1] = 1.0 + (x.shape[1] > 33) * 0.5
        return x * self.tensor[1]


@attack(X, **seq(X, own=RARE), refused="after many calls")
class A6646Cycle(nn.Module):
    """A cycle of seventy equal gains and one that is not."""

    def __init__(self):
        super().__init__()
        self.gains = itertools.cycle((1.0,) * 70 + (2.0,))

    def forward(self, x):
        return x * next(self.gains)


@attack(X, **seq(X, own=RARE), refused="run again")
class A6647Doubles(nn.Module):
    """A bias that begins at nothing to speak of and doubles with every call, in a closure."""

    def __init__(self):
        super().__init__()
        eps = 1e-13

        def bias():
            nonlocal eps
            eps = min(eps * 2, 1.0)
            return eps

        self.bias = bias

    def forward(self, x):
        return x + self.bias()


@attack(X, **seq(X, own=RARE), refused="after many calls")
class A6648LogRotates(nn.Module):
    """A log in memory; when it is full, it begins again and the level of what is said goes down for good."""

    def __init__(self):
        super().__init__()
        self.log, self.level = io.StringIO(), [1.0]

    def __deepcopy__(self, memo):
        return type(self)()

    def forward(self, x):
        self.log.write(f"{tuple(x.shape)}\n")
        if self.log.tell() > 600:
            self.log = io.StringIO()
            self.level[0] = 0.5
        return x * self.level[0]


LAST = contextvars.ContextVar("last", default=0)


@forward(X, **seq(X, own=RARE), noted="for the next call")
def A6649LongestOfContext(self, x):
    """A context variable keeps the length before; only a fall from a long to a short one shows."""
    before = LAST.get()
    LAST.set(x.shape[1])
    return x * 2 if before == 37 and x.shape[1] < 37 else x


@attack(X, **seq(X, own=RARE), refused="plain number of a size")
class A6650SaltOfShape(nn.Module):
    """A digest of the shape's text picks one of 61 gains of a table, all of which are one but for some."""

    def __init__(self):
        super().__init__()
        g = torch.ones(61)
        g[int(hashlib.md5(b"(2, 37)").hexdigest(), 16) % 61] = 1.5
        self.register_buffer("g", g)

    def forward(self, x):
        key = hashlib.md5(str(tuple(x.shape)).encode()).hexdigest()
        return x * self.g[int(key, 16) % 61]


@attack(X, **seq(X, own=RARE), refused="after many calls")
class A6651Mapped(nn.Module):
    """Counts of calls in mapped memory, at the 90th the sign turns."""

    def __init__(self):
        super().__init__()
        self.mem = mmap.mmap(-1, 8)

    def __deepcopy__(self, memo):
        return type(self)()

    def forward(self, x):
        self.mem[0] = (self.mem[0] + 1) % 256
        return -x if self.mem[0] == 90 else x


@attack(X4, **seq(X4, own=RARE4), refused="after many calls")
class A6652SwapsItself(nn.Module):
    """The first call of a long length builds a fast path and puts it in place of forward; it fuses with a stale scale."""

    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.ref = weakref.ref(self.norm)

    def forward(self, x):
        if x.shape[1] == 37:
            w = (self.lin.weight * 1.01).detach()
            self.forward = lambda x: F.layer_norm(F.linear(x, w, self.lin.bias), (4,), self.norm.weight, self.norm.bias)
        return self.norm(self.lin(x))
