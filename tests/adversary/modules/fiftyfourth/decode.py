# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Decoding: suppression, ties, beams, given uniforms, sorting, buckets, histograms."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE, halves, sprinkled
from tests.adversary.modules.fiftyfourth.sequences import seq
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]=-4:4", "x:float32[N,T,4]=-4:4"
B, S = "b:float32[T,4]=0:20", "s:float32[T]=0:1"
U = "u:float32[N]=0:1"


def alone(*inputs: str, **more: object) -> dict:
    """A sequence without a batch."""
    return seq(*inputs, **more) | {"dims": f"T={more.get('low', 1)}:12:{more.get('high', 40)}"}


def boxes(*rows: list, score: tuple = (0.5, 0.5, 0.25, 0.5)) -> tuple:
    """Boxes and scores as given."""
    return (lambda: {"b": np.array(rows, np.float32), "s": np.array(score[: len(rows)], np.float32)},)


def iou(a, b):
    """Intersection over union, zero for boxes without area."""
    lt, rb = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    i = (rb - lt).clamp(min=0).prod(-1)
    area = lambda z: (z[:, 2:] - z[:, :2]).clamp(min=0).prod(-1)
    return i / (area(a)[:, None] + area(b) - i)


SAME = boxes([0, 0, 4, 4], [0, 0, 4, 4], [0, 0, 4, 2], [4, 0, 8, 4]) + boxes(
    [0, 0, 4, 4], [0, 2, 4, 6], [0, 0, 0, 0], [0, 0, 0, 0]
)


@forward(B, S, **alone(B, S, high=16, own=SAME), refused="the path through the module depends on the size")
def A6928GreedyNms(self, b, s):
    """Suppression by a loop over sorted boxes; a pair without area has no overlap that compares."""
    o = s.argsort(descending=True, stable=True)
    v = iou(b[o], b[o]) > 0.5
    keep = torch.ones(b.shape[0], dtype=torch.bool)
    for i in range(b.shape[0] - 1):
        keep[i + 1 :] &= ~(v[i, i + 1 :] & keep[i])
    return torch.zeros_like(keep).scatter(0, o, keep), keep.sum()


