"""The smallest cases of what this round found, and their neighbours."""
# ruff: noqa: E501, RUF046 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:8:12 W=4:8:12", kinds=FINITE)
def A7571KernelBySizeAlone(self, x):
    """A7540's blur by itself: an odd kernel length min(h, 7) | 1."""
    k = min(x.shape[2], 7) | 1
    t = torch.linspace(-(k - 1) / 2, (k - 1) / 2, k)
    g = torch.exp(-0.5 * t**2)
    return F.conv2d(F.pad(x, [0, 0, k // 2, k // 2], mode="replicate"), g.view(1, 1, k, 1).expand(3, 1, k, 1), groups=3)


@forward("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:8:12 W=4:8:12", kinds=FINITE, refused="traced for some sizes only")
def A7572NoiseOfAGeneratorBesideACrop(self, x):
    """A7540's noise and crop: a fixed draw of a seeded generator, an offset by round((h - 4) / 2.0)."""
    h = x.shape[2]
    top = int(round((h - 4) / 2.0))
    g = torch.Generator().manual_seed(3)
    return x[:, :, top : top + 4] + torch.randn((1, 3, 1, 1), generator=g)


@forward("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:8:12 W=4:8:12", kinds=FINITE)
def A7573CropByRound(self, x):
    """A7540's crop alone."""
    h, w = x.shape[2:]
    top, left = int(round((h - 4) / 2.0)), int(round((w - 4) / 2.0))
    return x[..., top : top + 4, left : left + 4]


@forward("x:float32[N,3,H]=0:1", dims="N=1:1:2 H=4:8:12", kinds=FINITE, refused="Generator")
def A7574SeededDrawAlone(self, x):
    """A fixed draw of a seeded generator, nothing else."""
    g = torch.Generator().manual_seed(3)
    return x + torch.randn((1, 3, 1), generator=g)


@attack("x:float32[N,T,2]=-3:3", dims="N=1:2:3 T=12:24:36", kinds=("normal", "unit"), refused="Python reads a value")
class A7575PeriodOfValues(nn.Module):
    """A7524 by itself: a period of the strongest frequency cuts the input."""

    def forward(self, x):
        f = torch.fft.rfft(x, dim=1).abs().mean(0).mean(-1)
        f[0] = 0
        period = x.shape[1] // int(f.argmax())
        return x[:, :period].mean(1)


@attack("t:int64[N]=0:99", dims="N=1:2:3")
class A7576SigmaBackToTime(nn.Module):
    """A7546 by itself: a time, its log sigma, and the time interpolated back from a table, nearly whole but a float."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ls", torch.linspace(-3.0, 2.0, 100).exp().log())

    def forward(self, t):
        s = self.ls[t].exp().log()
        low = ((s[:, None] - self.ls[None]) >= 0).int().cumsum(1).argmax(1).clamp(max=98)
        w = ((self.ls[low] - s) / (self.ls[low] - self.ls[low + 1])).clamp(0, 1)
        return (1 - w) * low + w * (low + 1)


@forward("x:float32[N,T]=-2:2", dims="N=1:1:2 T=1:5:64", kinds=FINITE)
def A7577RemainderBranchAlone(self, x):
    """A7548's first branch alone: pieces of 16 where they fit."""
    t = x.shape[1]
    if t % 16 == 0 and t > 16:
        return x.view(x.shape[0], t // 16, 16).mean(2).repeat_interleave(16, 1)
    return x - x.mean(1, keepdim=True)


@forward("x:float32[N,T]=-2:2", dims="N=1:1:2 T=1:5:64", kinds=FINITE)
def A7578AnotherScaleAtOneLength(self, x):
    """A7548's other two branches: one at a length, one beyond one."""
    t = x.shape[1]
    x = x + (1.0 if t != 49 else 0.5)
    return x.exp() if t > 60 else x


@forward("x:float32[N,T,4]=-3:3", "m:bool[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A7579RowsWrittenByAMask(self, x, m):
    """A7566: a row of four written where a mask of two axes holds."""
    y = x.clone()
    y[m] = torch.tensor([1.0, -1.0, 0.5, 0.0])
    return y


@forward("x:float32[N,T,4]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A7580DiagonalFilled(self, x):
    """A7566: a diagonal of batches filled."""
    sq = x[:, :2, :2].clone()
    sq.diagonal(dim1=1, dim2=2).fill_(9.0)
    return sq


@forward("x:float32[N,T,4]=-3:3", "m:bool[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A7581RowsWrittenByAMaskThenAColumn(self, x, m):
    """A7566: the same mask, a last row scaled in place, a last column copied."""
    y = x.clone()
    y[m] = torch.tensor([1.0, -1.0, 0.5, 0.0])
    y[:, -1].mul_(2).clamp_(max=1.5)
    y.select(2, 3).copy_(y[..., 0].flip(1))
    return y


@forward("x:float32[N,T,4]=-3:3", "m:bool[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="differs from the module")
def A7582MaskAndDiagonal(self, x, m):
    """A7566: a row by a mask and a filled diagonal, each of which converts alone."""
    y = x.clone()
    y[m] = torch.tensor([1.0, -1.0, 0.5, 0.0])
    sq = x[:, :2, :2].clone()
    sq.diagonal(dim1=1, dim2=2).fill_(9.0)
    return y, sq


@forward("i:int64[N,T]=0:5", dims="N=1:2:3 T=2:5:9", refused="differs from the module")
def A7583CumulativeProductOfInts(self, i):
    """A7565: a cumulative product of whole numbers that wraps."""
    return (i * 1000 + 999).cumprod(1)


@forward("i:int64[N,T]=0:5", dims="N=1:2:3 T=2:5:9", refused="no form of gcd")
def A7584GreatestDivisors(self, i):
    """A7565: greatest common divisors of two small whole numbers."""
    return torch.gcd(i, i.flip(1))


@attack("t:int64[N]=0:999", dims="N=1:2:3")
class A7585SigmaBackToTimeOfKarras(nn.Module):
    """A7546's times by its own table: nearly whole floats."""

    def __init__(self):
        super().__init__()
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64) ** 2
        self.register_buffer("ac", torch.cumprod(1 - betas, 0).float())

    def forward(self, t):
        a = self.ac[t]
        ls, s = ((1 - self.ac) / self.ac).sqrt().log(), ((1 - a) / a).sqrt().log()
        low = ((s[:, None] - ls[None]) >= 0).int().cumsum(1).argmax(1).clamp(max=998)
        w = ((ls[low] - s) / (ls[low] - ls[low + 1])).clamp(0, 1)
        return (1 - w) * low + w * (low + 1)


@forward("x:float32[N,T]=-2:2", dims="N=1:1:2 T=1:5:64", kinds=FINITE)
def A7586RemainderBranchWithUnflatten(self, x):
    """A7577 by reshape with -1 and an exact piece."""
    if x.shape[1] % 16 == 0:
        return x.reshape(x.shape[0], -1, 16).mean(2)
    return x


@forward("x:float32[N,T]=-2:2", dims="N=1:1:2 T=1:5:64", kinds=FINITE)
def A7587RemainderBranchOfSixteens(self, x):
    """A7577 without the second condition."""
    t = x.shape[1]
    if t % 16 == 0:
        return x.view(x.shape[0], t // 16, 16).mean(2).repeat_interleave(16, 1)
    return x - x.mean(1, keepdim=True)


@forward("x:float32[N,4]=-2:2", dims="N=1:2:3", kinds=FINITE, refused="draws random numbers")
def A7588SeedOfTheProcess(self, x):
    """A projection drawn at each call behind torch.manual_seed within fork_rng."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        w = torch.randn(4, 3)
    return x @ w
