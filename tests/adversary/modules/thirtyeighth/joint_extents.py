# ruff: noqa: E501, B905 - attacks are written as users write them
"""Sizes: several dims together, rare pairs and triples, residues, tables that end, counts by decimals, equal sizes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, normal
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "tenths")
LONG = "N=1:1:2 T=1:40:150"
XT = "x:float32[N,T]"
XHW = "x:float32[N,2,H,W]"


@forward(XT, dims=LONG, kinds=FEW, feeds=tuple(normal(1, t) for t in (3, 6, 7, 12, 14, 17, 19, 150)), refused="the exported model differs from the module")
def A4025TimesByDecimalStep(self, x):
    """Frame times by `arange(0, T * 0.1, 0.1)`: at 3, 6, 7 ... there is one more than T, which is cut."""
    at = torch.arange(0, x.shape[1] * 0.1, 0.1)
    extra = at.shape[0] - x.shape[1]
    return at[: x.shape[1]] * x, torch.cat([x, x.new_zeros(x.shape[0], extra)], 1) if extra else x[:, :] + 0, at[-1] * x.mean(1)
@forward(XT, dims=LONG, kinds=FEW, feeds=tuple(normal(1, t) for t in (49, 98, 103, 107, 1)), refused="the exported model differs from the module")
def A4026UnitGridByStep(self, x):
    """`arange(0, 1, 1 / T)` has T elements, T + 1 at 49, and is laid over the row by its own length."""
    g = torch.arange(0, 1, 1 / x.shape[1])
    return F.interpolate(x[:, None], size=g.shape[0], mode="linear", align_corners=True)[:, 0] * g, (g > 0.5).sum() + 0 * x.sum(1).long()
@forward(XT, dims="N=1:1:2 T=1:9:30", kinds=FEW, feeds=tuple(normal(1, t) for t in (1, 2, 4, 5, 6, 10)), refused="the path through the module depends on the size")
def A4027FewerChunks(self, x):
    """`chunk(4)` gives two pieces of T = 2, three of 5 or 6 (2, 2, 1); weights of a list meet what there is."""
    total = x.new_zeros(x.shape[0])
    for w, piece in zip((1.0, -2.0, 3.0, 0.5), x.chunk(4, 1)):
        total = total + w * piece.sum(1) / piece.shape[1]
    return total, x.tensor_split(4, 1)[1].sum(1)
@forward(XHW, dims="N=1:1:2 H=16:40:80 W=16:40:80", kinds=FEW, feeds=(values_at(XHW, N=1, H=33, W=77), values_at(XHW, N=1, H=77, W=33), values_at(XHW, N=1, H=77, W=77)))
def A4028RareAreaTaller(self, x):
    """One joint condition: the area is a multiple of 77 * 11, and the map is taller than wide."""
    h, w = x.shape[2:]
    if (h * w) % 847 == 0 and h > w:
        return x.mean((2, 3)) * 2
    return x.amax((2, 3))
@forward(XHW, dims="N=1:1:2 H=4:12:24 W=4:18:36", kinds=FEW, feeds=tuple(values_at(XHW, N=1, H=h, W=w) for h, w in ((24, 36), (23, 35), (8, 4), (24, 24), (5, 25))), refused="the exported model differs from the module")
def A4029PoolByGcd(self, x):
    """Square cells of the largest common side."""
    k = math.gcd(x.shape[2], x.shape[3])
    y = x.unfold(2, k, k).unfold(3, k, k)
    return y.mean((-2, -1)).flatten(1).amax(1), y.shape[2] * y.shape[3] * x.mean()
@attack("x:float32[N,T,4]", dims="N=1:1:2 T=1:40:150", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,4]", N=1, T=t) for t in (63, 64, 65, 128, 129, 150)))
class A4030PositionsThatEnd(nn.Module):
    """Positions of a table, beyond it the table stretched; the last position for odd lengths is the mean of two."""
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 64, 4))
    def forward(self, x):
        t = x.shape[1]
        p = self.pos[:, :t] if t <= 64 else F.interpolate(self.pos.mT, size=t, mode="linear").mT
        return x + p, p[:, t // 2] + p[:, (t - 1) // 2]
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", dims="N=1:1:2 T=1:7:20 S=1:9:20", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,4]", "y:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((7, 7), (20, 20), (1, 20), (20, 1), (1, 1), (10, 20))))
def A4031AddIfAlike(self, x, y):
    """Streams of the same length are added, of one length broadcast; of others the shorter one is stretched."""
    if x.shape == y.shape or y.shape[1] == 1:
        z = x + y
    else:
        z = x + F.interpolate(y.mT, size=x.shape[1], mode="nearest").mT
    return z, (x.shape[1] == y.shape[1]) * z.sum(1)
@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:7:20", kinds=FEW)
def A4032SqueezedOne(self, x):
    """A score per row whose last axis is squeezed by number, and one whose axes of one go by a chain of means."""
    s = x.mean(-1, keepdim=True).squeeze(-1)
    return s.softmax(-1) @ x.mean(0), torch.atleast_2d(s)[..., -1:].squeeze(1)
@forward(XHW, dims="N=1:1:2 H=5:20:50 W=5:20:50", kinds=FEW, feeds=tuple(values_at(XHW, N=1, H=h, W=w) for h, w in ((10, 10), (50, 50), (5, 20), (25, 28), (29, 50))))
def A4033TopShareOfArea(self, x):
    """The mean of the highest 29 percent: int(0.29 * 100) is 28."""
    _n, _c, h, w = x.shape
    k = max(1, int(0.29 * h * w))
    v = x.flatten(1).topk(k, 1).values
    return v.mean(1), v[:, -1], x.flatten(1).kthvalue(max(1, round(0.5 * h * w)), 1).values
@forward(XT, dims="N=1:1:2 T=200:260:2100", kinds=("normal", "ones"), feeds=tuple(values_at(XT, N=1, T=t) for t in (255, 256, 257, 258, 2048, 2049, 2051, 2100)))
def A4034PositionsInNarrowTypes(self, x):
    """Positions in half, bfloat16, uint8 and int8, a count in half, and the size itself in half."""
    at = torch.arange(x.shape[1])
    half, brain, byte, signed = at.half(), at.to(torch.bfloat16), at.to(torch.uint8), at.to(torch.int8)
    return x + half, x * brain.float(), byte, signed, torch.tensor(x.shape[1]).half() * x.half().sum(1), (x > -9).half().sum(1), half.max() + 0 * x.sum(1)
@forward("x:float32[N,T]", "y:float32[N,S]", dims="N=1:1:2 T=2:20:60 S=2:25:60", kinds=("normal", "ascending"), feeds=tuple(values_at(XT, "y:float32[N,S]", N=1, T=t, S=s) for t, s in ((50, 60), (60, 50), (11, 51), (26, 51), (2, 60), (60, 2), (43, 22))), refused="the module cannot be exported")
def A4035NearestByLinspace(self, x, y):
    """Frames are picked by `linspace(0, T - 1, S)`, rounded, cut, and as int in place."""
    t, s = x.shape[1], y.shape[1]
    g = torch.linspace(0, t - 1, s)
    return x[:, g.round().long()] + y, x[:, g.long()], g.floor().sum() + 0 * y.sum(1), torch.linspace(0, t - 1, s, dtype=torch.int64)
@forward(XHW, dims="N=1:1:2 H=2:12:40 W=2:12:40", kinds=FEW, feeds=tuple(values_at(XHW, N=1, H=h, W=w) for h, w in ((2, 2), (3, 40), (4, 4), (31, 33), (32, 32), (40, 7))), refused="the path through the module depends on the size")
def A4036PyramidByLog(self, x):
    """As many levels as the shorter side has halvings; each level's mean counts less."""
    total, y = x.mean((2, 3)), x
    for i in range(int(math.log2(min(x.shape[2:])))):
        y = F.avg_pool2d(y, 2)
        total = total + y.amax((2, 3)) / 2 ** (i + 1)
    return total
