"""Where a converter is likely to keep what it should not: rare sizes, ties, empties, aliases, types that follow values."""
# ruff: noqa: E501, E741 - attacks are written as users write them

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field, fields

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@forward("x:float32[N,T,6]", dims="N=1:2:3 T=0:3:6", kinds=FINITE)
def A8005EmptyFrames(self, x):
    """A length of nothing: sums, all and any, prod, cat with an empty list's default, cumsum, a padded maximum with -1."""
    m = F.pad(x, (0, 0, 0, 1), value=-1.0)
    return x.sum(1), x.prod(1), (x > 0).all(1), (x > 0).any(1), m.amax(1), x.cumsum(1), m.argmax(1), torch.cat((x[:, :0], x, x[:, x.shape[1] :]), 1)


@forward("x:float32[N,T,6]", "k:int64[]=0:3", dims=D, kinds=FINITE)
def A8006PythonsChoiceByTensor(self, x, k):
    """An index of rank zero picks of stacked experts, of a list by operator.index refused elsewhere; here by select, gather and one-hot."""
    e = torch.stack((x, x.exp().clamp(max=5), -x, x.tanh()))
    return e[k], torch.index_select(e, 0, k.view(1))[0], (F.one_hot(k, 4)[:, None, None, None] * e).sum(0), x.roll(1, 1) * (k == 2)


@forward(X, dims=D, kinds=FINITE)
def A8007SetThenRead(self, x):
    """Writes through diagonal, as_strided, unfold, narrow, real view, swapaxes and a chunk; reads of the parent in between."""
    y = x.clone()
    y.diagonal(0, 1, 2).mul_(2)
    a = y.sum(-1)
    y.narrow(1, 0, 1).copy_(y[:, -1:])
    y.swapaxes(1, 2)[:, 1].add_(1)
    b = y.amax(-1)
    c, d = y.chunk(2, -1)
    c.sub_(d)
    torch.view_as_complex(y.view(*y.shape[:2], 3, 2)).real.clamp_(min=-0.25)
    return a, b, y, d.flip(1)


@forward(X, dims=D, kinds=FINITE)
def A8008InputsWritten(self, x):
    """Layers that scale their own input in place (inplace=True on a view of the input), then the input is read again."""
    F.relu_(x[:, 0])
    x[:, -1] *= 2
    v = x.view(x.shape[0], -1)
    v[:, ::5] = v[:, ::5].round()
    return x + 1, v.sum(1)


@dataclass
class Opts:
    scale: float = 0.5
    names: list[str] = field(default_factory=lambda: ["mean", "amax", "std"])
    extra: dict[str, float] = field(default_factory=dict)


@attack(X, dims=D, kinds=FINITE)
class A8009DataclassFields(nn.Module):
    """Operations named by a dataclass, dispatched by getattr, fields iterated, a dict that forward fills anew and merges."""

    def __init__(self) -> None:
        super().__init__()
        self.opts = Opts()

    def forward(self, x):
        o = Opts(extra={"t": x.shape[1] / 7, "n": float(x.shape[0])})
        y = torch.stack([getattr(x, n)(1) for n in o.names if not (n == "std" and x.shape[1] < 3)]).sum(0)
        s = sum(getattr(o, f.name) for f in fields(o) if f.type == "float")
        return y * s, (x * {**self.opts.extra, **o.extra}["t"]).sum(1)


@forward("x:float32[N,L]", dims="N=1:2:3 L=2:7:33", kinds=FINITE, refused="function definitions")
def A8010RecursiveFft(self, x):
    """A recursion over a power of two: Haar's wavelet until one is left, a bitonic pass, Walsh-Hadamard after a pad to the next power."""
    n = 1 << (x.shape[1] - 1).bit_length()
    y = F.pad(x, (0, n - x.shape[1]))

    def haar(v):
        if v.shape[1] == 1:
            return v
        return torch.cat((haar((v[:, ::2] + v[:, 1::2]) / 2), (v[:, ::2] - v[:, 1::2]) / 2), 1)

    h, w = 1, y
    while h < n:
        w = w.view(len(x), -1, 2, h)
        w = torch.stack((w[:, :, 0] + w[:, :, 1], w[:, :, 0] - w[:, :, 1]), 2).view(len(x), -1)
        h *= 2
    return haar(y)[:, : x.shape[1]], w[:, : x.shape[1]]


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 5, 6), halves(3, 8, 6)))
def A8011TiesAndStability(self, x):
    """Ties: stable sorts in both directions, topk's values alone, argsort of booleans, cummax's places, unravel of a flat argmax, searchsorted of equal edges."""
    b = (x > 0.25).int()
    s, i = torch.sort(x.round(), dim=1, stable=True, descending=True)
    c = x.round().cummax(1)
    flat = x.round().flatten(1).argmax(1)
    edges = torch.tensor([-1.0, 0.0, 0.0, 1.0])
    return s, i, torch.argsort(b, dim=-1, stable=True), c.values, c.indices, torch.stack(torch.unravel_index(flat, x.shape[1:]), -1), torch.searchsorted(edges, x.round(), side="right"), torch.searchsorted(edges, x.round())


