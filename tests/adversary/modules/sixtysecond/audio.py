"""Speech synthesis, codecs and recognisers: durations, quantisers, causal caches, pitch buckets, greedy decoding, Viterbi."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,8]=-2:2", "d:float32[N,T]=-1:3", dims="N=1:1:2 T=2:5:9", kinds=FINITE)
class A7511LengthRegulatorCapped(nn.Module):
    """FastSpeech's regulator to a fixed number of frames: durations rounded from logs, cumulative ends, a hard alignment by comparison of frames with ends, a matmul."""

    def forward(self, x, d):
        dur = torch.clamp(torch.round(torch.exp(d) - 1.0), min=0).long()
        ends = torch.cumsum(dur, 1)
        frames = torch.arange(20).view(1, -1, 1)
        path = (frames < ends.unsqueeze(1)) & (frames >= (ends - dur).unsqueeze(1))
        y = path.to(x.dtype) @ x
        mel_len = torch.clamp(ends[:, -1], max=20)
        keep = frames.squeeze(-1) < mel_len[:, None]
        return y * keep.unsqueeze(-1), mel_len, path.float().argmax(-1)


@attack("x:float32[N,4,T]=-2:2", dims="N=1:1:2 T=4:16:33", kinds=FINITE)
class A7512CodecWithSnakeAndNorms(nn.Module):
    """A residual unit with weight norm of both forms, snake with alpha in log space, causal padding with extra for strides as EnCodec computes it, transposed conv trimmed by ceil."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = weight_norm(nn.Conv1d(4, 6, 7, dilation=3))
        self.b = parametrizations.weight_norm(nn.Conv1d(6, 6, 4, stride=2), dim=1)
        self.u = weight_norm(nn.ConvTranspose1d(6, 4, 4, stride=2))
        self.alpha = nn.Parameter(torch.randn(1, 6, 1) * 0.3)

    def snake(self, x):
        al = self.alpha.exp()
        return x + (al + 1e-9).reciprocal() * torch.sin(al * x).pow(2)

    def causal(self, conv, x, k, s, d):
        k = (k - 1) * d + 1
        total = k - s
        n = (x.shape[-1] - k + total) / s + 1
        ideal = (math.ceil(n) - 1) * s + (k - total)
        return conv(F.pad(x, (total, ideal - x.shape[-1])))

    def forward(self, x):
        h = self.snake(self.causal(self.a, x, 7, 1, 3))
        h = self.snake(self.causal(self.b, h, 4, 2, 1))
        y = self.u(h)
        cut = y.shape[-1] - math.ceil((4 - 2) * 1.0)
        return y[..., :cut][..., : x.shape[-1]], h


@attack("x:float32[N,T,4]=-2:2", dims="N=1:2:3 T=1:4:7", kinds=("normal", "unit", "halves", "zeros", "tenths"))
class A7513ResidualQuantisersOfOddBooks(nn.Module):
    """Three books of 5, 7 and 3 codes, the nearest by cdist then argmin, a commitment term, straight-through, codes offset into one table and looked up again."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.books = nn.ParameterList([nn.Parameter(torch.randn(k, 4)) for k in (5, 7, 3)])

    def forward(self, x):
        r, out, codes, loss = x, torch.zeros_like(x), [], 0.0
        for b in self.books:
            c = torch.cdist(r, b[None].expand(len(r), -1, -1), compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)
            q = F.embedding(c, b)
            loss = loss + F.mse_loss(q.detach(), r)
            q = r + (q - r).detach()
            out, r = out + q, r - q.detach()
            codes.append(c)
        codes = torch.stack(codes, 1)
        table = torch.cat(list(self.books))
        offs = torch.tensor([0, 5, 12]).view(1, 3, 1)
        return out, codes, table[codes + offs].sum(1), loss


class Streamed(NamedTuple):
    """What a streaming layer gives back."""

    out: torch.Tensor
    cache: tuple[torch.Tensor, torch.Tensor]


