# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Fewer bits: quantisers without training, fixed point, codecs of speech in whole numbers, checksums, means and products of whole numbers."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "bytes")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


@forward("a:int32[N,T]=-2000000:2000000", dims=ROWS, feeds=(lambda: {"a": np.array([[0, 1, -1, 2, -2, 3, -3, 1999999, -1999999, 12345, -12345, 2**22, -(2**22)]], np.int32)},))
def A4300RequantiseAsTflite(self, a):
    """Saturating rounding doubling high product by a multiplier of 31 bits, a rounding shift whose ties go away from zero, an offset, int8."""
    p = a.long() * 1340829453
    nudge = torch.where(p >= 0, 1 << 30, 1 - (1 << 30))
    high = torch.div(p + nudge, 1 << 31, rounding_mode="trunc").int()
    rest = high & 1023
    over = 511 + (high < 0).int()
    y = (high >> 10) + (rest > over).int()
    return high, (y - 3).clamp(-128, 127).to(torch.int8)
@attack(X4, dims=ROWS, kinds=FEW, feeds=(halves(1, 3, 4), lambda: {"x": np.array([[[127, 63.5, -0.5, 0.5], [0, 0, 0, 0], [254, 127, 1, 3]]], np.float32)}))
class A4301RowsToInt8(nn.Module):
    """A scale for each row by its largest, whole numbers multiplied as whole numbers, and both scales put back."""
    def __init__(self):
        super().__init__()
        w = torch.randn(3, 4)
        s = w.abs().amax(1) / 127
        self.register_buffer("s", s)
        self.register_buffer("q", (w / s[:, None]).round().to(torch.int8))
    def forward(self, x):
        s = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
        q = (x / s).round().clamp(-128, 127).to(torch.int8)
        acc = torch.matmul(q.int(), self.q.int().t())
        return acc.float() * s * self.s, acc, q
@forward(XT, dims="N=1:2:2 T=1:9:30", kinds=FEW, feeds=(lambda: {"x": np.array([[1, 2, 4, 8, -8, 7.75, 0.4375, 0.0625, 0, 0, 0]], np.float32)}, lambda: {"x": (2.0 ** np.arange(-14, 16))[None].astype(np.float32)}, normal(1, 8), normal(1, 16)))
def A4302SharedExponents(self, x):
    """MX: blocks of eight behind a pad, an exponent for each by the floor of log2, six bits for the rest, zeros guarded."""
    n, t = x.shape
    b = F.pad(x, (0, -t % 8)).view(n, -1, 8)
    top = b.abs().amax(-1, keepdim=True)
    e = torch.where(top > 0, torch.floor(torch.log2(torch.where(top > 0, top, torch.ones_like(top)))), torch.zeros_like(top))
    step = torch.exp2(e - 4)
    y = (b / step).round().clamp(-31, 31) * step
    return y.reshape(n, -1)[:, :t], e[..., 0].to(torch.int8)
@attack("x:float32[N,16]", dims="N=1:2:5", kinds=FEW)
class A4303FourBitsNormal(nn.Module):
    """NF4: the nearest of sixteen numbers, two to a byte, and back by a table; the largest of a block as its scale."""
    def __init__(self):
        super().__init__()
        self.register_buffer("code", torch.tensor([-1.0, -0.69619, -0.52507, -0.39492, -0.28444, -0.18477, -0.09105, 0.0, 0.07958, 0.16093, 0.24611, 0.33792, 0.44071, 0.56262, 0.72296, 1.0]))
    def forward(self, x):
        b = x.view(-1, 2, 8)
        top = b.abs().amax(-1, keepdim=True)
        i = ((b / top.clamp(min=1e-12))[..., None] - self.code).abs().argmin(-1).to(torch.uint8)
        packed = (i[..., ::2] << 4) | i[..., 1::2]
        back = torch.stack([packed >> 4, packed & 15], -1).flatten(-2).long()
        return packed, (self.code[back] * top).reshape(x.shape)
@forward(XT, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[1.0625, 1.1875, 448, 464, 500, -17, -18, 19, 0.001953125, 0.0009765625, 0.0029]], np.float32)},))
def A4304Float8AndBack(self, x):
    """Clamped to what float8_e4m3fn holds, with its ties and denormals, and the same by hand."""
    y = x.clamp(-448, 448).to(torch.float8_e4m3fn).float()
    m, e = torch.frexp(x.clamp(-448, 448))
    step = torch.ldexp(torch.ones_like(x), e.clamp(min=-5) - 4)
    return y, (x.clamp(-448, 448) / step).round() * step
