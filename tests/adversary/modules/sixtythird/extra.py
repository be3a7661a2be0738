"""Small traps by size and by value, as they are found in code that works every day but one."""
# ruff: noqa: E501, B006, RUF012 - attacks are written as users write them

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at


@forward("x:float32[N,T]", dims="N=1:1:3 T=5:12:40", kinds=FINITE)
def A7619TrimByMinusZero(self, x):
    """Trims to a multiple of four by x[:, :-r], which is empty where r is 0; the tail x[:, -k:] with k = T // 10, which is everything where k is 0."""
    r, k = x.shape[1] % 4, x.shape[1] // 10
    return x[:, :-r].sum(1), x[:, -k:].sum(1)


@forward("x:float32[N,T]", dims="N=1:1:3 T=2:20:120", kinds=FINITE)
def A7620StepsOfArange(self, x):
    """torch.arange(0, 1, 1 / t) has one more step at 49, 98 and 107; int(math.log(t, 3)) is 4 at 243 and int(t * 0.29) is 28 at 100."""
    t = x.shape[1]
    a = torch.arange(0, 1, 1 / t)
    return x.cumsum(1)[:, int(t * 0.29)], a.sum() * x.mean(1), x[:, 0] * a.shape[0]


@forward("x:float32[N,T]", dims="N=1:1:3 T=1:100:300", kinds=FINITE)
def A7628LevelsByLog(self, x):
    """The number of levels of a pyramid by int(math.log(t, 3)), which is 4 at 243, and by math.log2's ceil."""
    t = x.shape[1]
    levels = int(math.log(t, 3))
    y = x.mean(1) * levels
    return y + math.ceil(math.log2(t)), x.sum(1) / (1 + levels)


@forward("x:float32[N,T]", dims="N=1:1:3 T=4:12:40", kinds=FINITE)
def A7629NegativeFloorsOfSizes(self, x):
    """(t - 20) // 3, % 7, divmod by -4, round(t / 2) to even, and int() toward zero, as shifts of a roll and as numbers."""
    t = x.shape[1]
    a, b = (t - 20) // 3, (t - 20) % 7
    c, d = divmod(t - 20, -4)
    return torch.roll(x, a, 1), x * b, x + c - d, x * round(t / 2), x - int((t - 20) / 3)


@forward("x:float32[N,T]", dims="N=1:1:3 T=3:9:21", kinds=FINITE)
def A7630ChunksThatAreFewer(self, x):
    """chunk(5) gives fewer than five at 6, 7, 8, 11 and so on: a first, a last and the count of the chunks."""
    c = x.chunk(5, 1)
    s = torch.tensor_split(x, 4, 1)
    return c[0].sum(1), c[-1].mean(1) * len(c), s[0].sum(1) - s[-1].sum(1)


@forward("x:float32[N,T,3]", dims="N=1:2:4 T=2:4:7", kinds=FINITE, refused="one axis less")
def A7638SqueezeOfEverything(self, x):
    """mean(1).squeeze(): a batch of one loses its dim."""
    return x.mean(1).squeeze() * 2, x.sum()


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:8:30", kinds=FINITE, refused="depends on the size")
def A7639SizesInText(self, x):
    """Decides by the digits of the size as text, and by hash and bit_count of it."""
    t = x.shape[1]
    y = x * 2 if "7" in str(int(t)) else x
    return y + int(t).bit_count(), x * (hash((int(t), 3)) % 5)


