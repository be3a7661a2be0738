"""Transformers and generation: rotary variants, ALiBi, caches, beams, processors of logits, schedulers, state."""
# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,8]=-2:2", dims="N=1:1:2 T=1:12:40", kinds=FINITE)
class A7541DynamicNtkRotary(nn.Module):
    """Rotary whose base grows once the length passes 16 (dynamic NTK), partial over six of eight, interleaved in one half and rotated halves in the other, llama 3's smoothing of frequencies."""

    def forward(self, x):
        t = x.shape[1]
        base, dim = 10000.0, 4
        if t > 16:
            base = base * ((2.0 * t / 16) - (2.0 - 1)) ** (dim / (dim - 2))
        inv = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        wl = 2 * math.pi / inv
        smooth = ((16 / wl - 1.0) / (4.0 - 1.0)).clamp(0, 1)
        inv = torch.where(wl > 16, (1 - smooth) * inv / 8.0 + smooth * inv, inv)
        f = torch.outer(torch.arange(t, dtype=inv.dtype), inv)
        cos, sin = f.cos(), f.sin()
        a, b, rest = x[..., :4], x[..., 4:6], x[..., 6:]
        e = torch.cat((f, f), -1)
        h = torch.cat((-a[..., 2:], a[..., :2]), -1)
        a = a * e.cos() + h * e.sin()
        b = torch.stack([b[..., 0] * cos[:, 0] - b[..., 1] * sin[:, 0], b[..., 1] * cos[:, 0] + b[..., 0] * sin[:, 0]], -1)
        return torch.cat([a, b, rest], -1)


@attack("q:float32[N,6,T,4]=-2:2", "k:float32[N,6,S,4]=-2:2", "v:float32[N,6,S,4]=-2:2", "m:bool[N,S]", dims="N=1:1:2 T=1:3:6 S=6:7:12", kinds=FINITE)
class A7542AlibiOfSixHeads(nn.Module):
    """ALiBi slopes of six heads (not a power of two: slopes of four and every second of eight), queries aligned at the end of the keys, causal by comparison, padding by masked_fill with the type's minimum."""

    def slopes(self, n):
        def two(k):
            start = 2 ** (-(2 ** -(math.log2(k) - 3)))
            return [start * start**i for i in range(k)]

        if math.log2(n).is_integer():
            return two(n)
        c = 2 ** math.floor(math.log2(n))
        return two(c) + self.slopes(2 * c)[0::2][: n - c]

    def forward(self, q, k, v, m):
        t, s = q.shape[2], k.shape[2]
        qp = torch.arange(s - t, s)[:, None]
        kp = torch.arange(s)[None]
        bias = -(qp - kp).abs() * torch.tensor(self.slopes(6)).view(6, 1, 1)
        a = q @ k.transpose(-1, -2) / 2.0 + bias
        a = a.masked_fill(kp > qp, torch.finfo(a.dtype).min)
        a = a.masked_fill(~m[:, None, None, :], torch.finfo(a.dtype).min)
        p = a.softmax(-1, dtype=torch.float32).to(q.dtype)
        return p @ v, F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(q.shape[0], -1, -1, -1), scale=0.3)


