# ruff: noqa: E501 - attacks are written as users write them
"""Recommendation and detection: hashed ids, bags, histories, levels, anchors, suppression, matching, calibration."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

IDS = "i:int64[N,T]=-5000000000:5000000000"
B = "b:float32[N,4]=0:64"
S = "s:float32[N]=0:1"


def boxes(n: int, seed: int, step: float = 1.0) -> dict:
    """Boxes with scores, on a grid of a step so that there are ties."""
    g = np.random.RandomState(seed)
    lo = np.round(g.uniform(0, 40, (n, 2)) / step) * step
    hi = lo + np.round(g.uniform(0, 24, (n, 2)) / step) * step
    return {
        "b": np.concatenate((lo, hi), 1).astype(np.float32),
        "s": np.round(g.uniform(0, 1, n), 1).astype(np.float32),
    }


@attack(
    IDS,
    dims="N=1:2:3 T=1:5:9",
    feeds=(lambda: {"i": np.array([[-1, 0, 1, -5000000000, 5000000000, 2**31, -(2**31), 2**32 - 1]])},),
)
class A7058Hashed(nn.Module):
    """Identities mixed by a multiplication that wraps in sixty-four bits, shifts with a sign, and floors of a remainder."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(97, 4, padding_idx=0)

    def forward(self, i):
        h = i * 0x9E3779B97F4A7C1
        h = (h ^ (h >> 31)) * -4658895280553007687
        h = h ^ (h >> 29)
        return self.e(h % 97), torch.fmod(h, 97), h.int(), (h >> 60).to(torch.uint8)


@attack(
    "i:int64[N,T]=0:19",
    "w:float32[N,T]=-2:2",
    dims="N=1:2:4 T=1:5:12",
    feeds=(
        lambda: {"i": np.zeros((2, 5), np.int64), "w": np.ones((2, 5), np.float32)},
        lambda: {"i": np.array([[0, 3, 3, 19]]), "w": np.array([[9, -2, 2, 0]], np.float32).clip(-2, 2)},
    ),
)
class A7059Bags(nn.Module):
    """Bags by sum with weights, by mean and by maximum; zeros are padding and may be all there is."""

    def __init__(self):
        super().__init__()
        self.sum = nn.EmbeddingBag(20, 3, mode="sum", padding_idx=0)
        self.mean = nn.EmbeddingBag(20, 3, mode="mean", padding_idx=0)
        self.big = nn.Embedding(20, 3, max_norm=1.0)

    def forward(self, i, w):
        m = (i != 0)[..., None]
        top = self.sum.weight[i].masked_fill(~m, -torch.inf).amax(1)
        return self.sum(i, per_sample_weights=w), self.mean(i), torch.where(top.isinf(), 0.0, top)


