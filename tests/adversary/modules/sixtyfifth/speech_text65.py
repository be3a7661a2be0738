"""Speech and language: STFT and mel front ends, CTC, streaming caches, decoder steps, positions, masks, experts, quantisers, beams, diffusion."""
# ruff: noqa: E501, E741 - attacks are written as users write them

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.modules.fiftythird.attention import A6818AlibiGqa


@attack("x:float32[N,L]=-1:1", dims="N=1:1:2 L=48:64:97", kinds=("normal", "unit", "halves", "tenths", "zeros"))
class A7810WhisperLogMel(nn.Module):
    """Whisper's log_mel_spectrogram: hann stft, last frame dropped, clamp, log10, max over ALL - 8, (x + 4) / 4; Kaldi pre-emphasis besides."""

    def __init__(self) -> None:
        super().__init__()
        m = np.maximum(0, 1 - np.abs(np.linspace(0, 8, 17)[None] - np.arange(1, 7)[:, None]))
        self.register_buffer("mel", torch.from_numpy(m.astype(np.float32)))

    def forward(self, x):
        win = torch.hann_window(32)
        s = torch.stft(x, 32, 12, window=win, return_complex=True)
        mag = s[..., :-1].abs() ** 2
        spec = torch.clamp(self.mel @ mag, min=1e-10).log10()
        spec = torch.maximum(spec, spec.max() - 8.0)
        pre = x - 0.97 * torch.cat([x[:, :1], x[:, :-1]], 1)
        frames = pre.unfold(1, 16, 10) * torch.hamming_window(16, periodic=False)
        return (spec + 4.0) / 4.0, torch.fft.rfft(frames, n=32).abs().pow(2).clamp_min(torch.finfo(torch.float32).eps).log()


@forward("x:float32[N,L]=-1:1", dims="N=1:1:2 L=32:50:77", kinds=("normal", "unit", "halves", "tenths"))
def A7811IstftRoundTrip(self, x):
    """Spectral masking: stft, a mask of magnitudes above the mean, istft with length=L; center=False; overlap-add by fold with the window's envelope."""
    w = torch.hann_window(16)
    s = torch.stft(x, 16, 4, window=w, return_complex=True, center=True)
    mag, ph = s.abs(), s.angle()
    y = torch.istft(torch.polar(mag * (mag > mag.mean()).float(), ph), 16, 4, window=w, length=x.shape[-1])
    f = x.unfold(1, 16, 4) * w
    t = (f.shape[1] - 1) * 4 + 16
    ola = F.fold((f * w).mT, (1, t), (1, 16), stride=(1, 4)).view(x.shape[0], -1)
    env = F.fold((w**2).expand(f.shape[1], 16).T[None], (1, t), (1, 16), stride=(1, 4)).view(-1)
    return y, ola / env.clamp(min=1e-3)


@forward("x:float32[N,T,5]", "l:int64[N]=1:4", dims="N=1:2:3 T=4:6:9", kinds=("normal", "halves", "ones", "ascending"))
def A7812CtcGreedy(self, x, l):
    """CTC greedy: argmax (ties), repeats against the one before with -1 in front, blanks, kept tokens moved to the front by a stable sort, padded by -1, counts."""
    ids = x.log_softmax(-1).argmax(-1)
    prev = F.pad(ids[:, :-1], (1, 0), value=-1)
    t = torch.arange(x.shape[1])
    keep = (ids != prev) & (ids != 0) & (t[None] < l[:, None])
    order = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)
    n = keep.sum(1)
    out = ids.gather(1, order).masked_fill(t[None] >= n[:, None], -1)
    pos = keep.long().cumsum(1) - 1
    other = torch.full_like(ids, -1).scatter(1, torch.where(keep, pos, torch.full_like(pos, x.shape[1] - 1)), torch.where(keep, ids, torch.full_like(ids, -1)))
    return out, n, other[:, :1]


class StreamConv(nn.Module):
    def __init__(self, c, k, d):
        super().__init__()
        self.pad = (k - 1) * d
        self.conv = nn.Conv1d(c, c, k, dilation=d)

    def forward(self, x, cache):
        x = torch.cat([cache, x], -1)
        return self.conv(x), x[..., -self.pad :]


