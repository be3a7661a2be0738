"""Loops that put several rows into a list a step, that read a part of it, and that resize what they carry on."""

from __future__ import annotations

import pytest

from tests.export.exporters.scripted.lengths import require_equal

NETS = """
import itertools
from collections import deque


class TwoRows(nn.Module):
    def forward(self, x):
        rows, s = [], torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            s = s * 0.5 + x[:, t]
            rows += [s, -s * t]
        return torch.stack(rows, 1), torch.cat([x[:, :1], torch.stack(rows, -1).mean(-1)[:, None]], 1)


class RowsOfOne(nn.Module):
    def forward(self, x):
        rows, s = [x[:, :1]], torch.zeros_like(x[:, :1])
        for t in range(x.shape[1]):
            s = torch.tanh(s + x[:, t].unsqueeze(1))
            rows = rows + [s]
            rows = [*rows, s * 2]
        return torch.cat(rows, 1)


class Summed(nn.Module):
    def forward(self, x):
        return sum(torch.tanh(x[:, t]) * (t + 1) for t in range(x.shape[1])) / x.shape[1]


class Behind(nn.Module):
    def forward(self, x):
        s = x[:, 0]
        for t in range(x.shape[1]):
            s = s * 0.5 + x[:, t]
        return s / (t + 1)


class Parts(nn.Module):
    def forward(self, x):
        rows, s = [], torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            s = torch.tanh(s + x[:, t])
            rows.append(s)
        return torch.stack(rows[-3:], 1), torch.stack(rows[::2], dim=1), torch.stack(rows[1:], -1).sum(-1)


class BehindFromNone(nn.Module):
    def forward(self, x):
        h = None
        for t in range(x.shape[1]):
            h = x[:, t] if t == 0 else h * 0.5 + x[:, t]
        return h / (t + 1)


class Changes(nn.Module):
    def forward(self, x):
        s, total, largest = torch.zeros_like(x[:, 0]), 0, 0.0
        for t in range(x.shape[1]):
            before = s
            s = torch.maximum(s, x[:, t])
            total = total + (s - before)
            largest = largest + x[:, t].abs().amax(-1, keepdim=True)
        return total, largest


class Window(nn.Module):
    def forward(self, x):
        last, means = deque(maxlen=3), []
        for t in range(x.shape[1]):
            last.append(torch.tanh(x[:, t]))
            means.append(torch.stack(list(last)).mean(0))
        return torch.stack(means, 1)


class FullWindow(nn.Module):
    def forward(self, x):
        last, means = deque([x[:, 0]] * 3, maxlen=3), []
        for t in range(x.shape[1]):
            last.append(torch.tanh(x[:, t]))
            means.append(torch.stack(list(last)).mean(0))
        return torch.stack(means, 1)


class Neighbours(nn.Module):
    def forward(self, x):
        rows = [torch.tanh(x[:, t]) for t in range(x.shape[1])]
        steps = torch.stack([b - a for a, b in itertools.pairwise(rows)], 1)
        for i, (a, b) in enumerate(zip(rows[:-1], rows[1:])):
            last = torch.where((a > b).bool(), a, b) * i
        return steps, last


class BothWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.forwards, self.backwards = nn.GRUCell(4, 3), nn.GRUCell(4, 3)

    def scan(self, cell, x):
        h, rows = x.new_zeros(x.shape[0], 3), []
        for t in range(x.shape[1]):
            h = cell(x[:, t], h)
            rows.append(h)
        return torch.stack(rows, 1)

    def forward(self, x):
        return torch.cat([self.scan(self.forwards, x), self.scan(self.backwards, x.flip(1)).flip(1)], -1)


class Resized(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)

    def forward(self, x):
        s, rows = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            s = torch.tanh(self.conv(x[:, t] + s))
            rows.append(F.interpolate(s, scale_factor=2.0, mode="bilinear", align_corners=False) + self.up(s))
        return torch.stack(rows, 1), F.interpolate(s, scale_factor=2)
"""
STEPS = (["x:float32[N,T,4]"], "N=1:1:2 T=1:5:9", (4,))
FRAMES = (["x:float32[N,T,2,H,5]"], "N=1:1:2 T=1:2:4 H=3:4:5", (2, 4, 5))
NAMES = ("TwoRows", "RowsOfOne", "Summed", "Behind", "BehindFromNone", "Changes", "Window", "FullWindow", "BothWays")
FROM_TWO = (STEPS[0], "N=1:1:2 T=2:5:9", (4,))
CASES = {**dict.fromkeys(NAMES, STEPS), "Parts": FROM_TWO, "Neighbours": FROM_TWO, "Resized": FRAMES}


SLOW = ("BothWays", "Summed")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES])
def test_it_converts_at_every_length(write_module, export, name):
    grows = name == "Window"
    require_equal(export, write_module(NETS), name, CASES[name], lengths=(2, 3, 4), atol=3e-6, sequences=grows)
