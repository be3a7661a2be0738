# ruff: noqa: E501, E741 - attacks are written as users write them
"""Speech networks of 2024 to 2026, small: conformers, transducers, vocoders, codecs, streams."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations as P

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,8]=-2:2", "l:int64[N]=1:5", dims="N=1:2:3 T=5:9:14", kinds=FINITE)
class A7400Conformer(nn.Module):
    """Relative position attention with Transformer-XL's shift (pad, view, cut), a GLU conv module with lengths masked, BatchNorm in eval."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v, self.p = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.u, self.w = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(2, 4))
        self.pw, self.dw, self.bn = nn.Conv1d(8, 16, 1), nn.Conv1d(8, 8, 5, padding=2, groups=8), nn.BatchNorm1d(8)
        self.eval()

    def forward(self, x, l):
        b, t, d = x.shape
        mask = torch.arange(t)[None] >= l[:, None]
        pos = torch.arange(t - 1, -t, -1.0)
        div = torch.exp(torch.arange(0, d, 2) * -(math.log(10000.0) / d))
        pe = torch.zeros(2 * t - 1, d)
        pe[:, 0::2] = torch.sin(pos[:, None] * div)
        pe[:, 1::2] = torch.cos(pos[:, None] * div)
        p = self.p(pe)[None].view(1, -1, 2, 4).transpose(1, 2)
        q = self.q(x).view(b, t, 2, 4)
        k = self.k(x).view(b, t, 2, 4).transpose(1, 2)
        v = self.v(x).view(b, t, 2, 4).transpose(1, 2)
        ac = (q + self.u).transpose(1, 2) @ k.mT
        bd = (q + self.w).transpose(1, 2) @ p.mT
        z = torch.zeros((*bd.size()[:3], 1))
        bd = torch.cat([z, bd], -1).view(b, 2, 2 * t, t)[:, :, 1:].view_as(bd)[:, :, :, : bd.size(-1) // 2 + 1]
        a = ((ac + bd) / 2).masked_fill(mask[:, None, None], -1e4).softmax(-1).masked_fill(mask[:, None, None], 0.0)
        x = x + (a @ v).transpose(1, 2).reshape(b, t, d)
        y = F.glu(self.pw(x.transpose(1, 2)), 1).masked_fill(mask.unsqueeze(1), 0.0)
        return x + F.silu(self.bn(self.dw(y))).transpose(1, 2)


@attack("e:float32[N,T,6]=-2:2", dims="N=1:1:3 T=2:4:6", kinds=FINITE)
class A7401RnntGreedy(nn.Module):
    """A transducer's greedy search of fixed steps: at most two symbols a frame, states kept where the blank came, labels appended at a count by scatter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.em, self.c = nn.Embedding(5, 6), nn.GRUCell(6, 6)
        self.j = nn.Linear(6, 5)

    def forward(self, e):
        n, t, _ = e.shape
        h = torch.zeros(n, 6)
        last = torch.zeros(n, dtype=torch.long)
        out = torch.full((n, 2 * t + 1), -1, dtype=torch.long)
        cnt = torch.zeros(n, dtype=torch.long)
        g = self.c(self.em(last), h)
        for i in range(t):
            blank = torch.zeros(n, dtype=torch.bool)
            for _ in range(2):
                k = self.j((e[:, i] + g).tanh()).argmax(-1)
                blank = blank | (k == 0)
                at = torch.where(blank, torch.full_like(cnt, 2 * t), cnt)
                out = out.scatter(1, at[:, None], k[:, None])
                last = torch.where(blank, last, k)
                cnt = cnt + (~blank).long()
                h = torch.where(blank[:, None], h, g)
                g = torch.where(blank[:, None], g, self.c(self.em(last), h))
        return out[:, :-1], cnt, g


@attack("x:float32[N,1,T]=-1:1", "c:float32[N,4,6]=-1:1", dims="N=1:1:2 T=4:8:16%4", kinds=FINITE)
class A7402StreamingConv(nn.Module):
    """Streams with a cache: cat of the cache, a conv without padding, the new cache from the end, a transposed conv with overlap added."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.i = P.weight_norm(nn.Conv1d(1, 4, 3, padding=1))
        self.d = nn.Conv1d(4, 4, 4, dilation=2, groups=2)
        self.u = P.weight_norm(nn.ConvTranspose1d(4, 2, 4, stride=2))

    def forward(self, x, c):
        y = torch.cat([c, F.elu(self.i(x))], -1)
        c = y[..., -6:]
        y = self.d(y)
        u = self.u(y)
        z = u[..., :-2].clone()
        z[..., :2] += u[..., -2:] * 0.5
        return z, c


@attack("x:float32[N,6,T]=-1:1", dims="N=1:1:2 T=3:7:12", kinds=FINITE)
class A7403HifiSnake(nn.Module):
    """HiFi-GAN with Snake: weight_norm, kernels averaged over resblocks, alpha in log scale, a tanh, then an iSTFT head with exp and cos and sin of the phase."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.up = P.weight_norm(nn.ConvTranspose1d(6, 6, 4, 2, padding=1))
        self.rb = nn.ModuleList([P.weight_norm(nn.Conv1d(6, 6, k, padding=(k - 1) // 2 * d, dilation=d)) for k, d in ((3, 1), (3, 3), (5, 2))])
        self.al = nn.Parameter(torch.randn(6) * 0.2)
        self.po = nn.Conv1d(6, 18, 7)
        self.rp = nn.ReflectionPad1d((1, 0))
        self.register_buffer("win", torch.hann_window(16))

    def forward(self, x):
        x = self.up(F.leaky_relu(x, 0.1))
        a = self.al.exp()[None, :, None]
        xs = None
        for r in self.rb:
            y = x + (a + 1e-9).reciprocal() * (x * a).sin().pow(2)
            xs = r(y) if xs is None else xs + r(y)
        x = F.pad(self.rp(xs / len(self.rb)), (3, 3))
        x = self.po(x)
        sp = x[:, :9].clamp(max=4).exp()
        ph = torch.sin(x[:, 9:])
        return torch.istft(sp * torch.exp(ph * 1j), 16, 4, 16, window=self.win), sp


@attack("x:float32[N,T]=-1:1", dims="N=1:1:2 T=32:70:120", kinds=FINITE)
class A7404WhisperMel(nn.Module):
    """Whisper's front end: magnitudes without the last frame, slaney filters, log10, a floor of 8 below the maximum of each row, (x + 4) / 4, two convs and sinusoids cut."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.register_buffer("mel", torch.rand(5, 17))
        self.c1, self.c2 = nn.Conv1d(5, 6, 3, padding=1), nn.Conv1d(6, 6, 3, stride=2, padding=1)
        inc = math.log(10000) / 2
        it = torch.exp(-inc * torch.arange(3))
        st = torch.arange(20)[:, None] * it[None]
        self.register_buffer("pe", torch.cat([st.sin(), st.cos()], 1))

    def forward(self, x):
        s = torch.stft(x, 32, 8, window=torch.hann_window(32), return_complex=True)
        m = self.mel @ s[..., :-1].abs() ** 2
        g = torch.clamp(m, min=1e-10).log10()
        g = torch.maximum(g, g.amax(dim=(1, 2), keepdim=True) - 8.0)
        g = (g + 4.0) / 4.0
        y = F.gelu(self.c2(F.gelu(self.c1(g)))).permute(0, 2, 1)
        return (y + self.pe[: y.shape[1]]).to(x.dtype), g


@attack("x:float32[N,4,T]=-2:2", dims="N=1:1:3 T=1:5:11", kinds=FINITE)
class A7405ResidualVq(nn.Module):
    """Residual VQ: cdist argmin with a normalised codebook (DAC) and by x^2 - 2xy + y^2 (EnCodec), codes stacked, the straight-through form."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.i, self.o = P.weight_norm(nn.Conv1d(4, 3, 1)), P.weight_norm(nn.Conv1d(3, 4, 1))
        self.cb = nn.ModuleList(nn.Embedding(7, 3) for _ in range(3))

    def forward(self, x):
        r, q, codes = self.i(x), 0, []
        for i, c in enumerate(self.cb):
            b, d, t = r.shape
            e = r.permute(0, 2, 1).reshape(b * t, d)
            w = c.weight
            if i % 2:
                e, w = F.normalize(e), F.normalize(w)
            dist = e.pow(2).sum(1, keepdim=True) - 2 * e @ w.t() + w.pow(2).sum(1, keepdim=True).t()
            idx = (-dist).max(1)[1].view(b, t)
            z = F.embedding(idx, c.weight).transpose(1, 2)
            z = r + (z - r).detach()
            r, q = r - z, q + z
            codes.append(idx)
        return self.o(q), torch.stack(codes, 1)


@forward("x:float32[N,T,4]=-2:2", dims="N=1:1:3 T=1:5:11", kinds=FINITE)
def A7406FsqLfq(self, x):
    """FSQ with even levels (the atanh shift) and its index by a basis of cumprod; LFQ by sign with bits packed; indices back to codes."""
    lv = torch.tensor([8, 5, 5, 4], dtype=torch.int32)
    basis = torch.cumprod(torch.tensor([1, *lv[:-1].tolist()]), dim=0, dtype=torch.int32)
    hl = (lv - 1) * (1 + 1e-3) / 2
    off = torch.where(lv % 2 == 0, 0.5, 0.0)
    z = (x + (off / hl).atanh()).tanh() * hl - off
    q = z + (z.round() - z).detach()
    hw = lv // 2
    c = q / hw
    idx = ((c * hw + hw) * basis).sum(dim=-1).to(torch.int32)
    back = (idx.unsqueeze(-1) // basis) % lv
    s = torch.where(x > 0, torch.tensor(1.0), -torch.tensor(1.0))
    bits = ((s > 0).int() * 2 ** torch.arange(3, -1, -1)).sum(-1)
    return c, idx, (back - hw) / hw, bits, ((bits[..., None] >> torch.arange(3, -1, -1)) & 1).bool()


@attack("x:float32[N,1,T]=-1:1", dims="N=1:1:2 T=16:24:40", kinds=FINITE)
class A7407Sincnet(nn.Module):
    """SincNet's filters built in forward from learnt cutoffs, flipped and joined, a log1p of absolute values, statistics pooling with attention."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.low, self.band = nn.Parameter(torch.tensor([[30.0], [200.0], [900.0]])), nn.Parameter(torch.tensor([[100.0], [300.0], [700.0]]))
        n = torch.arange(-3.0, 0).view(1, -1) / 8000 * 2 * math.pi
        self.register_buffer("n_", n)
        self.register_buffer("wd", torch.hamming_window(7)[:3])
        self.at = nn.Conv1d(9, 3, 1)

    def forward(self, x):
        low = 50 + torch.abs(self.low)
        high = torch.clamp(low + 50 + torch.abs(self.band), 50, 4000)
        band = (high - low)[:, 0]
        bl = ((torch.sin(high @ self.n_) - torch.sin(low @ self.n_)) / (self.n_ / 2)) * self.wd
        bp = torch.cat([bl, 2 * band.view(-1, 1), torch.flip(bl, dims=[1])], 1) / (2 * band[:, None])
        y = torch.log1p(F.conv1d(x, bp.view(3, 1, 7), stride=2).abs())
        t = y.shape[-1]
        g = torch.cat([y, y.mean(-1, keepdim=True).repeat(1, 1, t), y.std(-1, keepdim=True).repeat(1, 1, t)], 1)
        w = F.softmax(self.at(g), dim=2)
        mu = (y * w).sum(2)
        return torch.cat((mu, ((y**2 * w).sum(2) - mu**2).clamp(min=1e-4).sqrt()), 1)


@attack("ids:int64[N,T]=0:9", "sc:float32[]=0.5:2", dims="N=1:1:1 T=1:4:7", kinds=FINITE)
class A7408Fastspeech(nn.Module):
    """VITS's length regulator at a fixed number of frames: durations by ceil(exp), cumsum, a path by sequence masks and its difference."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.e, self.d = nn.Embedding(10, 4), nn.Linear(4, 1)

    def forward(self, ids, sc):
        h = self.e(ids)
        w = torch.ceil(torch.exp(self.d(h).squeeze(-1)) * sc)
        n = torch.clamp_min(w.sum(1), 1).long()
        cum = w.cumsum(-1)
        b, t = w.shape
        fr = torch.arange(16, dtype=cum.dtype)
        path = (fr.unsqueeze(0) < cum.view(b * t).unsqueeze(1)).to(h.dtype).view(b, t, 16)
        path = path - F.pad(path, (0, 0, 1, 0, 0, 0))[:, :-1]
        return path.transpose(1, 2) @ h, n.clamp(max=16)
