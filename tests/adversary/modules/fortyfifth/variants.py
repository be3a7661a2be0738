# ruff: noqa: E501 - attacks are written as users write them
"""What was refused, one construct at a time, and what lies beside it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "halves", "ones", "zeros")
X4, IMAGE, XT, IT = "x:float32[N,T,4]", "x:float32[N,2,H,W]", "x:float32[N,T]", "i:int64[N,T]=-40000:40000"


def seq(*inputs: str, low: int = 1, high: int = 40, **other: object) -> dict:
    """Sequences, judged at every length."""
    inputs = inputs or (X4,)
    feeds = tuple(values_at(*inputs, N=1 + t % 3, T=t) for t in range(low, high + 1))
    return {"dims": f"N=1:2:3 T={low}:{max(low, 9)}:{high}", "kinds": FEW, "feeds": feeds, **other}


def pix(low: int = 1, high: int = 24) -> dict:
    """Pictures, judged at every height."""
    feeds = tuple(values_at(IMAGE, N=1, H=h, W=w) for h in range(low, high + 1) for w in {low, low + (h * 7) % (high - low + 1), h})
    return {"dims": f"N=1:1:2 H={low}:{(low + high) // 2}:{high} W={low}:{(low + high) // 2 - 1}:{high}", "kinds": FEW, "feeds": feeds}


@forward(IMAGE, **pix(8))
def A5101CropRoundedToEven(self, x):
    """The middle of what is large enough, halves to even."""
    h, w = x.shape[-2:]
    top, left = round((h - 8) / 2.0), round((w - 8) / 2.0)
    return x[..., top : top + 8, left : left + 8]
@forward(IMAGE, **pix(3))
def A5102PadThenCropByHalf(self, x):
    """Pads where it is smaller, and cuts by whole halves."""
    h, w = x.shape[-2:]
    c = 8
    if c > w or c > h:
        x = F.pad(x, [(c - w) // 2 if c > w else 0, (c - w + 1) // 2 if c > w else 0, (c - h) // 2 if c > h else 0, (c - h + 1) // 2 if c > h else 0])
        h, w = x.shape[-2:]
    top, left = (h - c) // 2, (w - c) // 2
    return x[..., top : top + c, left : left + c]
@forward(IT, **seq(IT))
def A5103SumAsABoolean(self, i):
    """A sum that is asked for as a boolean: of truths, any."""
    return i.sum(1, dtype=torch.bool)
@forward(IT, **seq(IT), refused="the exported model differs from the module")
def A5104ProductInInt32(self, i):
    """A product of int64 in int32."""
    return i.prod(1, dtype=torch.int32)
@forward(IT, **seq(IT))
def A5105SumInInt16(self, i):
    """A sum of int64 in int16."""
    return i.sum(1, dtype=torch.int16), i.sum(dtype=torch.uint8)
@forward(IT, **seq(IT), refused="the module cannot be exported")
def A5106RunningInInt8(self, i):
    """A running sum of int64 in int8, and a running product of int32."""
    return i.cumsum(1, dtype=torch.int8), i.cumprod(1, dtype=torch.int32)
@forward(XT, **seq(XT))
def A5107RunningLogSum(self, x):
    """logcumsumexp alone."""
    return torch.logcumsumexp(x, 1)
@forward(XT, **seq(XT))
def A5108ScanOfLogSums(self, x):
    """A scan by logaddexp alone."""
    run, out = torch.full_like(x[:, 0], -math.inf), []
    for t in range(x.shape[1]):
        run = torch.logaddexp(run, x[:, t])
        out.append(run)
    return torch.stack(out, 1)
@forward("x:float32[T]", dims="T=1:9:24", kinds=FEW, refused="the module cannot be exported")
def A5109SorterOfOneRow(self, x):
    """searchsorted through an order of one row."""
    return torch.searchsorted(x, torch.tensor([0.0, 0.5]), sorter=x.argsort(stable=True))
@attack(X4, **seq())
class A5110AutocastWithinABranch(nn.Module):
    """A branch by length around autocast."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        if x.shape[1] > 16:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.lin(x).float()
        return self.lin(x)
