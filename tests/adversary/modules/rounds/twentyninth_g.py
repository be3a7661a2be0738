"""Round 29, follow-ups: joint sizes, caches that grow, special functions, batch statistics, outputs."""

from __future__ import annotations

import bisect
import collections
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"
WIDE = "N=1:1:2 H=16:64:400 W=16:64:400"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _f(values, *shape):
    return lambda: {"x": np.array(values, np.float32).reshape(shape)}


def _im(h, w, n=1, c=1, scale=1.0):
    return lambda: {"x": _r(n, c, h, w, scale=scale)}


def _t(t, n=1, scale=1.0, c=4):
    return lambda: {"x": _r(n, t, c, scale=scale)}


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(100, 150), _im(200, 300), _im(37, 399), _im(211, 377), _im(28, 42)))
def G29SmartResize(self, x):
    """Qwen-VL's: sides that are multiples of 28 and an area within bounds."""
    h, w = x.shape[-2:]
    f, low, high = 28, 28 * 28 * 4, 28 * 28 * 30
    hb, wb = max(f, round(h / f) * f), max(f, round(w / f) * f)
    if hb * wb > high:
        beta = math.sqrt((h * w) / high)
        hb, wb = max(f, math.floor(h / beta / f) * f), max(f, math.floor(w / beta / f) * f)
    elif hb * wb < low:
        beta = math.sqrt(low / (h * w))
        hb, wb = math.ceil(h * beta / f) * f, math.ceil(w * beta / f) * f
    return F.interpolate(x, (hb, wb))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(100, 150), _im(200, 300), _im(300, 200), _im(120, 160), _im(64, 96)))
def G29ClosestRatio(self, x):
    """InternVL's tiles: the ratio that is closest to w / h; where two are, by area."""
    h, w = x.shape[-2:]
    best, ratio = math.inf, (1, 1)
    for i, j in ((1, 1), (1, 2), (2, 1), (2, 3), (3, 2)):
        d = abs(w / h - i / j)
        if d < best:
            best, ratio = d, (i, j)
        elif d == best and h * w > 0.5 * 64 * 64 * i * j:
            ratio = (i, j)
    return F.interpolate(x, (16 * ratio[1], 16 * ratio[0]), mode="bilinear")


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(96, 160), _im(100, 150), _im(160, 96), _im(223, 351)))
def G29ClosestGrid(self, x):
    h, w = x.shape[-2:]
    gh, gw = min(((8, 8), (6, 10), (10, 6)), key=lambda g: abs(g[0] / g[1] - h / w))
    return F.adaptive_avg_pool2d(x, (gh, gw)) if gh == gw else F.interpolate(x, (gh, gw), mode="nearest")


@attack("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(211, 377), _im(211, 376), _im(377, 211)))
class G29TableOfResolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pos_211x377", torch.randn(1))
        self.zero = 0.0

    def forward(self, x):
        h, w = x.shape[-2:]
        return x + getattr(self, f"pos_{h}x{w}", self.zero)


@attack("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(211, 377), _im(211, 376), _im(377, 211)))
class G29DictOfResolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = collections.defaultdict(lambda: 1.0, {(211, 377): 3.0})

    def forward(self, x):
        return x * self.scale[tuple(x.shape[-2:])]


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(211, 377), _im(211, 376), _im(377, 211)))
def G29ListOfResolutions(self, x):
    return x * (1 + [(211, 377), (64, 65)].count((x.shape[2], x.shape[3])))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(211, 377), _im(211, 376), _im(377, 211)))
def G29TextOfResolution(self, x):
    return x * (1 + ("211, 377" in str(x.shape)))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(211, 377), _im(100, 100), _im(200, 50), _im(99, 101)))
def G29BisectsTheArea(self, x):
    area = x.shape[2] * x.shape[3]
    return x * bisect.bisect_left([5000, 10000, 79547], area), x / (1 + bisect.bisect([100.0, 200.0], math.sqrt(area)))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(126, 84), _im(377, 377), _im(144, 256)))
