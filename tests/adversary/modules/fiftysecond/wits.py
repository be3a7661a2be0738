# ruff: noqa: E501, RUF012 - attacks are written as users write them
"""Python's wits: what a size or a state does without a tensor."""

from __future__ import annotations

import bisect
import contextlib
import contextvars
import copy
import enum
import functools
import io
import itertools
import os
import queue
import threading
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
D = "N=1:2:4 T=2:90:400"


def own(*points, inputs=(X,)):
    """Own points at pairs of N and T."""
    return tuple(values_at(*inputs, N=n, T=t) for n, t in points)


class Percent(torch.Tensor):
    """A tensor whose sums saturate at one, by __torch_function__."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if func in (torch.Tensor.add, torch.Tensor.__add__, torch.add):
            return super().__torch_function__(torch.Tensor.clamp, types, (out,), {"max": 1.0})
        return out


@forward(X, dims=D, feeds=own((1, 2), (4, 400)))
def A6722SaturatingSubclass(self, x):
    """Sums of a subclass saturate; what leaves is a plain tensor."""
    p = x.as_subclass(Percent)
    y = p + p * 0.5
    return (y - 1).as_subclass(torch.Tensor), (p.add(0.25) * 2).as_subclass(torch.Tensor)


class Softened(TorchFunctionMode):
    """A mode that makes rectifiers leaky."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (F.relu, torch.relu, torch.Tensor.relu):
            return F.leaky_relu(args[0], 0.1)
        return func(*args, **(kwargs or {}))


@attack(X, dims=D, feeds=own((1, 17), (2, 34), (1, 102), (3, 119), (4, 391)))
class A6723ModeAtMultiples(nn.Module):
    """A mode of functions is entered where seventeen divides the size, through an exit stack."""

    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            if not x.shape[1] % 17:
                stack.enter_context(Softened())
            return self.act(x) + 1


@forward(X, dims=D, feeds=own((1, 77), (2, 77), (3, 5), (4, 396), (4, 11), (4, 2), (1, 2)), refused="the path through the module depends on the size")
def A6724MatchedShapes(self, x):
    """A match over the shape: a literal, a guard, a capture."""
    match tuple(x.shape):
        case (1, 77):
            return x * 77
        case (n, t) if n + t == 400 and n != t:
            return x - n
        case (3, t):
            return x / t
        case [_, (2 | 5 | 11) as t]:
            return x + t
        case _:
            return x * 1


@torch.jit.script
def collatz(n: int) -> int:
    """Steps to one."""
    k = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k


@forward(X, dims=D, feeds=own((1, 27), (2, 97), (1, 2), (1, 128), (3, 171), (4, 313)), refused="the module cannot be exported")
def A6725ScriptedCollatz(self, x):
    """A scripted loop over a whole number that is the size; its count is a gain."""
    return x * (collatz(x.shape[1]) / 100)


MODE = contextvars.ContextVar("mode", default="wide")


def narrow():
    """What another context's run reads."""
    return MODE.get() == "narrow"


@forward(X, dims=D, feeds=own((1, 199), (1, 200), (2, 251), (3, 333)), refused="the path through the module depends on the size")
def A6726ContextVariable(self, x):
    """A context variable that a copy of the context sets where the size is a prime above two hundred."""
    t = x.shape[1]
    c = contextvars.copy_context()
    if t > 200 and all(t % k for k in range(2, int(t**0.5) + 1)):
        c.run(MODE.set, "narrow")
    return x.cumsum(1) if c.run(narrow) else x.sum(1, keepdim=True) + x


@attack(X4, dims="N=1:2:4 T=2:60:200", feeds=own((1, 2), (1, 3), (3, 199), (4, 200), inputs=(X4,)), refused="forward computes tensors in another thread")
class A6727ThreadsAndQueue(nn.Module):
    """Halves of the frames go through a queue to two threads of a pool, and come back in order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.lin = nn.Linear(4, 3)
        self.local = threading.local()

    def work(self, job):
        k, x = job
        self.local.gain = getattr(self.local, "gain", 1.0)
        with torch.no_grad():
            return k, self.lin(x) * self.local.gain

    def forward(self, x):
        q = queue.PriorityQueue()
        for k, c in enumerate(x.tensor_split(2, 1)):
            q.put((-k, id(c), c))
        jobs = []
        while not q.empty():
            k, _, c = q.get()
            jobs.append((-k, c))
        with ThreadPoolExecutor(2) as pool:
            done = dict(pool.map(self.work, jobs))
        return torch.cat([done[k] for k in sorted(done)], 1)


BUCKETS = [50, 100, 200, 333]


@attack(X4, dims=D, feeds=own((1, 49), (1, 50), (1, 51), (2, 200), (2, 201), (1, 333), (1, 334), inputs=(X4,)))
class A6728BucketOfSize(nn.Module):
    """A row of an embedding by the bucket that bisection finds for the size."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.emb = nn.Embedding(5, 4)

    def forward(self, x):
        b = bisect.bisect_left(BUCKETS, x.shape[1])
        return x + self.emb(torch.tensor([b]))


