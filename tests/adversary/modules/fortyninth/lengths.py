# ruff: noqa: E501, B007 - attacks are written as users write them
"""Decisions by sizes through parts of Python that are seldom met: tools of operator and itertools, patterns, texts, orders."""

from __future__ import annotations

import dataclasses
import enum
import functools
import heapq
import itertools
import math
import operator

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_last import MANY
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, Y = "x:float32[N,T]", "y:float32[N,S]"


@forward(IMAGE, **pix(IMAGE), refused="the path through the module depends on the size")
def A6221ShapePatterns(self, x):
    """A match over the shape with guards, captures, alternatives and a wildcard."""
    match x.shape:
        case (_, _, h, w) if h == w:
            return x.transpose(2, 3)
        case (_, _, 1 | 2 | 3, w):
            return x * w
        case (_, _, h, (7 | 11) as w):
            return x + h / w
        case [*_, h, w] if h > 2 * w:
            return x.flip(2)
        case _:
            return x - 1


@functools.total_ordering
@dataclasses.dataclass(frozen=True, eq=False)
class Area:
    """Sizes that are ordered by area, then by height."""

    h: int
    w: int

    def key(self):
        return (self.h * self.w, self.h)

    def __eq__(self, other):
        return self.key() == other.key()

    def __lt__(self, other):
        return self.key() < other.key()

    def __hash__(self):
        return hash(self.key())


@forward(IMAGE, **pix(IMAGE), refused="the path through the module depends on the size")
def A6222OrderedByArea(self, x):
    """The picture is above, below or of the same area as a base of 60 pixels in 6 rows."""
    a, b = Area(*x.shape[-2:]), Area(6, 10)
    return x * 2 if a > b else x + 1 if a == b else x.flip(3) if a >= Area(6, 9) else -x


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6223GroupedByRuns(self, x):
    """Runs of binary digits of the length by groupby: the longest run of ones scales."""
    t = x.shape[1]
    digits = [(t >> k) & 1 for k in range(13)]
    runs = [(k, sum(1 for _ in g)) for k, g in itertools.groupby(digits)]
    return x * max((n for k, n in runs if k), default=0)


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6224FirstThatFits(self, x):
    """The first bucket that is not too short by dropwhile, next and a default, and the last by takewhile."""
    t = x.shape[1]
    buckets = (16, 100, 640, 1000, 2223)
    up = next(itertools.dropwhile(lambda b: b < t, buckets), 8192)
    down = list(itertools.takewhile(lambda b: b <= t, buckets))
    return x * (up / 16), x[:, : down[-1] if down else t]


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6225ToolsOfOperator(self, x):
    """operator's functions on the length: floordiv, itemgetter, truediv, rshift, is_not, countOf and indexOf of a list."""
    t = x.shape[1]
    k = operator.floordiv(t, 7)
    r = operator.mod(t, 5)
    pick = operator.itemgetter(r)([1.0, 2.0, 0.5, -1.0, 3.0])
    n = operator.countOf([k, k + 1, 143, 2 * k], 143)
    return x * pick + n, x * operator.truediv(t, 3), x + operator.rshift(t, 4), -x if operator.and_(t, 64) else x


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6226ComparedByFunction(self, x):
    """sorted with cmp_to_key of lengths by distance to the length, heapq's two nearest."""
    t = x.shape[1]
    known = [128, 512, 777, 2048, 4000]
    near = sorted(known, key=functools.cmp_to_key(lambda a, b: abs(a - t) - abs(b - t)))[0]
    two_ = heapq.nsmallest(2, known, key=lambda b: abs(b - t))
    return x * near / 128, x + sum(two_)


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6227MathSeldom(self, x):
    """math's seldom functions of the length: modf, fmod, remainder, ulp, isqrt squared, comb, perm, trunc of a negative."""
    t = x.shape[1]
    frac, whole = math.modf(t / 8)
    return x * frac, x + whole, x * math.remainder(t, 6.0), x * math.fmod(t, 2.5), x + (math.isqrt(t) ** 2 == t), x + math.comb(t, 2), x * math.trunc(-t / 3)


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6228AccumulatedBudget(self, x):
    """How many blocks of growing size fit: accumulate, bisected by a loop with a break and an else."""
    t = x.shape[1]
    for k, total in enumerate(itertools.accumulate(range(3, 200, 5))):
        if total > t:
            break
    else:
        k = 99
    return x * k, x[:, : max(k, 1)]


class Fit(enum.Flag):
    """How a picture fits."""

    NONE = 0
    WIDE = enum.auto()
    TALL = enum.auto()
    ODD = enum.auto()


@forward(IMAGE, **pix(IMAGE))
def A6229FlagsOfFit(self, x):
    """Flags that are joined by size, looked up by membership and by value."""
    h, w = x.shape[-2:]
    f = Fit.NONE
    f |= Fit.WIDE if w > h + 3 else Fit.NONE
    f |= Fit.TALL if h > 12 else Fit.NONE
    f ^= Fit.ODD if (h * w) % 2 else Fit.NONE
    y = x.flip(3) if Fit.WIDE in f else x
    y = y * {Fit.NONE: 1.0, Fit.TALL: 2.0, Fit.ODD: 3.0}.get(f & ~Fit.WIDE, 4.0)
    return y + f.value


@forward(X, Y, **two(X, Y), refused="the path through the module depends on the size")
def A6230ClosenessOfLengths(self, x, y):
    """math.isclose of two lengths with a relative tolerance; min with a key; chained comparisons with a middle that moves."""
    t, s = x.shape[1], y.shape[1]
    a = x.sum(1, keepdim=True) if math.isclose(t, s, rel_tol=0.1) else x.mean(1, keepdim=True)
    short = min((x, y), key=lambda v: v.shape[1])
    b = short * 2 if 2 < t <= s < 11 else short
    return a, b.sum(1), x * ((t > s) - (t < s))


