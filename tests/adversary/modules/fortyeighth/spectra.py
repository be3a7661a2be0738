# ruff: noqa: E501, RUF059, E741 - attacks are written as users write them
"""Spectra, complex numbers, linear algebra, einsum with axes of one, scripts that decide, gradients within."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq

X, MT = "x:float32[N,T]", "m:bool[N,T]"


@forward(X, **seq(X))
def A6051ShiftedSpectra(self, x):
    """fftshift of odd and even lengths, frequencies, a filter by a step of frequency, an odd inverse, Hilbert's envelope."""
    t = x.shape[1]
    f = torch.fft.fft(x)
    sh = torch.fft.fftshift(f, dim=-1)
    k = torch.fft.fftfreq(t)
    low = torch.fft.ifft(torch.where(k.abs() <= 0.25, f, 0)).real
    h = torch.zeros(t)
    h[0] = 1
    h[1 : (t + 1) // 2] = 2
    if t % 2 == 0:
        h[t // 2] = 1
    env = torch.fft.ifft(f * h).abs()
    return sh.real, low, env, torch.fft.irfft(torch.fft.rfft(x), n=t), torch.fft.rfftfreq(t, 0.5)


@forward(IMAGE, **pix(IMAGE))
def A6052PhaseCorrelated(self, x):
    """Phase correlation of two channels: normalised cross spectrum, the peak's place with wrap-around to negative shifts."""
    h, w = x.shape[-2:]
    a, b = torch.fft.rfft2(x[:, 0]), torch.fft.rfft2(x[:, 1])
    r = a * b.conj()
    c = torch.fft.irfft2(r / (r.abs() + 1e-3), s=(h, w))
    at = c.round(decimals=2).flatten(1).argmax(1)
    dy, dx = at // w, at % w
    return c, torch.where(dy > h // 2, dy - h, dy), torch.where(dx > w // 2, dx - w, dx)


@forward("x:float32[N,L]", dims="N=1:1:2 L=16:60:120")
def A6053StftAndBack(self, x):
    """STFT centred with reflection, normalised, a window shorter than the transform, magnitudes compressed, back to the length."""
    win = torch.hann_window(12)
    s = torch.stft(x, 16, 4, 12, win, center=True, pad_mode="reflect", normalized=True, return_complex=True)
    m, p = s.abs().clamp(min=1e-5).pow(0.3), s.angle()
    y = torch.istft(torch.polar(m.pow(1 / 0.3), p), 16, 4, 12, win, normalized=True, length=x.shape[1])
    return m, y, s.real[:, -1]


@forward("z:float32[N,T,2]", **seq("z:float32[N,T,2]"))
def A6054ComplexStates(self, z):
    """A diagonal state space: complex poles to powers of positions, a convolution by FFT, conjugates, angles' differences."""
    c = torch.view_as_complex(z)
    t = c.shape[1]
    lam = torch.polar(torch.tensor([0.9, 0.8]), torch.tensor([0.3, 1.2]))
    k = (lam[:, None] ** torch.arange(t)).sum(0)
    y = torch.fft.ifft(torch.fft.fft(c, 2 * t) * torch.fft.fft(k, 2 * t))[:, :t]
    d = torch.angle(c[:, 1:] * c[:, :-1].conj())
    return torch.view_as_real(y), d, (c * c.conj()).real, torch.view_as_real(c / (c.abs() + 1e-3))


@forward(X4, **seq(X4))
def A6055EinsumWithOnes(self, x):
    """einsum: diagonals, repeated letters, ellipses, an axis of one that is stretched, an order of outputs, no output."""
    y = x[:1]
    g = torch.einsum("btc,btd->bcd", x, x)
    return torch.einsum("bii->bi", g), torch.einsum("btc,atc->btc", x, y) if False else torch.einsum("btc,btc->bt", x, y.expand_as(x)), torch.einsum("...tc,...tc->...", x, x), torch.einsum("btc,bsc->", x, x), torch.einsum("btc,dc,bsd->bts", x, torch.eye(3, 4), x[..., :3]), torch.einsum("bij->bji", g), torch.einsum("btc,btc->bt", x, y)


@forward("p:float32[N,T,3]", "q:float32[N,T,3]", **seq("p:float32[N,T,3]", "q:float32[N,T,3]", low=4))
def A6056AlignedByKabsch(self, p, q):
    """Rigid alignment without a decomposition: the quaternion of Horn by power iteration, its rotation, the residual."""
    a, b = p - p.mean(1, keepdim=True), q - q.mean(1, keepdim=True)
    s = a.transpose(1, 2) @ b
    xx, xy, xz, yx, yy, yz, zx, zy, zz = s.flatten(1).unbind(1)
    rows = [xx + yy + zz, yz - zy, zx - xz, xy - yx, yz - zy, xx - yy - zz, xy + yx, zx + xz, zx - xz, xy + yx, yy - xx - zz, yz + zy, xy - yx, zx + xz, yz + zy, zz - xx - yy]
    n = torch.stack(rows, 1).view(-1, 4, 4)
    n = n / n.norm(dim=(1, 2), keepdim=True).clamp(min=1e-6) + 2 * torch.eye(4)
    m = torch.linalg.matrix_power(n, 8)
    v = F.normalize(m @ torch.tensor([1.0, 0.3, -0.2, 0.1]), dim=1)
    w, i, j, k = v.unbind(1)
    r = torch.stack([1 - 2 * (j * j + k * k), 2 * (i * j - k * w), 2 * (i * k + j * w), 2 * (i * j + k * w), 1 - 2 * (i * i + k * k), 2 * (j * k - i * w), 2 * (i * k - j * w), 2 * (j * k + i * w), 1 - 2 * (i * i + j * j)], 1).view(-1, 3, 3)
    return r, torch.linalg.det(r), a @ r.transpose(1, 2)


@forward(X4, **seq(X4, low=2), refused="the module cannot be exported")
def A6057WhitenedByCholesky(self, x):
    """Whitening: a covariance with shrinkage, Cholesky, triangular solves both ways, a log-determinant, a Mahalanobis norm."""
    n, t, c = x.shape
    d = x - x.mean(1, keepdim=True)
    s = d.transpose(1, 2) @ d / (t - 1) * 0.5 + torch.eye(c)
    l = torch.linalg.cholesky(s)
    y = torch.linalg.solve_triangular(l, d.transpose(1, 2), upper=False)
    return y, 2 * l.diagonal(dim1=-2, dim2=-1).log().sum(-1), y.square().sum(1), torch.linalg.solve(s, d.transpose(1, 2)), torch.cholesky_inverse(l)


@torch.jit.script
def viterbi(e: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The best path, scripted: back pointers in a list, read backwards."""
    s = e[:, 0]
    back: list[torch.Tensor] = []
    for t in range(1, e.size(1)):
        v, i = (s.unsqueeze(2) + w).max(1)
        s = v + e[:, t]
        back.append(i)
    at = s.argmax(1)
    path = [at]
    for k in range(len(back) - 1, -1, -1):
        at = back[k].gather(1, at.unsqueeze(1)).squeeze(1)
        path.append(at)
    return torch.stack(path[::-1], 1)


@forward(X4, **seq(X4), refused="what was exported cannot be compared")
def A6058ScriptedViterbi(self, x):
    """Viterbi in script over halves, so that there are ties."""
    return viterbi((x * 2).round() / 2, torch.eye(4) * 0.5)


@torch.jit.script
def halves_until(x: torch.Tensor, n: int) -> torch.Tensor:
    """Halves as often as the length can be halved, with a break and a continue."""
    y = x
    k = n
    while k > 1:
        if k % 2 == 1:
            k = k - 1
            continue
        k = k // 2
        y = y * 0.5 + k
        if k == 3:
            break
    return y


@forward(X4, **seq(X4))
def A6059ScriptedHalving(self, x):
    """A scripted while loop with break and continue over the length."""
    return halves_until(x, x.shape[1])


@attack(X4, **seq(X4), refused="the module cannot be exported")
class A6060EnergyDescended(nn.Module):
    """Two steps of gradient descent on an energy, in forward, whatever the grad mode outside is."""

    def __init__(self):
        super().__init__()
        self.e = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        with torch.enable_grad():
            z = x.detach().clone().requires_grad_(True)
            for _ in range(2):
                g = torch.autograd.grad(self.e(z).sum(), z)[0]
                z = (z - 0.1 * g).detach().requires_grad_(True)
        return z.detach()


@attack(IMAGE, **pix(IMAGE))
class A6061NormsOfBatches(nn.Module):
    """Norms by what is there: batch norm in training mode, without running statistics, instance norm, a frozen one, GRN."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.BatchNorm2d(2, track_running_stats=False), nn.InstanceNorm2d(2, affine=True, track_running_stats=True), nn.BatchNorm2d(2)
        self.c.running_mean += 0.3
        self.c.running_var *= 2

    def forward(self, x):
        g = x.norm(dim=(2, 3), keepdim=True)
        y = F.batch_norm(x, None, None, training=True) if x.shape[2] * x.shape[3] > 1 else x
        return y, self.a(x) if x.shape[2] * x.shape[3] > 1 else x, self.b(x), self.c(x), x * (g / (g.mean(1, keepdim=True) + 1e-6)) + x


@attack(X, **seq(X), refused="the path through the module depends on the size")
class A6062SpikesThatReset(nn.Module):
    """Spiking neurons: leak, threshold met exactly, reset by subtraction, a refractory count in int8."""

    def forward(self, x):
        v, ref = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0], dtype=torch.int8)
        out = []
        for t in range(x.shape[1]):
            v = torch.where(ref > 0, v, v * 0.5 + x[:, t])
            s = v >= 1.0
            v = v - s.to(v.dtype)
            ref = torch.where(s, torch.tensor(2, dtype=torch.int8), (ref - 1).clamp(min=0))
            out.append(s)
        y = torch.stack(out, 1)
        return y, v, ref, y.sum(1), y.float().mean(1)
