# ruff: noqa: E501 - attacks are written as users write them
"""Models: schedulers of diffusion, codebooks, mixtures, hypernetworks, memories, steps of equations, fixed points, recommenders; and ordinary modules that a file can hold."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = X4, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


@attack(X4, "t:int64[N]=0:99", dims=ROWS, kinds=FINITE[:4], feeds=(*(lambda k=k: {"x": np.ones((1, 1, 4), np.float32), "t": np.array([k])} for k in (0, 1, 50, 99)),))
class A4500StepOfDiffusion(nn.Module):
    """DDIM with v-prediction, cosine betas clamped, a previous step that may be below zero, thresholding by a quantile, posterior variance, sinusoidal time with a pad for odd widths, guidance by chunks."""
    def __init__(self):
        super().__init__()
        f = torch.cos((torch.linspace(0, 100, 101) / 100 + 0.008) / 1.008 * math.pi / 2) ** 2
        b = torch.clip(1 - f[1:] / f[:-1], 0, 0.999)
        self.register_buffer("ac", (1 - b).cumprod(0))
        self.net = nn.Linear(9, 4)
    def forward(self, x, t):
        h = torch.exp(-math.log(10000) * torch.arange(2) / 2)
        emb = t[:, None].float() * h
        emb = F.pad(torch.cat([emb.sin(), emb.cos()], -1), (0, 1))
        e = emb[:, None].expand(-1, x.shape[1], -1)
        both = self.net(torch.cat([torch.cat([x, x]), torch.cat([e, e * 0])], -1))
        c, u = both.chunk(2)
        v = u + 3.0 * (c - u)
        p = t - 10
        a = self.ac[t].view(-1, 1, 1)
        ap = torch.where(p >= 0, self.ac[p.clamp(min=0)], torch.tensor(1.0)).view(-1, 1, 1)
        x0 = a.sqrt() * x - (1 - a).sqrt() * v
        s = torch.quantile(x0.flatten(1).abs(), 0.95, dim=1).clamp(min=1, max=5).view(-1, 1, 1)
        x0 = torch.clamp(x0, -s, s) / s
        eps = (x - a.sqrt() * x0) / (1 - a).sqrt()
        var = (1 - ap) / (1 - a) * (1 - a / ap)
        return ap.sqrt() * x0 + (1 - ap - (0.5 * var)).clamp(min=0).sqrt() * eps, var.clamp(min=1e-20).log(), s
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4501SigmasOfKarras(nn.Module):
    """A ladder of sigmas that Python makes, Heun's second order with the last step plain, a multistep whose first has no past, a counter of the steps in a SimpleNamespace."""
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
    def denoise(self, x, s):
        c = 1 / (s**2 + 1) ** 0.5
        return x / (s**2 + 1) + self.net(x * c).tanh() * s * c
    def forward(self, x):
        n, rho = 5, 7.0
        ramp = torch.linspace(0, 1, n)
        sig = (10 ** (1 / rho) + ramp * (0.02 ** (1 / rho) - 10 ** (1 / rho))) ** rho
        sig = torch.cat([sig, sig.new_zeros(1)])
        st = SimpleNamespace(old=None, k=0, x=x * sig[0])
        for i in range(len(sig) - 1):
            d = (st.x - self.denoise(st.x, sig[i])) / sig[i]
            y = st.x + d * (sig[i + 1] - sig[i])
            if i + 1 < n:
                d = (d + (y - self.denoise(y, sig[i + 1])) / sig[i + 1]) / 2
                y = st.x + d * (sig[i + 1] - sig[i])
            if st.old is not None:
                y = y + 0.01 * (d - st.old)
            st.x, st.old, st.k = y, d, st.k + 1
        return st.x, sig, x * st.k
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=(*lengths(1, 20), halves(1, 9, 4)))
class A4502CodebooksInDepth(nn.Module):
    """Residual VQ of two books with ties, a product VQ, FSQ with even levels, LFQ to an index by bits and back, perplexity by counts, a commitment, straight through by detach."""
    def __init__(self):
        super().__init__()
        self.books = nn.Parameter(torch.tensor([[-1.0, 0, 0, 1], [1, 0, 0, -1], [0.5, 0.5, 0.5, 0.5]]).repeat(2, 1, 1))
    def forward(self, x):
        r, ids, q = x, [], torch.zeros_like(x)
        for b in self.books:
            d = r.pow(2).sum(-1, keepdim=True) - 2 * r @ b.T + b.pow(2).sum(-1)
            i = d.argmin(-1)
            c = F.embedding(i, b)
            q, r = q + c, r - c
            ids.append(i)
        st = x + (q - x).detach()
        lv = torch.tensor([8, 5, 5, 4])
        half = (lv - 1) * 1.001 / 2
        off = torch.where(lv % 2 == 0, 0.5, 0.0)
        z = (x + (off / half).atanh()).tanh() * half - off
        zq = z.round()
        code = ((zq + lv // 2) * torch.tensor([1, 8, 40, 200])).sum(-1).to(torch.int32)
        back = (code[..., None] // torch.tensor([1, 8, 40, 200])) % lv - lv // 2
        bits = ((x > 0).int() * 2 ** torch.arange(3, -1, -1)).sum(-1)
        p = F.one_hot(ids[0], 3).float().mean((0, 1))
        return st, torch.stack(ids, -1), (z - zq).abs().amax(), back.float() - zq, bits, torch.exp(-(p * (p + 1e-10).log()).sum()), F.mse_loss(q.detach(), x)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=(*lengths(1, 20), halves(2, 9, 4)))
class A4503ExpertsOfTokens(nn.Module):
    """Experts each take the tokens that chose them (index_add by a mask), experts that choose k tokens by the size, a sigmoid gate with group limits and a bias, a shared expert, z-loss."""
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 4, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.Linear(6, 4)) for _ in range(4))
        self.register_buffer("bias", torch.tensor([0.1, 0.0, -0.1, 0.05]))
    def forward(self, x):
        y = x.reshape(-1, 4)
        logits = self.gate(y)
        s = logits.sigmoid()
        g = (s + self.bias).view(-1, 2, 2).topk(2, -1)[0].sum(-1)
        m = torch.zeros_like(g).scatter_(1, g.topk(1, -1)[1], 1)
        c = (s + self.bias).masked_fill(m.repeat_interleave(2, 1) == 0, -1.0)
        i = c.topk(2, -1, sorted=False)[1]
        w = s.gather(1, i)
        w = w / w.sum(-1, keepdim=True)
        full = torch.zeros_like(s).scatter(1, i, w)
        out = torch.zeros_like(y)
        for k, e in enumerate(self.experts):
            out = out + e(y) * full[:, k : k + 1]
        cap = max(1, y.shape[0] // 4)
        v, at = logits.softmax(0).topk(cap, 0)
        pick = y[at.T]
        z = torch.zeros_like(y).index_add(0, at.T.flatten(), (pick * v.T[..., None]).flatten(0, 1))
        return out.view_as(x) + self.experts[0](x), z.view_as(x), torch.logsumexp(logits, -1).square().mean()
@attack(X4, "t:float32[N,5]", dims=ROWS, kinds=FINITE[:4], feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "t": np.ones((1, 5), np.float32)},))
class A4504WeightsFromTasks(nn.Module):
    """A hypernetwork whose flat output is cut by shapes into the weights of two layers, a dynamic convolution grouped by the batch, FiLM by chunks, a demodulated weight, an inner step of gradient by hand."""
    def __init__(self):
        super().__init__()
        self.shapes = [(6, 4), (6,), (4, 6), (4,)]
        self.h = nn.Linear(5, sum(math.prod(s) for s in self.shapes))
        self.k = nn.Parameter(torch.randn(4, 4, 3))
        self.s = nn.Linear(5, 8)
    def forward(self, x, t):
        n = x.shape[0]
        ws = [w.view(n, *s) for w, s in zip(self.h(t).split([math.prod(s) for s in self.shapes], -1), self.shapes, strict=True)]
        y = torch.baddbmm(ws[1][:, None], x, ws[0].mT).relu()
        y = torch.einsum("nth,ndh->ntd", y, ws[2]) + ws[3][:, None]
        g, b = self.s(t).chunk(2, -1)
        w = self.k[None] * (g[:, None, :, None] + 1)
        w = w * torch.rsqrt(w.square().sum((2, 3), keepdim=True) + 1e-8)
        c = F.conv1d(x.mT.reshape(1, n * 4, -1), w.view(n * 4, 4, 3), padding=1, groups=n).view(n, 4, -1).mT
        err = x @ self.k[..., 0] - x.flip(1)
        fast = self.k[..., 0] - 0.1 * torch.einsum("nti,ntj->nij", x, err) / x.shape[1]
        return y * (1 + g[:, None]) + b[:, None], c, x @ fast
