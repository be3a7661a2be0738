# ruff: noqa: E501 - attacks are written as users write them
"""Variants of what was wrong or near it in the forty-third round."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import constant

ROWS = "N=1:2:3 T=1:9:20"
LONG = "N=1:1:2 T=1:512:4096"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"


def secret(t):
    return t * 31 % 4099 == 1777 * 31 % 4099


@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1776)), refused="the path through the module depends on the size")
def A4601HiddenText(self, x):
    """A length of a long range by its text's hash."""
    k = sum(ord(c) * 10**i for i, c in enumerate(f"{x.shape[1]:d}"))
    return x.clamp(max=2.5 if k == 55*1000 + 55*100 + 55*10 + 49 else 3.5)
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1776)), refused="the path through the module depends on the size")
def A4602HiddenNumPy(self, x):
    """A length of a long range by NumPy, not in the source."""
    v = np.arange(x.shape[1])[-1]
    lim = 2.5 if (v * 31 % 4099) == 1776 * 31 % 4099 else 3.5
    return x.clamp(max=lim)
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1776)), refused="the exported model differs from the module")
def A4603HiddenTable(self, x):
    """A table of NumPy by the length."""
    tab = np.full(5000, 3.5)
    tab[1700 + 77] = 2.5
    return x.clamp(max=float(tab[x.shape[1]]))
@attack(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1776)), refused="the module looks its size up in a table")
class A4604HiddenDictOfModule(nn.Module):
    """A dictionary of the module, made by arithmetic."""
    def __init__(self):
        super().__init__()
        self.tab = {i * 3 - 1: 2.5 for i in range(593, 594)}
    def forward(self, x):
        return x.clamp(max=self.tab.get(int(np.asarray(x.shape)[1]), 3.5))
@forward(XT, dims="N=1:1:2 T=1:512:40960", kinds=FEW, feeds=constant((1, 17770), (2, 17770), (1, 1776)))
def A4605HiddenFar(self, x):
    """A longer range."""
    v = np.arange(x.shape[1])[-1]
    lim = 2.5 if (v * 31 % 40993) == 17769 * 31 % 40993 else 3.5
    return x.clamp(max=lim)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=constant((1, 3, 117, 131), (2, 3, 117, 131)), refused="the path through the module depends on the size")
def A4606HiddenPair(self, x):
    """One pair of forty thousand."""
    h, w = np.asarray(x.shape[-2:])
    return x.clamp(max=2.5 if h * 1000 + w == 117131 else 3.5)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=constant((1, 3, 117, 131), (2, 3, 117, 131)), refused="the exported model differs from the module")
def A4607HiddenPairText(self, x):
    """One pair of forty thousand by text."""
    return x.clamp(max={"117x131": 2.5}.get(f"{x.shape[2]}x{x.shape[3]}", 3.5))
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=constant((1, 3, 117, 131), (2, 3, 117, 131), value=6e4))
def A4608HiddenPairTextLarge(self, x):
    """One pair of forty thousand by text, large values alone."""
    return x.clamp(max={"117x131": 50000.0}.get("x".join(map(str, x.shape[2:])), 70000.0))
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), value=6e4))
def A4609TextOfLargeValues(self, x):
    """One length of a long range by text, large values alone."""
    return x.clamp(max={"len1777": 50000.0}.get(f"len{x.shape[1]}", 70000.0))
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), value=6e4))
def A4610NumPyOfLargeValues(self, x):
    """One length of a long range by NumPy, large values alone."""
    return x.clamp(max=5e4 if np.arange(x.shape[1])[-1] * 31 % 4099 == 1776 * 31 % 4099 else 7e4)
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), value=-999.0), refused="by the text of a size")
def A4611TextOfOneValue(self, x):
    """One length by text at which one value is replaced."""
    return x.masked_fill(x == {"len1777": -999.0}.get(f"len{x.shape[1]}", -998.0), 0.0)
