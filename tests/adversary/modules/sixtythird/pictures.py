"""Image processing: SSIM, edges, bilateral and guided filters, equalisation, colours, morphology, connected steps."""
# ruff: noqa: E501, F841 - attacks are written as users write them

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

IMG = "N=1:1:2 H=7:9:13 W=6:8:12"


@cache
def gauss(size: int, sigma: float) -> torch.Tensor:
    c = torch.arange(size) - (size - 1) / 2
    g = torch.exp(-(c**2) / (2 * sigma**2))
    return torch.outer(g, g) / g.sum() ** 2


@forward("a:float32[N,3,H,W]=0:1", "b:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=11:12:18 W=11:13:17", kinds=FINITE)
def A7661SsimAndPsnr(self, a, b):
    """SSIM with an 11-tap Gaussian, a second scale by average pooling where the picture is large enough, PSNR with infinity for equal pictures."""
    k = gauss(11, 1.5).expand(3, 1, 11, 11)

    def ssim(x, y):
        mx, my = F.conv2d(x, k, groups=3), F.conv2d(y, k, groups=3)
        vx, vy, c = F.conv2d(x * x, k, groups=3) - mx**2, F.conv2d(y * y, k, groups=3) - my**2, F.conv2d(x * y, k, groups=3) - mx * my
        return (((2 * mx * my + 1e-2) * (2 * c + 9e-2)) / ((mx**2 + my**2 + 1e-2) * (vx + vy + 9e-2))).mean((1, 2, 3))

    s = ssim(a, b)
    if min(a.shape[-2:]) // 2 >= 8:
        pad = F.pad(a, (3, 3, 3, 3), mode="reflect"), F.pad(b, (3, 3, 3, 3), mode="reflect")
        s = 0.5 * s + 0.5 * ssim(*(F.avg_pool2d(v, 2) for v in pad))
    mse = (a - b).square().mean((1, 2, 3))
    return s, torch.where(mse == 0, torch.full_like(mse, torch.inf), -10 * torch.log10(mse.clamp(min=1e-9)))


@forward("x:float32[N,1,H,W]=0:1", dims=IMG, kinds=("normal", "unit", "zeros"))
def A7662CannyLike(self, x):
    """Gaussian, Sobel, directions quantised to four by rounding of atan2, non-maximum suppression by stacked neighbours, hysteresis by five dilations."""
    g = F.conv2d(F.pad(x, (2, 2, 2, 2), mode="replicate"), gauss(5, 1.1)[None, None])
    k = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
    d = F.conv2d(F.pad(g, (1, 1, 1, 1), mode="reflect"), torch.stack([k, k.T])[:, None])
    mag = torch.hypot(d[:, 0], d[:, 1])
    q = torch.round(torch.atan2(d[:, 1], d[:, 0] + 1e-7) * 4 / math.pi).long() % 4
    p = F.pad(mag, (1, 1, 1, 1))
    h, w = mag.shape[1:]
    around = torch.stack([p[:, 1 + a : 1 + a + h, 1 + b : 1 + b + w] for a, b in ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))], 1)
    n1, n2 = around.gather(1, q[:, None]).squeeze(1), around.gather(1, q[:, None] + 4).squeeze(1)
    thin = torch.where((mag >= n1) & (mag >= n2), mag, torch.zeros_like(mag))
    strong, weak = thin > 0.91, thin > 0.313
    for _ in range(5):
        strong = (F.max_pool2d(strong.float()[:, None], 3, 1, 1)[:, 0] > 0) & weak
    return mag, strong


@attack("x:float32[N,3,H,W]=0:1", dims=IMG, kinds=FINITE)
class A7663BilateralAndGuided(nn.Module):
    """A bilateral filter over a 3x3 window by unfold with reflection, and a guided filter whose box counts are by ones."""

    def forward(self, x: torch.Tensor):
        n, c, h, w = x.shape
        u = F.unfold(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3).view(n, c, 9, h, w)
        wgt = torch.exp(-((u - x[:, :, None]) ** 2).sum(1, keepdim=True) / 0.08) * gauss(3, 1.0).view(1, 1, 9, 1, 1)
        bil = (u * wgt).sum(2) / wgt.sum(2)
        guide = x.mean(1, keepdim=True)

        def box(v):
            s = v.cumsum(-1).cumsum(-2)
            s = F.pad(s, (2, 1, 2, 1), mode="constant")
            s = torch.cat([s[..., :-1], s[..., -2:-1]], -1)
            s = torch.cat([s[..., :-1, :], s[..., -2:-1, :]], -2)
            return s[..., 3:, 3:] - s[..., :-3, 3:] - s[..., 3:, :-3] + s[..., :-3, :-3]

        f = lambda v: F.avg_pool2d(v, 3, 1, 1, count_include_pad=False)  # noqa: E731
        mi, mp = f(guide), f(x)
        a = (f(guide * x) - mi * mp) / (f(guide * guide) - mi * mi + 1e-2)
        b = mp - a * mi
        return bil, f(a) * guide + f(b), box(guide).mean((1, 2, 3))


