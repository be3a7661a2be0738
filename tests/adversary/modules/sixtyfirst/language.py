"""Small language and speech models: caches, rotary forms, experts, beams, state spaces, streaming, quantisers."""
# ruff: noqa: E501, E731, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,8]=-2:2", "pk:float32[N,2,P,4]=-2:2", "pv:float32[N,2,P,4]=-2:2", dims="N=1:1:2 T=1:2:4 P=0:3:6", kinds=FINITE)
class A7451RotaryNtkWithPast(nn.Module):
    """Attention with a growing cache that may be empty, rotary with dynamic NTK where the total is above a limit, a causal mask offset by the past, ALiBi slopes besides."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(8, 24)
        self.limit = 5

    def forward(self, x, pk, pv):
        n, t, _ = x.shape
        past = pk.shape[2]
        total = past + t
        base = 100.0
        if total > self.limit:
            base = base * ((2 * total / self.limit) - 1) ** (4 / 2)
        inv = 1.0 / (base ** (torch.arange(0, 4, 2).float() / 4))
        pos = torch.arange(past, total)
        fr = torch.outer(pos.float(), inv)
        emb = torch.cat((fr, fr), -1)
        rot = lambda z: torch.cat((-z[..., 2:], z[..., :2]), -1)
        q, k, v = self.qkv(x).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        q, k = q * emb.cos() + rot(q) * emb.sin(), k * emb.cos() + rot(k) * emb.sin()
        k, v = torch.cat([pk, k], 2), torch.cat([pv, v], 2)
        m = torch.full((t, total), float("-inf")).triu(diagonal=past + 1)
        slopes = torch.tensor([0.5, 0.25]).view(1, 2, 1, 1)
        bias = slopes * (torch.arange(total)[None] - pos[:, None]).clamp(max=0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=(m + bias))
        return y.transpose(1, 2).reshape(n, t, 8), k, v


@forward("q:float32[N,T,2,4]=-2:2", "p:int64[N,T]=0:30", dims="N=1:2:3 T=1:3:6", kinds=FINITE)
def A7452RotaryInterleavedComplex(self, q, p):
    """Llama's complex rotary by positions (freqs_cis gathered), GPT-J's interleaved by stride slices and stack, partial rotary, all in one."""
    inv = 1.0 / 10000 ** (torch.arange(0, 4, 2)[:2].float() / 4)
    fr = torch.outer(torch.arange(31.0), inv)
    cis = torch.polar(torch.ones_like(fr), fr)
    z = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    a = torch.view_as_real(z * cis[p].unsqueeze(2)).flatten(3).type_as(q)
    s, c = fr[p].sin().repeat_interleave(2, -1).unsqueeze(2), fr[p].cos().repeat_interleave(2, -1).unsqueeze(2)
    b = q * c + torch.stack((-q[..., 1::2], q[..., ::2]), dim=-1).flatten(-2) * s
    h, t = q[..., :2], q[..., 2:]
    d = torch.cat([h * c[..., :1] + torch.cat([-h[..., 1:], h[..., :1]], -1) * s[..., :1], t], -1)
    return a, b, d


@attack("x:float32[N,T,6]=-2:2", dims="N=1:1:2 T=1:4:7", kinds=FINITE)
class A7453MoeForms(nn.Module):
    """Mixtral's experts by one_hot masks and index_add_, a shared expert by a gate, a capacity by cumsum of positions, aux loss of counts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.g, self.sg = nn.Linear(6, 4, bias=False), nn.Linear(6, 1)
        self.ex = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 6)) for _ in range(4))
        self.sh = nn.Linear(6, 6)

    def forward(self, x):
        n, t, d = x.shape
        h = x.view(-1, d)
        lg = self.g(h)
        w, sel = torch.topk(F.softmax(lg, dim=1, dtype=torch.float), 2, dim=-1)
        w /= w.sum(-1, keepdim=True)
        mask = F.one_hot(sel, num_classes=4).permute(2, 1, 0)
        out = torch.zeros((n * t, d), dtype=x.dtype)
        for e in range(4):
            idx, top = torch.where(mask[e])
            cur = self.ex[e](h[None, top].reshape(-1, d)) * w[top, idx, None]
            out.index_add_(0, top, cur.to(x.dtype))
        out = out + torch.sigmoid(self.sg(h)) * self.sh(h)
        oh = F.one_hot(sel[:, 0], 4)
        place = (oh.cumsum(0) * oh).sum(-1) - 1
        kept = place < 2
        return out.view(n, t, d), (oh.float().mean(0) * lg.softmax(-1).mean(0)).sum() * 4, kept.view(n, t), place


