"""Speech and streaming: CTC, RNN-T joint, VAD, framing, overlap-add, pitch, resampling, mel by hand, caches, beam steps, unwrap, ADPCM."""
# ruff: noqa: E501, RUF059, E741 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,6]", "l:int64[N]=0:11", dims="N=1:2:3 T=2:6:11", kinds=FINITE)
class A7724CtcGreedyDecode(nn.Module):
    """Argmax, collapse repeats, drop blanks, compact to the left by a stable sort of the keep mask, pad with -1, lengths."""

    def forward(self, x, l):
        best = x.argmax(-1)
        prev = F.pad(best, (1, 0), value=-1)[:, :-1]
        keep = (best != prev) & (best != 0) & (torch.arange(x.shape[1]) < l[:, None])
        order = torch.sort((~keep).to(torch.uint8), dim=1, stable=True).indices
        n = keep.sum(1)
        out = best.gather(1, order).masked_fill(torch.arange(x.shape[1])[None] >= n[:, None], -1)
        return out, n, (x.max(-1).values * keep).sum(1)


@attack("e:float32[N,T,4]", "p:float32[N,U,4]", dims="N=1:2:3 T=1:4:7 U=1:3:5", kinds=FINITE)
class A7725RnntJoint(nn.Module):
    """An RNN-T joint with log softmax split into blank by logsigmoid (HAT), greedy symbol and its margin."""

    def __init__(self) -> None:
        super().__init__()
        self.e, self.p, self.o = nn.Linear(4, 8), nn.Linear(4, 8, bias=False), nn.Linear(8, 6)

    def forward(self, e, p):
        j = self.o(torch.tanh(self.e(e)[:, :, None] + self.p(p)[:, None]))
        blank = F.logsigmoid(j[..., :1])
        rest = F.log_softmax(j[..., 1:], -1) + F.logsigmoid(-j[..., :1])
        y = torch.cat([blank, rest], -1)
        top = y.topk(2, dim=-1).values
        return y, y.argmax(-1), top[..., 0] - top[..., 1]


@attack("x:float32[N,T]=0:1", dims="N=1:2:3 T=5:9:17", kinds=("unit", "zeros", "halves", "ascending", "ones"))
class A7726VadHysteresis(nn.Module):
    """VAD with two thresholds: a scan over frames keeps a state, hangover of three, runs under two frames dropped."""

    def forward(self, x):
        state = torch.zeros(x.shape[0], dtype=torch.bool)
        hang = torch.zeros(x.shape[0], dtype=torch.int64)
        out = []
        for t in range(x.shape[1]):
            on, off = x[:, t] > 0.6, x[:, t] < 0.35
            hang = torch.where(off & state, hang + 1, torch.zeros_like(hang))
            state = (state | on) & ~(hang >= 3)
            out.append(state)
        s = torch.stack(out, 1)
        left = F.pad(s, (1, 0))[:, :-1]
        right = F.pad(s, (0, 1))[:, 1:]
        return s & (left | right), s.sum(1)