@forward(X, dims=D, kinds=FINITE)
def A8012TypesThatFollow(self, x):
    """float64 constants of rank zero and one, float16 parameters, result_type, a mean of int32, bool minus by logical, cumsum of bool, where of mixed types."""
    a = x * torch.tensor(0.1, dtype=torch.float64)
    h = x.half() * 3.3 + torch.tensor(1, dtype=torch.int64)
    w = torch.where(x > 0, 1, 0.5)
    c = (x > 0).cumsum(1)
    k = torch.result_type(torch.ones(1, dtype=torch.int32), 2.5)
    return a, h.float(), w, c, (c.to(torch.int32).float().mean(1)).to(k), (x > 0) ^ (x > 1), (x > 0).sum(1, dtype=torch.int32), torch.floor_divide(c, 2), c / 2


@forward("x:float32[N,T,4]", dims=D, kinds=FINITE)
def A8013BeamformerComplex(self, x):
    """A covariance of two complex channels, loaded by its trace, inverted in closed form, MVDR weights, angle at zero, phase differences wrapped."""
    z = torch.view_as_complex(x.view(*x.shape[:2], 2, 2))
    r = torch.einsum("ntc,ntd->ncd", z, z.conj()) / x.shape[1]
    tr = (r[:, 0, 0] + r[:, 1, 1]).real
    r = r + (0.1 * tr + 1.0)[:, None, None] * torch.eye(2)
    det = (r[:, 0, 0] * r[:, 1, 1] - r[:, 0, 1] * r[:, 1, 0])
    inv = torch.stack((torch.stack((r[:, 1, 1], -r[:, 0, 1]), -1), torch.stack((-r[:, 1, 0], r[:, 0, 0]), -1)), 1) / det[:, None, None]
    w = inv.sum(-1)
    w = w / w.sum(-1, keepdim=True).conj()
    y = (w.conj()[:, None] * z).sum(-1)
    return torch.view_as_real(y), y.abs(), (z[..., 0] * z[..., 1].conj()).real


@forward("x:float32[N,T,6]", "len:int64[N]=0:9", dims=D, kinds=FINITE)
def A8014RaggedByLengths(self, x, len):
    """Lengths beyond the row and of nothing: masks, last valid frame by gather of clamped, mean with a floor, reversed within the length, pooling of empty rows."""
    t = torch.arange(x.shape[1])
    n = torch.minimum(len, torch.tensor(x.shape[1]))
    m = t < n[:, None]
    last = x.gather(1, (n - 1).clamp(min=0)[:, None, None].expand(-1, 1, 6))[:, 0] * (n > 0)[:, None]
    mean = (x * m[..., None]).sum(1) / n.clamp(min=1)[:, None]
    rev = torch.where(m, n[:, None] - 1 - t, t)
    mx = x.masked_fill(~m[..., None], float("-inf")).amax(1)
    p = torch.softmax(x.mean(-1).masked_fill(~m, float("-inf")), 1).nan_to_num(0.0)
    return last, mean, x.gather(1, rev[..., None].expand_as(x)), torch.where(torch.isneginf(mx), 0, mx), p


