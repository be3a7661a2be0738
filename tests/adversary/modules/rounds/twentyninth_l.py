"""Round 29, follow-ups: running sums as real code has them; small forms of what was refused for an odd cause."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _f0(t, hz, n=1):
    return lambda: {"f0": np.full((n, t), hz, np.float32)}


@forward("f0:float32[N,T]", dims="N=1:1:2 T=100:2400:24000", feeds=(_f0(24000, 440.3), _f0(20000, 1234.5), _f0(3001, 220.7)))
def L29VocoderPhase(self, f0):
    """The source of NSF and its kin: a phase that is summed up, then a sine."""
    return torch.sin(2 * math.pi * torch.cumsum(f0.clamp(0, 8000) / 24000, 1))


@forward("f0:float32[N,T]", dims="N=1:1:2 T=100:2400:24000", feeds=(_f0(24000, 440.3), _f0(20000, 1234.5), _f0(3001, 220.7)))
def L29PhaseWrapped(self, f0):
    phase = torch.cumsum(f0.clamp(0, 8000) / 24000, 1)
    return torch.sin((phase - phase.floor()) * 2 * math.pi) * 0.1


@forward("f0:float32[N,T]", dims="N=1:1:2 T=10:100:400", feeds=(_f0(400, 440.3), _f0(311, 1234.5)))
def L29FrameRatePhase(self, f0):
    """DDSP: harmonics of a frame-rate phase, interpolated."""
    phase = torch.cumsum(2 * math.pi * f0.clamp(0, 4000) / 100, 1)
    return torch.sin(phase[..., None] * torch.arange(1, 5))


@forward("f0:float32[N,T]", dims="N=1:1:2 T=100:2400:8000", feeds=(_f0(8000, 0.1), _f0(8000, 16777.0), _f0(7001, 1e5 / 3)))
def L29CrossingsOfACount(self, f0):
    """Integrate and fire (CIF): a token where the running sum passes a whole number."""
    total = f0.sigmoid().cumsum(1)
    fire = total.floor() - F.pad(total, (1, 0))[:, :-1].floor()
    return fire, total[:, -1].floor()


@forward("f0:float32[N,T]", dims="N=1:1:2 T=100:2400:8000", feeds=(_f0(8000, 0.1), _f0(8000, 16777.3), _f0(7001, 1e5 / 3)))
def L29MovingSums(self, f0):
    c = F.pad(f0, (1, 0)).cumsum(1)
    return (c[:, 16:] - c[:, :-16]) / 16


@forward("x:float32[N,1,H,W]", dims="N=1:1:2 H=16:64:300 W=16:64:300", feeds=(lambda: {"x": np.full((1, 1, 300, 300), 254.7, np.float32)}, lambda: {"x": np.random.default_rng(0).integers(0, 256, (1, 1, 299, 300)).astype(np.float32)}))
def L29IntegralImage(self, x):
    """Local mean and variance by integral images (Sauvola, guided filters)."""
    def box(y):
        c = F.pad(y, (1, 0, 1, 0)).cumsum(2).cumsum(3)
        return (c[..., 7:, 7:] - c[..., :-7, 7:] - c[..., 7:, :-7] + c[..., :-7, :-7]) / 49
    mean = box(x)
    return mean, (box(x * x) - mean**2).clamp(min=0).sqrt()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29LongToInt(self, x):
    return x.clamp(-9e18, 9e18).long().to(torch.int32)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=16:21:60", feeds=(lambda: {"x": _r(1, 25, 4)},))
def L29TwoConditions(self, x):
    n, t, _ = x.shape
    if n == 1 and t % 5 == 0:
        return x * 2
    return x - t / n


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29WhileOfAmax(self, x):
    return torch._higher_order_ops.while_loop(lambda i, t: (i < 7) & (t.abs().amax() > 0.5), lambda i, t: (i + 1, t * 0.5), (torch.tensor(0), x))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29FlatEveryFifth(self, x):
    y = x.clone()
    y.view(-1)[::5] = 7
    return y


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29UnbindOne(self, x):
    y = x.clone()
    y.unbind(1)[1].zero_()
    return y


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29GaussianNll(self, x):
    return F.gaussian_nll_loss(x, x.flip(1), x.abs())


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29VmapRows(self, x):
    return torch.vmap(lambda r: (r @ r.mT).softmax(-1))(x)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)},))
def L29ByteSilu(self, x):
    return F.silu(x.half()).float()


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:16:40 W=8:18:40", feeds=(lambda: {"x": _r(1, 3, 8, 9)},))
def L29SpectralMask(self, x):
    f = torch.fft.rfft2(x, norm="ortho")
    low = f.clone()
    low[..., x.shape[-1] // 4 :] = 0
    return torch.fft.irfft2(low, s=x.shape[-2:], norm="ortho")


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:16:40 W=8:18:40", feeds=(lambda: {"x": _r(1, 3, 8, 9)},))
class L29AutocastConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = nn.Conv2d(3, 4, 3), nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.lin(self.conv(x).mean((2, 3))).float()