@forward("x:float32[N,T]", "k:float32[N,S]", dims="N=1:1:2 T=3:20:70 S=1:5:40", kinds=("normal", "halves", "positive"), feeds=tuple(values_at(XT, "k:float32[N,S]", N=1, T=t, S=s) for t, s in ((32, 1), (30, 3), (30, 4), (64, 1), (70, 40), (33, 32), (3, 1))), refused="the module cannot be exported")
def A4037FftConvolve(self, x, k):
    """A long convolution by transforms of the next power of two, cut to 'same'."""
    full = x.shape[1] + k.shape[1] - 1
    n = 1 << (full - 1).bit_length() if full > 1 else 1
    y = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(k, n=n), n=n)[:, :full]
    start = (k.shape[1] - 1) // 2
    return y, y[:, start : start + x.shape[1]]
@forward("x:float32[N,H,W]", dims="N=1:2:6 H=4:12:40 W=4:20:60", kinds=FEW, feeds=tuple(values_at("x:float32[N,H,W]", N=n, H=h, W=w) for n, h, w in ((3, 13, 39), (6, 10, 60), (5, 7, 35), (1, 40, 40), (2, 30, 60))), refused="the path through the module depends on the size")
def A4038TripleOfSizes(self, x):
    """Where N crops of H rows lie in W columns exactly (N * H == W) they are put beside each other first."""
    n, h, w = x.shape
    if n * h == w and n > 2:
        return x.reshape(1, n * h, w).mT.reshape(n, h, w) - x
    return x * 0.5
