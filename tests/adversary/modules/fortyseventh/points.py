# ruff: noqa: E501, E731, F841, RUF100, SIM300 - attacks are written as users write them
"""Points, rigid motions, samplers, attention of other kinds, norms, recurrent layers, joint sizes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

P3, X = "p:float32[N,T,3]", "x:float32[N,T]"


@forward(P3, **seq(P3), refused="the path through the module depends on the size")
def A5784FarthestPoints(self, p):
    """PointNet++: the farthest points of a quarter of them, at least one, then the four nearest within a radius."""
    n, t, _ = p.shape
    k = max(t // 4, 1)
    dist = torch.full((n, t), 1e10)
    far = torch.zeros(n, dtype=torch.long)
    out = []
    for _ in range(k):
        out.append(far)
        c = p[torch.arange(n), far][:, None]
        d = ((p - c) ** 2).sum(-1)
        mask = d < dist
        dist[mask] = d[mask]
        far = dist.max(-1)[1]
    at = torch.stack(out, 1)
    c = p.gather(1, at[..., None].expand(-1, -1, 3))
    d = torch.cdist(c, p)
    idx = torch.arange(t).expand(n, k, t).clone()
    idx[d > 1.0] = t
    idx = idx.sort(-1)[0][..., : min(4, t)]
    first = idx[..., :1].expand_as(idx)
    idx = torch.where(idx == t, first, idx)
    return at, p.gather(1, idx.flatten(1)[..., None].expand(-1, -1, 3)).unflatten(1, (k, -1)) - c[:, :, None]


@forward(P3, **seq(P3))
def A5785VoxelsByHash(self, p):
    """Points to voxels: floors of tenths, a hash in int64 by xor of primes, the first of each kept by scatter."""
    v = torch.floor(p / 0.1).long().clamp(-1000, 1000)
    h = (v[..., 0] * 73856093) ^ (v[..., 1] * 19349663) ^ (v[..., 2] * 83492791)
    b = h % 17
    first = torch.full((p.shape[0], 17), p.shape[1]).scatter_reduce(1, b, torch.arange(p.shape[1]).expand_as(b), "amin")
    cnt = torch.zeros(p.shape[0], 17).scatter_add(1, b, torch.ones_like(b, dtype=torch.float))
    mean = torch.zeros(p.shape[0], 17, 3).scatter_add(1, b[..., None].expand_as(p), p) / cnt.clamp(min=1)[..., None]
    return b, first, mean, h >> 5


@forward("a:float32[N,4]", "b:float32[N,4]", "t:float32[N]=0:1", dims="N=1:3:9", feeds=((lambda: {"a": np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]], np.float32), "b": np.array([[1, 0, 0, 0], [-1, 0, 0, 0], [0.5, 0.5, 0.5, 0.50001]], np.float32), "t": np.array([0.3, 0.5, 1.0], np.float32)}),), refused="/tmp/tmpnb0gy480/model.trt.onnx does not")
def A5786SlerpShortWay(self, a, b, t):
    """Quaternions: the shorter way, lerp where they are close, to a matrix, and back by the largest of four cases."""
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    dot = (a * b).sum(-1, keepdim=True)
    b = torch.where(dot < 0, -b, b)
    dot = dot.abs()
    th = torch.acos(dot.clamp(max=1 - 1e-7))
    s = torch.sin(th)
    w = t[:, None]
    q = torch.where(dot > 0.9995, torch.lerp(a, b, w), (torch.sin((1 - w) * th) * a + torch.sin(w * th) * b) / s)
    q = F.normalize(q, dim=-1)
    r, i, j, k = q.unbind(-1)
    m = torch.stack([1 - 2 * (j * j + k * k), 2 * (i * j - k * r), 2 * (i * k + j * r), 2 * (i * j + k * r), 1 - 2 * (i * i + k * k), 2 * (j * k - i * r), 2 * (i * k - j * r), 2 * (j * k + i * r), 1 - 2 * (i * i + j * j)], -1)
    m00, m11, m22 = m[:, 0], m[:, 4], m[:, 8]
    qa = torch.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], -1).clamp(min=0).sqrt()
    return m.view(-1, 3, 3), qa, F.one_hot(qa.argmax(-1), 4)


@forward("w:float32[N,3]", dims="N=1:3:9", feeds=tuple((lambda s=s: {"w": np.array([[s, 0, 0], [0, -s, s], [0, 0, 0]], np.float32)}) for s in (1e-12, 1e-6, 1e-4, 1e-3, 3.14159, 7.0)))
def A5787RodriguesSmall(self, w):
    """Axis and angle to a rotation, by series where the angle is small, and its logarithm by the trace."""
    th2 = (w * w).sum(-1)[:, None, None]
    th = th2.clamp(min=1e-16).sqrt()
    z = torch.zeros_like(w[:, 0])
    k = torch.stack([z, -w[:, 2], w[:, 1], w[:, 2], z, -w[:, 0], -w[:, 1], w[:, 0], z], -1).view(-1, 3, 3)
    small = th2 < 1e-6
    a = torch.where(small, 1 - th2 / 6, torch.sin(th) / th)
    b = torch.where(small, 0.5 - th2 / 24, (1 - torch.cos(th)) / th2)
    r = torch.eye(3) + a * k + b * (k @ k)
    tr = r.diagonal(dim1=-2, dim2=-1).sum(-1)
    return r, torch.acos(((tr - 1) / 2).clamp(-0.999, 0.999)), torch.linalg.det(r)


@forward(P3, "q:float32[N,T,3]", **seq(P3, "q:float32[N,T,3]", low=3))
def A5788CentredCovariances(self, p, q):
    """Umeyama without its SVD: centres, a covariance, a scale, residuals, the nearest of each, and a Chamfer distance."""
    mp, mq = p.mean(1, keepdim=True), q.mean(1, keepdim=True)
    a, b = p - mp, q - mq
    c = a.transpose(1, 2) @ b / p.shape[1]
    s = (b.square().sum((1, 2)) / a.square().sum((1, 2)).clamp(min=1e-9)).sqrt()
    d = (p[:, :, None] - q[:, None]).square().sum(-1)
    m1, i1 = d.min(2)
    m2, i2 = d.min(1)
    mutual = i2.gather(1, i1) == torch.arange(p.shape[1])
    return c, s, m1.mean(1) + m2.mean(1), i1, mutual, torch.linalg.cross(a, b), (m1.sqrt() < 0.5).float().mean(1)


@forward(IMAGE, "g:float32[N,5,T,2]=-1.5:1.5", dims="N=1:1:2 H=1:6:11 W=1:7:11 T=1:3:6", kinds=FEW, feeds=tuple(values_at(IMAGE, "g:float32[N,5,T,2]=-1.5:1.5", N=1, H=h, W=w, T=3) for h, w in itertools.product((1, 2, 5, 11), (1, 3, 11))))
def A5789SamplersOfAllKinds(self, x, g):
    """grid_sample by modes, paddings and corners, at points beyond the border and exactly at it."""
    g = torch.cat([g, g.clamp(-1, 1).round()], 1)
    return tuple(F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=a) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border", "reflection") for a in (True, False))


@forward(IMAGE, **pix(IMAGE))
def A5790ResizersOfAllKinds(self, x):
    """Interpolations by sizes and factors: fixed, twice, 1.5 with and without recompute, to the sum of both, to half."""
    h, w = x.shape[-2:]
    f = F.interpolate
    return f(x, (5, 7), mode="bicubic", align_corners=True), f(x, scale_factor=2, mode="bilinear", align_corners=True), f(x, scale_factor=(1.5, 2.5), mode="nearest"), f(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True), f(x, (h + w, 3), mode="area"), f(x, ((h + 1) // 2, (w + 1) // 2), mode="nearest-exact"), F.adaptive_avg_pool2d(x, (3, None)), F.adaptive_max_pool2d(x, (2, 5)), F.pixel_unshuffle(F.pad(x, (0, w % 2, 0, h % 2)), 2)


@forward(X4, "m:bool[N,T]", **seq(X4, "m:bool[N,T]"))
def A5791MaskedNorms(self, x, m):
    """Norms of what counts only: a mean and variance by masks with Bessel's correction, an instance norm, RMS, power."""
    w = m[..., None].float()
    n = w.sum(1, keepdim=True)
    mean = (x * w).sum(1, keepdim=True) / n.clamp(min=1)
    var = ((x - mean).square() * w).sum(1, keepdim=True) / (n - 1).clamp(min=1)
    y = (x - mean) * torch.rsqrt(var + 1e-5) * w
    return y, torch.where(n > 1, var.sqrt(), 1.0), F.rms_norm(x, (4,), eps=1e-3), x / x.square().mean(1, keepdim=True).add(1e-2).pow(0.25), F.local_response_norm(x.transpose(1, 2), 3), F.group_norm(x.transpose(1, 2), 2) * w.transpose(1, 2)


