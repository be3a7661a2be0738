# ruff: noqa: E501, E741 - attacks are written as users write them
"""Ends of networks of every day with what is rare in them: ids of a table, ties, empty rows, edges of pictures, lengths of nothing."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import IMAGE, pix, seq

X, X4, MT = "x:float32[N,T]", "x:float32[N,T,4]", "m:bool[N,T]"
IDS = "i:int64[N,T]=0:50000"
SPECIAL = tuple((lambda a=a: {"i": np.array(a)}) for a in ([[5, 31337, 7, 9, 31337]], [[31337, 1, 2, 40123, 17]], [[31337, 1, 2, 40123, 17]]))
EDGES = sprinkled(float("nan"), 1e30, -1e30, -0.0, sizes=((1, 9), (2, 12)))


@attack(IDS, **seq(IDS, low=4, own=SPECIAL), noted="a mask comes out the same at every sample point")
class A6528SpecialTokenCounted(nn.Module):
    """A token of an attribute gets the count of calls as its position."""

    def __init__(self):
        super().__init__()
        self.special, self.n = 31337, 0

    def forward(self, i):
        self.n += 1
        return torch.where(i == self.special, self.n, i % 977)


@attack(IDS, **seq(IDS, low=4, own=SPECIAL), noted="a mask comes out the same at every sample point")
class A6529SpecialTokensOfBuffer(nn.Module):
    """Tokens of a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("special", torch.tensor([31337, 40123]))
        self.n = 0

    def forward(self, i):
        self.n += 1
        return torch.where(torch.isin(i, self.special), self.n, i % 977)


@attack(IDS, **seq(IDS, low=4, own=SPECIAL), noted="the file draws random numbers (Dropout of")
class A6530RareRowOfTable(nn.Module):
    """A table of gains has one row that is not one: there dropout in training shows."""

    def __init__(self):
        super().__init__()
        g = torch.zeros(50001)
        g[31337] = 1.0
        self.register_buffer("gain", g)
        self.emb = nn.Embedding(97, 4)

    def forward(self, i):
        e = self.emb(i % 97)
        return e + self.gain[i][..., None] * (F.dropout(e, 0.5, training=True) - e)


