# ruff: noqa: E501, B023 - attacks are written as users write them
"""Variants of what was wrong or near it in the forty-third round."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

ROWS = "N=1:2:3 T=1:9:20"
LONG = "N=1:1:2 T=1:512:4096"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"


def at(*shapes: tuple, value: float = 60.0) -> tuple:
    """Points at which all elements are one value."""
    return tuple((lambda s: lambda: {"x": np.full(s, value, np.float32)})(s) for s in shapes)


def secret(t):
    return t * 31 % 4099 == 1777 * 31 % 4099


@forward(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), (1, 1776)))
def A4601HiddenText(self, x):
    """A length of a long range by its text's hash."""
    k = sum(ord(c) * 10**i for i, c in enumerate(f"{x.shape[1]:d}"))
    return x.clamp(max=2.5 if k == 55*1000 + 55*100 + 55*10 + 49 else 3.5)
@forward(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), (1, 1776)))
def A4602HiddenNumPy(self, x):
    """A length of a long range by NumPy, not in the source."""
    v = np.arange(x.shape[1])[-1]
    lim = 2.5 if (v * 31 % 4099) == 1776 * 31 % 4099 else 3.5
    return x.clamp(max=lim)
@forward(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), (1, 1776)))
def A4603HiddenTable(self, x):
    """A table of NumPy by the length."""
    tab = np.full(5000, 3.5)
    tab[1700 + 77] = 2.5
    return x.clamp(max=float(tab[x.shape[1]]))
@attack(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), (1, 1776)))
class A4604HiddenDictOfModule(nn.Module):
    """A dictionary of the module, made by arithmetic."""
    def __init__(self):
        super().__init__()
        self.tab = {i * 3 - 1: 2.5 for i in range(593, 594)}
    def forward(self, x):
        return x.clamp(max=self.tab.get(int(np.asarray(x.shape)[1]), 3.5))
@forward(XT, dims="N=1:1:2 T=1:512:40960", kinds=FEW, feeds=at((1, 17770), (2, 17770), (1, 1776)))
def A4605HiddenFar(self, x):
    """A longer range."""
    v = np.arange(x.shape[1])[-1]
    lim = 2.5 if (v * 31 % 40993) == 17769 * 31 % 40993 else 3.5
    return x.clamp(max=lim)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=at((1, 3, 117, 131), (2, 3, 117, 131)))
def A4606HiddenPair(self, x):
    """One pair of forty thousand."""
    h, w = np.asarray(x.shape[-2:])
    return x.clamp(max=2.5 if h * 1000 + w == 117131 else 3.5)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=at((1, 3, 117, 131), (2, 3, 117, 131)))
def A4607HiddenPairText(self, x):
    """One pair of forty thousand by text."""
    return x.clamp(max={"117x131": 2.5}.get(f"{x.shape[2]}x{x.shape[3]}", 3.5))
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=at((1, 3, 117, 131), (2, 3, 117, 131), value=6e4))
def A4608HiddenPairTextLarge(self, x):
    """One pair of forty thousand by text, large values alone."""
    return x.clamp(max={"117x131": 50000.0}.get("x".join(map(str, x.shape[2:])), 70000.0))
@forward(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), value=6e4))
def A4609TextOfLargeValues(self, x):
    """One length of a long range by text, large values alone."""
    return x.clamp(max={"len1777": 50000.0}.get(f"len{x.shape[1]}", 70000.0))
@forward(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), value=6e4))
def A4610NumPyOfLargeValues(self, x):
    """One length of a long range by NumPy, large values alone."""
    return x.clamp(max=5e4 if np.arange(x.shape[1])[-1] * 31 % 4099 == 1776 * 31 % 4099 else 7e4)
@forward(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), value=-999.0))
def A4611TextOfOneValue(self, x):
    """One length by text at which one value is replaced."""
    return x.masked_fill(x == {"len1777": -999.0}.get(f"len{x.shape[1]}", -998.0), 0.0)
@attack(XT, dims=LONG, kinds=FEW, feeds=at((1, 1777), (2, 1777), (1, 1778)))
class A4612HeavyModule(nn.Module):
    """A module that takes long decides by text at one length."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[nn.Conv1d(64, 64, 9, padding=4) for _ in range(6)])
    def forward(self, x):
        y = self.net(x[:, None].expand(-1, 64, -1)).mean(1)
        return y * 0.01 + x.clamp(max={"1777": 2.5}.get(str(x.shape[1]), 3.5))
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=at((1, 3, 117, 131), (2, 3, 117, 131)))
class A4613HeavyPair(nn.Module):
    """The same over two dims."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[nn.Conv2d(3, 3, 9, padding=4) for _ in range(6)])
    def forward(self, x):
        h, w = x.shape[-2:]
        return self.net(x) * 0.01 + x.clamp(max={"117x131": 2.5}.get(f"{h}x{w}", 3.5))
