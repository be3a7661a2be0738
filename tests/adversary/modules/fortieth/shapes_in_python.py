# ruff: noqa: E501, RUF005, RUF059 - attacks are written as users write them
"""Sizes in Python, empty tensors, views that are written, steps and flips, loops with state, branches by size, rare index operators."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"
LONG = "N=1:1:2 T=1:30:150"


def lengths(*sizes, text=XT):
    return tuple(values_at(text, N=1, T=t) for t in sizes)


@forward(XT, dims=LONG, kinds=FEW, feeds=lengths(1, 3, 6, 7, 12, 14, 29, 35, 41, 57, 100, 129, 150))
def A4282TimesByFloatSteps(self, x):
    """Times of frames by float steps: arange with 0.02 up to T times 0.02, which has one more at some lengths; linspace; shares of a hop."""
    t = x.shape[1]
    a = torch.arange(0, t * 0.02, 0.02)
    b = torch.linspace(0, t * 0.1, t)
    k = int(t * 0.02 / 0.01)
    return a, x + b, F.pad(x, (0, k))[:, k:], (b * 10).long(), torch.arange(t, 0, -2) / t
@forward(XT, dims=LONG, kinds=FEW, feeds=lengths(1, 2, 3, 8, 9, 16, 27, 64, 81, 100, 121, 125, 144, 150), refused="the exported model differs from the module")
def A4283RootsOfSizes(self, x):
    """A square of patches by isqrt and by ** 0.5, cube roots cut, logs to two, round to even, digits and bits of the length."""
    t = x.shape[1]
    s, c = math.isqrt(t), int(t ** (1 / 3))
    r, e = round(t / 2), round(t * 0.35, 1)
    g = math.gcd(t, 12)
    return x[:, : s * s].unflatten(1, (s, s)).mT.sum(2), x[:, : max(c, 1)].sum(1), x.roll(r, 1), x * e, x[:, ::g], x + t.bit_length() if isinstance(t, int) else x, x.mean(1) * int(math.log2(t)), x[:, int(t**0.5) - 1]
@forward(XT, dims=LONG, kinds=FEW, feeds=lengths(1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 150), refused="the path through the module depends on the size")
def A4284SmallestMultiples(self, x):
    """Ceilings by negation, next multiples and powers of two, sums over ranges, min of three sizes, a product of a size and its half."""
    n, t = x.shape
    up = -(-t // 8) * 8
    p2 = 1 << (t - 1).bit_length() if t > 1 else 1
    tri = sum(range(t)) - t * (t - 1) // 2
    k = min(t, 16, n * 20)
    return F.pad(x, (0, up - t)).view(n, -1, 8).amax(2), x[:, :k], x * (t // 2 * (t - t // 2)) + tri, F.pad(x, (0, p2 - t)).sum(1), x.repeat(1, 3)[:, t // 3 : t // 3 + t]
@forward(X4, "m:float32[N,S,4]", dims="N=1:1:2 T=1:5:9 S=0:3:9", kinds=FEW, feeds=tuple(values_at(X4, "m:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((1, 0), (9, 0), (5, 1), (9, 9))), refused="the path through the module depends on the size")
def A4285MemoryMayBeEmpty(self, x, m):
    """A second input of no rows: joined, attended to, its sum, mean, largest row or zero, products of nothing, a matrix product over nothing."""
    s = m.shape[1]
    y = torch.cat([m, x], 1)
    a = F.scaled_dot_product_attention(x, y, y)
    top = m.amax(1) if s > 0 else m.new_zeros(m.shape[0], 4)
    return a, m.sum(1), m.mean(1).nan_to_num(9.0), top, m.prod(1), m.mT @ m, (m > 0).all(1), (m > 0).any(1), x @ m.mT, F.pad(m, (0, 0, 1, 0)).cumsum(1), torch.logsumexp(F.pad(m, (0, 0, 0, 1)), 1), m.flip(1), m.std(1, unbiased=False).nan_to_num(7.0)
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 3, 24, text=X4), refused="the module cannot be exported")
def A4286WritesThroughViews(self, x):
    """Writes by chained views, diagonals, transposes, chunks, unbind, a view of a view by steps, swaps through a copy, out=, add_ on expand's source."""
    y = x.clone()
    y[:, ::2, 1:3].mul_(2)
    y.mT[:, 0].sub_(1)
    a, b = y.chunk(2, -1)
    a += b
    y.unbind(1)[0].zero_()
    y[..., -1:].expand(-1, -1, 1).copy_(y[..., :1])
    z = torch.zeros(x.shape[0], 4, 4)
    z.diagonal(dim1=1, dim2=2).copy_(y[:, 0] + 1)
    z[:, [0, 1]] = z[:, [1, 0]]
    w = y.view(x.shape[0], -1)
    w[:, ::3] = -w[:, ::3]
    out = torch.empty_like(y)
    torch.clamp(y, -1, 1, out=out)
    torch.add(out, 1, out=out[:, :])
    y.select(1, -1).narrow(1, 1, 2).fill_(5)
    return y, z, w, out
