# ruff: noqa: E501, E731, RUF059 - attacks are written as users write them
"""Networks of language: positions, masks, experts, codes, searches, caches."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq, two
from tests.adversary.values import values_at

X8, IDS, MT, YS = "x:float32[N,T,8]", "i:int64[N,T]=0:9", "m:bool[N,T]", "y:float32[N,S,4]"


def rotate(x, cos, sin):
    """Half the features turned against the other half."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


@attack(X8, **seq(X8))
class A5351DynamicNtk(nn.Module):
    """Hugging Face's dynamic NTK: a base by length beyond sixteen, kept in buffers that grow and are reset."""

    def __init__(self):
        super().__init__()
        self.base, self.cached, self.original = 10000.0, 16, 16
        self.register_buffer("inv", 1.0 / 10000.0 ** (torch.arange(0, 8, 2).float() / 8), persistent=False)
        self.original_inv = self.inv

    def forward(self, x):
        t = x.shape[1]
        if t > self.cached:
            base = self.base * ((2.0 * t / self.original) - 1.0) ** (8 / (8 - 2))
            self.register_buffer("inv", 1.0 / base ** (torch.arange(0, 8, 2).float() / 8), persistent=False)
            self.cached = t
        if t < self.original and self.cached > self.original:
            self.register_buffer("inv", self.original_inv, persistent=False)
            self.cached = self.original
        f = torch.arange(t)[:, None] * self.inv
        e = torch.cat((f, f), -1)
        return rotate(x, e.cos(), e.sin())
