"""Round 29, sizes: texts, errors, sets, floats of sizes."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

LONG = "N=1:1:2 T=16:20:60"


def _x(length, n=1, c=4, seed=0):
    rng = np.random.default_rng(seed + length)
    return lambda: {"x": rng.standard_normal((n, length, c)).astype(np.float32)}


def _im(h, w, n=1, c=3, seed=0):
    rng = np.random.default_rng(seed + h * 1000 + w)
    return lambda: {"x": rng.standard_normal((n, c, h, w)).astype(np.float32)}


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:64:200", feeds=(_x(49), _x(98), _x(103), _x(196)))
def A29ArangeByAFraction(self, x):
    """arange(0, 1, 1/T) has T + 1 elements at T = 49."""
    steps = torch.arange(0, 1, 1 / x.shape[1])
    return x * steps[: x.shape[1], None], steps


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(25), _x(35), _x(45), _x(55), _x(34)))
def A29RoundsToTens(self, x):
    """round(25, -1) is 20, round(35, -1) is 40."""
    length = round(x.shape[1], -1)
    return F.interpolate(x.transpose(1, 2), size=length, mode="linear").transpose(1, 2)


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(27), _x(59), _x(18)))
def A29PowWithAModulus(self, x):
    return x.roll(pow(3, x.shape[1], 17), 1)


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_x(31), _x(32), _x(48), _x(60)))
class A29BranchesByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleDict({n: nn.Linear(4, 4) for n in ("short", "bucket_2", "bucket_3")})

    def forward(self, x):
        name = f"bucket_{x.shape[1] // 16}"
        return self.branches[name if name in self.branches else "short"](x)


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_x(37), _x(36)))
class A29BufferByItsSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias_20", torch.randn(20, 4))
        self.register_buffer("bias_37", torch.randn(37, 4))

    def forward(self, x):
        name = "bias_%d" % x.shape[1]
        return x + getattr(self, name) if hasattr(self, name) else x


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_x(59), _x(60), _x(40)))
class A29LastOfAList(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 1.0, 2.0]
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        try:
            scale = self.scales[x.shape[1] // 20]
        except IndexError:
            scale = 7.0
        return self.rnn(x * scale)[0]


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(21), _x(22), _x(24)))
def A29ViewsOrPads(self, x):
    try:
        y = x.view(x.shape[0], x.shape[1] // 4, 4, 4)
    except RuntimeError:
        y = F.pad(x, (0, 0, 0, -x.shape[1] % 4), value=9.0).reshape(x.shape[0], -1, 4, 4)
    return y.mean(2)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=16:21:60", feeds=(_x(25), _x(40, 2), _x(24), _x(21, 3)))
def A29MatchesTheShape(self, x):
    match tuple(x.shape):
        case (1, t, _) if t % 5 == 0:
            return x * 2
        case (n, 40, c):
            return x + n + c
        case (n, t, _):
            return x - t / n
    return x


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=3:7:20", feeds=(_x(4, 4), _x(4, 1), _x(3, 3), _x(3, 1)))
def A29DistinctSizes(self, x):
    return x * len({x.shape[0], x.shape[1], x.shape[2]}), x + len(set(x.shape)), x - x.shape.count(4)


@attack("x:float32[N,T,12]", dims="N=1:1:2 T=16:22:60", feeds=(_x(35, c=12), _x(33, c=12), _x(49, c=12), _x(53, c=12)))
class A29GroupsThatDivide(nn.Module):
    def forward(self, x):
        t = x.shape[1]
        groups = next(k for k in (7, 5, 3, 2, 1) if t % k == 0)
        return F.group_norm(x.transpose(1, 2).reshape(x.shape[0], t, 12), groups)


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=3:30:70", feeds=(_x(16), _x(17), _x(22), _x(23), _x(3)))
class A29SlidingInference(nn.Module):
    """Windows of 16 with a stride of 6, the last one at the end; averaged where they overlap."""

    def __init__(self):
        super().__init__()
        self.net = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        t = x.shape[1]
        x = x.transpose(1, 2)
        if t <= 16:
            return self.net(F.pad(x, (0, 16 - t)))[..., :t]
        starts = sorted({*range(0, t - 16, 6), t - 16})
        total, count = torch.zeros_like(x), torch.zeros_like(x)
        for s in starts:
            total[..., s : s + 16] += self.net(x[..., s : s + 16])
            count[..., s : s + 16] += 1
        return total / count


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(16), _x(19), _x(20), _x(43)))
def A29IndicesOfASlice(self, x):
    picks = list(range(*slice(-18, -2, 4).indices(x.shape[1])))
    return x[:, picks], x[:, range(0, x.shape[1], 7)[-1]]


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=8:20:120", feeds=(_x(9), _x(10), _x(99), _x(100)))
def A29WidthOfATimestamp(self, x):
    return x.repeat(1, 1, len(str(x.shape[1]))).sum(-1), x * int(str(x.shape[1])[-1])


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(24), _x(25), _x(51), _x(52)))
def A29WholeFloats(self, x):
    t = x.shape[1]
    if (t / 8).is_integer():
        x = x + 1
    if math.isclose(t / 3, 17):
        x = x * 3
    return x


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=5:30:300", feeds=(_x(63), _x(126), _x(29), _x(58), _x(116)))
def A29BoundsByFloatSteps(self, x):
    t = x.shape[1]
    step = t / 7
    bounds = [int(i * step) for i in range(8)]
    return torch.stack([x[:, a : max(b, a + 1)].mean(1) for a, b in itertools.pairwise(bounds)], 1)


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(17), _x(18), _x(33), _x(59)))
def A29PicksByNumpy(self, x):
    """Frames as a video loader takes them: even ones, by numpy."""
    picks = np.linspace(0, x.shape[1] - 1, 9).round().astype(int)
    parts = np.array_split(np.arange(x.shape[1]), 4)
    return x[:, picks], torch.stack([x[:, p].amax(1) for p in parts], 1)


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=16:40:60 W=16:40:60", feeds=(_im(49, 20), _im(20, 49), _im(47, 47), _im(55, 16)))
def A29LongSideTo(self, x):
    """Resize so that the long side is 48, by a scale factor."""
    scale = 24 / max(x.shape[-2:])
    return F.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=False)


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=2:9:40", feeds=(_x(2), _x(6), _x(7), _x(11), _x(16)))
def A29ChunksThatAreFewer(self, x):
    parts = x.chunk(5, 1)
    return torch.stack([p.mean(1) for p in parts], 1), x * len(parts), x[:, -parts[-1].shape[1] :]


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(17), _x(29), _x(53), _x(49), _x(35)))
def A29PrimeLengths(self, x):
    t = x.shape[1]
    prime = all(t % p for p in (2, 3, 5, 7))
    divisors = sum(1 for i in range(1, t + 1) if t % i == 0)
    return F.pad(x, (0, 0, 0, 1)) if prime else x, x * divisors


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=8:20:90", feeds=(_x(15), _x(16), _x(47), _x(48), _x(80)))
class A29LayersZippedWithSteps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        for layer, start in zip(self.layers, range(0, x.shape[1] - 8, 16)):
            x = x + layer(x[:, start : start + 8]).mean(1, keepdim=True)
        return x


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:70:260", feeds=(_x(64), _x(125), _x(243), _x(216), _x(128)))
def A29CubeRoots(self, x):
    t = x.shape[1]
    return x[:, : int(t ** (1 / 3))], x[:, : int(math.log(t, 3))], x[:, : int(math.log(t) / math.log(2))]


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:18:40 W=8:32:40", feeds=(_im(18, 32), _im(9, 16), _im(32, 18), _im(14, 21), _im(21, 14)))
def A29AspectAndKey(self, x):
    h, w = x.shape[-2:]
    if h * 16 == w * 9:
        x = x * 2
    short = min((h, w), key=lambda s: (s % 7, s))
    return x + short, x[..., : sorted([h, w, 17])[1] // 2, :]


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_x(33), _x(16), _x(31), _x(32)))
def A29ReducedSizes(self, x):
    t = x.shape[1]
    odd = functools.reduce(lambda a, b: a ^ b, range(t))
    ruler = t & -t
    return x * (1 + odd), x * ruler, x.roll(~t, 1), x[:, : math.gcd(t, 12)]


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=4:9:20", feeds=(_x(4), _x(5), _x(8), _x(17)))
class A29DistancesByComprehension(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(9))

    def forward(self, x):
        t = x.shape[1]
        near = torch.tensor([[max(-4, min(4, j - i)) + 4 for j in range(t)] for i in range(t)])
        return (x @ x.transpose(1, 2) + self.table[near]).softmax(-1) @ x


@forward("x:float32[N,T,4]", dims="N=1:1:3 T=8:20:60", feeds=(_x(10), _x(20), _x(30), _x(35), _x(45)))
def A29HopsByDivmod(self, x):
    t = x.shape[1]
    hops, rest = divmod(t, 0.1 * 10 * 5)
    frames = math.ceil(t / 0.7)
    return x * hops + rest, F.interpolate(x.transpose(1, 2), frames), x * (t // 0.1), x + t % 0.7