@forward(XT, dims=ROWS, kinds=("normal", "halves", "zeros", "ones", "bytes"), feeds=(lambda: {"x": np.array([[0, 1, 2, 0.5, 0.25, 3, -4, 1 / 512, -1 / 256, 600]], np.float32)},))
def A4305PowersOfTwo(self, x):
    """Sign times a power of two: the exponent rounded, clamped to nine steps, nothing below the smallest."""
    a = x.abs()
    e = torch.log2(a.clamp(min=2.0**-12)).round().clamp(-8, 0)
    return torch.sign(x) * 2**e * (a >= 2.0**-8), e.int(), torch.pow(2, e.int())
@attack("x:uint8[N,3,H,W]=0:255", dims="N=1:1:2 H=3:8:16 W=3:8:16")
class A4306ConvolutionOfWholeNumbers(nn.Module):
    """Weights int8 with a scale and a zero point for each channel, an image with one of its own, 'same' padding by the zero point."""
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(-128, 128, (4, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("s", torch.rand(4) / 64)
        self.register_buffer("z", torch.tensor([0, 3, -7, 127], dtype=torch.int32))
    def forward(self, x):
        w = (self.w.int() - self.z[:, None, None, None]).float() * self.s.view(-1, 1, 1, 1)
        y = F.conv2d((F.pad(x.int(), (1, 1, 1, 1), value=114) - 114).float() / 64, w)
        lo, hi = y.amin((1, 2, 3), keepdim=True), y.amax((1, 2, 3), keepdim=True)
        s = (hi - lo).clamp(min=1e-4) / 255
        return y, s
@forward(XT, dims="N=1:2:3 T=2:9:60", kinds=FEW, feeds=(normal(1, 49), normal(1, 50), normal(1, 51), halves(2, 60)))
def A4307ClipByPercentile(self, x):
    """The clip is an order statistic whose place is rounded from the size, both tails; what is outside is counted."""
    t = x.shape[1]
    k = max(1, int(0.99 * t + 0.5))
    hi = x.kthvalue(k, 1, keepdim=True).values
    lo = -(-x).kthvalue(k, 1, keepdim=True).values
    mid = x.abs().topk(max(t // 10, 1), 1).values[:, -1]
    return torch.minimum(torch.maximum(x, lo), hi), ((x > hi) | (x < lo)).sum(1), mid
@forward("x:int32[N,H,W]=-100:100", "b:uint8[N,H,W]=0:255", dims="N=1:1:2 H=1:5:9 W=1:6:9", feeds=tuple(values_at("x:int32[N,H,W]=-100:100", "b:uint8[N,H,W]=0:255", N=1, H=h, W=w) for h, w in ((1, 1), (2, 1), (9, 9), (3, 8))))
def A4308MeansOfWholeNumbers(self, x, b):
    """Sums by // of an area, by a mean that is rounded, by cutting, of bytes in bytes, and a box of four by a shift."""
    h, w = x.shape[1:]
    s = x.sum((1, 2))
    m = x.float().mean((1, 2))
    box = (b[:, :-1, :-1].short() + b[:, 1:, :-1] + b[:, :-1, 1:] + b[:, 1:, 1:] + 2) >> 2
    return s // (h * w), torch.div(s, h * w, rounding_mode="trunc"), m.round().int(), b.float().mean(2).round().to(torch.uint8), box.to(torch.uint8), (x - s[:, None, None] // (h * w)).abs().sum((1, 2)), b.sum(2, dtype=torch.uint8), (b // 2 + b.roll(1, 2) // 2 + (b & b.roll(1, 2) & 1))
@forward("x:int32[N,T]=-70000:70000", "k:int64[N,T]=0:9999999", dims="N=1:1:2 T=1:8:40", feeds=(lambda: {"x": np.array([[70000, -70000, 46341, 46340, -46341, 65536]], np.int32), "k": np.array([[9999999, 1, 0, 2**31, 2**32 + 1, 2**40]])},))
def A4309ProductsThatWrap(self, x, k):
    """int32 squares and products with sizes wrap; hashes modulo 2^32 and a prime; keys by a pair of ids; a polynomial of the place."""
    t = x.shape[1]
    i = torch.arange(t, dtype=torch.int32)
    return x * x, x * (t * 40000), (k * 2654435761) % 2**32 % 1009, k * t + torch.arange(t), i * i * 50000 + x, (x.short() * x.short()), x.cumsum(1), x.sum(1), (x * x).sum(1, dtype=torch.int32), ((k ^ (k >> 16)) * 73244475) & 0xFFFFFFFF
@forward(XT, dims=ROWS, kinds=FEW, feeds=(halves(1, 24), lambda: {"x": np.array([[0.49999997, -0.49999997, 0.5, 1.5, 2.5, -0.5, -1.5, 8388609, 16777217, 0.05, 0.15, 0.25, -0.35]], np.float32)}))
def A4310HalvesToWholeNumbers(self, x):
    """Half up by a cast, by a floor, by round, to even; half away from zero by signs; rounding to tenths and to tens; ceil of a difference."""
    away = torch.sign(x) * (x.abs() + 0.5).floor()
    return (x + 0.5).int(), (x + 0.5).floor().long(), x.round().long(), away, torch.round(x, decimals=1), torch.round(x, decimals=-1), (x - 0.5).ceil().int(), torch.trunc(x + 0.5 * torch.sign(x)).short(), (x * 2).round() / 2
@attack("code:uint8[N,T]=0:15", dims="N=1:1:2 T=1:9:32", feeds=(lambda: {"code": np.full((1, 32), 7, np.uint8)}, lambda: {"code": np.array([[15, 15, 15, 15, 0, 8, 7, 7, 7, 7, 7, 12]], np.uint8)}))
class A4311ImaAdpcm(nn.Module):
    """IMA's decoder: a table of steps, an index that is clamped, shifts of the step by bits of a nibble, a predictor within 16 bits."""
    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.tensor([int(7 * 1.1**i) for i in range(89)]))
        self.register_buffer("move", torch.tensor([-1, -1, -1, -1, 2, 4, 6, 8]))
    def forward(self, code):
        c = code.long()
        p = torch.zeros(c.shape[0], dtype=torch.long)
        i = torch.zeros_like(p)
        out = []
        for t in range(c.shape[1]):
            k = c[:, t]
            s = self.step[i]
            d = (s >> 3) + torch.where((k & 4) > 0, s, 0) + torch.where((k & 2) > 0, s >> 1, 0) + torch.where((k & 1) > 0, s >> 2, 0)
            p = (p + torch.where((k & 8) > 0, -d, d)).clamp(-32768, 32767)
            i = (i + self.move[k & 7]).clamp(0, 88)
            out.append(p)
        return torch.stack(out, 1).to(torch.int16), i
@forward("x:int16[N,T]=-32768:32767", dims=ROWS, feeds=(lambda: {"x": np.array([[-32768, 32767, 0, -1, 1, -132, 132, 32635, -32635, 131, 4, 8, -8]], np.int16)},))
def A4312LawsOfG711(self, x):
    """mu-law in whole numbers: a bias, a clip, the segment by how many bounds are passed, inverted bits; and its decoder."""
    v = x.int()
    sign = torch.where(v < 0, 0x80, 0)
    m = v.abs().clamp(max=32635) + 132
    seg = torch.bucketize(m, torch.tensor([256, 512, 1024, 2048, 4096, 8192, 16384]), right=True).int()
    man = (m // (2 ** (seg + 3))) & 15
    code = (~(sign | (seg << 4) | man) & 0xFF).to(torch.uint8)
    u = ~code.int() & 0xFF
    back = (((u & 15) * 8 + 132) * 2 ** ((u >> 4) & 7)) - 132
    return code, torch.where((u & 0x80) > 0, -back, back).short()
@forward("b:uint8[N,T]=0:255", dims="N=1:1:2 T=1:6:20", feeds=(lambda: {"b": np.frombuffer(b"123456789", np.uint8)[None].copy()},))
def A4313Checksums(self, b):
    """CRC-8 and CRC-16 bit by bit over the bytes, Fletcher's sums modulo 255, an Adler, an exclusive or of all."""
    crc, c8 = torch.full((b.shape[0],), 0xFFFF, dtype=torch.int32), torch.zeros(b.shape[0], dtype=torch.int32)
    s1, s2 = torch.ones_like(c8), torch.zeros_like(c8)
    for t in range(b.shape[1]):
        v = b[:, t].int()
        crc, c8 = crc ^ v, c8 ^ v
        for _ in range(8):
            crc = (crc >> 1) ^ (0xA001 * (crc & 1))
            c8 = torch.where((c8 & 0x80) > 0, (c8 << 1) ^ 0x07, c8 << 1) & 0xFF
        s1 = (s1 + v) % 65521
        s2 = (s2 + s1) % 65521
    return crc, c8.to(torch.uint8), (s2.long() << 16) | s1
@forward("a:int16[N,T]=-32768:32767", "c:int8[N,T]=-128:127", dims=ROWS, feeds=(lambda: {"a": np.array([[-32768, 32767, -1, 0]], np.int16), "c": np.array([[-128, 127, -1, 0]], np.int8)},))
def A4314FixedPoint(self, a, c):
    """Q15: sums that saturate, products with their one overflow, negatives and lengths of the lowest number, doubling by a shift."""
    w, v = a.int(), c.short()
    q = ((w * w.roll(1, 1) + (1 << 14)) >> 15).clamp(-32768, 32767).short()
    return (w + w.flip(1)).clamp(-32768, 32767).short(), q, -c, c.abs(), -a, a.abs(), c << 1, (v * 127 // 64).clamp(-128, 127).to(torch.int8), c * c, c - 1, torch.sign(c) * c, ~c, c.clamp(min=-127).abs()
@forward("x:float32[N,T]=-8:0", dims="N=1:2:3 T=1:9:24", kinds=("normal", "zeros", "halves", "tenths"))
def A4315SoftmaxInWholeNumbers(self, x):
    """I-BERT: an exponential by halvings and a polynomial over 2^-16, all in whole numbers, and its shares in bytes."""
    q = (x * 65536).floor().long()
    q = q - q.amax(-1, keepdim=True)
    ln2 = int(math.log(2) * 65536)
    z = -q // ln2
    r = q + z * ln2
    b, c = int(1.353 * 65536), int(0.344 * 65536 * 65536 / 0.3585)
    e = torch.div((r + b) * (r + b) + c, 2 ** z.clamp(max=30), rounding_mode="floor")
    return (e * 255) // e.sum(-1, keepdim=True), e, z
@attack(X4, dims=ROWS, kinds=FINITE[:6], feeds=(halves(1, 4, 4),))
class A4316BitLinear(nn.Module):
    """BitNet: weights to -1, 0 and 1 by their mean length, rows to int8 behind an RMS norm; straight through by detach."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, 4))
        self.g = nn.Parameter(torch.ones(4))
    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.g
        s = 1.0 / self.w.abs().mean().clamp_(min=1e-5)
        w = self.w + ((self.w * s).round().clamp_(-1, 1) / s - self.w).detach()
        return F.linear(x, w), F.linear(F.hardtanh(x * 8, -7, 7) / 8, w)
@forward("a:int64[N,T]=0:99999999", "b:int32[N,T]=1:7", dims=ROWS, feeds=(lambda: {"a": np.array([[16777217, 33554435, 2**40 + 1, 9007199254740993, -16777217]]), "b": np.array([[1, 2, 3, 1, 7]], np.int32)},))
def A4317QuotientsOfLargeNumbers(self, a, b):
    """Whole numbers divided truly, averaged, compared with floats and rooted beyond 2^24; shares of a total; a count over a size."""
    f = a.float()
    return a / b, a / 10, f, (f == a), a.double().mean(1), a.double() / 3, a.sqrt(), (a % 1000) / 1000, (a > 5e7).sum(1) / a.shape[1], a // b, a.double().sum(1, keepdim=True) / a.shape[1] - a
@attack(XT, dims=ROWS, kinds=FEW, feeds=(halves(1, 24),))
class A4318FakeQuantisedLayers(nn.Module):
    """torch.fake_quantize by tensor and by channel with odd zero points, unsigned narrow ranges, learnt scales; numbers at the ends."""
    def __init__(self):
        super().__init__()
        self.register_buffer("s", torch.tensor([0.25, 0.5, 1.0]))
        self.register_buffer("z", torch.tensor([0, 5, -3], dtype=torch.int32))
    def forward(self, x):
        y = x[:, None].expand(-1, 3, -1)
        a = torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 15)
        b = torch.fake_quantize_per_channel_affine(y, self.s, self.z, 1, -8, 7)
        c = torch.clamp(torch.round(y / self.s[:, None]) + self.z[:, None], -127, 127)
        return a, b, (c - self.z[:, None]) * self.s[:, None], c.to(torch.int8)
@forward("x:float32[N,T]=0:1", dims=ROWS, kinds=("unit", "zeros", "ones", "halves"), feeds=(lambda: {"x": (np.arange(16) / 15).astype(np.float32)[None]},))
def A4319GrayCodeAndDither(self, x):
    """Sixteen grey levels, ordered dither by a matrix tiled to the size, Gray codes there and back, bit planes stacked and summed up."""
    t = x.shape[1]
    m = torch.tensor([0, 8, 2, 10, 12, 4, 14, 6]).repeat(-(-t // 8))[:t]
    v = (x * 255).to(torch.uint8).int()
    d = (v + m > 127).to(torch.uint8)
    k = v >> 4
    g = k ^ (k >> 1)
    b = g
    for s in (1, 2):
        b = b ^ (b >> s)
    planes = torch.stack([(v >> i) & 1 for i in range(8)], 1)
    return d, g, b, planes.bool(), (planes * 2 ** torch.arange(8)[:, None]).sum(1)
