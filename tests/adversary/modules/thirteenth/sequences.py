"""Attention, rotary positions, recurrent cells, spectra, experts and small matrices."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

# Values between which no rounding decides which is the larger.
APART = ("normal", "unit", "large", "mixed-scales")


@attack("x:float32[N,T,16]", "m:bool[N,T]", dims="N=1:2:3 T=1:5:17")
class AttentionWithBiasAndZeroKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(16, 4, add_bias_kv=True, add_zero_attn=True, batch_first=True)

    def forward(self, x, m):
        return self.a(x, x, x, key_padding_mask=m)


@forward("q:float32[N,4,T,8]", "k:float32[N,2,S,8]", "m:bool[N,S]", dims="N=1:2:3 T=1:5:17 S=1:4:13")
def grouped_attention_without_keys(self, q, k, m):
    return F.scaled_dot_product_attention(q, k, k * 0.5, attn_mask=m[:, None, None, :], enable_gqa=True, scale=0.3)


@forward("q:float32[N,2,T,8]", "k:float32[N,2,S,8]", dims="N=1:2:3 T=1:5:17 S=1:4:13")
def causal_attention_not_square(self, q, k):
    return F.scaled_dot_product_attention(q, k, k + 1, is_causal=True)


@forward("x:float32[N,T,8]", dims="N=1:1:2 T=2:16:300")
def rotary_base_by_length(self, x):
    n = x.shape[1]
    base = 10000.0
    if n > 128:
        base = base * (4.0 * n / 128 - 3.0) ** (8 / 6)
    inv = 1.0 / base ** (torch.arange(0, 8, 2).float() / 8)
    f = torch.outer(torch.arange(n).float(), inv)
    c, s = (f.cos().repeat(1, 2), f.sin().repeat(1, 2))
    r = torch.cat([-x[..., 4:], x[..., :4]], -1)
    return x * c + r * s


@attack("x:float32[N,T]", dims="N=1:1:2 T=1:64:300")
class BucketsOfRelativePositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(32, 2)

    def forward(self, x):
        t = x.shape[1]
        rel = torch.arange(t)[None] - torch.arange(t)[:, None]
        n = 16
        b = (rel > 0).long() * n
        rel = rel.abs()
        me = n // 2
        large = me + (torch.log(rel.float() / me) / math.log(128 / me) * (n - me)).long()
        large = torch.min(large, torch.full_like(large, n - 1))
        b = b + torch.where(rel < me, rel, large)
        return self.e(b).permute(2, 0, 1)[None] + x[:, None, None]


@forward("r:int64[N,T]=1:4096", dims="N=1:1:2 T=300:400:500")
def buckets_of_values(self, r):
    me = 8
    large = me + (torch.log(r.float() / me) / math.log(4096 / me) * 24).long()
    return torch.where(r < me, r, large.clamp(max=31))


@forward("logits:float32[B,K,V]", "s:float32[B,K]", dims="B=1:2:3 K=2:3:5 V=4:7:33", kinds=APART)
def step_of_beams(self, logits, s):
    t = s[..., None] + logits.log_softmax(-1)
    v, i = t.flatten(1).topk(3, dim=1)
    return (
        v,
        i // logits.shape[2],
        i % logits.shape[2],
        t.gather(1, (i // logits.shape[2])[..., None].expand(-1, -1, logits.shape[2])),
    )


@attack("x:float32[N,T]=-1:1", dims="N=1:1:2 T=400:480:960")
class MelsBelowTheLargest(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("f", torch.rand(8, 33, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        s = torch.stft(x, 64, 16, window=torch.hann_window(64), return_complex=True)
        m = self.f @ s[..., :-1].abs() ** 2
        g = torch.clamp(m, min=1e-10).log10()
        g = torch.maximum(g, g.max() - 8.0)
        return (g + 4.0) / 4.0


@attack("x:float32[T,8]", dims="T=1:6:20")
class ExpertsAddedByIndex(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(8, 4)
        self.e = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        w, i = self.g(x).softmax(-1).topk(2, -1)
        w = w / w.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for k, e in enumerate(self.e):
            r, c = torch.where(i == k)
            y.index_add_(0, r, e(x[r]) * w[r, c, None])
        return y


@forward("a:float32[N,4]", "b:float32[N,4]", "t:float32[N]=0:1", dims="N=1:3:6")
def spherical_interpolation(self, a, b, t):
    a = F.normalize(a, dim=-1, eps=1e-08)
    b = F.normalize(b, dim=-1, eps=1e-08)
    d = (a * b).sum(-1, keepdim=True)
    b = torch.where(d < 0, -b, b)
    d = d.abs()
    th = torch.acos(d.clamp(-1, 1))
    s = th.sin()
    t = t[:, None]
    y = torch.where(s < 1e-06, torch.lerp(a, b, t), ((1 - t) * th).sin() / s * a + (t * th).sin() / s * b)
    return (y, torch.linalg.cross(a[:, :3], b[:, 1:]))


@forward("x:float32[T,5]", dims="T=1:6:20", refused="cannot be compared")
def ctc_without_repeats(self, x):
    p = x.argmax(-1)
    k = torch.cat([torch.ones(1, dtype=torch.bool), p[1:] != p[:-1]]) & (p != 0)
    pos = torch.cumsum(k, 0) - 1
    out = torch.full_like(p, -1)
    out = out.scatter(0, torch.where(k, pos, p.shape[0] - 1), torch.where(k, p, out[-1]))
    return (p, k, pos)


@forward("x:float32[N,T,2,8]", dims="N=1:2:3 T=1:5:40", noted="infinity")
def complex_rotary_by_none(self, x):
    f = 1.0 / 10000 ** (torch.arange(0, 8, 2).float() / 8)
    c = torch.polar(torch.ones(x.shape[1], 4), torch.outer(torch.arange(x.shape[1]).float(), f))
    y = torch.view_as_complex(x.reshape(*x.shape[:-1], 4, 2)) * c[None, :, None]
    return (torch.view_as_real(y).flatten(3), (y * y.conj()).real, torch.fft.fft2(x[..., 0]).abs())


@attack("x:float32[N,4,T]", dims="N=1:2:3 T=16:20:65", refused="automatic differentiation")
class FourierLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4, 5, dtype=torch.cfloat, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        f = torch.fft.rfft(x)
        o = torch.zeros(x.shape[0], 4, x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        o[:, :, :5] = torch.einsum("bix,iox->box", f[:, :, :5], self.w)
        return torch.fft.irfft(o, n=x.shape[-1])


@forward("x:float32[N,T]", dims="N=1:2:3 T=64:100:333", refused="differs from the module")
def spectrum_to_a_power(self, x):
    s = torch.stft(
        x,
        32,
        12,
        24,
        torch.hann_window(24),
        center=True,
        pad_mode="reflect",
        normalized=True,
        onesided=True,
        return_complex=True,
    )
    return (torch.view_as_real(s), s.abs() ** 0.3)


@attack("x:float32[N,T,16]", "n:int64[N]=1:4", dims="N=1:2:3 T=4:5:12", noted="infinity")
class EncoderOverPadding(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=False, activation="gelu")
        self.e = nn.TransformerEncoder(layer, 2)

    def forward(self, x, n):
        m = torch.arange(x.shape[1])[None] >= n[:, None]
        y = self.e(x, src_key_padding_mask=m, is_causal=False)
        return (y * ~m[..., None]).sum(1) / n[:, None]


@attack("x:float32[N,16]", dims="N=1:2:5")
class BytesByLargest(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(16, 8)

    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(
            self.l.weight, torch.full((8,), 0.01), torch.zeros(8, dtype=torch.int32), 0, -128, 127
        )
        s = x.detach().abs().amax() / 127 + 1e-09
        return (
            F.linear(torch.round(x / s).clamp(-128, 127) * s, w, self.l.bias),
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
        )


@attack("q:float32[N,1,16]", "k:float32[N,S,16]", "v:float32[N,S,16]", "p:int64[N]=0:5", dims="N=1:2:3 S=6:9:20")
class CacheWrittenAtPosition(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = nn.Linear(16, 16)

    def forward(self, q, k, v, p):
        n, count = k.shape[:2]
        kk = k.clone()
        kk[torch.arange(n), p] = q[:, 0]
        m = torch.arange(count) <= p[:, None]

        def h(t):
            return t.view(n, -1, 4, 4).transpose(1, 2)

        b = torch.zeros(n, 1, 1, count).masked_fill(~m[:, None, None], torch.finfo(torch.float32).min)
        y = F.scaled_dot_product_attention(h(q), h(kk), h(v), b)
        return (self.o(y.transpose(1, 2).reshape(n, 1, 16)), kk)


@attack("x:float32[N,6,4]", dims="N=1:2:3")
class CellsBackwardsInTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.LSTMCell(4, 5)
        self.g = nn.GRUCell(5, 3)
        self.r = nn.RNN(3, 4, nonlinearity="relu", num_layers=2, bidirectional=True)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 5)
        z = x.new_ones(x.shape[0], 3)
        o = []
        for t in reversed(range(x.shape[1])):
            h, c = self.c(x[:, t], (h, c))
            z = self.g(h, z)
            o.append(z)
        return (self.r(torch.stack(o))[1], c)


@forward("x:float32[N,3,3]", "b:float32[N,3]", dims="N=1:3:6")
def inverse_of_scaled_identity(self, x, b):
    m = x @ x.transpose(1, 2) + torch.eye(3) * (0.001 + x.abs().amax((1, 2))[:, None, None] ** 2)
    return (torch.linalg.inv(m) @ b[..., None], torch.linalg.det(m), torch.linalg.matrix_power(x, 3))


@forward("x:float32[N,4,4]", dims="N=1:3:6")
def inverse_of_gram_matrix(self, x):
    return torch.linalg.inv(x @ x.transpose(1, 2) + torch.eye(4) * 0.001)
