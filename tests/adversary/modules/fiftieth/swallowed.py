# ruff: noqa: B012, SIM105 - attacks are written as users write them
"""Errors by rare values that are swallowed in another way than by an except, and code without a source."""

from __future__ import annotations

import contextlib

import torch
import torch.nn.functional as F

from tests.adversary.attack import attack
from tests.adversary.modules.fiftieth.followups import Rare, hit, rare
from tests.adversary.modules.fortysixth.pictures import seq

X = "x:float32[N,T]"
POINTS = seq(X, low=4, own=hit(4, 9, 17))


def look_up(x, b):
    """Raises IndexError at rare values."""
    return F.embedding(rare(x, b).long() * 9, torch.zeros(3, 2))


class Quiet:
    """Passes over all errors."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


@contextlib.contextmanager
def quiet():
    """Passes over an index that is beyond."""
    try:
        yield
    except IndexError:
        pass


@attack(X, **POINTS, noted="a mask comes out the same at every sample point")
class A6391QuietBlock(Rare):
    """A block of the user's own that passes over errors."""

    def forward(self, x):
        with Quiet():
            look_up(x, self.b)
            return x * 2
        return -x


@attack(X, **POINTS, noted="a mask comes out the same at every sample point")
class A6392QuietGenerator(Rare):
    """A generator as a block."""

    def forward(self, x):
        with quiet():
            look_up(x, self.b)
            return x * 2
        return -x


@attack(X, **POINTS, noted="a mask comes out the same at every sample point")
class A6393ReturnedInTheEnd(Rare):
    """A return in finally drops the error."""

    def forward(self, x):
        r = -x
        try:
            look_up(x, self.b)
            r = x * 2
        finally:
            return r


@attack(X, **POINTS, noted="a mask comes out the same at every sample point")
class A6394StackOfExits(Rare):
    """An exit that was pushed says that all is well."""

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.push(lambda *a: True)
            look_up(x, self.b)
            return x * 2
        return -x


@attack(X, **POINTS, noted="a mask comes out the same at every sample point")
class A6395IndexEndsIt(Rare):
    """The operator's IndexError ends an iteration of the old kind."""

    def forward(self, x):
        class Two:
            def __getitem__(_, i):
                if i == 2:
                    raise IndexError
                return look_up(x, self.b).sum() * 0 + 1

        return x * 2 if len(list(Two())) == 2 else -x


SOURCE = """
def forward(self, x):
    try:
        look_up(x, self.b)
    except IndexError:
        return -x
    return x * 2
"""
space = {"look_up": look_up}
exec(SOURCE, space)
FUNCTIONS = {"forward": space["forward"], "__module__": __name__}
attack(X, **POINTS, noted="decides by values")(type("A6396CodeWithoutSource", (Rare,), FUNCTIONS))