@attack(X, dims=D, feeds=own((1, 137), (4, 137), (1, 136), (2, 300)), refused="the path through the module depends on the size")
class A6729AttributeBySize(nn.Module):
    """A buffer by the size's name, another where there is none of it, through __getattr__."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w137", torch.tensor(3.0))
        self.register_buffer("w", torch.tensor(1.0))

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name[0] == "w" and name[1:].isdigit():
                return self.w
            raise

    def forward(self, x):
        return x * getattr(self, f"w{x.shape[1]}")


class Rate(enum.IntFlag):
    """Bits of sizes."""

    LOW = 1
    MID = 16
    HIGH = 256

    @classmethod
    def _missing_(cls, value):
        return super()._missing_(value & 273)


@forward(X, dims=D, feeds=own((1, 272), (1, 273), (2, 256), (1, 255), (3, 16), (1, 17)), refused="the path through the module depends on the size")
def A6730FlagsOfSize(self, x):
    """Flags of an enumeration as bits of the size."""
    r = Rate(x.shape[1] & 273)
    y = x
    if Rate.MID in r:
        y = y * 2
    if r & Rate.LOW:
        y = y + 1
    return y if r & Rate.HIGH else -y


@forward(X, dims=D, feeds=own((1, 2), (2, 3), (4, 400), (3, 211), (1, 355)), refused="the module cannot be exported")
def A6731Checksummed(self, x):
    """A gain by a checksum of the shape's bytes, a hash of a tuple and a count of bits."""
    n, t = x.shape
    c = zlib.crc32(n.to_bytes(2, "big") + t.to_bytes(4, "little")) & 3
    return x * c + hash((n, t)) % 5 + t.bit_count()


@dataclass(order=True)
class Span:
    """A span of frames; its cost is made on the side."""

    cost: int = field(init=False)
    start: int
    stop: int

    def __post_init__(self):
        self.cost = (self.stop - self.start) ** 2 - 9 * self.start

    def __bool__(self):
        return self.stop > self.start


@forward(X, dims="N=1:2:3 T=4:90:400", feeds=own((1, 4), (2, 5), (1, 26), (3, 27), (1, 400), (1, 63)), refused="the path through the module depends on the size")
def A6732LeastSpan(self, x):
    """Spans as data classes that are ordered by a cost; the least and the longest run of them are cut out."""
    t = x.shape[1]
    spans = [s for a, b in itertools.pairwise(range(0, t + 1, max(1, t // 4))) if (s := Span(a, b))]
    best = min(spans)
    last = functools.reduce(lambda p, q: q if q.cost < p.cost else p, spans, Span(0, t))
    return x[:, best.start : best.stop].mean(1), x[:, last.start :].sum(1), x * len(spans)


@forward(X, dims="N=1:2:4 T=7:90:400", feeds=own((1, 7), (2, 91), (1, 399), (3, 140), (4, 350)))
def A6733ViewOrPad(self, x):
    """A view in sevens, and where the sizes refuse, the padded one."""
    try:
        y = x.view(x.shape[0], -1, 7)
    except RuntimeError as e:
        y = F.pad(x, (0, -x.shape[1] % 7), value=1.0 if "invalid" in str(e) else 2.0).view(x.shape[0], -1, 7)
    else:
        y = y * 2
    finally:
        x = x + 1
    return y.sum(1), x


class Table:
    """A descriptor that keeps tables in a weak dictionary, made anew for what has died."""

    made = weakref.WeakKeyDictionary()

    def __get__(self, obj, owner=None):
        kept = self.made.setdefault(obj, {})
        t = obj.size
        if t not in kept:
            kept[t] = np.save(f := io.BytesIO(), np.sin(np.arange(t) * np.pi / t).astype(np.float32)) or f.getvalue()
        return torch.from_numpy(np.load(io.BytesIO(kept[t])).copy())


@attack(X, dims=D, feeds=own((1, 2), (4, 399), (2, 91)))
class A6734DescribedTable(nn.Module):
    """A window from a descriptor that reads the size that the forward left on the module."""

    window = Table()

    def forward(self, x):
        self.size = x.shape[1]
        return x * self.window


@attack(X4, dims=D, feeds=own((1, 2), (1, 3), (4, 400), (2, 255), inputs=(X4,)))
class A6735CopiedSelf(nn.Module):
    """A deep copy of a layer whose weight is changed by an odd size, and an environment's variable put back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        lin = self.lin
        old = os.environ.get("A6735")
        os.environ["A6735"] = str(x.shape[1])
        try:
            if int(os.environ["A6735"][-1:]) % 2:
                lin = copy.deepcopy(lin)
                lin.weight.data.neg_()
        finally:
            os.environ.pop("A6735") if old is None else os.environ.__setitem__("A6735", old)
        return lin(x)