@attack("x:float32[N,L]=-1:1", dims="N=1:1:2 L=20:37:60", kinds=FINITE)
class A7727FramingOverlapAdd(nn.Module):
    """Frames of 8 every 3 with the tail padded, a window, overlap-add by fold, normalised by the window sum, cut to L."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.hann_window(8) + 0.05)

    def forward(self, x):
        n, l = x.shape
        frames = math.ceil(max(l - 8, 0) / 3) + 1
        total = (frames - 1) * 3 + 8
        f = F.pad(x, (0, total - l)).unfold(1, 8, 3) * self.w
        y = F.fold(f.mT, (1, total), (1, 8), stride=(1, 3))[:, 0, 0]
        norm = F.fold(self.w[None, :, None].expand(1, 8, frames) ** 2, (1, total), (1, 8), stride=(1, 3))[:, 0, 0]
        return (y / norm.clamp(min=1e-3))[:, :l], f.abs().amax((1, 2))


@attack("x:float32[N,L]=-1:1", dims="N=1:1:2 L=32:40:65", kinds=("normal", "unit", "ascending"))
class A7728PitchByAutocorrelation(nn.Module):
    """Normalised autocorrelation by rfft of the next power of two, best lag in a range, parabolic refinement."""

    def forward(self, x):
        l = x.shape[-1]
        n = 1 << (2 * l - 1).bit_length()
        x = x - x.mean(-1, keepdim=True)
        s = torch.fft.rfft(x, n=n)
        r = torch.fft.irfft(s.abs() ** 2, n=n)[:, :l]
        r = r / (r[:, :1] + 1e-4)
        lo, hi = 3, l // 3
        k = r[:, lo:hi].argmax(-1, keepdim=True) + lo
        a, b, c = r.gather(1, k - 1), r.gather(1, k), r.gather(1, k + 1)
        d = 0.5 * (a - c) / (a - 2 * b + c - 1e-2)
        return b, r, d.clamp(-1, 1)


@attack("x:float32[N,1,L]=-1:1", dims="N=1:1:2 L=12:23:40", kinds=FINITE)
class A7729ResampleByRatio(nn.Module):
    """Windowed-sinc resampling 7 to 4 as torchaudio does it: a kernel for each phase, ceil(new * L / old) samples."""

    def __init__(self) -> None:
        super().__init__()
        old, new, width = 7, 4, 12
        base = min(old, new) * 0.99
        idx = torch.arange(-width, width + old)[None] / old
        t = (torch.arange(0, -new, -1)[:, None] / new + idx) * base
        t = t.clamp(-6, 6)
        w = torch.cos(t * math.pi / 12) ** 2
        t = t * math.pi
        k = torch.where(t == 0, torch.ones_like(t), t.sin() / t) * w * base / old
        self.register_buffer("k", k[:, None])

    def forward(self, x):
        l = x.shape[-1]
        y = F.conv1d(F.pad(x, (12, 12 + 7)), self.k, stride=7)
        y = y.transpose(1, 2).reshape(x.shape[0], -1)
        return y[..., : math.ceil(4 * l / 7)]


@attack("x:float32[N,L]=-1:1", dims="N=1:1:2 L=32:45:70", kinds=("normal", "unit", "halves", "ones"))
class A7730LogMelByHand(nn.Module):
    """Pre-emphasis, reflect pad, DFT by matrices, mel triangles, log10 with the whisper clamp (max - 8), deltas."""

    def __init__(self) -> None:
        super().__init__()
        k = torch.arange(9)[:, None] * torch.arange(16)[None] * (2 * math.pi / 16)
        self.register_buffer("c", torch.cos(k))
        self.register_buffer("s", torch.sin(k))
        self.register_buffer("mel", torch.rand(9, 5, generator=torch.Generator().manual_seed(3)))

    def forward(self, x):
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
        f = F.pad(x[:, None], (8, 8), mode="reflect")[:, 0].unfold(1, 16, 5) * torch.hann_window(16)
        p = (f @ self.c.T) ** 2 + (f @ self.s.T) ** 2
        m = (p @ self.mel).clamp(min=1e-5).log10()
        m = torch.maximum(m, m.amax((1, 2), keepdim=True) - 8.0)
        m = (m + 4.0) / 4.0
        q = F.pad(m.mT, (2, 2), mode="replicate")
        d = (q[..., 3:-1] - q[..., 1:-3] + 2 * (q[..., 4:] - q[..., :-4])) / 10
        return m, d.mT


@attack("x:float32[N,T,4]", "c:float32[N,6,4]", "kv:float32[2,N,C,4]", dims="N=1:1:2 T=1:3:8 C=1:4:6", kinds=FINITE)
class A7731LeftContextCaches(nn.Module):
    """A causal depthwise conv with its cache of six, attention over a cache of keys and values cut to the last five; both caches out."""

    def __init__(self) -> None:
        super().__init__()
        self.dw = nn.Conv1d(4, 4, 7, groups=4)
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, c, kv):
        y = torch.cat([c, x], 1)
        nc = y[:, -6:]
        h = F.silu(self.dw(y.mT)).mT
        k, v = torch.cat([kv[0], self.k(h)], 1), torch.cat([kv[1], self.v(h)], 1)
        t, s = h.shape[1], k.shape[1]
        i, j = torch.arange(t)[:, None] + s - t, torch.arange(s)[None]
        a = F.scaled_dot_product_attention(self.q(h), k, v, attn_mask=(j <= i) & (j > i - 5))
        return a, nc, torch.stack([k[:, -5:], v[:, -5:]])


@attack("x:float32[N,3,L]", dims="N=1:1:2 L=3:10:21", kinds=FINITE)
class A7732CausalConvExtraPadding(nn.Module):
    """EnCodec's convs: extra padding so that the last window is full, reflect padding that first grows a short input, a transposed conv trimmed on the right."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 4, 8, stride=4), nn.ConvTranspose1d(4, 3, 8, stride=4)

    def forward(self, x):
        l, p = x.shape[-1], 8 - 4
        frames = (l - 8 + p) / 4 + 1
        extra = (math.ceil(frames) - 1) * 4 + 8 - p - l
        m = max(p, extra)
        grow = m - l + 1 if l <= m else 0
        x = F.pad(x, (0, grow))
        x = F.pad(x, (p, extra), mode="reflect")
        x = x[..., : x.shape[-1] - grow]
        z = self.a(x)
        y = self.b(F.elu(z))
        r = math.ceil((8 - 4) * 1.0)
        return y[..., : y.shape[-1] - r], z


