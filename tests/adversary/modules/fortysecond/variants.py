# ruff: noqa: E501, B023 - attacks are written as users write them
"""Variants of what was wrong in the forty-second round: ways at a size of one, sizes that Python looks up, copies that are views at some sizes, halves in place, a soft margin."""

from __future__ import annotations

import bisect
import functools
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"
SIZES = ((1, 1), (1, 2), (1, 9), (3, 1), (3, 3), (1, 16), (3, 16), (2, 20), (2, 13))


def full(*values: float, dtype: type = np.float32, sizes: tuple = SIZES, more: tuple = (), name: str = "x") -> tuple:
    """Points at which all elements are one value."""
    return tuple((lambda s, v: lambda: {name: np.full((*s, *more), v, dtype)})(s, v) for s in sizes for v in values)


some = partial(sprinkled, sizes=SIZES)


@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4600OneExample(self, x):
    """One example is clipped."""
    if x.shape[0] == 1:
        x = x.clamp(max=2.5)
    return x * 2
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4601OneStep(self, x):
    """One step is clipped."""
    if x.shape[1] == 1:
        return x.clamp(max=2.5)
    return x * 1
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4602MoreThanOneStep(self, x):
    """A limit that differs at one step."""
    lim = 20.0 if x.shape[1] > 1 else 50.0
    return x.clamp(max=lim)
@forward("x:int64[N,T]", dims=ROWS, feeds=full(50256, dtype=np.int64))
def A4603OneToken(self, x):
    """The end token of a single step is replaced."""
    if x.shape[1] == 1:
        x = x.masked_fill(x == 50256, 0)
    return x + 1
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(np.nan))
def A4604OneRowOfNotNumbers(self, x):
    """What is not a number in a single example."""
    if len(x) == 1:
        x = x.nan_to_num(0.0)
    return x * 2
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4605OneInAll(self, x):
    """A single element."""
    if x.numel() == 1:
        x = x.clamp(max=2.5)
    return x * 2
@forward("x:float32[N,N]", dims="N=1:3:6", kinds=FEW, feeds=full(3.0, 60.0, sizes=((1, 1), (3, 3))))
def A4606OneSquare(self, x):
    """One dim twice."""
    if x.shape[0] == 1:
        return x.clamp(max=2.5)
    return x * 1
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4607LeastOfTwo(self, x):
    """A condition through min."""
    if min(x.shape[1], 2) == 2:
        x = x.clamp(max=20.5)
    return x * 2
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4608TruthOfASize(self, x):
    """A size less one as a truth."""
    return x.clamp(max=20.0 if x.shape[0] - 1 else 40.0)
@forward("x:uint8[N,T]=0:255", dims=ROWS, feeds=full(251, dtype=np.uint8))
def A4609OneByteImage(self, x):
    """Bytes of one example."""
    if x.shape[0] == 1:
        x = x.clamp(max=250)
    return x.float() / 255
@forward("x:float32[N,T]", "m:bool[N,T]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.ones((1, 3), np.float32), "m": np.ones((1, 3), bool)},))
def A4610AllHidden(self, x, m):
    """A mask that hides all of one example is ignored."""
    if m.shape[0] == 1:
        m = torch.where(m.all(), torch.zeros_like(m), m)
    return x.masked_fill(m, 0.0)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:4:6 W=1:5:6", kinds=FEW, feeds=full(60.0, sizes=((1, 3, 1, 1), (1, 3, 1, 6), (2, 3, 6, 1), (2, 3, 6, 6))))
def A4611OneRowOrColumn(self, x):
    """Pictures of one row or column."""
    if x.shape[-1] == 1 or x.shape[-2] == 1:
        x = F.hardtanh(x, -3.0, 3.0)
    return x * 2
@forward(XT, dims="N=0:2:3 T=1:9:20", kinds=FEW, refused="the path through the module depends on the size", feeds=full(3.0, 60.0))
def A4612FromNothing(self, x):
    """A range that begins at zero."""
    if x.shape[0] < 2:
        x = x.clamp(max=2.5)
    return x * 2
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4613OneAsANumber(self, x):
    """A comparison as a number."""
    return x.clamp(max=30.0 * (1 + (x.shape[1] == 1)))
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4614GetBySize(self, x):
    """A size looked up in a dictionary."""
    return x.clamp(max={16: 2.5}.get(x.shape[1], 3.5))
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4615ListBySize(self, x):
    """A size as an index of a list."""
    return x.clamp(max=([20.0] * 16 + [50.0] * 5)[x.shape[1]])
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(60.0))
def A4616BisectBySize(self, x):
    """A size in buckets."""
    return x.clamp(max=(20.0, 30.0, 50.0)[bisect.bisect([8, 15], x.shape[1])])
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(5e4))
def A4617SortedSizes(self, x):
    """A minimum through sorted."""
    return x.clamp(max=10.0 * sorted([x.shape[1], 8])[0])
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(60.0))
def A4618LengthOfARange(self, x):
    """How many chunks there are."""
    return x.clamp(max=10.0 * len(range(0, x.shape[1], 8)))
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4619WholeShape(self, x):
    """A shape against a tuple."""
    return x.clamp(max=2.5 if x.shape == (1, 16) else 3.5)
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4620KeyOfText(self, x):
    """A size in a key of text."""
    return x.clamp(max={"len16": 2.5}.get(f"len{x.shape[1]}", 3.5))
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4621ErrorOfAKey(self, x):
    """A key that is missing."""
    try:
        lim = {16: 2.5}[x.shape[1]]
    except KeyError:
        lim = 3.5
    return x.clamp(max=lim)
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(3.0, 60.0))
def A4622ShapeAsKey(self, x):
    """A shape as a key."""
    return x.clamp(max={(1, 16): 2.5}.get(tuple(x.shape), 3.5))