def G29ReducedAspect(self, x):
    h, w = x.shape[-2:]
    g = math.gcd(h, w)
    return x * (w // g) - h // g, x + math.hypot(h, w), x - math.atan2(h, w)


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=3:9:60", feeds=(_t(20), _t(21), _t(60), _t(5)))
class G29GrowingTable(nn.Module):
    """Relative positions that are made anew when a longer sequence comes."""

    def __init__(self):
        super().__init__()
        self.pe = None
        self.lin = nn.Linear(4, 4)
        self.extend(20)

    def extend(self, t):
        place = torch.arange(t - 1, -t, -1.0)[:, None]
        angle = place * torch.tensor([1.0, 0.01])
        self.pe = torch.cat([angle.sin(), angle.cos()], -1)

    def forward(self, x):
        t = x.shape[1]
        if self.pe.shape[0] < 2 * t - 1:
            self.extend(t)
        mid = self.pe.shape[0] // 2
        return x @ self.lin(self.pe[mid - t + 1 : mid + t]).T


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=3:9:60", feeds=(_t(8), _t(33), _t(60), _t(5)))
class G29MaskThatGrows(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        t = x.shape[1]
        if self.mask is None or self.mask.shape[0] < t:
            self.mask = torch.full((2 * t, 2 * t), float("-inf")).triu(1)
        return (x @ x.mT + self.mask[:t, :t]).softmax(-1) @ x


@attack("x:float32[N,3,H,W]", dims="N=1:2:4 H=4:6:20 W=4:8:20", feeds=(lambda: {"x": _r(1, 3, 4, 5)}, lambda: {"x": 100 + _r(3, 3, 7, 4)}))
class G29AlwaysBatchStatistics(nn.Module):
    """Test-time adaptation: batch norm that stays in training mode."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=0.0)

    def train(self, mode=True):
        super().train(mode)
        self.bn.train(True)
        return self

    def forward(self, x):
        return self.bn(self.conv(x)).relu()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([1e-3, 0.5, 1, 2, 3.5, 10, 100, 1e4, 1e-6, 1.4616321, 7, 30], 1, 3, 4),))
def G29Evidential(self, x):
    a = x.abs().clamp(1e-6, 1e5)
    return torch.lgamma(a), torch.digamma(a), torch.lgamma(a + 1) - torch.lgamma(a), torch.digamma(a.sum(-1))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([1e-3, 0.5, 1, -2, 3.5, 10, 80, -30, 1e-6, 0.9999, -0.9999, 0], 1, 3, 4),))
def G29Bessel(self, x):
    return torch.special.i0(x.clamp(-60, 60)), torch.special.i0e(x), torch.erfinv(x.clamp(-0.99999, 0.99999)), torch.special.ndtri(x.sigmoid()), torch.special.erfcx(x.clamp(-3, 50)), torch.special.log1p(x.abs())


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(5), _t(20, scale=30), _f([0.0] * 12, 1, 3, 4), _t(9, scale=0)))
def G29Running(self, x):
    return x.logcumsumexp(1), x.cumprod(1), torch.cumulative_trapezoid(x, dim=1), torch.trapezoid(x, dx=0.1, dim=1), x.renorm(2, 0, 1.0), x.flip(1).cumsum(1).flip(1), x.cummax(1)[0] - x.cummin(1)[0]


@forward("x:float32[N,4,4]", dims="N=1:2:4", feeds=(lambda: {"x": np.eye(4, dtype=np.float32)[None] * 1e-12}, lambda: {"x": _r(2, 4, 4, scale=1e8)}, lambda: {"x": np.array([[[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 3, 0]]], np.float32)}))
def G29SmallMatrices(self, x):
    spd = x @ x.mT + 1e-3 * torch.eye(4) * (1 + x.abs().amax((1, 2), keepdim=True) ** 2)
    return torch.linalg.det(x), torch.linalg.cholesky(spd), torch.linalg.slogdet(spd)[1], torch.linalg.matrix_power(x, 3), torch.linalg.matrix_norm(x), torch.linalg.cross(x[..., :3], x[..., 1:]), torch.linalg.multi_dot([x[0], x[0], x[0, :, :2]])


@forward("a:float32[N,T,3]", "b:float32[N,S,3]", dims="N=1:1:2 T=3:30:60 S=3:30:60",
         feeds=(lambda: {"a": 100 + _r(1, 30, 3, scale=0.01), "b": 100 + _r(1, 40, 3, scale=0.01)}, lambda: {"a": np.round(_r(1, 26, 3)), "b": np.round(_r(1, 24, 3))}))  # fmt: skip
def G29Chamfer(self, a, b):
    d = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    return d.min(2)[0].mean(1) + d.min(1)[0].mean(1), d.argmin(2), torch.cdist(a, b, p=1.0), torch.cdist(a, b, p=0.5)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(7, 2)))
class G29Outputs(nn.Module):
    def forward(self, x):
        Out = collections.namedtuple("Out", "logits hidden same")
        return {"b": x, "a": Out(x.mT, None, x), "c": [x[:, :0], x.mT.mT], "d": (x.sum(1), {"e": x > 0})}


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(7, 2)))
class G29RuntimeForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Hardswish()))
        inner = self.net.forward
        self.net.forward = lambda x: inner(x.clamp(min=-0.1)) * 2

    def forward(self, x):
        return self.scripted(self.net(x)) + F.linear(x, self.net.weight.data.clone().tril_())


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(20, scale=50)))
class G29QuantisedLinear(nn.Module):
    """Dynamic quantisation per token by hand, as LLM.int8 and BitNet do it."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 6)

    def forward(self, x):
        s = 127.0 / x.abs().max(dim=-1, keepdim=True).values.clamp_(min=1e-5)
        q = (x * s).round().clamp_(-128, 127)
        ws = 1.0 / self.lin.weight.abs().mean().clamp_(min=1e-5)
        w = (self.lin.weight * ws).round().clamp_(-1, 1)
        return F.linear(q, w) / s / ws + self.lin.bias, q.to(torch.int8)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 1, 3, 4), _t(9, scale=3)))
