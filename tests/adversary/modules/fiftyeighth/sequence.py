# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Sequences: T5-like buckets, caches by position, beams, speech frontends, transducers, conformers, packed lengths, retention."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("ids:int64[N,T]=0:11", "cache:float32[N,P,4]=-2:2", dims="N=1:2:3 T=1:4:6 P=0:3:6", kinds=FINITE)
class A7236T5Cached(nn.Module):
    """T5: log buckets of relative positions with past, an un-scaled attention, RMS norm, the mask of pads from ids."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.emb = nn.Embedding(12, 4, padding_idx=0)
        self.bias = nn.Embedding(8, 2)
        self.kv = nn.Linear(4, 4, bias=False)
        self.w = nn.Parameter(torch.ones(4) * 1.2)

    def bucket(self, rel):
        n = -rel.clamp(max=0)
        exact = 4
        big = exact + (torch.log(n.float().clamp(min=1) / exact) / math.log(16 / exact) * (8 - exact)).to(torch.long)
        return torch.where(n < exact, n, torch.min(big, torch.full_like(big, 7)))

    def forward(self, ids, cache):
        x = self.emb(ids)
        x = self.w * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        kv = torch.cat([cache, self.kv(x)], 1)
        p, t = cache.shape[1], ids.shape[1]
        q = torch.arange(p, p + t)[:, None]
        k = torch.arange(p + t)[None]
        b = self.bias(self.bucket(k - q)).permute(2, 0, 1)[None]
        heads = lambda z: z.unflatten(-1, (2, 2)).transpose(1, 2)  # noqa: E731
        s = heads(x) @ heads(kv).transpose(-1, -2) + b
        s = s.masked_fill((k > q)[None, None], torch.finfo(s.dtype).min)
        return (s.softmax(-1) @ heads(kv)).transpose(1, 2).flatten(2), kv


@forward("logp:float32[B,K,V]=-6:0", "score:float32[B,K]=-9:0", "toks:int64[B,K,T]=0:5", "done:bool[B,K]", dims="B=1:2:3 K=2:3:4 T=1:3:5 V=4:6:7", kinds=FINITE)
def A7237BeamStep(self, logp, score, toks, done):
    """fairseq's step: finished beams only extend by pad, the top k of k*V flattened, back-pointers gather tokens, GNMT's length penalty."""
    b, k, v = logp.shape
    eos = 2
    frozen = torch.full((v,), float("-inf"))
    frozen[0] = 0.0
    logp = torch.where(done[..., None], frozen, logp.log_softmax(-1))
    total = (score[..., None] + logp).view(b, k * v)
    best, idx = total.topk(k, dim=-1)
    beam = torch.div(idx, v, rounding_mode="trunc")
    tok = idx.fmod(v)
    toks = torch.cat([toks.gather(1, beam[..., None].expand(-1, -1, toks.size(2))), tok[..., None]], -1)
    done = done.gather(1, beam) | tok.eq(eos)
    lp = ((5.0 + toks.size(-1)) / 6.0) ** 0.6
    return best, toks, done, best / lp


@attack("wav:float32[N,T]=-1:1", dims="N=1:1:2 T=33:64:120", kinds=FINITE, feeds=(lambda: {"wav": __import__("numpy").zeros((1, 50), "float32")},))
class A7238Frontend(nn.Module):
    """Kaldi-like fbank: snip edges by unfold, the frame's mean off, pre-emphasis with the first sample repeated, Povey window, FFT padded, mel, CMVN, deltas."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.register_buffer("win", torch.hann_window(20, periodic=False) ** 0.85)
        self.register_buffer("mel", torch.rand(17, 6))

    def forward(self, wav):
        f = wav.unfold(-1, 20, 8)
        f = f - f.mean(-1, keepdim=True)
        prev = torch.cat([f[..., :1], f[..., :-1]], -1)
        f = (f - 0.97 * prev) * self.win
        p = torch.fft.rfft(f, n=32).abs() ** 2
        m = (p @ self.mel).clamp_min(1e-5).log()
        m = (m - m.mean(1, keepdim=True)) / (m.std(1, keepdim=True, unbiased=False) + 1e-2)
        pad = F.pad(m.transpose(1, 2), (1, 1), mode="replicate")
        d = (pad[..., 2:] - pad[..., :-2]) / 2
        return torch.cat([m, d.transpose(1, 2)], -1), p.shape[1] * torch.ones(len(wav), dtype=torch.long)