@attack("x:float32[N,4,T]", "c0:float32[N,4,2]", "c1:float32[N,4,4]", "h:float32[1,N,4]", dims="N=1:1:3 T=1:3:8", kinds=FINITE)
class A7813StreamingConvStates(nn.Module):
    """Causal convolutions with caches in and out and a GRU state, chunks of one frame too; a cumulative norm by step count."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = StreamConv(4, 3, 1), StreamConv(4, 3, 2)
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, c0, c1, h):
        y, c0 = self.a(x, c0)
        y, c1 = self.b(F.prelu(y, torch.tensor(0.1)), c1)
        y, h = self.gru(y.transpose(1, 2), h)
        n = torch.arange(1, x.shape[-1] + 1)[None, :, None]
        return y.cumsum(1) / n, {"c0": c0, "c1": c1, "h": h}


def relative_position_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    relative_buckets = 0
    if bidirectional:
        num_buckets //= 2
        relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
        relative_position = torch.abs(relative_position)
    else:
        relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    large = max_exact + (torch.log(relative_position.float() / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact)).to(torch.long)
    large = torch.min(large, torch.full_like(large, num_buckets - 1))
    return relative_buckets + torch.where(is_small, relative_position, large)


@attack("q:float32[N,T,8]", "k:float32[N,S,8]", dims="N=1:1:2 T=1:20:40 S=1:30:140", kinds=("normal", "unit", "halves"))
class A7814T5BiasAndAlibi(nn.Module):
    """T5's buckets, decoder side, the query at the end; ALiBi slopes of six heads (not a power of two) besides."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.uni = nn.Embedding(32, 2), nn.Embedding(32, 2)

    def forward(self, q, k):
        t, s = q.shape[1], k.shape[1]
        rel = torch.arange(s)[None] - torch.arange(t)[:, None]
        b = self.bias(relative_position_bucket(rel)).permute(2, 0, 1)[None]
        u = self.uni(relative_position_bucket(rel, False)).permute(2, 0, 1)[None]
        a = -rel.abs()[None] * torch.tensor(A6818AlibiGqa.slopes(6))[:, None, None]
        w = torch.einsum("btc,bsc->bts", q, k)[:, None]
        return ((w + b + u).softmax(-1) @ k[:, None]), (w / 8 + a).softmax(-1).amax(2)


