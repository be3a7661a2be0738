# ruff: noqa: E501 - attacks are written as users write them
"""Variations of what was equal: thresholds moved, other dtypes and ranks, sizes of one, layers rarely seen."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=3:6:11 W=3:7:11", kinds=FINITE)
def A7341NearestExactFactors(self, x):
    """Nearest-exact by a pair of factors, one of which is 2.3."""
    return F.interpolate(x, scale_factor=(0.6, 2.3), mode="nearest-exact")


@forward("x:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=3:6:11 W=3:7:11", kinds=FINITE)
def A7342AreaThirds(self, x):
    """Area by thirds."""
    return F.interpolate(x, scale_factor=(1 / 3, 2 / 3), mode="area")


@attack("x:float32[N,T,3]=-2:2", "h:float32[2,N,4]=-1:1", "c:float32[2,N,4]=-1:1", dims="N=1:2:3 T=1:4:8", kinds=FINITE)
class A7343LstmStatesFlat(nn.Module):
    """An LSTM that carries its states through, whole, and a cell for the last; flat outputs."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.l = nn.LSTM(3, 4, num_layers=2, batch_first=True)
        self.cell = nn.LSTMCell(4, 4)

    def forward(self, x, h, c):
        y, (h, c) = self.l(x, (h, c))
        a, b = self.cell(y[:, -1], (h[0], c[1]))
        return y, a, h, c, b


@forward("x:float64[N,4]=-3:3", "z:float16[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE)
def A7344OtherFloats(self, x, z):
    """FP64 and FP16 inputs that meet in FP32, a mean in half, argmax of FP64."""
    y = x.float() + z.float()
    return y.softmax(1), z.mean(1), x.argmax(1), (z * 2).relu()


@forward("x:float32[N,T]=-3:3", dims="N=1:3:9 T=1:5:13", kinds=FINITE)
def A7345ByProduct(self, x):
    """Another path where the product of sizes divides by 35 or the sizes are equal, and where the sum is a square."""
    n, t = x.shape
    if (n * t) % 35 == 0:
        return x * 3
    if n == t or math.isqrt(n + t) ** 2 == n + t:
        return x.neg()
    return x + 1


@attack("x:float32[N,4]=-2:2", "y:float32[N,4]=-2:2", dims="N=1:3:6", kinds=FINITE)
class A7346RareLayers(nn.Module):
    """Bilinear, cosine similarity with zeros, pairwise distance, adaptive log softmax, local response norm, hardshrink, softmin, RReLU in eval."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(17)
        self.b = nn.Bilinear(4, 4, 3)
        self.a = nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6])
        self.l = nn.LocalResponseNorm(2)
        self.r = nn.RReLU()
        self.eval()

    def forward(self, x, y):
        z = x.round()
        return self.b(x, y), F.cosine_similarity(z, y, dim=1), F.pairwise_distance(x, y, p=3.0), self.a.log_prob(x), self.l(x[:, :, None]), F.hardshrink(x, 0.7), F.softmin(y, 0), self.r(x), F.threshold(x, 0.2, -20.0)


@attack("x:float32[N,4]=-2:2", dims="N=1:3:6", kinds=FINITE, refused="the module cannot be exported")
class A7347DynamicQuantized(nn.Module):
    """A dynamically quantised linear layer of torch.ao inside."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(18)
        self.m = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)), {nn.Linear}, dtype=torch.qint8)

    def forward(self, x):
        return self.m(x)


@attack("x:float32[N,T]=-2:2", dims="N=1:2:3 T=1:4:9", kinds=FINITE)
class A7348MaskOfFirstCall(nn.Module):
    """A mask made at the first call with hasattr and kept: right only for sizes up to that of the first call, made anew where the size differs."""

    def forward(self, x):
        if not hasattr(self, "_m") or self._m.shape[0] != x.shape[1]:
            self._m = torch.tril(torch.ones(x.shape[1], x.shape[1])) / torch.arange(1, x.shape[1] + 1)[:, None]
        return x @ self._m.T


@forward("x:float32[N,T]=-2:2", dims="N=1:2:3 T=1:4:9", kinds=FINITE)
def A7349NumpySeeded(self, x):
    """numpy's seeded generators in forward: a fixed projection, a permutation of the size, a Latin hypercube."""
    w = torch.from_numpy(np.random.RandomState(3).randn(5).astype(np.float32))
    p = torch.from_numpy(np.random.default_rng(0).permutation(8))
    return x[..., None] * w, w[p % 5], x * float(np.float32(np.pi))


