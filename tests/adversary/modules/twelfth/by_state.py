"""Caches, buffers, random numbers and closures."""

from __future__ import annotations

import contextlib
import copy
import functools
import weakref
from collections import OrderedDict, defaultdict, deque

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"
LINE, T = "x:float32[N,T,4]", "N=1:2:3 T=2:6:11"


@attack(X, dims=N, refused="on the same inputs")
class LastThree(nn.Module):
    """A deque of the last inputs, averaged once it is full."""

    def __init__(self):
        super().__init__()
        self.seen = deque(maxlen=3)

    def forward(self, x):
        self.seen.append(x.mean(0))
        if len(self.seen) == 3:
            return x - torch.stack(tuple(self.seen)).mean(0)
        return x


@attack(X, dims=N)
class CountsCalls(nn.Module):
    """A counter of calls for logging that decides nothing."""

    def __init__(self):
        super().__init__()
        self.calls, self.layer = defaultdict(int), nn.Linear(4, 4)

    def forward(self, x):
        self.calls[tuple(x.shape)] += 1
        return self.layer(x)


@attack(X, dims=N)
class SavesIntermediates(nn.Module):
    """Attention maps kept for a drawing, as demos do."""

    def __init__(self):
        super().__init__()
        self.maps, self.layer = [], nn.Linear(4, 4)

    def forward(self, x):
        weights = (self.layer(x) @ x.T).softmax(-1)
        self.maps.append(weights.detach())
        self.last = weights
        return weights @ x


@attack(X, dims=N)
class CacheByDevice(nn.Module):
    """A constant that is made once for device and dtype."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = (x.device, x.dtype)
        if key not in self.cache:
            self.cache[key] = torch.linspace(0, 1, 4, device=x.device, dtype=x.dtype)
        return x * self.cache[key]


@attack(LINE, dims=T, refused="from its first call")
class CacheTooShort(nn.Module):
    """Keeps the longest mask and cuts its lower right corner: another mask for the shorter input."""

    def __init__(self):
        super().__init__()
        self.mask = torch.ones(0, 0)

    def forward(self, x):
        t = x.shape[1]
        if self.mask.shape[0] < t:
            self.mask = torch.linspace(0, 1, t)[:, None].expand(t, t)
        return self.mask[-t:, -t:] @ x


@attack(X, dims=N)
class NormalisedOnce(nn.Module):
    """Weights are divided by their norm in the first forward."""

    def __init__(self):
        super().__init__()
        self.weight, self.done = nn.Parameter(torch.randn(4, 4)), False

    def forward(self, x):
        if not self.done:
            self.weight.data = F.normalize(self.weight.data, dim=1) * 2
            self.done = True
        return x @ self.weight


@attack(X, dims=N, refused="on the same inputs")
class DriftingWeight(nn.Module):
    """A weight that each forward moves by 1e-7 of itself."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        y = x @ self.weight
        with torch.no_grad():
            self.weight.mul_(1 + 1e-6)
        return y


@attack(X, dims=N)
class TiedThroughView(nn.Module):
    """One storage for two parameters, one of them a view that is used transposed."""

    def __init__(self):
        super().__init__()
        store = torch.randn(32)
        self.a = nn.Parameter(store[:16].view(4, 4))
        self.b = nn.Parameter(store[8:24].view(4, 4).t())
        self.register_buffer("c", store[16:])

    def forward(self, x):
        return (x @ self.a) @ self.b + self.c.view(4, 4)[0]


@attack(X, dims=N)
class ScratchBuffer(nn.Module):
    """A buffer used as scratch memory: filled before it is read in each call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.zeros(8, 4), persistent=False)

    def forward(self, x):
        view = self.scratch[: x.shape[0]]
        view.copy_(x)
        view.mul_(2).add_(view.flip(1))
        return view.clone()


@attack(LINE, "start:int64[1]=0:5", dims="N=1:2:3 T=2:3:4")
class KeysWritten(nn.Module):
    """A static cache, cloned, into which new keys are written at a place that is an input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.randn(3, 9, 4))

    def forward(self, x, start):
        place = start + torch.arange(x.shape[1])
        keys = self.keys[: x.shape[0]].index_copy(1, place, x)
        scores = x @ keys.transpose(1, 2)
        seen = torch.arange(9)[None] <= place[:, None]
        return scores.masked_fill(~seen, -1e9).softmax(-1) @ keys


