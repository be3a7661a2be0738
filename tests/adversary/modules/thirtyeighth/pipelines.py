# ruff: noqa: E501 - attacks are written as users write them
"""Loops, state, names of dims, autocast, gradients and vmap in forward, twice-used modules, halves in attention, codes of sizes."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
X4 = "x:float32[N,T,4]"
XT = "x:float32[N,T]"
AT = tuple(values_at(X4, N=1, T=t) for t in (1, 2, 5, 10, 23, 24))


def row(*values, **more):
    return lambda: {"x": np.array([values], np.float32), **more}


@forward("x:float32[N,E]", "y:float32[N,I]", dims="N=1:2:3 E=1:7:20 I=1:5:20", kinds=FEW, feeds=tuple(values_at("x:float32[N,E]", "y:float32[N,I]", N=1, E=e, I=i) for e, i in ((3, 1), (20, 20), (8, 3), (1, 1))))
def A4075DimsOfUnluckyNames(self, x, y):
    """Dims are called E and I; lengths, halves and shares of them meet values."""
    e, i = x.shape[1], y.shape[1]
    k = max(e // 2, i)
    a = F.interpolate(x[:, None], size=k, mode="linear")[:, 0]
    return a * (e / (i + 1)), (y > i * 0.1), torch.arange(e + i) * y.mean(), x[:, -(e // 3 + 1) :].sum(1)
@forward("x:float32[N,pi,2]", dims="N=1:2:3 pi=1:9:24", kinds=FEW)
def A4076DimCalledPi(self, x):
    """A polygon of `pi` points: area, a closed length, resampled to twice as many points, odd counts cut."""
    n = x.shape[1]
    y = torch.cat([x, x[:, :1]], 1)
    area = 0.5 * (y[:, :-1, 0] * y[:, 1:, 1] - y[:, 1:, 0] * y[:, :-1, 1]).sum(1)
    fine = F.interpolate(y.mT, size=2 * n + 1, mode="linear", align_corners=True).mT
    return area, fine, x[:, : n // 2 * 2].unflatten(1, (n // 2, 2)).mean(2), (x > math.pi / n).sum(1)
@forward(XT, "k:float32[N,S]", dims="N=1:1:2 T=3:20:70 S=1:5:40", kinds=("normal", "halves"), feeds=tuple(values_at(XT, "k:float32[N,S]", N=1, T=t, S=s) for t, s in ((32, 1), (30, 3), (30, 4), (64, 1), (70, 40))))
def A4077NextPowerByMath(self, x, k):
    """The same convolution by transforms, the power by logarithms in Python, and by a table with bisect's end."""
    full = x.shape[1] + k.shape[1] - 1
    n = 2 ** math.ceil(math.log2(full))
    y = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(k, n=n), n=n)
    return y[:, :full], y[:, : x.shape[1]].abs().amax(1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=(row(0.95, 1.0, 1.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), row(0.1, 0.2, 0.30000001, 0.3, 0.4)))
def A4078PhaseOfPython(self, x):
    """A threshold that Python adds up in a loop: 0.1 ten times is 0.9999999999999999."""
    level, out = 0.0, []
    for t in range(x.shape[1]):
        level += 0.1
        if level >= 1.0:
            level -= 1.0
        out.append(x[:, t] >= level)
    return torch.stack(out, 1), x.cumsum(1)
@attack(X4, dims=ROWS, kinds=FINITE, feeds=AT)
class A4079Zoneout(nn.Module):
    """A cell whose odd steps keep the state of every third unit, a residual from two steps before, a list that is read back."""
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.register_buffer("keep", torch.tensor([True, False, False, True]))
    def forward(self, x):
        h, h1, h2, out = x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            new = self.cell(x[:, t] + h2, h)
            h = torch.where(self.keep, h, new) if t % 2 == 1 else new
            h2, h1 = h1, h
            out.append(h)
        return torch.stack(out, 1), h2
@forward(X4, dims=ROWS, kinds=FEW, feeds=AT)
def A4080BeamOfTwo(self, x):
    """A Viterbi over four states: back pointers and the way back, from the last row, with ties to the first."""
    trans = torch.tensor([[0.0, -1, -2, -3], [-1, 0, -1, -2], [-2, -1, 0, -1], [-3, -2, -1, 0]])
    s, back = x[:, 0], []
    for t in range(1, x.shape[1]):
        best, at = (s[:, :, None] + trans).max(1)
        s = best + x[:, t]
        back.append(at)
    last = s.argmax(1)
    path = [last]
    for at in reversed(back):
        last = at.gather(1, last[:, None])[:, 0]
        path.append(last)
    return torch.stack(path[::-1], 1), s.amax(1)