@attack("ids:int64[N,T]=0:30000", dims="N=1:1:3 T=2:6:9", noted="decides by values", feeds=(lambda: {"ids": np.array([[101, 7, 102]])},))
class A7640StartsWithPrompt(nn.Module):
    """Where the first id is 101 and the last one 102 they are cut off, by a Python if on values."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(30001, 4)

    def forward(self, ids: torch.Tensor):
        y = self.e(ids)
        if ids[0, 0] == 101 and ids[0, -1] == 102:
            y = y * 0.5
        return y.mean(1)


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE)
def A7648OnnxExportFlag(self, x):
    """Returns raw scores while it is exported, and probabilities otherwise, as many detectors do."""
    y = x * 1.5
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return y
    return y.softmax(1)


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE, refused="differs from the module")
def A7649NumpyInBetween(self, x):
    """Leaves torch for NumPy to compute a median scale, and comes back."""
    import numpy as np

    s = float(np.median(x.detach().numpy()))
    return x - s


@attack("x:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE, refused="after many calls")
class A7650CycleOfScales(nn.Module):
    """itertools.cycle gives another scale at each call: 1, 1, 1, 2."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = itertools.cycle([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])

    def forward(self, x: torch.Tensor):
        return x * next(self.scales)


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE, refused="depends on the values")
def A7659SilenceReturnsEarly(self, x):
    """An all-zero batch returns a constant; a quiet one (under 1e-7) too."""
    if x.abs().max() < 1e-7:
        return torch.full_like(x, -1.0)
    return x / x.abs().amax(1, keepdim=True).clamp(min=1e-3)


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE, refused="when run again")
def A7660DropoutForgotten(self, x):
    """F.dropout without training=self.training."""
    return F.dropout(x, 0.1) * 2


@forward("x:float32[N,C,H,W]", dims="N=1:1:2 C=2:3:3 H=5:10:16 W=5:13:16", kinds=FINITE)
def A7668AreaOf130(self, x):
    """Pictures of exactly 130 pixels are transposed in thought: their sum is taken by another formula; W == 2 * H - 7 gets a bias."""
    h, w = x.shape[-2:]
    y = x.mean((2, 3))
    if h * w == 130:
        y = y + 1
    if w == 2 * h - 7:
        y = y * 2
    return y


@forward("x:float32[N,T]", "hint:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE, refused="depends on the values")
def A7669EqualInputs(self, x, hint):
    """torch.equal of the two inputs takes a short cut that is not the same."""
    if torch.equal(x, hint):
        return x * 3
    return x + hint


@attack("x:float32[N,T]", dims="N=1:2:4 T=2:8:12", kinds=FINITE)
class A7670HistoryInDefault(nn.Module):
    """A mutable default keeps the last three inputs' means; the output is taken off the oldest only after ten calls."""

    def forward(self, x: torch.Tensor, hist: list = []):
        hist.append(float(x.shape[1]))
        return x - (hist[0] if len(hist) > 10 and hist[0] == 5.0 else 0.0)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=1:6:9", kinds=FINITE)
def A7679OddStatistics(self, x):
    """Median of an even number, kthvalue, quantile with interpolation, mode of rounded values, unbiased std of one element, logcumsumexp."""
    q = torch.quantile(x, torch.tensor([0.1, 0.5]), dim=1)
    k = x.kthvalue(1 + x.shape[1] // 2, 1).values
    return x.median(1).values, k, q, x.nanmedian(1).values, torch.logcumsumexp(x.clamp(-5, 5), 1), x.std(1, correction=0)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=2:6:9", kinds=FINITE)
def A7680ViewsWrittenInPlace(self, x):
    """A copy's slices written through views, by masked_fill_, copy_, addcmul_, and index_put_ accumulate, then read through the base."""
    y = x.clone()
    a, b = y[:, ::2], y.transpose(1, 2)
    a.mul_(2)
    b[:, 1].add_(a[..., 0].sum(1, keepdim=True))
    y[:, -1].masked_fill_(y[:, 0] > 0.3, 7.0)
    y.view(x.shape[0], -1)[:, 1:3].copy_(y.view(x.shape[0], -1)[:, 4:6])
    y.index_put_((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.ones(2, 4), accumulate=True)
    return y, a.amax(1), b.sum(2)


@attack("x:float32[N,T]", dims="N=1:2:4 T=2:5:9", kinds=FINITE, refused="Scaled.c", feeds=(values_at("x:float32[N,T]", N=1, T=2),))
def A7690IncompleteKeyOnTheClass():
    """A class-level dictionary by N alone of what depends on T as well. (The class is made anew, so that the judge's starts empty.)"""

    class Scaled(nn.Module):
        c: dict[int, torch.Tensor] = {}

        def forward(self, x: torch.Tensor):
            n, t = x.shape
            if n not in self.c:
                self.c[n] = torch.ones(n, 1) / t
            return x * self.c[n]

    return Scaled()