@attack("x:float32[N,1,4]=-2:2", "c:float32[N,8,4]=-2:2", "p:int64[1]=0:40", dims="N=1:1:3", kinds=FINITE)
class A7543RingWithSinks(nn.Module):
    """A sliding cache of eight with two sinks: slot = 2 + (p - 2) % 6 past the sinks, written by index_copy, validity by min(p + 1, 8), relative ages for a learned bias."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.bias = nn.Parameter(torch.randn(9))

    def forward(self, x, c, p):
        slot = torch.where(p < 2, p, 2 + (p - 2) % 6)
        c = c.clone().index_copy_(1, slot, x)
        j = torch.arange(8)
        valid = j < torch.clamp(p + 1, max=8)
        age = torch.where(j < 2, p - j, (slot - j) % 6).clamp(0, 8)
        a = (x @ c.transpose(1, 2)).squeeze(1) + self.bias[age]
        w = a.masked_fill(~valid, float("-inf")).softmax(-1)
        return (w.unsqueeze(1) @ c).squeeze(1), c, age, torch.remainder(slot - 9, 6)


@attack("l:float32[N,V]=-8:8", "h:int64[N,T]=0:5", dims="N=1:2:3 V=6:8:12 T=1:3:6", kinds=("normal", "unit", "halves", "ascending"))
class A7544ProcessorsOfLogits(nn.Module):
    """Repetition penalty by gather and scatter with signs, a ban of eos before a length, top-k by the k-th value (ties kept), top-p with a shift by one and scatter back, min-p, typical, n-gram ban by comparing windows."""

    def forward(self, l, h):
        s = l.gather(1, h)
        l = l.scatter(1, h, torch.where(s < 0, s * 1.3, s / 1.3))
        if h.shape[1] < 3:
            l[:, 2] = -float("inf")
        l = l.masked_fill(l < torch.topk(l, 5)[0][..., -1, None], -1e9)
        so, si = torch.sort(l, descending=True, stable=True)
        cum = so.softmax(-1).cumsum(-1)
        rm = cum > 0.85
        rm[..., 1:] = rm[..., :-1].clone()
        rm[..., 0] = 0
        l = l.masked_fill(rm.scatter(1, si, rm), -1e9)
        p = l.softmax(-1)
        l = l.masked_fill(p < 0.05 * p.max(-1, keepdim=True)[0], -1e9)
        ent = -(p * p.clamp(min=1e-9).log()).nansum(-1, keepdim=True)
        typ = (-(p + 1e-9).log() - ent).abs().argmin(-1)
        seen = torch.zeros_like(l, dtype=torch.bool).scatter(1, h[:, 1:], (h[:, :-1] == h[:, -1:]))
        return l, typ, l.masked_fill(seen, -1e9).argmax(-1)


@attack("l:float32[N,3,V]=-6:6", "s:float32[N,3]=-5:0", "h:int64[N,3,T]=0:4", dims="N=1:1:2 V=5:6:9 T=1:3:5", kinds=("normal", "unit", "tenths"))
class A7545BeamStepWithLengthPenalty(nn.Module):
    """A step of three beams: 2k candidates of flattened beams x words, finished ones by eos set to -inf, beams = i // V, words = i % V, histories regathered and appended, a penalty of length ** 0.6, diverse groups."""

    def forward(self, l, s, h):
        n, b, v = l.shape
        lp = l.log_softmax(-1) + s.unsqueeze(-1)
        sc, i = lp.view(n, -1).topk(2 * b, dim=1)
        beam, word = torch.div(i, v, rounding_mode="floor"), i % v
        eos = word == 1
        live = sc.masked_fill(eos, -1e4)
        top, j = live.topk(b, 1)
        bi = beam.gather(1, j)
        nh = torch.cat([h.gather(1, bi.unsqueeze(-1).expand(-1, -1, h.shape[2])), word.gather(1, j).unsqueeze(-1)], -1)
        fin = torch.where(eos, sc / ((5 + h.shape[-1] + 1) / 6) ** 0.6, torch.tensor(-1e4))
        return nh, top, fin, h[torch.arange(n)[:, None], bi]


@attack("t:int64[N]=0:999", "x:float32[N,4,H]=-2:2", "e:float32[N,4,H]=-2:2", dims="N=1:2:3 H=1:3:6", kinds=FINITE, refused="whole numbers or exact")
class A7546SchedulerStepsByTables(nn.Module):
    """DDIM from cosine betas in doubles cast down, Karras' sigmas with interpolated log-sigmas from times (sigma_to_t), v-prediction, dynamic thresholding by quantile, an EDM preconditioner, timestep embedding with flips."""

    def __init__(self):
        super().__init__()
        f = lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2  # noqa: E731
        betas = torch.tensor([min(1 - f((i + 1) / 1000) / f(i / 1000), 0.999) for i in range(1000)], dtype=torch.float64)
        self.register_buffer("ac", torch.cumprod(1 - betas, 0).float())

    def forward(self, t, x, e):
        a = self.ac[t].view(-1, 1, 1)
        prev = t - 50
        ap = torch.where(prev >= 0, self.ac[prev.clamp(min=0)], torch.tensor(1.0)).view(-1, 1, 1)
        x0 = (x - (1 - a).sqrt() * e) / a.sqrt()
        s = torch.quantile(x0.flatten(1).abs(), 0.9, dim=1).clamp(1.0, 5.0).view(-1, 1, 1)
        x0 = x0.clamp(-s, s) / s
        y = ap.sqrt() * x0 + (1 - ap).sqrt() * e
        v = a.sqrt() * e - (1 - a).sqrt() * x
        sig = ((1 - a) / a).sqrt()
        ls = ((1 - self.ac) / self.ac).sqrt().log()
        low = (sig.log().flatten()[:, None] - ls[None] >= 0).int().cumsum(1).argmax(1).clamp(max=998)
        w = ((ls[low] - sig.log().flatten()) / (ls[low] - ls[low + 1])).clamp(0, 1)
        half = torch.exp(-math.log(10000) * torch.arange(3, dtype=torch.float32) / 2)
        emb = t[:, None].float() * half[None]
        emb = torch.cat([emb.sin(), emb.cos()], -1)
        emb = F.pad(torch.cat([emb[:, 3:], emb[:, :3]], -1), (0, 1, 0, 0))
        return y, v, (1 - w) * low + w * (low + 1), emb, x / (sig**2 + 1).sqrt()


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:4:9", kinds=FINITE)
class A7547ParametrizedAndShared(nn.Module):
    """Spectral and orthogonal parametrisations, a symmetric one of the user's, one weight shared by embedding, linear and transposed, a cached parametrisation around forward."""

    class Sym(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).transpose(-1, -2)

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a = spectral_norm(nn.Linear(6, 6), n_power_iterations=3)
        self.b = orthogonal(nn.Linear(6, 6, bias=False), orthogonal_map="cayley")
        self.c = nn.Linear(6, 6)
        parametrize.register_parametrization(self.c, "weight", self.Sym())
        self.e = nn.Embedding(6, 6)
        self.h = nn.Linear(6, 6, bias=False)
        self.h.weight = self.e.weight
        self.eval()

    def forward(self, x):
        with parametrize.cached():
            y = self.c(self.b(self.a(x)) + self.c(x))
        z = self.h(y)
        return z, self.e(z.argmax(-1)), F.linear(z, self.e.weight.T), (self.c.weight - self.c.weight.T).abs().max()


