# ruff: noqa: E501, B007, B023, B905, RUF007 - attacks are written as users write them
"""Loops over moving lengths: Python's numbers within, lists, queues, dictionaries, what is read behind, early exits, sizes that act within."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict, defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
LOOP = {"dims": ROWS, "kinds": FINITE[:4]}
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = X4, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


ALL = lengths(1, 2, 3, 8, 13, 19, 20)


@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4521HashInALoop(nn.Module):
    """A congruential generator of Python's unbounded numbers gives each step's scale."""
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
    def forward(self, x):
        h, s = x.new_zeros(x.shape[0], 4), 12345
        out = []
        for t in range(x.shape[1]):
            s = (s * 6364136223846793005 + 1442695040888963407) % 2**64
            h = self.cell(x[:, t], h) * (0.5 + (s >> 60) / 16)
            out.append(h)
        return torch.stack(out, 1)
@attack(X4, **LOOP, feeds=ALL)
class A4522NegativePlaces(nn.Module):
    """Steps count from minus the length: floor division and remainder of negatives choose the row."""
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(4, 4)
    def forward(self, x):
        n = x.shape[1]
        h = x.new_zeros(x.shape[0], 4)
        for t in range(-n, 0):
            h = self.cell(x[:, t // 2] + x[:, t % 3 % n], h)
        return h, x[:, -n // 2], x[:, (-n) // 3]
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4523DecayOfPython(nn.Module):
    """A float of Python decays within the loop and clips at its end."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        h, w = x[:, 0], 1.0
        for t in range(x.shape[1]):
            w = max(0.1, w * 0.7) if t % 2 else w - 0.01
            h = w * torch.tanh(self.lin(h)) + (1 - w) * x[:, t]
        return h * w
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4524QueueOfThree(nn.Module):
    """A queue of three states from which the oldest falls; the mean of what it holds."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        q = deque(maxlen=3)
        out = []
        for row in x.unbind(1):
            q.append(torch.tanh(self.lin(row)))
            if len(q) == 3:
                q[0] = q[0] + q[-1]
            out.append(sum(q) / len(q))
        return torch.stack(out, 1), q[0], q[-1]
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4525LastOfTheLoop(nn.Module):
    """The index and the row of the last step are read behind the loop."""
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
    def forward(self, x):
        h = x.new_zeros(x.shape[0], 4)
        for t, row in enumerate(x.unbind(1), start=3):
            prev = h
            h = self.cell(row, h)
        return h * t, row - prev, h - prev
@attack(X4, **LOOP, feeds=ALL)
class A4526StepsOfFour(nn.Module):
    """Every fourth step is kept and the last one always; a flush of what is left over."""
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
    def forward(self, x):
        n = x.shape[1]
        h, keep, buf = x.new_zeros(x.shape[0], 4), [], []
        for t in range(n):
            h = self.cell(x[:, t], h)
            buf.append(h)
            if len(buf) == 4 or t == n - 1:
                keep.append(torch.stack(buf).mean(0))
                buf = []
        return torch.stack(keep, 1)
@attack(X4, **LOOP, feeds=ALL)
class A4527ShareOfTheWay(nn.Module):
    """A schedule by the share of the way, with round's halves to even and an int of a negative."""
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(4, 4)
    def forward(self, x):
        n = x.shape[1]
        h = x.new_zeros(x.shape[0], 4)
        for t in range(n):
            k = round((t + 0.5) * 2 / n * 4) + int((t - n / 2) * 0.7) + round(t / 2)
            h = self.cell(x[:, t] * 0.1 * k, h)
        return h
