# ruff: noqa: E501 - attacks are written as users write them
"""Python's ways with sizes over wide ranges: rare joint sizes behind text, digests, classes, exceptions, caches; scans and drafts of decoders."""

from __future__ import annotations

import bisect
import contextlib
import enum
import functools
import hashlib
import math
import operator
import random
import zlib
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

X = "x:float32[H,W]=-4:4"
WIDE = "H=1:24:1500 W=1:24:1500"
SOME = ("normal", "zeros", "halves")


def at(*hw: tuple[int, int]) -> tuple:
    """Points at pairs of height and width."""
    return tuple(values_at(X, H=h, W=w) for h, w in hw)


@forward(X, dims=WIDE, kinds=SOME, feeds=at((1024, 1024), (1024, 1023), (512, 512), (24, 24)), noted="makes a number of a size")
def A7072Mebi(self, x):
    """A picture of two to the twentieth pixels, by a logarithm of the product, is doubled."""
    h, w = x.shape
    return x.mean(1) * (2.0 if math.log2(h * w) == 20.0 else 1.0)


class Mode(enum.Enum):
    """What a size leads to."""

    PLAIN = 0
    ODD = 1
    RARE = 2

    @classmethod
    def of(cls, h: int, w: int) -> Mode:
        """The mode by a checksum of the sizes' text."""
        c = zlib.crc32(f"{int(h)}x{int(w)}".encode()) % 1000
        return cls.RARE if c == 7 else cls.ODD if c % 2 else cls.PLAIN


RARE = [(h, w) for h in range(1, 1501, 37) for w in range(1, 1501, 11) if Mode.of(h, w) is Mode.RARE][:6]


@forward(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at(*RARE, (1, 1), (24, 24), (25, 24)),
    refused="the path through the module depends on the size",
)
def A7073Checksum(self, x):
    """An enum of modes chosen by a checksum of the text of both sizes."""
    scale = {Mode.PLAIN: 1.0, Mode.ODD: 2.0, Mode.RARE: -1.0}[Mode.of(*x.shape)]
    return x.mean(1) * scale


BLOCKED = frozenset((i * 97 % 1499 + 1, i * 61 % 1499 + 1) for i in range(1, 40))


@forward(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at(*sorted(BLOCKED)[5:12], (24, 24)),
    refused="the module looks its size up in a table",
)
def A7074Blocked(self, x):
    """Pairs of sizes in a set that is computed when the file is read are negated, as a factor from a truth."""
    return x.amax(0) * (1 - 2 * operator.contains(BLOCKED, tuple(x.shape)))


@dataclass(frozen=True)
class Spec:
    """What a plan is for."""

    h: int
    w: int

    @functools.cached_property
    def share(self) -> Fraction:
        """The aspect as a fraction of small terms."""
        return Fraction(self.w, self.h).limit_denominator(9)


@forward(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at((90, 160), (900, 1500), (843, 1499), (300, 400), (7, 9), (24, 24), (1080, 607)),
    refused="a size is handed to code that takes plain numbers only",
)
def A7075Aspects(self, x):
    """Aspects of small terms: 16 to 9 are centred, the near misses of it are not."""
    s = Spec(*x.shape)
    y = x - x.mean() if s.share == Fraction(16, 9) else x
    return y.sum(0) / s.share.denominator


EDGES = np.cumsum(np.arange(1, 40))


@forward(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at((3, 1), (1, 3), (27, 28), (28, 27), (780, 24), (779, 24), (24, 1500), (741, 742)),
    refused="the exported model differs from the module",
)
def A7076Bisected(self, x):
    """Buckets of triangular numbers by bisection: equal buckets of both sizes shift the result by the bucket."""
    i, j = bisect.bisect_left(EDGES, x.shape[0]), bisect.bisect_left(EDGES, x.shape[1])
    return x.mean(0) + (i == j) * i


@functools.lru_cache(maxsize=8)
def _window(h: int, w: int) -> torch.Tensor:
    a = torch.hann_window(h, periodic=h % 2 == 0)
    return torch.outer(a, torch.hann_window(w, periodic=w % 2 == 0)).clamp(min=0.01)


@forward(
    X, dims="H=1:24:300 W=1:24:300", kinds=SOME, feeds=at((1, 1), (2, 1), (24, 24), (25, 24), (299, 300), (300, 299))
)
def A7077CachedWindow(self, x):
    """A cached window of both sizes, periodic where even."""
    return (x * _window(*x.shape)).sum(1), _window(*x.shape).sum()


def _lot(h: int, w: int) -> float:
    return random.Random(int(h) * 1501 + int(w)).random()


LOTS = [(h, w) for h in range(1, 1501, 5) for w in range(1, 1501) if _lot(h, w) < 2e-5][:4]


@forward(X, dims=WIDE, kinds=SOME, feeds=at(*LOTS, (24, 24)), noted="makes a number of a size")
def A7078Lots(self, x):
    """A lot from a generator that both sizes seed: one in fifty thousand turns the rows' order."""
    scale = 2.0 if _lot(*x.shape) < 2e-5 else 1.0
    return x.mean(1) * scale


def _tuned() -> list[list[int]]:
    table = [[1] * 1501 for _ in range(1501)]
    for i in range(5, 9):
        table[i * 733 % 1499 + 1][i * 389 % 1499 + 1] = 2
    return table


TUNED = _tuned()
LATE = [(h, w) for h in range(1501) for w in range(1501) if TUNED[h][w] == 2][:4]


@forward(X, dims=WIDE, kinds=SOME, feeds=at(*LATE, (24, 24)), noted="makes a number of a size")
def A7079Tuned(self, x):
    """A table of tuned factors, a list of lists by both sizes, of which few entries differ."""
    h, w = x.shape
    return x.amax(1) * TUNED[h][w]