@forward(X, Y, **two(X, Y), refused="the path through the module depends on the size")
def A6231WhichOfMany(self, x, y):
    """A sum of comparisons as an index into layers, a tuple compared with a tuple, any and all over both sizes."""
    t, s = x.shape[1], y.shape[1]
    k = (t > 3) + (s > 5) + (t * s > 40)
    f = [torch.sin, torch.cos, torch.tanh, torch.exp][k]
    g = -1.0 if (t, s) > (6, 4) else 1.0
    z = any(v % 5 == 0 for v in (t, s)) and not all(v > 9 for v in (t, s))
    return f(x) * g, y + z


class Heads(nn.Module):
    """Which head serves is told by a method that dispatches on a type."""

    @functools.singledispatchmethod
    def pick(self, key):
        return 1.0

    @pick.register
    def _(self, key: tuple):
        return 2.0 + key[0]

    @pick.register
    def _(self, key: str):
        return 3.0

    def forward(self, x):
        t = x.shape[1]
        key = (t % 3,) if t > 20 else "short" if t < 4 else t
        return x * self.pick(key)


attack(X4, **seq(X4))(type("A6232DispatchedMethod", (Heads,), {"__module__": __name__}))


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6233RangesThatEnd(self, x):
    """Overlapping chunks: ranges with steps, the last moved back so that it ends with the input; how many is by the length."""
    t = x.shape[1]
    size, hop = 160, 120
    starts = list(range(0, max(t - size, 0) + 1, hop))
    if starts[-1] + size < t:
        starts.append(t - size)
    last = x[:, starts[-1] : starts[-1] + size]
    return last.mean(1), x * len(starts)


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6234PowerAboveAndBelow(self, x):
    """Padded to the next power of two by bit_length, cut to the one below by a logarithm, zeros between."""
    t = x.shape[1]
    up = 1 << (t - 1).bit_length()
    down = 2 ** int(math.log2(t))
    return F.pad(x, (0, up - t)).view(x.shape[0], 2, -1).sum(-1) if up > 1 else x, x[:, :down].amax(1)


@forward(X, **long(X, sizes=MANY))
def A6235HopByDuration(self, x):
    """A hop in seconds times a rate, rounded as Python rounds, frames by it, and a rate from the length and a duration."""
    t = x.shape[1]
    hop = round(0.0125 * 1000)
    sec = t / 1000
    n = int(sec // 0.0125)
    return x[:, ::hop], x * n, x * round(sec, 1), x + int(sec * 60) % 7


@forward(X4, **seq(X4))
def A6236StackOfSlices(self, x):
    """Slices as objects: slice of None, a list of slices by the length, Ellipsis in a tuple, an index by an object with __index__."""

    class Third:
        def __index__(self):
            return 2

    t = x.shape[1]
    parts = [slice(k, None, 3) for k in range(min(t, 3))]
    y = sum(x[(slice(None), p)].sum(1) for p in parts)
    return y, x[(..., slice(None, None, 2))], x[..., Third()], x[operator.itemgetter(slice(0, 1))(range(2))[0]]


@forward(X4, **seq(X4), refused="the path through the module depends on the size")
def A6237WalrusAndComprehension(self, x):
    """An assignment within a condition, nested comprehensions with conditions on the size, a set of remainders, star arguments."""
    if (k := x.shape[1] // 4) > 2 and (r := x.shape[1] % 4) != 1:
        x = x * (k + r)
    rest = {(x.shape[1] + d) % 6 for d in range(3)}
    w = [a * b for a in range(3) for b in range(3) if (a + b + x.shape[1]) % 2]
    return x + len(rest & {0, 5}), x * sum(w), torch.stack([*(x[..., c] for c in range(4) if c != x.shape[1] % 4)], -1)


@forward(X, **long(X, sizes=MANY))
def A6238CountedDownTo(self, x):
    """A loop that halves and adds (Collatz) as often as it takes to reach one, at most 20 times."""
    n, k = x.shape[1], 0
    while n != 1 and k < 20:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return x * k


@forward(IMAGE, **pix(IMAGE), refused="the path through the module depends on the size")
def A6239BestOfGrids(self, x):
    """LLaVA's grids: which of several aspect ratios loses least pixels, ties to the first, then resized, padded and cut to it."""
    h, w = x.shape[-2:]
    best, most, waste = None, 0, float("inf")
    for gh, gw in ((4, 4), (4, 8), (8, 4), (8, 8), (4, 12)):
        s = min(gw / w, gh / h)
        dw, dh = int(w * s), int(h * s)
        eff = min(dw * dh, w * h)
        lost = gw * gh - eff
        if eff > most or (eff == most and lost < waste):
            best, most, waste = (gh, gw), eff, lost
    return F.interpolate(x, best, mode="bilinear")


@forward(IMAGE, **pix(IMAGE))
def A6240SmartResized(self, x):
    """Qwen-VL's smart resize: multiples of 4 nearest to the sides, scaled down or up by a root when the area leaves its limits."""
    h, w = x.shape[-2:]
    hb, wb = max(4, round(h / 4) * 4), max(4, round(w / 4) * 4)
    if hb * wb > 120:
        b = math.sqrt(h * w / 120)
        hb, wb = max(4, math.floor(h / b / 4) * 4), max(4, math.floor(w / b / 4) * 4)
    elif hb * wb < 40:
        b = math.sqrt(40 / (h * w))
        hb, wb = math.ceil(h * b / 4) * 4, math.ceil(w * b / 4) * 4
    return F.interpolate(x, (hb, wb), mode="bicubic")