@attack(X4, "l:int64[N]=1:40", **seq(X4, "l:int64[N]=1:40"))
class A5792RecurrentByMasks(nn.Module):
    """A GRU both ways by hand: the backward one reads each sequence reversed by its length, and states are held."""

    def __init__(self):
        super().__init__()
        self.f, self.b = nn.GRUCell(4, 3), nn.GRUCell(4, 3)

    def forward(self, x, l):  # noqa: E741
        n, t, _ = x.shape
        l = l.clamp(max=t)  # noqa: E741
        at = torch.arange(t)[None]
        rev = torch.where(at < l[:, None], l[:, None] - 1 - at, at)
        y = x.gather(1, rev[..., None].expand_as(x))
        hf, hb, fs, bs = x.new_zeros(n, 3), x.new_zeros(n, 3), [], []
        for i in range(t):
            live = (i < l)[:, None]
            hf = torch.where(live, self.f(x[:, i], hf), hf)
            hb = torch.where(live, self.b(y[:, i], hb), hb)
            fs.append(hf * live)
            bs.append(hb * live)
        b = torch.stack(bs, 1)
        return torch.cat([torch.stack(fs, 1), b.gather(1, rev[..., None].expand_as(b))], -1), hf, hb


@attack(X4, **seq(X4))
class A5793LayersOfTorchRnn(nn.Module):
    """RNN with ReLU both ways, a GRU of two layers with a state given, an LSTM with its cell read by a third."""

    def __init__(self):
        super().__init__()
        self.r, self.g, self.l = nn.RNN(4, 3, nonlinearity="relu", bidirectional=True, batch_first=True), nn.GRU(6, 3, 2, batch_first=True, bias=False), nn.LSTM(3, 4)

    def forward(self, x):
        y, h = self.r(x)
        z, g = self.g(y, h * 0.5)
        o, (hh, c) = self.l(z.transpose(0, 1))
        return o.transpose(0, 1), g[-1] + h[0], c.squeeze(0) - hh[0]