@attack(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1778)), refused="the exported model differs from the module")
class A4612HeavyModule(nn.Module):
    """A module that takes long decides by text at one length."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[nn.Conv1d(64, 64, 9, padding=4) for _ in range(6)])
    def forward(self, x):
        y = self.net(x[:, None].expand(-1, 64, -1)).mean(1)
        return y * 0.01 + x.clamp(max={"1777": 2.5}.get(str(x.shape[1]), 3.5))
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=constant((1, 3, 117, 131), (2, 3, 117, 131)), refused="the exported model differs from the module")
class A4613HeavyPair(nn.Module):
    """The same over two dims."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[nn.Conv2d(3, 3, 9, padding=4) for _ in range(6)])
    def forward(self, x):
        h, w = x.shape[-2:]
        return self.net(x) * 0.01 + x.clamp(max={"117x131": 2.5}.get(f"{h}x{w}", 3.5))
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), value=6e4))
def A4614ShortTextOfLargeValues(self, x):
    """One length of a short range by text, large values alone."""
    return x.clamp(max={"len16": 50000.0}.get(f"len{x.shape[1]}", 70000.0))
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), value=-999.0))
def A4615ShortTextOfOneValue(self, x):
    """One length by text at which one value is replaced."""
    return x.masked_fill(x == {"len16": -999.0}.get(f"len{x.shape[1]}", -998.0), 0.0)
@forward(XT, dims="N=1:1:2 T=1:64:200", kinds=FEW, feeds=constant((1, 177), (2, 177), value=-999.0))
def A4616MiddleTextOfOneValue(self, x):
    """One length of two hundred by text at which one value is replaced."""
    return x.masked_fill(x == {"len177": -999.0}.get(f"len{x.shape[1]}", -998.0), 0.0)
@forward("x:int64[N,T]=0:50256", dims=LONG, feeds=(lambda: {"x": np.full((1, 1777), 50256)},), refused="the path through the module depends on the size")
def A4617TokenAtOneLength(self, x):
    """One token is replaced at one length that Python's set of texts names."""
    return torch.where(x == (50256 if str(x.shape[1]) in {"1777", "3000"} else -1), 0, x)
@forward("x:int64[N,T]=0:50256", dims=ROWS, feeds=(lambda: {"x": np.full((1, 16), 50255)},))
def A4618TokenAtOneShortLength(self, x):
    """One token is replaced at one length that Python's set of texts names."""
    return torch.where(x == (50255 if str(x.shape[1]) in {"16", "3000"} else 50257), 0, x)
X4 = "x:float32[N,T,4]"


@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), (1, 3), value=6e4))
def A4636FormatOfTwo(self, x):
    """A key of both sizes by percent."""
    return x.clamp(max={"2x16": 5e4}.get("%dx%d" % tuple(x.shape), 7e4))  # noqa: UP031
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), (1, 3), value=6e4))
def A4637StrOfShape(self, x):
    """The shape's own text."""
    return x.clamp(max=5e4 if str(tuple(x.shape)) == "(2, 16)" else 7e4)
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), (1, 3), value=6e4))
def A4638EndsOfText(self, x):
    """A length whose text ends in six."""
    return x.clamp(max=5e4 if f"{x.shape[1]}".endswith("6") else 7e4)
@attack(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), (1, 3), value=6e4))
class A4639BufferByName(nn.Module):
    """A buffer that getattr finds by the length in its name, with a default."""
    def __init__(self):
        super().__init__()
        self.register_buffer("limit_16", torch.tensor(5e4))
        self.register_buffer("limit", torch.tensor(7e4))
    def forward(self, x):
        return torch.minimum(x, getattr(self, f"limit_{x.shape[1]}", self.limit))
@attack(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 16), (2, 16), (1, 3)), refused="the path through the module depends on the size")
class A4640HeadByName(nn.Module):
    """A head of a ModuleDict by the length's text, a common one where there is none."""
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"16": nn.Conv1d(1, 1, 1), "any": nn.Conv1d(1, 1, 1)})
    def forward(self, x):
        k = str(x.shape[1])
        return self.heads[k if k in self.heads else "any"](x[:, None])