@forward(XHW, dims="N=1 H=32:48:128 W=32:64:128", kinds=FEW, feeds=tuple(values_at(XHW, N=1, H=h, W=w) for h, w in ((96, 54), (54, 96), (126, 126), (72, 128), (90, 120), (36, 64), (64, 64))))
def A4039AspectTable(self, x):
    """A bias by the nearest of four aspect ratios, which Python's min over a list finds; 16:9 exactly has one of its own."""
    h, w = x.shape[2:]
    ratios = [1.0, 4 / 3, 16 / 9, 9 / 16]
    i = min(range(4), key=lambda k: abs(w / h - ratios[k]))
    bias = [0.0, 1.0, 2.0, -1.0][i]
    if w * 9 == h * 16:
        bias += 0.5
    return x.mean((2, 3)) + bias
@forward(XHW, dims="N=1:1:2 H=32:50:96 W=32:50:96", kinds=FEW, feeds=tuple(values_at(XHW, N=n, H=h, W=w) for n, h, w in ((1, 32, 77), (1, 35, 44), (2, 96, 96), (1, 49, 41))), refused="the path through the module depends on the size")
def A4040HashOfSizes(self, x):
    """A seed by the sizes picks one of the signs, as stochastic depth with a fixed seed does."""
    h, w = x.shape[2:]
    key = (h * 2654435761 ^ w * 40503) & 0xFFFF
    if key % 251 == 7:
        return -x.sum((2, 3))
    return x.sum((2, 3))
@attack("x:float32[N,T,4]", dims="N=1 T=1:60:600", kinds=("normal", "ones"), feeds=tuple(values_at("x:float32[N,T,4]", N=1, T=t) for t in (1, 511, 512, 513, 600, 2)))
class A4041LogNScaling(nn.Module):
    """Qwen: queries times log(t) / log(512) beyond 512, from a list of Python floats made once; NTK's base as well."""
    def __init__(self):
        super().__init__()
        self.register_buffer("logn", torch.tensor([math.log(i, 512) if i > 512 else 1.0 for i in range(1, 1025)])[None, :, None], persistent=False)
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        t = x.shape[1]
        alpha = max(2 ** math.ceil(math.log(t, 2) + 1) / 512 - 1, 1)
        base = 10000 * alpha ** (4 / 2)
        inv = 1.0 / base ** (torch.arange(0, 4, 2).float() / 4)
        a = torch.arange(t)[:, None] * inv
        q = self.lin(x) * self.logn[:, :t]
        return q * torch.cat([a.cos(), a.sin()], -1)
