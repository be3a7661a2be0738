# ruff: noqa: E501 - attacks are written as users write them
"""Loops over sizes: lists as memories, rings, toggles, breaks, chunks, buffers that are filled, scripts, decoders."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE, halves, normal

SHORT = "N=1:2:3 T=2:9:20"
FROM_ONE = "N=1:2:3 T=1:9:20"
TWO = (halves(2, 2, 4), halves(1, 20, 4), normal(2, 7, 4))
ONE = (halves(2, 1, 4), halves(1, 20, 4), normal(2, 3, 4), normal(1, 4, 4))
PLANE = "N=1:1:2 H=1:5:9 W=1:6:9"


class _Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.line = nn.GRUCell(4, 4), nn.Linear(4, 4)


@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ONE)
class A3525DilatedSkips(_Cell):
    """Each step reads the state of three steps ago out of a list."""
    def forward(self, x):
        outs = []
        for t in range(x.shape[1]):
            h = outs[t - 3] if t >= 3 else torch.zeros(x.shape[0], 4)
            outs.append(self.cell(x[:, t], h))
        return torch.stack(outs, 1)
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ONE)
class A3528Toggle(_Cell):
    def forward(self, x):
        a, b, sign, outs = torch.zeros(x.shape[0], 4), torch.ones(x.shape[0], 4), 1, []
        for t in range(x.shape[1]):
            a, b = self.cell(x[:, t] * sign, b), a
            sign = -sign
            outs.append(a - b)
        return torch.stack(outs, 1), b
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ONE)
class A3530ChunksWithARest(_Cell):
    """Blocks of six frames, the last of which may be short; the state goes from block to block."""
    def forward(self, x):
        h, outs = torch.zeros(x.shape[0], 4), []
        for start in range(0, x.shape[1], 6):
            block = x[:, start : start + 6]
            h = self.cell(block.mean(1), h)
            outs.append(self.line(block) + h[:, None])
        return torch.cat(outs, 1), h
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3533LevinsonDurbin(nn.Module):
    """LPC of order up to T, whose vector grows in each step."""
    def forward(self, x):
        r = torch.stack([(x[:, : x.shape[1] - k] * x[:, k:]).sum((1, 2)) for k in range(4 if x.shape[1] >= 4 else x.shape[1])], -1)
        r = r + torch.tensor([1.0] + [0.0] * (r.shape[1] - 1))
        a, e = torch.ones(x.shape[0], 1), r[:, 0]
        for k in range(1, r.shape[1]):
            acc = (a * r[:, 1 : k + 1].flip(1)).sum(1)
            g = -acc / e
            a = F.pad(a, (0, 1)) + g[:, None] * F.pad(a, (0, 1)).flip(1)
            e = e * (1 - g * g)
        return a, e
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ONE)
class A3534BeamOfTwo(nn.Module):
    """Keeps two hypotheses per example and the path of each."""
    def forward(self, x):
        n = x.shape[0]
        score = torch.tensor([0.0, -1e9]).repeat(n, 1)
        paths = torch.zeros(n, 2, 0, dtype=torch.int64)
        for t in range(x.shape[1]):
            total = (score[..., None] + x[:, t, None]).flatten(1)
            score, at = total.topk(2)
            parent = at // 4
            paths = torch.cat([paths.gather(1, parent[..., None].expand(-1, -1, t)), (at % 4)[..., None]], 2)
        return score, paths
@attack("x:float32[N,H,W]", dims=PLANE, kinds=FINITE, feeds=(halves(1, 1, 1), halves(2, 9, 1), halves(1, 1, 9), halves(1, 9, 9)))
class A3538IntegralImage(nn.Module):
    """Sums of boxes by four corners, and a scan by rows whose carry is a row."""
    def forward(self, x):
        s = F.pad(x.cumsum(1).cumsum(2), (1, 0, 1, 0))
        h, w = x.shape[1:]
        y0, y1 = (torch.arange(h) - 1).clamp(min=0), (torch.arange(h) + 2).clamp(max=h)
        x0, x1 = (torch.arange(w) - 1).clamp(min=0), (torch.arange(w) + 2).clamp(max=w)
        box = s[:, y1][:, :, x1] - s[:, y0][:, :, x1] - s[:, y1][:, :, x0] + s[:, y0][:, :, x0]
        carry, rows = torch.zeros(x.shape[0], w), []
        for i in range(h):
            carry = torch.maximum(carry * 0.5, x[:, i])
            rows.append(carry)
        return box / ((y1 - y0)[:, None] * (x1 - x0)), torch.stack(rows, 1)
@attack("x:float32[N,H,W]", dims=PLANE, kinds=FINITE, feeds=(halves(1, 1, 1), halves(2, 9, 1), halves(1, 1, 9), halves(1, 9, 9)))
class A3539ErrorDiffusion(nn.Module):
    """Floyd and Steinberg in one direction: each row hands its error to the next."""
    def forward(self, x):
        error, rows = torch.zeros(x.shape[0], x.shape[2]), []
        for i in range(x.shape[1]):
            value = x[:, i] + error * 0.5
            hit = torch.where(value > 0.25, 1.0, 0.0) if i % 2 == 0 else (value >= 0.75).float()
            error = value - hit
            rows.append(hit)
        return torch.stack(rows, 1), error
@attack("x:float32[N,T,4]", "lengths:int64[N]=1:20", dims=FROM_ONE, kinds=FINITE, feeds=(normal(2, 20, 4, lengths=np.array([20, 1])), normal(3, 5, 4, lengths=np.array([2, 5, 1])), normal(1, 1, 4, lengths=np.array([20]))))
class A3542GatedByLengths(_Cell):
    def forward(self, x, lengths):
        h, last, outs = torch.zeros(x.shape[0], 4), torch.zeros(x.shape[0], 4), []
        for t, frame in enumerate(x.unbind(1)):
            h = self.cell(frame, h)
            outs.append(h * (t < lengths)[:, None])
            last = torch.where((lengths - 1 == t)[:, None], h, last)
        return torch.stack(outs, 1), last, outs[-1]
@torch.jit.script
def _leaky(x: torch.Tensor, decay: float) -> torch.Tensor:
    state = torch.zeros_like(x[:, 0])
    outs: list[torch.Tensor] = []
    for t in range(x.size(1)):
        state = state * decay + x[:, t]
        fired = state > 1.0
        state = state.masked_fill(fired, 0.0)
        outs.append(fired.to(x.dtype))
    return torch.stack(outs, 1)
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ONE)
class A3543ScriptedSpikes(nn.Module):
    def forward(self, x):
        return _leaky(x, 0.5), _leaky(x.flip(1), 0.25).sum(1)
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3546LookAhead(nn.Module):
    """Each frame reads three ahead, fewer at the end; the list is built from its end."""
    def forward(self, x):
        t, outs = x.shape[1], []
        for i in range(t):
            outs.insert(0, x[:, i : min(i + 3, t)].amax(1) - x[:, max(0, i - 2) : i + 1].amin(1))
        return torch.stack(outs, 1), outs[t // 2]
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ONE)
class A3547RunLengths(nn.Module):
    """How long the sign has been the same, and the longest run with its end."""
    def forward(self, x):
        run, best, at, rows = torch.zeros(x.shape[0], 4, dtype=torch.int32), torch.zeros(x.shape[0], 4, dtype=torch.int32), torch.zeros(x.shape[0], 4, dtype=torch.int64), []
        for t in range(x.shape[1]):
            run = (run + 1) * (x[:, t] > 0)
            better = run > best
            best, at = torch.where(better, run, best), at.masked_fill(better, t)
            rows.append(run)
        return torch.stack(rows, -1), best, at
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3549RowsOfBatchAlone(_Cell):
    """Loops over examples, as post-processing does, and stacks what each gives."""
    def forward(self, x):
        outs, best = [], []
        for i, one in enumerate(x):
            k = one.sum(-1).argmax()
            outs.append(one.roll(i, 0)[: max(1, x.shape[1] // 2)] - one.mean(0))
            best.append(one[k] * (i + 1))
        return torch.stack(outs), torch.stack(best)