@attack("logp:float32[N,B,V]", "score:float32[N,B]", "done:bool[N,B]", dims="N=1:2:3 B=2:3:4 V=4:6:9", kinds=("normal", "unit", "ascending", "negative"))
class A7733BeamStep(nn.Module):
    """One step of a beam search: finished beams only extend by EOS, top 2B of B*V, parents by floor division, tokens by modulo, length penalty."""

    def forward(self, logp, score, done):
        n, b, v = logp.shape
        logp = logp.log_softmax(-1)
        stay = torch.full((v,), -1e9)
        stay[1] = 0.0
        logp = torch.where(done[..., None], stay, logp)
        total = (score[..., None] + logp).view(n, b * v)
        s, i = total.topk(2 * b, dim=1)
        parent, token = torch.div(i, v, rounding_mode="floor"), i % v
        eos = token == 1
        return s / ((5.0 + b) / 6.0) ** 0.6, parent, token, done.gather(1, parent) | eos


@forward("x:float32[N,T]=-9:9", dims="N=1:2:3 T=2:6:11", kinds=("normal", "unit", "halves", "ascending"))
def A7734PhaseUnwrap(self, x):
    """numpy's unwrap: differences modulo 2 pi with the border case at +pi, cumulated corrections."""
    d = x[:, 1:] - x[:, :-1]
    m = torch.remainder(d + math.pi, 2 * math.pi) - math.pi
    m = torch.where((m == -math.pi) & (d > 0), math.pi, m)
    c = torch.where(d.abs() < math.pi, 0.0, m - d)
    return torch.cat([x[:, :1], x[:, 1:] + c.cumsum(1)], 1)


@attack("x:float32[N,T]=-1:1", dims="N=1:2:3 T=2:5:9", kinds=("unit", "zeros", "halves", "tenths", "ones"))
class A7735MuLawAndALaw(nn.Module):
    """Mu-law to 256 classes and back, as bytes: XOR with 0x55, shifts of uint8, an int16 round trip."""

    def forward(self, x):
        mu = 255.0
        y = torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)
        q = ((y + 1) / 2 * mu + 0.5).to(torch.int64).to(torch.uint8)
        e = q ^ 0x55
        seg = (e >> 4) & 7
        back = (e ^ 0x55).float() / mu * 2 - 1
        z = torch.sign(back) * (torch.exp(back.abs() * math.log1p(mu)) - 1) / mu
        return e, seg, z, (z * 32767).to(torch.int16)


STEPS = [7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31]


@attack("c:int64[N,T]=0:15", dims="N=1:2:3 T=2:5:9")
class A7736AdpcmDecoder(nn.Module):
    """IMA ADPCM: codes step through a table with a clamped index; the predictor saturates at int16."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.tensor(STEPS))
        self.register_buffer("move", torch.tensor([-1, -1, -1, -1, 2, 4, 6, 8]))

    def forward(self, c):
        index = torch.zeros(c.shape[0], dtype=torch.int64)
        value = torch.zeros(c.shape[0], dtype=torch.int64)
        out = []
        for t in range(c.shape[1]):
            k, step = c[:, t], self.steps[index]
            d = (step >> 3) + ((k & 1) != 0) * (step >> 2) + ((k & 2) != 0) * (step >> 1) + ((k & 4) != 0) * step
            value = (value + torch.where(k & 8 != 0, -d, d)).clamp(-32768, 32767)
            index = (index + self.move[k & 7]).clamp(0, 15)
            out.append(value)
        return torch.stack(out, 1).to(torch.int16), index
