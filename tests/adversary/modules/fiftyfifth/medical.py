# ruff: noqa: E501 - attacks are written as users write them
"""Scans and signals: volumes, spacing, Fourier space, percentiles, distances, heart beats, records with gaps, codes, warping."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

V = "x:float32[D,H,W]=-4:4"
CT = "x:int16[D,H,W]=-1024:3071"
T = "x:float32[N,T]=-4:4"


def at(*dhw: tuple, text: str = V) -> tuple:
    """Points at volumes."""
    return tuple(values_at(text, D=d, H=h, W=w) for d, h, w in dhw)


def steps(*t: int) -> tuple:
    """Points at numbers of steps."""
    return tuple(values_at(T, N=1, T=v) for v in t)


@attack(
    V,
    dims="D=4:6:9 H=4:6:9 W=4:6:9",
    kinds=("normal", "zeros"),
    feeds=at((4, 4, 4), (6, 6, 6), (7, 4, 9), (9, 9, 9), (5, 8, 4)),
    refused="the path through the module depends on the size",
)
class A7044SlidingVolume(nn.Module):
    """MONAI's windows of four half overlapped, the last flush, weighted by a Gaussian's product."""

    def __init__(self):
        super().__init__()
        self.net = nn.Conv3d(1, 1, 3, padding=1)
        g = torch.exp(-0.5 * ((torch.arange(4) - 1.5) / 0.5) ** 2)
        self.register_buffer("gauss", torch.einsum("i,j,k->ijk", g, g, g).clamp(min=1e-3))

    def forward(self, x):
        starts = [[min(i * 2, s - 4) for i in range(math.ceil((s - 4) / 2) + 1)] for s in x.shape]
        out, count = torch.zeros_like(x), torch.zeros_like(x)
        for d, h, w in itertools.product(*starts):
            s = (slice(d, d + 4), slice(h, h + 4), slice(w, w + 4))
            out[s] += self.net(x[s][None, None])[0, 0] * self.gauss
            count[s] += self.gauss
        return out / count


@forward(CT, dims="D=1:4:12 H=2:8:24 W=2:8:24", feeds=at((1, 2, 2), (3, 8, 8), (12, 24, 23), (4, 5, 24), text=CT))
def A7045Windowing(self, x):
    """Hounsfield windows in short whole numbers: the bone's difference wraps where it is not widened; slices by a step."""
    lo, hi = -160, 240
    soft = ((x.clamp(lo, hi) - lo) / (hi - lo) * 255).to(torch.uint8)
    wrapped = x * 32
    step = max(1, x.shape[0] // 4)
    return soft[::step], wrapped, (x.float() / 1000).floor_divide(0.5), x.sum(), x >> 3


@forward(
    V,
    dims="D=2:5:14 H=2:6:14 W=2:6:14",
    kinds=FINITE,
    feeds=at((5, 6, 6), (2, 2, 2), (14, 3, 9), (10, 10, 10), (11, 7, 13)),
)
def A7046Respaced(self, x):
    """Spacing of 2.5, 0.7 and 0.7 to one: sides rounded half to even, at least one; back by nearest."""
    spacing = (2.5, 0.7, 0.7)
    new = [max(1, round(s * v)) for s, v in zip(x.shape, spacing, strict=True)]
    y = F.interpolate(x[None, None], tuple(new), mode="trilinear", align_corners=True)
    z = F.interpolate(y, x.shape, mode="nearest")
    return y[0, 0], (z - x).abs().mean()


@forward(
    V,
    dims="D=1:4:9 H=1:6:16 W=1:6:16",
    kinds=FINITE,
    feeds=(*at((1, 1, 1), (1, 1, 2), (9, 16, 16), (4, 5, 5)), halves(4, 6, 6), halves(3, 3, 3)),
)
def A7047Percentiles(self, x):
    """nnU-Net's clip to percentiles of the foreground, then z-scores of the foreground; empty ones stay."""
    f = x.flatten()
    lo, hi = (
        torch.quantile(f, torch.tensor([0.005, 0.995]), interpolation="lower"),
        torch.quantile(f, 0.5, interpolation="midpoint"),
    )
    y = x.clamp(lo[0], lo[1])
    m = y > hi
    n = m.sum()
    mean = torch.where(n > 0, (y * m).sum() / n.clamp(min=1), 0.0)
    std = torch.where(n > 1, (((y - mean) ** 2 * m).sum() / (n - 1).clamp(min=1)).sqrt(), 1.0)
    return torch.where(m, (y - mean) / std.clamp(min=1e-8), 0.0), f.median(), f.nanmedian()


@forward(
    "x:float32[H,W]=-4:4",
    dims="H=2:16:48 W=2:16:48",
    kinds=FINITE,
    feeds=tuple(
        values_at("x:float32[H,W]=-4:4", H=h, W=w) for h, w in ((2, 2), (3, 2), (16, 17), (17, 16), (48, 47), (5, 5))
    ),
)
def A7048KSpace(self, x):
    """Fourier space shifted, its middle left by fourths, the rest filled by its conjugate; magnitude and phase back."""
    h, w = x.shape
    k = torch.fft.fftshift(torch.fft.fft2(x, norm="ortho"))
    a, b = max(1, h // 4), max(1, w // 4)
    m = torch.zeros(h, w)
    m[h // 2 - a // 2 : h // 2 - a // 2 + a, w // 2 - b // 2 : w // 2 - b // 2 + b] = 1
    k = k * m
    k = (k + k.flip(0, 1).roll(((h + 1) % 2, (w + 1) % 2), (0, 1)).conj()) / 2
    y = torch.fft.ifft2(torch.fft.ifftshift(k), norm="ortho")
    return y.abs(), y.real, torch.view_as_real(torch.fft.rfft2(x))[..., 0]


@forward(
    "m:bool[H,W]",
    dims="H=1:7:14 W=1:7:14",
    feeds=(
        lambda: {"m": np.zeros((5, 9), bool)},
        lambda: {"m": np.eye(14, dtype=bool)},
        lambda: {"m": np.ones((1, 1), bool)},
    ),
)
def A7049Distance(self, m):
    """Exact distances to the mask by all pairs, infinite where it is empty; the signed one and its largest."""
    h, w = m.shape
    p = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"), -1).view(-1, 2).float()
    d = torch.cdist(p, p, compute_mode="donot_use_mm_for_euclid_dist")
    out = d.masked_fill(~m.view(1, -1), math.inf).amin(1).view(h, w)
    inner = d.masked_fill(m.view(1, -1), math.inf).amin(1).view(h, w)
    return out - inner, torch.nan_to_num(out, posinf=-1.0).amax()


@attack(
    V,
    dims="D=1:4:12 H=1:6:12 W=1:6:12",
    kinds=FINITE,
    feeds=at((1, 1, 1), (1, 1, 2), (4, 4, 4), (12, 12, 12), (3, 5, 7), (8, 4, 12)),
)
class A7050UNet(nn.Module):
    """A shallow U-Net padded to the next multiple of four on both ends, cropped by the same amounts; norms over one voxel."""

    def __init__(self):
        super().__init__()
        self.down, self.up, self.out = nn.Conv3d(1, 2, 3, 2, 1), nn.ConvTranspose3d(2, 2, 2, 2), nn.Conv3d(3, 1, 1)
        self.norm = nn.GroupNorm(1, 2)

    def forward(self, x):
        sides = [(-s) % 4 for s in x.shape]
        pad = [v for s in reversed(sides) for v in (s // 2, s - s // 2)]
        y = F.pad(x[None, None], pad)
        z = self.up(F.leaky_relu(self.norm(self.down(y)), 0.01))
        z = self.out(torch.cat((y, z), 1))
        return z[0, 0][tuple(slice(s // 2, s // 2 + n) for s, n in zip(sides, x.shape, strict=True))]


@forward(
    T, dims="N=1:1:2 T=3:40:200", kinds=FINITE, feeds=(*steps(3, 5, 99, 100, 101, 200), halves(1, 40), halves(2, 101))
)
def A7051Beats(self, x):
    """Peaks of a record: higher than both neighbours and two deviations of half; intervals by the index before."""
    mid = x[:, 1:-1]
    p = (mid > x[:, :-2]) & (mid >= x[:, 2:]) & (mid > x.mean(1, keepdim=True) + 0.5 * x.std(1, keepdim=True))
    p = F.pad(p, (1, 1))
    i = torch.arange(x.shape[1])
    before = F.pad(torch.where(p, i, -1).cummax(1).values, (1, 0), value=-1)[:, :-1]
    gap = torch.where(p & (before >= 0), i - before, 0)
    rate = torch.where(gap.sum(1) > 0, 60 * (gap > 0).sum(1) * 100 / gap.sum(1), float("nan"))
    return p, gap, rate


@forward(
    "x:float32[N,T]",
    dims="N=1:1:2 T=2:12:50",
    kinds=("normal", "zeros", "halves", "plus-infinity", "minus-infinity"),
    feeds=(
        lambda: {"x": np.array([[1, np.nan, np.nan, 2, np.nan], [np.nan] * 5], np.float32)},
        lambda: {"x": np.array([[np.nan, 1]], np.float32)},
        lambda: {"x": np.array([[np.inf, np.nan, -np.inf, 3]], np.float32)},
    ),
)
def A7052Gaps(self, x):
    """A record with gaps: forward fill by the last index before, then backward, then the mean of what there is."""
    ok = ~x.isnan()
    i = torch.arange(x.shape[1]).expand_as(x)
    f = torch.where(ok, i, 0).cummax(1).values
    y = x.gather(1, f)
    b = torch.where(ok, i, x.shape[1] - 1).flip(1).cummin(1).values.flip(1)
    y = torch.where(y.isnan(), x.gather(1, b), y)
    return (
        y.nan_to_num(0.0, 9.0, -9.0),
        x.nanmean(1).nan_to_num(-1.0),
        x.nansum(1),
        torch.fmax(x[:, :-1], x[:, 1:]),
        torch.maximum(x[:, :-1], x[:, 1:]),
    )


@forward(
    T,
    dims="N=1:1:2 T=2:30:120",
    kinds=FINITE,
    feeds=steps(2, 3, 4, 30, 31, 119, 120),
    refused="the exported model differs from the module",
)
def A7053Hilbert(self, x):
    """The analytic signal by doubling positive frequencies; the envelope and the angle's steps, unwrapped by floors."""
    n = x.shape[-1]
    h = torch.zeros(n)
    h[0] = 1
    if n % 2 == 0:
        h[n // 2] = 1
        h[1 : n // 2] = 2
    else:
        h[1 : (n + 1) // 2] = 2
    z = torch.fft.ifft(torch.fft.fft(x + 5) * h)
    return z.abs(), (z.real - 5).abs().sum(1)


@forward(
    V,
    dims="D=1:4:10 H=2:6:12 W=2:6:12",
    kinds=FINITE,
    feeds=(*at((1, 2, 2), (10, 12, 12), (5, 5, 2)), halves(4, 6, 6), halves(10, 3, 4)),
)
def A7054Projections(self, x):
    """Projections: largest with its first slice, slabs of three by a stride of two where there are three, sum of the top two."""
    top, where = x.max(0)
    d = x.shape[0]
    slab = x.unfold(0, min(3, d), 2).amax(-1)
    two = x.topk(min(2, d), 0).values.sum(0)
    return top, where, slab, two, x.mode(0).values if d == 0 else x.sort(0).values[(d - 1) // 2]


@attack(T, dims="N=1:2:4 T=1:16:70", kinds=FINITE, feeds=steps(1, 2, 63, 64, 65, 70))
class A7055Norms(nn.Module):
    """Norms in training mode over batch and time, of variances with and without one degree off; a momentum that is none."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(1, track_running_stats=False)
        self.inorm = nn.InstanceNorm1d(1, affine=True)

    def forward(self, x):
        y = torch.cat((x, x + 1), 1)[:, None]
        v, m = torch.var_mean(x, 1, correction=0)
        return (
            self.bn(y),
            self.inorm(y),
            (x - m[:, None]) / (v[:, None] + 1e-3).sqrt(),
            F.local_response_norm(y.mT, 3).mT,
        )


@forward(
    "x:uint8[H,W]",
    "y:uint8[H,W]",
    dims="H=1:8:20 W=1:8:20",
    feeds=(
        lambda: {"x": np.zeros((4, 4), np.uint8), "y": np.full((4, 4), 255, np.uint8)},
        lambda: {
            "x": np.arange(256).astype(np.uint8).reshape(16, 16),
            "y": (np.arange(256) // 2).astype(np.uint8).reshape(16, 16),
        },
    ),
)
def A7056HistogramMatch(self, x, y):
    """Histograms matched by the cumulated shares; differences of bytes wrap, absolute ones by larger minus smaller."""
    hx = F.one_hot(x.flatten().long(), 256).sum(0).cumsum(0) / x.numel()
    hy = F.one_hot(y.flatten().long(), 256).sum(0).cumsum(0) / y.numel()
    lut = torch.searchsorted(hy, hx).clamp(max=255)
    return lut[x.long()].to(torch.uint8), x - y, torch.maximum(x, y) - torch.minimum(x, y), -x, ~y


@forward(
    V,
    dims="D=2:5:9 H=2:5:9 W=2:5:9",
    kinds=FINITE,
    feeds=at((2, 2, 2), (9, 9, 9), (4, 5, 6), (7, 7, 7), (6, 6, 6)),
    refused="the exported model differs from the module",
)
def A7057Gradient(self, x):
    """Gradients at the inner by central and at the border by single differences; a turn by a quarter for odd sums."""
    g = torch.gradient(x)
    m = torch.stack(g).square().sum(0).sqrt()
    d, h, w = x.shape
    m = torch.rot90(m, (d + h + w) % 2, (1, 2))
    return m, m.reshape(d, -1).logsumexp(1), torch.trapezoid(x, dx=0.5, dim=0), x.diff(n=2, dim=2, prepend=x[..., :1])


@forward(
    "x:float32[N,T]=-1.5:1.5",
    dims="N=1:1:2 T=1:16:64",
    kinds=FINITE,
    feeds=(lambda: {"x": np.array([[-1, 1, 0, -0.0, 0.5, -0.5, 1.5, -1.5]], np.float32)},),
)
def A7026MuLaw(self, x):
    """Mu-law codes of eight bits, cut towards zero, as bytes; silence where a code is 127 or 128; decoded."""
    mu = torch.tensor(255.0)
    y = torch.sign(x) * torch.log1p(mu * x.abs().clamp(max=1)) / torch.log1p(mu)
    q = ((y + 1) / 2 * mu + 0.5).to(torch.int64).to(torch.uint8)
    z = q.float() / mu * 2 - 1
    z = torch.sign(z) * torch.expm1(z.abs() * torch.log1p(mu)) / mu
    return torch.where((q == 127) | (q == 128), 0.0, z), (q - 128).to(torch.int8).float() / 64


@forward(
    "x:float32[T,U]=-4:4",
    dims="T=1:6:14 U=1:4:9",
    kinds=FINITE,
    feeds=tuple(values_at("x:float32[T,U]=-4:4", T=t, U=u) for t, u in ((1, 1), (1, 9), (14, 1), (13, 5), (5, 9))),
    refused="the path through the module depends on the size",
)
def A7028Dtw(self, x):
    """Dynamic warping: rows by Python, columns by a running minimum of what is left over its sums."""
    d = x.square()
    row = d[0].cumsum(0)
    for i in range(1, d.shape[0]):
        up = torch.minimum(row, F.pad(row, (1, 0), value=math.inf)[:-1])
        sums = d[i].cumsum(0)
        row = sums + (up - sums + d[i]).cummin(0).values
    return row, row.argmin()
