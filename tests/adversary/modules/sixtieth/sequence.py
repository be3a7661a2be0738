# ruff: noqa: E501, E731, E741, RUF059 - attacks are written as users write them
"""Sequence models of 2024 to 2026: selective scans, wkv loops, rotary forms, caches, experts, masks by distance."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=1:6:11", kinds=FINITE)
class A7366Mamba(nn.Module):
    """Mamba's block in plain torch: a causal depthwise conv cut to T, softplus steps, exp(dt A), and a scan in a Python loop."""

    def __init__(self, d=8, n=4, r=2):
        super().__init__()
        torch.manual_seed(0)
        self.inp = nn.Linear(d, 2 * d, bias=False)
        self.conv = nn.Conv1d(d, d, 4, groups=d, padding=3)
        self.xp = nn.Linear(d, r + 2 * n, bias=False)
        self.dt = nn.Linear(r, d)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, n + 1, dtype=torch.float32).repeat(d, 1)))
        self.D = nn.Parameter(torch.ones(d))
        self.out = nn.Linear(d, d, bias=False)
        self.n, self.r = n, r

    def forward(self, x):
        b, l, _ = x.shape
        u, z = self.inp(x).chunk(2, dim=-1)
        u = F.silu(self.conv(u.transpose(1, 2))[:, :, :l]).transpose(1, 2)
        dt, B, C = torch.split(self.xp(u), [self.r, self.n, self.n], dim=-1)
        dt = F.softplus(self.dt(dt))
        A = -torch.exp(self.A_log.float())
        dA = torch.exp(torch.einsum("bld,dn->bldn", dt, A))
        dBu = torch.einsum("bld,bln,bld->bldn", dt, B, u)
        h = torch.zeros(b, u.shape[-1], self.n)
        ys = []
        for i in range(l):
            h = dA[:, i] * h + dBu[:, i]
            ys.append(torch.einsum("bdn,bn->bd", h, C[:, i]))
        y = torch.stack(ys, dim=1) + u * self.D
        return self.out(y * F.silu(z)), h


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=2:6:12", kinds=FINITE)
class A7367Mamba2Chunks(nn.Module):
    """Mamba-2's SSD in its minimal form: segsum by cumsum and tril with -inf, chunks of 4 with T padded to a multiple."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.p = nn.Linear(8, 2 * 4 + 2 * 3 + 2)

    @staticmethod
    def segsum(x):
        t = x.size(-1)
        x = x[..., None].repeat(1, 1, 1, 1, t) if x.dim() == 4 else x[..., None].repeat(1, 1, 1, t)
        x = x.masked_fill(~torch.tril(torch.ones(t, t, dtype=torch.bool), diagonal=-1), 0)
        s = torch.cumsum(x, dim=-2)
        return s.masked_fill(~torch.tril(torch.ones(t, t, dtype=torch.bool), diagonal=0), -torch.inf)

    def forward(self, x):
        b, t, _ = x.shape
        pad = -t % 4
        x = F.pad(x, (0, 0, 0, pad))
        X, B, C, a = self.p(x).split([8, 3, 3, 2], -1)
        c = (t + pad) // 4
        X = X.reshape(b, c, 4, 2, 4)
        B, C = B.reshape(b, c, 4, 3), C.reshape(b, c, 4, 3)
        A = -F.softplus(a).reshape(b, c, 4, 2).permute(0, 3, 1, 2)
        Ac = A.cumsum(-1)
        L = torch.exp(self.segsum(A))
        Yd = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", C, B, L, X)
        ds = torch.exp(Ac[:, :, :, -1:] - Ac)
        st = torch.einsum("bcln,bhcl,bclhp->bchpn", B, ds, X)
        st = torch.cat([torch.zeros_like(st[:, :1]), st], dim=1)
        dc = torch.exp(self.segsum(F.pad(Ac[:, :, :, -1], (1, 0))))
        ns = torch.einsum("bhzc,bchpn->bzhpn", dc, st)
        st, fin = ns[:, :-1], ns[:, -1]
        Yo = torch.einsum("bcln,bchpn,bhcl->bclhp", C, st, torch.exp(Ac))
        return (Yd + Yo).reshape(b, c * 4, 8)[:, :t], fin


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7368Rwkv4(nn.Module):
    """RWKV-4: a token shift by ZeroPad2d((0, 0, 1, -1)), and wkv in its stable form with a running maximum from -1e38."""

    def __init__(self, d=6):
        super().__init__()
        torch.manual_seed(2)
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.mk, self.mv, self.mr = (nn.Parameter(torch.rand(1, 1, d)) for _ in range(3))
        self.w, self.u = nn.Parameter(torch.randn(d)), nn.Parameter(torch.randn(d))
        self.k, self.v, self.r, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x):
        xx = self.shift(x)
        k = self.k(x * self.mk + xx * (1 - self.mk))
        v = self.v(x * self.mv + xx * (1 - self.mv))
        r = torch.sigmoid(self.r(x * self.mr + xx * (1 - self.mr)))
        w = -torch.exp(self.w)
        aa = torch.zeros_like(k[:, 0])
        bb = torch.zeros_like(k[:, 0])
        pp = torch.full_like(k[:, 0], -1e38)
        out = []
        for t in range(x.size(1)):
            ww = self.u + k[:, t]
            p = torch.maximum(pp, ww)
            e1, e2 = torch.exp(pp - p), torch.exp(ww - p)
            out.append((e1 * aa + e2 * v[:, t]) / (e1 * bb + e2))
            ww = pp + w
            p = torch.maximum(ww, k[:, t])
            e1, e2 = torch.exp(ww - p), torch.exp(k[:, t] - p)
            aa, bb, pp = e1 * aa + e2 * v[:, t], e1 * bb + e2, p
        return self.o(r * torch.stack(out, 1)), torch.stack([aa, bb, pp])


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="cannot hold it as a loop")
class A7369Rwkv7State(nn.Module):
    """RWKV-7's delta rule: a state matrix, w = exp(-exp(-0.5) sigmoid), normalised kk, in a loop that writes into empty_like."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.p = nn.Linear(8, 8 * 5)
        self.ln = nn.GroupNorm(2, 8, eps=64e-5)

    def forward(self, x):
        B, T, C = x.shape
        r, w, k, v, a = (t.view(B, T, 2, 4) for t in self.p(x).chunk(5, -1))
        w = torch.exp(-math.exp(-0.5) * torch.sigmoid(w))
        kk = F.normalize(k, dim=-1, p=2.0)
        a = a.sigmoid()
        out = torch.empty_like(x).view(B, T, 2, 4)
        S = torch.zeros((B, 2, 4, 4))
        for t in range(T):
            vk = v[:, t, :, :, None] @ k[:, t, :, None, :]
            ab = (-kk[:, t, :, :, None]) @ (kk[:, t] * a[:, t])[:, :, None, :]
            S = S * w[:, t, :, None, :] + S @ ab + vk
            out[:, t] = (S @ r[:, t, :, :, None]).squeeze(-1)
        y = self.ln(out.reshape(B * T, C)).view(B, T, C)
        return y, S