@forward("q:float32[N,T,4]", "k:float32[N,S,4]", dims="N=1:1:2 T=1:5:12 S=1:9:12", kinds=FEW, feeds=tuple(values_at("q:float32[N,T,4]", "k:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((12, 1), (1, 12), (5, 5), (6, 5), (12, 11))))
def A4042CausalEitherAlignment(self, q, k):
    """`is_causal` aligns at the upper left; a mask by tril(S - T) at the lower right, whose first rows see nothing."""
    t, s = q.shape[1], k.shape[1]
    left = F.scaled_dot_product_attention(q[:, None], k[:, None], k[:, None], is_causal=True)[:, 0]
    mask = torch.ones(t, s, dtype=torch.bool).tril(s - t)
    a = (q @ k.mT / 2).masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)
    return left, a @ k, mask.sum(-1)
@forward(XT, dims="N=1:1:2 T=1:20:120", kinds=FEW, feeds=tuple(normal(1, t) for t in (1, 2, 3, 5, 10, 15, 30, 35, 45, 85, 120)))
def A4043RoundedLengths(self, x):
    """Lengths by Python's rounding: to the even, of decimals, of quotients, of rates."""
    t = x.shape[1]
    spans = (round(t / 2), round(0.15 * t), int(t * 1.1), int(t / 0.7), math.floor(t * 16000 / 44100), -(-t // 3), round(t * 0.35), int(t * 0.57))
    y = F.pad(x, (0, int(t / 0.7) + 1))
    return tuple(y[:, :s].sum(1) + s for s in spans)
@forward(XT, dims="N=1:1:2 T=1:20:70", kinds=FEW, feeds=tuple(normal(1, t) for t in (1, 3, 4, 5, 8, 31, 32, 63, 64, 65)), refused="the path through the module depends on the size")
def A4044DigitsOfLength(self, x):
    """A Haar transform of the largest power of two in T, the rest is left; blocks by the bits of T."""
    t = x.shape[1]
    p = 1 << (t.bit_length() - 1)
    y, out = x[:, :p], []
    while y.shape[1] > 1:
        a, b = y[:, ::2], y[:, 1::2]
        out.append((a - b) / 2)
        y = (a + b) / 2
    return torch.cat([y, *out[::-1], x[:, p:]], 1)
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", dims="N=1:1:2 T=1:9:20 S=1:12:20", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,4]", "y:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((1, 20), (20, 1), (9, 9), (10, 9), (9, 10))))
def A4045PadOrCropTo(self, x, y):
    """To the other stream's length by a pad that is negative where it is longer; then half of the excess at each side."""
    d = y.shape[1] - x.shape[1]
    z = F.pad(x, (0, 0, 0, d))
    c = F.pad(x, (0, 0, d // 2, d - d // 2), value=1.0)
    return z + y, c * y, y.roll(d, 1), y.diagonal(offset=-min(abs(d), y.shape[1] - 1), dim1=1, dim2=2).sum(-1)
@attack(XHW, dims="N=1:1:2 H=3:9:21 W=3:10:21", kinds=FINITE, feeds=tuple(values_at(XHW, N=1, H=h, W=w) for h, w in ((3, 3), (21, 21), (4, 5), (9, 3), (20, 7))))
class A4046UnpoolToSize(nn.Module):
    """SegNet: places of the maxima, back to the size before, by a transposed convolution with `output_size` as well."""
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1)
    def forward(self, x):
        y, at = F.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True)
        z = F.max_unpool2d(y, at, 2, 2, output_size=x.shape[2:])
        low = x[:, :, ::2, ::2]
        return z, self.up(low, output_size=x.shape[2:]), at.amax((2, 3)), F.adaptive_avg_pool2d(x, (x.shape[2] // 2, (x.shape[3] + 1) // 2))
@forward("x:float32[N,C,H,W]", dims="N=1:2:3 C=4 H=1:5:9 W=1:5:9", kinds=FEW, feeds=tuple(values_at("x:float32[N,C,H,W]", N=n, C=4, H=h, W=w) for n, h, w in ((3, 3, 3), (1, 1, 1), (2, 9, 1), (1, 1, 9), (3, 5, 5))), refused="the path through the module depends on the size")
def A4047PairwiseByEinsum(self, x):
    """Relations of rows and of columns, gram matrices, a diagonal by a repeated letter where the map is square only."""
    rows = torch.einsum("nchw,ncgw->nhg", x, x)
    cols = torch.einsum("nchw,nchv->nwv", x, x)
    tr = torch.einsum("nii->n", rows) - torch.einsum("nii->ni", cols).sum(-1)
    sq = torch.einsum("nchw,ncwh->n", x, x) if x.shape[2] == x.shape[3] else torch.einsum("nchw,nchw->n", x, x)
    return rows, tr, sq, torch.einsum("nchw,c,h->nw", x, torch.arange(4.0), x.mean((0, 1, 3)))
@forward(XT, "lengths:int64[N]=1:150", dims="N=1:2:3 T=1:60:150", kinds=("normal", "ones"), feeds=tuple((lambda t=t, k=k: {"x": np.ones((1, t), np.float32), "lengths": np.array([k])}) for t, k in ((150, 45), (100, 30), (70, 21), (10, 3), (150, 75), (125, 1), (90, 27), (130, 39), (110, 33))))
def A4048LengthsAgainstShares(self, x, lengths):
    """Valid frames against three tenths of the size; a ratio; frames per four with a ceiling of decimals."""
    t = x.shape[1]
    short = lengths <= 0.3 * t
    ratio = lengths / t
    out = torch.ceil(lengths * (-(-t // 4) / t)).long()
    at = torch.arange(t) / t
    return short, (ratio >= 0.7), out, (at < ratio[:, None]).sum(1), torch.floor(ratio * 10), (lengths * 0.1).ceil().int()
@forward(XHW, dims="N=1:1:2 H=2:10:40 W=2:12:40", kinds=FEW, feeds=tuple(values_at(XHW, N=1, H=h, W=w) for h, w in ((2, 2), (40, 40), (15, 40), (40, 15), (7, 3), (29, 10))), refused="the exported model differs from the module")
def A4049ShorterSideTo(self, x):
    """torchvision's resize of the shorter side to eleven, the longer by int(11 * long / short), capped at thirty; then the centre."""
    h, w = x.shape[2:]
    short, long = (w, h) if w <= h else (h, w)
    new_short, new_long = 11, int(11 * long / short)
    if new_long > 30:
        new_short, new_long = int(30 * new_short / new_long), 30
    nw, nh = (new_short, new_long) if w <= h else (new_long, new_short)
    y = F.interpolate(x, (nh, nw), mode="bilinear", antialias=True)
    top, left = round((nh - 3) / 2.0), round((nw - 3) / 2.0)
    return y, y[:, :, max(top, 0) : max(top, 0) + 3, max(left, 0) : max(left, 0) + 3].mean((2, 3))
