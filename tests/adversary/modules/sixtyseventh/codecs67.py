"""Audio codecs, bytes and numbers: quantisers, companding, wrapping whole numbers, promotions, rounding."""
# ruff: noqa: E501, B905 - attacks are written as users write them

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=FINITE)
class A7950ResidualVq(nn.Module):
    """EnCodec's residual quantiser: nearest code by squared distances in three stages on the lattice of halves, straight-through."""

    def __init__(self) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.register_buffer("codes", torch.randint(-6, 7, (3, 11, 6), generator=g) / 2)

    def forward(self, x):
        residual, total, ids = x, torch.zeros_like(x), []
        for table in self.codes:
            d = (residual[..., None, :] - table).abs().sum(-1)
            i = d.argmin(-1)
            q = table[i]
            q = residual + (q - residual).detach()
            residual = residual - q
            total = total + q
            ids.append(i)
        return total, torch.stack(ids), (ids[0] * 11 + ids[1]) * 11 + ids[2]


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 5, 6), halves(3, 9, 6)))
def A7951FiniteScalar(self, x):
    """FSQ with even and odd level counts, half-width offset by atanh, round half to even, codes by a mixed radix and back."""
    levels = torch.tensor([8, 5, 5, 3, 4, 7])
    half = (levels - 1) * (1 - 1e-3) / 2
    offset = torch.where(levels % 2 == 0, 0.5, 0.0)
    bounded = torch.tanh(x + torch.atanh(offset / half)) * half - offset
    q = torch.round(bounded)
    width = levels // 2
    basis = torch.cumprod(torch.tensor([1, *levels[:-1].tolist()]), 0)
    code = ((q + width) * basis).sum(-1).to(torch.int32)
    back = (code[..., None] // basis) % levels - width
    return q / width, code, back


@forward("x:int16[N,L]=-32768:32767", dims="N=1:2:3 L=2:9:31")
def A7952PcmShorts(self, x):
    """16-bit PCM: negated, absolute value and doubled in the type itself (which wrap at -32768), de-interleaved, peak and a soft clip in float."""
    w = -x
    a = x.abs()
    d = x + x
    s = (x >> 3) ^ (x << 5)
    peak = x.to(torch.int32).abs().amax(1, keepdim=True).clamp(min=1)
    return w, a, d, s, x / peak, (x // 7) * 7 + x % 7 == x


@forward("x:uint8[N,H,W]=0:255", dims="N=1:2:3 H=2:4:7 W=2:5:8")
def A7953ByteArithmetic(self, x):
    """Bytes less their right neighbour wrap, average of two with a carry, negation, inverted, compared with -1 and 256, times 0.5, sum without a type."""
    left, right = x[..., :-1], x[..., 1:]
    diff = left - right
    avg = (left & right) + ((left ^ right) >> 1)
    s8 = diff.to(torch.int8)
    return diff, avg, ~x, s8, (s8.to(torch.int16) + left), x * 0.5, x.sum((1, 2)), (x == -1).sum(), x.float().mean((1, 2)) > x.amax((1, 2)) - 200


@forward("x:int8[N,K]=-128:127", "y:uint8[N,K]=0:255", dims="N=1:2:3 K=2:5:9")
def A7954PromotedBytes(self, x, y):
    """int8 with uint8 is int16, with a bool int8, with a 0-d int64 int8, with a float scalar float32; division of whole numbers."""
    z = x * y
    b = x + (y > 3)
    c = x + torch.tensor(100)
    d = x * 1.5
    return z, b, c, d, x / y.clamp(min=1), torch.div(x, y.clamp(min=1), rounding_mode="floor"), torch.bitwise_left_shift(x, 2), x.abs(), x**2


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 5, 6),))
def A7955RoundDecimals(self, x):
    """round(decimals=1), decimals=-1, half up by floor, half away by sign, int() by cast, stochastic-free dither."""
    up = torch.floor(x + 0.5)
    away = torch.sign(x) * torch.floor(x.abs() + 0.5)
    return torch.round(x * 10, decimals=-1), up, away, x.long(), torch.round(x), torch.trunc(x), torch.frac(x)


