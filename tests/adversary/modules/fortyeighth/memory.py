# ruff: noqa: E501 - attacks are written as users write them
"""Memory and state: views, writes, caches, counters, exceptions as control flow, questions of storage."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import weakref

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
SEEN: dict[str, int] = {"calls": 0}


@forward(X4, **seq(X4))
def A5976InputIsScaled(self, x):
    """The input itself is written, and returned beside what was made of it before and after."""
    before = x.sum(1)
    view = x[:, ::2]
    view.mul_(2)
    x[..., 0].clamp_(min=0)
    return x, before, x.sum(1), view


@forward(X4, **seq(X4))
def A5977ShapesChangedInPlace(self, x):
    """t_, transpose_, squeeze_, unsqueeze_ and swapaxes_ of a copy, written through a view that was taken before."""
    y = x.clone()
    v = y[:, 0]
    y.transpose_(1, 2)
    y.unsqueeze_(0)
    v.zero_()
    y.squeeze_(0)
    return y, v, y.swapaxes_(1, 2).sum(1)


@forward(X4, **seq(X4))
def A5978StridedWindows(self, x):
    """as_strided for overlapping windows, and a running write through them from the last to the first."""
    y = x.contiguous().clone()
    n, t, c = y.shape
    w = y.as_strided((n, t, 2, 2), (t * c, c, 2, 1))
    w[:, :, 1].add_(1)
    return y, w.sum(-1)


@forward(X4, **seq(X4))
def A5979ViewsThatAre(self, x):
    """contiguous, reshape, flatten, expand_as, to, type_as and float of what already is so are the same memory."""
    y = x * 2
    for f in (lambda v: v.contiguous(), lambda v: v.reshape(v.shape), lambda v: v.to(torch.float32), lambda v: v.type_as(x), lambda v: v.float(), lambda v: v.expand_as(x), lambda v: v.flatten(1), lambda v: v[...], lambda v: v.squeeze(-1), lambda v: v.view_as(v), lambda v: v.cpu(), lambda v: v.detach(), lambda v: torch.as_tensor(v), lambda v: torch.asarray(v), lambda v: v.requires_grad_(False), lambda v: v.real, lambda v: v.positive(), lambda v: F.dropout(v, 0.5, False)):
        f(y).add_(0.5)
    return y


@forward(X4, **seq(X4))
def A5980CopiesThatAreNot(self, x):
    """Copies: to(copy=True), clone, repeat(1), torch.tensor-free new, index of all, half and back: y is not written."""
    y = x * 2
    for f in (lambda v: v.to(torch.float32, copy=True), lambda v: v.repeat(1, 1, 1), lambda v: v[:, torch.arange(v.shape[1])], lambda v: v.half().float(), lambda v: v + 0, lambda v: torch.cat([v]), lambda v: v.flip(1).flip(1), lambda v: torch.roll(v, 0, 1), lambda v: v[v == v].view_as(v), lambda v: v.sort(1)[0], lambda v: F.pad(v, (0, 0)), lambda v: v.abs()):
        f(y).add_(0.5)
    return y


@forward(X4, **seq(X4))
def A5981SwapWithoutCopy(self, x):
    """a, b = b, a by views in place; then by copies; rows exchanged by an index with itself."""
    y = x.clone()
    y[..., 0], y[..., 1] = y[..., 1], y[..., 0]
    z = x.clone()
    z[..., 2], z[..., 3] = z[..., 3].clone(), z[..., 2].clone()
    w = x.clone()
    w[:, [0, -1]] = w[:, [-1, 0]]
    return y, z, w


@attack(X4, **seq(X4), refused="the path through the module depends on the size")
class A5982ShapeByException(nn.Module):
    """A view that fails is a reason to pad: exceptions as control flow by size."""

    def forward(self, x):
        n, t, c = x.shape
        try:
            y = x.view(n, t // 4, 4, c)
        except RuntimeError:
            y = F.pad(x, (0, 0, 0, -t % 4)).view(n, -1, 4, c)
        return y.sum(2)


@attack(X4, **seq(X4))
class A5983SuppressedIndex(nn.Module):
    """The eighth step has a gain of its own, if there is an eighth step: an IndexError is suppressed."""

    def forward(self, x):
        y = x.clone()
        with contextlib.suppress(IndexError):
            y[:, 7] *= 3
        return y


@attack(X4, **seq(X4), refused="the module returns a different")
class A5984TakesTurns(nn.Module):
    """A cycle of two gains, the next at each call."""

    def __init__(self):
        super().__init__()
        self.gains = itertools.cycle([1.0, 2.0])

    def forward(self, x):
        return x * next(self.gains)


@attack(X4, **seq(X4))
class A5985GlobalCounter(nn.Module):
    """A counter of the whole program, of which the output does not depend but for a branch that is never taken."""

    def forward(self, x):
        SEEN["calls"] += 1
        if SEEN["calls"] < 0:
            return x * 0
        return x + 1


class Positions:
    """Tables by the size, in a weak dictionary beside a strong one."""

    def __init__(self):
        self.weak = weakref.WeakValueDictionary()
        self.strong = collections.OrderedDict()

    def get(self, t, c):
        if t not in self.strong:
            p = torch.arange(t)[:, None] * torch.exp(torch.arange(0, c, 2) * -0.5)
            self.strong[t] = torch.stack([p.sin(), p.cos()], -1).flatten(1)
            while len(self.strong) > 2:
                self.strong.popitem(last=False)
        self.weak[t] = self.strong[t]
        return self.weak[t]


@attack(X4, **seq(X4))
class A5986LeastRecentlyUsed(nn.Module):
    """A cache of two sizes in order of use, weak beside strong."""

    def __init__(self):
        super().__init__()
        self.positions = Positions()

    def forward(self, x):
        return x + self.positions.get(x.shape[1], 4)


@attack(X4, **seq(X4), refused="the module returns a different")
class A5987WrittenCache(nn.Module):
    """A cached table by the size that the caller writes in place: each call scales it again."""

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def table(self, t):
        return torch.ones(t, 1)

    def forward(self, x):
        w = self.table(x.shape[1])
        w.mul_(0.5)
        return x * w


@attack(X4, **seq(X4))
class A5988BufferOverwritten(nn.Module):
    """A workspace as a buffer that each call fills from the start, of which a view is returned."""

    def __init__(self):
        super().__init__()
        self.register_buffer("work", torch.zeros(4, 64, 4), persistent=False)

    def forward(self, x):
        w = self.work[: x.shape[0], : x.shape[1]]
        w.copy_(x)
        w[:, 1:] += x[:, :-1]
        return w, w.amax(1)


@attack(X4, **seq(X4))
class A5989RingBuffer(nn.Module):
    """A streaming convolution whose ring of the last frames is a local of each call."""

    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(4, 4, 3)

    def forward(self, x):
        ring = collections.deque([x.new_zeros(x.shape[0], 4)] * 3, maxlen=3)
        out = []
        for f in x.unbind(1):
            ring.append(f)
            out.append(self.c(torch.stack(tuple(ring), -1))[..., 0])
        return torch.stack(out, 1)


@forward(X4, MT, **seq(X4, MT))
def A5990WritesWhereMasked(self, x, m):
    """Writes by masks into slices, by steps, into columns, by a condition of what was just written."""
    y = x.clone()
    y[m] = -1.0
    y[:, ::2][m[:, ::2]] *= 3
    y[..., 1][~m] = y[..., 2][~m]
    y[y > 2] = y[y > 2].sqrt() + 1
    y.masked_fill_(~m[..., None] & (y < 0), 0.25)
    z = torch.zeros_like(x)
    z[m.any(1)] = x[m.any(1)] * 2
    return y, z


@forward(X4, "i:int64[N,T]=-1:3", **seq(X4, "i:int64[N,T]=-1:3"))
def A5991WritesByIndices(self, x, i):
    """Writes at places by ids of which -1 is none, duplicates by sums, advanced indices beside slices and Nones."""
    n, t, c = x.shape
    y = x.clone()
    rows = torch.arange(n)[:, None]
    y[rows, torch.arange(t), i] += 10
    z = x.new_zeros(n, 5, c)
    z.scatter_add_(1, (i + 1)[..., None].expand(-1, -1, c), x)
    w = x.new_zeros(n, 4)
    w[rows, i.clamp(min=0)] = 1.0
    u = x[torch.arange(n)[:, None, None], torch.arange(t)[None, :, None], i.clamp(min=0)[:, :, None]]
    return y, z[:, 1:], w, u, x[:, None, i[0] * 0, 1:3]


@forward(IMAGE, **pix(IMAGE))
def A5992FloodedByRows(self, x):
    """Running writes from the neighbour that was just written: rows from the top, columns from the left."""
    y = x.clone()
    for r in range(1, y.shape[2]):
        y[:, :, r] = torch.maximum(y[:, :, r], y[:, :, r - 1] * 0.9)
    for c in range(y.shape[3] - 2, -1, -1):
        y[..., c] += 0.5 * y[..., c + 1]
    return y


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]"))
def A5993TheLongerIsWritten(self, x, y):
    """A name for the longer of two; it is written, and both are returned."""
    a, b = x.clone(), y.clone()
    big = a if a.shape[1] >= b.shape[1] else b
    big[:, : min(a.shape[1], b.shape[1])].mul_(-1)
    return a, b, big.sum(1)


@forward(X4, **seq(X4))
def A5994QuestionsOfMemory(self, x):
    """is, data_ptr, is_contiguous, stride, storage_offset and _base decide, alike at all sizes but one."""
    y = x.transpose(1, 2)
    z = y.contiguous() if not y.is_contiguous() else y
    if z.data_ptr() == x.data_ptr():
        z = z.clone()
    z.mul_(2)
    k = x[:, 0].stride(0)
    return x, z, x * (x[:, -1:].storage_offset() + k)


@attack(X, **long(X), refused="the module returns a different")
class A5995LongestSeen(nn.Module):
    """The longest size seen so far pads all later ones."""

    def __init__(self):
        super().__init__()
        self.longest = 0

    def forward(self, x):
        self.longest = max(self.longest, x.shape[1])
        return F.pad(x, (0, self.longest - x.shape[1])).mean(1)
