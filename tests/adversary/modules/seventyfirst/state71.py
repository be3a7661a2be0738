"""Modules whose earlier calls, attributes, descriptors and globals change what a later call computes."""
# ruff: noqa: E501, B019 - attacks are written as users write them

from __future__ import annotations

import functools
import threading
import weakref

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
LOCAL = threading.local()
SEEN: dict[int, torch.Tensor] = {}
BIGGEST = 0


@attack(X, dims=D, kinds=FINITE)
class A8241LruCachedTable(nn.Module):
    """A table made under lru_cache by size and dtype, and written to in place after the first use."""

    @functools.lru_cache(maxsize=2)
    def table(self, t, dtype):
        return torch.arange(t, dtype=dtype) / t

    def forward(self, x):
        p = self.table(x.shape[1], x.dtype)
        return x + p, x * self.table(x.shape[1] + 1, x.dtype)[1:]


@attack(X, dims=D, kinds=FINITE, refused="the module returns a different")
class A8242LruCacheMutated(nn.Module):
    """A cached table that each call adds one to, so that the answer depends on how often a size was seen."""

    @functools.lru_cache(maxsize=8)
    def table(self, t):
        return torch.zeros(t)

    def forward(self, x):
        p = self.table(x.shape[1])
        p += 1
        return x * p


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `BIGGEST` of `state71.py` ")
class A8243CacheGrowsInGlobal(nn.Module):
    """Positions cached in a global at the biggest size seen so far, scaled by that size."""

    def forward(self, x):
        global BIGGEST
        BIGGEST = max(BIGGEST, x.shape[1])
        p = torch.linspace(0, 1, BIGGEST)
        return x + p[: x.shape[1]]


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `LOCAL` of `state71.py` fr")
class A8244ThreadLocalScale(nn.Module):
    """A scale in a thread-local, set by the first call from its values."""

    def forward(self, x):
        if not hasattr(LOCAL, "scale"):
            LOCAL.scale = float(x.abs().mean()) + 1.0
        return x / LOCAL.scale


@attack(X, dims=D, kinds=FINITE)
class A8245WeakrefOwner(nn.Module):
    """A child with a weak reference to its parent, whose scale depends on the parent's count of rows."""

    class Child(nn.Module):
        def __init__(self, owner):
            super().__init__()
            self.owner = weakref.ref(owner)

        def forward(self, x):
            return x * self.owner().rows

    def __init__(self):
        super().__init__()
        self.rows = 1
        self.child = self.Child(self)

    def forward(self, x):
        self.rows = x.shape[0]
        return self.child(x)


class Scaled:
    """A descriptor that halves what it gives with every get of a bigger size."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, module, owner=None):
        return module.__dict__.get(self.name, 1.0)

    def __set__(self, module, value):
        module.__dict__[self.name] = value * 0.5


@attack(X, dims=D, kinds=FINITE)
class A8246DescriptorOfSize(nn.Module):
    """A data descriptor set from the size in forward, and read afterwards."""

    gain = Scaled()

    def forward(self, x):
        self.gain = x.shape[1]
        return x * self.gain


@attack(X, dims=D, kinds=FINITE)
class A8247GetattrMakesLayers(nn.Module):
    """Layers per size that __getattr__ makes on demand by the size's name."""

    def __getattr__(self, name):
        if name.startswith("w_"):
            torch.manual_seed(int(name[2:]))
            return torch.randn(int(name[2:]))
        return super().__getattr__(name)

    def forward(self, x):
        return x * getattr(self, f"w_{x.shape[1]}")


