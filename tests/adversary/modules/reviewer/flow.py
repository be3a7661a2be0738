"""Control flow, state, wrappers and outputs that reviewers find in pull requests."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"
LINE, T = "x:float32[N,T,4]", "N=1:2:3 T=2:5:12"
IMAGE, HW = "x:float32[N,2,H,W]", "N=1:1:3 H=4:6:13 W=4:7:13"


@forward(LINE, dims=T)
def halving_tournament(self, x):
    while x.shape[1] > 1:
        if x.shape[1] % 2:
            x = F.pad(x, (0, 0, 0, 1))
        x = torch.maximum(x[:, 0::2], x[:, 1::2] * 0.9)
    return x[:, 0]


@forward(LINE, dims=T)
def last_two_steps(self, x):
    outputs, h = [], x[:, 0]
    for i in range(x.shape[1] - 1, -1, -2):
        h = (h * 0.3 + x[:, i]).tanh()
        outputs.insert(0, h)
    return torch.stack(outputs[-2:], 1), h


@forward(LINE, dims=T)
def pairs_by_zip(self, x):
    steps = x.unbind(1)
    return sum((a * b for a, b in itertools.pairwise(steps)), torch.zeros_like(steps[0]))


@forward(IMAGE, dims=HW)
def sizes_in_arithmetic(self, x):
    h, w = x.shape[2:]
    a = (h * 3 + w) // 4 % 5
    b = max(h, w) - min(h, w)
    return x * a + b, x[:, :, : max(1, h - 7)], x[:, :, (h - 5) // 2 :], x[..., : math.ceil(w / 3)], x * abs(h - w)


@forward(IMAGE, dims=HW)
def square_root_of_tokens(self, x):
    tokens = x.flatten(2)
    side = int(tokens.shape[2] ** 0.5)
    return tokens[:, :, : side * side].reshape(x.shape[0], 2, side, side)


@forward(IMAGE, dims=HW)
def float_of_sizes(self, x):
    h, w = x.shape[2:]
    return (
        x * (h / w) ** 0.5,
        x / math.sqrt(h * w),
        x * (1 - h / 13),
        x + math.exp(-w / 3),
        x[:, :, : int(h * 0.6 + 0.5)],
        x * math.pow(w, 1.5),
        x * float(h // 2),
    )


@forward(IMAGE, dims=HW)
def tall_is_turned(self, x):
    return x.transpose(2, 3) if x.shape[2] > x.shape[3] else x


@forward(IMAGE, dims=HW)
def one_branch_for_equal(self, x):
    if x.shape[2] == x.shape[3]:
        return x + x.transpose(2, 3)
    return x - 1


@forward(IMAGE, dims=HW)
def clipped_by_size(self, x):
    n, c, h, w = x.shape
    k = min(5, h // 2 * 2 + 1, w)
    return F.avg_pool2d(x, 3, 1, 1)[:, :, :k, :k], x.view(n * c, h, w)[: n + 1], x.reshape(n, -1)[:, :: max(1, h // 4)]


@forward(IMAGE, dims=HW)
def batch_decides(self, x):
    if x.shape[0] == 1:
        return x[0].mean(0, keepdim=True).expand(2, -1, -1).unsqueeze(0)
    return x.flip(0)


@forward(IMAGE, dims=HW)
def odd_batch_is_split(self, x):
    n = x.shape[0]
    a, b = x[: (n + 1) // 2], x[(n + 1) // 2 :]
    return torch.cat((a * 2, b * 3)), a.sum(0) - b.sum(0)


@forward(IMAGE, dims=HW)
def broadcast_where_one(self, x):
    row = x[:1, :, :1]
    return x + row, torch.where(x > row, x, row), x.mean(0) @ x[-1].transpose(1, 2)


@attack(LINE, dims=T)
class CacheOfPositions(nn.Module):
    """A buffer that is made longer when it is too short, sliced else; the same values at any time."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", self.make(6), persistent=False)

    def make(self, t):
        return torch.outer(torch.arange(t, dtype=torch.float32), 10000 ** (-torch.arange(0, 4, 2) / 4)).cos()

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            self.table = self.make(x.shape[1])
        return x * self.table[: x.shape[1]].repeat(1, 2)


@attack(X, dims=N, refused="differs from the module")
class TrainedInside(nn.Module):
    """A child is put in training mode by forward, and back."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, momentum=0.0)

    def forward(self, x):
        y = F.batch_norm(
            x.repeat(2, 1) + torch.arange(2.0)[:, None].repeat_interleave(x.shape[0], 0), None, None, training=True
        )
        return self.norm(x) + y[: x.shape[0]]


@attack(X, dims=N, refused="on the same inputs")
class LateDropout(nn.Module):
    """Monte-Carlo dropout of the head only."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return torch.stack([F.dropout(self.a(x), 0.01, training=True) for _ in range(3)]).mean(0)


