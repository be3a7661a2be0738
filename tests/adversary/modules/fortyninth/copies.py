# ruff: noqa: E501 - attacks are written as users write them
"""Copies that Python makes of tensors, numbers of sizes in FP64 and halves, and single constructs that were refused together."""

from __future__ import annotations

import copy
import dataclasses
import functools
import io
import itertools
import math
import pickle

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyninth.channels import LOUD, SEVENS
from tests.adversary.modules.fortyseventh.figures import own
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, Y = "x:float32[N,T]", "y:float32[N,S]"
RARE = seq(X4, own=own(SEVENS, LOUD))
MANY = (1, 2, 3, 4, 50, 99, 100, 119, 120, 159, 160, 161, 279, 280, 281, 399, 400, 581, 1000, 2047, 2048, 2049, 3000, 4096, 5000)


@dataclasses.dataclass
class Out:
    """What a model gives."""

    features: torch.Tensor
    scale: int = 3


@forward(X4, **RARE)
def A6313DeepCopyDecides(self, x):
    """A deep copy of what was computed decides at a mark."""
    z = copy.deepcopy(x * 1.0)
    return torch.where(z == 777.0, 0.0, x)


@forward(X4, **RARE)
def A6314FieldsAsDictionary(self, x):
    """dataclasses.asdict copies the tensors in it deeply."""
    d = dataclasses.asdict(Out(x * 1.0))
    return x + (d["features"] - 1e6).clamp(min=0) * d["scale"]


@forward(X4, **RARE)
def A6315FieldsAsTuple(self, x):
    """dataclasses.astuple does so too."""
    f, k = dataclasses.astuple(Out(x * 1.0))
    return torch.where(f == 777.0, 0.0, x) * k


@attack(X4, **RARE)
class A6316CopyOfItself(nn.Module):
    """A module that keeps its last first step in an attribute, copies itself, and reads the copy's."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        self.last = x[0, 0] * 1.0
        twin = copy.deepcopy(self)
        return torch.where(twin.last > 1e6, 0.0, x)


@attack(X4, **RARE)
class A6317CopyOfALayer(nn.Module):
    """A copy of a layer whose weights are doubled."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        twin = copy.deepcopy(self.lin)
        with torch.no_grad():
            twin.weight.mul_(2)
        return twin(x) - self.lin(x)


@forward(X4, **RARE, refused="cannot be compared")
def A6318ThroughAPickle(self, x):
    """Through a pickle, as a cache on a disk would."""
    z = pickle.loads(pickle.dumps(x * 1.0))
    return x + (z - 1e6).clamp(min=0)


@forward(X4, **RARE, refused="cannot be compared")
def A6319ThroughAFile(self, x):
    """Through torch.save and torch.load in memory."""
    b = io.BytesIO()
    torch.save(x * 1.0, b)
    b.seek(0)
    return torch.where(torch.load(b) == 777.0, 0.0, x)


@forward(X4, **RARE)
def A6320ReplacedField(self, x):
    """dataclasses.replace copies no tensor; torch.tensor of a tensor does."""
    o = dataclasses.replace(Out(x * 1.0), scale=2)
    return torch.where(o.features == 777.0, 0.0, x) * o.scale, torch.where(x.new_tensor(x) == 777.0, 1.0, 0.0)


@forward(X, **long(X, sizes=MANY), refused="follows from sizes and is another one then")
def A6321ShareInDoubles(self, x):
    """A share of the length in doubles is compared with two numbers."""
    t = torch.full((), x.shape[1], dtype=torch.float64)
    return torch.where((t * 0.1 == 0.3) | (t * 0.1 == 58.1), x * 2, -x)


@forward(X, **long(X, sizes=MANY), refused="does not compute what the module computes")
def A6322LengthInHalf(self, x):
    """The length in half precision, squared, is infinite from 256 on: a condition."""
    h = torch.full((), x.shape[1], dtype=torch.float16)
    return torch.cond(torch.isinf(h * h), lambda v: v * 2, lambda v: -v, (x,))


@forward(X, **long(X, sizes=MANY))
def A6323LengthInHalfChooses(self, x):
    """The same by where, and positions in half precision."""
    h = torch.full((), x.shape[1], dtype=torch.float16)
    p = torch.arange(x.shape[1]).half()
    return torch.where(torch.isinf(h * h), x * 2, -x), (p * 0.1).float(), (p + p).float()