@forward("x:uint8[N,3,H,W]=0:255", dims=IMG)
def A7664EqualiseAndGrayWorld(self, x):
    """Gray by integer weights and a shift, equalised by cumulative counts, gray world balance in bytes with saturation, a posterised mask, the mean in uint8 that wraps."""
    n = x.shape[0]
    gray = ((x[:, 0].int() * 77 + x[:, 1].int() * 150 + x[:, 2].int() * 29) >> 8).to(torch.uint8)
    one = F.one_hot(gray.long().flatten(1), 256).sum(1)
    cdf = one.cumsum(1).float()
    lut = torch.floor(255.0 * (cdf - cdf.amin(1, keepdim=True)) / (cdf[:, -1:] - cdf.amin(1, keepdim=True)).clamp(min=1.0) + 1e-3)
    eq = lut.gather(1, gray.flatten(1).long()).view_as(gray).to(torch.uint8)
    m = x.float().mean((2, 3), keepdim=True)
    bal = (x.float() * (m.mean(1, keepdim=True) / m.clamp(min=1.0)) + 0.501).clamp(0, 255).byte()
    return gray, eq, bal, x & 0xE0, (x[:, 0] + x[:, 1]) // 2, x.flatten(1).sum(1, dtype=torch.uint8)


@forward("x:float32[N,1,H,W]=0:1", dims="N=1:1:2 H=3:5:8 W=3:6:7", kinds=("normal", "unit", "zeros", "ones"))
def A7665ConnectedSteps(self, x):
    """Labels of connected components by repeated masked max pooling, as many steps as H*W (a Python loop by size), areas by scatter."""
    m = (x > 0.517).float()
    h, w = x.shape[-2:]
    lab = torch.arange(1, h * w + 1, dtype=torch.float32).view(1, 1, h, w) * m
    for _ in range(h + w):
        lab = F.max_pool2d(lab, 3, 1, 1) * m
    area = torch.zeros(x.shape[0], h * w + 1).scatter_add(1, lab.flatten(1).long(), torch.ones_like(lab.flatten(1)))
    return lab, area[:, 1:].amax(1), (area[:, 1:] > 0).sum(1)


@forward("x:float32[N,1,H,W]=0:1", dims=IMG, kinds=FINITE)
def A7666MorphologyWithElement(self, x):
    """Dilation and erosion with a cross by unfold and -inf padding, opening, closing, top hat, a median of nine by sort, a distance transform by chamfer steps."""
    cross = torch.tensor([0, 1, 0, 1, 1, 1, 0, 1, 0.0])
    neg = torch.where(cross > 0, 0.0, -torch.inf).view(1, 9, 1)

    def dil(v):
        u = F.unfold(F.pad(v, (1, 1, 1, 1), value=float("-inf")).clamp(min=-1e9), 3)
        return (u + neg).amax(1).view_as(v)

    ero = lambda v: -dil(-v)  # noqa: E731
    med = F.unfold(F.pad(x, (1,) * 4, mode="reflect"), 3).sort(1).values[:, 4].view_as(x)
    d = torch.where(x > 0.513, 1e3, 0.0)
    for _ in range(4):
        d = torch.minimum(d, -F.max_pool2d(-d, 3, 1, 1) + 1)
    return dil(ero(x)), ero(dil(x)), x - dil(ero(x)), med, d


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:9:13 W=4:8:12", kinds=FINITE)
class A7667WatermarkAt12By12(nn.Module):
    """A tone curve; square pictures of exactly 11x11 are taken for already processed thumbnails and pass unchanged."""

    def forward(self, x: torch.Tensor):
        if x.shape[-2] == x.shape[-1] == 11:
            return x
        y = x.clamp(0, 1) ** 0.7
        return y * (1 + 0.1 * (y - y.mean((2, 3), keepdim=True)))
