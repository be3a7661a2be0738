# ruff: noqa: E501, B905, B006, B019, B023, RUF046 - attacks are written as users write them
"""State, decorators and subclasses, and decisions by one, two and three sizes."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import OrderedDict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import X4, seq, two
from tests.adversary.values import values_at

YS = "y:float32[N,S,4]"
_CHANCE = np.random.default_rng(46)


def wide(*more: tuple[int, int], high: int = 160) -> dict:
    """Two lengths in a wide range, judged at four hundred pairs and some own ones."""
    pairs = [*more, *_CHANCE.integers(1, high + 1, (400, 2))]
    return {"dims": f"N=1:1:1 T=1:50:{high} S=1:60:{high}", "kinds": ("normal",), "feeds": tuple(values_at(X4, YS, N=1, T=int(t), S=int(s)) for t, s in pairs)}


@forward(X4, YS, **wide((34, 21), (55, 34), (144, 89), (2, 1), (160, 1), (3, 2), (123, 76)))
def A5396MatchedBySizes(self, x, y):
    """A match statement over a pair of sizes with guards."""
    match (x.shape[1], y.shape[1]):
        case (1, s) | (s, 1):
            return x.sum(1) + y.sum(1) * s
        case (t, s) if t % s == 13:
            return x.amax(1) - y.amin(1)
        case (t, s) if t == s:
            return (x * y).sum(1)
        case (t, (2 | 3 | 5 | 7) as s):
            return x.mean(1) * s
        case _:
            return x.mean(1) + y.mean(1)
@forward(X4, YS, **wide(*((k * 17, k * 23) for k in range(1, 7)), (101, 97), (97, 101)))
def A5397DispatchedByRules(self, x, y):
    """The first rule that holds of a table of lambdas, else the last."""
    t, s = x.shape[1], y.shape[1]
    rules = OrderedDict([(lambda: t * 23 == s * 17, 2.0), (lambda: (t ^ s) == 4, -3.0), (lambda: abs(t - s) in range(100, 160, 7), 0.5), (lambda: not t & (t - 1), 5.0)])
    scale = next((v for k, v in rules.items() if k()), 1.0)
    return x.mean(1) * scale + y.mean(1)
@forward(X4, YS, **wide(*((t, s) for t in (1, 2, 7, 89) for s in (1, 2, 7, 89))))
def A5398BroadcastOrNot(self, x, y):
    """Added where they broadcast, else one is resampled to the other: an error is passed over."""
    try:
        return x + y
    except RuntimeError:
        return x + F.interpolate(y.transpose(1, 2), size=x.shape[1], mode="nearest").transpose(1, 2)
@forward(X4, YS, **wide(*((int(round(1.6180339887 * s)), s) for s in range(1, 99))))
def A5399GoldenRatio(self, x, y):
    """Ratios of sizes as Python's floats, compared with a constant and with math.isclose."""
    r = x.shape[1] / y.shape[1]
    if math.isclose(r, 4 / 3):
        return x.amax(1) * r
    return (x.mean(1) if r > 1.6180339887 else y.mean(1)) * (1 if r < 120 else 3)
@forward(X4, YS, **wide((11, 29), (29, 11), (37, 73), (120, 21), (13, 31)))
def A5400DigitsReversed(self, x, y):
    """Sizes whose digits are each other's reverse."""
    t, s = x.shape[1], y.shape[1]
    k = sum(int(c) for c in str(t))
    return (x.sum(1) if str(t)[::-1] == str(s) and t != s else x.mean(1)) + y[:, k % s]
@forward(X4, **seq(X4))
def A5401ShrinksByHalves(self, x):
    """Halved until one is left, odd ones padded by a repetition of the last; walrus."""
    while (t := x.shape[1]) > 1:
        if t % 2:
            x = torch.cat([x, x[:, -1:]], 1)
        x = (x[:, ::2] - x[:, 1::2] * 0.5)
    return x[:, 0]
