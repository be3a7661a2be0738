"""Decisions by value through odd exits, memories of sizes in odd places, and other Python that a trace cannot see."""
# ruff: noqa: E501, RET504, B019 - attacks are written as users write them

from __future__ import annotations

import bisect
import collections
import contextlib
import contextvars
import copy
import enum
import functools
import heapq
import io
import itertools
import json
import logging
import pickle
import statistics
import struct
import weakref
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@forward(X, dims=D, kinds=FINITE, refused="value")
def A8020HeapOfScores(self, x):
    """The three best frames by heapq.nlargest over floats of tolist()."""
    s = x.sum(-1)
    best = torch.tensor([heapq.nlargest(2, range(x.shape[1]), key=row.__getitem__) for row in s.tolist()])
    return x.gather(1, best[..., None].expand(-1, -1, 6))


@forward(X, dims=D, kinds=FINITE, refused="return x * 2 if top")
def A8021PackedBytes(self, x):
    """A decision by bytes: struct.pack of a float, the sign bit asked in Python."""
    top = struct.pack("<f", x.mean())[3]
    return x * 2 if top & 0x80 else x + 1


@forward(X, dims=D, kinds=FINITE, refused="value")
def A8022StatisticsMedian(self, x):
    """statistics.median of a list of rows' sums, as a threshold."""
    m = statistics.median(x.sum((1, 2)).tolist())
    return (x > m).float()


@forward(X, dims=D, kinds=FINITE, refused="value")
def A8023ReprOfTensor(self, x):
    """A decision by a text: the repr of a rounded tensor."""
    return x + 1 if "-" in repr(x[0, 0, 0]) else x - 1


@forward(X, dims=D, kinds=FINITE, refused="value")
def A8024NumpyRoundTrip(self, x):
    """numpy in the middle: argpartition and interp on x.numpy(), back by from_numpy."""
    a = x.numpy()
    k = np.argpartition(a, 2, axis=-1)[..., :2]
    return x.gather(-1, torch.from_numpy(k)), torch.from_numpy(np.interp(a, [-1, 0, 1], [0, 3, 4])).float()


@forward(X, dims=D, kinds=FINITE, refused="value")
def A8025DlpackAndArrayProtocol(self, x):
    """np.from_dlpack and torch.as_tensor of an array that was computed from it: a copy of a value."""
    scale = np.from_dlpack(x.detach()).max()
    return x / torch.as_tensor(scale).clamp(min=1)


@attack(X, dims=D, kinds=FINITE)
class A8026LruOfShapes(nn.Module):
    """functools.lru_cache on a method, keyed by shape alone: a position table and a window."""

    @functools.lru_cache(maxsize=2)
    def table(self, t, c=6):
        return torch.outer(torch.arange(t).float(), 1 / (100.0 ** (torch.arange(c) / c))).sin()

    def forward(self, x):
        return x + self.table(x.shape[1]), x * self.table(x.shape[-1])[: x.shape[1] % 6 + 1].sum(0)


class Keyless(dict):
    def __missing__(self, k):
        self[k] = v = torch.ones(k[0]) * len(self)
        return v


@attack(X, dims=D, kinds=FINITE, refused="first call")
class A8027OrderOfFirstSizes(nn.Module):
    """A table whose values follow the order in which sizes were first seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Keyless()

    def forward(self, x):
        return x * self.seen[x.shape[1], "w"][:, None]


LEVEL = contextvars.ContextVar("level", default=1.0)


@attack(X, dims=D, kinds=FINITE)
class A8028ContextVariable(nn.Module):
    """A ContextVar set and reset by token around each half; copy_context().run of a lambda."""

    def part(self, x):
        return x * LEVEL.get()

    def forward(self, x):
        token = LEVEL.set(x.shape[1] / 3)
        try:
            a = self.part(x)
        finally:
            LEVEL.reset(token)

        def inner():
            LEVEL.set(0.25)
            return self.part(x)

        b = contextvars.copy_context().run(inner)
        return a, b, self.part(x)


@attack(X, dims=D, kinds=FINITE, refused="first call")
class A8029ContextVariableLeft(nn.Module):
    """A ContextVar that is set by the first call and never reset: later calls scale by the first length."""

    def forward(self, x):
        if LAST.get() is None:
            LAST.set(x.shape[1])
        return x * LAST.get()


LAST = contextvars.ContextVar("last", default=None)


@attack(X, dims=D, kinds=FINITE, refused="from the first call")
class A8030WeakRefTable(nn.Module):
    """A WeakKeyDictionary by module and finalizers: a table of the first size, alive as long as the module."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        t = TABLES.setdefault(self.lin, torch.arange(x.shape[1]).float())
        return self.lin(x) + t.mean()


TABLES: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


