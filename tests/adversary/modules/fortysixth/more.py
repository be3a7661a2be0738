# ruff: noqa: E501 - attacks are written as users write them
"""The last of pictures, sounds and language."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, LENGTHS, X4, pix, seq
from tests.adversary.values import values_at

MT = "m:bool[N,T]"


@forward("d:float32[N,1,H,W]", "k:float32[N,3,3]", **pix("d:float32[N,1,H,W]", "k:float32[N,3,3]", low=3))
def A5323NormalsOfDepth(self, d, k):
    """Depth to points by intrinsics, gradients by shifts, and a normal by a cross product; the border is replicated."""
    n, _, h, w = d.shape
    k = k + 5 * torch.eye(3)
    v, u = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
    pix = torch.stack((u, v, torch.ones_like(u)), 0).view(1, 3, -1)
    p = (torch.linalg.inv(k) @ pix).view(n, 3, h, w) * d
    gx = p[:, :, 1:-1, 2:] - p[:, :, 1:-1, :-2]
    gy = p[:, :, 2:, 1:-1] - p[:, :, :-2, 1:-1]
    return F.pad(F.normalize(torch.cross(gx, gy, dim=1), dim=1, eps=1e-6), (1, 1, 1, 1), mode="replicate")
@forward(X4, "t:int64[N]=0:999", **seq(X4, "t:int64[N]=0:999"))
def A5324DdimStep(self, x, t):
    """A step of DDIM on a schedule of a thousand: the previous time may be below zero, and then the product is one."""
    acp = torch.cumprod(1 - torch.linspace(0.0001**0.5, 0.02**0.5, 1000) ** 2, 0)
    prev = t - 1000 // 7
    a = acp[t][:, None, None]
    b = torch.where(prev >= 0, acp[prev.clamp(min=0)], torch.ones(()))[:, None, None]
    eps = x.flip(-1) * 0.5
    x0 = ((x - (1 - a) ** 0.5 * eps) / a**0.5).clamp(-1, 1)
    s = x0.abs().flatten(1).quantile(0.95, dim=1)[:, None, None].clamp(min=1, max=3)
    var = (1 - b) / (1 - a) * (1 - a / b)
    return b**0.5 * x0.clamp(-s, s) / s + (1 - b - 0.3 * var).clamp(min=0) ** 0.5 * eps
@forward("t:float32[N]", "x:float32[N,D]", dims="N=1:2:4 D=3:8:21", feeds=tuple(values_at("t:float32[N]", "x:float32[N,D]", N=2, D=d) for d in range(3, 22)), kinds=FEW)
def A5325TimestepEmbedding(self, t, x):
    """DDPM's embedding of a moving width: padded by one where the width is odd, halves flipped."""
    d = x.shape[1]
    half = d // 2
    e = torch.exp(-np.log(10000) * torch.arange(0, half, dtype=torch.float32) / (half - 0.5))
    e = t[:, None].float() * e[None]
    e = torch.cat([e.sin(), e.cos()], -1)
    e = torch.cat([e[:, half:], e[:, :half]], -1)
    if d % 2 == 1:
        e = F.pad(e, (0, 1, 0, 0))
    return x + e
@forward("x:float32[N,T]", **seq("x:float32[N,T]"))
def A5349BeatsPicked(self, x):
    """madmom's way: peaks of a moving maximum above a moving mean, and no two within three frames."""
    m = F.max_pool1d(x[:, None], 7, 1, 3)[:, 0]
    mean = F.avg_pool1d(F.pad(x[:, None], (3, 3), mode="replicate"), 7, 1)[:, 0]
    peak = (x == m) & (x >= mean + 0.05)
    last, out = torch.full((x.shape[0],), -100), []
    for t in range(x.shape[1]):
        ok = peak[:, t] & (t - last > 3)
        last = torch.where(ok, t, last)
        out.append(ok)
    return torch.stack(out, 1), last
@attack("x:float32[N,4,T]", **seq("x:float32[N,4,T]"))
class A5350EncodecPads(nn.Module):
    """A padded reflection of waves that are shorter than the padding: zeros first, and cut again."""

    def __init__(self):
        super().__init__()
        self.c = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 7, stride=2, dilation=2))

    def forward(self, x):
        k, s = (7 - 1) * 2 + 1, 2
        total = k - s
        n = (x.shape[-1] - k + total) / s + 1
        extra = (math.ceil(n) - 1) * s + (k - total) - x.shape[-1]
        right = total // 2
        left = total - right
        length, more = x.shape[-1], 0
        top = max(left, right + extra)
        if length <= top:
            more = top - length + 1
            x = F.pad(x, (0, more))
        y = F.pad(x, (left, right + extra), mode="reflect")
        return self.c(y[..., : y.shape[-1] - more])
@forward(X4, "i:int64[N,T]=0:9", **seq(X4, "i:int64[N,T]=0:9"))
def A5373EotOfClip(self, x, i):
    """CLIP: the first end-of-text of each text by an argmax of int; without one the first token."""
    at = (i.to(dtype=torch.int) == 7).int().argmax(dim=-1)
    pooled = x[torch.arange(x.shape[0]), at]
    mask = (torch.arange(i.shape[1]) <= at[:, None])[..., None].expand(x.size()).float()
    return F.normalize(pooled, p=2, dim=-1), torch.sum(x * mask, 1) / torch.clamp(mask.sum(1), min=1e-9)
@forward(X4, MT, **seq(X4, MT))
def A5374LongformerChunks(self, x, m):
    """Padded to twice a window, chunks that overlap through as_strided, the ends masked in place."""
    n, t, d = x.shape
    w = 3
    pad = (2 * w - t % (2 * w)) % (2 * w)
    x = F.pad(x * m[..., None], (0, 0, 0, pad)).contiguous()
    y = F.pad(x, (0, 0, w, w))
    c = y.as_strided((n, x.shape[1] // w, 3 * w, d), (y.stride(0), w * y.stride(1), y.stride(1), y.stride(2)))
    q = x.view(n, -1, w, d)
    s = q @ c.transpose(-1, -2)
    s[:, 0, :, :w] = -torch.inf
    s[:, -1, :, -w:] = -torch.inf
    return (s.softmax(-1) @ c).view(n, -1, d)[:, :t]
@forward(X4, "e:float32[E]", dims="N=1:2:3 T=1:9:33 E=2:4:9", kinds=FEW, feeds=tuple(values_at(X4, "e:float32[E]", N=1 + t % 3, T=t, E=e) for t in LENGTHS if t < 34 for e in range(2, 10)))
def A5375CapacityOfThreeSizes(self, x, e):
    """GShard: a capacity of two sizes and the count of experts, rounded up to a multiple of four, tokens by places."""
    tokens, experts = x.shape[0] * x.shape[1], e.shape[0]
    cap = math.ceil(tokens / experts * 1.1)
    cap += -cap % 4
    logits = x.reshape(tokens, 4).sum(-1, keepdim=True) * e
    idx = logits.argmax(1)
    mask = F.one_hot(idx, experts)
    loc = (mask.cumsum(0) - 1) * mask
    mask = mask * (loc < cap)
    buf = x.new_zeros(experts, cap, 4)
    buf = buf.index_put((idx, (loc.sum(1)).clamp(max=cap - 1)), x.reshape(tokens, 4) * mask.sum(1, keepdim=True), accumulate=True)
    return buf, mask.sum(0), (mask.float().mean(0) * logits.softmax(1).mean(0)).sum() * experts