@attack("x:float32[N,4,T]=-2:2", "c:float32[N,4,L]=-2:2", dims="N=1:1:2 T=1:4:9 L=2:2:2", kinds=FINITE)
class A7514StreamingConvOfNamedTuple(nn.Module):
    """A causal conv with a cache that is cut from the end of a concatenation, where a chunk may be shorter than the cache; a second one with a ring shift by roll."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.c = nn.Conv1d(4, 4, 3, groups=4)

    def forward(self, x, c):
        full = torch.cat([c, x], -1)
        y = self.c(full)
        ring = torch.roll(c, -1, -1)
        ring[..., -1:] = x[..., -1:]
        return Streamed(F.silu(y), (full[..., -2:], ring))


@attack("f:float32[N,T]=0:800", "e:float32[N,T]=0:10", dims="N=1:1:3 T=1:6:11", kinds=FINITE)
class A7515PitchAndEnergyBuckets(nn.Module):
    """log2 pitch to semitones, bucketize with right, unvoiced as zero, coarse pitch of RVC (in-place clamps of booleans, round), energy by quantised exponent, embeddings."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.p, self.e = nn.Embedding(10, 3), nn.Embedding(8, 3)
        self.register_buffer("bins", torch.exp(torch.linspace(math.log(50.0), math.log(700.0), 9)))

    def forward(self, f, e):
        i = torch.bucketize(f, self.bins, right=True)
        m = 1127 * (1 + f / 700).log()
        lo, hi = 1127 * math.log(1 + 50 / 700), 1127 * math.log(1 + 1100 / 700)
        m[m > 0] = (m[m > 0] - lo) * 254 / (hi - lo) + 1
        m[m <= 1] = 1
        m[m > 255] = 255
        coarse = torch.round(m).long()
        j = torch.bucketize(e, torch.tensor([0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 9.0]), right=False)
        voiced = f > 0
        return self.p(i) * voiced[..., None] + self.e(j), coarse, torch.where(voiced, 12 * torch.log2(f.clamp(min=1e-3) / 440.0) + 69, torch.zeros(()))


@attack("x:float32[N,T,5]=-4:4", dims="N=1:1:2 T=1:6:11", kinds=("normal", "unit", "halves", "zeros", "ones"))
class A7516CtcGreedyPacked(nn.Module):
    """CTC greedy: repeats and blanks removed and packed to the left by a stable sort of the mask, -1 behind, lengths, confidence as product of maxima, a running count of repeats."""

    def forward(self, x):
        p, i = x.log_softmax(-1).max(-1)
        prev = F.pad(i, (1, 0), value=-1)[:, :-1]
        keep = (i != prev) & (i != 0)
        order = torch.argsort((~keep).to(torch.int64), dim=1, stable=True)
        packed = torch.where(torch.arange(x.shape[1]) < keep.sum(1, keepdim=True), i.gather(1, order), -1)
        pos = torch.cumsum(keep, 1)
        scattered = torch.full((x.shape[0], x.shape[1] + 1), -1, dtype=i.dtype).scatter(1, torch.where(keep, pos - 1, x.shape[1]), i)
        return packed, scattered[:, :-1], keep.sum(1), (p * keep).sum(1).exp()


@attack("e:float32[N,6,4]=-3:3", "m:bool[N,6]", dims="N=1:1:3", kinds=FINITE)
class A7517CrfOfSixSteps(nn.Module):
    """pytorch-crf at six fixed steps: Viterbi with masks, history in a list, best paths traced back by gathers, the normaliser by logsumexp, scores of paths."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.s, self.t, self.z = (nn.Parameter(torch.randn(*q)) for q in ((4,), (4, 4), (4,)))

    def forward(self, e, m):
        m = m.clone()
        m[:, 0] = True
        e, m = e.transpose(0, 1), m.transpose(0, 1)
        score, norm, hist = self.s + e[0], self.s + e[0], []
        for i in range(1, 6):
            n = score.unsqueeze(2) + self.t + e[i].unsqueeze(1)
            n, idx = n.max(dim=1)
            score = torch.where(m[i].unsqueeze(1), n, score)
            hist.append(torch.where(m[i].unsqueeze(1), idx, torch.arange(4).expand_as(idx)))
            norm = torch.where(m[i].unsqueeze(1), torch.logsumexp(norm.unsqueeze(2) + self.t + e[i].unsqueeze(1), 1), norm)
        best, last = (score + self.z).max(1)
        path = [last]
        for h in reversed(hist):
            path.append(h.gather(1, path[-1][:, None]).squeeze(1))
        return best, torch.stack(path[::-1], 1), torch.logsumexp(norm + self.z, 1)


@attack("x:float32[N,T]=-1:1", dims="N=1:1:2 T=64:100:200", kinds=FINITE)
class A7518MelWithDithersAndPreemphasis(nn.Module):
    """Kaldi's fbank by hand: strided frames, DC removed, pre-emphasis with a replicated first sample, povey window, rfft power, log of max with the type's epsilon, cmvn over time with unbiased deviations."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.register_buffer("mel", torch.rand(6, 17))

    def forward(self, x):
        n = 1 + (x.shape[1] - 25) // 10
        fr = x.unfold(1, 25, 10)[:, :n]
        fr = fr - fr.mean(-1, keepdim=True)
        off = F.pad(fr, (1, 0), mode="replicate")
        fr = fr - 0.97 * off[..., :-1]
        fr = fr * torch.hann_window(25, periodic=False).pow(0.85)
        p = torch.fft.rfft(fr, n=32).abs().pow(2.0)
        m = torch.max(p @ self.mel.T, torch.tensor(torch.finfo(torch.float32).eps)).log()
        return (m - m.mean(1, keepdim=True)) / (m.std(1, keepdim=True) + 1e-3), fr.pow(2).sum(-1)


