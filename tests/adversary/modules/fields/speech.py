"""Speech and sequences: frames, spectra, streaming masks, recurrent layers with lengths."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

WAVE, SAMPLES = "x:float32[N,S]", "N=1:1:2 S=40:64:97"
LINE, T = "x:float32[N,T,4]", "N=1:2:3 T=2:7:19"


@forward(WAVE, dims=SAMPLES)
def preemphasis_and_frames(self, x):
    x = torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1)
    frames = F.pad(x, (0, -(x.shape[1] - 16) % 7)).unfold(1, 16, 7)
    frames = frames * torch.hann_window(16, periodic=False)
    return frames.pow(2).mean(-1).clamp_min(1e-10).log10() * 10


@forward(WAVE, dims=SAMPLES, noted="infinity")
def power_spectrogram(self, x):
    s = torch.stft(x, 16, 5, window=torch.hann_window(16), center=True, pad_mode="reflect", return_complex=True)
    return s.abs().pow(2)


@forward(WAVE, dims=SAMPLES, noted="infinity")
def spectrum_not_centred(self, x):
    s = torch.stft(x, 15, 4, 12, torch.hamming_window(12), center=False, onesided=False, normalized=True,
                   return_complex=True)  # fmt: skip
    return s.real, s.imag


@forward(WAVE, dims=SAMPLES, noted="infinity")
def odd_and_even_spectra(self, x):
    a = torch.fft.rfft(x, dim=1)
    return torch.fft.irfft(a, n=x.shape[1], dim=1), torch.fft.irfft(a, dim=1), torch.fft.fftshift(a.abs(), 1)


@forward("x:float32[N,12]", dims="N=1:2:4", noted="infinity")
def spectra_of_named_size(self, x):
    a = torch.fft.rfft(x, n=9, norm="ortho")
    b = torch.fft.fft(x, n=16).abs()
    return a.real, b, torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x.flip(1)), n=12), torch.fft.fft2(x).real


@forward(WAVE, dims=SAMPLES)
def decibels_of_top(self, x):
    power = x.abs().clamp_min(1e-5)
    db = 20 * torch.log10(power)
    return torch.maximum(db, db.amax(-1, keepdim=True) - 80), 10.0 * torch.log10(power) - 10.0 * math.log10(
        power.shape[1]
    )


@forward(WAVE, dims=SAMPLES)
def mu_law(self, x):
    mu = torch.tensor(255.0)
    y = torch.sign(x.clamp(-1, 1)) * torch.log1p(mu * x.clamp(-1, 1).abs()) / torch.log1p(mu)
    code = ((y + 1) / 2 * mu + 0.5).to(torch.int64)
    back = code.float() / mu * 2 - 1
    return code, torch.sign(back) * (torch.exp(back.abs() * torch.log1p(mu)) - 1) / mu


@attack(LINE, dims=T, noted="infinity")
class ChunkedStreamingMask(nn.Module):
    """Frames see their own chunk of 4 and one before."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        chunk = torch.arange(x.shape[1]) // 4
        gap = chunk[:, None] - chunk[None]
        return self.attention(x, x, x, attn_mask=(gap < 0) | (gap > 1))


@attack(LINE, "lengths:int64[N]=1:19", dims=T)
class PackedLstm(nn.Module):
    """Unsorted lengths; those that are too long are cut."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        lengths = lengths.clamp(max=x.shape[1])
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, (h, _) = self.lstm(packed)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0], h


@attack(LINE, dims=T)
class ProjectedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, proj_size=3, bidirectional=True, batch_first=True, bias=False)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return out, h, c


@attack(LINE + "=0:50", dims=T)
class LogarithmsBeforeLstm(nn.Module):
    """The exporter that can write the layer has no atanh, of which log1p is made."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x):
        return self.lstm(torch.log1p(x * 0.01))[0].cosh()


@attack(LINE, dims=T)
class GruFromLastFrame(nn.Module):
    """An initial state, time first, two layers, and a ReLU RNN behind it."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, 2, dropout=0.5)
        self.rnn = nn.RNN(3, 2, nonlinearity="relu", bidirectional=True)

    def forward(self, x):
        start = x[:, -1, :3].tanh().expand(2, -1, -1)
        y, h = self.gru(x.transpose(0, 1), start)
        return self.rnn(y)[0], h


@attack(LINE, dims=T)
class UnbatchedLstm(nn.Module):
    """One sequence without a batch."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3)

    def forward(self, x):
        return self.lstm(x[0])[0], self.lstm(x[-1].flip(0))[1][0]