@forward("x:float32[N,2,T,8]=-2:2", "p:int64[N]=0:20", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7370RopeComplex(self, x, p):
    """RoPE by view_as_complex and polar, positions from an offset of each row; then the same by halves, compared."""
    n, h, t, d = x.shape
    inv = 1.0 / (10000 ** (torch.arange(0, d, 2)[: d // 2].float() / d))
    pos = p[:, None] + torch.arange(t)
    ang = pos[..., None].float() * inv
    cis = torch.polar(torch.ones_like(ang), ang)[:, None]
    xc = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    y = torch.view_as_real(xc * cis).flatten(3).type_as(x)
    cos, sin = torch.cat([ang, ang], -1).cos()[:, None], torch.cat([ang, ang], -1).sin()[:, None]
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    z = x * cos + torch.cat((-x2, x1), dim=-1) * sin
    q = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape_as(x)
    i = x * cos[..., : d // 2].repeat_interleave(2, -1) + q * sin[..., : d // 2].repeat_interleave(2, dim=-1)
    return y, z, i


@attack("x:float32[N,T,8]=-2:2", "k:float32[N,2,12,4]=-2:2", "v:float32[N,2,12,4]=-2:2", "s:int64[]=0:6", dims="N=1:2:3 T=1:3:5", kinds=FINITE)
class A7371KvCacheIndexPut(nn.Module):
    """A static cache: index_copy at cache_position, GQA by repeat_interleave, a mask by cache position, and SDPA with a mask."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.q, self.k, self.v = nn.Linear(8, 16), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, k, v, s):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, 4, 4).transpose(1, 2)
        nk = self.k(x).view(b, t, 2, 4).transpose(1, 2)
        nv = self.v(x).view(b, t, 2, 4).transpose(1, 2)
        pos = torch.arange(t, device=x.device) + s
        k = k.index_copy(2, pos, nk)
        v = v.clone()
        v[:, :, pos] = nv
        m = torch.arange(12)[None, :] <= pos[:, None]
        y = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, dim=1), attn_mask=m)
        return y.transpose(1, 2).reshape(b, t, -1), k, v


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7372MoeIndexAdd(nn.Module):
    """Mixtral's experts as transformers wrote them: topk, one_hot, torch.where for each expert, index_add_."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.gate = nn.Linear(6, 4, bias=False)
        self.e = nn.ModuleList([nn.Sequential(nn.Linear(6, 5), nn.SiLU(), nn.Linear(5, 6)) for _ in range(4)])

    def forward(self, x):
        b, t, d = x.shape
        h = x.view(-1, d)
        w = F.softmax(self.gate(h), dim=1, dtype=torch.float)
        w, sel = torch.topk(w, 2, dim=-1)
        w = w / w.sum(dim=-1, keepdim=True)
        out = torch.zeros((b * t, d), dtype=h.dtype)
        mask = F.one_hot(sel, num_classes=4).permute(2, 1, 0)
        for i, e in enumerate(self.e):
            idx, top = torch.where(mask[i])
            cur = h[None, top].reshape(-1, d)
            out.index_add_(0, top, (e(cur) * w[top, idx, None]).to(h.dtype))
        return out.reshape(b, t, d), sel


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7373MoeSigmoidGroups(nn.Module):
    """DeepSeek's router: sigmoid scores with a bias for the choice only, groups by the sum of their two best, bmm over gathered weights."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.g = nn.Parameter(torch.randn(8, 6))
        self.register_buffer("bias", torch.randn(8) * 0.3)
        self.w = nn.Parameter(torch.randn(8, 6, 4))
        self.w2 = nn.Parameter(torch.randn(8, 4, 6))

    def forward(self, x):
        b, t, d = x.shape
        h = x.reshape(-1, d)
        s = F.linear(h, self.g).sigmoid()
        c = s + self.bias
        gs = c.view(-1, 4, 2).topk(2, dim=-1)[0].sum(-1)
        gi = torch.topk(gs, k=2, dim=-1, sorted=False)[1]
        gm = torch.zeros_like(gs).scatter_(1, gi, 1)
        sm = gm.unsqueeze(-1).expand(-1, 4, 2).reshape(-1, 8)
        ti = torch.topk(c.masked_fill(~sm.bool(), 0.0), k=3, dim=-1)[1].sort(-1).values
        tw = s.gather(1, ti)
        tw = tw / (tw.sum(-1, keepdim=True) + 1e-20) * 2.5
        y = torch.einsum("td,tkdh->tkh", h, self.w[ti]).relu()
        y = torch.einsum("tkh,tkhd,tk->td", y, self.w2[ti], tw)
        return y.view(b, t, d)


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=1:6:11", kinds=FINITE)
class A7374AlibiWindow(nn.Module):
    """ALiBi slopes for 3 heads (no power of two), a sliding window of 3, softcap, attention sinks as one more logit."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.qkv = nn.Linear(8, 3 * 3 * 4)
        self.sink = nn.Parameter(torch.randn(3))

    def slopes(self, n):
        def pow2(n):
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]

        if math.log2(n).is_integer():
            return pow2(n)
        c = 2 ** math.floor(math.log2(n))
        return pow2(c) + self.slopes(2 * c)[0::2][: n - c]

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 3, 4).permute(2, 0, 3, 1, 4).unbind(0)
        i = torch.arange(t)
        d = i[None, :] - i[:, None]
        m = (d <= 0) & (d > -3)
        a = q @ k.mT / 2.0
        a = 4.0 * torch.tanh(a / 4.0) + torch.tensor(self.slopes(3))[:, None, None] * d
        a = a.masked_fill(~m, torch.finfo(a.dtype).min)
        a = torch.cat([a, self.sink.view(1, -1, 1, 1).expand(b, -1, t, 1)], -1)
        p = F.softmax(a - a.max(-1, keepdim=True).values, -1)[..., :-1]
        return (p @ v).transpose(1, 2).flatten(2)


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=1:6:11", kinds=FINITE, refused="linalg_solve_triangular")
class A7375GatedDeltaNet(nn.Module):
    """Linear attention with a decay in log space and the causal product written with tril and cumsum; l2norm with rsqrt; a chunk loop by T // 4."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.p = nn.Linear(8, 8 * 3 + 2 + 2)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v, g, be = self.p(x).split([8, 8, 8, 2, 2], -1)
        sh = lambda y: y.unflatten(-1, (2, 4)).transpose(1, 2)
        q, k, v = sh(q), sh(k), sh(v)
        q = q * torch.rsqrt((q * q).sum(-1, keepdim=True) + 1e-6)
        k = k * torch.rsqrt((k * k).sum(-1, keepdim=True) + 1e-6)
        g = F.logsigmoid(g).transpose(1, 2).cumsum(-1)
        be = be.sigmoid().transpose(1, 2)
        dec = (g[..., :, None] - g[..., None, :]).tril().exp().tril()
        attn = -((k * be[..., None]) @ k.transpose(-1, -2) * dec).masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool)), 0)
        u = torch.linalg.solve_triangular(torch.eye(t) - attn, v * be[..., None], upper=False, unitriangular=True)
        o = ((q @ k.mT) * dec) @ u
        return o.transpose(1, 2).reshape(b, t, -1)