@attack("x:float32[N,T,4]=-2:2", dims="N=1:1:2 T=1:5:9", kinds=FINITE)
class A7454T5Buckets(nn.Module):
    """T5's relative buckets both ways by a log of integers at powers of two, DeBERTa's log bucket with sign and ceil, Swin v2's log spaced continuous bias."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.e = nn.Embedding(8, 2)

    def bucket(self, rp, bi=True, nb=8, md=16):
        r = 0
        if bi:
            nb //= 2
            r = r + (rp > 0).to(torch.long) * nb
            rp = torch.abs(rp)
        else:
            rp = -torch.min(rp, torch.zeros_like(rp))
        me = nb // 2
        small = rp < me
        large = me + (torch.log(rp.float() / me) / math.log(md / me) * (nb - me)).to(torch.long)
        large = torch.min(large, torch.full_like(large, nb - 1))
        return r + torch.where(small, rp, large)

    def forward(self, x):
        t = x.shape[1]
        c, m = torch.arange(t, dtype=torch.long)[:, None], torch.arange(t, dtype=torch.long)[None, :]
        b1, b2 = self.bucket(m - c), self.bucket(m - c, False)
        bias = self.e(b1).permute([2, 0, 1]).unsqueeze(0)
        rp = (c - m) * 3
        sign = torch.sign(rp)
        ap = torch.where((rp < 4) & (rp > -4), 3, torch.abs(rp))
        lp = torch.ceil(torch.log(ap / 4) / math.log((16 - 1) / 4) * 3) + 4
        db = torch.where(ap <= 4, rp.type_as(lp), lp * sign)
        cb = torch.sign(rp) * torch.log2(torch.abs(rp) + 1.0) / math.log2(8)
        q = x.view(x.shape[0], t, 2, 2).transpose(1, 2)
        return (q @ q.transpose(-1, -2) + bias).softmax(-1), b1, b2, db, cb


@forward("lp:float32[N,T,5]=-6:6", "ln:int64[N]=1:3", dims="N=1:2:4 T=3:5:9", kinds=FINITE)
def A7455CtcCollapse(self, lp, ln):
    """CTC: argmax, unique_consecutive by a comparison, blanks dropped, moved to the front by a stable sort, scores by where; an edit with lengths; a sampled token by cumsum of sorted probabilities."""
    n, t, _ = lp.shape
    p = lp.log_softmax(-1)
    s, i = p.max(-1)
    prev = torch.cat([i.new_full((n, 1), -1), i[:, :-1]], 1)
    valid = torch.arange(t)[None] < ln[:, None] + t - 3
    keep = (i != prev) & (i != 0) & valid
    order = torch.argsort(keep.int(), dim=1, descending=True, stable=True)
    tok = torch.where(keep.gather(1, order), i.gather(1, order), -100)
    cnt = keep.sum(1)
    score = torch.where(valid, s, 0.0).sum(1) / (valid.sum(1) ** 0.6)
    v, j = torch.sort(p[:, -1].exp(), descending=True)
    c = v.cumsum(-1)
    rm = c > 0.8
    rm[..., 1:] = rm[..., :-1].clone()
    rm[..., 0] = False
    filt = p[:, -1].masked_fill(rm.scatter(1, j, rm), float("-inf"))
    return tok, cnt, score, filt.softmax(-1), (c > 0.5).int().argmax(-1)


@attack("x:float32[N,T,4]=-2:2", "h0:float32[N,4,2]=-1:1", "cs:float32[N,4,2]=-1:1", dims="N=1:1:2 T=1:4:6", kinds=FINITE)
class A7456MambaScan(nn.Module):
    """Mamba with its states as inputs: a causal conv with a cache, softplus deltas, a scan over time in a loop, the gate, new states out."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.inp, self.xp = nn.Linear(4, 8), nn.Linear(4, 5)
        self.conv = nn.Conv1d(4, 4, 3, groups=4)
        self.A = nn.Parameter(torch.log(torch.arange(1, 3).float()).repeat(4, 1))
        self.D = nn.Parameter(torch.ones(4))

    def forward(self, x, h0, cs):
        u, z = self.inp(x).chunk(2, -1)
        u = torch.cat([cs, u.transpose(1, 2)], -1)
        ncs = u[..., -2:]
        u = F.silu(self.conv(u)).transpose(1, 2)
        dt, B, C = self.xp(u).split([1, 2, 2], -1)
        dt = F.softplus(dt)
        A = -torch.exp(self.A)
        dA = torch.exp(torch.einsum("blr,dn->bldn", dt, A))
        dB = torch.einsum("blr,bld,bln->bldn", dt, u, B)
        ys, h = [], h0
        for i in range(x.shape[1]):
            h = dA[:, i] * h + dB[:, i]
            ys.append(torch.einsum("bdn,bn->bd", h, C[:, i]))
        y = torch.stack(ys, 1) + u * self.D
        return y * F.silu(z), h, ncs


