"""Forecasting: instance scaling, patches, decompositions, spectra that choose, lags, calendars, scans."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,3]=-5:5", dims="N=1:2:3 T=8:24:50", kinds=FINITE)
class A7521ScaledByMeanOfObserved(nn.Module):
    """GluonTS' mean scaler: weights by observed (not NaN as -1 sentinel), the batch's scale where an item has none, a floor, patches by unfold with a padded end, de-scaled."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.p = nn.Linear(8, 5)

    def forward(self, x):
        seen = (x != 0).to(x)
        total = seen.sum(1, keepdim=True)
        sums = (x.abs() * seen).sum(1, keepdim=True)
        default = sums.sum(0, keepdim=True) / torch.clamp(total.sum(0, keepdim=True), min=1)
        scale = sums / torch.clamp(total, min=1)
        scale = torch.where(total > 0, scale, default * torch.ones_like(total))
        scale = torch.clamp(scale, min=1e-3)
        z = (x / scale).permute(0, 2, 1)
        z = F.pad(z, (0, 4), mode="replicate").unfold(-1, 8, 4)
        return self.p(z).mean(2) * scale.squeeze(1)[..., None], scale


@attack("x:float32[N,T,3]=-5:5", dims="N=1:2:3 T=26:40:80", kinds=FINITE)
class A7522DecompositionsOfThreeKernels(nn.Module):
    """FEDformer's mixture of moving averages by kernels 7, 12 and 25 with replicated ends (even ones one-sided), softmax weights, DLinear heads over the last 20."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.w = nn.Linear(1, 3)
        self.s, self.t = nn.Linear(20, 6), nn.Linear(20, 6)

    def avg(self, x, k):
        front = x[:, 0:1, :].repeat(1, k - 1 - math.floor((k - 1) // 2), 1)
        end = x[:, -1:, :].repeat(1, math.floor((k - 1) // 2), 1)
        return F.avg_pool1d(torch.cat([front, x, end], 1).permute(0, 2, 1), k, 1).permute(0, 2, 1)

    def forward(self, x):
        m = torch.stack([self.avg(x, k) for k in (7, 12, 25)], -1)
        trend = (m * self.w(x.unsqueeze(-1)).softmax(-1)).sum(-1)
        season = x - trend
        tail = lambda v: v[:, -20:].transpose(1, 2)  # noqa: E731
        return (self.s(tail(season)) + self.t(tail(trend))).transpose(1, 2), trend


@attack("x:float32[N,T,4]=-3:3", dims="N=1:2:3 T=16:24:48", kinds=("normal", "unit", "ascending"))
class A7523AutoCorrelationRolled(nn.Module):
    """Autoformer's aggregation at inference: correlation by rfft and irfft of the length, mean over heads, top-k with k from the log of the length, delays gathered from a doubled sequence."""

    def forward(self, x):
        n, t, c = x.shape
        q = torch.fft.rfft(x.permute(0, 2, 1), dim=-1)
        corr = torch.fft.irfft(q * torch.conj(torch.roll(q, 1, 1)), n=t, dim=-1)
        k = int(1.5 * math.log(t))
        mean = corr.mean(1)
        w, d = torch.topk(mean, k, dim=-1)
        w = w.softmax(-1)
        idx = torch.arange(t).view(1, 1, -1).repeat(n, c, 1)
        v = x.permute(0, 2, 1).repeat(1, 1, 2)
        out = torch.zeros_like(x.permute(0, 2, 1))
        for i in range(k):
            out = out + v.gather(-1, idx + d[:, i].view(-1, 1, 1)) * w[:, i].view(-1, 1, 1)
        return out.permute(0, 2, 1), corr