@forward("x:float32[N,H,W]", dims="N=1:1:2 H=2:6:11 W=2:7:11", kinds=FEW, feeds=(normal(1, 2, 2), normal(1, 11, 2), normal(2, 3, 11)))
def A4287FlipsAndStrides(self, x):
    """Rotations, flips, rolls of two axes, diagonals off the middle, strided windows, anti-diagonals, checkerboards, space to depth, tril by size."""
    n, h, w = x.shape
    win = x.as_strided((n, h - 1, w - 1, 2, 2), (x.stride(0), x.stride(1), x.stride(2), x.stride(1), x.stride(2)))
    chk = (torch.arange(h)[:, None] + torch.arange(w)) % 2 == 0
    return torch.rot90(x, 1, (1, 2)), torch.rot90(x, -3, (2, 1)), x.roll((h // 2, -1), (1, 2)), x.diagonal(1, 1, 2), x.flip(2).diagonal(0, 1, 2).sum(1), win.amax((3, 4)), x * chk, x.tril(h - w), x[:, ::-1 + 2, 1::2], x.transpose(1, 2).reshape(n, -1)[:, :: h + 1], F.pixel_unshuffle(F.pad(x, (0, w % 2, 0, h % 2))[:, None], 2)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 5, 6, 24, text=X4))
class A4288LoopWithTwoStates(nn.Module):
    """A loop whose second state moves every third step, with a skip from the step before, a running maximum, and a list of the odd ones."""
    def __init__(self):
        super().__init__()
        self.fast, self.slow = nn.GRUCell(8, 4), nn.GRUCell(4, 4)
    def forward(self, x):
        f, s = x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], 4)
        best, out = torch.full_like(f, float("-inf")), []
        for t in range(x.shape[1]):
            f = self.fast(torch.cat([x[:, t], s], -1), f)
            if t % 3 == 2:
                s = self.slow(f, s)
            best = torch.maximum(best, f)
            out.append(f + s)
        return torch.stack(out, 1), best, s