@forward("x:float32[N,L]", dims="N=1:2:3 L=3:9:33", kinds=FINITE)
def A7956MuLaw(self, x):
    """torchaudio's mu-law of 256 and back, A-law by where, adpcm-like step index with clamps over a short loop of Python."""
    mu = 255.0
    y = torch.tanh(x)
    c = torch.sign(y) * torch.log1p(mu * y.abs()) / math.log1p(mu)
    q = ((c + 1) / 2 * mu + 0.5).to(torch.int64)
    back = q / mu * 2 - 1.0
    back = torch.sign(back) * (torch.exp(back.abs() * math.log1p(mu)) - 1.0) / mu
    a = 87.6
    la = torch.where(y.abs() < 1 / a, a * y.abs(), 1 + torch.log(a * y.abs().clamp(min=1 / a))) / (1 + math.log(a))
    return back, torch.copysign(la, y)


@dataclass(frozen=True)
class Frame:
    hop: int
    pad: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pad", self.pad or self.hop // 2)


@attack("x:float32[N,1,L]", dims="N=1:1:2 L=17:32:65", kinds=FINITE)
class A7957CodecPadding(nn.Module):
    """EnCodec's SConv1d: extra padding from a ceil of frames in Python floats, reflect with a zero pad where the signal is too short, trimmed transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv1d(1, 4, 7, 3, dilation=2)
        self.up = nn.ConvTranspose1d(4, 1, 6, 3)
        self.frame = replace(Frame(6), hop=3)

    def pad1d(self, x, left, right):
        length, most = x.shape[-1], max(left, right)
        extra = 0
        if length <= most:
            extra = most - length + 1
            x = F.pad(x, (0, extra))
        padded = F.pad(x, (left, right), "reflect")
        return padded[..., : padded.shape[-1] - extra]

    def forward(self, x):
        k, s = (7 - 1) * 2 + 1, 3
        total = k - s
        frames = (x.shape[-1] - k + total) / s + 1
        extra = (math.ceil(frames) - 1) * s + (k - total) - x.shape[-1]
        z = self.down(self.pad1d(x, total, extra))
        y = self.up(F.elu(z))
        right = math.ceil((6 - 3) * 0.5)
        y = y[..., 6 - 3 - right : y.shape[-1] - right]
        return y[..., : x.shape[-1]], z.shape[-1] * torch.ones(1), self.frame.pad * z.amax()


@forward(X, dims=D)
def A7958SpecialNumbers(self, x):
    """copysign with -0, logaddexp of -inf twice, hypot, sinc at 0, heaviside at 0, xlogy, nextafter's direction, entr, remainder of negatives."""
    z = torch.where(x > 0, 0.0, -0.0)
    ninf = torch.full_like(x, float("-inf"))
    return torch.copysign(torch.ones_like(x), z), torch.logaddexp(ninf, ninf), torch.sinc(x.round()), torch.heaviside(z, x), torch.xlogy(z, z), torch.special.entr(torch.sigmoid(x)), torch.remainder(x, -1.5), torch.fmod(x, -1.5), torch.signbit(z)


@forward("x:int64[N,K]=-9:9", dims="N=1:2:3 K=1:4:9", refused="no form of gcd")
def A7959WholeNumberCorners(self, x):
    """gcd, lcm, floor division by a tensor of signs, power of negatives, bit shifts past the sign, bit_count by steps, prod, cumprod that wraps int32, mean of floats."""
    s = torch.where(x >= 0, 3, -3)
    p = (x * 65537).to(torch.int32)
    return torch.gcd(x, s * 2), torch.lcm(x.abs() + 1, s.abs()), x // s, x % s, x**3, p * p, p.cumsum(-1, dtype=torch.int32) * 70000, (x >> 1) & 7, x.float().mean(-1)


