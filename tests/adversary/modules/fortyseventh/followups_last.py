# ruff: noqa: E501, E731, RUF100 - attacks are written as users write them
"""Sizes through functions of C, operators with rules of their own, types of sound, outputs of other forms."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import NAN, ODD, own
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
TABLE = [1.0, 0.5, 2.0, -1.0, 3.0, 0.25, 7.0]
MANY = (*range(1, 70), 127, 128, 129, 255, 256, 499, 500, 501, 512, 777, 1000, 1023, 1024, 2048, 4096, 4999, 5000)
PCM = "x:int16[N,T]=-32768:32767"


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the")
def A5857TableByRemainder(self, x):
    """A list of Python indexed by the length's remainder."""
    return x * TABLE[x.shape[1] % 7]


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends")
def A5858PowersOfTwoAreFast(self, x):
    """A power of two is told by bits, and gets another scale."""
    t = x.shape[1]
    return x * (1.0 if t & (t - 1) == 0 else 0.5)


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the")
def A5859LastDigit(self, x):
    """The last and first digit of the length as text."""
    s = str(x.shape[1])
    return x * int(s[-1]) + int(s[0])


@forward(X, **long(X, sizes=MANY))
def A5860BitsOfLength(self, x):
    """Shifts, ors, xors and complements of the length."""
    t = x.shape[1]
    return x * (t >> 2), x + (t | 1), x - (t ^ 5), x * (~t), x + (t & 7), x * (t << 1)