@forward(IMAGE, **pix(IMAGE))
def A6324MatchOfShapes(self, x):
    """A match with two numbers and a wildcard alone."""
    match x.shape:
        case (_, _, 7, _):
            return x * 2
        case (_, _, _, 11):
            return x + 1
        case _:
            return -x


@forward(IMAGE, **pix(IMAGE))
def A6325AreaInThree(self, x):
    """Above, below or of the same area."""
    h, w = x.shape[-2:]
    return x * 2 if h * w > 60 else x + 1 if h * w == 60 else -x


@forward(X, Y, **two(X, Y), refused="the path through the module depends on the size")
def A6326SignOfDifference(self, x, y):
    """The sign of a difference of lengths, a chain, a tuple that is compared."""
    t, s = x.shape[1], y.shape[1]
    return x * ((t > s) - (t < s)), x * 2 if 2 < t <= s < 11 else -x, y * 2 if (t, s) > (6, 4) else -y


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6327HowManyChunks(self, x):
    """How many chunks with an overlap: the length of a range with a start, an end and a step."""
    return x * len(range(0, max(x.shape[1] - 160, 0) + 1, 120))


@forward(X, **long(X, sizes=MANY), refused="differs from the module")
def A6328NearestKnown(self, x):
    """The nearest of known lengths by min with a key."""
    t = x.shape[1]
    return x * min([128, 51, 77, 204, 400], key=lambda a: abs(a - t))


@forward(X, **long(X, sizes=MANY))
def A6329MathSplit(self, x):
    """isqrt, trunc of a negative quotient, a rounded quotient, a power of two above."""
    t = x.shape[1]
    return x * 2 if math.isqrt(t) ** 2 == t else x, x * math.trunc(-t / 3), x * round(t / 1000, 1), F.pad(x, (0, (1 << (t - 1).bit_length()) - t))[:, -1]


@forward("x:float32[N,T]", dims="N=1:1:2 T=1:50:400")
def A6330TablesOfPython(self, x):
    """comb, remainder, fmod, a set of remainders, a median of three, runs of digits: tables by the length."""
    t = x.shape[1]
    r = {(t + d) % 6 for d in range(3)}
    runs = max((sum(1 for _ in g) for k, g in itertools.groupby([(t >> k) & 1 for k in range(9)]) if k), default=0)
    return x + math.comb(t, 2), x * math.remainder(t, 6.0), x * math.fmod(t, 2.5), x + len(r & {0, 5}), x * runs


@forward(X, Y, **two(X, Y), refused="the path through the module depends on the size")
def A6331NearlyAlike(self, x, y):
    """math.isclose of two lengths."""
    return x * 2 if math.isclose(x.shape[1], y.shape[1], rel_tol=0.1) else -x


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6332BitOfLength(self, x):
    """One bit of the length."""
    return -x if x.shape[1] & 64 else x


@forward(X4, **seq(X4))
def A6333ValuesByPartial(self, x):
    """A chain of partials by reduce, over layers chosen by a comprehension."""
    fs = [functools.partial(torch.clamp, min=-k) for k in range(3)] + [functools.partial(torch.roll, shifts=k, dims=1) for k in (1, -2)]
    return functools.reduce(lambda v, f: f(v), fs, x), np.prod([2, 3]) * x


@attack(IMAGE, **pix(IMAGE))
class A6334LayerMadeAtFirst(nn.Module):
    """A convolution is made at the first call, with the weights of another one."""

    def __init__(self):
        super().__init__()
        self.base, self.conv = nn.Conv2d(2, 3, 3, padding=1), None

    def forward(self, x):
        if self.conv is None:
            self.conv = copy.deepcopy(self.base)
        return self.conv(x)


class Gain(nn.Module):
    """A gain with a default of its class."""

    gain = 1.0

    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return x * self.gain


@attack(X4, **seq(X4))
class A6335GainMadeAtFirst(nn.Module):
    """A part that is made at the first call, always alike."""

    def __init__(self):
        super().__init__()
        self.part = None

    def forward(self, x):
        if self.part is None:
            self.part = Gain(2.0)
        return self.part(x)