@attack(X4, **seq(), refused="the module cannot be exported")
class A5111JvpAlone(nn.Module):
    """torch.func.jvp of a head."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        return torch.func.jvp(lambda v: torch.tanh(self.lin(v)), (x,), (x.flip(1),))
@forward(X4, **seq(), refused="the path through the module depends on the size")
def A5112VmapByChunks(self, x):
    """vmap over the moving axis by chunks of four."""
    return torch.vmap(lambda v: v.softmax(0), in_dims=1, out_dims=1, chunk_size=4)(x)
@forward(IMAGE, **pix(4))
def A5113RoundedByNumpy(self, x):
    """A side that NumPy rounds to a multiple of four."""
    h, w = x.shape[2:]
    return F.interpolate(x, (int(np.round(h * 1.5 / 4) * 4), int(np.round(w / 4) * 4)), mode="nearest")
@forward(IMAGE, **pix(4))
def A5114RoundedByPython(self, x):
    """A side that Python rounds to a multiple of four, by the scale nearer to one."""
    h, w = x.shape[2:]
    sh, sw = 12 / h, 16 / w
    s = sw if abs(1 - sw) < abs(1 - sh) else sh
    return F.interpolate(x, (max(4, round(h * s / 4) * 4), max(4, round(w * s / 4) * 4)), mode="nearest")
@forward(X4, **seq(low=10), refused="the path through the module depends on the size")
def A5115ZipOfTwoSlices(self, x):
    """zip_longest over even and odd parts."""
    parts = x.split(5, 1)
    return sum(a.sum(1) if b is None else a.sum(1) - b.mean(1) for a, b in itertools.zip_longest(parts[::2], parts[1::2]))
@forward(X4, **seq(low=10), refused="the path through the module depends on the size")
def A5116EveryThirdPart(self, x):
    """islice over parts of five."""
    return sum(p.amax(1) for p in itertools.islice(x.split(5, 1), 1, None, 3))
@forward(X4, **seq(low=6))
def A5117CoroutineOfFixedSteps(self, x):
    """A coroutine that is sent five frames."""
    def smooth(state):
        while True:
            state = 0.75 * state + 0.25 * (yield state)
    run = smooth(x[:, 0])
    next(run)
    return torch.stack([run.send(x[:, k]) for k in range(1, 6)], 1)
@forward("i:int64[T]=0:5", dims="T=1:9:24")
def A5118BinsOfAll(self, i):
    """bincount whose least length is above every id."""
    return torch.bincount(i, minlength=8) / i.numel()
@forward(X4, **seq())
def A5119DilatedPoolOfLength(self, x):
    """A pool whose dilation is by length, and one whose padding is."""
    d = 1 + x.shape[1] // 16
    return F.max_pool1d(F.pad(x.mT, (d, d)), 3, 1, 0, dilation=d)
@forward(X4, **seq(low=2), refused="the exported model differs from the module")
def A5120OverlapInPlace(self, x):
    """Written where it is read, one frame apart, by a copy that is not one."""
    y = x.clone()
    y[:, 1:, 3] -= y[:, :-1, 3]
    return y
@forward(X4, **seq(low=3))
def A5121CellsOfAGridByCeil(self, x):
    """Places by floats of the length: a cell is cut down, its end is rounded up, a middle rounded to even."""
    t = x.shape[1]
    cells = [(math.floor(k * t / 3), math.ceil((k + 1) * t / 3)) for k in range(3)]
    return torch.stack([x[:, a:b].amax(1) for a, b in cells], 1), torch.stack([x[:, round((a + b) / 2) - 1] for a, b in cells], 1)
@forward(X4, **seq(low=4))
def A5122RatioToFrames(self, x):
    """Ends by milliseconds: thirds and tenths of a length in floats, truncated."""
    t = x.shape[1]
    a, b = int(t * 0.3), int(t * 0.7 + 0.5)
    return x[:, a:b].mean(1), x[:, : int(0.1 * t) + 1].sum(1), x[:, int(t / 1.1) :].sum(1)
@forward(X4, **seq())
def A5123HopsOfAnOddRate(self, x):
    """Times of frames in seconds at 44.1 kHz, brought back to frames of another rate."""
    t = x.shape[1]
    times = torch.arange(t) * 512 / 44100
    back = (times * 16000 / 160).round().long().clamp(max=t - 1)
    return x[:, back], (times * 100).floor()
@forward(X4, **seq(low=2))
def A5124BinsOfALinspace(self, x):
    """Targets by bins of a linspace of the length, at places that meet them."""
    t = x.shape[1]
    edges = torch.linspace(0, 1, t)
    return torch.bucketize(torch.arange(t) / (t - 1), edges), torch.bucketize(torch.arange(8) / 8, edges, right=True)
@forward(X4, **seq())
def A5125RangesByFloats(self, x):
    """Ranges by a float step: as many as fit."""
    t = x.shape[1]
    return torch.arange(0, t, 0.3).sum(), torch.arange(0, 1, 1 / t), torch.arange(0.5, t / 2, 0.7), torch.arange(0, 1 + 1e-6, 1 / t)
@forward(X4, **seq(low=2))
def A5126TurnedByShares(self, x):
    """Rolls by a share of the length that is rounded, flips of one half, a swap of unequal halves."""
    t = x.shape[1]
    k = round(t * 0.25)
    return x.roll(k, 1), torch.cat([x[:, k:].flip(1), x[:, :k]], 1), x.roll((-k, 1), (1, 2))
@forward(X4, **seq(low=1), refused="the module itself raises")
def A5127WritesOfAFixedLength(self, x):
    """Python's slices beyond the end: written in place, read back, negative starts beyond the start."""
    y = x.clone()
    y[:, -12:-3] *= 2
    y[:, 5:1000, 1] = 0
    y[:, -9] = 1 if x.shape[1] >= 9 else 0
    return y