@forward(XT, dims=ROWS, kinds=FEW, feeds=(*lengths(1, 2, 3, 23, 24), halves(1, 24)))
def A4289DynamicProgramme(self, x):
    """Longest rising run, best sum of neighbours that do not touch, a limiter with attack and release, a counter that saturates."""
    n, t = x.shape
    run, best = torch.ones(n), torch.ones(n)
    take, skip, env, count = x[:, 0].clamp(min=0), torch.zeros(n), x[:, 0].abs(), torch.zeros(n, dtype=torch.int64)
    gains = [1.0 / env.clamp(min=1.0)]
    for i in range(1, t):
        run = torch.where(x[:, i] > x[:, i - 1], run + 1, torch.ones(n))
        best = torch.maximum(best, run)
        take, skip = skip + x[:, i], torch.maximum(skip, take)
        a = x[:, i].abs()
        env = torch.where(a > env, 0.5 * env + 0.5 * a, 0.9 * env + 0.1 * a)
        gains.append(1.0 / env.clamp(min=1.0))
        count = (count + torch.where(a > 0.5, 1, -1)).clamp(0, 3)
    return best, torch.maximum(take, skip), x * torch.stack(gains, 1), count
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 3, 4, 5, 15, 16, 17, 24, text=X4), refused="the path through the module depends on the size")
def A4290EarlyReturns(self, x):
    """One row is returned as it is, few rows by a mean, many in blocks whose rest is dropped; else, elif and a conditional expression by size."""
    n, t, d = x.shape
    if t == 1:
        return x, x[:, 0]
    if t < 4:
        y = x.mean(1, keepdim=True).expand(-1, t, -1)
    elif t % 2:
        y = torch.cat([x[:, :1], x[:, :-1]], 1)
    else:
        y = x.view(n, t // 2, 2, d).flip(2).reshape(n, t, d)
    return y, (y[:, t // 2] if t > 16 else y[:, -1]) * (1 if n == 1 else 2)
@forward("x:float32[N,C,T]", dims="N=1:1:3 C=1:3:4 T=1:5:6", kinds=FEW, feeds=tuple(values_at("x:float32[N,C,T]", N=n, C=c, T=t) for n, c, t in itertools.product((1, 3), (1, 2), (1, 6))))
def A4291BroadcastByAccident(self, x):
    """Squeezes without a dim, sizes of one that broadcast where others match, a batch that equals the channels, expand of ones."""
    n, c, t = x.shape
    m = x.mean(2)
    a = x - m[..., None]
    b = x * x.mean((1, 2)).view(-1, 1, 1) + torch.arange(c).view(c, 1)
    w = torch.ones(1, c, 1) if c > 1 else torch.full((1, 4, 1), 2.0)
    return a, b, x * w, x.squeeze(1).sum(-1) if c == 1 else x.sum((1, 2)), (x.sum(0, keepdim=True) + x).amax(2), torch.broadcast_to(x[:, :1], x.shape), torch.atleast_2d(x[0, 0]), x.std(0, unbiased=False)
@forward(XT, "i:int64[N,S]=0:5", "v:float32[N,S]", dims="N=1:1:2 T=6:8:12 S=1:5:12", kinds=FEW, feeds=(lambda: {"x": np.zeros((1, 6), np.float32), "i": np.array([[5, 5, 0, 5]]), "v": np.array([[1, 2, 3, -4]], np.float32)},), refused="the module cannot be exported")
def A4292ScattersThatMeet(self, x, i, v):
    """Scatters whose indices meet: sums, products, extremes with and without self, means, put_ with accumulate, index_add with alpha, counts, bincount by weights."""
    z = torch.zeros_like(x)
    y = x.clone()
    y.put_(i[0], v[0], accumulate=True)
    return x.scatter_add(1, i, v), x.scatter_reduce(1, i, v, "amin"), x.scatter_reduce(1, i, v, "amax", include_self=False), z.scatter_reduce(1, i, v, "mean"), x.scatter_reduce(1, i, v, "prod", include_self=False), y, x.index_add(1, i[0], v[:, : i.shape[1]], alpha=-0.5), torch.bincount(i[0], minlength=6), torch.bincount(i[0], v[0], minlength=6), x.index_fill(1, i[0], 3.0), torch.zeros_like(x).index_reduce(1, i[0], v, "amax", include_self=False), x.index_copy(1, i[0, :1], v[:, :1])
@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=2:7:15 W=2:8:15", kinds=("normal", "unit", "halves"), feeds=(normal(1, 2, 2, 2), normal(1, 2, 15, 2), normal(1, 2, 14, 13), normal(1, 2, 5, 11)))
def A4293ResizesOfAllKinds(self, x):
    """Interpolation to halves, to fixed sizes, by factors, with corners, area, bicubic, antialias, nearest-exact, there and back."""
    h, w = x.shape[-2:]
    half = F.interpolate(x, size=(h // 2, w // 2), mode="area")
    return half, F.interpolate(half, size=(h, w), mode="bicubic", align_corners=True), F.interpolate(x, size=(5, 5), mode="bilinear", antialias=True), F.interpolate(x, scale_factor=(2, 0.5), mode="nearest"), F.interpolate(x, size=(2 * h - 1, 2 * w - 1), mode="bilinear", align_corners=True), F.interpolate(x, size=(h + 1, w), mode="nearest-exact"), F.interpolate(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True), F.adaptive_avg_pool2d(x, (3, 2)), F.interpolate(x, size=7, mode="bicubic", antialias=True)
@forward("x:float32[N,2,H,W]", "g:float32[N,4,5,2]=-1.5:1.5", dims="N=1:1:2 H=1:6:11 W=1:7:11", kinds=FEW, feeds=(lambda: {"x": np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2), "g": (np.arange(40).reshape(1, 4, 5, 2) % 7 / 2 - 1.5).astype(np.float32)},))
def A4294GridsAtTheBorder(self, x, g):
    """grid_sample of every mode on borders, halves and corners, with and without aligned corners, affine grids of the size."""
    th = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.25]]).expand(x.shape[0], 2, 3)
    ag = F.affine_grid(th, x.shape, align_corners=False)
    return tuple(F.grid_sample(x, g, m, p, a) for m in ("bilinear", "bicubic") for p in ("zeros", "border", "reflection") for a in (True, False)) + (F.grid_sample(x, g, "nearest", "border", True), F.grid_sample(x, ag, align_corners=False))
@forward("x:float32[N,2,T]", dims="N=1:1:2 T=3:11:30", kinds=FEW, feeds=tuple(values_at("x:float32[N,2,T]", N=1, T=t) for t in (3, 4, 5, 6, 7, 29, 30)))
def A4295PoolsAndFolds(self, x):
    """Pools with indices and their inverse, fractional overlap by unfold and fold, LP pools, transposed convolutions to a size, circular padding, same with even kernels."""
    t = x.shape[-1]
    y, i = F.max_pool1d(x, 2, 2, return_indices=True)
    up = F.max_unpool1d(y, i, 2, 2, output_size=[t])
    w = torch.tensor([[[1.0, -1, 0.5, 2]], [[0.5, 1, 1, -1]]])
    even = F.conv1d(x, w, padding="same", groups=2)
    tr = F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1, groups=2, dilation=1)
    circ = F.conv1d(F.pad(x, (2, 1), mode="circular"), w, groups=2)
    return up, even, tr, circ, F.lp_pool1d(x, 3, 2, ceil_mode=True), F.max_pool1d(x, 3, 2, 1, ceil_mode=True), F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.adaptive_max_pool1d(x, 3)