@attack("x:float32[N,T,4]=-2:2", dims="N=1:1:2 T=1:5:64", kinds=FINITE)
class A7548RarelyLongSequences(nn.Module):
    """Chunks by 16 with a remainder branch, another scale at exactly 49, a softmax in two passes beyond 60, a table that is asked for past its end by clamping."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.pos = nn.Parameter(torch.randn(50, 4))

    def forward(self, x):
        t = x.shape[1]
        p = self.pos[torch.arange(t).clamp(max=49)]
        x = x + (p if t != 49 else 0.5 * p)
        if t % 16 == 0 and t > 16:
            y = x.view(x.shape[0], t // 16, 16, 4).mean(2).repeat_interleave(16, 1)
        else:
            y = x - x.mean(1, keepdim=True)
        if t > 60:
            m = y.amax(1, keepdim=True)
            y = (y - m).exp() / (y - m).exp().sum(1, keepdim=True) + 0.25
        return y


@attack("x:float32[N,4]=-2:2", dims="N=1:2:3", kinds=FINITE, refused="when run again")
class A7549StateBetweenCalls(nn.Module):
    """A running mean that is updated in eval as well, a deque of the last three outputs, a step counter as a tensor that gates a branch by where."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.steps += 1
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return torch.where(self.steps > 3, x - self.mean, x)


@forward("x:float32[N,4,H,W]=-2:2", dims="N=1:1:2 H=2:5:8 W=2:6:9", kinds=FINITE)
def A7550AxialAndTwoDimensionalRotary(self, x):
    """2-D rotary of a picture (axial frequencies in pixels from -1 to 1, complex polar), sin-cos positions of MAE with w first, relative index of Swin by meshgrid and flipping, Shaw's clipped distances."""
    n, c, h, w = x.shape
    y = x.flatten(2).transpose(1, 2)
    px, py = torch.linspace(-1, 1, w), torch.linspace(-1, 1, h)
    ang = torch.stack(torch.meshgrid(py, px, indexing="ij"), -1).view(-1, 2) * math.pi * 2.5
    rot = torch.polar(torch.ones_like(ang), ang)
    yc = torch.view_as_complex(y.reshape(n, h * w, 2, 2).contiguous())
    out = torch.view_as_real(yc * rot).flatten(2)
    co = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")).flatten(1)
    rel = (co[:, :, None] - co[:, None, :]).permute(1, 2, 0).contiguous()
    rel[:, :, 0] += h - 1
    rel[:, :, 1] += w - 1
    rel[:, :, 0] *= 2 * w - 1
    idx = rel.sum(-1)
    table = torch.sin(torch.arange((2 * h - 1) * (2 * w - 1)).float())
    shaw = (torch.arange(h)[None] - torch.arange(h)[:, None]).clamp(-2, 2) + 2
    return out, table[idx.view(-1)].view(h * w, h * w), shaw
