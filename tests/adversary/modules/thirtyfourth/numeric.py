"""Numbers and types: whole numbers that wrap, half and double inside, special values, ties, spectra, thresholds."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

SHORT = "N=1:2:4 T=2:9:24"
FROM_ONE = "N=1:2:4 T=1:9:24"
LONG = "N=1:1:2 T=2:50:600"
ROOM = "N=1:1:3 H=1:7:20 W=1:10:21"


def _v(*values, dtype=np.float32, name="x"):
    return lambda: {name: np.array([values], dtype)}


@forward("x:int16[N,T]=-32768:32767", dims=SHORT, feeds=(_v(32767, -32768, 1, -1, 181, 182, dtype=np.int16),))
def A3475ShortsWrap(self, x):
    energy = x * x
    return (
        energy,
        x + 1,
        x.sum(1),
        (x.int() * x).sum(1),
        -x,
        x.abs(),
        x * 2 // 3,
        (x >> 8).to(torch.int8),
        x.float() / 32768.0,
    )


@forward("x:uint8[N,T,3]", dims=FROM_ONE, feeds=(lambda: {"x": np.array([[[255, 254, 1], [0, 128, 127]]], np.uint8)},))
def A3476BytesMixed(self, x):
    y = x - 128
    z = (x.to(torch.int8) // 3).to(torch.uint8)
    mean = x.float().mean(-1).round().to(torch.uint8)
    return (
        y,
        z,
        mean,
        x.amax(-1) - x.amin(-1),
        x + torch.tensor(200, dtype=torch.uint8),
        x * 0.5,
        (x / 2).to(torch.uint8),
        x.cumsum(1),
        x.diff(dim=-1),
    )


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 9, 4, scale=200), halves(1, 3, 4)))
def A3478HalfSoftmaxAndSums(self, x):
    h = (x * 20).half()
    p = h.softmax(-1)
    score = (h @ h.mT).float()
    return (
        p.float(),
        torch.where(score.isinf(), 1e5, score),
        h.sum(-1).float().nan_to_num(0, 1, -1),
        (h / 3).float().nan_to_num(0, 1, -1),
        (h > 0.1).sum(1),
    )


@forward(
    "x:float32[N,T]=-400:400",
    dims=SHORT,
    kinds=FINITE,
    feeds=(_v(256.0, 257.0, 258.0, 0.1, 2.5, 3.5), _v(-257.0, 385.0, 387.0)),
)
def A3479BrainFloats(self, x):
    b = x.bfloat16()
    y = torch.arange(x.shape[1]).bfloat16() * b
    return y.float(), b.long(), (b + 0.1).float(), (b == x), b.round().float(), torch.floor(b / 3).float(), b.argmax(1)


@forward(
    "x:float32[N,T]",
    dims=FROM_ONE,
    kinds=(*FINITE, "minus-infinity", "plus-infinity"),
    feeds=(_v(np.inf, 1.0, -np.inf), _v(-np.inf, -np.inf)),
)
def A3482InfinitiesSorted(self, x):
    y, i = x.sort(dim=1, descending=True, stable=True)
    lse = torch.logsumexp(x, 1)
    d = y[:, 1:] - y[:, :-1]
    return (
        y,
        i,
        torch.where(lse.isnan(), 0.0, lse),
        d.nan_to_num(0.0, 1.0, 2.0),
        x.argmax(1),
        x.sigmoid(),
        torch.expm1(x),
        x.tanh().atanh().isinf(),
    )


@forward("x:float32[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(halves(3, 24), _v(1.0, 1, 1, 0, 0)))
def A3483RanksOfTies(self, x):
    order = x.argsort(dim=1, stable=True)
    rank = order.argsort(1)
    first = (x[:, :, None] == x[:, None]).int().argmax(-1)
    dense = (x.sort(1).values.diff(dim=1) > 0).cumsum(1)
    best = (x == x.amax(1, keepdim=True)).float()
    return rank, first, dense, best / best.sum(1, keepdim=True), x.topk(1, largest=False)[1], torch.median(x, 1)[0]


@forward("x:float32[N,T]", dims="N=1:2:4 T=3:9:24", kinds=FINITE, feeds=(halves(3, 24), halves(1, 3)))
def A3484NucleusSampling(self, x):
    p, i = x.softmax(-1).sort(dim=-1, descending=True, stable=True)
    total = p.cumsum(-1)
    drop = total - p > 0.9
    p = p.masked_fill(drop, 0.0)
    back = torch.zeros_like(p).scatter(1, i, p)
    k = max(1, x.shape[1] // 4)
    return (
        back / back.sum(1, keepdim=True),
        i[:, :k],
        (~drop).sum(1),
        torch.where(x < x.topk(k)[0][:, -1:], -math.inf, x).softmax(-1),
    )


@forward("x:float32[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(2, 24, scale=50), _v(-2.0, 0.0, 2.0)))
def A3485CumulativeKinds(self, x):
    return (
        x.cumsum(1).flip(1).cumsum(1),
        torch.cumprod(x.tanh(), 1),
        x.cummax(1)[0] - x.cummin(1)[0],
        torch.logcumsumexp(x, 1),
        x.flip(1).cummax(1)[1],
        (x > 0).cumsum(1, dtype=torch.int32),
        torch.trapezoid(x, dim=1),
        torch.cumulative_trapezoid(x, dx=0.1),
    )


@attack(
    "x:float32[N,T]=-1:1",
    dims="N=1:1:2 T=16:64:200",
    kinds=("normal", "halves", "ones", "zeros"),
    feeds=(normal(1, 17, scale=0.3), normal(2, 200, scale=0.3), normal(1, 16)),
)
class A3486StftAndBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x):
        s = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        mag = s.abs().clamp_min(1e-5)
        mask = (mag > mag.mean((1, 2), keepdim=True)).float()
        y = torch.istft(s * mask, 16, 4, window=self.window, length=x.shape[1])
        return 20 * mag.log10(), y, (s.real * s.real.roll(1, 2)).sum(1)


@forward(
    "x:float32[N,H,W]",
    dims="N=1:1:2 H=1:6:12 W=1:7:13",
    kinds=("normal", "halves", "ones"),
    feeds=(normal(1, 1, 1), normal(1, 12, 13), normal(2, 5, 1)),
)
def A3487FourierMixing(self, x):
    y = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
    s = torch.fft.rfft2(x, norm="ortho")
    h, w = x.shape[1:]
    keep = (torch.fft.fftfreq(h)[:, None].abs() <= 0.25) & (torch.fft.rfftfreq(w) < 0.3)
    z = torch.fft.irfft2(s * keep, s=(h, w), norm="ortho")
    return y, z, torch.fft.ifftshift(x, (1, 2))


@attack(
    "x:float32[N,T]",
    dims=SHORT,
    kinds=FINITE,
    feeds=(halves(2, 9), _v(-3.0, 3.0, 0.25, 0.5, 0.75), _v(0.3, -0.1, 100.0)),
)
class A3492SplineBasis(nn.Module):
    """KAN's B-splines on a uniform grid: comparisons with knots, half-open."""

    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.arange(-3, 9) * 0.2 - 1.0)
        self.weight = nn.Parameter(torch.randn(8, 3))

    def forward(self, x):
        x, g = x[..., None], self.grid
        b = ((x >= g[:-1]) & (x < g[1:])).to(x.dtype)
        for k in range(1, 4):
            b = (x - g[: -(k + 1)]) / (g[k:-1] - g[: -(k + 1)]) * b[..., :-1] + (g[k + 1 :] - x) / (
                g[k + 1 :] - g[1:(-k)]
            ) * b[..., 1:]
        return b @ self.weight, F.silu(x[..., 0])