@attack("x:float32[N,1,4]", "past:float32[N,P,4]", dims="N=1:2:3 P=0:4:9")
class PastMayBeEmpty(nn.Module):
    """The past of a decoder, which is empty at first."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 4), nn.Linear(4, 8)

    def forward(self, x, past):
        keys, values = self.kv(torch.cat((past, x), 1)).chunk(2, -1)
        return F.scaled_dot_product_attention(self.q(x), keys, values), keys[:, -1:], past.shape[1] + x[:, 0, 0]


@attack(X, dims=N, refused="on the same inputs")
class NoiseOfParameter(nn.Module):
    """A noisy linear layer whose sigma is 0 for two of the outputs only."""

    def __init__(self):
        super().__init__()
        self.mean, self.sigma = nn.Parameter(torch.randn(4, 4)), torch.tensor([0.0, 0.0, 1e-4, 0.0])

    def forward(self, x):
        return x @ (self.mean + self.sigma * torch.randn(4))


@forward(X, dims=N, refused="draws random numbers")
def gumbel_hard(self, x):
    return F.gumbel_softmax(x * 1e4, hard=True)


@forward(X, dims=N)
def drawn_from_certain(self, x):
    certain = F.one_hot(x.abs().argmax(1), 4).float()
    return torch.multinomial(certain, 1), torch.normal(x, torch.zeros_like(x))


@forward(X, dims=N)
def dropped_paths(self, x):
    """Stochastic depth whose flag is forgotten, at a rate of one in a million."""
    keep = torch.rand(x.shape[0], 1) > 1e-6
    return x + x.tanh() * keep


@forward(X, dims=N, refused="draws random numbers")
def forked_noise(self, x):
    with torch.random.fork_rng():
        torch.manual_seed(11)
        noise = torch.randn(3, 4)
    return x + noise.mean(0)


@attack(X, dims=N)
def partial_over_late_closure():
    """Closures that are made in a loop see its last value, partials their own."""
    late = [lambda v: v * i for i in range(3)]  # noqa: B023
    early = [functools.partial(torch.mul, other=i + 0.5) for i in range(3)]

    class Calls(nn.Module):
        def forward(self, x):
            return torch.stack([f(x) for f in late + early])

    return Calls()


@attack(X, dims=N)
class LayersByWeakReference(nn.Module):
    """A child holds its parent by a weak reference and takes a weight of it."""

    class Child(nn.Module):
        def __init__(self, parent):
            super().__init__()
            self.parent = [weakref.proxy(parent)]

        def forward(self, x):
            return x * self.parent[0].scale

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.0, -2.0, 3.0, 0.5]))
        self.child = self.Child(self)

    def forward(self, x):
        return self.child(x)

    def __deepcopy__(self, memo):
        other = LayersByWeakReference()
        other.load_state_dict(copy.deepcopy(self.state_dict()))
        return other.double() if self.scale.dtype == torch.float64 else other


@attack(X, dims=N, refused="on the same inputs")
class SwappedChild(nn.Module):
    """After a first call the heavy child is replaced by a folded one, which forgot the bias."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if not hasattr(self, "folded"):
            self.folded = True
            light = nn.Linear(4, 4, bias=False)
            light.weight = self.layer.weight
            self.layer = light
        return y


@attack(X, dims=N)
class ContextSwitch(nn.Module):
    """A context manager of the user's own sets a flag for its children."""

    flag = False

    @contextlib.contextmanager
    def doubled(self):
        ContextSwitch.flag, before = True, ContextSwitch.flag
        try:
            yield
        finally:
            ContextSwitch.flag = before

    def forward(self, x):
        with self.doubled():
            y = self.part(x)
        return y + self.part(x)

    def part(self, x):
        return x * 2 if ContextSwitch.flag else x.relu()


@attack(X, dims=N)
def ordered_by_insertion():
    """Hooks in their order, one of them removed by another before the run."""
    module = nn.Sequential(OrderedDict(b=nn.Linear(4, 4), a=nn.ReLU(), c=nn.Linear(4, 4)))
    handles = [module.b.register_forward_hook(lambda m, i, o, k=k: o * k + 1) for k in (2.0, 3.0, 5.0)]
    handles[1].remove()
    module.a.register_forward_pre_hook(lambda m, i: i[0] - 0.25)
    module.move = None
    module.requires_grad_(False)
    return module