@attack("x:float32[N,T,6]=-3:3", "lens:int64[N]=1:3", dims="N=1:2:3 T=3:5:9", kinds=FINITE)
class A7239Conformer(nn.Module):
    """A conformer block: half-step FFN, relative shift by pad and view, GLU depthwise conv masked by lengths, the length after a stride of 2."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.ff = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 6))
        self.pw = nn.Conv1d(6, 12, 1)
        self.dw = nn.Conv1d(6, 6, 3, padding=1, groups=6)
        self.bn = nn.BatchNorm1d(6).eval()
        self.sub = nn.Conv1d(6, 4, 3, stride=2, padding=1)
        self.pos = nn.Linear(6, 6, bias=False)

    def rel_shift(self, s):
        b, t, p = s.shape
        return F.pad(s, (1, 0)).view(b, p + 1, t)[:, 1:].view(b, t, p)[:, :, :t]

    def forward(self, x, lens):
        n, t, _ = x.shape
        mask = torch.arange(t) < lens[:, None]
        x = x + 0.5 * self.ff(x)
        r = torch.arange(t - 1, -t, -1.0)
        pe = torch.stack([torch.sin(r / 10 ** (i / 3)) for i in range(6)], -1)
        bd = self.rel_shift(x @ self.pos(pe).T)
        s = (x @ x.mT + bd) / math.sqrt(6)
        s = s.masked_fill(~mask[:, None], float("-inf"))
        x = x + s.softmax(-1) @ x
        c = F.glu(self.pw(x.mT), 1).masked_fill(~mask[:, None], 0.0)
        x = x + F.silu(self.bn(self.dw(c))).mT
        return self.sub(x.mT).mT * (torch.arange((t + 1) // 2) < ((lens + 1) // 2)[:, None])[..., None], (lens + 1) // 2


@forward("x:float32[N,T,3]=-2:2", "lens:int64[N]=0:4", dims="N=1:2:4 T=4:5:8", kinds=FINITE)
def A7240Pooling(self, x, lens):
    """Sentence pooling: mean, max, last, first and sqrt-length pools with empty sentences, by a mask of lengths."""
    m = torch.arange(x.size(1))[None, :] < lens.unsqueeze(1)
    mf = m.unsqueeze(-1).to(x.dtype)
    mean = (x * mf).sum(1) / mf.sum(1).clamp(min=1e-9)
    mx = x.masked_fill(~m[..., None], -1e9).amax(1)
    last = x[torch.arange(x.size(0)), (lens - 1).clamp(min=0)]
    root = (x * mf).sum(1) / lens.clamp(min=1)[:, None].float().sqrt()
    return torch.cat([mean, last, root], -1), mx, F.normalize(mean, dim=-1), m.sum(), (x * mf).cumsum(1).flip(1)


@attack("tok:int64[N]=0:7", "pos:int64[]=0:7", "k:float32[N,8,4]=-2:2", dims="N=1:2:3", kinds=FINITE)
class A7241StaticCache(nn.Module):
    """A static KV cache updated in place at a tensor's position, RoPE by that position, a mask up to it, a top-p filter by sort and scatter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.emb = nn.Embedding(8, 4)
        self.register_buffer("inv", 1.0 / (100 ** (torch.arange(0, 4, 2).float() / 4)))

    def forward(self, tok, pos, k):
        x = self.emb(tok)
        a = pos.float() * self.inv
        c, s = a.cos(), a.sin()
        x1, x2 = x[..., ::2], x[..., 1::2]
        x = torch.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).flatten(-2)
        k = k.clone()
        k[:, pos] = x
        w = torch.einsum("nd,ntd->nt", x, k) / 2
        w = torch.where(torch.arange(8) <= pos, w, -torch.inf)
        y = torch.einsum("nt,ntd->nd", w.softmax(-1), k)
        logits = y @ self.emb.weight.T
        so, si = logits.sort(-1, descending=True)
        cp = so.softmax(-1).cumsum(-1)
        drop = cp > 0.8
        drop[:, 1:] = drop[:, :-1].clone()
        drop[:, 0] = False
        drop = drop.scatter(1, si, drop)
        return logits.masked_fill(drop, float("-inf")), k


@attack("x:float32[N,T,4]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7242Retention(nn.Module):
    """RetNet's parallel form with decays by powers, group norm over heads, and a GRU cell run by a Python loop over unbind of the last three steps."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.cell = nn.GRUCell(4, 3)
        self.gn = nn.GroupNorm(2, 4)
        self.register_buffer("gamma", 1 - 2.0 ** (-2 - torch.arange(2.0)))

    def forward(self, x):
        n, t, _ = x.shape
        i = torch.arange(t)
        d = (i[:, None] - i[None]).float()
        decay = torch.where(d >= 0, self.gamma[:, None, None] ** d.clamp(min=0), torch.zeros(()))
        h = x.view(n, t, 2, 2).transpose(1, 2)
        r = (h @ h.transpose(-1, -2) * decay) @ h
        r = self.gn(r.transpose(1, 2).reshape(n * t, 4)).view(n, t, 4)
        s = x.new_zeros(n, 3)
        for v in r[:, -3:].unbind(1) if t >= 3 else [r[:, -1]]:
            s = self.cell(v, s)
        return r, s


@forward("logits:float32[N,T,U,5]=-3:3", "y:int64[N,U]=1:4", dims="N=1:2:3 T=2:3:5 U=1:3:4", kinds=FINITE)
def A7243Transducer(self, logits, y):
    """RNN-T scores: log-softmax, blanks and labels gathered, the first column's alphas by cumsum, logaddexp of two rows, logcumsumexp."""
    lp = F.log_softmax(logits, -1)
    blank = lp[..., 0]
    lab = lp.gather(-1, y[:, None, :, None].expand(-1, lp.size(1), -1, -1)).squeeze(-1)
    col = F.pad(blank[:, :-1, 0].cumsum(1), (1, 0))
    row = torch.logaddexp(col[:, -1:] + lab[:, -1], blank[:, 0])
    return col, row, torch.logcumsumexp(blank[:, :, -1], 1), torch.logsumexp(lab, (1, 2))


@attack("x:float32[N,T,3]=-2:2", "h:float32[2,N,4]=-1:1", "c:float32[2,N,4]=-1:1", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7244TwoLstms(nn.Module):
    """A stateful streaming decoder: an LSTM of two layers with states in and out, then a projected bidirectional one from zeros."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(10)
        self.a = nn.LSTM(3, 4, num_layers=2, batch_first=True)
        self.b = nn.GRU(4, 2, bidirectional=True, batch_first=True)

    def forward(self, x, h, c):
        y, (hn, cn) = self.a(x, (h, c))
        z, g = self.b(y.flip(1))
        return z, hn[-1], cn, g.transpose(0, 1).reshape(x.size(0), -1)