@attack(LINE, dims=T)
class RelativePositions(nn.Module):
    """The skew of Transformer-XL by a view of a padded row."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(39, 4))

    def forward(self, x):
        n, t, _ = x.shape
        positions = self.table[19 - t + 1 : 19 + t]
        scores = x @ positions.T
        scores = F.pad(scores, (1, 0)).view(n, 2 * t, t)[:, 1:].reshape(n, t, 2 * t - 1)
        return scores[:, :, :t].softmax(-1) @ x


@attack(LINE, dims=T)
class BucketsOfDistance(nn.Module):
    """T5's buckets: exact near, by logarithm far, computed in floats and cut to whole numbers."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(8, 2)

    def forward(self, x):
        t = x.shape[1]
        gap = torch.arange(t)[None] - torch.arange(t)[:, None]
        side = (gap > 0).long() * 4
        gap = gap.abs()
        far = 2 + (torch.log(gap.float() / 2) / math.log(16 / 2) * 2).long()
        far = torch.min(far, torch.full_like(far, 3))
        bucket = side + torch.where(gap < 2, gap, far)
        return bucket, self.bias(bucket).permute(2, 0, 1) + x.sum()


@attack(LINE, dims=T)
class AlibiSlopes(nn.Module):
    """Slopes for a number of heads that is no power of two."""

    def slopes(self, heads):
        near = 2 ** math.floor(math.log2(heads))
        first = [2 ** (-8 * (i + 1) / near) for i in range(near)]
        more = [2 ** (-4 * (2 * i + 1) / near) for i in range(heads - near)]
        return torch.tensor(first + more)

    def forward(self, x):
        t = x.shape[1]
        bias = -(torch.arange(t)[:, None] - torch.arange(t)).abs() * self.slopes(6)[:, None, None]
        heads = x[:, None].expand(-1, 6, -1, -1)
        return F.scaled_dot_product_attention(heads, heads, heads.flip(2), attn_mask=bias[None], scale=0.7)


@forward("q:float32[N,2,T,4]", "k:float32[N,2,U,4]", dims="N=1:1:2 T=1:3:9 U=1:5:9", noted="infinity")
def causal_unequal_topleft(self, q, k):
    a = F.scaled_dot_product_attention(q, k, k.flip(2), is_causal=True)
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    return a, F.scaled_dot_product_attention(q, k, k, attn_mask=mask)


@forward("q:float32[N,4,T,4]", "k:float32[N,2,T,4]", dims="N=1:1:2 T=1:3:9", noted="infinity")
def grouped_queries(self, q, k):
    return F.scaled_dot_product_attention(q, k, k * 2, enable_gqa=True, is_causal=True, scale=0.3)


@attack(LINE, dims=T)
class BiasedKeys(nn.Module):
    """add_bias_kv and add_zero_attn lengthen the keys."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=2)

    def forward(self, x):
        q = x.transpose(0, 1)
        y, w = self.attention(q, q[..., :3], q[..., 1:3], average_attn_weights=False)
        return y, w


@forward(LINE, "lengths:int64[N]=1:19", dims=T)
def greedy_ctc(self, x, lengths):
    best = x.argmax(-1)
    same = torch.cat((torch.zeros_like(best[:, :1], dtype=torch.bool), best[:, 1:] == best[:, :-1]), 1)
    valid = torch.arange(x.shape[1])[None] < lengths[:, None]
    keep = (best != 0) & ~same & valid
    position = keep.long().cumsum(1) - 1
    out = torch.full_like(best, -1)
    target = torch.where(keep, position, x.shape[1] - 1)
    return out.scatter_reduce(1, target, torch.where(keep, best, -1), "amax", include_self=False), keep.sum(1)


@forward(LINE, dims=T)
def viterbi(self, x):
    transition = torch.tensor([[0.0, -1.0, 0.5, 0.2], [0.3, 0.1, -0.2, 1.0], [-0.7, 0.0, 0.0, 0.4], [1.0, -1, 0.2, 0]])
    score = x[:, 0]
    for i in range(1, x.shape[1]):
        score = (score[:, :, None] + transition).amax(1) + x[:, i]
    return score


@attack(LINE, dims=T)
class PositionsOfConvolution(nn.Module):
    """wav2vec: an even kernel, the last frame cut, weight norm over the kernel's dim."""

    def __init__(self):
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 6, padding=3, groups=2), dim=2)

    def forward(self, x):
        return x + F.gelu(self.conv(x.transpose(1, 2))[:, :, :-1], approximate="tanh").transpose(1, 2)


@forward(LINE, dims=T)
def causal_dilated(self, x):
    y = x.transpose(1, 2)
    kernel = torch.linspace(-1, 1, 24).view(4, 2, 3)
    for dilation in (1, 2, 4):
        y = y + F.conv1d(F.pad(y, (2 * dilation, 0)), kernel, dilation=dilation, groups=2).tanh()
    return y


@forward(LINE, dims=T)
def stacked_every_third(self, x):
    keep = x.shape[1] // 3 * 3
    y = x[:, :keep].reshape(x.shape[0], -1, 12)
    return torch.cat((y.sum(1, keepdim=True), x[:, keep:].sum((1, 2))[:, None, None].expand(-1, 1, 12)), 1)