@forward(X8, **seq(X8))
def A5352YarnByLength(self, x):
    """YaRN with a scale by length: a ramp between two found dims, and a temperature by a logarithm."""
    t, dim, base, orig = x.shape[1], 8, 10000.0, 12
    scale = max(t / orig, 1.0)
    find = lambda r: (dim * math.log(orig / (r * 2 * math.pi))) / (2 * math.log(base))
    low, high = max(math.floor(find(2.0)), 0), min(math.ceil(find(0.5)), dim - 1)
    freq = base ** (torch.arange(0, dim, 2).float() / dim)
    ramp = torch.clamp((torch.arange(dim // 2).float() - low) / (high - low + 0.001), 0, 1)
    inv = 1.0 / (scale * freq) * ramp + 1.0 / freq * (1 - ramp)
    m = 1.0 if scale <= 1 else 0.1 * math.log(scale) + 1.0
    e = torch.arange(t)[:, None] * torch.cat((inv, inv))
    return rotate(x, e.cos() * m, e.sin() * m)
@forward(X8, "p:int64[N,T]=0:39", **seq(X8, "p:int64[N,T]=0:39"))
def A5353LongRope(self, x, p):
    """Phi-3: short or long factors by the greatest of the positions, chosen by where."""
    short, long = torch.tensor([1.0, 1.1, 1.5, 2.0]), torch.tensor([1.0, 2.0, 8.0, 32.0])
    ext = torch.where(p.max() + 1 > 16, long, short)
    inv = 1.0 / (ext * 10000.0 ** (torch.arange(0, 8, 2, dtype=torch.int64).float() / 8))
    f = (inv[None, :, None].expand(p.shape[0], -1, 1) @ p[:, None, :].float()).transpose(1, 2)
    e, m = torch.cat((f, f), -1), math.sqrt(1 + math.log(4) / math.log(16))
    return rotate(x, e.cos() * m, e.sin() * m)
@forward("x:float32[N,H,T,T]", MT, dims="N=1:2:2 H=1:6:13 T=1:5:9", kinds=FEW, feeds=tuple(values_at("x:float32[N,H,T,T]", MT, N=1, H=h, T=t) for h in range(1, 14) for t in (1, 4, 9)))
def A5354AlibiOfManyHeads(self, x, m):
    """BLOOM: slopes of a moving count of heads, that of the closest power of two and of twice it."""
    h = x.shape[1]
    closest = 2 ** math.floor(math.log2(h))
    base = torch.tensor(2 ** (-(2 ** -(math.log2(closest) - 3))), dtype=torch.float32)
    slopes = torch.pow(base, torch.arange(1, 1 + closest, dtype=torch.int32))
    if closest != h:
        extra = torch.tensor(2 ** (-(2 ** -(math.log2(2 * closest) - 3))), dtype=torch.float32)
        rest = min(closest, h - closest)
        slopes = torch.cat([slopes, torch.pow(extra, torch.arange(1, 1 + 2 * rest, 2, dtype=torch.int32))], 0)
    at = ((m.cumsum(-1) - 1) * m)[:, None]
    return (x + slopes[..., None] * at[:, None] if False else x + slopes[:, None, None] * at[:, None])
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", **two("x:float32[N,T,4]", "y:float32[N,S,4]", zero=True))
def A5355SlidingWindowWithPast(self, x, y):
    """Mistral: causal and within a window of four, with as much past as there is, none too."""
    past, t = y.shape[1], x.shape[1]
    keys = torch.cat([y, x], 1)
    mask = torch.tril(torch.ones(t, past + t, dtype=torch.int8), diagonal=past)
    mask = torch.triu(mask, diagonal=past - 4 + 1)
    bias = torch.log(mask.float())
    a = (x @ keys.transpose(1, 2) / 2 + bias).softmax(-1)
    return a @ keys, keys[:, -3:]
@forward(X4, MT, **seq(X4, MT))
def A5356BlocksOfBigBird(self, x, m):
    """Padded to blocks of four, each sees its own, the next, the first and the last; padding masked."""
    n, t, d = x.shape
    pad = (4 - t % 4) % 4
    x, m = F.pad(x, (0, 0, 0, pad)), F.pad(m, (0, pad), value=False)
    b = x.shape[1] // 4
    i, j = torch.arange(b)[:, None], torch.arange(b)[None]
    block = ((i - j).abs() <= 1) | (j == 0) | (j == b - 1) | (i % max(b - 1, 1) == 0)
    mask = block.repeat_interleave(4, 0).repeat_interleave(4, 1)[None] & m[:, None] & m[..., None]
    s = (x @ x.transpose(1, 2)).masked_fill(~mask, torch.finfo(x.dtype).min)
    return (s.softmax(-1) * mask.any(-1, keepdim=True) @ x)[:, :t]
@forward(X4, **seq(X4))
def A5357ExpertsWithCapacityOfFloats(self, x):
    """Switch: a capacity of 1.25 times tokens by experts, cut; places by running sums, what is beyond is dropped."""
    flat = x.reshape(-1, 4)
    capacity = max(int(1.25 * flat.shape[0] / 4), 2)
    gate, expert = flat.softmax(-1).max(-1)
    hot = F.one_hot(expert, 4)
    place = (hot.cumsum(0) * hot).sum(-1) - 1
    keep = place < capacity
    slots = F.one_hot(place.clamp(max=capacity - 1), capacity) * keep[:, None]
    dispatch = hot[:, :, None] * slots[:, None]
    inputs = torch.einsum("tec,td->ecd", dispatch.float(), flat)
    out = torch.einsum("tec,ecd->td", dispatch * gate[:, None, None], inputs * torch.arange(1.0, 5)[:, None, None])
    return out.view_as(x), keep.view(x.shape[:2])
@attack(X4, **seq(X4))
class A5358MixtralLoop(nn.Module):
    """Two experts of three for each token, normalised, added up by index_add where they were chosen."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3, bias=False), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        flat = x.view(-1, 4)
        logits = self.gate(flat)
        w, sel = torch.topk(F.softmax(logits, 1, dtype=torch.float), 2, -1)
        w /= w.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        mask = F.one_hot(sel, 3).permute(2, 1, 0)
        for e in range(3):
            idx, top = torch.where(mask[e])
            if top.shape[0] == 0:
                continue
            out.index_add_(0, top, self.experts[e](flat[top]) * w[top, idx, None])
        return out.view_as(x), logits
@attack(X4, **seq(X4))
class A5359VectorQuantised(nn.Module):
    """VQ-VAE: the nearest of a codebook with two equal rows, straight through, and a perplexity."""

    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(6, 4)
        with torch.no_grad():
            self.codes.weight[3] = self.codes.weight[1]
            self.codes.weight[5] = 0

    def forward(self, x):
        flat = x.reshape(-1, 4)
        d = flat.pow(2).sum(1, keepdim=True) + self.codes.weight.pow(2).sum(1) - 2 * flat @ self.codes.weight.t()
        idx = d.argmin(1)[:, None]
        enc = torch.zeros(idx.shape[0], 6).scatter_(1, idx, 1)
        q = (enc @ self.codes.weight).view_as(x)
        loss = F.mse_loss(q.detach(), x) * 0.25 + F.mse_loss(q, x.detach())
        p = enc.mean(0)
        return loss, x + (q - x).detach(), torch.exp(-(p * (p + 1e-10).log()).sum()), idx
@forward("x:float32[N,T,3]", **seq("x:float32[N,T,3]"))
def A5360FiniteScalars(self, x):
    """FSQ: bounded by a shifted tanh for even levels, rounded, and an index by a basis of int32."""
    levels = torch.tensor([8, 5, 4], dtype=torch.int32)
    half_l = (levels - 1) * (1 + 1e-3) / 2
    offset = torch.where(levels % 2 == 0, 0.5, 0.0)
    z = (x + (offset / half_l).atanh()).tanh() * half_l - offset
    q = (z + (z.round() - z).detach()) / (levels // 2)
    basis = torch.cumprod(torch.tensor([1, 8, 5]), 0, dtype=torch.int32)
    idx = ((q * (levels // 2) + levels // 2) * basis).sum(-1).to(torch.int32)
    codes = (idx[..., None] // basis) % levels
    return q, idx, (codes - levels // 2) / (levels // 2)
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", **two("x:float32[N,T,4]", "y:float32[N,S,4]", zero=True))
def A5361OptimalTransport(self, x, y):
    """SuperGlue: scores with a dustbin, Sinkhorn in logarithms of sizes; without keypoints nothing matches."""
    scores = torch.einsum("ntd,nsd->nts", x, y) / 4**0.5
    n, t, s = scores.shape
    bin0 = torch.tensor(0.5)
    z = torch.cat([torch.cat([scores, bin0.expand(n, t, 1)], -1), torch.cat([bin0.expand(n, 1, s), bin0.expand(n, 1, 1)], -1)], 1)
    one = scores.new_tensor(1)
    ms, ns = (t * one).to(scores), (s * one).to(scores)
    norm = -(ms + ns).log()
    mu = torch.cat([norm.expand(t), ns.log()[None] + norm])[None].expand(n, -1)
    nu = torch.cat([norm.expand(s), ms.log()[None] + norm])[None].expand(n, -1)
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for _ in range(5):
        u = mu - torch.logsumexp(z + v[:, None], 2)
        v = nu - torch.logsumexp(z + u[:, :, None], 1)
    return z + u[:, :, None] + v[:, None] - norm
@forward("x:float32[N,3,V]", "s:float32[N,3]", "d:bool[N,3]", dims="N=1:2:3 V=2:9:20", kinds=FEW, feeds=tuple(values_at("x:float32[N,3,V]", "s:float32[N,3]", "d:bool[N,3]", N=2, V=v) for v in range(2, 21)))
def A5362BeamStep(self, x, s, d):
    """A step of beam search: finished beams go on with the last token only, at no cost; beams by division."""
    n, b, v = x.shape
    lp = x.log_softmax(-1)
    end = torch.full((v,), -math.inf)
    end[-1] = 0
    lp = torch.where(d[..., None], end, lp)
    total = (lp + s[..., None]).view(n, -1)
    best, at = total.topk(min(2 * b, b * v), dim=1)
    beam, token = torch.div(at, v, rounding_mode="floor"), at % v
    done = d.gather(1, beam) | (token == v - 1)
    return best[:, :b], beam[:, :b], token[:, :b], done[:, :b], torch.where(done, best / 7**0.6, -1e9).amax(1)
@forward("x:float32[N,10]", IDS, "t:float32[1]=0.1:2", **seq("x:float32[N,10]", IDS, "t:float32[1]=0.1:2"))
def A5363PenaltyAndMinP(self, x, i, t):
    """Sampling: a penalty by sign for what was said, a temperature, min-p, and at least three kept."""
    score = torch.gather(x, 1, i)
    score = torch.where(score < 0, score * 1.2, score / 1.2)
    x = x.scatter(1, i, score) / t
    p = x.softmax(-1)
    remove = p < 0.3 * p.amax(-1, keepdim=True)
    order = torch.argsort(x, descending=True, dim=-1, stable=True)
    rs = remove.gather(-1, order)
    rs[..., :3] = False
    return x.masked_fill(rs.scatter(1, order, rs), -float("inf"))
@forward("x:float32[N,10]", IDS, **seq("x:float32[N,10]", IDS))
def A5364NoRepeatedTrigrams(self, x, i):
    """What would repeat three ids is banned by a scatter; of fewer ids nothing is."""
    if i.shape[1] + 1 < 3:
        return x
    grams = i.unfold(1, 3, 1) if i.shape[1] >= 3 else i.new_full((i.shape[0], 1, 3), -1)
    same = (grams[..., :2] == i[:, None, -2:]).all(-1)
    bans = torch.zeros_like(x).scatter_add(1, grams[..., 2].clamp(min=0), same.float())
    return torch.where(bans > 0, -torch.inf, x)
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", **two("x:float32[N,T,4]", "y:float32[N,S,4]", high=30))
def A5365DebertaBuckets(self, x, y):
    """DeBERTa: relative places in buckets of a logarithm, with their signs."""
    rel = torch.arange(x.shape[1])[:, None] - torch.arange(y.shape[1])[None]
    mid, sign = 4, torch.sign(rel)
    pos = torch.where((rel < mid) & (rel > -mid), torch.tensor(mid - 1).type_as(rel), torch.abs(rel))
    log = torch.ceil(torch.log(pos / mid) / torch.log(torch.tensor((24 - 1) / mid)) * (mid - 1)) + mid
    b = torch.where(pos <= mid, rel.type_as(log), log * sign).long()
    table = torch.arange(16.0).sin()
    return x @ y.transpose(1, 2) + table[(b + 8).clamp(0, 15)]
@attack("k:float32[N,T,4]", "p:int64[T]=0:19", "c:float32[N,6,4]", dims="N=1:2:2 T=1:1:1", feeds=tuple((lambda i=i: {"k": np.full((2, 1, 4), i, np.float32), "p": np.array([i], np.int64), "c": np.arange(48, dtype=np.float32).reshape(2, 6, 4)}) for i in range(20)))
class A5366SlidingCache(nn.Module):
    """Hugging Face's sliding window cache: rolled by an index that wraps once the position is beyond the window."""

    def forward(self, k, p, c):
        slicing = torch.ones(6, dtype=torch.long).cumsum(0)
        p = p.clamp(0, 6 - 1)
        shift = p >= 6 - 1
        idx = (slicing + shift[-1:].int() - 1) % 6
        c = c[:, idx]
        c.index_copy_(1, p, k)
        return c, p
@attack("k:float32[N,T,4]", "v:float32[N,T,4]", **seq("k:float32[N,T,4]", "v:float32[N,T,4]"))
class A5367Wkv(nn.Module):
    """RWKV's recurrence with a running maximum that begins at -1e38."""

    def __init__(self):
        super().__init__()
        self.decay, self.first = nn.Parameter(torch.rand(4)), nn.Parameter(torch.rand(4))

    def forward(self, k, v):
        num, den, top, out = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]) - 1e38, torch.zeros_like(k)
        w = -torch.exp(self.decay)
        for i in range(k.size(1)):
            m = torch.maximum(top, k[:, i] + self.first)
            e1, e2 = torch.exp(top - m), torch.exp(k[:, i] + self.first - m)
            out[:, i] = (e1 * num + e2 * v[:, i]) / (e1 * den + e2)
            m = torch.maximum(top + w, k[:, i])
            e1, e2 = torch.exp(top + w - m), torch.exp(k[:, i] - m)
            num, den, top = e1 * num + e2 * v[:, i], e1 * den + e2, m
        return out, top
class Scan(NamedTuple):
    """What a scan gives back."""

    y: torch.Tensor
    state: torch.Tensor
@attack(X4, "h:float32[N,4,3]", **seq(X4, "h:float32[N,4,3]"))
class A5368SelectiveScan(nn.Module):
    """Mamba: steps by softplus, a state that is discretised, as a NamedTuple."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.arange(1.0, 4).log().expand(4, 3).clone())
        self.p = nn.Linear(4, 10)

    def forward(self, x, h):
        dt, b, c = self.p(x).split([4, 3, 3], -1)
        dt = F.softplus(dt)
        da = torch.exp(dt[..., None] * -torch.exp(self.a.float()))
        dbx = dt[..., None] * b[:, :, None] * x[..., None]
        ys = []
        for t in range(x.shape[1]):
            h = da[:, t] * h + dbx[:, t]
            ys.append(torch.einsum("ndk,nk->nd", h, c[:, t]))
        return Scan(torch.stack(ys, 1) * F.silu(x), h)
@forward(X4, **seq(X4))
def A5369Retention(self, x):
    """RetNet: decays of two heads as a triangular mask of exponents, normalised, infinite above the diagonal."""
    t = x.shape[1]
    decay = torch.log(1 - 2 ** (-5 - torch.arange(2, dtype=torch.float)))
    idx = torch.arange(t).to(decay)
    mask = torch.tril(torch.ones(t, t))
    mask = torch.masked_fill(idx[:, None] - idx[None], ~mask.bool(), float("inf"))
    mask = torch.nan_to_num(torch.exp(mask * decay[:, None, None]))
    mask = mask / mask.sum(-1, keepdim=True).sqrt()
    q = x.unflatten(-1, (2, 2)).transpose(1, 2)
    s = q @ q.transpose(-1, -2) * mask
    s = s / s.detach().abs().sum(-1, keepdim=True).clamp(min=1, max=5e4)
    return (s @ q).transpose(1, 2).flatten(2)
@forward(X4, **seq(X4))
def A5370XposScales(self, x):
    """xPos: scales to a power of places about the middle of the length, halved and floored."""
    t = x.shape[1]
    lo, hi = -t // 2, t + -t // 2
    scale = (torch.arange(0, 4, 2) + 0.4 * 4) / (1.4 * 4)
    power = scale ** torch.arange(lo, hi, 1).to(scale).div(4)[:, None]
    s = power.repeat_interleave(2, -1)
    q, k = x * s, x / s
    kv = torch.einsum("ntd,nte->ntde", F.elu(k) + 1, x).cumsum(1)
    z = (F.elu(k) + 1).cumsum(1)
    q = F.elu(q) + 1
    return torch.einsum("ntd,ntde->nte", q, kv) / (torch.einsum("ntd,ntd->nt", q, z)[..., None] + 1e-6)
@forward(X4, **seq(X4, low=2))
def A5371TokensMerged(self, x):
    """ToMe: the most alike of even tokens are merged into odd ones, at most three and half of what is there."""
    n, t, c = x.shape
    r = min(3, (t - 1) // 2)
    if r <= 0:
        return x
    m = x / (x.norm(dim=-1, keepdim=True) + 1e-6)
    a, b = m[..., ::2, :], m[..., 1::2, :]
    scores = a @ b.transpose(-1, -2)
    scores[..., 0, :] = -math.inf
    best, at = scores.max(dim=-1)
    edge = best.argsort(dim=-1, descending=True, stable=True)[..., None]
    unm, src = edge[..., r:, :], edge[..., :r, :]
    dst = at[..., None].gather(-2, src)
    unm = unm.sort(dim=1)[0]
    s, d = x[..., ::2, :], x[..., 1::2, :]
    keep = s.gather(-2, unm.expand(n, s.shape[1] - r, c))
    d = d.scatter_reduce(-2, dst.expand(n, r, c), s.gather(-2, src.expand(n, r, c)), reduce="mean")
    return torch.cat([keep, d], 1)
@forward(X4, "m:int64[N,T]=0:1", **seq(X4, "m:int64[N,T]=0:1"))
def A5372LastTokenPooled(self, x, m):
    """E5: if all masks end in one the padding is left, and the last token it is; else the last of each length."""
    left = m[:, -1].sum() == m.shape[0]
    if left:
        return x[:, -1]
    return x[torch.arange(x.shape[0]), m.sum(1) - 1]