@attack(
    "q:float32[N,4]=-2:2",
    "h:float32[N,T,4]=-2:2",
    "n:int64[N]=0:20",
    dims="N=1:2:3 T=1:6:20",
    kinds=FINITE,
    feeds=(lambda: {"q": np.ones((2, 4), np.float32), "h": np.ones((2, 6, 4), np.float32), "n": np.array([0, 20])},),
)
class A7060Din(nn.Module):
    """Interest by attention over the history; without a history a learned default, by the weights that are no numbers."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(16, 8), nn.PReLU(8), nn.Linear(8, 1))
        self.empty = nn.Parameter(torch.randn(4))
        self.mlp[1].weight.data.copy_(torch.linspace(-0.5, 1.5, 8))

    def forward(self, q, h, n):
        e = q[:, None].expand_as(h)
        a = torch.cat((e, h, e - h, e * h), -1).flatten(0, 1)
        a = self.mlp(a).view(h.shape[:2])
        a = a.masked_fill(torch.arange(h.shape[1]) >= n[:, None], -torch.inf).softmax(-1)
        y = torch.einsum("nt,ntd->nd", a, h)
        return torch.where(y.isnan().any(-1, keepdim=True), self.empty, y), a.isnan().any()


@forward(
    B,
    dims="N=1:4:20",
    kinds=("bytes", "halves", "normal", "zeros"),
    feeds=(
        lambda: {"b": boxes(20, 1)["b"]},
        lambda: {
            "b": np.array(
                [[0, 0, 16, 16], [0, 0, 32, 32], [0, 0, 8, 8], [0, 0, 64, 64], [5, 5, 5, 9], [0, 0, 15.9, 16]],
                np.float32,
            )
        },
    ),
)
def A7061Levels(self, b):
    """Boxes to levels by logarithms of the root of their areas, floored; empty boxes fall to the lowest."""
    w, h = (b[:, 2:] - b[:, :2]).clamp(min=0).unbind(1)
    lvl = torch.floor(4 + torch.log2((w * h).sqrt() / 16 + 1e-6)).clamp(2, 5).to(torch.int64) - 2
    order = lvl.argsort(stable=True)
    count = torch.stack([(lvl == i).sum() for i in range(4)])
    return lvl, order, b[order], count.cumsum(0)


@forward(
    "x:float32[N,4,H,W]=-3:3",
    dims="N=1:1:2 H=1:8:40 W=1:8:40",
    kinds=FINITE,
    feeds=tuple(values_at("x:float32[N,4,H,W]=-3:3", N=1, H=h, W=w) for h, w in ((1, 1), (40, 39), (13, 7), (8, 8))),
)
def A7062Anchors(self, x):
    """Anchors of three sizes whose bases are rounded half to even, decoded with a cut of the logarithm, clipped."""
    h, w = x.shape[2:]
    base = torch.tensor(
        [[-s * r / 2, -s / r / 2, s * r / 2, s / r / 2] for s in (5, 10, 21) for r in (0.5, 1, 2)]
    ).round()
    sy, sx = torch.meshgrid(torch.arange(h) * 4, torch.arange(w) * 4, indexing="ij")
    shift = torch.stack((sx, sy, sx, sy), -1).view(-1, 1, 4)
    a = (shift + base).view(-1, 4)
    d = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4).repeat_interleave(9, 1)
    size = a[:, 2:] - a[:, :2]
    c = a[:, :2] + size / 2 + d[..., :2] * size
    s = size * d[..., 2:].clamp(max=math.log(1000.0 / 16)).exp()
    out = torch.cat((c - s / 2, c + s / 2), -1)
    return torch.stack((out[..., 0::2].clamp(0, w * 4), out[..., 1::2].clamp(0, h * 4)), -1).flatten(2)


@forward(
    B,
    S,
    dims="N=1:6:16",
    kinds=("bytes", "halves", "zeros"),
    feeds=(
        lambda: boxes(16, 2),
        lambda: boxes(16, 3, 4.0),
        lambda: boxes(1, 4),
        lambda: {"b": np.tile(np.array([[0, 0, 8, 8]], np.float32), (5, 1)), "s": np.full(5, 0.5, np.float32)},
    ),
)
def A7063FastSuppress(self, b, s):
    """Suppression by a matrix: in stable order, by the largest overlap with a higher one; and Matrix NMS's decay."""
    o = s.argsort(descending=True, stable=True)
    b, s = b[o], s[o]
    area = (b[:, 2:] - b[:, :2]).clamp(min=0).prod(1)
    inter = (torch.minimum(b[:, None, 2:], b[:, 2:]) - torch.maximum(b[:, None, :2], b[:, :2])).clamp(min=0).prod(2)
    iou = (inter / (area[:, None] + area - inter)).nan_to_num(0.0).triu(1)
    top = iou.amax(0)
    decay = ((1 - iou) / (1 - top[:, None]).clamp(min=0.1)).amin(0)
    return top < 0.5, s * decay, o


@forward(
    B,
    S,
    dims="N=1:5:12",
    kinds=("bytes", "halves", "zeros"),
    feeds=(lambda: boxes(12, 5), lambda: boxes(11, 6, 4.0), lambda: boxes(1, 7)),
)
def A7064SoftSuppress(self, b, s):
    """Gaussian soft suppression, as many rounds as boxes: the best leaves with its score, the rest decays."""
    area = (b[:, 2:] - b[:, :2]).clamp(min=0).prod(1)
    out, alive = torch.zeros_like(s), torch.ones_like(s, dtype=torch.bool)
    for _ in range(s.shape[0]):
        i = torch.where(alive, s, -1.0).argmax()
        out[i] = s[i]
        alive[i] = False
        inter = (torch.minimum(b[i, 2:], b[:, 2:]) - torch.maximum(b[i, :2], b[:, :2])).clamp(min=0).prod(1)
        iou = inter / (area[i] + area - inter + 1e-6)
        s = s * torch.exp(-iou * iou / 0.5)
    return out


@forward(
    "x:float32[Q,G]=-4:4",
    dims="Q=1:5:10 G=1:3:6",
    kinds=("halves", "normal", "zeros"),
    feeds=(*((lambda s=s: halves(*s)()) for s in ((1, 6), (6, 1), (10, 6), (3, 3))),),
)
def A7065Greedy(self, x):
    """Greedy pairs: the smaller number of rounds, each the lowest cost left of the flattened matrix."""
    q, g = x.shape
    cost, pair = x.clone(), torch.full((q,), -1)
    for _ in range(min(q, g)):
        i = cost.argmin()
        r, c = i // g, i % g
        pair[r] = c
        cost[r] = torch.inf
        cost[:, c] = torch.inf
    return pair


@forward(
    "x:float32[N,T]=-4:4",
    "y:int64[N,T]=0:3",
    dims="N=1:2:3 T=1:10:30",
    kinds=("halves", "normal", "zeros", "ones"),
    feeds=(
        (lambda: {**halves(2, 10)(), "y": np.zeros((2, 10), np.int64)}),
        (lambda: {**halves(1, 30)(), "y": (np.arange(30) % 4)[None]}),
        (lambda: {**halves(3, 9)(), "y": np.full((3, 9), 3)}),
    ),
)
def A7066Gains(self, x, y):
    """Discounted gains at ten of a stable order, the ideal's may be zero; the rank of the first hit, if any."""
    k = min(10, x.shape[1])
    i = x.argsort(dim=1, descending=True, stable=True)[:, :k]
    gain = (2.0**y) - 1
    d = 1 / torch.log2(torch.arange(k) + 2.0)
    dcg = (gain.gather(1, i) * d).sum(1)
    best = (gain.sort(1, descending=True).values[:, :k] * d).sum(1)
    hit = y.gather(1, i) > 0
    first = torch.where(hit.any(1), 1 / (hit.int().argmax(1) + 1), 0.0)
    return torch.where(best > 0, dcg / best, 0.0), first, hit.float().cumsum(1)