def G29FiniteScalarQuantised(self, x):
    """FSQ and residual VQ: codes by levels, by the nearest of a table."""
    levels = torch.tensor([8, 5, 5, 4])
    half = (levels - 1) * (1 - 1e-3) / 2
    offset = torch.where(levels % 2 == 1, 0.0, 0.5)
    shift = torch.tan(offset / half)
    z = (torch.tanh(x + shift) * half - offset).round()
    index = ((z + levels // 2) * torch.tensor([1, 8, 40, 200])).sum(-1).to(torch.int32)
    back = (index[..., None] // torch.tensor([1, 8, 40, 200])) % levels
    book = torch.linspace(-2, 2, 36).view(9, 4)
    d = x.pow(2).sum(-1, keepdim=True) - 2 * x @ book.T + book.pow(2).sum(-1)
    return index, back, z / (levels // 2), book[d.argmin(-1)]


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=8:20:80", feeds=(_t(8), _t(9), _t(33)))
def G29OverlapAdd(self, x):
    """Frames with a window, and back."""
    y = x.mT.flatten(0, 1)
    frames = F.pad(y, (2, (4 - (y.shape[1] + 2) % 4) % 4)).unfold(1, 8, 4) * torch.hann_window(8)
    total = (frames.shape[1] - 1) * 4 + 8
    back = F.fold(frames.mT, (1, total), (1, 8), stride=(1, 4))[:, 0, 0]
    norm = F.fold((torch.hann_window(8) ** 2)[:, None].expand(-1, frames.shape[1])[None], (1, total), (1, 8), stride=(1, 4))[0, 0, 0]
    return back[:, 2 : 2 + y.shape[1]] / norm.clamp(min=1e-8)[2 : 2 + y.shape[1]]


@forward("x:float32[N,T]", dims="N=1:1:2 T=400:800:1600", feeds=(lambda: {"x": _r(1, 401, scale=1e-23)}, lambda: {"x": _r(1, 1599)}, lambda: {"x": _r(1, 777, scale=1e-12)}))
def G29StftLog(self, x):
    s = torch.stft(x, 64, 16, window=torch.hann_window(64), center=True, pad_mode="reflect", return_complex=True)
    return s.abs().clamp(min=1e-30).log(), s.angle().cos()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(9, scale=1e20), _t(9, scale=1e-20)))
def G29ComplexRotations(self, x):
    """RotatE and complex networks: moduli, phases, magnitudes that overflow in between."""
    z = torch.complex(x[..., :2], x[..., 2:])
    return z.abs(), torch.abs(z * (0.6 + 0.8j)), (z / (z.abs() + 1e-30)).real


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=5:9:20", feeds=(_t(5), _t(19)))
def G29MixedSlices(self, x):
    t = x.shape[1]
    a = x[:, t // 2 :: 2]
    b = x[:, : -t // 3]
    c = x[:, -(t // 2) : -1]
    d = x[:, max(t - 7, 0) : min(t, 15)]
    e = x[:, t : t + 3]
    f = torch.cat([x[:, -2:], x, x[:, :2]], 1)[:, 1 : t + 3 : 3]
    return a, b, c, d, e, f, x[:, 1 - t :], x[:, : 2 * t], x[:, -2 * t : t - 1]


@forward("x:float32[N,T,4]", "e:int32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": np.full((1, 3, 4), 1e30, np.float32), "e": np.full((1, 3, 4), -150, np.int32)}, lambda: {"x": np.full((1, 3, 4), 1e-30, np.float32), "e": np.full((1, 3, 4), 130, np.int32)}))
def G29Ldexp(self, x, e):
    return torch.ldexp(x, e.clamp(-200, 200))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([1e5, 65519.9, 70000, 1, 2, 3, 4, 5, 6, 7, 8, 9], 1, 3, 4),))
def G29HalfRoundTrip(self, x):
    return x.half().float(), x.bfloat16().float(), x.half().amax(1).float(), x.half().square().float()