@attack(X, dims=D, kinds=FINITE, refused="many calls")
class A8031GeneratorState(nn.Module):
    """itertools.count and cycle as attributes: each call takes the next number."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = itertools.cycle([1.0, 1.0, 1.0, 2.0])

    def forward(self, x):
        return x * next(self.turn)


@attack(X, dims=D, kinds=FINITE, refused="many calls")
class A8032EveryHundredthCall(nn.Module):
    """A counter in an io.StringIO that changes the result at the 40th call only (a warm-up schedule)."""

    def __init__(self) -> None:
        super().__init__()
        self.log = io.StringIO()

    def forward(self, x):
        self.log.write("c")
        return x * (2.0 if self.log.tell() > 40 else 1.0)


class Mode(enum.Enum):
    SHORT = 1
    LONG = 2

    @classmethod
    def _missing_(cls, value):
        return cls.LONG if value > 2 else cls.SHORT


class Flags(enum.IntFlag):
    MEAN = 1
    MAX = 2
    STD = 4


@forward(X, dims="N=1:2:3 T=1:4:9", kinds=FINITE, refused="depends on the size")
def A8033EnumsBySize(self, x):
    """Enum's _missing_ by a size, IntFlag of the length's bits, iterated and negated."""
    t = x.shape[1]
    m, f = Mode(t), Flags(t & 7)
    y = x.mean(1) if m is Mode.LONG else x.sum(1)
    if Flags.MEAN in f:
        y = y + 1
    if f & Flags.MAX:
        y = y + x.amax(1)
    return y * bin(f.value).count("1"), x * (3 if (~f & Flags.STD) else 5)


@forward(X, dims="N=1:2:3 T=1:4:9", kinds=FINITE, refused="differs from the module")
def A8034MatchSequence(self, x):
    """match on the shape as a mapping, a class pattern with attributes, or-patterns, a star in the middle."""
    match {"n": x.shape[0], "t": x.shape[1], "rest": tuple(x.shape)}:
        case {"n": 1, "t": 1 | 2 | 3 as t}:
            return x * t
        case {"t": 8, **rest}:
            return x * len(rest)
        case {"rest": (_, *mid, 6)} if sum(mid) % 2:
            return x - sum(mid)
        case _:
            return x.flip(1)


@forward(X, dims=D, kinds=FINITE)
def A8035FormatOfSizes(self, x):
    """Sizes through f-strings, json, Fraction, int of a slice of a text, a dictionary keyed by str(shape)."""
    t = x.shape[1]
    conf = json.loads(json.dumps({"k": t, "p": f"{t:03d}"}))
    fr = Fraction(t, 6).limit_denominator(4)
    named = {"torch.Size([2, 5, 6])": 7.0, "torch.Size([3, 9, 6])": 9.0}.get(str(x.shape), 1.0)
    return x * float(fr) + int(conf["p"][::-1].lstrip("0") or 0) + conf["k"], x.sum(1) * named


@dataclass(frozen=True)
class Geometry:
    h: int
    w: int

    @property
    def ratio(self) -> float:
        return self.h / self.w

    def __getattr__(self, name: str):
        if name.startswith("scaled_"):
            return self.h * int(name.removeprefix("scaled_"))
        raise AttributeError(name)


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=3:5:9 W=4:6:8", kinds=FINITE)
def A8036FrozenGeometry(self, x):
    """A frozen dataclass with a property and __getattr__ that makes numbers of names; letterbox to the longer side by rounding."""
    g = Geometry(*x.shape[-2:])
    side = max(g.h, g.w)
    nh, nw = round(g.h * 8 / side), round(g.w * 8 / side)
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
    dh, dw = (8 - nh) / 2, (8 - nw) / 2
    y = F.pad(y, (round(dw - 0.1), round(dw + 0.1), round(dh - 0.1), round(dh + 0.1)), value=0.447)
    return y, x * g.ratio + g.scaled_3


@attack(X, dims=D, kinds=FINITE, refused="")
class A8037PickleDecision(nn.Module):
    """The parity of a pickled mean: a decision by value through bytes."""

    def forward(self, x):
        return x + (len(pickle.dumps(x.mean().half().tolist())) + round(float(x.mean()))) % 2


@attack(X, dims=D, kinds=FINITE)
class A8038SuppressedErrors(nn.Module):
    """contextlib.suppress around an index beyond the size, ExitStack, an error in a with-block that a manager eats."""

    def forward(self, x):
        y = x
        with contextlib.suppress(IndexError):
            y = y + x[:, 4:5].sum(1, keepdim=True)
            y = y * x[0, 6, 0].abs().clamp(max=2)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(contextlib.suppress(RuntimeError))
            y = y.reshape(len(x), x.shape[1] // 2, 2, 6).flip(2).reshape(x.shape)
        return y


@attack(X, dims=D, kinds=FINITE, refused="depends on the size")
class A8039BisectOfSizes(nn.Module):
    """A bucket by bisect over lengths, ChainMap of defaults, Counter of shape's digits, a deep copy of a layer per call."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        t = x.shape[1]
        b = bisect.bisect_left([3, 6], t)
        lin = copy.deepcopy(self.layers[b])
        conf = collections.ChainMap({"s": t} if t % 2 else {}, {"s": 0.5})
        c = collections.Counter(x.shape)
        return lin(x) * conf["s"] + c.most_common(1)[0][1], self.layers[c[6] % 3](x)


@attack(X, dims=D, kinds=FINITE, refused="from the first call")
class A8040LogLevelDecides(nn.Module):
    """A decision by the level of a logger that the first call lowers."""

    def forward(self, x):
        log = logging.getLogger("a8040")
        first = log.level == logging.NOTSET
        if first:
            log.setLevel(10 + x.shape[1])
        return x * (log.level - 9)
