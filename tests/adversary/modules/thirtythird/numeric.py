"""Types and numbers: FP64 and half precision within, wide ids, ties, tables, quantiles, spectra, special values."""

from __future__ import annotations

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


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 9, 4, scale=300), normal(2, 9, 4, scale=1e5)))
def A3376HalfInside(self, x):
    h, b = x.half(), x.bfloat16()
    y = (h * h).float()
    return (
        torch.where(y.isinf(), -1.0, y),
        (b + 1).float(),
        (b.sum(-1) == b.float().sum(-1).bfloat16()),
        h.floor().float(),
    )


@forward(
    "x:int64[N,T]=0:9007199254740991",
    dims=SHORT,
    feeds=(
        _v(16777217, 16777216, 2147483648, 2147483647, 4294967297, dtype=np.int64),
        _v(9007199254740991, 9007199254740990, dtype=np.int64),
    ),
)
def A3377WideIds(self, x):
    bucket = (x * 2654435761 + 40503) % 1009
    same = x[:, 1:] == x[:, :-1]
    return bucket, same, x.amax(1), x >> 20, x // 1000, (x & 0xFFFFFF).float(), x.argmax(1)


@forward("x:int32[N,T]=-2147483648:2147483647", dims=SHORT, feeds=(_v(2147483647, 1, -2147483648, -1, dtype=np.int32),))
def A3378HashesWrap(self, x):
    y = x * 31 + 7
    y = y ^ (y >> 15)
    y = y * -2048144789
    return y, y % 97, torch.remainder(y, -97), y.abs() % 64, -x


@forward("x:int64[N,T]=-50:50", dims=SHORT, feeds=(_v(-7, 7, -1, 0, 1, -8, dtype=np.int64),))
def A3379NegativeQuotients(self, x):
    f = x / 4
    return (
        x // -3, x % -3, torch.fmod(x, -3), torch.div(x, -3, rounding_mode="trunc"), x >> 1, x << 2,
        f.round(), f.trunc(), f.frac(),
        (x.float() * 0.125).round(decimals=1), torch.bitwise_and(x, -x), x.float() // -0.3, x.float() % -0.3,
        torch.div(x.float(), 0.1, rounding_mode="floor"),
    )  # fmt: skip