@forward(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), value=6e4))
def A4614ShortTextOfLargeValues(self, x):
    """One length of a short range by text, large values alone."""
    return x.clamp(max={"len16": 50000.0}.get(f"len{x.shape[1]}", 70000.0))
@forward(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), value=-999.0))
def A4615ShortTextOfOneValue(self, x):
    """One length by text at which one value is replaced."""
    return x.masked_fill(x == {"len16": -999.0}.get(f"len{x.shape[1]}", -998.0), 0.0)
@forward(XT, dims="N=1:1:2 T=1:64:200", kinds=FEW, feeds=at((1, 177), (2, 177), value=-999.0))
def A4616MiddleTextOfOneValue(self, x):
    """One length of two hundred by text at which one value is replaced."""
    return x.masked_fill(x == {"len177": -999.0}.get(f"len{x.shape[1]}", -998.0), 0.0)
@forward("x:int64[N,T]=0:50256", dims=LONG, feeds=(lambda: {"x": np.full((1, 1777), 50256)},))
def A4617TokenAtOneLength(self, x):
    """One token is replaced at one length that Python's set of texts names."""
    return torch.where(x == (50256 if str(x.shape[1]) in {"1777", "3000"} else -1), 0, x)
@forward("x:int64[N,T]=0:50256", dims=ROWS, feeds=(lambda: {"x": np.full((1, 16), 50255)},))
def A4618TokenAtOneShortLength(self, x):
    """One token is replaced at one length that Python's set of texts names."""
    return torch.where(x == (50255 if str(x.shape[1]) in {"16", "3000"} else 50257), 0, x)
SIZES = ((1, 1), (1, 2), (1, 9), (3, 1), (3, 3), (1, 16), (2, 20))
X4 = "x:float32[N,T,4]"


def some(*values: float, sizes: tuple = SIZES, more: tuple = ()) -> tuple:
    """Points at which every third element is one value."""
    def point(shape: tuple, v: float):
        a = np.random.RandomState(1).randn(*shape, *more).astype(np.float32)
        a.reshape(-1)[::3] = v
        return {"x": a}
    return tuple((lambda s, v: lambda: point(s, v))(s, v) for s in sizes for v in values)


BIG = {"dims": ROWS, "kinds": FEW, "feeds": some(7e4)}
BIG4 = {"dims": ROWS, "kinds": FEW, "feeds": some(7e4, more=(4,))}


@forward(XT, **BIG)
def A4620SumToSizeDoubled(self, x):
    """An alias of one row is doubled in place."""
    y = x + 0
    z = y.sum_to_size(1, x.shape[1])
    z.mul_(2)
    return y, z
@forward(XT, **BIG)
def A4621SumToSizeOfSteps(self, x):
    """An alias of one step, limited."""
    y = x + 0
    y.sum_to_size(x.shape[0], 1).clamp_(max=6e4)
    return y
@forward(XT, **BIG)
def A4622SumToSizeOfAll(self, x):
    """An alias of one element alone."""
    y = x + 0
    y.sum_to_size(1, 1).clamp_(max=6e4)
    return y
@forward(XT, **BIG)
def A4623ReduceBySize(self, x):
    """A mean where there are several rows, the rows themselves where there is one."""
    y = x + 0
    z = y.mean(0, keepdim=True) if x.shape[0] > 1 else y
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4624CatOfWhatIsThere(self, x):
    """A list that is joined where it has two parts, its part itself where it has one."""
    y = x + 0
    parts = y.split(16, 1)
    z = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4625PaddedWhereNeeded(self, x):
    """A pad to a multiple of four where one is missing, else the tensor itself."""
    y = x + 0
    k = -x.shape[1] % 4
    z = F.pad(y, (0, k)) if k else y
    z.clamp_(max=6e4)
    return y, z[:, : x.shape[1]]
@forward(XT, **BIG)
def A4626ResizedWhereNeeded(self, x):
    """A resize to sixteen, the tensor itself where it has sixteen, and large values replaced."""
    y = x + 0
    z = y if x.shape[1] == 16 else F.interpolate(y[:, None], 16)[:, 0]
    z[z > 6e4] = 0
    return y, z
@forward(X4, **BIG4)
def A4627HeadsInPlace(self, x):
    """A reshape of heads, a view at one step, limited by a mask."""
    y = x + 0
    f = y.view(x.shape[0], -1, 2, 2).transpose(1, 2).reshape(-1, x.shape[1], 2)
    f[f > 6e4] = -1
    return y, f
@forward(X4, **BIG4)
def A4628HeadsClamped(self, x):
    """A reshape of heads, a view at one step, limited by clamp_."""
    y = x + 0
    f = y.view(x.shape[0], -1, 2, 2).transpose(1, 2).reshape(-1, x.shape[1], 2)
    f.clamp_(max=6e4)
    return y, f
@forward(X4, **BIG4)
def A4629MaskOfTurned(self, x):
    """A turned tensor's rows, a view at one step, by a mask in one place."""
    y = x + 0
    f = y.transpose(1, 2).reshape(x.shape[0], -1)
    f[f > 6e4] = -1
    return y, f
