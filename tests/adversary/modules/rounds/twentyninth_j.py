"""Round 29, follow-ups: range of intermediate steps, edges, truncating writes, empties, rare layers."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _f(values, *shape):
    return lambda: {"x": np.array(values, np.float32).reshape(shape)}


def _t(t, n=1, scale=1.0, c=4):
    return lambda: {"x": _r(n, t, c, scale=scale)}


FAR = (_t(9, scale=1e20), _t(9, scale=3e37), _t(9, scale=1e-22), _t(9, scale=1e-30))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def J29Std(self, x):
    return x.std(1), torch.std_mean(x, -1)[0]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def J29Distances(self, x):
    return F.pairwise_distance(x, x.flip(1)), torch.dist(x, x + 1), torch.cdist(x, x, p=2.0), torch.linalg.norm(x, dim=(1, 2))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def J29MatrixNorms(self, x):
    return torch.linalg.vector_norm(x, 1, -1), torch.linalg.vector_norm(x, math.inf, -1), torch.linalg.vector_norm(x, 0, -1), torch.linalg.vector_norm(x, 0.5, -1), torch.linalg.vector_norm(x, -math.inf, 1), torch.linalg.matrix_norm(x, 1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def J29NormLayersFar(self, x):
    return F.layer_norm(x, (4,)), F.group_norm(x.mT, 2), F.rms_norm(x, (4,)), F.instance_norm(x.mT)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def J29Quotients(self, x):
    return x / 1e-38, x / 3e38, x * 1e-30 / 1e-30, 1e30 / (x + 1e30), x.div(x.flip(1)), torch.addcdiv(x, x, x.flip(1), value=0.5), x * x.flip(1) / x.abs().amax(), x.square().mean(-1).sqrt()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 0.1, 0.01, 0.001, 1e9], 1, 3, 4), _f([8, 2, 4, 0.5, 2**29, 2**30, 2**31, 2**-10, 243, 27, 125, 64], 1, 3, 4)))
def J29DigitsByLog(self, x):
    y = x.abs().clamp(min=1e-20)
    return y.log10().floor(), y.log2().floor(), torch.pow(10.0, x.clamp(-9, 9).round()), torch.exp2(x.clamp(-100, 100).round()), (y.log10() % 1 == 0), torch.sqrt(y * y) == y, y.rsqrt()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([224, 112, 448, 56, 447.99997, 896, 1792, 28, 300, 223.99998, 0, 1], 1, 3, 4),))
def J29PyramidLevels(self, x):
    """Levels of a pyramid by the size of a box, as FPN has it."""
    area = (x[..., 2:] * x[..., :2]).abs()
    level = torch.floor(4 + torch.log2(torch.sqrt(area) / 224 + 1e-6)).clamp(2, 5)
    return level.long() - 2, F.one_hot(level.long() - 2, 4)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([-1, -2, -3, 1] * 3, 1, 3, 4),))
def J29BetaZero(self, x):
    """beta = 0 leaves out what is NaN."""
    return torch.baddbmm(x.log()[:, :, :3], x, x.mT[:, :, :3], beta=0, alpha=0.5), torch.addmm((x[0, :, :3]).sqrt(), x[0], x[0].mT[:, :3], beta=0)


@forward("x:float32[N,T,4]", "i:int64[N,T]", dims=SHORT, feeds=(lambda: {"x": _f([1.7, -1.7, 0.3, -0.3, 2.5, 3.5, -2.5, 0, 255.9, 9.99, -9.99, 1], 1, 3, 4)()["x"], "i": np.array([[1, 2, 3]])},))
def J29TruncatingWrites(self, x, i):
    y = torch.zeros(x.shape, dtype=torch.int32)
    y[:, 1:] = x[:, :-1]
    j = i.clone()
    j[i > 1] = 7
    j[:, :1] = x[:, :1, 0]
    b = torch.zeros(x.shape, dtype=torch.bool)
    b[...] = x
    h = torch.zeros(x.shape, dtype=torch.float16)
    h.copy_(x)
    return y, j, b, h.float(), i.masked_fill(i > 1, 2), torch.full_like(i, 3).copy_(x[..., 0])


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([0.5, -0.5, 3, -3, 6, 0.1, 20, 0, -0.0, 1, -1, 0.3], 1, 3, 4),))
def J29Edges(self, x):
    return F.hardshrink(x), F.softshrink(x, 0.3), F.threshold(x, 0.1, 20), F.hardswish(x), F.relu6(x), F.tanhshrink(x), F.hardtanh(x, -0.1, 0.3), x > 0.1, x >= 0.3, x == 0.1, F.softsign(x), F.selu(x), F.softmin(x, -1), F.leaky_relu(x, -0.2), (x - 0.3).sign()


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=1:9:20", feeds=(_t(1), _t(2), _t(1, 3)))
def J29OneFrame(self, x):
    d = x[:, 1:] - x[:, :-1]
    return d, d.sum(1), d.mean(1), x.std(1), x.var(1, correction=0), torch.diff(x, n=2, dim=1) if x.shape[1] > 2 else x[:, :0], F.interpolate(x.mT, 5, mode="linear", align_corners=True), torch.linspace(0, 1, x.shape[1])[:, None] * x, x[:, 1:].prod(1), (d > 0).all(1), (d > 0).any(1)


@forward("x:float32[N,K,4]", dims="N=1:1:2 K=0:5:12", feeds=(lambda: {"x": _r(1, 0, 4)}, lambda: {"x": _r(2, 1, 4)}))
def J29ZeroBoxes(self, x):
    score = x.sum(-1)
    order = score.argsort(-1, descending=True)
    d = torch.cdist(x, x, p=1.0)
    return x.gather(1, order[..., None].expand(-1, -1, 4)), d, (d > 1).sum(-1), x.sum(1), x.mean(1), score.softmax(-1), F.pad(x, (0, 0, 0, 12))[:, :12], score.cumsum(-1), x @ x.mT, F.layer_norm(x, (4,)), score.prod(-1)


@attack("x:float32[N,K,4]", dims="N=1:1:2 K=0:5:12", feeds=(lambda: {"x": _r(1, 0, 4)}, lambda: {"x": _r(2, 1, 4)}))
class J29ZeroTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.query = nn.Linear(4, 4), nn.Parameter(torch.randn(2, 4))
        self.conv = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        y = torch.cat([self.query.expand(x.shape[0], -1, -1), self.lin(x)], 1)
        return (y @ y.mT).softmax(-1) @ y, self.conv(y.mT), F.scaled_dot_product_attention(self.query.expand(x.shape[0], -1, -1), x, x)


@attack("i:int64[N,T]", dims=SHORT, feeds=(lambda: {"i": np.array([[0, 0, 0]])}, lambda: {"i": np.array([[3, 0, 2, 9], [0, 0, 0, 5]])}))
class J29Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(10, 4, mode="mean", padding_idx=0)
        self.top = nn.EmbeddingBag(10, 4, mode="max", padding_idx=0)
        self.emb = nn.Embedding(10, 4, padding_idx=-1)

    def forward(self, i):
        i = i.remainder(10)
        return self.mean(i), self.top(i), self.emb(i)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(9, 2)))
class J29RareLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.bil, self.prelu = nn.Bilinear(4, 4, 3), nn.PReLU(4)
        self.prelu.weight.data.uniform_(-1, 2)
        self.cos, self.dist = nn.CosineSimilarity(-1, eps=0.1), nn.PairwiseDistance(1, keepdim=True)
        self.flat, self.un = nn.Flatten(1, -1), nn.Unflatten(2, (2, 2))

    def forward(self, x):
        return self.bil(x, x.flip(1)), self.prelu(x.mT), self.cos(x, x.flip(1)), self.dist(x, x.flip(1)), self.un(x).sum(-1), F.multi_head_attention_forward if False else x.unflatten(1, (x.shape[1], 1))


@forward("x:float32[N,1,D,H,W]", dims="N=1:1:2 D=3:5:9 H=3:6:9 W=3:7:9", feeds=(lambda: {"x": _r(1, 1, 3, 4, 5)}, lambda: {"x": _r(2, 1, 9, 3, 8)}))
def J29Volumes(self, x):
    return F.pad(x, (1, 2, 2, 1, 1, 1), mode="reflect"), F.pad(x, (1, 0, 3, 1, 2, 2), mode="replicate"), F.avg_pool3d(x, 2, 2, 1, ceil_mode=True, count_include_pad=False), F.adaptive_avg_pool3d(x, (2, 3, 1)), F.adaptive_max_pool3d(x, 2), F.interpolate(x, (4, 5, 2), mode="trilinear", align_corners=True), F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), F.grid_sample(x, torch.tanh(x[:, 0, ..., None].expand(-1, -1, -1, -1, 3)), align_corners=False, padding_mode="reflection")


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:8:20 W=4:9:20", feeds=(lambda: {"x": _r(1, 3, 5, 7)}, lambda: {"x": np.zeros((1, 3, 4, 4), np.float32)}, lambda: {"x": np.round(_r(1, 3, 9, 8))}))
def J29Unpooled(self, x):
    h, w = x.shape[-2:]
    y, i = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, i, 2, output_size=(h, w)), i % w, i // w, F.lp_pool2d(x, 2, 2), F.softmax(x.flatten(2), -1).view_as(x), F.adaptive_max_pool2d(x, (3, 2), return_indices=True)[1]


@forward("x:float16[N,T,4]", dims="N=1:1:2 T=3:50:1500", feeds=(lambda: {"x": (100 + _r(1, 1400, 4)).astype(np.float16)},))
def J29HalfInput(self, x):
    return x - x.mean(1, keepdim=True), x.norm(dim=-1)


@forward("q:float32[N,4,T,8]", "k:float32[N,2,S,8]", "m:bool[N,S]", dims="N=1:1:2 T=1:4:9 S=1:6:12",
         feeds=(lambda: {"q": _r(2, 4, 3, 8), "k": _r(2, 2, 4, 8), "m": np.array([[0, 0, 0, 0], [1, 0, 1, 0]], bool)},))  # fmt: skip
def J29GroupedQueries(self, q, k, m):
    return F.scaled_dot_product_attention(q, k, k * 2, attn_mask=m[:, None, None], enable_gqa=True, scale=0.2)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(5, scale=40), _f([0, 0, 0, 0] * 3, 1, 3, 4)))
def J29Promotions(self, x):
    i = x.clamp(-100, 100).long()
    u = (x.abs().clamp(max=200)).to(torch.uint8)
    return torch.cat([i, x], -1), torch.stack([x > 0, i > 1], 0).sum(0), i + 1.5, i / 2, i * True, u + i, u * 2.5, torch.where(x > 0, i, 0.5), i ** 2, 2**u.clamp(max=5), torch.maximum(i, u.long()), (x > 0) * x, u.float() @ torch.eye(4), i.float().sum(-1).int() // 2, u - (x > 0).to(torch.uint8), torch.tensor(3) * u, torch.tensor(2.5) * i


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(5, scale=1e4)))
def J29DoubleIslands(self, x):
    """A sum in double of many and a difference that cancels."""
    d = x.double()
    return (d.cumsum(1) - d).float(), ((d + 1e9) - 1e9).float(), (d * 1e-3 + 16777216.0).sub(16777216.0).float()


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=6:12:40", feeds=(_t(6), _t(13), _t(40)))
def J29RevIn(self, x):
    """A forecaster: instance normalisation, moving average with replicated ends, season and trend, patches, spectra by top-k."""
    mean, std = x.mean(1, keepdim=True).detach(), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
    y = (x - mean) / std
    front, end = y[:, :1].repeat(1, 2, 1), y[:, -1:].repeat(1, 2, 1)
    trend = F.avg_pool1d(torch.cat([front, y, end], 1).mT, 5, 1).mT
    season = y - trend
    f = torch.fft.rfft(season, dim=1)
    amp = f.abs().mean((0, 2))
    amp[0] = 0
    top = amp.topk(2)[1]
    period = x.shape[1] // top
    patches = F.pad(y.mT, (0, 4), "replicate").unfold(-1, 4, 2)
    return trend, season, period, patches, torch.fft.irfft(f * (f.abs() > f.abs().amax(1, keepdim=True) * 0.5), n=x.shape[1], dim=1) * std + mean


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(20, 2)))
def J29Kalman(self, x):
    """A track's prediction and update with small matrices, Mahalanobis distance, assignment by mutual nearest."""
    f = torch.eye(4) + torch.diag(torch.ones(2), 2) * 0.1
    p = f @ (torch.eye(4) * 10) @ f.T + 0.01 * torch.eye(4)
    h = torch.eye(4)[:2]
    s = h @ p @ h.T + 0.5 * torch.eye(2)
    k = torch.linalg.solve(s, h @ p).T
    mean = x @ f.T
    inno = x.flip(1)[..., :2] - mean @ h.T
    new = mean + inno @ k.T
    maha = (inno @ torch.linalg.inv(s) * inno).sum(-1)
    cost = torch.cdist(new, x)
    row, col = cost.argmin(2), cost.argmin(1)
    mutual = col.gather(1, row) == torch.arange(x.shape[1])
    return new, maha, mutual, torch.where(mutual, row, -1)