@contextlib.contextmanager
def _scaled(owner, h, w):
    before = owner.scale
    owner.scale = 3.0 if pow(h, 3, 1009) == w else before
    try:
        yield owner
    finally:
        owner.scale = before


@attack(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at((2, 8), (10, 1000), (11, 322), (24, 24), (24, 707), (1011, 8)),
    refused="the path through the module depends on the size",
)
class A7080Scaled(nn.Module):
    """A scale set for a block by a context, where one size is the other's cube modulo a prime."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
        with _scaled(self, *x.shape) as s:
            return (x * s.scale).mean(1)


class _Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, h, w):
        ctx.turn = (h * 31 + w * 17) % 1999 == 5
        return x.flip(0) if ctx.turn else x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.flip(0) if ctx.turn else g, None, None


TURNED = [(h, w) for h in range(1, 1501) for w in range(1, 1501, 71) if (h * 31 + w * 17) % 1999 == 5][:5]


@forward(X, dims=WIDE, kinds=SOME, feeds=at(*TURNED, (24, 24), (23, 24)))
def A7081Function(self, x):
    """A function with a backward of its own turns its input where a sum of both sizes has a rare remainder."""
    return _Half.apply(x, *x.shape).cumsum(0).mean(1)


@attack(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at((1, 1), (512, 512), (1024, 24), (24, 1024), (724, 725), (1448, 724), (24, 24)),
    refused="the path through the module depends on the size",
)
class A7082Precision(nn.Module):
    """Halves where the count's logarithm is whole; a hook in front checks the same and adds one."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Identity()
        self.lin.register_forward_pre_hook(lambda m, a: (a[0] + 1,) if math.log2(a[0].numel()).is_integer() else None)

    def forward(self, x):
        y = self.lin(x)
        return (y.half().float() if not math.log2(x.nelement()) % 1 else y).mean(1)


DIGESTS = [
    (h, w) for h in range(1, 1501, 5) for w in range(1, 1501) if hashlib.sha1(f"{h},{w}".encode()).digest()[:2] == b"ab"
][:4]


@forward(X, dims=WIDE, kinds=SOME, feeds=at(*DIGESTS, (24, 24)), noted="makes a number of a size")
def A7083Digest(self, x):
    """A digest of the sizes' text, of which one in some sixty thousand begins with two letters."""
    h, w = x.shape
    return x.amax(0) * (1 + (hashlib.sha1(f"{h},{w}".encode()).digest()[:2] == b"ab"))


@forward(
    X,
    dims=WIDE,
    kinds=FINITE,
    feeds=at((24, 24), (37, 41), (1009, 1013), (1, 2), (2, 1), (1499, 1493)),
    refused="Invalid value in 'split' input",
)
def A7084Chunks(self, x):
    """The chunks that a size of 37 really gives, summed over the first; a pad of what is missing to 41."""
    c = x.flatten().chunk(37)
    y = F.pad(c[-1], (0, c[0].numel() - c[-1].numel()))
    return c[0] + y, y.new_tensor(len(c))


@forward(
    X,
    dims=WIDE,
    kinds=SOME,
    feeds=at((24, 24), (25, 25), (999, 111), (1001, 8), (123, 321), (1331, 2)),
    refused="the exported model differs from the module",
)
def A7085Strings(self, x):
    """Text of sizes: palindromes, digits of the product, the nines that a format rounds up."""
    h, w = map(int, x.shape)
    s = str(h * w)
    rounded = f"{h / w:.1f}".endswith(".0")
    return x.sum(1) / (1 + s.count("9")) - 1.0 * (s == s[::-1]) + 10 * rounded


@forward(
    "x:int64[N,T]=0:5",
    "y:int64[N,T]=0:5",
    "u:float32[N,T]=0:1",
    dims="N=1:2:3 T=1:5:9",
    feeds=(
        lambda: {
            "x": np.array([[1, 2, 3], [5, 5, 5]]),
            "y": np.array([[1, 2, 3], [4, 5, 5]]),
            "u": np.array([[0, 1, 0.5], [0.25, 0.1, 0]], np.float32),
        },
    ),
)
def A7040Speculative(self, x, y, u):
    """Drafts accepted up to the first that fails; the token after it, and the rest filled."""
    ok = (x == y) | (u < 0.25)
    n = ok.long().cumprod(-1).sum(-1)
    t = x.shape[1]
    nxt = y.gather(1, n.clamp(max=t - 1)[:, None])
    out = torch.where(torch.arange(t) < n[:, None], x, -1)
    return out.scatter(1, n.clamp(max=t - 1)[:, None], nxt), n, n == t


@attack(
    "x:float32[N,T,8]=-4:4",
    dims="N=1:1:2 T=1:12:40",
    kinds=FINITE,
    feeds=tuple(values_at("x:float32[N,T,8]=-4:4", N=1, T=t) for t in (1, 2, 3, 16, 17, 32, 40)),
    refused="the path through the module depends on the size",
)
class A7042Scan(nn.Module):
    """A selective scan by doubling: as many rounds as the length has bits; cached powers in half precision."""

    def __init__(self):
        super().__init__()
        self.dt = nn.Linear(8, 8)

    def forward(self, x):
        d = F.softplus(self.dt(x))
        a, b = torch.exp(-d), d * x
        for i in range((x.shape[1] - 1).bit_length()):
            s = 1 << i
            b = b + a * F.pad(b, (0, 0, s, 0))[:, : b.shape[1]]
            a = a * F.pad(a, (0, 0, s, 0), value=1.0)[:, : a.shape[1]]
        return b, b[:, -1].to(torch.bfloat16).float()