@forward(X4, **seq(low=1))
def A5128NegativeStartsBeyond(self, x):
    """Slices with negative ends that lie before the start."""
    return x[:, -12:-3], x[:, :-5].sum(1), x[:, -7:].sum(1), x[:, 3:-3].sum(1)
@forward(X4, "s:float32[N,S,4]", dims="N=1:1:2 T=1:8:20 S=1:9:20", kinds=FEW, feeds=tuple(values_at(X4, "s:float32[N,S,4]", N=1, T=t, S=s) for t in (1, 2, 7, 13, 20) for s in (1, 2, 7, 13, 20)))
def A5129BroadcastOfTwoLengths(self, x, s):
    """Two lengths meet where one of them is one; elsewhere the longer is cut."""
    t, k = x.shape[1], s.shape[1]
    if t == 1 or k == 1 or t == k:
        return (x * s).sum(1)
    m = min(t, k)
    return (x[:, :m] * s[:, -m:]).sum(1)
@forward(X4, "s:float32[N,S,4]", dims="N=1:1:2 T=1:8:20 S=1:9:20", kinds=FEW, feeds=tuple(values_at(X4, "s:float32[N,S,4]", N=1, T=t, S=s) for t in (1, 2, 7, 13, 20) for s in (1, 2, 7, 13, 20)))
def A5130LossOfShapesThatBroadcast(self, x, s):
    """expand_as of a mean, cat where it is there, stack of equal lengths, a product by kron of sizes."""
    t, k = x.shape[1], s.shape[1]
    y = torch.cat([x, s], 1)[:, :: 1 + (t * k) % 3]
    return y.mean(1), x[:, : min(t, k)] - s[:, : min(t, k)].flip(1), torch.stack([x.sum(1), s.sum(1)], 1) * ((t * k) // 7)
@forward(X4, **seq(), refused="the exported model differs from the module")
def A5131RoundBesideAStackOfAll(self, x):
    """Python's round of half a length beside frames that are taken one by one."""
    k = round(x.shape[1] / 2)
    return torch.stack(x.unbind(1)[::-1], 1), x[:, k:].sum(1)
@forward(X4, **seq())
def A5132LengthOrANumber(self, x):
    """A number where the length divides, the length elsewhere; a cut from the end by it."""
    t = x.shape[1]
    s = t if t % 7 else 7
    return F.pad(x[:, :-s], (0, 0, 0, 1))
@forward(X4, **seq())
def A5133PlusIsAnAlias(self, x):
    """What a plus gives is the tensor itself, as positive, as_tensor, resolve_conj and to_dense do."""
    y = x * 2
    a = +y
    a += 1
    b = torch.as_tensor(y.resolve_conj().to_dense())
    b[:, :1] = 0
    torch.positive(y)[..., 1] = -1
    return y, a.sum(1)
@forward(X4, **seq())
def A5134EinsumOfOneIsAView(self, x):
    """An einsum of one operand permutes, and what is written into it comes back."""
    y = x * 2
    v = torch.einsum("ntc->nct", y)
    v[:, 0] += 1
    torch.einsum("ntc->ntc", y)[:, ::2] *= 3
    d = torch.einsum("ncc->nc", y.mT @ y)
    d.zero_()
    return y, v.amax(2)
@forward(X4, **seq())
def A5135BroadcastTensorsAreViews(self, x):
    """broadcast_tensors, atleast_3d, meshgrid's inputs, a channel shuffle of one group: views that are written."""
    y, b = x * 2, x.mean(1, keepdim=True) * 1
    p, q = torch.broadcast_tensors(y, b)
    p[..., 0] = 5
    torch.atleast_3d(y)[..., 1] += 1
    torch.movedim(y, 0, 0).unsqueeze(0).squeeze(0)[:, -1] = 2
    return y, q + 0, b
@forward(X4, **seq())
def A5136CopiesThatLookLikeViews(self, x):
    """Turns of none, pads of none, a join of one, a repeat of one: copies, whose writes stay with them."""
    y = x * 2
    for c in (torch.rot90(y, 0, (1, 2)), y.roll(0, 1), y.flip([]), torch.cat([y]), y.repeat(1, 1, 1), F.pad(y, (0, 0, 0, 0)), y.tile(1), torch.pixel_shuffle(y[:, None], 1)):
        c += 1
    return y
@forward(X4, **seq())
def A5137PadOfTheRestIsACopy(self, x):
    """A pad to a multiple of four, of none at some lengths, is written; what was padded stays."""
    y = x * 2
    p = F.pad(y, (0, 0, 0, -x.shape[1] % 4))
    p[:, 0] = 7
    q = torch.cat([y, y[:, : x.shape[1] // 30]], 1)
    q.neg_()
    return y, p.sum(1), q.sum(1)
@forward(X4, **seq())
def A5138SliceOfAllIsAView(self, x):
    """A slice that takes all at short lengths, an index by a list that copies, a window as long as the sequence."""
    y = x * 2
    y[:, :16].add_(1)
    y[:, [0, -1]].mul_(9)
    y.unfold(1, x.shape[1], 1)[..., 0] -= 1
    y[:, torch.arange(x.shape[1])].zero_()
    y[:, None, :, 1:3][:, 0].clamp_(-1, 1)
    return y
@attack(X4, **seq())
class A5139AliasesBesideAGru(nn.Module):
    """A plus, an einsum of one and broadcast_tensors are written beside a recurrent layer."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)
    def forward(self, x):
        y = self.gru(x)[0]
        a = +y
        a += 1
        torch.einsum("ntc->nct", y)[:, 1] *= 2
        p, _ = torch.broadcast_tensors(y, y[:, :1])
        p[..., 2] = 5
        return y, a.sum(1)
@attack(X4, **seq())
class A5140CopiesBesideAGru(nn.Module):
    """Turns, pads and joins that copy, written beside a recurrent layer, and a slice of all that does not."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)
    def forward(self, x):
        y = self.gru(x)[0]
        for c in (y.roll(0, 1), torch.cat([y]), F.pad(y, (0, 0, 0, -x.shape[1] % 4)), y.repeat(1, 1, 1), y[:, [0, -1]]):
            c.add_(1)
        y[:, :16].neg_()
        y.reshape(x.shape[0], -1)[:, :3] = 2
        return y, x
