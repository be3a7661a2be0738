"""DSP: biquads, STFT, mel and DCT, resampling, overlap-add, pitch, compressors."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T]=-1:1", dims="N=1:1:3 T=4:16:24", kinds=FINITE)
class A7651BiquadCascade(nn.Module):
    """RBJ low pass and high shelf run sample by sample in transposed direct form two, then a one-pole de-emphasis."""

    def __init__(self) -> None:
        super().__init__()
        w, q = 2 * math.pi * 0.1, 0.707
        a = math.sin(w) / (2 * q)
        b = [(1 - math.cos(w)) / 2, 1 - math.cos(w), (1 - math.cos(w)) / 2]
        self.coef = [[v / (1 + a) for v in (*b, -2 * math.cos(w), 1 - a)], [0.9, -0.2, 0.05, -0.3, 0.02]]

    def forward(self, x: torch.Tensor):
        y = x
        for b0, b1, b2, a1, a2 in self.coef:
            s1 = s2 = torch.zeros(x.shape[0])
            out = []
            for v in y.unbind(1):
                o = b0 * v + s1
                s1, s2 = b1 * v - a1 * o + s2, b2 * v - a2 * o
                out.append(o)
            y = torch.stack(out, 1)
        return y, y.abs().amax(1)


@attack("x:float32[N,T]=-1:1", dims="N=1:1:3 T=64:100:160", kinds=FINITE)
class A7652LogMelDeltas(nn.Module):
    """STFT by torch.stft with reflect padding, a hand-made mel bank, log10 with a floor, top_db by the batch's maximum, DCT-II, deltas by a replicate-padded conv."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("win", torch.hann_window(32))
        hz = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + 8000 / 700), 12) / 2595) - 1)
        f = torch.linspace(0, 8000, 17)[:, None]
        up, down = (f - hz[:-2]) / (hz[1:-1] - hz[:-2]), (hz[2:] - f) / (hz[2:] - hz[1:-1])
        self.register_buffer("bank", torch.minimum(up, down).clamp(min=0))
        n = torch.arange(10.0)
        self.register_buffer("dct", torch.cos(math.pi / 10 * (n + 0.5) * torch.arange(6.0)[:, None]))

    def forward(self, x: torch.Tensor):
        s = torch.stft(x, 32, 8, window=self.win, center=True, return_complex=True)
        p = s.real**2 + s.imag**2
        m = torch.einsum("nft,fm->nmt", p, self.bank)
        db = 10 * torch.log10(m.clamp(min=1e-5))
        db = torch.maximum(db, db.amax() - 60.0)
        c = torch.einsum("km,nmt->nkt", self.dct, db)
        k = torch.tensor([-2.0, -1, 0, 1, 2]).view(1, 1, 5) / 10
        d = F.conv1d(F.pad(c.flatten(0, 1)[:, None], (2, 2), mode="replicate"), k).view_as(c)
        return torch.cat([c, d], 1)