@attack(X4, **LOOP, feeds=ALL)
class A4528TwoLoopsOverOneList(nn.Module):
    """Forward states in a list, backward over it by pop, zipped with what came first."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.RNNCell(4, 4), nn.RNNCell(4, 4)
    def forward(self, x):
        h = g = x.new_zeros(x.shape[0], 4)
        fw, bw = [], []
        for row in x.unbind(1):
            h = self.a(row, h)
            fw.append(h)
        rest = list(fw)
        while rest:
            g = self.b(rest.pop(), g)
            bw.insert(0, g)
        return torch.stack([torch.cat(p, -1) for p in zip(fw, bw)], 1)
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4529ResidualOfTwoBack(nn.Module):
    """A residual of two steps back where there is one: rows[-2], neighbours by zip of a list with its tail."""
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(4, 4)
    def forward(self, x):
        h, out = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            if t >= 2:
                h = h + out[-2]
            out.append(h)
        d = [b - a for a, b in zip(out, out[1:])]
        return torch.stack(out, 1), sum(d, torch.zeros_like(h)), torch.stack([*d, h], 1)
@attack(X4, **LOOP, feeds=ALL)
class A4530BestSoFar(nn.Module):
    """The best step by its score, strictly greater, with the index of it as a tensor."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)
    def forward(self, x):
        best = torch.full((x.shape[0],), -float("inf"))
        at = torch.zeros(x.shape[0], dtype=torch.long)
        row = x[:, 0]
        for t in range(x.shape[1]):
            s = self.lin(x[:, t])[:, 0].round()
            better = s > best
            best = torch.where(better, s, best)
            at = torch.where(better, t, at)
            row = torch.where(better[:, None], x[:, t], row)
        return best, at, row
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4531TableOfStates(nn.Module):
    """States in a dictionary by step parity and by the step; one read again by a key of a size."""
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(4, 4)
    def forward(self, x):
        n = x.shape[1]
        h = x.new_zeros(x.shape[0], 4)
        state = {0: h, 1: h + 1}
        seen = {}
        for t in range(n):
            state[t % 2] = self.cell(x[:, t], state[(t + 1) % 2])
            seen[t] = state[t % 2]
        return state[0], state[1], seen[n // 2], torch.stack(list(seen.values()), 1)
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4532DefaultsAndOrder(nn.Module):
    """Groups of steps by remainder in a defaultdict, in an order of first sight, means of each."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        groups = defaultdict(list)
        for t, row in enumerate(x.unbind(1)):
            groups[(t * 2 + 1) % 3].append(self.lin(row))
        last = OrderedDict((k, v[-1]) for k, v in groups.items())
        return torch.stack([torch.stack(v).mean(0) for v in groups.values()]), torch.stack(list(last.values()))
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4533WritesBehindItself(nn.Module):
    """A row that was put in a list is written in place at the next step."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        h = x[:, 0] * 0
        out = []
        for t in range(x.shape[1]):
            h = h + self.lin(x[:, t])
            out.append(h)
            h.mul_(0.5)
            if t > 0:
                out[-2].add_(1.0)
        return torch.stack(out, 1)
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4534ViewsOfAState(nn.Module):
    """Views of one state are listed while it goes on in place: all show the end."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        s = torch.zeros(x.shape[0], 4)
        views, copies = [], []
        for t in range(x.shape[1]):
            s += self.lin(x[:, t])
            views.append(s[:, :2])
            copies.append(s[:, 2:].clone())
        return torch.stack(views, 1), torch.stack(copies, 1)
@attack(X4, **LOOP, feeds=ALL)
class A4535WindowsThatOverlap(nn.Module):
    """Pieces of five with a stride of three, the last shorter, each with its own weight by its length."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        n = x.shape[1]
        out, w = torch.zeros_like(x), torch.zeros(n)
        for a in range(0, n, 3):
            b = min(a + 5, n)
            k = b - a
            piece = self.lin(x[:, a:b]) * (1.0 if k == 5 else 0.5 + k / 10)
            out[:, a:b] += piece
            w[a:b] += 1
        return out / w[:, None], w
@attack(X4, **LOOP, feeds=ALL)
class A4536HalvingLevels(nn.Module):
    """Levels by halving until one is left, odd ones padded by their last, a list of the means."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4)
    def forward(self, x):
        means = [x.mean(1)]
        while x.shape[1] > 1:
            if x.shape[1] % 2:
                x = torch.cat([x, x[:, -1:]], 1)
            x = torch.tanh(self.lin(torch.cat([x[:, ::2], x[:, 1::2]], -1)))
            means.append(x.mean(1))
        return x[:, 0], torch.stack(means).amax(0), means[-1] * len(means)
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4537AccumulateAndPairs(nn.Module):
    """itertools' accumulate with a function, pairwise, islice and chain over rows."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        rows = x.unbind(1)
        acc = list(itertools.accumulate(rows, lambda a, b: torch.tanh(self.lin(a)) + b))
        pair = [a * b for a, b in itertools.pairwise(itertools.chain(rows, rows[:1]))]
        part = list(itertools.islice(acc, 0, None, 2))
        return torch.stack(acc, 1), torch.stack(pair, 1), torch.stack(part, 1)
@attack(X4, **LOOP, feeds=ALL)
class A4538ElseOfALoop(nn.Module):
    """A loop with break at a step by the length, whose else acts when it did not."""
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(4, 4)
    def forward(self, x):
        h = x.new_zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            if t == 13:
                h = h * 3
                break
            if t % 4 == 3:
                continue
            h = self.cell(x[:, t], h)
        else:
            h = h - 7
        return h, h * t
@attack("x:float32[N,T]", "lens:int64[N]=1:20", dims="N=1:2:3 T=20", kinds=FINITE[:4], feeds=tuple((lambda v: lambda: {"x": np.arange(20 * len(v), dtype=np.float32).reshape(len(v), 20) % 7, "lens": np.array(v)})(v) for v in ([1], [20, 3], [4, 4, 4], [19, 20, 1])))
class A4539RowsOfOwnLengths(nn.Module):
    """Each row is cut to its own length in a loop, reversed and padded back."""
    def forward(self, x, lens):
        out = []
        for row, n in zip(x, lens):
            r = row[:n].flip(0)
            out.append(F.pad(r, (0, x.shape[1] - n)))
        return torch.stack(out)
@attack(X4, **LOOP, feeds=ALL, refused="the path through the module depends on the size")
class A4540ScheduleOfLayers(nn.Module):
    """Layers used in turn over the steps, a bounce at both ends, the count kept in Python."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    def forward(self, x):
        h, i, step = x.new_zeros(x.shape[0], 4), 0, 1
        for t in range(x.shape[1]):
            h = torch.tanh(self.layers[i](h) + x[:, t])
            i += step
            if i in (0, 2):
                step = -step
        return h * i, h * step, h * math.copysign(2.0, step)