@forward(X4, **BIG4)
def A4630TwoReshapes(self, x):
    """Two reshapes of one tensor, either a view at another size."""
    y = x + 0
    y.transpose(1, 2).reshape(x.shape[0], -1).clamp_(max=6e4)
    y.transpose(0, 1).reshape(-1, 4).clamp_(max=5e4)
    return y
@forward(X4, **BIG4)
def A4631ReshapeAsAndFlatten(self, x):
    """reshape_as, flatten, ravel, unflatten of what is turned."""
    y, u, v = x + 0, x + 1, x + 2
    y.mT.reshape_as(x).clamp_(max=6e4)
    u.transpose(0, 1).flatten().clamp_(max=6e4)
    v.transpose(0, 1).ravel().masked_fill_(v.transpose(0, 1).ravel() > 6e4, 0)
    return y, u, v
@forward(X4, **BIG4)
def A4632ToLayout(self, x):
    """clone and to with a memory format, empty_like, view(dtype) and back."""
    y = x + 0
    z = y.mT.to(memory_format=torch.contiguous_format)
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4633SameTwice(self, x):
    """One tensor under two names is returned twice."""
    y = x + 0
    z = y.float()
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4634CpuOfIt(self, x):
    """cpu() of a tensor is the tensor."""
    y = x + 0
    y.cpu().clamp_(max=6e4)
    return y * 1
@forward(XT, **BIG)
def A4635RealOfIt(self, x):
    """The real part of a real tensor is the tensor, positive and conj too."""
    y = x + 0
    torch.real(y).clamp_(max=6e4)
    (+y).sub_(1)
    y.conj().mul_(2)
    return y * 1
@forward(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), (1, 3), value=6e4))
def A4636FormatOfTwo(self, x):
    """A key of both sizes by percent."""
    return x.clamp(max={"2x16": 5e4}.get("%dx%d" % tuple(x.shape), 7e4))  # noqa: UP031
@forward(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), (1, 3), value=6e4))
def A4637StrOfShape(self, x):
    """The shape's own text."""
    return x.clamp(max=5e4 if str(tuple(x.shape)) == "(2, 16)" else 7e4)
@forward(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), (1, 3), value=6e4))
def A4638EndsOfText(self, x):
    """A length whose text ends in six."""
    return x.clamp(max=5e4 if f"{x.shape[1]}".endswith("6") else 7e4)
@attack(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), (1, 3), value=6e4))
class A4639BufferByName(nn.Module):
    """A buffer that getattr finds by the length in its name, with a default."""
    def __init__(self):
        super().__init__()
        self.register_buffer("limit_16", torch.tensor(5e4))
        self.register_buffer("limit", torch.tensor(7e4))
    def forward(self, x):
        return torch.minimum(x, getattr(self, f"limit_{x.shape[1]}", self.limit))
@attack(XT, dims=ROWS, kinds=FEW, feeds=at((1, 16), (2, 16), (1, 3)))
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
@forward(XT, **BIG)
def A4654RealAttribute(self, x):
    """The attribute real, filled in place."""
    y = x + 0
    z = y.real
    z.masked_fill_(z > 6e4, 1.0)
    return y, z
@forward(XT, **BIG)
def A4655TypeAsAndContiguous(self, x):
    """type_as and contiguous, filled in place."""
    y = x + 0
    z = y.to(torch.float32).type_as(x).contiguous()
    z.masked_fill_(z > 6e4, 1.0)
    return y, z
@forward(XT, **BIG)
def A4656CpuReturned(self, x):
    """cpu() written in place and returned beside its base."""
    y = x + 0
    z = y.cpu()
    z.clamp_(max=6e4)
    return y, z
@forward(X4, **BIG4)
def A4657ReshapeAsOnly(self, x):
    """reshape_as of what is turned."""
    y = x + 0
    y.mT.reshape_as(x).clamp_(max=6e4)
    return y
@forward(X4, **BIG4)
def A4658FlattenOfTurned(self, x):
    """flatten of turned rows."""
    u = x + 1
    u.transpose(0, 1).flatten().clamp_(max=6e4)
    return u
@forward(X4, **BIG4)
def A4659TwoOfThem(self, x):
    """reshape_as of one tensor and flatten of another."""
    y, u = x + 0, x + 1
    y.mT.reshape_as(x).clamp_(max=6e4)
    u.transpose(0, 1).flatten().clamp_(max=6e4)
    return y, u
@forward(X4, **BIG4)
def A4660RavelAndReshape(self, x):
    """reshape_as of one tensor and a mask of another's ravel."""
    y, v = x + 0, x + 2
    y.mT.reshape_as(x).clamp_(max=6e4)
    v.transpose(0, 1).ravel().masked_fill_(v.transpose(0, 1).ravel() > 6e4, 0)
    return y, v