@forward("x:float32[N,T]=-1:1", dims="N=1:1:3 T=40:64:90", kinds=("normal", "unit", "zeros"))
def A7653PitchByAutocorrelation(self, x):
    """Normalised autocorrelation by FFT (padded to a power of two), the first lag over 0.85 of the best, parabolic refinement, unvoiced becomes 0."""
    n, t = x.shape
    size = 1 << (2 * t - 1).bit_length()
    f = torch.fft.rfft(x - x.mean(1, keepdim=True), n=size)
    ac = torch.fft.irfft(f.real**2 + f.imag**2, n=size)[:, :t]
    ac = ac / ac[:, :1].clamp(min=1e-4)
    lag = ac[:, 4 : t // 2]
    best = lag.amax(1, keepdim=True)
    i = (lag >= 0.85 * best).int().argmax(1) + 4
    a, b, c = (ac.gather(1, (i + d)[:, None]).squeeze(1) for d in (-1, 0, 1))
    p = i + 0.5 * (a - c) / (a - 2 * b + c).abs().clamp(min=1e-3)
    return torch.where(best.squeeze(1) > 0.3, p, torch.zeros_like(p)), ac[:, :4]


@forward("x:float32[N,T]=-1:1", dims="N=1:1:3 T=10:24:40", kinds=FINITE)
def A7654PolyphaseResample(self, x):
    """Rational resampling 3/2 by a windowed sinc: zeros inserted, filtered, every second taken; length is rounded up."""
    up, down, half = 3, 2, 9
    i = torch.arange(-half, half + 1, dtype=torch.float32)
    h = torch.sinc(i / up) * (0.54 + 0.46 * torch.cos(math.pi * i / half))
    z = torch.zeros(x.shape[0], x.shape[1], up)
    z[..., 0] = x
    y = F.conv1d(z.flatten(1)[:, None], h.view(1, 1, -1), padding=half)[:, 0, ::down]
    n = math.ceil(x.shape[1] * up / down)
    return y[:, :n], y.sum(1) * n


@attack("x:float32[N,T]=-1:1", dims="N=1:1:3 T=16:33:50", kinds=FINITE)
class A7655OverlapAddDenoiser(nn.Module):
    """Frames by unfold with padding to a whole number of hops, a mask net on magnitudes, istft by hand with fold and the squared window's norm."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.hann_window(16).sqrt())
        self.net = nn.Sequential(nn.Linear(9, 9), nn.Sigmoid())

    def forward(self, x: torch.Tensor):
        t = x.shape[1]
        pad = -(t - 16) % 4
        y = F.pad(x, (12, 12 + pad))
        f = torch.fft.rfft(y.unfold(1, 16, 4) * self.w)
        m = self.net(torch.log1p(f.abs()))
        g = torch.fft.irfft(f * m, n=16) * self.w
        o = F.fold(g.transpose(1, 2), (1, y.shape[1]), (1, 16), stride=(1, 4))
        k = F.fold((self.w**2)[None, :, None].expand(1, -1, g.shape[1]), (1, y.shape[1]), (1, 16), stride=(1, 4))
        return (o / k.clamp(min=1e-3))[:, 0, 0, 12 : 12 + t]


@attack("x:float32[N,T]=-1:1", dims="N=1:1:3 T=2:12:20", kinds=FINITE)
class A7656Compressor(nn.Module):
    """Feed-forward compressor: envelope with attack and release chosen by comparison, soft knee in dB, make-up gain, a limiter that is rarely reached."""

    def forward(self, x: torch.Tensor):
        env = torch.zeros_like(x[:, 0])
        gains = []
        for i in range(x.shape[1]):
            level = x[:, i].abs()
            k = torch.where(level > env, 0.4, 0.05)
            env = k * level + (1 - k) * env
            db = 20 * torch.log10(env + 1e-4)
            over = db + 18.0
            soft = torch.where(over < -3, torch.zeros_like(over), torch.where(over > 3, over, (over + 3) ** 2 / 12))
            gains.append(torch.pow(10.0, (-soft * 0.75 + 6) / 20))
        y = x * torch.stack(gains, 1)
        return torch.where(y.abs() > 1.9, 1.9 * torch.sign(y), y)


@attack("x:int16[N,T]=-32768:32767", dims="N=1:1:3 T=8:20:33")
class A7657MuLawPcm(nn.Module):
    """PCM of int16: the abs in int16 (wraps at -32768), mu-law codes, decoded by a table, dither-free requantisation, energy in int32 that wraps for long files."""

    def __init__(self) -> None:
        super().__init__()
        c = torch.arange(256.0) / 127.5 - 1
        self.register_buffer("table", torch.sign(c) * (torch.pow(256.0, c.abs()) - 1) / 255)

    def forward(self, x: torch.Tensor):
        peak = x.abs().amax(1)
        f = x.float() / 32768
        m = torch.sign(f) * torch.log1p(255 * f.abs()) / math.log(256)
        q = ((m + 1) * 127.5 + 0.503).floor().clamp(0, 255).to(torch.uint8)
        e = (x.int() * x.int()).sum(1, dtype=torch.int32)
        return peak, q, self.table[q.long()], e, (x >> 8).to(torch.int8), x * 2


@forward("x:float32[N,T]=-1:1", dims="N=1:1:3 T=2:20:33", kinds=FINITE)
def A7658ClipGuard(self, x):
    """Normalises by the RMS; a recording whose peak is over 32 is taken for int16 and scaled, by a Python if."""
    if x.abs().max() > 32.0:
        x = x / 32768.0
    return x / x.square().mean(1, keepdim=True).clamp(min=1e-4).sqrt()