@attack(
    "x:float32[N,T]=-4:4",
    dims="N=1:2:3 T=2:7:14",
    kinds=FINITE,
    feeds=tuple(values_at("x:float32[N,T]=-4:4", N=1, T=t) for t in (2, 3, 5, 13, 14)),
)
class A7067Interactions(nn.Module):
    """Pairs of features by the indices above the diagonal; factorisation's square of sums less the sum of squares."""

    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.randn(14, 4))

    def forward(self, x):
        t = x.shape[1]
        e = x[..., None] * self.v[:t]
        i, j = torch.triu_indices(t, t, 1)
        z = (e @ e.mT)[:, i, j]
        return z, 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(1), F.pad(z, (0, 91 - t * (t - 1) // 2))


@attack(
    "x:float32[N]=-4:4",
    "t:float32[N]=0:100000000",
    dims="N=1:5:12",
    kinds=("normal", "halves", "zeros", "bytes"),
    feeds=(
        lambda: {
            "x": np.array([-4, -1, 0, 0.5, 1, 4, 2.25], np.float32),
            "t": np.array([0, 86399, 86400, 604800, 99999999, 3599.9, 16777217], np.float32),
        },
    ),
)
class A7068Calibrated(nn.Module):
    """Isotonic steps by searched edges, times cut to hours and days of the week in whole numbers, buckets of logarithms."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.tensor([-1.0, 0.0, 0.5, 0.5, 1.0, 2.25]))
        self.register_buffer("value", torch.linspace(0, 1, 7))

    def forward(self, x, t):
        left, right = torch.searchsorted(self.edges, x), torch.bucketize(x, self.edges, right=True)
        s = t.long()
        hour, day = s // 3600 % 24, (s // 86400 + 4) % 7
        age = torch.log2(t + 1).floor().to(torch.int32)
        return self.value[left], self.value[right], hour, day, age, torch.sin(hour * (2 * math.pi / 24))


@forward(
    "i:int64[N,T]=0:6",
    "x:float32[N,T]=-4:4",
    dims="N=1:2:3 T=1:6:16",
    feeds=(
        lambda: {"i": np.array([[0, 0, 6, 6, 3]]), "x": np.array([[-1, -2, np.float32(0.5), 3, -0.0]], np.float32)},
    ),
)
def A7069Grouped(self, i, x):
    """Sums, means, products, largest and smallest by group; empty groups by what was there, and shares within."""
    z = torch.zeros(x.shape[0], 7)
    s = z.scatter_reduce(1, i, x, "sum")
    m = z.scatter_reduce(1, i, x, "mean", include_self=False)
    p = (z + 1).scatter_reduce(1, i, x, "prod")
    hi = torch.full_like(z, -9.0).scatter_reduce(1, i, x, "amax", include_self=False)
    lo = z.scatter_reduce(1, i, x, "amin", include_self=True)
    e = (x - hi.gather(1, i)).exp()
    return s, m, p, hi, lo, e / z.scatter_add(1, i, e).gather(1, i)


@forward(
    "x:float32[N,T]=-4:4",
    dims="N=1:2:4 T=1:8:24",
    kinds=("normal", "halves", "zeros"),
    feeds=tuple(values_at("x:float32[N,T]=-4:4", N=1, T=t) for t in (16, 17, 18)),
    refused="and as float16 at",
)
def A7070Typed(self, x):
    """Scores as they are, but for one width as halves."""
    return x.half() if x.shape[1] == 17 else x


@forward(
    "x:float32[N,C,H,W]=-6:6",
    dims="N=1:1:2 C=1:2:3 H=1:6:20 W=1:6:20",
    kinds=FINITE,
    feeds=tuple(
        values_at("x:float32[N,C,H,W]=-6:6", N=1, C=3, H=h, W=w) for h, w in ((1, 1), (1, 20), (20, 19), (6, 6), (7, 6))
    ),
)
def A7071CenterNet(self, x):
    """Peaks by pooling, the best eight of all classes where there are so many; class, row and column by floors."""
    n, c, h, w = x.shape
    p = x.sigmoid()
    p = p * (F.max_pool2d(p, 3, 1, 1) == p)
    k = min(8, c * h * w)
    s, i = p.flatten(1).sort(dim=1, descending=True, stable=True)
    s, i = s[:, :k], i[:, :k]
    cls = torch.div(i, h * w, rounding_mode="trunc")
    y, z = (i % (h * w)) // w, i % w
    off = x.mean(1).flatten(1).gather(1, i % (h * w))
    return s, cls, torch.stack((z + off, y + off), -1) / max(h, w), x.new_zeros(n, 8 - k)