@forward("x:float32[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(_v(1.0, 2, 2, 1, 2), _v(-0.0, 0.0, -0.0), halves(3, 24)))
def A3380Ties(self, x):
    top, i = x.topk(min(3, x.shape[1]))
    down = x.argsort(dim=-1, descending=True, stable=True)
    best, at = torch.cummax(x, 1)
    least, to = torch.cummin(x, 1)
    return top, i, down, best, at, least, to, x.max(1)[1], x.flip(1).argmin(1), torch.aminmax(x, dim=1).max, x.argmax()


@forward("x:float32[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(_v(1.0, 2, 2, 1, 2), halves(3, 24)))
def A3381KthAndMode(self, x):
    k = (x.shape[1] + 1) // 2
    return x.kthvalue(k, 1), x.mode(1).values, x.sort(1).values[:, k - 1 :: k], x.nanmedian(1).values, x.msort()


@attack(
    "x:float32[N,T]",
    dims=SHORT,
    kinds=FINITE,
    feeds=(halves(2, 9), _v(-1.0, 0.1, 0.3, 1.0, 0.7, 0.30000001), _v(0.1 * 3, -2.5, 5.0)),
)
class A3382Edges(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.linspace(-1, 1, 21))
        self.table = nn.Embedding(22, 3)

    def forward(self, x):
        left, right = torch.bucketize(x, self.edges), torch.bucketize(x, self.edges, right=True)
        rows = x.sort(1).values
        return (
            self.table(left),
            left == right,
            torch.searchsorted(rows, x.contiguous()),
            torch.searchsorted(rows, x * 0.5, side="right", out_int32=True),
        )


@forward("x:float32[N,T]", dims=SHORT, kinds=FINITE, feeds=(_v(-1.0, -0.5, 0.5, 1.0, 2.0, 0.1), _v(0.3, 0.7, 0.9, 0.1)))
def A3383Histogram(self, x):
    h = torch.histc(x.clamp(-1.5, 1.5), 20, -1.0, 1.0)
    q = torch.quantile(x, torch.tensor([0.1, 0.25, 0.5]), dim=1, interpolation="midpoint")
    return h, q, x.quantile(0.3, 1, interpolation="nearest"), x.quantile(0.7, 1, interpolation="lower")


@forward("x:float32[N,T]", dims=SHORT, kinds=FINITE, feeds=(normal(1, 11), normal(1, 21), halves(2, 6)))
def A3384Quantiles(self, x):
    low, high = torch.quantile(x, 0.05, 1, True), torch.quantile(x, 0.95, 1, True)
    n = x.shape[1]
    k = max(1, int(0.3 * n))
    y = (x.clamp(low, high) - low) / (high - low).clamp_min(1e-8)
    return (
        y,
        x.topk(k).values.mean(1),
        x.kthvalue(round(0.5 * n) or 1, 1).values,
        (x > x.mean(1, True) + 2 * x.std(1, keepdim=True)).sum(1),
    )


@forward(
    "x:float32[N,2,H,W]",
    "flow:float32[N,2,H,W]=-30:30",
    dims="N=1:1:2 H=1:6:14 W=1:9:14",
    kinds=FINITE,
    feeds=(
        halves(1, 2, 1, 1, flow=np.full((1, 2, 1, 1), 1.5, np.float32)),
        halves(1, 2, 5, 3, flow=np.full((1, 2, 5, 3), -0.5, np.float32)),
    ),
)
def A3386Warp(self, x, flow):
    h, w = x.shape[-2:]
    gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    px, py = gx + flow[:, 0], gy + flow[:, 1]
    grid = torch.stack([2 * px / max(w - 1, 1) - 1, 2 * py / max(h - 1, 1) - 1], -1)
    a = F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
    b = F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    valid = (px >= 0) & (px <= w - 1) & (py >= 0) & (py <= h - 1)
    return a * valid[:, None], b


@forward(
    "x:float32[N,2,H,W]",
    dims="N=1:1:2 H=4:7:20 W=4:10:21",
    kinds=FINITE,
    feeds=(normal(1, 2, 4, 5), normal(2, 2, 20, 4)),
)
def A3387Paddings(self, x):
    h, w = x.shape[-2:]
    a = F.pad(x, (w - 1, 0, 0, h - 1), mode="reflect")
    b = F.pad(x, (w // 2, 3, 1, h // 3), mode="circular")
    c = F.pad(x, (-1, 2, h % 3 - 1, -1), value=0.5)
    return a, b, c, F.pad(x, (5, 0, 2, 7), mode="replicate")


@forward(
    "x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 9, 4, scale=1e-20), normal(2, 9, 4, scale=1e-4))
)
def A3389Epsilons(self, x):
    tiny = torch.finfo(torch.float32).tiny
    a = x / (x.norm(dim=-1, keepdim=True) + 1e-12)
    b = F.normalize(x, p=1, dim=1, eps=1e-5)
    c = F.cosine_similarity(x[:, 1:], x[:, :-1], dim=-1, eps=1e-8)
    d = F.layer_norm(x, (4,), eps=1e-12)
    return a, b, c, d, (x.abs() + tiny).log2().floor(), torch.rsqrt(x.square().mean(-1) + 1e-6)


@forward("x:float32[N,T,4]", dims=FROM_ONE, kinds=(*FINITE, "minus-infinity", "plus-infinity"))
def A3390BothBranchesSpecial(self, x):
    a = torch.where(x > 0, x.log(), (-x).sqrt())
    b = torch.where(x.abs() < 1e-6, 1 - x * x / 6, torch.sin(x) / x)
    c = torch.where(x.isfinite(), x, 0.0)
    return (
        torch.where(a.isnan(), -1.0, a),
        torch.where(x.isinf(), 0.0, b),
        c / c.abs().amax(-1, keepdim=True),
        torch.nan_to_num(1 / c, 7, 8, 9),
        torch.special.xlogy(c, c.abs()),
    )


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, g):
        return g, None


@attack(
    "x:float32[N,T,4]",
    dims=SHORT,
    kinds=FINITE,
    feeds=(halves(2, 9, 4), _v([0.5, 1.5, 2.5, -0.5], [-1.5, 0.05, 0.15, -0.25])),
)
class A3391Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.1))

    def forward(self, x):
        y = Straight.apply(x.tanh(), 7)
        q = torch.clamp(torch.round(x / self.scale), -128, 127).to(torch.int8)
        z = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
        wrap = (q.int() * 3).to(torch.int8)
        return y, q.float() * self.scale, z, wrap, (q + q).float(), torch.floor(x + 0.5).long() - torch.round(x).long()


@forward("x:bool[N,T]", "y:bool[N,T]", dims=FROM_ONE)
def A3392Booleans(self, x, y):
    n = x.sum(1)
    return (
        x * y, x + y, x ^ y, (x > y).sum(1), x.float().mean(1) > 0.5, n // 2 * 2 == n, x.cumsum(1),
        x.any(1) & ~y.all(1),
        x.int().argmax(1),
        torch.where(x, 1, 2.5), (x <= y).prod(1), x.long().cumprod(1).sum(1), x.int() - y.int(),
    )  # fmt: skip


@forward(
    "x:float32[N,T]=0.01:1",
    dims=LONG,
    kinds=("normal", "unit", "ones"),
    feeds=(lambda: {"x": np.full((1, 600), 0.9, np.float32)}, lambda: {"x": np.full((1, 600), 0.01, np.float32)}),
)
def A3393Transmittance(self, x):
    alpha = 1 - x
    t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    weights = alpha * t
    return weights, weights.sum(1), torch.logcumsumexp(x, 1), (1 - torch.exp(-x.cumsum(1)))


@attack(
    "x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 9, 4), normal(1, 5, 4, scale=40), halves(1, 3, 4))
)
class A3398Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.scale = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.rand(3, 4) + 0.1)

    def forward(self, x):
        d = torch.distributions.Normal(self.mean, self.scale)
        each = d.log_prob(x[..., None, :]).sum(-1)
        p = each.softmax(-1)
        kl = F.kl_div(each.log_softmax(-1), p.flip(-1), reduction="none")
        tail = torch.special.log_ndtr(x) - F.logsigmoid(x) + torch.erfc(x.abs())
        return (
            each.logsumexp(-1),
            torch.distributions.Categorical(p).entropy(),
            kl,
            tail,
            F.gaussian_nll_loss(x, x.flip(1), x.abs(), reduction="none"),
        )


@forward(
    "x:float32[N,T,3]=-3:3",
    "y:float32[N,T,3]=-3:3",
    dims=SHORT,
    kinds=FINITE,
    feeds=(lambda: {"x": np.ones((1, 2, 3), np.float32), "y": np.ones((1, 2, 3), np.float32)},),
)
def A3399Geometry(self, x, y):
    cross = torch.linalg.cross(x, y)
    cos = F.cosine_similarity(x, y, dim=-1).clamp(-1 + 1e-7, 1 - 1e-7)
    d = torch.cdist(x, y)
    near = d.argmin(-1)
    q = F.normalize(torch.cat([1 + (x * y).sum(-1, keepdim=True), cross], -1), dim=-1)
    cov = (x - x.mean(1, keepdim=True)).mT @ x / (x.shape[1] - 1)
    return (
        cross,
        torch.acos(cos),
        d.gather(2, near[..., None]),
        q,
        torch.linalg.det(cov + torch.eye(3)),
        torch.linalg.inv(cov + torch.eye(3)),
    )