@attack(X, dims=N)
class WeightsShared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight
        self.table = nn.Embedding(4, 4)
        self.table.weight = nn.Parameter(self.a.weight.detach().t().contiguous().t())

    def forward(self, x):
        return self.b(self.a(x)) @ self.table.weight.T + self.table(x.argmax(1))


@attack(X, dims=N)
class Orthogonal(nn.Module):
    """A parametrization over a linear layer, and a symmetric one made here."""

    def __init__(self):
        super().__init__()

        class Symmetric(nn.Module):
            def forward(self, w):
                return w.triu() + w.triu(1).transpose(-1, -2)

        self.a = nn.utils.parametrize.register_parametrization(nn.Linear(4, 4), "weight", Symmetric())
        self.b = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))

    def forward(self, x):
        with nn.utils.parametrize.cached():
            return self.b(self.a(x)), self.a(x * 2)


@attack(X, dims=N)
class FunctionalCall(nn.Module):
    """A child is called with other weights, a hypernetwork makes them."""

    def __init__(self):
        super().__init__()
        self.a, self.make = nn.Linear(4, 4), nn.Linear(4, 20)

    def forward(self, x):
        made = self.make(x.mean(0))
        return torch.func.functional_call(self.a, {"weight": made[:16].view(4, 4), "bias": made[16:]}, (x,))


@attack(X, dims=N)
class Decorated(nn.Module):
    """forward under decorators: no_grad, inference_mode, wraps, and a context that changes nothing."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))

    @staticmethod
    def doubled(function):
        @functools.wraps(function)
        def call(self, x):
            return function(self, x) * 2

        return call

    @torch.no_grad()
    @doubled
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            return x * self.scale


class Pair(NamedTuple):
    boxes: torch.Tensor
    scores: torch.Tensor | None = None


@dataclasses.dataclass
class Result:
    last: torch.Tensor
    states: tuple[torch.Tensor, ...] = ()
    pair: Pair | None = None


@forward(X, dims=N)
def nested_results(self, x):
    return Pair(x * 2, x.sum(1)), [{"b": x - 1, "a": (x + 1, [x.max()])}]


@forward(X, "bias:float32[4]", dims=N)
def unused_and_default(self, x, bias, scale: float = 2.5, other=None):
    del bias
    return x * scale if other is None else x


@attack(X, dims=N)
class CustomFunction(nn.Module):
    """A custom autograd function that saves, marks as dirty and is nested."""

    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(x)
            y = x.clone().clamp_(low, high)
            ctx.mark_non_differentiable(y)
            return y, (x - y).abs()

        @staticmethod
        def backward(ctx, a, b):
            return a, None, None

    def forward(self, x):
        y, rest = self.Clip.apply(x, -0.5, 0.75)
        return self.Clip.apply(y * 2, 0.0, 1.0)[0] + rest


@attack(X, dims=N)
def scripted_functions():
    @torch.jit.script
    def gelu(x: torch.Tensor, k: int = 3) -> torch.Tensor:
        y = x
        for _ in range(k):
            y = y * torch.sigmoid(1.702 * y)
        return y

    class Calls(nn.Module):
        def forward(self, x):
            return gelu(x) + gelu(x.flip(1), 1)

    return Calls()


@attack(X, dims=N)
def global_and_buffer_hooks():
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    module[1].register_forward_hook(lambda m, i, o: o + i[0], prepend=True)
    module[1].register_forward_hook(lambda m, i, o: o * 2)
    module[2].register_forward_pre_hook(lambda m, i: (i[0].round(decimals=1),))
    module.register_forward_hook(lambda m, i, o: {"out": o, "in": i[0]})
    return module


@attack(LINE, dims=T)
class EarlyReturnOfConfig(nn.Module):
    """Layers are skipped by a list, a ModuleDict is looked up by a string made here."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({f"layer{i}": nn.Linear(4, 4) for i in range(4)})
        self.skip = {1, 3}

    def forward(self, x):
        states = (x,)
        for i, (name, _) in enumerate(sorted(self.layers.items(), reverse=True)):
            if i not in self.skip:
                states += (self.layers[name](states[-1]).relu(),)
        return states[-1], torch.stack(states).amax(0), states[1][:, -1]


@attack(X, dims=N, refused="forward changes")
class BufferWrittenInPart(nn.Module):
    """A row of a buffer is written in each call, and only that row is read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(3, 4))

    def forward(self, x):
        self.memory[1] = x.mean(0)
        return x - self.memory[1] + self.memory[0]


@attack(X, dims=N, refused="on the same inputs")
class BufferReadBeforeWrite(nn.Module):
    """A residual against the last frame, which is kept when it is large only."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        y = x - self.last
        self.last.copy_(torch.where(x.abs().max() > 50, x[0], self.last))
        return y
