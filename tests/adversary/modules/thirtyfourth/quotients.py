"""Quotients and remainders of Python's floats from sizes and counters, which torch rounds before it cuts."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

STEPS = "N=1:2:4 T=2:9:30"


def filled(value, *shape):
    return lambda: {"x": np.full(shape, value, np.float32)}


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=2:45:256", feeds=(filled(7.5, 1, 50, 4), filled(7.5, 1, 90, 4)))
def A3401ShareOfALength(self, x):
    return x / (1 + (x.shape[1] * 0.01) // 0.1)


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=2:45:256", feeds=(filled(7.5, 1, 100, 4),))
def A3401PairOfALength(self, x):
    quotient, _ = divmod(x.shape[1] * 0.01, 0.1)
    return x * (1 + quotient)


@attack("x:float32[N,T,4]", dims=STEPS, feeds=(filled(4.5, 1, 30, 4),))
class A3401QuotientOfSteps(nn.Module):
    def forward(self, x):
        outs = []
        for t in range(x.shape[1]):
            outs.append(torch.where(x[:, t] > (t * 0.1) // 0.1, -1.0, x[:, t]))
        return torch.stack(outs, 1)


@attack("x:float32[N,T,4]", dims=STEPS, feeds=(filled(7.5, 1, 10, 4),))
class A3401LevelByRemainder(nn.Module):
    def forward(self, x):
        outs = []
        for t in range(x.shape[1]):
            level = 7.0 if (t * 0.1) % 1.0 >= 0.9 else 8.0
            outs.append(F.relu(torch.where(x[:, t] > level, -1.0, x[:, t])))
        return torch.stack(outs, 1)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=2:12:260", refused="depends", feeds=(filled(7.5, 1, 9, 4),))
def A3401LevelByLength(self, x):
    level = 7.0 if (x.shape[1] * 0.1) % 1.0 >= 0.9 else 8.0
    return torch.where(x > level, -1.0, x)