@forward(XT, dims="N=1:2:3 T=4:9:24", kinds=FEW, refused="the module cannot be exported")
def A4296SmallLinearAlgebra(self, x):
    """Outer products, a Gram matrix solved and inverted with a ridge, its Cholesky factor, a determinant, a triangular solve, traces, powers, Vandermonde."""
    v = x[:, :3]
    g = v[:, :, None] * v[:, None] + torch.eye(3)
    c = torch.linalg.cholesky(g)
    s = torch.linalg.solve_triangular(c, v[..., None], upper=False)
    return torch.linalg.solve(g, v), torch.linalg.inv(g), c, s[..., 0], torch.linalg.det(g), g.diagonal(dim1=1, dim2=2).sum(1), torch.linalg.matrix_power(g, 3), torch.vander(v[0].clamp(-2, 2), 4), torch.linalg.cross(v, v.roll(1, 1)), torch.linalg.matrix_norm(g, ord=1), torch.linalg.vector_norm(x, ord=float("inf"), dim=1), torch.cov(v[0:1]), torch.tensordot(x, x, ([1], [1]))
@forward("x:float32[N,3,3]", "p:float32[N,T,3]", dims="N=1:1:2 T=3:6:12", kinds=("normal",), refused="the module cannot be exported")
def A4297KabschAlignment(self, x, p):
    """The rotation between two clouds by an SVD with its sign put right."""
    h = x @ p[:, :3]
    u, _, vt = torch.linalg.svd(h)
    d = torch.det(vt.mT @ u.mT).sign()
    e = torch.diag_embed(torch.stack([torch.ones_like(d), torch.ones_like(d), d], -1))
    return p @ (vt.mT @ e @ u.mT)
@forward(X4, "lens:int64[N]=1:24", dims="N=3 T=24", kinds=FEW, feeds=(lambda: {"x": np.ones((3, 24, 4), np.float32), "lens": np.array([1, 24, 2])},), refused="the module cannot be exported")
def A4298RaggedBatch(self, x, lens):
    """Rows split by lengths of the batch, each reduced and padded again; a reverse within lengths; last valid rows; a segment sum by ids."""
    m = torch.arange(24)[None] < lens[:, None]
    rev = (lens[:, None] - 1 - torch.arange(24)[None])
    rev = torch.where(rev >= 0, rev, torch.arange(24)[None])
    back = x.gather(1, rev[..., None].expand(-1, -1, 4))
    flat = x[m]
    ids = torch.arange(3).repeat_interleave(lens)
    seg = torch.zeros(3, 4).index_add_(0, ids, flat)
    parts = nn.utils.rnn.pad_sequence([row[mm].cumsum(0)[-1:] for row, mm in zip(x, m, strict=True)], batch_first=True)
    return back, seg, x[torch.arange(3), lens - 1], parts
@forward(XT, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 3, 24))
def A4299PairsOfRows(self, x):
    """Pairs by combinations and a cartesian product, upper triangles as vectors, a Hankel matrix by gather, polynomial features, distances packed."""
    n, t = x.shape
    i, j = torch.triu_indices(t, t)
    han = x[:, (torch.arange(t)[:, None] + torch.arange(t)) % t]
    poly = torch.stack([x[:, k] * x[:, m] for k, m in itertools.combinations_with_replacement(range(2), 2)], 1) if t > 1 else x
    d = (x[:, :, None] - x[:, None]).abs()
    return x[:, i] * x[:, j], han.mean(2), poly, d.flatten(1)[:, :: t + 1], torch.cartesian_prod(x[0], x[0]), d.tril(-1).sum((1, 2))