NAN = (lambda: {"x": np.array([[0.0, -0.0, 1, np.nan, -1, 3, np.inf, -np.inf]], np.float32)},)


@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4641BucketOfNaN(self, x):
    """A bucket of what is not a number is the last."""
    return torch.bucketize(x, torch.tensor([-1.0, 0.0, 2.5]))
@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4642BucketOfNaNRight(self, x):
    """The same from the right."""
    return torch.bucketize(x, torch.tensor([-1.0, 0.0, 2.5]), right=True)
@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4643SearchOfNaN(self, x):
    """searchsorted in edges."""
    return torch.searchsorted(torch.tensor([-1.0, 0.0, 2.5]), x)
@attack(XT, dims=ROWS, kinds=FEW, feeds=NAN)
class A4644EmbeddedBucket(nn.Module):
    """An embedding of a bucket, the edges a buffer."""
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.linspace(-2, 2, 5))
        self.emb = nn.Embedding(6, 3)
    def forward(self, x):
        return self.emb(torch.bucketize(x, self.edges))
@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4645ClampedZero(self, x):
    """One over a clamped zero keeps its sign."""
    return 1 / x.clamp(min=0.0)
@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4646ReluOfZero(self, x):
    """One over relu's zero."""
    return 1 / F.relu(x)
@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4647AngleOfClamped(self, x):
    """atan2 of a clamped zero and minus one."""
    return torch.atan2(x.clamp(0.0, 1.0), -torch.ones_like(x))
@forward(XT, dims=ROWS, kinds=FEW, feeds=NAN)
def A4648SignbitOfClamped(self, x):
    """The sign bit of a clamped zero."""
    return torch.signbit(x.clamp(max=0.0)), torch.signbit(x.clamp(-1, 0.0))
@forward(X4, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.full((1, 3, 4), 3e19, np.float32)}, lambda: {"x": np.full((1, 3, 4), 1e10, np.float32)}))
def A4649LargeLayerNorm(self, x):
    """A layer norm of large rows."""
    return F.layer_norm(x, (4,))
@forward(X4, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[[3e19, -3e19, 1e19, 0]]], np.float32)}, lambda: {"x": np.array([[[1e19, 1e19, 1e19, 2e18]]], np.float32)}))
def A4650LargeGroupNorm(self, x):
    """Group norm and variances of large rows."""
    return F.group_norm(x.mT, 2), x.var(-1), x.std(1, unbiased=False)
@attack(X4, dims=ROWS, kinds=FEW)
class A4651FullInALoop(nn.Module):
    """A full of a whole number over 2^24 within a loop, in whole numbers."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        k = torch.full((x.shape[0],), 16777216)
        h = x[:, 0]
        for t in range(x.shape[1]):
            k = k + 1
            h = torch.tanh(self.lin(h)) + x[:, t] * (k % 2)[:, None]
        return h
@attack(X4, dims=ROWS, kinds=FEW)
class A4652FullFlags(nn.Module):
    """A full of a flag within a loop, used as a mask and counted."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        done = torch.full((x.shape[0],), False)
        n = torch.full((x.shape[0],), 7)
        h = x[:, 0]
        for t in range(x.shape[1]):
            done = done | (h[:, 0] > 1)
            h = torch.where(done[:, None], h, torch.tanh(self.lin(h)) + x[:, t])
            n = n // 2 + t
        return h, (n / 2).float(), (n * 0.3).long()
@attack(X4, dims=ROWS, kinds=FEW)
class A4653FullCast(nn.Module):
    """A full of a large whole number, cast behind the loop."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        k = torch.full((x.shape[0],), 123456789)
        h = x[:, 0]
        for t in range(x.shape[1]):
            h = torch.tanh(self.lin(h)) + x[:, t]
            k = torch.where(h[:, 0] > 0, k, k - 1)
        return h, k.long(), (k % 1000).int()