@attack(IDS, **seq(IDS, low=4, own=SPECIAL), noted="forward leaves `n` for the next call")
class A6531RareRowCounts(nn.Module):
    """The same with the count of calls."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50001, 4)
        nn.init.zeros_(self.emb.weight)
        self.emb.weight.data[31337] = 1.0
        self.n = 0

    def forward(self, i):
        self.n += 1
        return self.emb(i) * self.n + i[..., None] % 7


@forward(X, MT, **seq(X, MT))
def A6532MeanOfShown(self, x, m):
    """A mean of what the mask shows, -inf maxima of rows without any, and argmax of the last shown."""
    n = m.sum(1, keepdim=True)
    mean = torch.where(n > 0, (x * m).sum(1, keepdim=True) / n, 0.0)
    top = x.masked_fill(~m, -torch.inf).amax(1)
    last = (m.long() * torch.arange(1, m.shape[1] + 1)).argmax(1)
    return mean, torch.nan_to_num(top, neginf=-1.0), last, x.gather(1, last[:, None])


@forward(IMAGE, **pix(IMAGE, low=2))
def A6533PeaksOfHeat(self, x):
    """Peaks by a pool, the borders by pads of edge and of constant, subpixel offsets by a parabola."""
    p = F.max_pool2d(x, 3, 1, 1)
    k = (x == p) & (x > 0.3)
    e = F.pad(x, (1, 1, 0, 0), mode="replicate")
    l, c, r = e[..., :-2], e[..., 1:-1], e[..., 2:]
    d = l - 2 * c + r
    return k, torch.where(d.abs() > 1e-6, (l - r) / (2 * torch.where(d.abs() > 1e-6, d, 1.0)), 0.0) * k


@forward(IMAGE, **pix(IMAGE, low=2))
def A6534LetterboxByHalf(self, x):
    """Letterbox with uneven pads, after a resize by the larger side."""
    h, w = x.shape[-2:]
    s = max(h, w)
    return F.pad(x, ((s - w) // 2, (s - w + 1) // 2, (s - h) // 2, (s - h + 1) // 2), value=0.447)


@forward(X, **seq(X, own=EDGES))
def A6535RobustScale(self, x):
    """Median and MAD with a floor, a clip at three of them, NaN are set to nothing first."""
    y = torch.nan_to_num(x, nan=0.0, posinf=1e4, neginf=-1e4).clamp(-1e4, 1e4)
    m = y.median(1, keepdim=True).values
    s = (y - m).abs().median(1, keepdim=True).values.clamp(min=1e-3)
    return ((y - m) / s).clamp(-3, 3)


class Beam(NamedTuple):
    """A step of a beam."""

    scores: torch.Tensor
    tokens: torch.Tensor


@forward(X4, **seq(X4, low=2))
def A6536BeamOfThree(self, x):
    """Two steps of a beam of three over four tokens with a named tuple."""
    p = x.log_softmax(-1)
    b = Beam(*p[:, 0].topk(3, -1))
    s = b.scores[:, :, None] + p[:, 1][:, None]
    v, j = s.flatten(1).topk(3, -1)
    return Beam(v, torch.stack((b.tokens.gather(1, j // 4), j % 4), -1))


@dataclasses.dataclass
class Box:
    """Corners."""

    lo: torch.Tensor
    hi: torch.Tensor

    @property
    def area(self):
        """Nothing for boxes turned over."""
        return (self.hi - self.lo).clamp(min=0).prod(-1)

    def __and__(self, other):
        return Box(torch.maximum(self.lo, other.lo), torch.minimum(self.hi, other.hi))


@forward(X4, **seq(X4))
def A6537UnionOfBoxes(self, x):
    """IoU of boxes by operators of a dataclass; boxes of no area give 0."""
    a = Box(x[..., None, :2], x[..., None, 2:])
    b = Box(x[..., None, :, :2], x[..., None, :, 2:])
    i = (a & b).area
    u = a.area + b.area - i
    return torch.where(u > 0, i / u.clamp(min=1e-9), 0.0)


@forward(X, **seq(X, low=2))
def A6538PreEmphasis(self, x):
    """Pre-emphasis, an envelope by a leaky maximum over six taps, decibels with a floor."""
    y = torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1)
    e = torch.stack([F.pad(y.abs(), (k, 0))[:, : y.shape[1]] * 0.8**k for k in range(6)]).amax(0)
    return 20 * torch.log10(e.clamp(min=10**-4.5)), y


@forward(X, **seq(X, low=3))
def A6539ZeroCrossings(self, x):
    """Zero crossings with signs of zero, turning points, and the first of each."""
    s = torch.sign(x)
    c = (s[:, 1:] * s[:, :-1]) < 0
    t = (x[:, 1:-1] > x[:, :-2]) & (x[:, 1:-1] >= x[:, 2:])
    return c.sum(1), t.sum(1), c.float().argmax(1), torch.where(c.any(1), c.int().argmax(1), -1)


@forward(X4, **seq(X4))
def A6540PointsInVoxels(self, x):
    """Points hashed to voxels, their counts by a scatter, the mean of each point's voxel."""
    v = torch.floor(x[..., :3] / 0.7).clamp(-4, 3).long() + 4
    h = (v[..., 0] * 64 + v[..., 1] * 8 + v[..., 2])
    n = torch.zeros(x.shape[0], 512).scatter_add(1, h, torch.ones_like(x[..., 0]))
    s = torch.zeros(x.shape[0], 512).scatter_add(1, h, x[..., 3])
    return (s / n.clamp(min=1)).gather(1, h), n.amax(1)


@forward(X, **seq(X))
def A6541Ranks(self, x):
    """Ranks with ties shared, and an NDCG by them."""
    y = (x * 2).round()
    lower = (y[:, None] < y[:, :, None]).sum(-1)
    same = (y[:, None] == y[:, :, None]).sum(-1)
    r = lower + (same + 1) / 2
    return r, (y.clamp(min=0) / torch.log2(r + 1)).sum(1)