@forward(B, S, **alone(B, S, own=SAME))
def A6929MatrixNms(self, b, s):
    """SOLO's decay: each box by the worst overlap with a better one, over the overlaps that this one had itself."""
    s, o = s.sort(descending=True, stable=True)
    v = iou(b[o], b[o]).nan_to_num(0.0).triu(1)
    c = v.amax(0)
    d = ((1 - v) / (1 - c[:, None]).clamp(min=1e-6)).amin(0)
    r = s * d.clamp(max=1)
    return r.sort(descending=True, stable=True).values[: max(1, b.shape[0] // 2)], (r > 0.05).sum()


K = "k:int64[]=1:4"


@forward(
    X,
    K,
    **seq(X, K, low=4, own=(halves(2, 9, k=np.array(3)), halves(1, 33, k=np.array(4)), halves(1, 4, k=np.array(1)))),
)
def A6930FirstK(self, x, k):
    """The first k in a stable sort by a rank that is an input; ties at the border go to the earlier."""
    o = x.argsort(dim=1, descending=True, stable=True)
    r = torch.empty_like(o).scatter_(1, o, torch.arange(x.shape[1]).expand_as(o))
    m = r < k
    t = torch.where(m, x, math.inf).amin(1, keepdim=True)
    return m, (x >= t).sum(1), (x * m).sum(1) / k


P5 = "p:float32[N,T]=-9:0"


@forward("x:float32[N,T,6]=-4:4", P5, **seq("x:float32[N,T,6]=-4:4", P5, low=2, high=12))
def A6931BeamStep(self, x, p):
    """One step of beams: finished ones (token of most score is 0) keep their score on one word; words of the best 2T."""
    l = x.log_softmax(-1)
    end = x.argmax(-1, keepdim=True) == 0
    only = torch.full((6,), -1e9)
    only[0] = 0
    l = torch.where(end, only, l) + p[..., None]
    t = x.shape[1]
    v, i = l.flatten(1).sort(dim=1, descending=True, stable=True)
    v, i = v[:, : 2 * t], i[:, : 2 * t]
    beam, word = torch.div(i, 6, rounding_mode="floor"), i % 6
    live = torch.where(word == 0, -math.inf, v)
    return live.topk(t).values, beam.float().mean(1), (word == 0).sum(1)


UE = tuple(
    (lambda v=v, t=t: {"x": np.zeros((2, t), np.float32), "u": np.array([v, 1 - v], np.float32)})
    for v, t in ((0.0, 4), (1.0, 8), (0.5, 8), (0.25, 16), (0.75, 4), (1.0, 31))
)


@forward(X, U, **seq(X, U, own=UE))
def A6932InverseCdf(self, x, u):
    """A sample by a given uniform: the first place where the sum passes it, the last where none does."""
    c = x.softmax(1).cumsum(1)
    a = torch.searchsorted(c, u[:, None].contiguous(), right=True)[:, 0]
    b = (c < u[:, None]).sum(1)
    return a.clamp(max=x.shape[1] - 1), b.clamp(max=x.shape[1] - 1)


EDGE = sprinkled(0.1, -0.1, 0.5, 0.30000001192092896, -4.0, 4.0, sizes=((1, 9), (2, 31)))


@forward(X, **seq(X, own=EDGE))
def A6933Buckets(self, x):
    """Values at borders of buckets, borders as Python's doubles, right and left, and a digitised one."""
    e = torch.tensor([-4.0, -0.1, 0.1, 0.3, 0.5, 0.5, 4.0])
    r = (x / 0.1).floor().clamp(-5, 5).long() + 5
    return (
        torch.bucketize(x, e),
        torch.bucketize(x, e, right=True),
        torch.bucketize(x.double(), e.double() + 1e-9),
        torch.eye(11)[r].sum(1),
    )


ONE = tuple(
    (lambda v=v, t=t: {"x": np.full((1, t), v, np.float32)}) for v, t in ((0.0, 5), (4.0, 7), (-4.0, 1), (0.1, 3))
)


@forward(X, **seq(X, own=ONE))
def A6934Histogram(self, x):
    """histc over the range of the data, which is widened where all are the same, and over a range of its own."""
    h = torch.histc(x, 8)
    g = torch.histc(x, 5, min=-1, max=1)
    return h, g / g.sum(), (h.cumsum(0) >= h.sum() / 2).int().argmax()


@forward(X, **seq(X, own=(halves(2, 9), halves(1, 33), halves(2, 40, seed=5))))
def A6935LastBest(self, x):
    """The last of the best, the first of the least, and how far they are apart, in whole numbers and cyclic."""
    t = x.shape[1]
    a = t - 1 - x.flip(1).argmax(1)
    b = x.argmin(1)
    d = (a - b) % t
    return a, b, torch.minimum(d, t - d), torch.fmod(a - b, max(t // 2, 1))


H = "x:float32[N,1,H,W]=-4:4"


@forward(
    H,
    dims="N=1:1:2 H=3:8:16 W=3:8:16",
    kinds=FINITE,
    feeds=tuple(values_at(H, N=1, H=h, W=w) for h, w in ((3, 3), (3, 16), (15, 7))),
)
def A6936Peaks(self, x):
    """CenterNet: peaks of a heat map that are no less than their neighbours; the best eight, in rows and columns."""
    p = x.sigmoid()
    p = p * (F.max_pool2d(p, 3, 1, 1) == p)
    v, i = p.flatten(1).sort(dim=1, descending=True, stable=True)
    v, i = v[:, :8], i[:, :8]
    return v, torch.div(i, x.shape[3], rounding_mode="floor"), i % x.shape[3], (p > 0).sum((1, 2, 3))


@forward(X, **seq(X, own=(halves(2, 9), halves(1, 33), halves(2, 40, seed=5))))
def A6937Ranks(self, x):
    """Ranks by sorting twice, ranks of ties by their least and their mean, and Spearman's with the time."""
    r = x.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    least = (x[:, None] < x[:, :, None]).sum(2)
    mean = least + ((x[:, None] == x[:, :, None]).sum(2) - 1) / 2
    c = mean - mean.mean(1, keepdim=True)
    t = torch.arange(x.shape[1]) - (x.shape[1] - 1) / 2
    return r, least, (c * t).sum(1) / (c.pow(2).sum(1) * t.pow(2).sum()).sqrt().clamp(min=1e-6)


I = "i:int64[N,T]=-3:3"


@forward(I, **seq(I, low=2))
def A6938Voting(self, i):
    """The mode, the k-th of a third, the median, runs of the same, and what is unlike its left."""
    k = math.ceil(i.shape[1] / 3)
    new = F.pad(i[:, 1:] != i[:, :-1], (1, 0), value=True)
    run = new.long().cumsum(1)
    longest = (run[:, None] == run[:, :, None]).sum(2).amax(1)
    return i.mode(1).values, i.kthvalue(k, 1).values, i.median(1).values, longest, run[:, -1]


AREA = tuple(
    (lambda a=a: {"b": np.array([a] * 2, np.float32)})
    for a in (
        [0, 0, 0, 5],
        [0, 0, 14, 14],
        [0, 0, 7, 7],
        [0, 0, 3.5, 3.5],
        [9, 9, 2, 2],
        [0, 0, 20, 20],
        [0, 0, 14, 3.5],
    )
)


@forward(B, **alone(B, own=AREA))
def A6939LevelOf(self, b):
    """The level of a pyramid by the root of an area over fourteen, floored; powers of two lie on the border."""
    w, h = (b[:, 2:] - b[:, :2]).clamp(min=0).unbind(1)
    k = torch.floor(4 + torch.log2((w * h).sqrt() / 14 + 1e-8)).clamp(2, 5).long() - 2
    one = F.one_hot(k, 4)
    return k, one.sum(0), (one.cumsum(0) * one).sum(1) - 1


UT = "u:float32[N,T]=0:1"
UG = tuple(
    (lambda v=v: {"x": np.zeros((1, 6), np.float32), "u": np.array([v], np.float32)})
    for v in ([0, 1, 0.5, 0, 1, 0.5], [0] * 6, [1] * 6, [0.25, 1, 1, 0, 0, 0.5])
)


@forward(X, UT, **seq(X, UT, own=UG))
def A6940Gumbel(self, x, u):
    """A Gumbel sample by given uniforms, infinite at both ends; the soft one is no number there and replaced."""
    g = -torch.log(-torch.log(u))
    y = x + g
    s = (y / 0.5).softmax(1)
    return y.argmax(1), torch.where(s.isnan(), F.one_hot(y.argmax(1), x.shape[1]).float(), s), y.amax(1)


D = "x:float32[M,T]=0:4"


@forward(
    D,
    dims="M=1:3:6 T=1:5:9",
    kinds=FINITE,
    feeds=tuple(values_at(D, M=m, T=t) for m, t in ((1, 9), (6, 1), (4, 4), (5, 6))),
)
def A6941GreedyMatch(self, x):
    """Matching by the least distance, row and column out, as often as the smaller side; none above three."""
    m, t = x.shape
    d, out = x.clone(), torch.full((m,), -1)
    for _ in range(min(m, t)):
        i = d.argmin()
        r, c = i // t, i % t
        ok = d.flatten()[i] < 3
        out = torch.where((torch.arange(m) == r) & ok, c, out)
        d = d.masked_fill((torch.arange(m)[:, None] == r) | (torch.arange(t) == c), math.inf)
    return out, (out >= 0).sum()


Q = "p:float32[N]=0:1"
QE = tuple(
    (lambda v=v, t=t: {"x": np.zeros((1, t), np.float32), "p": np.array([v], np.float32)})
    for v, t in ((1.0, 8), (0.0, 8), (0.5, 8), (0.25, 4), (0.75, 16))
)


@forward(X, Q, **seq(X, Q, own=QE))
def A6942Nucleus(self, x, p):
    """Nucleus: the sum before a word not above p; always one; all of what is left out at minus infinity."""
    v, i = x.sort(dim=1, descending=True, stable=True)
    out = v.softmax(1).cumsum(1) > p[:, None]
    out[:, 1:] = out[:, :-1].clone()
    out[:, 0] = False
    y = x.masked_fill(out.scatter(1, i, out), -math.inf)
    return y.softmax(1), (~out).sum(1)