@forward(
    "x:float32[N,T,4]",
    dims=SHORT,
    kinds=FINITE,
    feeds=(normal(2, 9, 4, scale=1e15), normal(2, 9, 4, scale=1e-15), normal(1, 2, 4, scale=80)),
)
def A3493StableForms(self, x):
    a = torch.logaddexp(x, -x) - x.abs()
    b = torch.hypot(x[..., :2], x[..., 2:]) / (x.abs().amax(-1, keepdim=True) + 1e-30)
    c = torch.special.expit(x) + F.softplus(x, beta=2, threshold=5) * 0
    d = torch.sinc(x) + torch.special.xlog1py(c, x.abs())
    return a, b, c, d, F.mish(x), torch.log_softmax(x, -1).exp(), F.gelu(x, approximate="tanh"), x / (1 + x.abs())


@forward(
    "x:float32[N,T]=0:100",
    dims=SHORT,
    kinds=FINITE,
    feeds=(_v(4.0, 8.0, 9.0, 27.0, 64.0, 100.0), _v(1000.0, 10.0, 0.001)),
)
def A3494PowersAndLogs(self, x):
    return (
        torch.log2(x + 1).floor(),
        x ** (1 / 3),
        (x**0.5).floor(),
        x.log10().round(),
        torch.frexp(x)[1],
        x.pow(-2).clamp(max=9),
        2.0 ** x.clamp(max=30).floor(),
        torch.exp2(x.floor() % 20),
        (x.sqrt() % 1 == 0),
    )