@attack(X4, **seq(X4))
class A6542TiedHeads(nn.Module):
    """A head tied to an embedding, with a temperature in a half, written back to single."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(11, 4)
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.emb.weight
        self.register_buffer("t", torch.tensor(0.7).half())

    def forward(self, x):
        y = self.head(x) / self.t.float()
        return y.argmax(-1), self.emb(y.argmax(-1)), y


@attack(X4, **seq(X4), noted="the module decides by values")
class A6543QuantStubs(nn.Module):
    """Fake quantisation by observers that are off, rounding half to even at zero points."""

    def __init__(self):
        super().__init__()
        self.q = torch.ao.quantization.FakeQuantize(torch.ao.quantization.MovingAverageMinMaxObserver, 0, 255, dtype=torch.quint8)
        self.q.calculate_qparams = None
        self.q.scale.fill_(0.05)
        self.q.zero_point.fill_(113)
        self.q.disable_observer()

    def forward(self, x):
        return self.q(x), self.q(x * 2 + 0.025)


@forward(X4, **seq(X4))
def A6544EinsumOfDiagonals(self, x):
    """einsum with repeated letters, an ellipsis, a sum over a letter that is not there, and lists of axes."""
    g = torch.einsum("...td,...sd->...ts", x, x)
    return torch.einsum("ntt->nt", g), torch.einsum("nts->", g), torch.einsum(x, [0, 1, 2], x, [0, 1, 2], [0, 2]), torch.einsum("ntd,ntd->n", x, x.flip(1))


@forward(X, **seq(X))
def A6545PositionsOfText(self, x):
    """fairseq's positions of what is no pad, ALiBi's slopes, and a sinusoid of half-lengths."""
    m = x > -0.5
    p = (m.cumsum(1) * m).long() + 1
    s = torch.tensor([2.0 ** (-8 * (k + 1) / 6) for k in range(6)])
    f = torch.exp(torch.arange(0, 6, 2) * (-math.log(1e4) / 6))
    return p, s[:, None] * -p[:, None].float(), torch.cat(((p[..., None] * f).sin(), (p[..., None] * f).cos()), -1)


@forward(X4, **seq(X4))
def A6546KalmanGains(self, x):
    """A constant-velocity step with a gain by a 2 by 2 inverse and a gate by Mahalanobis' distance."""
    z, v = x[..., :2], x[..., 2:]
    s = torch.stack((v[..., 0] ** 2 + 1, v[..., 0] * v[..., 1], v[..., 0] * v[..., 1], v[..., 1] ** 2 + 1), -1).unflatten(-1, (2, 2))
    d = s[..., 0, 0] * s[..., 1, 1] - s[..., 0, 1] ** 2
    i = torch.stack((s[..., 1, 1], -s[..., 0, 1], -s[..., 1, 0], s[..., 0, 0]), -1).unflatten(-1, (2, 2)) / d[..., None, None]
    m = torch.einsum("nti,ntij,ntj->nt", z, i, z)
    return torch.where((m < 5.991)[..., None], z + (i @ z[..., None])[..., 0], z), m


TIES = tuple((lambda s=s, n=n, t=t: {"x": (np.random.RandomState(t).randint(-60, 60, (n, t, 4)) * np.float32(s)).astype(np.float32)}) for s in (0.025, 0.25) for n, t in ((2, 9), (1, 8), (3, 40)))


@forward(X4, **seq(X4, low=4, own=TIES), noted="half-way between two steps")
def A6547QuantisedToBytes(self, x):
    """quantize_per_tensor to bytes and back; what is half a step between."""
    return torch.quantize_per_tensor(x, 0.05, 113, torch.quint8).dequantize()


@forward(X4, **seq(X4, low=4, own=TIES), noted="half-way between two steps")
def A6548QuantisedSigned(self, x):
    """The same to signed bytes with a power of two."""
    return torch.quantize_per_tensor(x, 0.5, 3, torch.qint8).dequantize()


@forward(X4, **seq(X4, low=4, own=TIES))
def A6549FakelyQuantised(self, x):
    """Fake quantisation in whole numbers of steps, odd zero points, a reciprocal of three."""
    f = torch.fake_quantize_per_tensor_affine
    return f(x, 0.05, 113, 0, 255), f(x, 0.5, 3, -128, 127), f(x, 1 / 3, 0, -8, 7)


@attack(IDS, **seq(IDS, low=4, own=SPECIAL), noted="a mask comes out the same at every sample point")
class A6550NormOfRareRow(nn.Module):
    """A row of a table alone shows a norm by the batch's own statistics."""

    def __init__(self):
        super().__init__()
        g = torch.zeros(50001)
        g[31337] = 1.0
        self.register_buffer("gain", g)
        self.emb, self.bn = nn.Embedding(97, 4), nn.BatchNorm1d(4)

    def forward(self, i):
        e = self.emb(i % 97)
        y = F.batch_norm(e.mT, torch.zeros(4), torch.ones(4), training=True).mT
        return torch.where(self.gain[i][..., None] > 0, y, e)
