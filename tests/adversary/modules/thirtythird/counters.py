"""Numbers of a loop's counter that meet values: Python has them in FP64, and FP32 would round 0.9 as 0.90000004."""

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack

STEPS = "N=1:2:4 T=2:9:30"


def at_ties(factor):
    """Each row of x at the very number of its step, as FP32 has it."""
    steps = np.array([t * factor for t in range(30)], np.float32)
    return lambda: {"x": np.tile(steps[None, :, None], (2, 1, 4))}


@attack("x:float32[N,T,4]=0:10", dims=STEPS, feeds=(at_ties(0.3),))
class A3383AtLeastTheStep(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, t] >= t * 0.3 for t in range(x.shape[1])], 1)


@attack("x:float32[N,T,4]=0:10", dims=STEPS, feeds=(at_ties(0.3),))
class A3383ListOfSteps(nn.Module):
    def forward(self, x):
        outs = []
        for t in range(x.shape[1]):
            outs.append(torch.where(x[:, t] >= t * 0.3, 1.0, 0.5) * x[:, t])
        return torch.stack(outs, 1)


@attack("ids:int64[N,T]=0:1000", dims=STEPS, feeds=(lambda: {"ids": np.tile(np.arange(30, dtype=np.int64), (2, 1))},))
class A3383TenthsOfIds(nn.Module):
    def forward(self, ids):
        outs = []
        for t in range(ids.shape[1]):
            outs.append(ids[:, t] * 0.1 == t * 0.1)
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]=-3:3", dims=STEPS, feeds=(at_ties(-0.1),))
class A3383CountedBySteps(nn.Module):
    def forward(self, x):
        k, outs = 0, [x[:, 0]]
        while k < x.shape[1] - 1:
            k = k + 1
            outs.append(torch.where(x[:, k] > 1 - 0.1 * k, outs[-1], x[:, k]))
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]", dims=STEPS)
class A3383StackedCells(nn.Module):
    rate = 0.97

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 8), nn.GRUCell(8, 8)])

    def forward(self, x):
        states = [x.new_zeros(x.shape[0], 8), x.new_zeros(x.shape[0], 8)]
        first, second, outs = states[0], states[1], []
        for t in range(x.shape[1]):
            first = self.cells[0](x[:, t], first)
            second = self.cells[1](first, second) * self.rate
            outs.append(second)
        return torch.stack(outs, 1)