@forward(X, dims=D, kinds=FINITE, refused="view of the bits")
def A7960BitPlanes(self, x):
    """Floats to their bits by view(int32), exponent field, mantissa, a fast inverse square root, half precision bits by view(int16)."""
    b = x.view(torch.int32)
    e = ((b >> 23) & 0xFF) - 127
    m = (b & 0x7FFFFF) | 0x800000
    a = x.abs() + 1.0
    i = 0x5F3759DF - (a.view(torch.int32) >> 1)
    y = i.view(torch.float32)
    return e, m, y * (1.5 - 0.5 * a * y * y)


@forward("x:float32[N,T,6]", dims=D, kinds=FINITE, refused="depends on the size")
def A7961SplitUnevenly(self, x):
    """chunk(4) that gives fewer chunks, tensor_split, split with a rest, zip that stops early, accumulate, pairwise; counts as numbers."""
    chunks = x.chunk(4, 1)
    parts = x.tensor_split(3, 1)
    rest = x.split(4, 1)
    sums = list(itertools.accumulate((c.sum(1) for c in chunks), lambda a, b: 0.5 * a + b))
    z = [a.amax(1) * b.sum(1) for a, b in zip(chunks, rest)]
    return sums[-1], len(chunks) * x[:, 0], sum(p.sum(1) * (i + 1) for i, p in enumerate(parts)), torch.stack(z).sum(0), rest[-1].mean(1)


@forward("x:float32[N,L]", dims="N=1:2:3 L=9:20:41", kinds=FINITE)
def A7962RiceAndPredictors(self, x):
    """FLAC: fixed predictors of order 0 to 3, the best by the sum of absolute residuals (ties to the lower), zigzag, Rice parameter from a mean by log2 ceil."""
    q = torch.round(torch.tanh(x) * 100).to(torch.int32)
    res = [q[:, 3:], (q[:, 1:] - q[:, :-1])[:, 2:], (q[:, 2:] - 2 * q[:, 1:-1] + q[:, :-2])[:, 1:], q[:, 3:] - 3 * q[:, 2:-1] + 3 * q[:, 1:-2] - q[:, :-3]]
    r = torch.stack(res, 1)
    cost = r.abs().sum(-1)
    best = cost.argmin(1)
    chosen = r[torch.arange(len(q)), best]
    zig = (chosen << 1) ^ (chosen >> 31)
    k = torch.ceil(torch.log2(zig.float().mean(1) + 1)).int()
    return best, zig, k, (zig >> k[:, None]).sum(1)


@forward("x:int64[N,K]=-9:9", dims="N=1:2:3 K=1:4:9")
def A8002WholeNumberRest(self, x):
    """The same without gcd: floor division by signs, powers of negatives, products that wrap int32, cumsum in int32, bits."""
    s = torch.where(x >= 0, 3, -3)
    p = (x * 65537).to(torch.int32)
    return x // s, x % s, x**3, p * p, p.cumsum(-1, dtype=torch.int32) * 70000, (x >> 1) & 7, x.float().mean(-1)


@forward(X, dims=D)
def A8003SpecialRest(self, x):
    """logaddexp of -inf twice, sinc at 0, heaviside at 0, xlogy, entr, remainder of negatives, signbit of -0."""
    z = torch.where(x > 0, 0.0, -0.0)
    ninf = torch.full_like(x, float("-inf"))
    return torch.logaddexp(ninf, ninf), torch.sinc(x.round()), torch.heaviside(z, x), torch.xlogy(z, z), torch.special.entr(torch.sigmoid(x)), torch.remainder(x, -1.5), torch.fmod(x, -1.5)


@forward(X, dims=D, noted="with an infinity in an input")
def A8004SignbitOfZeros(self, x):
    """signbit and copysign where zeros are made by a product with a negative number."""
    z = x.clamp(0, 0) * -1.0
    return torch.signbit(z), torch.copysign(torch.ones_like(x), z), torch.signbit(x * 0.0)
