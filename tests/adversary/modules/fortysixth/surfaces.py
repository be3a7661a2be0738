# ruff: noqa: E501 - attacks are written as users write them
"""Variants: what goes in and comes out in odd ways, guards for nothing, cuts that may be none."""

from __future__ import annotations

import enum
import functools
from collections import namedtuple

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq, two
from tests.adversary.values import values_at

YS = "y:float32[N,S,4]"


@forward(X4, "s:float32[]", **seq(X4, "s:float32[]"))
def A5501ScalarIn(self, x, s):
    """A scalar comes in and goes out, with the same tensor twice and a constant."""
    return x * s, s, x, x, torch.ones(2), s.reshape(1), x.new_tensor(x.shape[1])
@forward(X4, YS, **two(X4, YS))
def A5502ManyOfOneName(self, *xs):
    """Any number of inputs, stacked where their sizes agree."""
    same = len({v.shape for v in xs}) == 1
    return torch.stack(xs).sum(0).mean(1) if same else sum(v.mean(1) for v in xs)
@forward(X4, **seq(X4))
def A5503NestedOut(self, x):
    """Nothing, text and numbers between tensors, in dictionaries of lists of tuples."""
    P = namedtuple("P", "a b")
    return {"a": [x, None, (x + 1,)], "b": P(x.sum(1), {"z": x[:, :1], "y": x[:, -1:]}), "c": ()}
class Mode(enum.Enum):
    """Ways."""

    SHORT, LONG = 1, 2
@forward(X4, **seq(X4))
def A5504EnumBySize(self, x):
    """An enumeration chosen by a size through a dispatcher of single types."""
    mode = Mode(1 + (x.shape[1] > 16))
    @functools.singledispatch
    def run(m, v):
        return v
    @run.register
    def _(m: Mode, v):
        return v * 2 if m is Mode.LONG else v + 1
    return run(mode, x)
@forward("x:float16[N,T,4]", **seq("x:float16[N,T,4]"))
def A5505HalvesIn(self, x):
    """Halves come in, sums are of floats, a mean of halves goes out."""
    return x.float().sum(1), x.mean(1), (x * 3 - x * 2), x.softmax(-1)
@forward("x:uint8[N,T,4]=0:255", "b:bool[N,T]", **seq("x:uint8[N,T,4]=0:255", "b:bool[N,T]"))
def A5506BytesAndFlagsIn(self, x, b):
    """Bytes and flags come in: means, sums, masks of bytes, differences with floats and with flags."""
    return x.float().mean(1), x.sum(1), x * b[..., None], (x > 127) ^ b[..., None], b.sum(1), b.float().cumsum(1), torch.where(b[..., None], x, 255 - x), x / 2, x // 2 - 1, b.long() - 1
@forward("i:int32[N,T]=-9:9", **seq("i:int32[N,T]=-9:9"), refused="the exported model differs from the module")
def A5507IntsPromoted(self, i):
    """Types of sums of int32 with others."""
    return i + 1, i / 2, i * 0.5, i.sum(1), i.float().mean(1), i.cumsum(1), i.prod(1) % 7, i + torch.tensor(3), i + torch.tensor([3.5]), i.abs().float().sqrt(), torch.cat([i, i.long()], 1), torch.where(i > 0, i, 0), torch.where(i > 0, 1.5, i), i ** 2, i.max(1).values, i.clamp(min=0.5), torch.arange(i.shape[1], dtype=i.dtype) - i, i.bitwise_and(6)
@forward(X4, **seq(X4))
def A5508CutByPadding(self, x):
    """Cut back to the length, by its end where there is a padding."""
    t = x.shape[1]
    pad = (8 - t % 8) % 8
    y = F.pad(x, (0, 0, 0, pad)).view(x.shape[0], -1, 8, 4).softmax(2).flatten(1, 2)
    if pad > 0:
        y = y[:, :-pad]
    return y
@forward(X4, YS, **two(X4, YS, zero=True))
def A5509MemoryOrNone(self, x, y):
    """A memory is joined where there is one."""
    if y.size(1) > 0:
        x = torch.cat([y, x], dim=1)
    return x.cumsum(1)[:, -1]
@forward(X4, YS, **two(X4, YS, zero=True))
def A5510NothingSkipped(self, x, y):
    """Prompts are added where there are any, by a mean of them."""
    return x + y.mean(1, keepdim=True) if len(y[0]) else x
@forward(X4, YS, **two(X4, YS, zero=True))
def A5511LoopOverNone(self, x, y):
    """A step for each of the others, which may be none."""
    for v in y.unbind(1):
        x = (x + v[:, None]).tanh()
    return x