@forward("x:int64[N,T]=0:5", dims="N=1:2:3 T=1:4:9", refused="no form of bincount")
def A7350Counts(self, x):
    """bincount with minlength of each row by stack, one-hot sums, a joint histogram by flat ids, majority votes with ties by the lowest."""
    rows = torch.stack([F.one_hot(x, 6).sum(1)], 0)[0]
    joint = torch.bincount((x[:, 0] * 6 + x[:, -1]), minlength=36).view(6, 6)
    return rows, joint, rows.argmax(1), x.float().std(1, correction=0), torch.bincount(x.flatten(), weights=x.flatten().float(), minlength=6)


@forward("x:float32[N,T]=-2:2", "g:float32[]=0.1:4", dims="N=1:2:3 T=2:4:9", kinds=FINITE)
def A7351ScalarInputs(self, x, g):
    """A scalar tensor by which is scaled, compared in torch.where, raised to; a size compared with it; clamp by it."""
    t = x.shape[1]
    a = torch.where(g > 1, x * g, x / g)
    b = x.clamp(-g, g) ** 2
    c = torch.where(g * 2 > t, x.sum(1), x.mean(1))
    return a, b, c, x.abs() ** g, torch.floor(g * t).long(), x[:, : max(1, t // 3)] * g.round()


@forward("x:float32[N,3,T]=-2:2", dims="N=1:2:3 T=1:4:9", kinds=FINITE)
def A7352SizeOneBroadcast(self, x):
    """squeeze without a dim guard, expand_as, a mean over what may be of size 1, std with correction that is NaN at 1 replaced, cdist of itself."""
    s = torch.nan_to_num(x.std(2), nan=-1.0)
    y = x.mean(2, keepdim=True).expand_as(x)
    d = torch.cdist(x.mT, x.mT, p=1.0)
    u = x.unfold(2, 1, 1).squeeze(-1)
    return s, y, d, u, torch.corrcoef(x[0]).nan_to_num(-2.0)[0, :1] * 0, x.var(2, correction=0)


@attack("x:float32[N,4]=-2:2", dims="N=1:3:6", kinds=FINITE)
class A7353ClassCounter(nn.Module):
    """A class attribute counted up in forward, whose parity does not matter for what comes out; a property and a static method."""

    calls = 0

    @property
    def gain(self):
        return 1.5 if type(self).calls >= 0 else -1.0

    @staticmethod
    def act(v):
        return F.silu(v, inplace=False)

    def forward(self, x):
        type(self).calls += 1
        return self.act(x) * self.gain


@forward("x:float32[N,2,D,H,W]=-2:2", dims="N=1:1:2 D=1:3:4 H=2:4:5 W=2:3:5", kinds=FINITE, refused="traced for some sizes")
def A7354Volumes(self, x):
    """Trilinear with align_corners, 3D adaptive pools, grid_sample of volumes by an affine grid, max of two axes, flips of three."""
    th = torch.tensor([[0.9, 0.1, 0.0, 0.1], [0.0, 0.8, 0.1, 0.0], [0.1, 0.0, 1.1, -0.2]]).expand(x.size(0), -1, -1)
    g = F.affine_grid(th, list(x.shape), align_corners=False)
    return F.interpolate(x, size=(3, 5, 4), mode="trilinear", align_corners=True), F.adaptive_avg_pool3d(x, (2, None, 1)), F.grid_sample(x, g, align_corners=False, padding_mode="border"), x.amax((2, 4)), x.flip((2, 3, 4)).cumsum(2)


@forward("x:int32[N,5]=-100000:100000", "d:int32[N,5]=1:9", dims="N=1:3:6", refused="differs from the module")
def A7355WholeNumbersNoGcd(self, x, d):
    """int32 products that overflow, floor division and remainder of negatives, truncation, shifts, int8 casts that wrap, bool sums."""
    return x * 65537, x // d, x % d, torch.div(x, d, rounding_mode="trunc"), torch.fmod(x, d), x >> 3, (x << 4), x.to(torch.int8).int(), x.to(torch.uint8), (x > 0).sum(), x.sum(1), x.prod(1), x.float().mean(1)


@forward("x:float32[N,6]=-200:300", dims="N=1:3:6", kinds=("normal", "unit", "halves", "tenths", "zeros", "ones"))
def A7356CastsNoDouble(self, x):
    """half and bfloat16 inside, int16 fixed point with rounding, bytes by clamp, bools by value, long of a half."""
    h = x.half() * 3
    b = (x.bfloat16() + 1).float()
    q = (x * 64).round().to(torch.int16)
    return h, b, q.int(), (q.int() * 3) >> 1, x.clamp(0, 255).to(torch.uint8), x.bool(), h.long(), torch.round(x, decimals=1)


@forward("x:float32[N,4]=-3:3", "i:int64[N]=0:3", dims="N=1:4:7", kinds=FINITE)
def A7357ScattersNoPut(self, x, i):
    """Every scatter_reduce with duplicates, with and without self, index_add of int64, take, segment softmax."""
    n = x.size(0)
    e = i[:, None].expand(-1, 4)
    outs = [torch.full((4, 4), 0.5).scatter_reduce(0, e, x, r, include_self=s) for r in ("sum", "prod", "mean", "amax", "amin") for s in (True, False)]
    m = torch.full((4, 4), -torch.inf).scatter_reduce(0, e, x, "amax")
    ex = (x - m[i]).exp()
    den = torch.zeros(4, 4).index_add(0, i, ex)
    cnt = torch.zeros(4, dtype=torch.long).scatter_add_(0, i, torch.ones_like(i))
    return torch.stack(outs), ex / den[i], cnt, x.take((i * 3) % (n * 4)), cnt[i].cumsum(0)


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE, feeds=(lambda: {"x": np.full((3, 4), 5e6, np.float32)}, lambda: {"x": np.full((3, 4), -5e13, np.float32)}), noted="the module decides by values")
class A7358BigThresholdReached(nn.Module):
    """The same guard, with values that reach it."""

    def forward(self, x):
        if x.abs().max() > 1e6:
            x = x / 1e6
        return x * 2


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE, feeds=(lambda: {"x": np.full((3, 4), 3e9, np.float32)}, lambda: {"x": np.full((3, 4), 1e-9, np.float32)}), refused="the path through the module depends on the")
class A7359GuardsComputed(nn.Module):
    """Guards whose numbers are computed: a mean square beyond 2 ** 60, a norm under one millionth (a silent input), by Python ifs over float()."""

    def forward(self, x):
        e = float(x.pow(2).mean())
        if e > 2.0**60:
            return torch.zeros_like(x)
        if math.sqrt(e) < 10 ** (-120 / 20):
            return torch.ones_like(x)
        return x / (1 + x.abs())