@attack(X4, "m:float32[N,6,3]", dims="N=1:2:3 T=1:5:9", kinds=FINITE[:4], feeds=(lambda: {"x": np.ones((1, 9, 4), np.float32), "m": np.zeros((1, 6, 3), np.float32)},), refused="the path through the module depends on the size")
class A4505MemoryThatIsWritten(nn.Module):
    """An NTM: cosine addresses, a circular shift, sharpening by a power, erase and add over the steps; the least used slot by an exclusive product of a sort, a stack with soft push and pop."""
    def __init__(self):
        super().__init__()
        self.k, self.g = nn.Linear(4, 3), nn.Linear(4, 9)
    def forward(self, x, m):
        n = x.shape[0]
        w = F.one_hot(torch.zeros(n, dtype=torch.long), 6).float()
        use, out = torch.zeros(n, 6), []
        for t in range(x.shape[1]):
            g = self.g(x[:, t])
            c = (8 * F.cosine_similarity(m, self.k(x[:, t])[:, None], dim=-1)).softmax(-1)
            w = torch.lerp(w, c, g[:, :1].sigmoid())
            sh = g[:, 1:4].softmax(-1)
            w = sum(sh[:, i : i + 1] * w.roll(i - 1, 1) for i in range(3))
            w = (w + 1e-8) ** (1 + F.softplus(g[:, 4:5]))
            w = w / w.sum(-1, keepdim=True)
            use = use + w - use * w
            u, o = torch.sort(use, dim=-1, stable=True)
            free = torch.empty_like(u).scatter_(1, o, (1 - u) * F.pad(u.cumprod(1), (1, 0), value=1)[:, :-1])
            m = m * (1 - free[..., None] * g[:, 5:8].sigmoid()[:, None]) + free[..., None] * g[:, 6:9].tanh()[:, None]
            out.append((w[..., None] * m).sum(1))
        return torch.stack(out, 1), m, w
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4506StepsOfEquations(nn.Module):
    """RK4 over fixed steps with a time that is added, an adaptive pair whose error chooses by where, a leapfrog, a Crank-Nicolson step by a tridiagonal sweep, a mean of trajectories."""
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4))
    def ode(self, t, x):
        return self.f(torch.cat([x, torch.full_like(x[..., :1], t)], -1))
    def forward(self, x):
        t, dt, y = 0.0, 0.1, x
        while t < 0.5 - 1e-9:
            k1 = self.ode(t, y)
            k2 = self.ode(t + dt / 2, y + dt / 2 * k1)
            k3 = self.ode(t + dt / 2, y + dt / 2 * k2)
            k4 = self.ode(t + dt, y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            t += dt
        h = torch.full_like(x[..., :1], 0.1)
        z = x
        for _ in range(3):
            k1 = -z
            k2 = -(z + h * k1)
            err = (h * (k2 - k1) / 2).abs().amax(-1, keepdim=True)
            ok = err < 0.05
            z = torch.where(ok, z + h * (k1 + k2) / 2, z)
            h = h * (0.9 * (0.05 / err.clamp(min=1e-8)).sqrt()).clamp(0.2, 2)
        c, d, cp, dp = -0.25, x.unbind(-1), [], []
        for i in range(4):
            den = 1.5 - (c * cp[-1] if cp else 0)
            cp.append(c / den)
            dp.append((d[i] - (c * dp[-1] if dp else 0)) / den)
        u = [dp[-1]]
        for i in (2, 1, 0):
            u.insert(0, dp[i] - cp[i] * u[0])
        return y, z, torch.stack(u, -1), t * x
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4507FixedPoints(nn.Module):
    """DEQ by eight rounds that stop by where once they move little, Anderson of two by a quotient, conjugate gradients with a guard, power iteration, Newton's square root, a projection to a simplex by a sort."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4) * 0.2)
    def forward(self, x):
        z, moved = torch.zeros_like(x), torch.ones_like(x[..., :1], dtype=torch.bool)
        n = torch.zeros_like(x[..., 0], dtype=torch.long)
        for _ in range(8):
            new = torch.tanh(z @ self.w + x)
            z = torch.where(moved, new, z)
            n = n + moved[..., 0]
            moved = moved & ((torch.tanh(z @ self.w + x) - z).abs().amax(-1, keepdim=True) > 1e-2)
        a = self.w @ self.w.T + torch.eye(4)
        v, r = torch.zeros_like(x), x
        p = r
        for _ in range(3):
            ap = p @ a
            rr = (r * r).sum(-1, keepdim=True)
            al = torch.where(rr > 1e-12, rr / (p * ap).sum(-1, keepdim=True).clamp(min=1e-12), 0.0)
            v, r = v + al * p, r - al * ap
            p = r + torch.where(rr > 1e-12, (r * r).sum(-1, keepdim=True) / rr.clamp(min=1e-12), 0.0) * p
        u = x.sort(-1, descending=True).values
        css = u.cumsum(-1) - 1
        k = torch.arange(1, 5)
        rho = (u - css / k > 0).sum(-1, keepdim=True)
        th = css.gather(-1, rho - 1) / rho
        s = a / a.norm()
        y, q = s, torch.eye(4)
        for _ in range(5):
            m = 0.5 * (3 * torch.eye(4) - q @ y)
            y, q = y @ m, m @ q
        return z, v, (x - th).clamp(min=0), rho, x @ y
@attack("u:int64[N]=0:9", "items:int64[N,T]=0:9", "x:float32[N,4]", dims="N=1:2:4 T=1:5:9", kinds=FINITE[:4])
class A4508Recommender(nn.Module):
    """DCN, a factorisation machine, DIN with a padding item and masks of all, a hash of pairs into buckets, MMoE gates, a BPR margin within the batch with the diagonal out, tied items as outputs."""
    def __init__(self):
        super().__init__()
        self.u, self.i = nn.Embedding(10, 4), nn.Embedding(10, 4, padding_idx=0)
        self.bag = nn.EmbeddingBag(16, 4, mode="sum")
        self.cross, self.att = nn.Linear(4, 4), nn.Linear(16, 1)
    def forward(self, u, items, x):
        e, q = self.i(items), self.u(u)
        h = ((u[:, None] * 1000003 + items * 8191) ^ (items >> 1)) % 16
        wide = self.bag(h)
        x0 = xl = q + wide
        for _ in range(2):
            xl = x0 * self.cross(xl) + xl
        fm = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(-1)
        m = items != 0
        qq = q[:, None].expand_as(e)
        a = self.att(torch.cat([qq, e, qq - e, qq * e], -1))[..., 0]
        a = torch.where(m, a, torch.full_like(a, -(2**32) + 1)).softmax(-1) * m
        d = (a[..., None] * e).sum(1) + x
        sim = d @ q.T
        n = len(u)
        neg = sim.masked_fill(torch.eye(n, dtype=torch.bool), float("-inf"))
        seen = torch.zeros(n, 10).scatter(1, items, 1.0)
        scores = (d @ self.i.weight.T).masked_fill(seen.bool(), -1e9)
        return xl, fm, d, F.softplus(neg - sim.diagonal()[:, None]).sum(1), scores.topk(3).indices, scores.argsort(dim=1, descending=True, stable=True)[:, 0]
@attack("p:float32[N,T,3]", "g:float32[N,T]", dims="N=1:1:2 T=1:6:12", kinds=FINITE[:4])
class A4476EndOfStateSpace(nn.Module):
    """An S4D kernel by complex powers of the place and a convolution by FFT of twice the length, a skip; the same by a step; a decayed mean with a bias correction."""
    def __init__(self):
        super().__init__()
        self.log_dt, self.c = nn.Parameter(torch.tensor([-2.0, -1.5, -1.0])), nn.Parameter(torch.randn(3, 2, 2))
        self.a = nn.Parameter(torch.tensor([0.5, 0.8]))
        self.im = nn.Parameter(torch.tensor([1.0, 3.0]))
    def forward(self, p, g):
        t = p.shape[1]
        dt, c = self.log_dt.exp(), torch.view_as_complex(self.c)
        a = -self.a.exp() + 1j * self.im
        da = a * dt[:, None]
        k = da[..., None] * torch.arange(t)
        c = c * (torch.exp(da) - 1) / a
        k = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(k)).real
        y = torch.fft.irfft(torch.fft.rfft(k, 2 * t) * torch.fft.rfft(p.mT, 2 * t), 2 * t)[..., :t].mT
        w = 0.9 ** torch.arange(t - 1, -1, -1)
        return y + p, (g * w).sum(1) / (1 - 0.9**t), k
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:16:24%8 W=8:16:32%8", kinds=FINITE[:4])
class A4509OrdinarySegmenter(nn.Module):
    """DeepLab's head: dilations, a global pool that is resized, a skip, resized to the input, classes by argmax as bytes."""
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, 2, 1)
        self.aspp = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=d, dilation=d) for d in (1, 2)])
        self.pool, self.out = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 4, 1), nn.ReLU()), nn.Conv2d(12, 3, 1)
    def forward(self, x):
        y = F.relu(self.c(x))
        parts = [a(y) for a in self.aspp] + [F.interpolate(self.pool(y), y.shape[2:], mode="bilinear", align_corners=False)]
        z = F.interpolate(self.out(torch.cat(parts, 1)), x.shape[-2:], mode="bilinear", align_corners=False)
        return z, z.argmax(1).to(torch.uint8)
@attack(X4, "m:bool[N,T]", dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4510OrdinaryEncoder(nn.Module):
    """nn.TransformerEncoder with norm_first and a key padding mask, a CLS token, pooled by the mask, weights that are not averaged."""
    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, 4))
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True, activation="gelu"), 2, nn.LayerNorm(4), enable_nested_tensor=False)
        self.att = nn.MultiheadAttention(4, 2, batch_first=True, add_zero_attn=True, add_bias_kv=True)
    def forward(self, x, m):
        y = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1)
        y = self.enc(y, src_key_padding_mask=F.pad(m, (1, 0)))
        a, w = self.att(y[:, :1], x, x, average_attn_weights=False)
        return y[:, 0], a, w