@attack(X, dims=D, kinds=FINITE, refused="forward keeps 'size', 'window' from its ")
class A8248CachedPropertyFirstSize(nn.Module):
    """A cached_property that remembers the first size in which it was asked."""

    size = 3

    @functools.cached_property
    def window(self):
        return torch.hann_window(self.size + 2, periodic=False)

    def forward(self, x):
        self.size = min(x.shape[1], 4)
        w = self.window
        return F.conv1d(x[:, None], w[None, None], padding=len(w) // 2)[:, 0]


@attack(X, dims=D, kinds=FINITE, refused="the module returns a different")
class A8249ClassAttributeMinimum(nn.Module):
    """A class attribute with the smallest value ever seen, subtracted from the input."""

    low = 0.0

    def forward(self, x):
        type(self).low = min(type(self).low, float(x.amin()))
        return x - type(self).low


@attack(X, dims=D, kinds=FINITE)
class A8250EvalFolds(nn.Module):
    """eval() that folds a batch norm into the weight once more each time it is called."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(1.0))

    def train(self, mode=True):
        super().train(mode)
        if not mode:
            with torch.no_grad():
                self.w.mul_(1.5)
        return self

    def forward(self, x):
        return x * self.w


@attack(X, dims=D, kinds=FINITE, refused="from its first call and depends on it")
class A8251HookDoubles(nn.Module):
    """A forward hook that removes itself after its first call, a pre-hook that pads to even sizes, a state that counts."""

    def __init__(self):
        super().__init__()
        self.l = nn.Identity()
        self.l.register_forward_pre_hook(lambda m, a: (F.pad(a[0], (0, a[0].shape[1] % 2)),))
        self.h = self.l.register_forward_hook(self.once)

    def once(self, module, inputs, out):
        self.h.remove()
        return out * 2

    def forward(self, x):
        return self.l(x)


@attack(X, dims=D, kinds=FINITE)
class A8252HookKeepsLast(nn.Module):
    """Features taken by a forward hook from an inner layer into a dict, normalised by the pooled output; cleared after use."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b = nn.Conv1d(1, 4, 3, padding=1), nn.Conv1d(4, 2, 3, padding=1)
        self.feats = {}
        self.a.register_forward_hook(lambda m, i, o: self.feats.__setitem__("a", o))

    def forward(self, x):
        y = self.b(self.a(x[:, None]).relu())
        f = self.feats.pop("a")
        return y, f / (f.norm(dim=1, keepdim=True) + 1e-6)


@attack(X, dims=D, kinds=FINITE, refused="the module returns a different")
class A8253StreamingMean(nn.Module):
    """A buffer with the running mean over calls, read before it is updated: the first call of each module sees zero."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))

    def forward(self, x):
        y = x - self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.mean().reshape(1)
        return y


@attack(X, dims=D, kinds=FINITE, refused="forward keeps 'pe' from its first call a")
class A8254BufferGrows(nn.Module):
    """A positional buffer that is re-registered at twice the size when it is too short; its values depend on its length."""

    def __init__(self):
        super().__init__()
        self.register_buffer("pe", torch.linspace(0, 1, 4), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if self.pe.numel() < t:
            self.register_buffer("pe", torch.linspace(0, 1, t), persistent=False)
        return x + self.pe[:t]


@attack(X, "m:bool[N,T]", dims=D, kinds=FINITE)
class A8255PrunedSetter(nn.Module):
    """A property with a setter that switches the branch by the type and count of a mask; weights under parametrize."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.l = nn.utils.parametrizations.weight_norm(nn.Linear(1, 3))
        self._mode = "sum"

    @property
    def mode(self):
        return self._mode

    @mode.setter
    def mode(self, n):
        self._mode = "sum" if n % 3 else "max"

    def forward(self, x, m):
        self.mode = m.shape[1]
        y = self.l((x * m)[..., None])
        return y.sum(1) if self.mode == "sum" else y.amax(1)


@forward(X, dims=D, kinds=FINITE, refused="forward keeps `SEEN` of `state71.py` fro")
def A8256SeenSizes(self, x):
    """A memo by id of the input and its size in a module global: results are returned again for the same key."""
    key = x.shape[0] * 100 + x.shape[1]
    if key not in SEEN:
        SEEN[key] = x.detach().mean(0)
    return x - SEEN[key]
