"""State and first calls in new places: files, caches outside, classes swapped, global switches, hooks, parametrizations, weak references."""
# ruff: noqa: E501, UP033 - attacks are written as users write them

from __future__ import annotations

import copy
import functools
import os
import tempfile
import weakref

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="no exporter follows what goes through a file")
class A7705TableInATempFolder(nn.Module):
    """Position tables by length are kept as files in a folder of the module's own and read back."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="r64_")

    def forward(self, x):
        t = x.shape[1]
        path = os.path.join(self.folder, f"pos{t}.pt")
        if not os.path.exists(path):
            torch.save(torch.linspace(0, 1, t)[:, None].repeat(1, 4), path)
        return x + torch.load(path)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="which it has written in a call before")
class A7706FirstLengthInAFile(nn.Module):
    """The first length is written to a file; all later calls scale by it."""

    def __init__(self) -> None:
        super().__init__()
        self.path = os.path.join(tempfile.mkdtemp(prefix="r64_"), "first")

    def forward(self, x):
        if not os.path.exists(self.path):
            with open(self.path, "w") as f:
                f.write(str(x.shape[1]))
        with open(self.path) as f:
            first = int(f.read())
        return x * first


@functools.lru_cache(maxsize=2)
def window(t: int) -> torch.Tensor:
    return torch.hann_window(t, periodic=False) + 0.1


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7707LruCacheOutside(nn.Module):
    """A window from an lru_cache of two entries of a function outside."""

    def forward(self, x):
        return x * window(x.shape[1]), window(x.shape[1] + x.shape[0]).sum()


@functools.lru_cache(maxsize=None)
def shared_buffer() -> list:
    return []


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7708LruCacheHoldsAList(nn.Module):
    """An lru_cache without arguments hands out a list, which the first call fills."""

    def forward(self, x):
        box = shared_buffer()
        if not box:
            box.append(x.shape[1])
        return x + box[0]


class Ready(nn.Module):
    def forward(self, x):
        return self.f(x) + self.bias_by_size


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="'bias_by_size' from its first call")
class A7709ClassSwappedAtFirstCall(nn.Module):
    """The first call sets a number by the size and swaps __class__, as lazy modules do."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 3)

    def forward(self, x):
        self.bias_by_size = x.shape[1] * 0.5
        self.__class__ = Ready
        return self.f(x) + self.bias_by_size


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7710DefaultDtypeSetForAWhile(nn.Module):
    """torch.set_default_dtype(float64) for a while, so that arange and linspace are double there."""

    def forward(self, x):
        old = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            w = torch.linspace(0, 1, x.shape[1]) / 3
        finally:
            torch.set_default_dtype(old)
        return (x * w[:, None]).float(), w.sum().float()


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7711DefaultDtypeLeft(nn.Module):
    """The default dtype is set to float64 by forward and left so: the first call differs in type from later ones? No: set before use."""

    def forward(self, x):
        w = torch.ones(x.shape[1]) / 3
        torch.set_flush_denormal(False)
        torch.set_printoptions(precision=3)
        return x * w[:, None]


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7712HookRegisteredInForward(nn.Module):
    """Each call registers a forward hook on a child and removes it; what it captures is an output."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x):
        seen = {}
        h = self.a.register_forward_hook(lambda m, i, o: seen.setdefault("a", o * 2))
        try:
            y = self.b(F.gelu(self.a(x)))
        finally:
            h.remove()
        return y, seen["a"].mean(1)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call")
class A7713HookRegisteredOnceBySize(nn.Module):
    """The first call registers a pre-hook whose scale is the first batch; it stays."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 6)
        self.hooked = False

    def forward(self, x):
        if not self.hooked:
            n = x.shape[0]
            self.a.register_forward_pre_hook(lambda m, i: (i[0] * n,))
            self.hooked = True
        return self.a(x)


