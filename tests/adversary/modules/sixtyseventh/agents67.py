"""Tracking, reinforcement learning, robotics and tokens: state, decisions by value, recursions over time."""
# ruff: noqa: E501, UP034, E731 - attacks are written as users write them

from __future__ import annotations

import math
from collections import deque
from functools import cached_property, singledispatchmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@forward(X, "done:bool[N,T]", dims=D, kinds=FINITE)
def A7963GaeReversed(self, x, done):
    """GAE by a reversed loop over time with bootstraps cut at done, V-trace with clipped ratios, returns normalised by an unbiased deviation with one element at least."""
    r, v, logp, logq = x[..., 0], x[..., 1], x[..., 2], x[..., 3]
    nd = (~done).float()
    adv, last = torch.zeros_like(r), torch.zeros(len(x))
    for t in reversed(range(x.shape[1] - 1)):
        delta = r[:, t] + 0.99 * v[:, t + 1] * nd[:, t] - v[:, t]
        last = delta + 0.99 * 0.95 * nd[:, t] * last
        adv[:, t] = last
    rho = torch.exp((torch.tanh(logp) - torch.tanh(logq))).clamp(max=1.0)
    norm = (adv - adv.mean(1, keepdim=True)) / (adv.std(1, keepdim=True) + 1e-3)
    return adv, rho * adv, norm


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 5, 6),))
def A7964CategoricalDqn(self, x):
    """C51's projection: b = (Tz - vmin)/dz, floor and ceil with the repair where they are equal, index_add on flat offsets."""
    atoms, vmin, vmax = 6, -2.5, 2.5
    dz = (vmax - vmin) / (atoms - 1)
    p = x.softmax(-1)
    z = torch.linspace(vmin, vmax, atoms)
    tz = (x.mean(-1, keepdim=True).round() + 0.5 * z).clamp(vmin, vmax)
    b = (tz - vmin) / dz
    lo, up = b.floor().long(), b.ceil().long()
    lo = torch.where((up > 0) & (lo == up), lo - 1, lo)
    up = torch.where((lo < atoms - 1) & (lo == up), up + 1, up)
    off = torch.arange(x.shape[0] * x.shape[1])[:, None] * atoms
    m = torch.zeros(x.numel())
    m = m.index_add(0, (lo.view(-1, atoms) + off).view(-1), (p * (up - b)).view(-1))
    m = m.index_add(0, (up.view(-1, atoms) + off).view(-1), (p * (b - lo)).view(-1))
    return m.view_as(x), lo.view(*x.shape), up.view(*x.shape)


@attack(X, dims=D, kinds=FINITE, refused="run again on the same inputs")
class A7965RunningNormalizer(nn.Module):
    """gym's RunningMeanStd kept in buffers, updated in eval as well, clip to ten."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("var", torch.ones(6))
        self.register_buffer("count", torch.tensor(1e-4))

    def forward(self, x):
        m, v, n = x.mean((0, 1)), x.var((0, 1), unbiased=False), x.shape[0] * x.shape[1]
        delta, tot = m - self.mean, self.count + n
        self.mean += delta * n / tot
        self.var.copy_((self.var * self.count + v * n + delta**2 * self.count * n / tot) / tot)
        self.count += n
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-10, 10)


class Track(NamedTuple):
    box: torch.Tensor
    age: torch.Tensor
    hit: torch.Tensor


@forward("x:float32[K,4]", "y:float32[M,4]", dims="K=1:3:5 M=1:4:6", kinds=("normal", "unit", "halves", "positive"), refused="_replace")
def A7966GreedyTracks(self, x, y):
    """SORT without a solver: greedy matches of tracks and detections by rounds of argmax over a masked IoU, as many as the smaller count, named tuples replaced."""
    def boxes(b):
        c, s = b[:, :2], b[:, 2:].abs() + 0.5
        return torch.cat((c - s, c + s), 1)

    a, b = boxes(x), boxes(y)
    lt, rb = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda q: (q[:, 2:] - q[:, :2]).prod(-1)
    iou = inter / (area(a)[:, None] + area(b)[None] - inter)
    track = Track(a, torch.ones(len(a)), torch.zeros(len(a), dtype=torch.bool))
    m = iou.clone()
    for _ in range(min(len(a), len(b))):
        flat = m.flatten().argmax()
        i, j = flat // len(b), flat % len(b)
        good = m[i, j] > 0.1
        row = (torch.arange(len(a)) == i) & good
        track = track._replace(box=torch.where(row[:, None], 0.6 * track.box + 0.4 * b[j], track.box), hit=track.hit | row)
        m = m.masked_fill((torch.arange(len(a)) == i)[:, None] | (torch.arange(len(b)) == j)[None], -1.0)
    return track._replace(age=torch.where(track.hit, 0.0, track.age + 1))


@attack(X, dims=D, kinds=FINITE)
class A7967DynamicNtk(nn.Module):
    """LLaMA's dynamic NTK: beyond four positions the base grows by the length; computed anew at every call, alibi slopes of six heads (no power of two)."""

    def inv(self, t):
        base = 10000.0
        if t > 4:
            base = base * ((2.0 * t / 4) - (2.0 - 1)) ** (6 / (6 - 2))
        return 1.0 / (base ** (torch.arange(0, 6, 2).float() / 6))

    def slopes(self, n):
        def power(m):
            start = 2 ** (-(2 ** -(math.log2(m) - 3)))
            return [start * start**i for i in range(m)]
        if math.log2(n).is_integer():
            return power(n)
        c = 2 ** math.floor(math.log2(n))
        return power(c) + self.slopes(2 * c)[0::2][: n - c]

    def forward(self, x):
        t = x.shape[1]
        f = torch.outer(torch.arange(t).float(), self.inv(t))
        c, s = torch.cat((f, f), -1).cos(), torch.cat((f, f), -1).sin()
        half = torch.cat((-x[..., 3:], x[..., :3]), -1)
        rel = (torch.arange(t)[None] - torch.arange(t)[:, None]).clamp(max=0)
        return x * c + half * s, torch.tensor(self.slopes(6))[:, None, None] * rel