@attack(X4, dims=ROWS, kinds=FEW, feeds=AT)
class A4081Autocast(nn.Module):
    """A block under CPU autocast to bfloat16, whose norm and softmax run in FP32, and whose sum is widened."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = nn.Linear(4, 8), nn.Linear(8, 4), nn.LayerNorm(8)
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.n(self.a(x)).relu()
            z = self.b(y)
            s = (z @ z.mT).softmax(-1)
        return z.float(), s.float(), (s.float() @ x)
@attack(X4, dims=ROWS, kinds=("normal", "unit", "halves", "zeros"), feeds=AT, refused="the module cannot be exported")
class A4082ForcesByGradient(nn.Module):
    """An energy and its gradient by autograd in forward."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    def forward(self, x):
        g = torch.func.grad(lambda v: self.net(v).pow(2).sum())(x)
        return self.net(x).sum((1, 2)), -g
@attack(X4, dims=ROWS, kinds=FINITE, feeds=AT, refused="the module cannot be exported")
class A4083MappedOverRows(nn.Module):
    """`vmap` over the batch of a function that picks a row by value, with an einsum inside."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4))
    def one(self, r):
        s = torch.einsum("td,kd->tk", r, self.w)
        best = s.sum(1).argmax()
        return s.softmax(0), r.index_select(0, best[None])[0], s.amax()
    def forward(self, x):
        return torch.vmap(self.one)(x)
@attack(X4, dims=ROWS, kinds=FINITE, feeds=AT)
class A4084SharedAndScaled(nn.Module):
    """Blocks that share weights, a weight norm, a parametrisation, a LoRA that is added in forward and taken back."""
    def __init__(self):
        super().__init__()
        self.lin = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.a, self.b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(4, 2))
        self.head = nn.Linear(4, 4, bias=False)
        self.blocks = nn.ModuleList([self.lin] * 3)
    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = x + block(x).tanh() / (i + 1)
        w = self.head.weight.data
        w += self.b @ self.a
        y = self.head(x)
        w -= self.b @ self.a
        return y, x
@attack(X4, dims=ROWS, kinds=FINITE, feeds=AT, refused="forward keeps 'last' from its first call and depends on it")
class A4085KeepsTheLastCall(nn.Module):
    """A smoother that keeps its last output between calls, unless the shape has changed."""
    def __init__(self):
        super().__init__()
        self.last = None
    def forward(self, x):
        y = x.tanh()
        if self.last is not None and self.last.shape == y.shape:
            y = 0.9 * y + 0.1 * self.last
        self.last = y.detach()
        return y
@forward("x:float16[N,T,4]", dims=ROWS, feeds=(lambda: {"x": np.full((1, 24, 4), 60.0, np.float16)}, lambda: {"x": np.full((2, 3, 4), 200.0, np.float16)}))
def A4086HalfAttention(self, x):
    """Attention in half whose scores overflow unless scaled first, a softmax, a mean of squares, a norm by halves."""
    s = (x * 4**-0.5) @ x.mT
    a = torch.softmax(s - s.amax(-1, keepdim=True), -1)
    ms = x.float().pow(2).mean(-1, keepdim=True)
    return a @ x, x * torch.rsqrt(ms + 1e-6).to(x.dtype), (s > 65000).any(-1), torch.clamp(x, -100, 100)
@attack(X4, "m:bool[N,T]", dims=ROWS, kinds=FINITE)
class A4087PackedGru(nn.Module):
    """Lengths of a mask, a packed bidirectional layer, the last valid state, and padding of minus one."""
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 3, batch_first=True, bidirectional=True)
    def forward(self, x, m):
        n = m.long().sum(1).clamp(min=1)
        p = nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False)
        y, h = self.rnn(p)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, padding_value=-1.0, total_length=x.shape[1])
        return y, h, y.gather(1, (n - 1)[:, None, None].expand(-1, 1, 6))[:, 0]
@forward(XT, dims="N=1:1:2 T=1:20:90", kinds=FEW, feeds=tuple(normal(1, t) for t in (1, 9, 10, 11, 37, 74, 90)), refused="the path through the module depends on the size")
def A4088WhichResidue(self, x):
    """A branch at one residue of 37, one at a product of digits, and membership in a range."""
    t = x.shape[1]
    y = x
    if t % 37 == 0:
        y = y.flip(1)
    if t in range(10, 90, 27):
        y = y * 2
    if t > 9 and (t // 10) * (t % 10) == 21:
        y = y + 1
    return y, [y.sum(1), y.amax(1)][t & 1]
@functools.lru_cache(maxsize=4)
def slopes(n, t):
    return torch.tensor([2 ** (-8 * (i + 1) / n) for i in range(n)])[:, None, None] * -(torch.arange(t)[None] - torch.arange(t)[:, None]).abs()
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=tuple(values_at("x:float32[N,T,6]", N=1, T=t) for t in (1, 2, 24)))
def A4089AlibiCached(self, x):
    """Slopes of three heads with a table in a cache, which forward adds to in place and undoes."""
    n, t, _ = x.shape
    h = x.view(n, t, 3, 2).transpose(1, 2)
    bias = slopes(3, t)
    s = h @ h.mT / 2**0.5
    s += bias
    return (s.softmax(-1) @ h).transpose(1, 2).reshape(n, t, 6), bias.amin((1, 2))
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=2:8:20 W=2:9:20", kinds=FEW, feeds=(normal(1, 3, 2, 2), normal(1, 3, 20, 20), normal(1, 3, 13, 7)), refused="the exported model differs from the module")
class A4090DepthBins(nn.Module):
    """AdaBins: widths by a softmax, edges by a running sum, centres, an expectation, half-up sizes, percentiles of depth."""
    def __init__(self):
        super().__init__()
        self.enc, self.out = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 1)
    def forward(self, x):
        f = self.enc(x)
        w = F.pad(f.mean((2, 3)).softmax(1) * 79.9, (1, 0), value=0.1)
        edges = w.cumsum(1)
        c = 0.5 * (edges[:, :-1] + edges[:, 1:])
        d = (self.out(f).softmax(1) * c[:, :, None, None]).sum(1, keepdim=True)
        up = F.interpolate(d, scale_factor=2, mode="bicubic", align_corners=False)[..., : x.shape[2], : x.shape[3]]
        return up, edges[:, -1], torch.searchsorted(edges, c), up.flatten(1).quantile(torch.tensor([0.02, 0.98]), dim=1)
@forward(X4, dims="N=1:1:2 T=3:9:24", kinds=FEW, feeds=AT[2:])
def A4091SplinesAndDeltas(self, x):
    """Deltas with replicated ends (the regression of librosa), a Hermite spline through the rows, a Savitzky filter."""
    k = torch.arange(-2.0, 3.0)
    p = F.pad(x.mT, (2, 2), mode="replicate")
    delta = F.conv1d(p, (k / k.pow(2).sum()).view(1, 1, -1).expand(4, 1, -1), groups=4).mT
    m = torch.gradient(x, dim=1)[0]
    u = torch.linspace(0, x.shape[1] - 1, 2 * x.shape[1])
    i = u.long().clamp(max=x.shape[1] - 2)
    f = (u - i)[None, :, None]
    y = (1 + 2 * f) * (1 - f) ** 2 * x[:, i] + f * (1 - f) ** 2 * m[:, i] + f**2 * (3 - 2 * f) * x[:, i + 1] + f**2 * (f - 1) * m[:, i + 1]
    return delta, m, y
@forward("x:float32[B,T]", "len:int64[B]=1:24", dims="B=1:2:3 T=24", kinds=FEW, feeds=(row(*[1.0] * 24, len=np.array([1])), row(*[float(i) for i in range(24)], len=np.array([24]))))
def A4092SpecAugmentByLength(self, x, len):
    """Normalisation by the valid part with an unbiased deviation, which is NaN for one frame; a mask by a share of the length."""
    m = torch.arange(24) < len[:, None]
    mean = (x * m).sum(1) / len
    var = (((x - mean[:, None]) * m) ** 2).sum(1) / (len - 1)
    std = torch.where(len > 1, var.sqrt(), torch.zeros_like(var)) + 1e-5
    cut = (len * 0.3).long()
    return (x - mean[:, None]) / std[:, None] * m, cut, torch.arange(24) >= (len - cut)[:, None], var.isnan()
@attack("x:float32[N,T]", dims="N=1:1:2 T=32:64:129", kinds=FINITE, feeds=(normal(1, 32), normal(1, 63), normal(2, 129), normal(1, 128)))
class A4093IstftVocoder(nn.Module):
    """iSTFTNet: magnitude and phase by exp and sine, the inverse with a length, the spectrum's own consistency."""
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.hann_window(16))
        self.conv = nn.Conv1d(9, 18, 3, padding=1)
    def forward(self, x):
        s = torch.stft(x, 16, 4, window=self.w, return_complex=True)
        y = self.conv(s.abs().clamp(min=1e-3).log())
        mag, ph = y[:, :9].clamp(max=2).exp(), torch.sin(y[:, 9:]) * math.pi
        back = torch.istft(torch.polar(mag, ph), 16, 4, window=self.w, length=x.shape[1])
        same = torch.istft(s, 16, 4, window=self.w)
        return back, same, s.angle().sin() * s.abs()
