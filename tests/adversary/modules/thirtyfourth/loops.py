"""Loops over sizes in which numbers of the counter, of sizes, of attributes and of carried floats meet values."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE, halves, normal

SHORT = "N=1:2:4 T=2:9:30"
FROM_ONE = "N=1:2:4 T=1:9:24"
LONG = "N=1:1:2 T=2:20:300"


def _t(*shape, step=0.1, seed=0, **more):
    return lambda: {
        "x": (np.random.RandomState(seed + sum(shape)).randint(0, 60, shape) * step).astype(np.float32),
        **more,
    }


class _Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.rate, self.hop, self.fps = 0.1, 0.01, 29.97


@attack("x:float32[N,T,4]=0:6", dims=SHORT, kinds=FINITE, feeds=(_t(2, 30, 4), _t(1, 9, 4)))
class A3400ThresholdOfAttribute(_Cell):
    def forward(self, x):
        h, outs = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            y = torch.where(x[:, t] >= t * self.rate, x[:, t], -x[:, t])
            h = self.cell(y, h)
            outs.append(h)
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]=0:6", dims=SHORT, kinds=FINITE, feeds=(_t(2, 30, 4), _t(1, 9, 4), _t(1, 30, 4)))
class A3401CarriedThreshold(_Cell):
    def forward(self, x):
        h, outs = x.new_zeros(x.shape[0], 4), []
        level = 0.0
        for t in range(x.shape[1]):
            hit = x[:, t] > level
            h = torch.where(hit, self.cell(x[:, t], h), h)
            level += self.rate
            outs.append(h)
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]=0:6", dims=SHORT, kinds=FINITE, feeds=(_t(2, 30, 4), _t(1, 10, 4), _t(1, 20, 4)))
class A3402ThresholdOfShare(_Cell):
    def forward(self, x):
        n = x.shape[1]
        h, outs = x.new_zeros(x.shape[0], 4), []
        for t in range(n):
            share = t / n * 3.0
            h = self.cell((x[:, t] > share).float() + (x[:, t] % (share + 0.1)), h)
            outs.append(h)
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]=0:30", dims=SHORT, kinds=FINITE, feeds=(_t(2, 30, 4), _t(1, 7, 4)))
class A3403RoundedTimes(_Cell):
    def forward(self, x):
        h, outs = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            frame = round(t * 2.5) + int(t * self.fps / 10) + math.ceil(t * 0.7 - 0.1)
            h = self.cell(torch.floor(x[:, t] / (frame + 1)), h)
            outs.append(h + frame % 7)
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 30, 4), normal(1, 2, 4), normal(1, 3, 4)))
class A3404StackedCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 4), nn.GRUCell(4, 4), nn.GRUCell(4, 4)])
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        h0, h1, h2 = torch.zeros(x.shape[0], 4), torch.zeros(x.shape[0], 4), torch.zeros(x.shape[0], 4)
        outs = []
        for t in range(x.shape[1]):
            h0 = self.cells[0](x[:, t], h0)
            h1 = self.cells[1](h0, h1)
            if t % 2 == 0:
                h2 = self.cells[2](h1, h2)
            outs.append(self.out(h2))
        return torch.stack(outs, 1), h1


@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(2, 24, 4), normal(1, 1, 4), normal(1, 8, 4)))
class A3405ClockworkCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(nn.RNNCell(4, 4) for _ in range(3))

    def forward(self, x):
        h = torch.zeros(3, x.shape[0], 4)
        for t in range(x.shape[1]):
            rows = []
            for i, cell in enumerate(self.cells):
                if t % (2**i) == 0:
                    rows.append(cell(x[:, t], h[i]))
                else:
                    rows.append(h[i])
            h = torch.stack(rows, 0)
        return h


@attack("x:float32[N,T,4]=0:6", dims=FROM_ONE, kinds=FINITE, feeds=(_t(2, 24, 4), _t(1, 1, 4), _t(1, 10, 4)))
class A3406BackwardsDiscount(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        run, outs = torch.zeros(x.shape[0], 4), []
        for t in range(n - 1, -1, -1):
            run = torch.where(x[:, t] == (n - t) * 0.1, torch.zeros_like(run), x[:, t] + 0.95 ** (n - t) * run)
            outs.append(run)
        return torch.stack(outs, 1).flip(1)


@attack(
    "x:float32[N,T,4]",
    dims="N=1:1:2 T=1:6:12",
    kinds=FINITE,
    feeds=(halves(1, 12, 4), halves(2, 1, 4), halves(1, 5, 4)),
)
class A3407NestedPairs(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        best = torch.full((x.shape[0],), -1e9)
        pair = torch.zeros(x.shape[0], dtype=torch.int64)
        for i in range(n):
            for j in range(i, n):
                s = x[:, i : j + 1].sum((1, 2)) - (j - i) * 0.5
                pair = torch.where(s > best, torch.full_like(pair, i * n + j), pair)
                best = torch.maximum(s, best)
        return best, pair // n, pair % n


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 30, 4), normal(1, 10, 4)))
class A3410TableByStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.register_buffer("betas", torch.linspace(1e-4, 0.2, 30))
        self.scales = [0.1 * i for i in range(30)]

    def forward(self, x):
        h, outs = torch.zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            a = 1.0 - self.betas[t]
            h = self.cell(x[:, t] * a.sqrt(), h) * self.scales[t]
            outs.append(h + (x[:, t] > self.scales[-1 - t]).float())
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(halves(2, 30, 4), halves(1, 7, 4), halves(1, 2, 4)))
class A3413HalvingStride(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        gap, y = n // 2, x
        while gap > 0:
            moved = torch.cat([y[:, gap:], y[:, :gap] * 0.0], 1)
            y = torch.maximum(y, moved - gap * 0.25)
            gap = gap // 2
        return y, y[:, -1] / n


@attack(
    "x:float32[N,T,4]",
    "lengths:int64[N]=1:24",
    dims=FROM_ONE,
    kinds=FINITE,
    feeds=(normal(3, 24, 4, lengths=np.array([1, 24, 10])), normal(1, 1, 4, lengths=np.array([20]))),
)
class A3415LengthsByStep(_Cell):
    def forward(self, x, lengths):
        n = x.shape[1]
        h, outs = torch.zeros(x.shape[0], 4), []
        for t in range(n):
            alive = t < lengths
            late = t * 0.3 >= lengths * 0.1
            h = torch.where(alive[:, None], self.cell(x[:, t], h), h)
            outs.append(torch.where(late[:, None], -h, h) * (lengths / n)[:, None])
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(halves(2, 30, 4), halves(1, 3, 4)))
class A3416Decays(nn.Module):
    """A carried float that a size and a step multiply."""

    def __init__(self):
        super().__init__()
        self.line, self.beta = nn.Linear(4, 4), 0.9

    def forward(self, x):
        mean, outs, correct = torch.zeros(x.shape[0], 4), [], 1.0
        for t in range(x.shape[1]):
            correct *= self.beta
            mean = self.beta * mean + (1 - self.beta) * x[:, t]
            y = mean / (1 - correct)
            outs.append(torch.where(y.abs() > 1 - correct, self.line(y), y))
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]=0:6", dims=SHORT, kinds=FINITE, feeds=(_t(2, 30, 4, step=0.05), _t(1, 12, 4)))
class A3417Quantisation(nn.Module):
    def forward(self, x):
        outs = []
        for t in range(1, x.shape[1]):
            step = 1.0 / t
            outs.append(torch.round(x[:, t] / step) * step - torch.floor(x[:, t] * (0.1 * t)))
        return torch.stack(outs, 1)


@attack(
    "x:float32[N,T,4]",
    dims="N=1:2:4 T=3:9:30",
    kinds=FINITE,
    feeds=(normal(2, 30, 4), normal(1, 3, 4), normal(1, 17, 4)),
)
class A3418TruncatedMeans(nn.Module):
    def forward(self, x):
        outs, n = [], x.shape[1]
        for t in range(n):
            low, high = max(0, int(t - 0.1 * n)), min(n, t + math.ceil(0.2 * n))
            outs.append(x[:, low:high].mean(1) * math.sqrt(high - low))
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 30, 4), normal(1, 4, 4), normal(1, 5, 4)))
class A3421SegmentsByDivmod(_Cell):
    def forward(self, x):
        n, h, outs = x.shape[1], torch.zeros(x.shape[0], 4), []
        size = max(1, round(n / 3))
        for t in range(n):
            k = t // size
            r = t - k * size
            if r == 0 and t > 0:
                h = h * (0.5 if k % 2 == 1 else -0.5)
            h = self.cell(x[:, t] * (r + 1) / size, h)
            outs.append(h)
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]=0:6", dims=SHORT, kinds=FINITE, feeds=(_t(2, 30, 4), halves(1, 9, 4)))
class A3422NumbersIntoInts(nn.Module):
    """Whole numbers of the counter that overflow what FP32 has, and meet int64 and int32 values."""

    def forward(self, x):
        ids, outs = (x * 10).long(), []
        seed = 12345
        for t in range(x.shape[1]):
            seed = (seed * 1103515245 + 12345) % 2147483648
            a = (ids[:, t] * seed) % 1009
            b = ids[:, t].int() * (t * 715827883)
            outs.append(torch.stack([a, b.long() % 11, (ids[:, t] + seed) // 7], -1))
        return torch.stack(outs, 1)