@forward(
    "x:float32[N,T]",
    "k:int64[N]=0:24",
    dims=FROM_ONE,
    kinds=FINITE,
    feeds=(normal(2, 9, k=np.array([0, 9])), normal(2, 24, k=np.array([24, 1]))),
)
def A3495RollByValue(self, x, k):
    n = x.shape[1]
    i = (torch.arange(n) - k[:, None]) % n
    j = torch.div(torch.arange(n) * k[:, None] - n, 3, rounding_mode="floor").remainder(n)
    w = (torch.arange(n) < k[:, None]) * (1.0 / k.clamp(min=1)[:, None])
    return x.gather(1, i), x.gather(1, j), (x * w).sum(1), torch.fmod(k - n, 4), (k - n) / 2, k.true_divide(n).floor()


@forward(
    "x:float32[N,T]",
    dims=FROM_ONE,
    kinds=FINITE,
    feeds=(halves(2, 9), _v(1.5, 2.5, -0.5, 0.5, -1.5), _v(8388609.0, 4194304.5, -0.49999997)),
)
def A3496Roundings(self, x):
    h = torch.floor(x + 0.5)
    return (
        torch.round(x),
        h,
        torch.trunc(x),
        torch.round(x, decimals=2),
        torch.round(x * 100) / 100,
        x.frac(),
        x.to(torch.int32),
        torch.ceil(x - 0.5),
        x - x % 0.25,
        torch.round(x, decimals=-1),
    )


@forward("x:float32[N,T,3]", dims=SHORT, kinds=FINITE, feeds=(halves(2, 9, 3), halves(1, 24, 3), normal(1, 2, 3)))
def A3497NearestPrototypes(self, x):
    code = torch.tensor([[0.5, 0.0, -0.5], [0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [0.5, 0.0, -0.5]])
    d = x.square().sum(-1, keepdim=True) - 2 * x @ code.T + code.square().sum(-1)
    i = d.argmin(-1)
    q = code[i]
    use = F.one_hot(i, 4).float().mean((0, 1))
    return (
        i,
        x + (q - x).detach(),
        torch.exp(-(use * (use + 1e-10).log()).sum()),
        torch.cdist(x, code.expand(x.shape[0], 4, 3)).topk(2, largest=False)[0],
    )


@forward("x:float32[N,T]", dims=SHORT, kinds=FINITE, feeds=(halves(2, 9), normal(1, 24), _v(0.0, 0.0, 5.0)))
def A3498Calibration(self, x):
    p = x.sigmoid()
    bins = (p * 15).ceil().clamp(1, 15).long() - 1
    hits = torch.zeros(x.shape[0], 15).scatter_add(1, bins, p)
    n = torch.zeros(x.shape[0], 15).scatter_add(1, bins, torch.ones_like(p))
    empty = n == 0
    mean = torch.where(empty, torch.zeros_like(n), hits / n)
    return mean, empty.sum(1), (hits / n).nan_to_num(-1.0), bins.bincount(minlength=15) if x.shape[0] == 0 else n


@forward(
    "x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 9, 4), normal(1, 24, 4, scale=1e4), halves(1, 2, 4))
)
def A3499BlockScales(self, x):
    amax = x.abs().amax((1, 2), keepdim=True)
    scale = torch.where(amax == 0, torch.ones_like(amax), amax / 127)
    q = torch.clamp((x / scale).round(), -127, 127).to(torch.int8)
    e = torch.floor(torch.log2(amax.clamp_min(2.0**-126)))
    mx = torch.round(x / 2.0 ** (e - 6)) * 2.0 ** (e - 6)
    half = (x.abs() * 0.5).half().float().nan_to_num(posinf=65504.0)
    acc = (q.int() @ q.int().mT) if False else (q.float() @ q.float().mT)
    return q * scale, mx, half, acc * scale * scale, q.sum(1), q * 2, q.abs()
