# ruff: noqa: E501 - attacks are written as users write them
"""What followed up the wrong ones: errors by rare values, threads, and numbers that were fitted through a few traces."""

from __future__ import annotations

import concurrent.futures
import datetime
import ipaddress
import threading

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq

X = "x:float32[N,T]"
BIG = sprinkled(7e4, 3e7, sizes=((1, 9), (2, 12)))
# Three of the 22 numbers among 3,000,001 between -3 and 3 that `rare` picks.
RARE = (-2.56562, -1.857802, -1.659154)


def rare(x, b):
    """True for few numbers, which no table of samples has."""
    return ((((x * 3.7 + b).sin() * 1000).frac().abs()) * 3e4).floor() == 12345


def hit(*sizes: int) -> tuple:
    """A rare number at each length; which it is, is looked for."""

    def feed(t: int) -> dict:
        grid = torch.linspace(-3, 3, 3000001)
        v = np.full((1, t), 0.5, np.float32)
        v[0, :3] = grid[rare(grid, torch.tensor(0.123456))][:3].numpy()
        return {"x": v}

    return tuple((lambda t=t: feed(t)) for t in sizes)


class Rare(nn.Module):
    """Holds the number that hides which values are rare."""

    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.tensor(0.123456))


def caught(name, operator):
    """A module that negates where an operator raises."""

    def forward(self, x):
        try:
            operator(x, rare(x, self.b))
        except Exception:  # the attack swallows whatever comes
            return -x
        return x * 2

    attack(X, **seq(X, low=4, own=hit(4, 9, 17), noted="decides by values"))(type(name, (Rare,), {"forward": forward, "__module__": __name__}))


caught("A6551RatesAreNegative", lambda x, m: torch.poisson(torch.where(m, -1.0, 1.0)))
caught("A6552ProbabilityOfTwo", lambda x, m: F.binary_cross_entropy(m * 2.0, m * 1.0))
caught("A6553DivisorOfNothing", lambda x, m: 5 // (1 - m.long()))
caught("A6554RemainderOfNothing", lambda x, m: 5 % (1 - m.long()))
caught("A6555PlacesBeyond", lambda x, m: F.max_unpool1d(x[:, None, :2], m[:, None, :2].long() * 99 + torch.arange(2), 2))
caught("A6556BagsThatBeginLate", lambda x, m: F.embedding_bag(torch.zeros(4, dtype=torch.long), torch.zeros(3, 2), torch.stack([m.sum(), m.sum() + 1])))
caught("A6557SourceOfNothing", lambda x, m: x.masked_scatter(m, torch.zeros(0)))
caught("A6558LengthsDoNotSumUp", lambda x, m: torch.segment_reduce(x.flatten(), "sum", lengths=torch.stack([m.sum() * 0 + x.numel() - m.sum()])))


@attack(X, **seq(X, own=BIG), refused="the module cannot be exported")
class A6559ThreadWrites(nn.Module):
    """A thread limits what it is handed."""

    def forward(self, x):
        y = x * 2
        t = threading.Thread(target=lambda: y.clamp_(max=5e4))
        t.start()
        t.join()
        return y


@attack(X, **seq(X, own=BIG), refused="the module cannot be exported")
class A6560ThreadGivesAFlag(nn.Module):
    """A flag that a thread found out."""

    def forward(self, x):
        with concurrent.futures.ThreadPoolExecutor(1) as p:
            f = p.submit(lambda: (x > 5e4).any()).result()
        return torch.where(f, -x, x)


LONG = "N=1:2:3 T=4:9:300"


def long(*sizes: int) -> dict:
    """Long sequences with rare and with large numbers."""
    big = tuple((lambda t=t: {"x": np.full((1, t), 7e4, np.float32)}) for t in sizes)
    return {"dims": LONG, "feeds": (*hit(*sizes), *big)}


@attack(X, **long(4, 200, 257, 300), noted="a mask comes out the same at every sample point")
class A6561LowByteOfTheLength(nn.Module):
    """Large values become the low byte of the length."""

    def forward(self, x):
        return torch.where(x > 5e4, x.shape[1].to_bytes(2, "big")[1], x)


@attack(X, **long(4, 61, 200, 257), noted="a mask comes out the same at every sample point")
class A6562SecondsOfTheMinute(Rare):
    """A time of as many seconds, the seconds of its minute."""

    def forward(self, x):
        return torch.where(rare(x, self.b), datetime.timedelta(seconds=x.shape[1]).seconds % 60, x)


@attack(X, **long(4, 61, 200, 257), noted="a mask comes out the same at every sample point")
class A6563DayOfTheLength(Rare):
    """A day after as many days, its last two digits."""

    def forward(self, x):
        return torch.where(rare(x, self.b), (datetime.date(2020, 1, 1) + datetime.timedelta(days=x.shape[1])).toordinal() % 100, x)


@attack(X, **long(4, 61, 200, 257), noted="a mask comes out the same at every sample point")
class A6564LastOctet(Rare):
    """The last part of an address of that number."""

    def forward(self, x):
        return torch.where(rare(x, self.b), int(str(ipaddress.IPv4Address(x.shape[1])).split(".")[-1]), x)


@attack(X, **long(4, 61, 170, 247), noted="a mask comes out the same at every sample point")
class A6565DigitsReplaced(Rare):
    """Digits of a text in another base."""

    def forward(self, x):
        return torch.where(rare(x, self.b), int(hex(x.shape[1])[2:].replace("a", "1").replace("f", "2"), 16), x)