@forward("q:float32[N,T,4]", "k:float32[N,S,4]", **two("q:float32[N,T,4]", "k:float32[N,S,4]"))
def A5794SdpaOfKinds(self, q, k):
    """scaled_dot_product_attention: causal with other lengths, a boolean mask of whole rows off, a scale, four axes."""
    n, t, s = q.shape[0], q.shape[1], k.shape[1]
    f = F.scaled_dot_product_attention
    m = (torch.arange(t)[:, None] + torch.arange(s)[None]) % 3 != 0
    a = f(q, k, k, is_causal=True)
    b = f(q[:, None], k[:, None], k[:, None], attn_mask=m, scale=0.3)[:, 0]
    c = f(q.unflatten(-1, (2, 2)).transpose(1, 2), k.unflatten(-1, (2, 2)).transpose(1, 2), k.unflatten(-1, (2, 2)).transpose(1, 2), attn_mask=m.float() * -5)
    w = torch.where(m, q @ k.transpose(1, 2), -torch.inf).softmax(-1).nan_to_num()
    return a, b.nan_to_num(), c, w


@attack(X4, **seq(X4))
class A5795MultiheadWeights(nn.Module):
    """MultiheadAttention with averaged weights, a bias of keys, a zero attended to, a float mask, and a key padding."""

    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=4)

    def forward(self, x):
        t = x.shape[1]
        pad = (x[..., 0] < -1) & (torch.arange(t) > 0)
        o, w = self.a(x, x, x, key_padding_mask=pad, attn_mask=torch.triu(torch.ones(t, t, dtype=torch.bool), 1), average_attn_weights=True)
        return o, w