@attack("x:float32[N,T,2]=-3:3", dims="N=1:2:3 T=12:24:36", kinds=("normal", "unit"), refused="the path through the module depends on the size")
class A7524TimesNetPeriod(nn.Module):
    """TimesNet: amplitudes by rfft, DC zeroed in place, the strongest frequency overall as a Python number, period = T // f, padded and folded into a picture: decided by values."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.c = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        f = abs(torch.fft.rfft(x, dim=1)).mean(0).mean(-1)
        f[0] = 0
        _, top = torch.topk(f, 1)
        period = x.shape[1] // int(top[0])
        length = ((x.shape[1] // period) + 1) * period if x.shape[1] % period else x.shape[1]
        z = F.pad(x, (0, 0, 0, length - x.shape[1]))
        z = z.reshape(x.shape[0], length // period, period, 2).permute(0, 3, 1, 2)
        return self.c(z).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 2)[:, : x.shape[1]]


@forward("x:float32[N,T]=-5:5", "t:int64[N,T]=0:1700000000", dims="N=1:2:3 T=8:12:30", kinds=FINITE)
def A7525LagsAndCalendar(self, x, t):
    """Lags 1, 2, 5 and 7 by padding and cutting, day of the week, hour and month (civil from days, whole arithmetic) of int64 seconds, holidays by isin, Fourier terms by modulo in doubles."""
    lags = torch.stack([F.pad(x, (k, 0))[:, : x.shape[1]] for k in (1, 2, 5, 7)], -1)
    days = t // 86400
    dow, hour = (days + 3) % 7, t % 86400 // 3600
    z = days + 719468
    era = torch.div(z, 146097, rounding_mode="floor")
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = torch.where(mp < 10, mp + 3, mp - 9)
    day = doy - (153 * mp + 2) // 5 + 1
    hol = torch.isin(month * 100 + day, torch.tensor([101, 501, 1225, 1226]))
    ph = (t % 604800).double() / 604800.0
    return lags, dow, hour, yoe + era * 400 + (month <= 2), month, day, hol, torch.sin(2 * math.pi * ph).float()


@attack("x:float32[N,T,3]=-2:2", dims="N=1:2:3 T=1:6:10", kinds=FINITE)
class A7526RevInOfTheLastValue(nn.Module):
    """RevIN with subtract_last, an affine whose inverse divides by weight + eps**2, state kept on self between norm and denorm as the original does, population deviation."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.w, self.b = nn.Parameter(torch.tensor([1.0, 0.0, -2.0])), nn.Parameter(torch.randn(3))
        self.l = nn.Linear(3, 3)

    def norm(self, x):
        self.last = x[:, -1, :].unsqueeze(1)
        self.sd = torch.sqrt(torch.var(x, dim=tuple(range(1, x.ndim - 1)), keepdim=True, unbiased=False) + 1e-5).detach()
        return (x - self.last) / self.sd * self.w + self.b

    def denorm(self, x):
        return (x - self.b) / (self.w + 1e-5 * 1e-5) * self.sd + self.last

    def forward(self, x):
        y = self.norm(x)
        return self.denorm(y[..., :3] + 0 * self.l(y)), y


@attack("x:float32[N,T,4]=-2:2", dims="N=1:2:3 T=1:8:16", kinds=FINITE)
class A7527SelectiveScanByDoubling(nn.Module):
    """A first-order recurrence by Hillis-Steele doubling with shifts padded by one and zero, over log2 of the length steps; beside it the same by cumsum of logs."""

    def forward(self, x):
        a, b = torch.sigmoid(x[..., :2]), x[..., 2:]
        t, s = x.shape[1], 1
        while s < 16:
            pa = F.pad(a, (0, 0, s, 0), value=1.0)[:, :t]
            pb = F.pad(b, (0, 0, s, 0))[:, :t]
            a, b = a * pa, a * pb + b
            s *= 2
        la = F.logsigmoid(x[..., :2]).cumsum(1)
        return b, a, la.exp()


@dataclass
class Forecast:
    """A forecast as a library returns it; not registered with torch's pytrees."""

    loc: torch.Tensor
    scale: torch.Tensor
    quantiles: dict[str, torch.Tensor]


@attack("x:float32[N,T]=-2:2", dims="N=1:2:3 T=6:9:20", kinds=FINITE)
class A7528ForecastAsDataclass(nn.Module):
    """A dataclass of tensors and a dictionary: Student-t head with softplus plus 2, quantiles by erfinv at text keys, a cumulative distribution of discrete bins interpolated."""

    def forward(self, x):
        loc, scale = x.mean(1), F.softplus(x.std(1)) + 1e-4
        q = {f"p{int(p * 100)}": loc + scale * math.sqrt(2) * torch.erfinv(torch.tensor(2 * p - 1)) for p in (0.1, 0.5, 0.9)}
        return Forecast(loc, scale, q)


@forward("x:float32[N,T]=-5:5", dims="N=1:2:3 T=3:9:20", kinds=FINITE)
def A7529ExponentialSmoothingByPowers(self, x):
    """Simple smoothing as a product with a triangular matrix of powers made from a size (0.7 ** (i - j)), Holt's drift, differences of order 2, a detrend by closed-form least squares."""
    t = x.shape[1]
    i = torch.arange(t)
    p = (i[:, None] - i[None, :]).clamp(min=0)
    m = (0.3 * 0.7**p).tril()
    m[:, 0] = 0.7 ** i.float()
    level = x @ m.T
    tt = i.to(x.dtype)
    tm, xm = tt.mean(), x.mean(1, keepdim=True)
    slope = ((tt - tm) * (x - xm)).sum(1) / ((tt - tm) ** 2).sum()
    return level, torch.diff(x, n=2), x - xm - slope[:, None] * (tt - tm), slope


@attack("x:float32[N,T]=-5:5", dims="N=1:1:3 T=2:8:30", kinds=FINITE)
class A7530SkippedSamplesByRates(nn.Module):
    """N-HiTS: pools by kernels that do not divide the length with ceil_mode, linear interpolation back by size with and without corners, nearest of a reciprocal factor."""

    def forward(self, x):
        p = F.max_pool1d(x[:, None], 3, 3, ceil_mode=True)
        a = F.interpolate(p, size=x.shape[1], mode="linear")
        b = F.interpolate(p, size=x.shape[1] + 1, mode="linear", align_corners=True)
        c = F.avg_pool1d(x[:, None], 2, 2, ceil_mode=True, count_include_pad=False)
        d = F.interpolate(c, size=2 * x.shape[1] - 1, mode="nearest")
        return a, b, d, F.lp_pool1d(x[:, None].abs(), 2.0, 2, 1)