@forward(X, **long(X, sizes=MANY))
def A5861RoundedToEights(self, x):
    """make_divisible: to eights by int(t + 4) // 8, not below nine tenths, and round() of a quotient with its ties."""
    t = x.shape[1] * 0.35
    n = max(8, int(t + 8 / 2) // 8 * 8)
    if n < 0.9 * t:
        n += 8
    return torch.ones(n) * x.mean(), x * round(x.shape[1] / 8), x + round(x.shape[1], -1)


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the")
def A5862GreatestDivisor(self, x):
    """gcd and lcm with twelve, a power by modulus, a fmod and a remainder of negative numbers."""
    t = x.shape[1]
    return x * math.gcd(t, 12), x + t % -7, x * (-t // 3), x - math.fmod(-t, 7)


@forward(X, **long(X, sizes=MANY))
def A5863LogarithmOfLength(self, x):
    """How many halvings: floor and ceil of log2, by floats, at powers of two too."""
    t = x.shape[1]
    return x * math.floor(math.log2(t)), x + math.ceil(math.log(t, 2)), x * math.ceil(math.log10(t + 1))


@forward(X, **long(X, sizes=MANY), refused="the module looks its size up in a di")
def A5864SetOfLengths(self, x):
    """A set and a dict of lengths."""
    t = x.shape[1]
    return x * {512: 2.0, 1024: 4.0}.get(t, 1.0) + (t in {37, 777})


@forward("x:float32[N,T]", "y:float32[N,S]", "z:float32[N,R]", dims="N=1:1:1 T=1:100:300 S=1:90:300 R=1:80:300", kinds=FEW, feeds=tuple((lambda t=t, s=s, r=r: {"x": np.ones((1, t), np.float32), "y": np.ones((1, s), np.float32), "z": np.ones((1, r), np.float32)}) for t, s, r in ((123, 45, 67), (3, 4, 5), (100, 90, 80), (300, 300, 300), (5, 12, 13), (8, 15, 17), (119, 120, 169), (1, 1, 2))))
def A5865Pythagoras(self, x, y, z):
    """Three lengths that are the sides of a right triangle."""
    t, s, r = x.shape[1], y.shape[1], z.shape[1]
    if t * t + s * s == r * r:
        return x.flip(1) * 2
    return x + y.sum() + z.sum()


@forward(X, **seq(X, own=own(np.array([[1, 1, 2, 2, 1, 2, 3, 3]], np.float32), np.zeros((1, 5), np.float32))))
def A5866LastOfEqualMaxima(self, x):
    """cummax and cummin with places at ties, max and min with places, mode, kthvalue's value, argmax of equals."""
    r = x.round()
    a, i = r.cummax(1)
    b, j = r.cummin(1)
    return a, i, b, j, r.max(1).indices, r.min(1).indices, r.argmax(1), (r == r.amax(1, keepdim=True)).int().argmax(1)


@forward(X4, **seq(X4, own=own(np.full((1, 2, 4), np.nan, np.float32), np.full((1, 2, 4), np.inf, np.float32))), noted="with a NaN among its inputs")
def A5867BetaOfZero(self, x):
    """addmm with a beta of zero passes over what is not finite; baddbmm with both; addcmul; lerp at its ends."""
    y = torch.ones(x.shape[0], x.shape[1], 4)
    w = torch.eye(4)
    return torch.addmm(x[0], y[0], w, beta=0), torch.baddbmm(x, y, w.expand(x.shape[0], 4, 4), beta=0, alpha=2), torch.lerp(y, x.clamp(-9, 9), 1.0), torch.addcdiv(y, x.clamp(-9, 9), y * 2, value=-1)


@forward(X4, **seq(X4), refused="the exported model differs from the")
def A5868FewerChunks(self, x):
    """chunk gives fewer than asked; the first and last of them, and how many."""
    c = x.chunk(4, 1)
    return c[0], c[-1], x * len(c)


@forward(X4, **seq(X4))
def A5869SplitsBeyond(self, x):
    """tensor_split by places beyond the end, narrow from the end, select with a remainder."""
    a, b, c = torch.tensor_split(x, (2, 5), 1)
    return a, b, c, x.narrow(1, x.shape[1] - 1, 1), x.select(1, 7 % x.shape[1]), x[:, -3:-1], x[:, 100:]


@forward(X4, **seq(X4, low=2), refused="the module cannot be exported: the m")
def A5870TrianglesOfPairs(self, x):
    """Of two and more (at one the exporter ends the process by SIGFPE): pairs above the diagonal by triu_indices and combinations, a squareform, kron and block_diag of small ones."""
    t = x.shape[1]
    i, j = torch.triu_indices(t, t, 1)
    d = (x[:, i] - x[:, j]).square().sum(-1)
    sq = torch.zeros(x.shape[0], t, t)
    sq[:, i, j] = d
    return d, sq + sq.transpose(1, 2), torch.kron(torch.eye(2), x[0, :1, :2]), torch.cartesian_prod(torch.arange(t), torch.arange(2)), torch.tril_indices(t, 3, -1)


@forward(X4, MT, **seq(X4, MT), refused="the module cannot be exported: the m")
def A5871WritersOfKinds(self, x, m):
    """masked_scatter, index_fill, index_copy, select_scatter, slice_scatter, diagonal_scatter, take and put."""
    t = x.shape[1]
    at = torch.arange(0, t, 2)
    return x.masked_scatter(m[..., None].expand_as(x), x.flip(1)), x.index_fill(1, at, -1.0), x.index_copy(1, at, x[:, at] * 2), torch.select_scatter(x, x[:, 0] * 3, 1, t - 1), torch.slice_scatter(x, x[:, : t // 2], 1, t - t // 2, t), torch.diagonal_scatter(x[0], torch.zeros(min(t, 4)), 0), torch.take(x, torch.tensor([0, -1, 2])), x.put(torch.tensor([0, 1]), torch.tensor([5.0, 6.0]))


@forward(PCM, **seq(PCM))
def A5872PcmOfShorts(self, x):
    """PCM in int16: to floats, a gain with saturation and back, absolute values, sums, shifts, a mean of two channels."""
    f = x.float() / 32768.0
    y = (f * 1.5 * 32767).round().clamp(-32768, 32767).to(torch.int16)
    return f, y, x.abs(), x.sum(1), x >> 8, (x.int() * x.int()).float().mean(1).sqrt(), -x, x + x, x * 3, x // 2, x / 2, x.clamp(-1000, 1000), x.amax(1), (x > 30000).any(1)


@forward("x:float64[N,T]", **seq("x:float64[N,T]"))
def A5873DoublesAsInputs(self, x):
    """Inputs of doubles that are cast at once."""
    return x.float() * 2, x.to(torch.float16), (x > 0.45).int()


class Pair(NamedTuple):
    """Two of which one may be none."""

    a: torch.Tensor
    b: torch.Tensor | None = None


@forward(X4, **seq(X4))
def A5874OutputsOfForms(self, x):
    """The input itself, twice the same, a view, an expanded one, a pair with none, an empty list, nested."""
    y = x * 2
    return {"x": x, "y": y, "again": y, "view": y.transpose(1, 2), "wide": y[:, :1].expand(-1, 3, -1), "pair": Pair(y[0]), "none": [], "deep": [{"z": (y.sum(),)}]}


@forward(X, **seq(X), refused="the module cannot be exported: the m")
def A5875DifferencesOfHigherOrder(self, x):
    """diff of the second order with what is prepended, trapezoids, running ones, vander, rot90, roll of two axes."""
    return torch.diff(x, n=2, dim=1, prepend=x[:, :1] * 0), torch.trapezoid(x, dx=0.5, dim=1), torch.cumulative_trapezoid(x, dim=1), torch.rot90(x, 1, (0, 1)), torch.roll(x, (1, -2), (0, 1)), torch.vander(x[0], 3), torch.logcumsumexp(x, 1), x.cumprod(1)


@forward(X, MT, **seq(X, MT, own=(lambda: {"x": NAN, "m": np.ones((1, NAN.shape[1]), bool)},)))
def A5876MeansWithoutNaN(self, x, m):
    """nanmean, nansum, nanmedian, isin, isclose, and a masked minimum with a mask of none."""
    y = torch.where(m, x, torch.nan)
    return y.nanmean(1), y.nansum(1), torch.isin(x.round(), torch.tensor([0.0, 1.0, -2.0])), torch.isclose(x, x.round(), atol=0.1), torch.where(m, x, torch.inf).amin(1), y.isnan().all(1), torch.nan_to_num(y.nanmean(1), 3.0)


@forward(X, **seq(X, own=own(ODD[:, :12], ODD[:, 6:])))
def A5877InfinityIntoQuotients(self, x):
    """Infinities in quotients by themselves, differences, products with zero, powers, exponentials of their negatives."""
    return x / x.flip(1), x - x.flip(1), x * 0, x.pow(2).sqrt(), torch.exp(-x.abs()), x.sigmoid(), x.tanh(), x.softmax(1), x.atan(), torch.logaddexp(x, x.flip(1)), F.softplus(x), F.silu(x), x.clamp(min=-5), F.elu(x)


@forward(X, **seq(X, own=own(ODD[:, :12], ODD[:, 6:])))
def A5878InfinityIntoWhole(self, x):
    """Infinities through floor, ceil, round, frac, trunc, sign, comparison, rounding of decimals, fmod by one, hypot."""
    return x.floor(), x.ceil(), x.round(), x.trunc(), x.frac(), x.sign(), x.round(decimals=2), torch.fmod(x, 1), torch.hypot(x, x), torch.atan2(x, x.flip(1)), x.remainder(3), x.floor_divide(2)


@forward("i:int64[N,T]=-9:9", "k:int64[N,T]=1:5", **seq("i:int64[N,T]=-9:9", "k:int64[N,T]=1:5"))
def A5879QuotientsOfIds(self, i, k):
    """Whole quotients and remainders by tensors of both signs in all roundings, powers, shifts by tensors, gcd."""
    return i // k, i % k, i // -k, i % -k, torch.fmod(i, k), torch.div(i, k, rounding_mode="trunc"), i / k, i**2, k**k, i << k, i >> k, torch.bitwise_and(i, k), i.abs() ** k, i // 2.5, i % 2.5


@attack("x:float32[N,2,D,H,W]", dims="N=1:1:1 D=1:3:5 H=1:4:6 W=1:5:6", kinds=FEW, feeds=tuple(values_at("x:float32[N,2,D,H,W]", N=1, D=d, H=h, W=w) for d, h, w in itertools.product((1, 2, 5), (1, 3, 6), (1, 2, 6))))
class A5880VolumesOfLayers(nn.Module):
    """Volumes: a grouped transposed convolution with output padding, trilinear twice, pools with ceil, a sampler."""

    def __init__(self):
        super().__init__()
        self.t = nn.ConvTranspose3d(2, 4, 3, 2, 1, output_padding=1, groups=2)

    def forward(self, x):
        y = self.t(x)
        g = F.affine_grid(torch.eye(3, 4)[None].expand(x.shape[0], 3, 4), (x.shape[0], 2, 3, 3, 3), align_corners=False)
        return y, F.interpolate(x, scale_factor=2, mode="trilinear"), F.grid_sample(x, g, align_corners=False), F.adaptive_avg_pool3d(x, (1, 2, None))


@forward(IMAGE, **pix(IMAGE, low=2))
def A5881UnpooledPlaces(self, x):
    """Places of a pool with ceil mode, unpooled to the size; a fold of what was unfolded, divided by its counts."""
    y, i = F.max_pool2d(x, 2, 2, return_indices=True)
    u = F.max_unpool2d(y, i, 2, 2, output_size=x.shape[-2:])
    p = F.unfold(x, 2, padding=1)
    f = F.fold(p, x.shape[-2:], 2, padding=1) / F.fold(torch.ones_like(p), x.shape[-2:], 2, padding=1)
    return u, f, i


@forward("q:float32[N,T,4]", "k:float32[N,S,4]", **two("q:float32[N,T,4]", "k:float32[N,S,4]", zero=True))
def A5882ReducedOverNoRows(self, q, k):
    """Reductions over an axis that is not empty, of what is empty by another: mean, amax, norm, any, logsumexp, argmax."""
    s = q[:, :, None] * k[:, None]
    return s.mean(-1), s.amax(-1), s.norm(dim=-1), (s > 0).any(-1), s.logsumexp(-1), s.argmax(-1), s.sum((-1, -2)), s.square().sum(dim=3)


@forward("q:float32[N,T,4]", "k:float32[N,S,4]", **two("q:float32[N,T,4]", "k:float32[N,S,4]", zero=True))
def A5883AttentionToNone(self, q, k):
    """Attention to keys of which there may be none, beside a key of its own."""
    kk = torch.cat([q.new_zeros(q.shape[0], 1, 4), k], 1)
    return F.scaled_dot_product_attention(q, kk, kk), (q @ k.transpose(1, 2)).sum(-1), q @ k.transpose(1, 2) @ k