@forward(X4, YS, **two(X4, YS, zero=True), refused="the path through the module depends on the size")
def A5512NoneAndOne(self, x, y):
    """None, one and many are three ways."""
    s = y.shape[1]
    if s == 0:
        return x.mean(1)
    if s == 1:
        return y[:, 0] - x[:, 0]
    return y.amax(1) + x[:, -1]
@forward(X4, **seq(X4))
def A5513OneFrameOtherwise(self, x):
    """A deviation where there are two frames, zeros for one."""
    std = x.std(1) if x.shape[1] > 1 else torch.zeros_like(x[:, 0])
    return torch.cat([x.mean(1), std], -1)
@forward(X4, **seq(X4))
def A5514SqueezedAway(self, x):
    """Squeezes of all that is one, which at one frame is the time too."""
    y = x.squeeze(1)
    return (y if y.dim() == 3 else y[:, None]) + x.mean(1, keepdim=True), x[..., :1].squeeze(-1)
@forward("x:float32[N,T,C]", dims="N=1:2:3 T=1:5:9 C=1:4:9", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,C]", N=n, T=t, C=c) for n in (1, 2, 3) for t in range(1, 10) for c in range(1, 10)))
def A5515ChannelsLastGuessed(self, x):
    """Which axis is the channels is guessed by what is smaller."""
    if x.shape[1] < x.shape[2]:
        x = x.transpose(1, 2)
    return x.flatten(1), x.mean(1)
@forward("x:float32[A,B]", "y:float32[B,C]", dims="A=1:3:40 B=1:5:40 C=1:4:40", kinds=("normal",), feeds=tuple(values_at("x:float32[A,B]", "y:float32[B,C]", A=int(a), B=int(b), C=int(c)) for a, b, c in np.random.default_rng(2).integers(1, 41, (300, 3))))
def A5516ThreeSizesByRemainders(self, x, y):
    """Three sizes: products, rows by remainders, and the shape of a table by their quotient."""
    a, b, c = x.shape[0], x.shape[1], y.shape[1]
    z = x @ y
    return z, z[(a * b) % a - 1], F.pad(z, (0, b % 3, a % 2, 0)), z.flatten()[:: max(1, (a * c) // (b + 7))], x[:, (a + c) % b], z.reshape(-1)[a * c // 2 - (a * c // 3) :]
@forward(X4, **seq(X4))
def A5517HalvesOfBoth(self, x):
    """Halves of a length from both ends overlap at odd lengths; thirds by ceil; a middle frame."""
    t = x.shape[1]
    h = -(-t // 2)
    return x[:, :h] + x[:, -h:], x[:, t // 2], x[:, (t - 1) // 2], torch.cat([c.mean(1) for c in x.chunk(3, 1)], 0), x[:, t - h : t - h + 1]
@forward(X4, **seq(X4), refused="the path through the module depends on the size")
def A5518ChunksOfAQuarter(self, x):
    """At most four chunks, whose number varies with the length; the last one and how many."""
    parts = x.chunk(4, 1)
    return parts[-1].sum(1), parts[0].mean(1) * len(parts), torch.stack([p.amax(1) for p in parts], 1).cumsum(1)[:, -1]
@forward("i:int64[N,T]=0:9", **seq("i:int64[N,T]=0:9"))
def A5519RunsOfTokens(self, i):
    """Lengths of runs: each place within its run, by a running maximum of where runs begin."""
    t = torch.arange(i.shape[1]).expand_as(i)
    start = torch.cat([torch.ones_like(i[:, :1], dtype=torch.bool), i[:, 1:] != i[:, :-1]], 1)
    begin = torch.where(start, t, 0).cummax(1).values
    run = start.cumsum(1) - 1
    return t - begin, run, torch.zeros_like(i).scatter_add(1, run, torch.ones_like(i)), torch.zeros_like(i).scatter_reduce(1, run, i, "amax")
@forward(X4, "i:int64[N,T]=0:39", **seq(X4, "i:int64[N,T]=0:39"))
def A5520GraphOfEdges(self, x, i):
    """A graph network: messages over edges are softmaxed by target, degrees, a loop's removal."""
    n, t, c = x.shape
    src, dst = i % t, torch.arange(t).expand(n, t)
    ok = (src != dst).float()
    e = (x.gather(1, src[..., None].expand(-1, -1, c)) * x).sum(-1)
    top = torch.full((n, t), -torch.inf).scatter_reduce(1, src, e, "amax")
    w = (e - top.gather(1, src)).exp() * ok
    den = torch.zeros(n, t).scatter_add(1, src, w)
    return torch.zeros_like(x).scatter_add(1, src[..., None].expand(-1, -1, c), x * (w / (den.gather(1, src) + 1e-16))[..., None]), torch.zeros(n, t).scatter_add(1, src, ok).clamp(min=1).pow(-0.5)