@attack(X, dims=D, kinds=FINITE, refused="no form for the types")
class A7968CachedProperty(nn.Module):
    """functools.cached_property for the slopes, singledispatchmethod by type, a deque of the last three hidden states that is made in forward."""

    @cached_property
    def decay(self):
        return torch.exp(-torch.arange(6).float() / 3)

    @singledispatchmethod
    def scale(self, k):
        raise TypeError(type(k))

    @scale.register
    def _(self, k: int):
        return 1.0 / k

    @scale.register
    def _(self, k: float):
        return k

    def forward(self, x):
        last = deque(maxlen=3)
        out = []
        for t in range(x.shape[1]):
            last.append(x[:, t] * self.decay)
            out.append(sum(last) * self.scale(len(last)) + self.scale(0.5))
        return torch.stack(out, 1), torch.stack(tuple(last)).amax(0)


@attack(X, dims=D, kinds=FINITE, refused="from its first call")
class A7969CachedPropertyOfFirstSize(nn.Module):
    """A cached_property that was made from the length of the first call and is sliced or tiled at others."""

    def __init__(self) -> None:
        super().__init__()
        self.t = None

    @cached_property
    def table(self):
        return torch.arange(self.t).float() / self.t

    def forward(self, x):
        self.t = self.t or x.shape[1]
        r = -(-x.shape[1] // self.t)
        return x + self.table.repeat(r)[: x.shape[1], None]


@forward("x:float32[N,V]", "past:int64[N,T]=0:5", dims="N=1:2:3 V=6:8:11 T=1:4:7", kinds=FINITE, feeds=(lambda: {"x": halves(2, 8)()["x"], "past": torch.arange(6).reshape(2, 3).numpy()},))
def A7970SamplingProcessors(self, x, past):
    """HF's processors in a row: repetition penalty by sign, frequency by counts, min-p, typical and top-p with at least one kept, eta cut-off, last argmax."""
    got = x.gather(1, past)
    x = x.scatter(1, past, torch.where(got < 0, got * 1.3, got / 1.3))
    count = torch.zeros_like(x).scatter_add(1, past, torch.ones_like(got))
    x = x - 0.25 * count - 0.5 * (count > 0)
    p = x.softmax(-1)
    minp = p < 0.1 * p.amax(-1, keepdim=True)
    logp = x.log_softmax(-1)
    ent = -(logp * p).nansum(-1, keepdim=True)
    shifted = (-logp - ent).abs()
    s, order = torch.sort(shifted, dim=-1, stable=True)
    cum = logp.gather(-1, order).exp().cumsum(-1)
    lastkept = (cum < 0.7).sum(1).clamp(max=x.shape[1] - 1)
    typical = (s > s.gather(1, lastkept[:, None])).scatter(1, order, s > s.gather(1, lastkept[:, None]))
    eps = torch.tensor(0.02)
    eta = torch.minimum(eps, eps.sqrt() * torch.exp(-ent))
    y = x.masked_fill(minp, float("-inf")).masked_fill((p < eta) & (x < x.topk(2)[0][..., -1, None]), float("-inf"))
    return y.softmax(-1), typical, y.argmax(-1)


@forward("ids:int64[N,T]=0:3", dims="N=1:2:3 T=3:6:11")
def A7971NoRepeatNgram(self, ids):
    """Which tokens would end a trigram seen before, by unfold and comparison; longest common prefix of rows; stop sequences at the end."""
    tri = ids.unfold(1, 3, 1)
    same = (tri[..., :2] == ids[:, None, -2:]).all(-1)
    ban = torch.zeros(len(ids), 4).scatter_reduce(1, tri[..., 2], same.float(), "amax")
    lcp = (ids == ids[:1]).long().cumprod(1).sum(1)
    stop = torch.tensor([[-1, 2], [1, 2]])
    ended = ((ids[:, None, -2:] == stop) | (stop < 0)).all(-1).any(-1)
    return ban, lcp, ended


@forward(X, dims=D, kinds=FINITE)
def A7972AhrsFilters(self, x):
    """Madgwick's filter over time in quaternions: gradient of gravity with a guarded norm, complementary filter beside it, angles unwrapped by numpy's rule."""
    q = torch.tensor([1.0, 0, 0, 0]).expand(len(x), -1)
    angle, out = torch.zeros(len(x)), []
    for t in range(x.shape[1]):
        g, a = torch.tanh(x[:, t, :3]), x[:, t, 3:]
        n = a.norm(dim=-1, keepdim=True)
        a = torch.where(n > 0, a / n.clamp(min=1e-12), torch.tensor([0.0, 0.0, 1.0]))
        w, i, j, k = q.unbind(-1)
        e = torch.stack((2 * (i * k - w * j) - a[:, 0], 2 * (w * i + j * k) - a[:, 1], 2 * (0.5 - i * i - j * j) - a[:, 2]), -1)
        dot = 0.5 * torch.stack((-i * g[:, 0] - j * g[:, 1] - k * g[:, 2], w * g[:, 0] + j * g[:, 2] - k * g[:, 1], w * g[:, 1] - i * g[:, 2] + k * g[:, 0], w * g[:, 2] + i * g[:, 1] - j * g[:, 0]), -1)
        q = F.normalize(q + 0.1 * dot - 0.02 * F.pad(e, (1, 0)), dim=-1)
        angle = 0.98 * (angle + g[:, 0] * 0.1) + 0.02 * torch.atan2(a[:, 1], a[:, 2])
        out.append(torch.cat((q, angle[:, None]), -1))
    y = torch.stack(out, 1)
    d = y[:, 1:, 4] - y[:, :-1, 4]
    m = torch.remainder(d + math.pi, 2 * math.pi) - math.pi
    m = torch.where((m == -math.pi) & (d > 0), math.pi, m)
    return y, torch.cumsum(m, 1)


@forward(X, dims=D, kinds=FINITE)
def A7973SquashedPolicy(self, x):
    """SAC: log_std mapped by tanh, mode and log probability of it with the stable softplus correction; Ornstein steps; discretised actions by bucketize of edges."""
    mu, ls = x.chunk(2, -1)
    ls = -5 + 0.5 * (2 + 5) * (torch.tanh(ls) + 1)
    a = torch.tanh(mu)
    lp = torch.distributions.Normal(mu, ls.exp(), validate_args=False).log_prob(mu).sum(-1) - (2 * (math.log(2) - mu - F.softplus(-2 * mu))).sum(-1)
    b = torch.bucketize(a, torch.tensor([-0.5, 0.0, 0.5]), right=True)
    return a, lp, b, F.one_hot(b, 4).sum(1)


@forward(X, dims=D, kinds=FINITE)
def A7974SumTreeAndSegment(self, x):
    """Prioritised replay: sum tree by levels with pads to a power of two from bit_length, searchsorted of prefix sums on fixed strata, weights to a power normalised by the max."""
    p = x.abs().mean(-1) + 0.01
    t = p.shape[1]
    size = 1 << (t - 1).bit_length()
    level, roots = F.pad(p, (0, size - t)), []
    while level.shape[1] > 1:
        level = level[:, 0::2] + level[:, 1::2]
        roots.append(level[:, -1])
    c = p.cumsum(1)
    u = (torch.arange(4) + 0.37) / 4 * c[:, -1:]
    i = torch.searchsorted(c, u).clamp(max=t - 1)
    w = (t * p.gather(1, i) / c[:, -1:]) ** -0.4
    return w / w.amax(1, keepdim=True), i, roots[-1]


@attack(X, dims=D, kinds=FINITE)
class A7975ScriptedStep(nn.Module):
    """A torch.jit.script cell with a loop over its length, an Optional and a dictionary; called for each half."""

    def __init__(self) -> None:
        super().__init__()

        class Cell(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.lin = nn.Linear(6, 6)

            def forward(self, x: torch.Tensor, h: torch.Tensor | None = None) -> torch.Tensor:
                state = torch.zeros(x.size(0), 6) if h is None else h
                for t in range(x.size(1)):
                    if t % 3 == 2:
                        state = state * 0.5
                    state = torch.tanh(self.lin(x[:, t]) + state)
                return state

        self.cell = torch.jit.script(Cell())

    def forward(self, x):
        half = x.shape[1] // 2
        h = self.cell(x[:, :half])
        return h, self.cell(x[:, half:], h)