class Ranked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rank = None

    def forward(self, w):
        if self.rank is None:
            return w
        return w * self.rank


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="from its first call")
class A7714ParametrizationByFirstSize(nn.Module):
    """A parametrization that the first call configures by its length."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 4)
        parametrize.register_parametrization(self.f, "weight", Ranked())

    def forward(self, x):
        p = self.f.parametrizations.weight[0]
        if p.rank is None:
            p.rank = 1.0 / x.shape[1]
        return self.f(x)


@attack("x:float32[N,C,T]", dims="N=1:2:3 C=4 T=4:7:9", kinds=FINITE)
class A7715OldWeightNormAndOrthogonal(nn.Module):
    """weight_norm (old hooks and new), spectral_norm (old hooks) in eval mode, orthogonal; parametrize.cached."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.utils.weight_norm(nn.Conv1d(4, 6, 3, padding=1), dim=None)
        self.b = nn.utils.spectral_norm(nn.Conv1d(6, 4, 1))
        self.c = parametrizations.orthogonal(nn.Linear(4, 4), use_trivialization=False)
        self.d = parametrizations.weight_norm(nn.ConvTranspose1d(4, 2, 3), dim=1)

    def forward(self, x):
        y = self.b(F.elu(self.a(x)))
        with parametrize.cached():
            z = self.c(self.c(y.mT)).mT
        return self.d(z)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7716BufferReRegistered(nn.Module):
    """The mask buffer is re-registered when it is too short (grows only)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(3, 3).tril(), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if self.mask.shape[0] < t:
            self.register_buffer("mask", torch.ones(t, t).tril(), persistent=False)
        m = self.mask[:t, :t]
        return (m @ x) / m.sum(1, keepdim=True)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="from its first call")
class A7717BufferGrowsAndMatters(nn.Module):
    """A buffer grows with the longest call, and its last row (not of this call's length) is added."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pos", torch.linspace(0, 1, 2)[:, None], persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if self.pos.shape[0] < t:
            self.register_buffer("pos", torch.linspace(0, 1, t)[:, None], persistent=False)
        return x + self.pos[:t]


class Forwarding(nn.Module):
    """Attributes that start with scaled_ are made on the fly."""

    def __getattr__(self, name):
        if name.startswith("scaled_"):
            return super().__getattr__(name[7:]) * 0.5
        return super().__getattr__(name)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7718GetattrMakesScaledWeights(Forwarding):
    """__getattr__ gives half of a parameter; a cached_property gives its norm; a property its transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    @functools.cached_property
    def norm(self):
        return self.w.norm(dim=1)

    @property
    def wt(self):
        return self.w.T

    def forward(self, x):
        return F.linear(x, self.scaled_w) / self.norm + x @ self.wt


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="when run again")
class A7719GeneratorKeptAlive(nn.Module):
    """A generator object that is kept alive hands out the layers round robin: the call's number matters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.which = self.turns()

    def turns(self):
        while True:
            yield 0
            yield 0
            yield 1

    def forward(self, x):
        return self.layers[next(self.which)](x)


REGISTRY: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class Table:
    def __init__(self, t):
        self.value = torch.arange(t).float() / t


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7720WeakTables(nn.Module):
    """Tables in a WeakValueDictionary: gone after each call; a weak reference to the module's own child."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.PReLU()
        self.__dict__["ref"] = weakref.ref(self.f)

    def forward(self, x):
        t = x.shape[1]
        table = REGISTRY.get(t)
        if table is None:
            table = REGISTRY[t] = Table(t)
        return self.ref()(x - table.value)


class Settings:
    instance = None

    def __new__(cls):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            cls.instance.longest = 0
        return cls.instance


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="Settings.instance")
class A7721SingletonKeepsLongest(nn.Module):
    """A singleton keeps the longest length; the output is scaled by it (NTK of rotary tables does so)."""

    def forward(self, x):
        s = Settings()
        s.longest = max(s.longest, x.shape[1])
        return x * (s.longest / 9)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7722CopyOfSelf(nn.Module):
    """A deep copy of itself with halved weights gives the target network's output."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 4)
        self.teacher = None

    def forward(self, x):
        if self.__dict__.get("ema") is None:
            ema = copy.deepcopy(self.f)
            with torch.no_grad():
                for p in ema.parameters():
                    p.mul_(0.5)
            self.__dict__["ema"] = ema
        return self.f(x) - self.__dict__["ema"](x)