@attack("ids:int64[N,S]=0:9", "pk:float32[N,2,P,4]", "pv:float32[N,2,P,4]", "mask:int64[N,P+S]=0:1", dims="N=1:1:2 S=1:1:3 P=0:4:7", kinds=("normal", "unit"))
class A7815PastOfZeroLength(nn.Module):
    """optimum's decoder: a past that may be empty, position ids from the mask's cumsum, finfo.min, masks of all zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.e, self.qkv = nn.Embedding(10, 8), nn.Linear(8, 24)

    def forward(self, ids, pk, pv, mask):
        n, s = ids.shape
        p = pk.shape[2]
        pos = (mask.cumsum(-1) - 1).masked_fill(mask == 0, 1)[:, -s:]
        inv = 1.0 / (10000 ** (torch.arange(0, 4, 2, dtype=torch.int64).float() / 4))
        f = pos[..., None].float() * inv
        cos, sin = torch.cat([f, f], -1).cos()[:, None], torch.cat([f, f], -1).sin()[:, None]
        q, k, v = (a.view(n, s, 2, 4).transpose(1, 2) for a in self.qkv(self.e(ids)).chunk(3, -1))
        rot = lambda a: a * cos + torch.cat((-a[..., 2:], a[..., :2]), -1) * sin  # noqa: E731
        q, k = rot(q), torch.cat([pk, rot(k)], 2)
        v = torch.cat([pv, v], 2)
        low = torch.finfo(q.dtype).min
        causal = torch.full((s, p + s), low).triu(p + 1)
        m = causal[None, None] + (1.0 - mask[:, None, None].float()) * low
        return ((q @ k.mT) / 2 + m.clamp(min=low)).softmax(-1) @ v, k, v


@attack("x:float32[N,H,W,6]", dims="N=1:1:2 H=3:5:9 W=3:4:8", kinds=FINITE)
class A7816SwinWindowsPadded(nn.Module):
    """Swin: pad to windows of 4, roll by 2 unless the map is one window, the mask by slices with img_mask, relative table, roll back, crop."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(6, 18), nn.Linear(6, 6)
        self.table = nn.Parameter(torch.randn(49, 2) * 0.5)
        c = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + 3
        self.register_buffer("index", r[..., 0] * 7 + r[..., 1])

    def forward(self, x):
        n, h, w, c = x.shape
        shift = 2 if min(h, w) > 4 else 0
        x = F.pad(x, (0, 0, 0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
        hp, wp = x.shape[1:3]
        cut = lambda a: a.view(a.shape[0], hp // 4, 4, wp // 4, 4, -1).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, a.shape[-1])  # noqa: E731
        mask = None
        if shift > 0:
            x = torch.roll(x, (-shift, -shift), (1, 2))
            img, cnt = torch.zeros(1, hp, wp, 1), 0
            for a in (slice(0, -4), slice(-4, -shift), slice(-shift, None)):
                for b in (slice(0, -4), slice(-4, -shift), slice(-shift, None)):
                    img[:, a, b] = cnt
                    cnt += 1
            m = cut(img).squeeze(-1)
            mask = (m[:, None] - m[:, :, None]).ne(0).float() * -100.0
        q, k, v = self.qkv(cut(x)).view(-1, 16, 3, 2, 3).permute(2, 0, 3, 1, 4)
        att = q @ k.mT / 3**0.5 + self.table[self.index].permute(2, 0, 1)
        if mask is not None:
            att = (att.view(n, -1, 2, 16, 16) + mask[None, :, None]).view(-1, 2, 16, 16)
        y = self.proj((att.softmax(-1) @ v).transpose(1, 2).reshape(-1, 16, c))
        y = y.view(n, hp // 4, wp // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, hp, wp, c)
        return torch.roll(y, (shift, shift), (1, 2))[:, :h, :w].contiguous()


@attack("x:float32[N,T,4]", "m:bool[N,T]", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7817MaskedRowsAndAverages(nn.Module):
    """softmax of rows all masked by -inf, nan_to_num; the same by finfo.min; masked mean with a clamp of the count; masked max with -inf put to zero; the last valid row."""

    def forward(self, x, m):
        s = x @ x.mT
        a = s.masked_fill(~m[:, None], float("-inf")).softmax(-1).nan_to_num(0.0)
        b = s.masked_fill(~m[:, None], torch.finfo(s.dtype).min).softmax(-1)
        mean = (x * m[..., None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1)
        top = x.masked_fill(~m[..., None], -torch.inf).amax(1)
        top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
        last = (m.long() * torch.arange(1, m.shape[1] + 1)).argmax(1)
        lse = s.masked_fill(~m[:, None], -torch.inf).logsumexp(-1)
        return a @ x, b @ x, mean, top, x[torch.arange(x.shape[0]), last], lse, m.float().cumprod(1).sum(1)


@attack("x:float32[N,T,6]", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "halves", "ascending"))
class A7818SwitchCapacity(nn.Module):
    """Switch transformer: top-1, capacity from the number of tokens (ceil of a float), position in expert by cumsum, dropped tokens pass through."""

    def __init__(self) -> None:
        super().__init__()
        self.r, self.w = nn.Linear(6, 3), nn.Parameter(torch.randn(3, 6, 6) * 0.3)

    def forward(self, x):
        n, t, c = x.shape
        h = x.reshape(-1, c)
        cap = math.ceil(n * t / 3 * 1.25)
        p = self.r(h).softmax(-1)
        g, e = p.max(-1)
        one = F.one_hot(e, 3)
        place = (one.cumsum(0) * one).sum(-1) - 1
        keep = place < cap
        dispatch = torch.zeros(3, cap + 1, c).index_put((e, torch.where(keep, place, torch.full_like(place, cap))), h)
        y = torch.bmm(dispatch[:, :cap], self.w)
        y = y[e, place.clamp(max=cap - 1)] * g[:, None]
        aux = (one.float().mean(0) * p.mean(0)).sum() * 3
        return torch.where(keep[:, None], y, h).view(n, t, c), aux, keep.view(n, t)


@attack("x:float32[N,4,T]", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "halves", "zeros"))
class A7819ResidualVq(nn.Module):
    """EnCodec's residual VQ with F.embedding codes, straight-through, cdist and the expanded distances, FSQ levels with tanh and round to half even, perplexity."""

    def __init__(self) -> None:
        super().__init__()
        self.books = nn.ParameterList(nn.Parameter(torch.randn(5, 4)) for _ in range(3))
        self.register_buffer("levels", torch.tensor([3, 4, 5, 8]))

    def forward(self, x):
        z = x.transpose(1, 2)
        res, out, codes = z, torch.zeros_like(z), []
        for i, b in enumerate(self.books):
            flat = res.reshape(-1, 4)
            d = -(flat.pow(2).sum(1, keepdim=True) - 2 * flat @ b.t() + b.t().pow(2).sum(0, keepdim=True)) if i else -torch.cdist(flat, b)
            c = d.max(-1).indices.view(z.shape[:-1])
            q = F.embedding(c, b)
            q = res + (q - res).detach()
            res, out = res - q, out + q
            codes.append(c)
        half = (self.levels - 1) * (1 + 1e-3) / 2
        off = torch.where(self.levels % 2 == 0, 0.5, 0.0)
        f = ((z + torch.atanh(off / half)).tanh() * half - off).round()
        p = F.one_hot(codes[0], 5).float().flatten(0, -2).mean(0)
        return out.transpose(1, 2), torch.stack(codes), f / (self.levels // 2), torch.exp(-(p * (p + 1e-10).log()).sum())


@forward("lp:float32[N,B,7]", "prev:float32[N,B]", "hist:int64[N,B,T]=0:6", dims="N=1:2:3 B=2:3:4 T=1:4:6", kinds=("normal", "unit", "ascending"))
def A7820BeamStep(self, lp, prev, hist):
    """A beam step: repetition penalty by gather and scatter, no-repeat of the last token, length penalty by T, topk over B*V, // and %, reordered history."""
    n, b, v = lp.shape
    t = hist.shape[-1]
    s = lp.log_softmax(-1)
    g = s.gather(-1, hist)
    s = s.scatter(-1, hist, torch.where(g < 0, g * 1.3, g / 1.3))
    s = s.scatter(-1, hist[..., -1:], float("-inf"))
    total = ((s + prev[..., None]) / ((5 + t) / 6) ** 0.8).view(n, -1)
    val, idx = total.topk(b, dim=-1)
    beam, tok = idx // v, idx % v
    new = torch.cat([hist.gather(1, beam[..., None].expand(-1, -1, t)), tok[..., None]], -1)
    return val, new, (tok == 6).any(-1), torch.where(tok == 6, val, -1e9).max(-1).values


@attack("x:float32[N,3,H,W]=-1:1", "e:float32[N,3,H,W]", "t:int64[N]=0:49", dims="N=1:1:3 H=2:4:6 W=2:3:5", kinds=("normal", "unit", "halves", "zeros"))
class A7821DiffusionStep(nn.Module):
    """Timestep embeddings (odd width, downscale shift), a cosine schedule made in float64, DDIM with clip and eta 0, dynamic thresholding by quantile."""

    def __init__(self) -> None:
        super().__init__()
        s = np.arange(51, dtype=np.float64) / 50
        a = np.cos((s + 0.008) / 1.008 * np.pi / 2) ** 2
        betas = np.clip(1 - a[1:] / a[:-1], 0, 0.999)
        self.acp = np.cumprod(1 - betas)
        self.mlp = nn.Linear(9, 3)

    def extract(self, arr, t, shape):
        res = torch.from_numpy(arr).to(device=t.device)[t].float()
        while len(res.shape) < len(shape):
            res = res[..., None]
        return res.expand(shape)

    def forward(self, x, e, t):
        half = 4
        freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / (half - 1))
        a = t[:, None].float() * freqs[None]
        emb = F.pad(torch.cat([torch.cos(a), torch.sin(a)], -1), (0, 1))
        at, ap = self.extract(self.acp, t, x.shape), self.extract(np.append(1.0, self.acp[:-1]), t, x.shape)
        e = e + self.mlp(emb)[..., None, None]
        x0 = (x - (1 - at).sqrt() * e) / at.sqrt()
        s = torch.quantile(x0.reshape(x.shape[0], -1).abs(), 0.9, dim=1).clamp(min=1)[:, None, None, None]
        x0 = torch.clamp(x0, -s, s) / s
        eps = (x - at.sqrt() * x0) / (1 - at).sqrt()
        return ap.sqrt() * x0 + (1 - ap).clamp(min=0).sqrt() * eps, emb
