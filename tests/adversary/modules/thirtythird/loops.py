"""Python loops over sizes: sums of numbers, lists, dicts, cells, state, closures, generators, early exits."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE, halves, normal

SHORT = "N=1:2:4 T=2:9:30"
FROM_ONE = "N=1:2:4 T=1:9:24"
LONG = "N=1:1:2 T=2:20:300"


class _Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)


@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 4), normal(2, 2, 4)))
class A3327WarmStart(_Cell):
    def forward(self, x):
        h = torch.tanh(x[:, 0])
        outs = [h]
        for t in range(1, x.shape[1]):
            h = self.cell(x[:, t] - x[:, t - 1], h)
            outs.append(h)
        return torch.stack(outs, 1), h


@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 4), normal(2, 24, 4)))
class A3328Backwards(_Cell):
    def forward(self, x):
        h, outs = torch.zeros(x.shape[0], 4), []
        for t in range(x.shape[1] - 1, -1, -2):
            h = self.cell(x[:, t] + x[:, -t], h)
            outs.append(h)
        y = torch.stack(outs, 1)
        return y.flip(1), y[:, -1]


@attack("x:float32[N,T,3]", dims=SHORT, kinds=FINITE, feeds=(halves(2, 5, 3), halves(1, 30, 3)))
class A3329Viterbi(nn.Module):
    def __init__(self):
        super().__init__()
        self.move = nn.Parameter(torch.tensor([[0.0, 0.5, -0.5], [0.5, 0.0, 0.5], [-0.5, 0.5, 0.0]]))

    def forward(self, x):
        score, back = x[:, 0], []
        for t in range(1, x.shape[1]):
            score, i = (score[:, :, None] + self.move).max(1)
            score = score + x[:, t]
            back.append(i)
        best, tag = score.max(-1)
        path = [tag]
        for t in range(len(back) - 1, -1, -1):
            tag = back[t].gather(1, tag[:, None])[:, 0]
            path.append(tag)
        return best, torch.stack(path, 1).flip(1)


@attack("x:float32[N,T,3]", "mask:bool[N,T]", dims=SHORT, kinds=FINITE)
class A3330CrfPartition(nn.Module):
    def __init__(self):
        super().__init__()
        self.move = nn.Parameter(torch.randn(3, 3))

    def forward(self, x, mask):
        alpha = x[:, 0]
        for t in range(1, x.shape[1]):
            after = torch.logsumexp(alpha[:, :, None] + self.move, 1) + x[:, t]
            alpha = torch.where(mask[:, t, None], after, alpha)
        return alpha.logsumexp(-1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE)
class A3342StateInAttribute(_Cell):
    def __init__(self):
        super().__init__()
        self.h, self.steps = None, 0

    def step(self, row):
        self.steps += 1
        self.h = self.cell(row, self.h)
        return self.h / self.steps

    def forward(self, x):
        self.h, self.steps = torch.zeros(x.shape[0], 4), 0
        return torch.stack([self.step(x[:, t]) for t in range(x.shape[1])], 1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(normal(2, 30, 4, scale=5),))
class A3343GreedyDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out, self.embed = nn.GRUCell(8, 4), nn.Linear(4, 6), nn.Embedding(6, 4)

    def forward(self, x):
        n, steps = x.shape[:2]
        token, h = torch.zeros(n, dtype=torch.int64), torch.zeros(n, 4)
        done, tokens = torch.zeros(n, dtype=torch.bool), []
        for t in range(steps):
            h = self.cell(torch.cat([x[:, t], self.embed(token)], -1), h)
            token = torch.where(done, 1, self.out(h).argmax(-1))
            done = done | (token == 1)
            tokens.append(token)
        return torch.stack(tokens, 1), (~done).sum()


@attack(
    "x:float32[N,T,4]",
    "lengths:int64[N]=1:30",
    dims=SHORT,
    kinds=FINITE,
    feeds=(normal(3, 9, 4, lengths=np.array([1, 9, 4])),),
)
class A3346RowsOfABatch(nn.Module):
    def forward(self, x, lengths):
        lengths = lengths.clamp(max=x.shape[1])
        return torch.stack([x[i, : lengths[i]].mean(0) for i in range(x.shape[0])])


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(halves(2, 9, 4),))
class A3349Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.q = nn.LSTMCell(8, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        h = c = x.new_zeros(x.size(0), 4)
        cover, outs, maps = x.new_zeros(x.size(0), x.size(1)), [], []
        for row in x.unbind(1):
            a = (torch.bmm(x, self.q(h)[:, :, None])[..., 0] - cover).softmax(-1)
            cover = cover + a
            h, c = self.cell(torch.cat([row, (a[:, None] @ x)[:, 0]], -1), (h, c))
            outs.append(h)
            maps.append(a)
        return torch.stack(outs, 1), torch.stack(maps, 2), torch.minimum(cover, maps[0]).sum()
