# ruff: noqa: E501 - attacks are written as users write them
"""Integer code: fixed point, saturation, packed nibbles, checks, hashes, tables, requantisation, calendars, whole numbers beside floats."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

FROM_ONE = "N=1:2:3 T=1:9:24"
EVEN = "N=1:2:3 T=2:10:24%2"
LONG = "N=1:2:3 T=1:9:300"


def _x(values, dtype):
    return lambda: {"x": np.array([values], dtype)}


def _full(low, high, n, dtype, seed=0):
    return lambda: {"x": np.random.RandomState(seed + n).randint(low, high, (2, n), dtype=np.int64).astype(dtype)}


SHORTS = (_x([-32768, 32767, -32768, -1, 1, 0, 16384, -16384], np.int16), _full(-32768, 32768, 24, np.int16), _x([-32768], np.int16), _full(-32768, 32768, 1, np.int16, 3))
BYTES = (_x([0, 255, 128, 127, 1, 254], np.uint8), _full(0, 256, 24, np.uint8), _x([255], np.uint8), _full(0, 256, 24, np.uint8, 5))
SIGNED = (_x([-128, 127, -1, 0, 1, 64, -64, -127], np.int8), _full(-128, 128, 24, np.int8), _x([-128], np.int8))
INTS = (_x([-(2**31), 2**31 - 1, -1, 0, 1, 65536, -65536, 46341], np.int32), _full(-(2**31), 2**31, 24, np.int32), _x([-(2**31)], np.int32))
LONGS = (_x([-(2**63), 2**63 - 1, -1, 0, 1, 2**53 + 1, 2**31, -(2**31) - 1], np.int64), _x([2**24 + 1, 2**25 + 1, 2**53 + 1, -(2**53) - 1], np.int64), _x([3037000500], np.int64))
IDS = (_x(list(range(-12, 12)), np.int64), _x([999, 1000, -1000, 100, 10, 0, -1], np.int64), _x([-7], np.int64))


@forward("x:int16[N,T]=-32768:32767", dims=FROM_ONE, feeds=SHORTS)
def A3625SaturatingMultiply(self, x):
    """gemmlowp: the high half of a doubled product, rounded; both ends saturate."""
    a, b = x.to(torch.int32), x.flip(1).to(torch.int32)
    ab = a * b
    nudge = torch.where(ab >= 0, 1 << 14, 1 - (1 << 14))
    high = torch.div(ab + nudge, 1 << 15, rounding_mode="trunc")
    both = (a == -32768) & (b == -32768)
    return torch.where(both, 32767, high).to(torch.int16), (ab >> 15).to(torch.int16), ab.clamp(-(1 << 20), 1 << 20) >> 5
def rounding_shift(x, exponent):
    mask = (1 << exponent) - 1
    remainder = x & mask
    threshold = (mask >> 1) + (x < 0).to(x.dtype)
    return (x >> exponent) + (remainder > threshold).to(x.dtype)
@forward("x:int32[N,T]=-2147483648:2147483647", dims=FROM_ONE, feeds=INTS)
def A3626RoundingShift(self, x):
    y = [rounding_shift(x, e) for e in (1, 4, 15, 30)]
    wide = x.long()
    return *y, (wide * 1518500250 + (1 << 30)) >> 31, ((wide * wide) >> 31).to(torch.int32), x // 65536, x % 65536, -x, x.abs()
@attack("x:int8[N,T]=-128:127", dims=FROM_ONE, feeds=SIGNED)
class A3627IntegerLinear(nn.Module):
    """An int8 layer: sums in int32, a scale per channel in fixed point, a zero point, saturation."""
    def __init__(self):
        super().__init__()
        r = np.random.RandomState(3)
        self.register_buffer("w", torch.tensor(r.randint(-127, 128, (5, 1)), dtype=torch.int8))
        self.register_buffer("b", torch.tensor(r.randint(-999, 999, 5), dtype=torch.int32))
        self.register_buffer("m", torch.tensor(r.randint(2**30, 2**31 - 1, 5), dtype=torch.int64))
        self.register_buffer("s", torch.tensor([6, 7, 8, 9, 10]))
    def forward(self, x):
        acc = (x[..., None].to(torch.int32) * self.w[:, 0].to(torch.int32)).cumsum(1, dtype=torch.int32) + self.b
        scaled = (acc.long() * self.m + (1 << 30)) >> 31
        out = (scaled + (1 << (self.s - 1))) >> self.s
        return (out + 3).clamp(-128, 127).to(torch.int8), acc, (acc.float() * (self.m.double() * 2.0**-40).float()).round().clamp(-128, 127).to(torch.int8)
@forward("x:uint8[N,T]=0:255", dims=FROM_ONE, feeds=BYTES)
def A3628NibblesUnpacked(self, x):
    """GPTQ and GGML: two four-bit codes per byte, signed by a zero point or by the fourth bit."""
    low, high = x & 15, x >> 4
    q = torch.stack([low, high], -1).flatten(1)
    signed = q.to(torch.int8) - 8
    two = torch.where(q > 7, q.to(torch.int16) - 16, q.to(torch.int16))
    table = torch.tensor([-1.0, -0.7, -0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.25, 0.3, 0.45, 0.6, 0.7, 1.0])
    scale = signed.abs().amax(1, keepdim=True)
    return signed, two, table[q.long()], table[q.int()] * scale, (q - 8), (q - 8) >> 1, (low << 4) | high
@forward("x:int8[N,T]=-128:127", dims=EVEN, feeds=(_x([-128, 127, -1, 0, 1, 64], np.int8), _full(-128, 128, 24, np.int8)))
def A3629NibblesPacked(self, x):
    q = (x >> 4).to(torch.int8)
    lo, hi = q[:, ::2], q[:, 1::2]
    packed = (hi << 4) | (lo & 0xF)
    back = torch.stack([(packed << 4) >> 4, packed >> 4], -1).reshape(x.shape)
    wide = x.view(x.shape[0], -1, 2).to(torch.int32)
    words = (wide[..., 0] & 0xFF) | (wide[..., 1] << 8)
    return packed, back == q, words, words.to(torch.int16), (words.to(torch.uint8).int() ^ 0x55)
@forward("x:uint8[N,T]=0:255", dims=LONG, feeds=(*BYTES, _full(0, 256, 300, np.uint8)))
def A3630Checksums(self, x):
    """Adler-32 by positions, Fletcher by running sums, a parity and an XOR folded by halves."""
    t = x.shape[1]
    w = x.to(torch.int64)
    a = (1 + w.sum(1)) % 65521
    b = (t + (w * torch.arange(t, 0, -1)).sum(1)) % 65521
    f = w.cumsum(1) % 255
    parity = torch.stack([(x >> i) & 1 for i in range(8)], -1).sum(-1) % 2
    y = x.sum(1, dtype=torch.uint8)
    return (b << 16) | a, f.sum(1) % 255, parity, y, 255 - y, x.cumsum(1, dtype=torch.uint8)
@forward("x:int64[N,T]=0:1000", dims=FROM_ONE, feeds=IDS[1:2])
def A3631RollingHash(self, x):
    """N-grams by a multiplicative hash in 32 bits that is kept in int64, and buckets by its upper bits."""
    h = torch.zeros_like(x)
    out = []
    for k in range(3):
        shifted = F.pad(x, (k, 0))[:, : x.shape[1]]
        h = (h * 0x9E3779B1 + shifted) & 0xFFFFFFFF
        h = h ^ (h >> 15)
        out.append(h % 509)
    signed = torch.where(h >= 2**31, h - 2**32, h).to(torch.int32)
    return torch.stack(out), h >> 22, signed, signed % 97, signed // 97, (h.float() / 2**32)
@forward("x:int32[N,T]=-2147483648:2147483647", dims=FROM_ONE, feeds=INTS)
def A3632XorShift(self, x):
    """A 32-bit generator by element in int32, whose right shift is arithmetic until it is masked."""
    x = x ^ (x << 13)
    x = x ^ ((x >> 17) & 0x7FFF)
    x = x ^ (x << 5)
    unit = (x & 0x7FFFFF).float() / 0x800000
    return x, unit, unit < 0.5, (x & 1).bool(), x * 1664525 + 1013904223, (unit * 6).long() + 1
@forward("x:int64[N,T]=-9000000000000000:9000000000000000", dims=FROM_ONE, feeds=LONGS)
def A3633WideWholeNumbers(self, x):
    """What 64 bits hold and doubles do not."""
    low, high = x & 0xFFFFFFFF, x >> 32
    return x // 10, x % 10, low, high, (high << 32) + low == x, x * 3, x - 1 > x, x.clamp(-(2**62), 2**62), x.sum(1), x.sort(1)[0], x.amax(1), x % 1000003, x // -7, torch.fmod(x, 60), (x // 1000).to(torch.int32)
@forward("x:int64[N,T]=-1000:1000", dims=FROM_ONE, feeds=IDS)
def A3635CalendarFromDays(self, x):
    """Civil dates from days since 1970, by eras, years of an era and the March trick."""
    z = x * 37 + 719468
    era = torch.div(z, 146097, rounding_mode="floor")
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    d = doy - (153 * mp + 2) // 5 + 1
    m = torch.where(mp < 10, mp + 3, mp - 9)
    y = yoe + era * 400 + (m <= 2)
    leap = ((y % 4 == 0) & (y % 100 != 0)) | (y % 400 == 0)
    return y, m, d, (x * 37 + 4) % 7, leap, (x - 3) // 7, torch.sin(2 * torch.pi * doy / 365.25)
@forward("x:int64[N,T]=-1000:1000", dims=FROM_ONE, feeds=IDS)
def A3636RoundedQuotients(self, x):
    """Halves up, halves to even, towards zero, away from zero, by whole numbers of both signs."""
    t = x.shape[1]
    up = (2 * x + t) // (2 * t)
    q, r = x // t, x % t
    even = q + ((2 * r > t) | ((2 * r == t) & (q % 2 != 0)))
    away = torch.sign(x) * ((x.abs() + t - 1) // t)
    return up, even, away, torch.div(x, t, rounding_mode="trunc"), x // -t, x % -t, torch.fmod(x, t), t // (x.abs() + 1), -t // (x.abs() + 1), (-t) % (x.abs() + 1), x * t // 3, torch.div(x, -3, rounding_mode="floor"), (x / t).round()
@forward("x:int64[N,T]=-1000:1000", "y:int64[N,T]=1:9", dims=FROM_ONE, feeds=(lambda: {"x": np.array([[-7, 7, -8, 8, 0, -1]]), "y": np.array([[2, 2, 8, 8, 3, 9]])},), refused="No ONNX function found")
def A3637GcdAndPowers(self, x, y):
    """Euclid for six rounds, a modular power by squaring, an inverse by Fermat."""
    a, b = x.abs(), y
    for _ in range(8):
        a, b = torch.where(b > 0, b, a), torch.where(b > 0, a % b.clamp(min=1), b)
    base, result = x % 97, torch.ones_like(x)
    e = y.clone()
    for _ in range(4):
        result = torch.where(e & 1 == 1, result * base % 97, result)
        base, e = base * base % 97, e >> 1
    return a, result, torch.gcd(x, y), torch.lcm(x, y), x.abs() ** (y % 4), (-1) ** y, torch.bitwise_left_shift(y, y), torch.bitwise_right_shift(x, y), x >> y
@forward("x:int16[N,T]=-32768:32767", dims=FROM_ONE, feeds=SHORTS)
def A3638BlockFloats(self, x):
    """A shared exponent for each row by its largest value, mantissas of eight bits, and back."""
    w = x.to(torch.int32)
    largest = w.abs().amax(1, keepdim=True)
    bits = sum(((largest >> i) > 0).to(torch.int32) for i in range(16))
    shift = (bits - 7).clamp(min=0)
    m = w >> shift
    half = torch.where(shift > 0, 1 << (shift - 1).clamp(min=0), 0)
    r = ((w + half) >> shift).clamp(-128, 127)
    return m.to(torch.int8), r.to(torch.int8), (r << shift).to(torch.int16), shift, w - (m << shift), (m * 2.0 ** shift)
@forward("x:uint8[N,3,H,W]=0:255", dims="N=1:1:2 H=1:6:11 W=1:7:12", feeds=(lambda: {"x": np.random.RandomState(0).randint(0, 256, (1, 3, 11, 12)).astype(np.uint8)}, lambda: {"x": np.full((1, 3, 1, 1), 255, np.uint8)}, lambda: {"x": np.random.RandomState(1).randint(0, 256, (2, 3, 5, 2)).astype(np.uint8)}))
def A3639YuvFixed(self, x):
    """BT.601 in whole numbers, chroma of every second pixel with rounding, and back."""
    r, g, b = x.to(torch.int32).unbind(1)
    y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16
    u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128
    v = ((112 * r - 94 * g - 18 * b + 128) >> 8) + 128
    uv = F.pad(torch.stack([u, v], 1).float(), (0, x.shape[3] % 2, 0, x.shape[2] % 2), mode="replicate").int()
    small = (uv[..., ::2, ::2] + uv[..., 1::2, ::2] + uv[..., ::2, 1::2] + uv[..., 1::2, 1::2] + 2) >> 2
    up = small.repeat_interleave(2, 2).repeat_interleave(2, 3)[..., : x.shape[2], : x.shape[3]]
    c, d, e = y - 16, up[:, 0] - 128, up[:, 1] - 128
    rgb = torch.stack([(298 * c + 409 * e + 128) >> 8, (298 * c - 100 * d - 208 * e + 128) >> 8, (298 * c + 516 * d + 128) >> 8], 1)
    return y.to(torch.uint8), small.to(torch.uint8), rgb.clamp(0, 255).to(torch.uint8)
@forward("x:uint8[N,H,W]=0:255", dims="N=1:1:2 H=1:6:11 W=1:7:12", feeds=(lambda: {"x": np.random.RandomState(0).randint(0, 256, (1, 11, 12)).astype(np.uint8)}, lambda: {"x": np.full((1, 1, 1), 255, np.uint8)}))
def A3640CensusAndSobel(self, x):
    """A census transform by comparisons of bytes, Hamming distances, gradients of bytes that wrap."""
    p = F.pad(x[:, None], (1, 1, 1, 1))[:, 0]
    h, w = x.shape[1:]
    code = torch.zeros_like(x)
    for k, (i, j) in enumerate([(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)]):
        code |= (p[:, i : i + h, j : j + w] >= x).to(torch.uint8) << k
    diff = code ^ code.roll(1, 2)
    v = diff - ((diff >> 1) & 0x55)
    v = (v & 0x33) + ((v >> 2) & 0x33)
    hamming = (v + (v >> 4)) & 0x0F
    gx = p[:, 1:-1, 2:].short() - p[:, 1:-1, :-2]
    return code, hamming, gx, gx.abs().clamp(max=255).to(torch.uint8), p[:, 1:-1, 2:] - p[:, 1:-1, :-2], (gx > 0).sum((1, 2)), x.float().mean().round()
@forward("x:float32[N,T]=-4:4", dims=FROM_ONE, kinds=("normal", "halves", "zeros", "tenths", "ones"), feeds=(_x([-4, 4, 0.5 / 64, -0.5 / 64, 1.5 / 64, -1.5 / 64, 127.5 / 64, -2.5 / 64], np.float32),))
def A3641TanhByTable(self, x):
    """A table of 256 entries with linear interpolation between them in Q6."""
    q = torch.round(x * 64).to(torch.int32)
    at = (q + 256) >> 1
    at = at.clamp(0, 254)
    table = torch.round(torch.tanh(torch.arange(-128, 128) / 32.0) * 32767).to(torch.int16)
    frac = (q + 256) & 1
    lo, hi = table[at].int(), table[at + 1].int()
    y = lo + ((hi - lo) * frac + 1) // 2
    return y, (y / 32768.0 * 127).round().to(torch.int8), at, (x * 64).to(torch.int8), torch.trunc(x * 64).long() % 3
@forward("x:float32[N,T]", dims=FROM_ONE, kinds=("normal", "halves", "zeros", "ones", "tenths", "positive"), feeds=(_x([0.0, -0.0, 1.0, -1.0, 0.5, 3.0e38, 1e-45, -2.5], np.float32), _x([0.0], np.float32)), refused="No ONNX function found")
def A3642BitsOfFloats(self, x):
    """The fast inverse root, exponents by bits, sign by bits, order keys."""
    i = x.view(torch.int32)
    exponent = ((i >> 23) & 0xFF) - 127
    mantissa = (i & 0x7FFFFF) | 0x3F800000
    key = torch.where(i < 0, ~i, i ^ -(2**31))
    y = (0x5F3759DF - (x.abs().view(torch.int32) >> 1)).view(torch.float32)
    return exponent, mantissa.view(torch.float32), key, y * (1.5 - 0.5 * x.abs() * y * y), i < 0, (i & -65536).view(torch.float32), x.half().view(torch.int16)
@forward("x:int64[N,T]=0:11", dims=LONG, feeds=(_x(list(range(12)) * 2, np.int64), _x([11], np.int64)))
def A3643CountsOfSymbols(self, x):
    """Counts by comparison, a prefix table, Huffman lengths by thresholds, and Rice codes."""
    t = x.shape[1]
    counts = (x[..., None] == torch.arange(12)).sum(1)
    table = counts.cumsum(1) - counts
    rank = (x[:, :, None] == x[:, None]).tril(-1).sum(-1)
    place = table.gather(1, x) + rank
    out = torch.zeros_like(x).scatter(1, place, x)
    bits = torch.where(counts * 2 > t, 1, torch.where(counts * 4 > t, 2, torch.where(counts * 16 >= t, 4, 8)))
    rice = (x >> 2) + 1 + 2
    return counts, place, out, (counts * bits).sum(1), rice.cumsum(1), counts.argmax(1), counts * 4096 // t, -(-counts * 7 // t)
@forward("x:int64[N,T]=0:9", "n:int64[N]=1:24", dims="N=1:2:3 T=1:9:24", feeds=(lambda: {"x": np.array([[9] * 24]), "n": np.array([24])}, lambda: {"x": np.array([[9] * 19, [1] * 19]), "n": np.array([19, 1])}), refused="the path through the module depends on the size")
def A3644DigitsToNumbers(self, x, n):
    """Digits with lengths, by powers of ten that overflow from twenty digits on, and back to digits."""
    i = torch.arange(x.shape[1])
    power = (n[:, None] - 1 - i).clamp(min=0)
    ten = torch.ones_like(power)
    for k in range(x.shape[1]):
        ten = torch.where(power > k, ten * 10, ten)
    value = (x * ten * (i < n[:, None])).sum(1)
    back = (value[:, None] // ten) % 10
    return value, back, value % 97, value.to(torch.int32), (value / 7), (10**power.clamp(max=9))
@forward("x:bool[N,T]", dims=LONG)
def A3645BooleansAsBits(self, x):
    """Words of eight from booleans with a padded end, runs, majority, and a shift register."""
    n, t = x.shape
    b = F.pad(x, (0, -t % 8)).view(n, -1, 8)
    weights = 2 ** torch.arange(7, -1, -1)
    words = (b * weights).sum(-1)
    bytes_ = (b.to(torch.uint8) << torch.arange(8, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)
    flips = (x[:, 1:] != x[:, :-1]).sum(1)
    return words, bytes_, flips, x.sum(1) * 2 > t, x.cumsum(1) % 2 == 1, x.float().mean(1) >= 0.3, x.any(1) & ~x.all(1), x.int().diff(dim=1), words.sum(1) / t, x + x, x * 3 - 1, ~x & x.flip(1)
@forward("x:int32[N,T]=-30:30", "y:uint8[N,T]=0:255", dims=FROM_ONE, feeds=(lambda: {"x": np.array([[-1, 1, 30, -30]], np.int32), "y": np.array([[255, 0, 128, 127]], np.uint8)},), refused="the exported model differs from the module")
def A3646KindsMeet(self, x, y):
    """Signed and unsigned, narrow and wide, with numbers, lists and 0-dim tensors."""
    s = y.to(torch.int8)
    one = torch.tensor(300)
    return x + y, y - x, s * y, torch.maximum(x, y), y > s, y == -1, s < 100, y + one, y * 1.5, s // 3, y // -3, torch.where(x > 0, y, s), torch.where(x > 0, y, -1), torch.cat([y, s], 1), y.clamp(-5, 100), s.clamp(max=100), torch.stack([x.sum(1), y.sum(1)]), y.pow(2), s**3, x.remainder(y.int() + 1), -y, ~y, y.sign(), s.abs()
@attack("x:int64[N,T]=-50:50", dims=FROM_ONE, feeds=IDS)
class A3647EmbeddingOfWholes(nn.Module):
    """Ids clipped, shifted, folded and split; rows of an int8 table with a scale per row and a padding row."""
    def __init__(self):
        super().__init__()
        r = np.random.RandomState(5)
        self.register_buffer("table", torch.tensor(r.randint(-128, 128, (16, 6)), dtype=torch.int8))
        self.register_buffer("scale", torch.tensor(r.rand(16) * 0.1, dtype=torch.float32))
        self.register_buffer("bias", torch.tensor(r.randint(0, 200, 16), dtype=torch.uint8))
    def rows(self, ids):
        return self.table[ids].float() * self.scale[ids, None]
    def forward(self, x):
        ids = torch.where((x < 0) | (x >= 48), 0, x // 3 + 0)
        pad = ids == 0
        y = self.rows(ids).masked_fill(pad[..., None], 0)
        codes = self.table.index_select(0, ids.flatten()).view(*x.shape, 6)
        total = codes.sum(1, dtype=torch.int32) // (~pad).sum(1, keepdim=True).clamp(min=1)
        return y.sum(1) / (~pad).sum(1, keepdim=True), total, codes.amax(1), self.bias[ids] + self.bias[x % 16], (self.bias[ids] * 2).float(), codes @ codes.mT
@forward("x:float16[N,T]=-300:300", dims=FROM_ONE, kinds=("normal", "halves", "zeros", "tenths"), feeds=(_x([0.1, 0.7, 127.4, 127.5, 128.5, -128.5, -300, 2.5, 0.3, 255.9], np.float16), _x([0.05], np.float16)))
def A3648HalvesToCodes(self, x):
    """Codes of half-precision activations: scale by the largest, round in half, decimals that halves lack."""
    scale = x.abs().amax(1, keepdim=True) / 127
    q = torch.round(x / scale.clamp(min=1e-3)).to(torch.int8)
    fixed = (x * 0.3).round()
    z = torch.clamp(x * 10 + 0.5, 0, 255).to(torch.uint8)
    return q, q * scale, fixed, z, (x - q * scale).abs() < 0.05, (x.to(torch.bfloat16) * 0.1).float(), (x // 0.1), x % 0.1, x.floor().to(torch.int16) // 7, (x * 0.1).to(torch.int32), x.float() * 0.1 == (x * 0.1).float(), torch.isclose(x, x.new_tensor(0.1), rtol=0, atol=0.05)
@forward("x:int64[N,T]=0:200", dims=LONG, feeds=(_x([0, 199, 200, 1, 7, 100], np.int64), _x([3], np.int64)), refused="the exported model differs from the module")
def A3649FramesToSamples(self, x):
    """Times in frames, samples, milliseconds and ticks, by whole numbers, decimals and sizes."""
    t = x.shape[1]
    ms = x * 1000 * 256 // 22050
    sec = x * 256 / 22050
    frames = torch.floor(sec * 100 + 0.5).long()
    ticks = (x * 0.02 * 90000).long()
    share = (x * t) // 200
    inside = x < 0.7 * t
    return ms, sec, frames, ticks, share, inside, (x / t * 10).long(), (x * (1 / t)).floor(), x // (t * 0.1), (x + 0.5) / t, (x - t) // 2, x.float() * 256 // 160, x % (0.25 * t)
