"""State across calls, in-place writes, aliases, globals, time, files and the environment."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrizations

from tests.adversary.attack import attack

X, N = "x:float32[N,4]", "N=1:2:5"
SETTINGS = {"scale": 2.0, "calls": 0}
HISTORY: list[float] = []


@attack(X, dims=N, refused="forward changes")
class AlternatingSign(nn.Module):
    def __init__(self):
        super().__init__()
        self.sign = 1

    def forward(self, x):
        self.sign = -self.sign
        return x * self.sign


@attack(X, dims=N, refused="run again")
class WarmUp(nn.Module):
    """Another result from the third call on."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x if self.calls < 3 else x * 2


@attack(X, dims=N, refused="forward changes")
class CounterBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x + (self.calls > 1000).float()


@attack(X, dims=N, refused="run again")
class MovingAverage(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4), persistent=False)

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean


@attack(X, dims=N, refused="on the same inputs")
class StateInList(nn.Module):
    """State where no one looks for it."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(1)
        return x * (2.0 if len(self.seen) > 20 else 1.0)


@attack(X, dims=N, refused="on the same inputs")
class StateInClosure(nn.Module):
    def __init__(self):
        super().__init__()
        calls = 0

        def step():
            nonlocal calls
            calls += 1
            return calls

        self._step = step

    def forward(self, x):
        return x * (3.0 if self._step() > 60 else 1.0)


@attack(X, dims=N, refused="run again")
class StateInGlobal(nn.Module):
    def __init__(self):
        super().__init__()
        SETTINGS["calls"] = 0

    def forward(self, x):
        SETTINGS["calls"] += 1
        return x + (SETTINGS["calls"] % 2)


@attack(X, dims=N, refused="run again")
class StateInGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self._factors = None

    def forward(self, x):
        if self._factors is None:
            self._factors = iter([1.0, 1.0, 1.0, 1.0] + [5.0] * 10**4)
        return x * next(self._factors)

    def __deepcopy__(self, memo):
        return StateInGenerator()


@attack(X, dims=N, refused="run again")
class PreviousInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.previous = None

    def forward(self, x):
        before, self.previous = self.previous, x.clone()
        return x if before is None or before.shape != x.shape else x - before


@attack(X, dims=N, refused="run again")
class HistoryOfModule(nn.Module):
    def forward(self, x):
        HISTORY.append(0.0)
        del HISTORY[:-50]
        return x * len(HISTORY)


@attack(X, dims=N)
class MomentumInEval(nn.Module):
    """Normalises by the batch in eval mode, and keeps track."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, track_running_stats=False)

    def forward(self, x):
        return self.norm(x) if x.shape[0] > 1 else x


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)


@attack(X, dims=N)
class TiedTransposed(Twice):
    """The same storage, one of them seen transposed."""

    def __init__(self):
        super().__init__()
        self.b.weight = nn.Parameter(self.a.weight.data.T)

    def forward(self, x):
        return self.b(self.a(x).tanh())


@attack(X, dims=N)
class TiedInPlace(Twice):
    def __init__(self):
        super().__init__()
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.a(x) - self.b(x).relu()


@attack(X, dims=N)
class WeightNormed(Twice):
    def __init__(self):
        super().__init__()
        parametrizations.weight_norm(self.a)
        parametrizations.orthogonal(self.b)

    def forward(self, x):
        return self.b(self.a(x))


@attack(X, dims=N)
class SpectralNormed(Twice):
    def __init__(self):
        super().__init__()
        parametrizations.spectral_norm(self.a)

    def forward(self, x):
        return self.b(self.a(x))


@attack(X, dims=N)
class ForwardHook(Twice):
    def __init__(self):
        super().__init__()
        self.a.register_forward_hook(lambda module, inputs, output: output * 2 + inputs[0])
        self.b.register_forward_pre_hook(lambda module, inputs: (inputs[0].clamp(-1, 1),))

    def forward(self, x):
        return self.b(self.a(x))


@attack(X, dims=N, refused="after many calls")
class PrivateCounter(nn.Module):
    """Every thirteenth call is another one; the number stands in an attribute with an underscore."""

    def __init__(self):
        super().__init__()
        self._calls = 0

    def forward(self, x):
        self._calls = (self._calls + 1) % 13
        return x * (3.0 if self._calls >= 12 else 2.0)


@attack(X, dims=N, refused="after many calls")
class LateCounter(nn.Module):
    """The first call makes the number; it matters at one call of eleven, and not at the last of many."""

    def forward(self, x):
        calls = getattr(self, "_calls", 0)
        self._calls = (calls + 1) % 11
        return x * 2.0 + (1.0 if calls == 7 else 0.0)