@forward("x:float32[N,T,2]", "y:float32[N,S,2]", **two("x:float32[N,T,2]", "y:float32[N,S,2]", low=1, high=16))
def A5796JointSizesOfModulus(self, x, y):
    """A path for one joint size in very many: the remainder of a weighted sum of both lengths."""
    if (x.shape[1] * 31 + y.shape[1] * 17) % 101 == 7:
        return x.flip(1), y * 2
    return x, y


@forward(P3, **seq(P3, low=3))
def A5797PolygonOfPoints(self, p):
    """A polygon: its area by the shoelace with a roll, its perimeter, whether the origin is inside by crossings, its turn."""
    a, b = p[..., :2], p[..., :2].roll(-1, 1)
    cross = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    hit = ((a[..., 1] > 0) != (b[..., 1] > 0)) & (0 < (b[..., 0] - a[..., 0]) * (0 - a[..., 1]) / (b[..., 1] - a[..., 1]) + a[..., 0])
    ang = torch.atan2(b[..., 1], b[..., 0]) - torch.atan2(a[..., 1], a[..., 0])
    ang = (ang + math.pi) % (2 * math.pi) - math.pi
    return cross.sum(1) / 2, (b - a).norm(dim=-1).sum(1), hit.sum(1) % 2 == 1, torch.round(ang.sum(1) / (2 * math.pi))


@forward(X4, **seq(X4))
def A5798EinopsByHand(self, x):
    """rearrange, reduce and repeat by hand: groups of thirds with the rest padded, packed, unpacked, crossed."""
    n, t, c = x.shape
    g = -(-t // 3)
    y = F.pad(x, (0, 0, 0, g * 3 - t)).reshape(n, g, 3, 2, 2)
    a = y.permute(3, 0, 1, 4, 2).reshape(2 * n, g * 2, 3)
    b = torch.einsum("ngpab,nhpab->ngh", y, y)
    packed = torch.cat([v.reshape(n, -1, c) for v in (x, y, b[..., :1].expand(-1, -1, 4))], 1)
    u = packed.split([t, g * 3, g], 1)
    return a, b.amax(-1), u[0] - x, u[1].unflatten(1, (g, 3)).mean(2), u[2][..., 0].repeat_interleave(3, 1)[:, :t]


@forward("c:float32[N,H,W]", **pix("c:float32[N,H,W]", high=10), refused="the path through the module depends on the size")
def A5799CostsAggregated(self, c):
    """Semi-global matching: costs carried along rows with penalties, from left and right, by loops over the width."""
    p1, p2 = 0.1, 0.5
    acc = []
    for z in (c, c.flip(2)):
        out = [z[:, :, 0]]
        for i in range(1, z.shape[2]):
            prev = out[-1]
            least = prev.amin(1, keepdim=True)
            up = F.pad(prev[:, 1:], (0, 1), value=1e9) + p1
            down = F.pad(prev[:, :-1], (1, 0), value=1e9) + p1
            out.append(z[:, :, i] + torch.minimum(torch.minimum(prev, least + p2), torch.minimum(up, down)) - least)
        acc.append(torch.stack(out, 2))
    s = acc[0] + acc[1].flip(2)
    return s, s.argmin(1)


@attack(X, **seq(X), refused="the path through the module depends on the size")
class A5800SplinesOfCubics(nn.Module):
    """A natural cubic spline through the input by a solved system of its length, evaluated at twice as many places."""

    def forward(self, x):
        t = x.shape[1]
        if t < 3:
            return x.repeat_interleave(2, 1)
        a = torch.eye(t) * 4 + torch.diag(torch.ones(t - 1), 1) + torch.diag(torch.ones(t - 1), -1)
        a[0], a[-1] = torch.eye(t)[0], torch.eye(t)[-1]
        d = F.pad(6 * (x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]), (1, 1))
        m = torch.linalg.solve(a, d.T).T
        q = torch.linspace(0, t - 1, 2 * t)
        i = q.floor().long().clamp(max=t - 2)
        u = q - i
        return m[:, i] * (1 - u) ** 3 / 6 + m[:, i + 1] * u**3 / 6 + (x[:, i] - m[:, i] / 6) * (1 - u) + (x[:, i + 1] - m[:, i + 1] / 6) * u