@forward("x:float32[N,T,2]", "w:float32[T]", dims="N=1:2:3 T=1:9:24", kinds=FEW, refused="the exported model differs from the module")
def A4094ComplexBeamformer(self, x, w):
    """Steering by complex numbers, a covariance, power, a conjugate that is kept lazy, and a sum over real views."""
    z = torch.view_as_complex(x.contiguous())
    v = torch.polar(torch.ones_like(w), w)
    y = (z * v.conj()).sum(1)
    c = z[:, :, None] * z[:, None].conj()
    return torch.view_as_real(y.conj().resolve_conj()), c.real.sum(0), y.abs() ** 2, c.imag.mean((1, 2)), torch.view_as_real(torch.exp(1j * w))
@forward(XT, dims=ROWS, kinds=FEW, feeds=(row(0.5, -0.5, 0.25), row(*[0.0] * 24), row(1.0)))
def A4095LoopWithEarlyOut(self, x):
    """Rows are read until a budget is spent; whole numbers of Python count rows, and divide."""
    spent, used = x.new_zeros(x.shape[0]), torch.zeros(x.shape[0], dtype=torch.int64)
    for t in range(x.shape[1]):
        if t // 3 * 3 == 12:
            continue
        go = spent + x[:, t].abs() < 3.0
        spent = torch.where(go, spent + x[:, t].abs(), spent)
        used = used + go * (1 + t % 2)
    return spent, used, (used * 3) // 2