@attack("x:float32[N,T,6]=-2:2", "ln:int64[N]=1:4", dims="N=1:2:3 T=4:7:11", kinds=FINITE)
class A7457ConformerMasks(nn.Module):
    """Conformer: lengths after subsampling by // in integers, masked GLU and depthwise conv, Transformer-XL's rel_shift, chunk masks by // of positions, masked batch norm in eval."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.sub = nn.Conv1d(6, 6, 3, 2)
        self.pw, self.dw, self.bn = nn.Conv1d(6, 12, 1), nn.Conv1d(6, 6, 3, padding=1, groups=6), nn.BatchNorm1d(6)
        self.u, self.p = nn.Parameter(torch.randn(2, 3)), nn.Linear(6, 6, bias=False)
        self.eval()

    def shift(self, x):
        n, h, q, k = x.shape
        x = torch.cat([x.new_zeros(n, h, q, 1), x], -1).view(n, h, -1, q)
        return x[:, :, 1:].view(n, h, q, k)[..., : k // 2 + 1]

    def forward(self, x, ln):
        x = self.sub(x.transpose(1, 2)).transpose(1, 2)
        ln = torch.div(ln + x.shape[1] * 2 - 3 - 1, 2, rounding_mode="floor").clamp(min=1)
        n, t, d = x.shape
        pad = torch.arange(t)[None] >= ln[:, None]
        pos = torch.arange(t - 1, -t, -1.0)
        pe = torch.stack([(pos / 3**i).sin() for i in range(3)] + [(pos / 3**i).cos() for i in range(3)], -1)
        pp = self.p(pe).view(1, -1, 2, 3).transpose(1, 2)
        q = x.view(n, t, 2, 3).transpose(1, 2)
        s = (q + self.u[:, None]) @ q.transpose(-1, -2) + self.shift(q @ pp.transpose(-1, -2))
        ch = torch.arange(t) // 2
        ok = (ch[None] <= ch[:, None]) & (ch[None] >= ch[:, None] - 1)
        s = s.masked_fill((~ok)[None, None] | pad[:, None, None], -1e4)
        a = s.softmax(-1).masked_fill(pad[:, None, None], 0.0)
        x = x + (a @ q).transpose(1, 2).reshape(n, t, d)
        y = F.glu(self.pw(x.transpose(1, 2)), 1).masked_fill(pad[:, None], 0.0)
        y = F.silu(self.bn(self.dw(y))) * ~pad[:, None]
        return x + y.transpose(1, 2), ln


@attack("x:float32[N,T,4]=-2:2", "lt:float32[N,3]=-3:3", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7458ResidualQuantiser(nn.Module):
    """A residual VQ by argmin of cdist and of expanded squares, straight-through, FSQ's rounding to levels with offsets, LFQ's bits to an index, hard gumbel without noise by argmax and scatter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.cb = nn.ParameterList([nn.Parameter(torch.randn(5, 4)) for _ in range(2)])
        self.register_buffer("lv", torch.tensor([4, 5, 3, 8]))

    def forward(self, x, lt):
        r, q, codes = x, torch.zeros_like(x), []
        for k, c in enumerate(self.cb):
            f = r.reshape(-1, 4)
            d = torch.cdist(f, c) if k else f.pow(2).sum(1, keepdim=True) - 2 * f @ c.t() + c.pow(2).sum(1)
            i = d.argmin(-1).view(x.shape[:-1])
            e = F.embedding(i, c)
            e = r + (e - r).detach()
            q, r = q + e, r - e
            codes.append(i)
        half = (self.lv - 1) * (1 + 1e-3) / 2
        off = torch.where(self.lv % 2 == 0, 0.5, 0.0)
        z = ((x + (off / half).atanh()).tanh() * half - off).round()
        hw = self.lv // 2
        basis = torch.cumprod(torch.cat([self.lv.new_ones(1), self.lv[:-1]]), 0)
        idx = ((z + hw) * basis).sum(-1).to(torch.int32)
        bits = ((x > 0).long() * 2 ** torch.arange(4)).sum(-1)
        y = (lt / 0.5).softmax(-1)
        hard = torch.zeros_like(y).scatter_(-1, y.max(-1, keepdim=True)[1], 1.0)
        return q, torch.stack(codes, -1), z / hw, idx, bits, hard - y.detach() + y


@attack("ids:int64[N,T]=0:11", "kc:float16[N,8,4]=-2:2", "pos:int64[]=0:4", dims="N=1:2:3 T=1:2:4", kinds=FINITE)
class A7459HalfStaticCache(nn.Module):
    """A half precision block with float islands: RMS norm in float32, a static cache written by index_copy at positions, scores in float32 with finfo.min, tied logits, a beam step over flattened scores."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.e = nn.Embedding(12, 4)
        self.q = nn.Linear(4, 4, bias=False)
        self.w = nn.Parameter(torch.ones(4))
        self.half()

    def forward(self, ids, kc, pos):
        x = self.e(ids)
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        h = self.w * h.to(x.dtype)
        cp = pos + torch.arange(ids.shape[1])
        kc = kc.index_copy(1, cp, h)
        m = torch.full((ids.shape[1], 8), torch.finfo(torch.float16).min, dtype=torch.float16)
        m = m * (torch.arange(8) > cp.reshape(-1, 1))
        s = (self.q(h) @ kc.transpose(1, 2)) * 0.5 + m[None]
        a = F.softmax(s, dim=-1, dtype=torch.float32).to(h.dtype)
        x = x + a @ kc
        lg = F.linear(x[:, -1:], self.e.weight).float()[:, 0].log_softmax(-1)
        ts, ti = lg.topk(3)
        return x, kc, ts, (ts[:, :, None] + lg[:, None, :3]).flatten(1)