@forward("x:float32[N,T,3]", "y:float32[N,T,3]", dims="N=1:2:3 T=3:6:9", kinds=("normal", "unit", "halves", "positive"))
def A8015TwoViewGeometry(self, x, y):
    """Hartley's normalisation, epipolar lines of a fixed F, Sampson distance, cheirality by signs, Triangulation by midpoints with a guarded denominator, RANSAC-free inliers counted."""
    def norm(p):
        c = p[..., :2].mean(1, keepdim=True)
        d = (p[..., :2] - c).norm(dim=-1).mean(1) + 1e-3
        return (p[..., :2] - c) * (math.sqrt(2) / d)[:, None, None]

    f = torch.tensor([[0.0, -0.3, 0.2], [0.3, 0.0, -1.0], [-0.2, 1.0, 0.0]])
    a, b = F.pad(norm(x), (0, 1), value=1.0), F.pad(norm(y), (0, 1), value=1.0)
    l, m = b @ f, a @ f.T
    e = (b * m).sum(-1)
    s = e**2 / (m[..., 0] ** 2 + m[..., 1] ** 2 + l[..., 0] ** 2 + l[..., 1] ** 2).clamp(min=1e-6)
    u, v, w0 = F.normalize(a, dim=-1), F.normalize(b, dim=-1), torch.tensor([1.0, 0.2, 0.0])
    uv, den = (u * v).sum(-1), 1 - (u * v).sum(-1) ** 2
    par = den < 1e-2
    t = torch.where(par, 0.0, ((u @ w0) - uv * (v @ w0)) / torch.where(par, 1.0, den))
    return s, t, (t > 0).sum(1), torch.sign(e).sum(1) if x.shape[1] > 100 else (s < 0.05).float().mean(1)


@forward(X, dims="N=1:2:3 T=1:5:12", kinds=FINITE)
def A8016SizesInPython(self, x):
    """Sizes through sorted, bisect, set, string length, math.isqrt, gcd, comb, round half to even, negative floor division, hex digits."""
    import bisect

    t = x.shape[1]
    k = math.gcd(t, 4) + math.isqrt(t) + round(t / 2) + -t // 3 + len(str(t)) + bisect.bisect([2, 4, 8], t)
    buckets = sorted({1, 3, 9, t})
    j = buckets.index(t)
    return x * k + j, x.sum(1) / math.comb(t + 1, 2), operator.floordiv(t, 2) * x[:, t // 2]


@attack(X, dims=D, kinds=FINITE)
class A8017TransformerFastPath(nn.Module):
    """nn.TransformerEncoder with a padding mask from the values (rows of zeros), norm_first false and true, the nested-tensor path in eval."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, dropout=0.1)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.first = nn.TransformerEncoderLayer(6, 3, 8, batch_first=True, norm_first=True, activation=F.silu)

    def forward(self, x):
        pad = torch.arange(x.shape[1]) >= (1 + (x.sum((1, 2)) > 0).long() * (x.shape[1] - 1))[:, None]
        y = self.enc(torch.tanh(x), src_key_padding_mask=pad)
        return torch.where(pad[..., None], 0, y), self.first(torch.tanh(x)).mean(1)


@attack(X, dims=D, kinds=FINITE)
class A8018ModulesThatSwitch(nn.Module):
    """train() overridden to freeze a norm, a norm without running statistics, instance norm with them, dropout functional that asks self.training, a module that refuses eval."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(6, track_running_stats=False)
        self.inorm = nn.InstanceNorm1d(6, track_running_stats=True)
        self.frozen = nn.BatchNorm1d(6)
        self.frozen.running_mean += 0.5

    def train(self, mode=True):
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x):
        y = x.mT
        return self.bn(y), self.inorm(y), self.frozen(F.dropout(y, 0.5, self.training))


@forward("x:float32[N,C,H,W]", dims="N=1:1:2 C=2:3:4 H=4:6:9 W=4:5:8", kinds=FINITE)
def A8019MovingChannels(self, x):
    """A number of channels that moves: depthwise blur by a built kernel, group norm over all channels in one group, softmax pooling, channel shuffle where it divides."""
    c = x.shape[1]
    k = torch.tensor([1.0, 2.0, 1.0])
    k = (k[:, None] * k / 16).expand(c, 1, 3, 3)
    y = F.conv2d(F.pad(x, (1, 1, 1, 1), "replicate"), k, groups=c)
    z = F.group_norm(x, 1, eps=1e-2)
    w = (x.flatten(2).softmax(-1) * x.flatten(2)).sum(-1)
    s = x.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2) if c % 2 == 0 else x.flip(1)
    return y, z, w, s