@attack(XT, dims=ROWS, kinds=FEW, refused="the path through the module depends on the size", feeds=full(3.0, 60.0))
class A4623SetOfSizes(nn.Module):
    """A size in a set of the module."""
    def __init__(self):
        super().__init__()
        self.special = {3, 16}
    def forward(self, x):
        if x.shape[1] in self.special:
            x = x.clamp(max=2.5)
        return x * 2
@functools.lru_cache
def cap(t):
    return 10.0 * (1 + t // 8)
@forward(XT, dims=ROWS, kinds=FEW, feeds=full(60.0))
def A4624CachedBySize(self, x):
    """A cached function of a size."""
    return x.clamp(max=cap(x.shape[1]))
@forward(X4, dims=ROWS, kinds=FEW, feeds=some(7e4, more=(4,)))
def A4625TurnedAndFlat(self, x):
    """reshape of a turned tensor is a view at one step."""
    y = x + 1
    z = y.transpose(1, 2).reshape(x.shape[0], -1)
    z[z > 60000.0] = 0
    return y, z
@forward(XT, dims=ROWS, kinds=FEW, feeds=some(7e4))
def A4626EverySecondFlat(self, x):
    """reshape of every second column is a view of one example."""
    y = x + 1
    z = y[:, ::2].reshape(-1)
    z.clamp_(max=60000.0)
    return y, z
@forward(X4, dims=ROWS, kinds=FEW, feeds=some(7e4, more=(4,)))
def A4627RowsJoined(self, x):
    """flatten of permuted axes is a view where one of them is one."""
    y = x + 1
    z = y.permute(1, 0, 2).flatten(0, 1)
    z.clamp_(max=torch.finfo(torch.float16).max)
    return y
@forward("x:int64[N,T]=-100:9", dims="N=1:2:3 T=2:9:20", feeds=(lambda: {"x": np.array([[3, -100, 5]])}, lambda: {"x": np.array([[3, -100], [3, 4]])}))
def A4628ShiftedLabels(self, x):
    """contiguous of shifted labels is a view of one example."""
    labels = x.clone()
    shift = labels[:, 1:].contiguous()
    shift[shift == -100] = 0
    return labels, shift
@forward(X4, dims=ROWS, kinds=FEW, feeds=some(7e5, more=(4,)))
def A4629TurnedContiguous(self, x):
    """contiguous of a turned tensor is a view at one step."""
    y = x * 0.5
    z = y.transpose(1, 2).contiguous()
    z.clamp_(-60000.0, 60000.0)
    return y, z
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:4:6 W=1:5:6", kinds=FEW, feeds=some(7e4, sizes=((1, 3, 1, 1), (1, 3, 1, 6), (2, 3, 6, 6))))
def A4630LayoutOfOne(self, x):
    """contiguous of channels last is a view of one pixel."""
    y = x.to(memory_format=torch.channels_last) + 0
    k = y.contiguous()
    k[k > 60000.0] = 0
    return y, k
@forward("x:int64[N,T]=0:99999", dims=ROWS, feeds=full(99999, dtype=np.int64))
def A4631IdsTurned(self, x):
    """Ids, turned and made flat."""
    y = x + 0
    z = y.T.reshape(-1)
    z[z == 99999] = 1
    return y, z
@forward("x:float32[N,T]", "y:float32[N,T]", dims=ROWS, kinds=FEW, feeds=tuple((lambda v: lambda: {"x": np.full((1, 3), v, np.float32), "y": np.ones((1, 3), np.float32)})(v) for v in (1, 8, 12, 16, 20)))
def A4632SoftMargin(self, x, y):
    """log1p of an exponential: one hundredth is lost at 12, all at 17."""
    return F.soft_margin_loss(x, y.sign(), reduction="none"), F.soft_margin_loss(x, torch.ones_like(x))
@forward(XT, dims=ROWS, kinds=("normal", "halves", "tenths"))
def A4633HalvesInPlaceAddcmul(self, x):
    """Rounded to FP16 once."""
    h = x.clamp(-100, 100).half()
    return h.addcmul_(h, h, value=0.3)
@forward(XT, dims=ROWS, kinds=("normal", "halves", "tenths"))
def A4634HalvesInPlaceLerp(self, x):
    """Rounded to FP16 once."""
    h = x.clamp(-100, 100).half()
    return h.lerp_(h * 2, 0.3)
@forward(XT, dims=ROWS, kinds=("normal", "halves", "tenths"))
def A4637HalvesAddcmul(self, x):
    """Rounded to FP16 once."""
    h = x.clamp(-100, 100).half()
    return torch.addcmul(h, h.flip(1), h)
@forward(XT, dims=ROWS, kinds=("normal", "halves", "tenths"))
def A4639HalvesSoftsign(self, x):
    """Rounded to FP16 once."""
    h = x.clamp(-100, 100).half()
    return F.softsign(h)
@forward(XT, dims=ROWS, kinds=("normal", "halves", "tenths"))
def A4640HalvesTanhShrink(self, x):
    """Rounded to FP16 once."""
    h = x.clamp(-100, 100).half()
    return F.tanhshrink(h)