@forward("x:float32[N,5,4]", "d:int64[N,5]=0:4", dims="N=1:2:3", kinds=FEW, feeds=(lambda: {"x": np.arange(20, dtype=np.float32).reshape(1, 5, 4), "d": np.array([[0, 0, 0, 0, 0]])}, lambda: {"x": np.arange(20, dtype=np.float32).reshape(1, 5, 4), "d": np.array([[4, 0, 1, 4, 3]])}))
def A4241LengthRegulator(self, x, d):
    """FastSpeech's expansion to sixteen frames by a running sum and a search, a path as one_hot, energy averaged by phone."""
    end = d.cumsum(1)
    f = torch.arange(16)
    at = torch.searchsorted(end, f.expand(d.shape[0], -1).contiguous(), right=True)
    ok = f[None] < end[:, -1:].clamp(max=16)
    y = x.gather(1, at.clamp(max=4)[..., None].expand(-1, -1, 4)) * ok[..., None]
    path = (f[None, None] < end[..., None]).float()
    path = path - F.pad(path, (0, 0, 1, 0))[:, :-1]
    mean = (path @ y) / path.sum(-1, keepdim=True).clamp(min=1)
    return y, path, mean, end[:, -1], torch.bucketize(y, torch.linspace(-1, 1, 5))
@forward("x:float32[N,T,4]", dims="N=1:1:2 T=1:9:30", kinds=FEW, feeds=tuple(values_at(X4, N=1, T=t) for t in (1, 3, 4, 5, 30)))
def A4240StreamingChunks(self, x):
    """Attention within chunks of four and two chunks to the left, padded to whole chunks, summed with a stitch of overlapping ones."""
    n, t, d = x.shape
    i = torch.arange(t)
    c = torch.div(i, 4, rounding_mode="trunc")
    m = (c[:, None] >= c[None]) & (c[:, None] - c[None] <= 2)
    y = F.scaled_dot_product_attention(x, x, x, attn_mask=m)
    pad = -t % 4
    z = F.pad(x, (0, 0, 0, pad)).view(n, -1, 4, d)
    z = F.pad(z, (0, 0, 0, 0, 1, 0))
    z = torch.cat([z[:, :-1], z[:, 1:]], 2)
    o = F.fold(z.flatten(2).mT, (1, (t + pad) + 4), (1, 8), stride=(1, 4)) if d == 1 else (z[:, :, 4:] + z[:, :, :4]).flatten(1, 2)[:, :t]
    return y, o, m.sum(1), c[-1] + 1
@attack(X4, dims="N=1:2:3 T=4:8:24%4", kinds=FEW)
class A4260HeadsByResolution(nn.Module):
    """A ModuleDict whose head is named by the size, tied to an embedding's weights, tables as ParameterDict and a list of buffers."""
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 4, padding_idx=0)
        self.heads = nn.ModuleDict({f"s{k}": nn.Linear(4, 3) for k in range(1, 4)})
        self.scale = nn.ParameterDict({"even": nn.Parameter(torch.tensor(2.0)), "odd": nn.Parameter(torch.tensor(-1.0))})
        for i in range(2):
            self.register_buffer(f"b{i}", torch.full((4,), float(i)))
    def forward(self, x):
        k = x.shape[1] // 4
        head = self.heads[f"s{min(k, 3)}"]
        x = x + getattr(self, f"b{k % 2}")
        return head(x) * self.scale["even" if k % 2 == 0 else "odd"], F.linear(x, self.emb.weight[: 2 + 4 % 3])
@forward(X4, dims=ROWS, kinds=FEW)
def A4261ZeroDropouts(self, x):
    """Dropouts that do nothing: probability 0 in training, eval of a flag, all dropped, checkpointed, a drop path by the flag."""
    a = F.dropout(x, 0.0, training=True)
    b = F.dropout(x, 0.5, training=self.training)
    c = F.dropout(x, 1.0, training=True)
    d = torch.utils.checkpoint.checkpoint(lambda v: F.alpha_dropout(v.tanh(), 0.3, training=self.training), x, use_reentrant=False)
    keep = 0.9 if self.training else 1.0
    return a + b, c, d / keep, F.feature_alpha_dropout(x, 0.2, self.training), F.rrelu(x, 0.1, 0.3, self.training)