@forward(XT, dims="N=1:1:2 T=1:12:40", kinds=FEW, feeds=tuple(normal(1, t) for t in (1, 2, 7, 8, 39, 40)))
def A4096HopsWithCeil(self, x):
    """Pools with odd corners: ceil_mode with padding where a last window lies in the padding, a divisor of its own, LP."""
    y = x[:, None]
    a = F.avg_pool1d(y, 3, 2, 1, ceil_mode=True, count_include_pad=False)
    b = F.avg_pool1d(y, 3, 2, 1, ceil_mode=True)
    c, i = F.max_pool1d(y, 2, 3, 1, ceil_mode=True, return_indices=True)
    d = F.avg_pool2d(y[..., None], (3, 1), (2, 1), (1, 0), ceil_mode=True, divisor_override=2)
    return a, b, c, i, d[..., 0], F.adaptive_max_pool1d(y, 3, return_indices=True)[1]
@forward("x:float32[N,T,4]", "i:int64[N,S]=-24:23", dims="N=1:1:2 T=24 S=1:6:12", kinds=FEW, feeds=(lambda: {"x": np.ones((1, 24, 4), np.float32), "i": np.array([[-1, 23, -24, 0]])}, lambda: {"x": np.ones((1, 24, 4), np.float32), "i": np.array([[5, 5, 5]])}))
def A4098NegativeIndices(self, x, i):
    """Rows by negative indices, sums where they meet, writes of constants, means, a mask of what was touched."""
    n = torch.arange(x.shape[0])[:, None]
    y = x.clone()
    y.index_put_((n, i), torch.tensor(0.5), accumulate=True)
    z = torch.zeros_like(x)
    z[n, i] = 1.0
    j = i % 24
    mean = torch.zeros_like(x).scatter_reduce(1, j[..., None].expand(-1, -1, 4), x[:, : i.shape[1]], "mean", include_self=False)
    prod = torch.ones_like(x[..., 0]).scatter_reduce(1, j, x[:, : i.shape[1], 0], "prod")
    return x[n, i], y, z.sum((1, 2)), mean, prod, torch.take_along_dim(x, j[..., None], 1)
@attack("x:float32[N,T,4]", "step:int64[]=0:60", dims="N=1:1:2 T=1:5:9", kinds=FEW, feeds=tuple((lambda s=s: {"x": np.ones((1, 5, 4), np.float32), "step": np.array(s)}) for s in (0, 1, 14, 15, 16, 17, 50, 60)))
class A4099DiffusionStep(nn.Module):
    """A time embedding, a schedule by index, the variance at step zero, a clamp of the estimate, steps beyond the last."""
    def __init__(self):
        super().__init__()
        b = torch.linspace(1e-4, 0.5, 16, dtype=torch.float64)
        self.register_buffer("ac", (1 - b).cumprod(0).float())
        self.register_buffer("b", b.float())
        self.lin = nn.Linear(8, 4)
    def forward(self, x, step):
        s = step.clamp(max=15)
        f = torch.exp(-math.log(10000) * torch.arange(4) / 4)
        a = step.float() * f
        eps = x + self.lin(torch.cat([a.sin(), a.cos()], -1))
        x0 = ((x - (1 - self.ac[s]).sqrt() * eps) / self.ac[s].sqrt()).clamp(-1, 1)
        prev = torch.where(s > 0, self.ac[s - 1], 1.0)
        var = self.b[s] * (1 - prev) / (1 - self.ac[s])
        return x0, torch.log(var.clamp(min=1e-20)), prev, torch.where(step > 15, -x0, x0 * prev.sqrt())