@forward("x:float32[N,T]=-1:1", dims="N=1:1:2 T=8:16:40", kinds=FINITE)
def A7519MuLawAndAdpcm(self, x):
    """mu-law to 256 codes and back, bytes shifted into nibbles, a second of A-law by where, clipped to int16 with wrap on purpose, zero crossings by sign products."""
    mu = 255.0
    y = torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)
    q = ((y + 1) / 2 * mu + 0.5).to(torch.int64).clamp(0, 255)
    b = q.to(torch.uint8)
    hi, lo = b >> 4, b & 15
    back = (q.float() / mu) * 2 - 1
    back = back.sign() * ((back.abs() * math.log1p(mu)).exp() - 1) / mu
    a = torch.where(x.abs() < 1 / 87.6, 87.6 * x.abs(), 1 + torch.log(87.6 * x.abs().clamp(min=1e-8))) / (1 + math.log(87.6)) * x.sign()
    w = (x * 40000).to(torch.int32).to(torch.int16)
    zc = ((x[:, 1:] * x[:, :-1]) < 0).sum(1)
    return b, hi * 16 + lo == b, back, a, w, zc


@attack("x:float32[N,T,6]=-2:2", dims="N=1:1:2 T=1:5:12", kinds=FINITE)
class A7520VitsSplines(nn.Module):
    """A rational quadratic spline (VITS): softmaxed widths with a floor, cumulative sums padded, searchsorted by comparison sums, gathers, identity outside of the bound by where; inverse by the quadratic formula."""

    def forward(self, x):
        u, w, h, d = x[..., 0], x[..., 1:4], x[..., [4, 5, 1]], x[..., 2:4]
        b, mn = 2.0, 1e-3
        w = mn + (1 - mn * 3) * w.softmax(-1)
        cw = F.pad(w.cumsum(-1), (1, 0), value=0.0) * 2 * b - b
        cw[..., -1] = b
        w = cw[..., 1:] - cw[..., :-1]
        h = mn + (1 - mn * 3) * h.softmax(-1)
        ch = F.pad(h.cumsum(-1), (1, 0), value=0.0) * 2 * b - b
        ch[..., -1] = b
        h = ch[..., 1:] - ch[..., :-1]
        d = mn + F.softplus(F.pad(d, (1, 1), value=math.log(math.exp(1 - mn) - 1)))
        inside = (u >= -b) & (u <= b)
        v = u.clamp(-b, b)
        k = ((v[..., None] >= cw).sum(-1) - 1).clamp(0, 2)[..., None]
        g = lambda t: t.gather(-1, k)[..., 0]  # noqa: E731
        s = h / w
        th = (v - g(cw[..., :-1])) / g(w)
        t1 = th * (1 - th)
        num = g(h) * (g(s) * th.pow(2) + g(d[..., :-1]) * t1)
        den = g(s) + (g(d[..., :-1]) + g(d[..., 1:]) - 2 * g(s)) * t1
        return torch.where(inside, g(ch[..., :-1]) + num / den, u), k
