"""What a module keeps between calls, computes at its first, or draws at some sizes and values only."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

T, DIM = "x:float32[2,T,4]", "T=2:9:33"


@attack(T, dims=DIM)
class MaskOfLongest(nn.Module):
    """A causal mask that grows, and is cut at the wrong end once it is longer."""

    def __init__(self):
        super().__init__()
        self.mask = torch.zeros(0, 0)

    def forward(self, x):
        t = x.shape[1]
        if self.mask.shape[0] < t:
            self.mask = torch.full((t, t), float("-inf")).triu(1)
        return (x @ x.transpose(1, 2) + self.mask[-t:, -t:]).softmax(-1) @ x


@attack(T, dims=DIM, refused="run again")
class RotaryOfFirst(nn.Module):
    """Frequencies that follow the longest sequence so far (dynamic NTK scaling)."""

    def __init__(self):
        super().__init__()
        self.longest = 8

    def forward(self, x):
        t = x.shape[1]
        self.longest = max(self.longest, t)
        return x * torch.cos(torch.arange(t)[:, None] / self.longest)


@attack(T, dims=DIM)
class RotaryOfThis(nn.Module):
    """Frequencies that follow this sequence once it is longer than trained."""

    def forward(self, x):
        t = x.shape[1]
        base = 100.0 * (t / 16) ** 2 if t > 16 else 100.0
        return x * torch.cos(torch.arange(t)[:, None] / base ** (torch.arange(4) / 4))


class _Slopes(nn.Module):
    @functools.cached_property
    def slopes(self):
        return 2.0 ** -torch.arange(1, 5).float()

    def forward(self, x):
        return x * self.slopes


@attack(T, dims=DIM)
def cached_property_slopes():
    return _Slopes()


@attack(T, dims=DIM, refused="forward changes")
class FifthCall(nn.Module):
    """Forward is another one at its fifth call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls % 5 == 0 else x


@attack(T, dims=DIM, refused="run again")
class KeysAppended(nn.Module):
    """Keys of the calls before are attended to."""

    def __init__(self):
        super().__init__()
        self.keys = []

    def forward(self, x):
        self.keys = [*self.keys[-1:], x.mean(1, keepdim=True)]
        return x + torch.cat(self.keys, 1).mean(1, keepdim=True)


@attack(T, dims=DIM, refused="differs from the module")
class CacheByPointer(nn.Module):
    """A cache by the place in memory, which another tensor takes later."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = (x.shape[1], x.data_ptr() % 1)
        if key not in self.cache:
            self.cache[key] = x.mean()
        return x - self.cache[key]


@forward(T, dims=DIM, refused="depends on the size")
def noise_at_one_size(self, x):
    return x + torch.randn_like(x) * 0.1 if x.shape[1] == 13 else x


@forward(T, dims=DIM, refused="draws random numbers")
def noise_above_a_value(self, x):
    return torch.where(x > 5.5, x + torch.rand_like(x), x)


@forward(T, dims=DIM)
def noise_times_zero(self, x):
    return x + 0 * torch.rand_like(x)


@forward(T, dims=DIM, refused="differs from the module")
def certain_bernoulli(self, x):
    return x * torch.bernoulli(torch.ones_like(x))


@forward(T, dims=DIM)
def rrelu_of_eval(self, x):
    return F.rrelu(x, 0.1, 0.3), F.dropout(x, 0.3, self.training)


@attack(T, dims=DIM)
class RestoredBuffer(nn.Module):
    """A buffer that forward writes and puts back."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        self.scale.mul_(3)
        y = x * self.scale
        self.scale.div_(3)
        return y