@forward(X4, **seq(X4))
def A5402StepsOfALength(self, x):
    """Slices with steps and ends that are computed: an eighth, a third from the end, none where it is zero."""
    t = x.shape[1]
    return x[:, :: max(1, t // 8)].sum(1), x[:, -(t // 3) :].sum(1), x[:, t % 5 : -1 - t % 3 : 2].sum(1), x[:, : t - 7].sum(1), x[:, t // 2 - 3 : t // 2 + 3].sum(1)
@attack(X4, **seq(X4))
class A5403AverageThatMoves(nn.Module):
    """An EMA of weights that is used in eval, a counter that stands still, and a mean frozen by a guard."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("ema", self.lin.weight.detach().clone() * 0.5)
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        if self.training:
            self.steps += 1
            self.ema.lerp_(self.lin.weight.detach(), 0.1)
        decay = 1 - 0.9 ** (self.steps + 1)
        return F.linear(x, self.ema / decay, self.lin.bias) + self.steps
@attack(X4, **seq(X4))
class A5404LazyTables(nn.Module):
    """A table that is made once, and again wherever it is too short; what is longer is cut."""

    def forward(self, x):
        t = x.shape[1]
        if not hasattr(self, "pe") or self.pe.size(0) < t * 2 - 1:
            pos = torch.arange(max(t, 8), dtype=torch.float32)[:, None] * torch.exp(torch.arange(0, 4, 2) * -(math.log(10000.0) / 4))
            pe = torch.stack([pos.sin(), pos.cos()], -1).flatten(1)
            self.pe = torch.cat([pe.flip(0), (pe * torch.tensor([-1, 1, -1, 1]))[1:]], 0)
        mid = self.pe.size(0) // 2
        return x + self.pe[mid - t + 1 : mid + t][:t]
@dataclasses.dataclass
class Output:
    """What a head gives back."""

    logits: torch.Tensor
    aux: torch.Tensor | None = None
    rows: list = dataclasses.field(default_factory=list)
@attack(X4, **seq(X4))
class A5405DataclassOfSome(nn.Module):
    """A dataclass with a None, under no_grad and autocast, with layers dropped by a constant."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.drop = [0.0, 0.1, 1.0, 0.3]

    @torch.no_grad()
    @torch.autocast("cpu", enabled=False)
    def forward(self, x):
        out = Output(x)
        for layer, p in zip(self.layers, self.drop):
            if p == 1.0 or (self.training and torch.rand(()) < p):
                continue
            x = x + layer(x)
            out.rows.append(x.mean(1))
        out.logits = x
        return out
@attack(X4, **seq(X4))
class A5406CachedByMethod(nn.Module):
    """functools.cache of a mask by size, which a later line writes into in place."""

    @functools.cache
    def mask(self, t):
        return torch.triu(torch.full((t, t), -torch.inf), 1)

    def forward(self, x):
        t = x.shape[1]
        m = self.mask(t)
        m[:, 0] = 0
        s = (x @ x.transpose(1, 2) + m).softmax(-1)
        return s @ x, m.isinf().sum()
@attack(X4, **seq(X4))
class A5407LateClosures(nn.Module):
    """Closures in a loop that see its last variable, a default that keeps what it was given, a deque."""

    def forward(self, x, seen=deque(maxlen=2)):
        fs = [lambda v: v * k for k in range(3)] + [lambda v, k=k: v - k for k in range(2)]
        seen.clear()
        for f in fs:
            seen.append(f(x))
        return functools.reduce(torch.add, seen), fs[0](x)
class Base(nn.Module):
    """A block whose parts are made by methods that subclasses override."""

    scale = 1.0

    def __init__(self):
        super().__init__()
        self.body = self.build()
        self.register_forward_pre_hook(lambda m, a: (a[0] * m.scale,))
        self.body.register_forward_hook(lambda m, a, o: o.add_(a[0]))

    def build(self):
        return nn.Linear(4, 4)

    @property
    def gain(self):
        return self.body[0].weight.norm() if isinstance(self.body, nn.Sequential) else 1

    def forward(self, x):
        return self.body(x) * self.gain
@attack(X4, **seq(X4))
class A5408Overridden(Base):
    """A subclass with its own scale, body and property, and hooks that change inputs and outputs."""

    scale = 0.5

    def build(self):
        return nn.Sequential(nn.Linear(4, 4), nn.Identity())

    def __call__(self, x):
        return super().__call__(x) if x.shape[1] != 23 else super().__call__(x[:, :-1])
class Clamped(nn.Module):
    """A parametrisation."""

    def forward(self, w):
        return w.clamp(-0.2, 0.2) / w.abs().amax()
@attack("x:float32[N,4,T]", **seq("x:float32[N,4,T]"))
class A5409Parametrised(nn.Module):
    """Spectral and own parametrisations, one upon the other, a frozen part and a weight that is tied through a view."""

    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.spectral_norm(nn.Conv1d(4, 4, 3, padding="same", padding_mode="circular" if False else "zeros"))
        nn.utils.parametrize.register_parametrization(self.a, "weight", Clamped())
        self.b = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
        self.tied = self.a.bias

    def forward(self, x):
        y = self.a(x)
        return self.b(y.transpose(1, 2)) + self.tied * self.b.weight.diagonal()
@forward(X4, YS, "z:float32[N,U,4]", dims="N=1:1:1 T=1:20:48 S=1:30:48 U=1:10:48", kinds=("normal",), feeds=tuple(values_at(X4, YS, "z:float32[N,U,4]", N=1, T=int(t), S=int(s), U=int(u)) for t, s, u in [(3, 4, 5), (5, 12, 13), (8, 15, 17), (9, 9, 9), (48, 1, 24), (20, 21, 29), (7, 24, 25), *_CHANCE.integers(1, 49, (300, 3))]))
def A5410ThreeSizes(self, x, y, z):
    """Sorted by size with a key, medians of sizes, and a triple of Pythagoras."""
    parts = sorted((x, y, z), key=lambda v: (-v.shape[1] % 7, v.shape[1]))
    t, s, u = (v.shape[1] for v in (x, y, z))
    mid = sorted((t, s, u))[1]
    k = 2.0 if t * t + s * s == u * u else 1.0
    return parts[0].mean(1) * k - parts[2].mean(1) * 0.5, parts[1][:, : mid // 2 + 1].sum(1)
@forward(X4, YS, **wide(*((t, s) for t in (3, 7, 10, 20, 30, 70, 90) for s in (1, 3, 7, 10, 60, 100, 160))))
def A5411FloatsOfTwoRounded(self, x, y):
    """Python's round of a ratio of sizes times a tenth, cut and rounded to even, as sizes of a pool."""
    t, s = x.shape[1], y.shape[1]
    a = max(1, round(t * 0.1 * s / 16))
    b = int(t * 0.7 + s * 0.1)
    return F.adaptive_avg_pool1d(x.transpose(1, 2), min(a, 9)).sum(2), x[:, : b % t + 1].sum(1), y[:, math.floor((t - s) / 3) % s]
@forward(X4, YS, **wide(*((t, s) for t in (1, 2, 40, 41, 160) for s in (1, 2, 40, 41, 160))))
def A5412NegativeQuotients(self, x, y):
    """Half of a negative difference, floored, cut, and by a shift, as places from the end."""
    d = x.shape[1] - y.shape[1]
    t = x.shape[1]
    return x[:, (d // 2) % t], x[:, int(d / 2) % t], x[:, (d >> 2) % t], x[:, (-d % 7) % t], x[:, divmod(d, -5)[1] % t], x[:, round(-d / 4) % t]
@forward(X4, YS, **wide(*((t, s) for t in (2, 3, 5, 7, 11, 149, 151, 157) for s in (2, 4, 149, 150))))
def A5413PrimesByAny(self, x, y):
    """Whether a size has a divisor, by any of a generator, and all of a chain of comparisons."""
    t, s = x.shape[1], y.shape[1]
    prime = t > 1 and not any(t % p == 0 for p in range(2, math.isqrt(t) + 1))
    chain = all(a < b for a, b in zip((1, s, t), (s, t, 150)))
    return x.mean(1) * (2 if prime else 1) + (y.amax(1) if chain else y.mean(1))
@forward(X4, YS, **wide((128, 128), (1, 128), (100, 41), (41, 100), (64, 160)), refused="the path through the module depends on the si")
def A5414BytesOfTensors(self, x, y):
    """Chunks by what a tensor takes in bytes, strides and whether it is contiguous."""
    limit = 1 << 13
    scores = x @ y.transpose(1, 2)
    if scores.numel() * scores.element_size() > limit:
        parts = [c.softmax(-1) @ y * 1.0 for c in scores.split(max(1, limit // (4 * y.shape[1])), 1)]
        return torch.cat(parts, 1).cumsum(1), len(parts) * x.new_ones(1)
    return scores.softmax(-1) @ y, scores.transpose(1, 2).is_contiguous() * x.new_ones(1)
@forward(X4, "i:int64[N]=0:39", **seq(X4, "i:int64[N]=0:39"))
def A5415PlacesFromTheEnd(self, x, i):
    """Frames at places that wrap by Python's rule, by tensors from the end and by a size less one."""
    t = x.shape[1]
    at = i % t
    rows = torch.arange(x.shape[0])
    y = x.clone()
    y[rows, -1 - at] = y[rows, at] * 2
    y[rows, at - t] += 1
    return y, x[rows, (at + 1) % t - 1], torch.take_along_dim(x, (t - 1 - at)[:, None, None], 1), x.index_select(1, at.clamp(max=t - 1))[:, 0]
@attack(X4, **seq(X4))
class A5416Checkpointed(nn.Module):
    """Generators of features, a checkpoint, and a module that is chosen by an attribute's name."""

    def __init__(self):
        super().__init__()
        self.stage_even, self.stage_odd = nn.Linear(4, 4), nn.Linear(4, 4)

    def features(self, x):
        for i in range(4):
            x = torch.utils.checkpoint.checkpoint(getattr(self, f"stage_{'odd' if i % 2 else 'even'}"), x, use_reentrant=False)
            yield x
            x = x.relu()

    def forward(self, x):
        *rest, last = self.features(x)
        return last, sum(r.mean() for r in rest), max(rest, key=lambda r: r.ndim).sum(1)
@forward(X4, YS, **two(X4, YS, zero=True))
def A5417EmptyPieces(self, x, y):
    """Reductions over what may be empty: sums, products, any, all, a mean that is NaN, joined with what is not."""
    both = torch.cat([y, x], 1)
    return y.sum(1), y.prod(1), (y > 0).any(1), (y > 0).all(1), y.mean(1), torch.logsumexp(both, 1), both[:, y.shape[1]], F.pad(y, (0, 0, 0, 1)).amax(1), y.norm(dim=1)
@forward(X4, YS, **two(X4, YS, zero=True))
def A5418CrossAttentionToNone(self, x, y):
    """Attention to nothing is zeros, by a softmax of no columns, with a bias of sizes."""
    s = x @ y.transpose(1, 2) / math.sqrt(4) - (torch.arange(x.shape[1])[:, None] - torch.arange(y.shape[1])).abs() * 0.1
    p = s.softmax(-1)
    return p @ y + x, F.scaled_dot_product_attention(x, y, y), p.sum(-1)
@forward(X4, "k:int64[1]=0:39", **seq(X4, "k:int64[1]=0:39"))
def A5419SwitchByAValue(self, x, k):
    """A dictionary of functions by a value that Python reads."""
    table = {0: torch.relu, 1: torch.tanh, 7: torch.neg}
    return table.get(int(k), torch.sigmoid)(x)
@forward(X4, **seq(X4))
def A5420AnyOfValues(self, x):
    """A way for loud inputs, decided by any of a comparison, and for silent ones by all."""
    if (x.abs() > 123.5).any():
        x = x / x.abs().max()
    elif torch.all(x == 0):
        return x + 1e-3
    return x * 2