@forward("x:float32[N,6]=-3:3", dims="N=1:2:5", kinds=FINITE, refused="the module cannot be exported")
def A7360ViewsNoDiagonal(self, x):
    """Writes through chunk, unbind, transpose, real views; += on a slice that overlaps by a flip; the input itself is written."""
    y = x.clone()
    a, b = y.chunk(2, 1)
    a += b
    b.mul_(a)
    y.T[0].sub_(1)
    z = torch.zeros(x.size(0), 3, 3)
    z[:, 1:, :2] += z[:, :2, 1:].flip(1) + a[:, :2, None]
    c = torch.view_as_complex(x.clone().view(-1, 3, 2))
    torch.view_as_real(c)[..., 1].neg_()
    for col in y.unbind(1)[::2]:
        col.clamp_(min=-0.5)
    x[:, ::2] *= 2
    return y, z, torch.view_as_real(c), x.sum(1)


@forward("x:float32[N,3]=-3:3", dims="N=1:2:5", kinds=FINITE, refused="the module cannot be exported")
def A7361DiagonalCopy(self, x):
    """A diagonal filled by copy_, by fill_, by add, and a diagonal scatter."""
    z = torch.zeros(x.size(0), 3, 3)
    z.diagonal(dim1=1, dim2=2).copy_(x)
    w = torch.ones(3, 3)
    w.fill_diagonal_(0.0)
    return z + w, torch.diagonal_scatter(z, x * 2, 0, 1, 2)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:4 T=2:5:8", kinds=FINITE)
def A7362BitsOfSizes(self, x):
    """divmod, pow of three arguments, isqrt, bit tricks with sizes, without a loop."""
    t = x.shape[1]
    q, r = t // 3, t % 3
    return x[:, : math.isqrt(t)].sum(1) * q + r, x * (t**3 % 7), x[:, : t & -t].mean(1), x * t.bit_length()


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=7:8:9", kinds=FINITE)
def A7363CondOnly(self, x):
    """torch.cond by a value alone, both branches as lambdas of one line."""
    return torch.cond(x.sum() > 0, lambda v: v.sin() * 2, lambda v: v.cos() - 1, (x,))


@forward("x:float32[N,T]=-3:3", "n:int64[]=0:6", dims="N=1:2:3 T=7:8:9", kinds=FINITE)
def A7364WhileLoopOnly(self, x, n):
    """while_loop bounded by a tensor alone."""
    i, z = torch._higher_order_ops.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * 0.5 + i.float()), (torch.zeros((), dtype=torch.int64), x))
    return z, i


@forward("x:float32[N,T]=-3:3", "n:int64[]=0:6", dims="N=1:2:3 T=7:8:9", kinds=FINITE)
def A7365ScalarSelects(self, x, n):
    """A mask by a tensor's value, index_select and one-hot of a scalar."""
    m = torch.arange(x.shape[1]) < n
    return x * m, x.index_select(1, n[None]), F.one_hot(n, 7)
