"""What followed up the finds of round 51."""

from __future__ import annotations

import enum
from collections import deque
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq
from tests.adversary.values import values_at

X = "x:float32[N,T]"
IDS = "i:int64[N,T]=0:40000"
AT = tuple(values_at(X, N=n, T=t) for n in (1, 2) for t in (37, 36, 5))
FALLS = tuple(values_at(X, N=2, T=t) for t in (29, 37, 29, 38, 37, 5, 5, 7, 9))
LOUD = sprinkled(9.0, 0.5, 3.11005, sizes=((1, 9), (2, 12), (2, 9)))
RARE = tuple((lambda k=k: {"i": np.array([[5, 777, k, 12]])}) for k in (31337, 3))
LAST: ContextVar[int] = ContextVar("last_length", default=0)
SEVENS = 37
FIRSTS: dict[int, torch.Tensor] = {}


class Length(enum.IntEnum):
    LONG = 37


class Whole(int):
    """A whole number of the user's."""


@forward(X, **seq(X, own=AT))
def A6666LengthOfAnEnumeration(self, x):
    """A length among those of an IntEnum."""
    return x.flip(1) if x.shape[1] in (Length.LONG, 999) else x


@forward(X, **seq(X, own=AT))
def A6667LengthOfASubclass(self, x):
    """A length is a whole number of the user's, half of it a fraction, its double a decimal."""
    t = x.shape[1]
    x = x * 2 if t == Whole(37) else x
    x = x + 1 if t / 2 == Fraction(37, 2) else x
    return -x if Decimal(74) == t * 2 else x


@forward(X, **seq(X, own=AT), refused="the path through the module depends on the size")
def A6668TextOfHalf(self, x):
    """The text of half a length is looked for."""
    return x.flip(1) if str(x.shape[1] / 2).startswith("18.5") else x


@forward(X, **seq(X, own=AT), refused="the path through the module depends on the size")
def A6669SameRange(self, x):
    """The range of a length is another range."""
    return x.flip(1) if range(x.shape[1]) == range(37) else x


@forward(X, **seq(X, own=AT), noted="whether numbers are one object")
def A6670SameAddress(self, x):
    """A length lies where a constant does."""
    return x.flip(1) if id(x.shape[1]) == id(SEVENS) else x


@attack(X, **seq(X, own=FALLS), noted="for the next call")
class A6671LengthBefore(nn.Module):
    """Shorter by far than the one before."""

    def __init__(self):
        super().__init__()
        self.last = 0

    def forward(self, x):
        before, self.last = self.last, x.shape[1]
        return x * 2 if before == 37 and x.shape[1] < 9 else x


@attack(X, **seq(X, own=FALLS), noted="for the next call")
class A6672ThreeLengths(nn.Module):
    """The last three lengths in a deque."""

    def __init__(self):
        super().__init__()
        self.lengths = deque(maxlen=3)

    def forward(self, x):
        self.lengths.append(x.shape[1])
        return x * 2 if list(self.lengths) == [5, 5, 7] else x


@forward(X, **seq(X, own=FALLS), noted="for the next call")
def A6673LengthOfTheContext(self, x):
    """The length before lies in a context variable."""
    before = LAST.get()
    LAST.set(x.shape[1])
    return x * 2 if before > 33 and x.shape[1] < 9 else x


@attack(X, **seq(X, own=FALLS), noted="for the next call")
class A6674SetAtOneLength(nn.Module):
    """One length sets a flag that another one asks for."""

    def __init__(self):
        super().__init__()
        self.flag = 0

    def forward(self, x):
        if x.shape[1] == 37:
            self.flag = 1
        return x * 2 if self.flag and x.shape[1] == 29 else x


@attack(X, **seq(X, own=LOUD), refused="forward changes 'peak' and depends on it")
class A6675LoudBefore(nn.Module):
    """Softer after a loud call."""

    def __init__(self):
        super().__init__()
        self.peak = torch.zeros(())

    def forward(self, x):
        before, self.peak = self.peak, x.amax().detach()
        return torch.where(before > 7.3, x * 0.5, x)


@forward(X, **seq(X, own=LOUD), noted="from the values of a call")
def A6676FirstOfABatch(self, x):
    """A dictionary keeps the first call of each batch size."""
    first = FIRSTS.setdefault(x.shape[0], x.detach()[:, 0])
    return torch.where((x > 3.11) & (x < 3.1101), first[:, None], x)


@forward(IDS, **seq(IDS, own=RARE), refused="the path through the module depends on the values")
def A6677TokenOfAClass(self, i):
    """A token is a whole number, and one of them counts threefold."""
    v = i.max().item()
    return i * 3 if isinstance(v, int) and v == 31337 else i


@forward(IDS, **seq(IDS, own=RARE), refused="the path through the module depends on the values")
def A6678TokenMatched(self, i):
    """The same by a pattern of a class."""
    match i.max().item():
        case int(v) if v == 31337:
            return i * 3
        case _:
            return i


@forward(IDS, **seq(IDS, own=RARE), noted="the module reads values")
def A6679TokenOfAnEnumeration(self, i):
    """A token is looked for among those of an enumeration."""
    return i * 3 if i.max().item() == Token.RARE else i


class Token(enum.IntEnum):
    RARE = 31337
