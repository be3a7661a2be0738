# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Other products: int4 weights, custom autograd, spline flows, implicit layers, stencils, masked policies, graphs, schedulers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves


@attack("x:float32[N,8]=-4:4", dims="N=1:3:6", kinds=FINITE, feeds=(halves(1, 8), halves(6, 8)))
class A7224Int4(nn.Module):
    """GPTQ: eight nibbles to an int32, unpacked by shifts of the sign bit too, zero points and scales of groups."""

    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.tensor([[-1985229329, 305419896, -1], [2147483647, -2147483648, 19088743]], dtype=torch.int32))
        self.register_buffer("s", torch.tensor([[0.1, 0.2], [0.05, 0.5], [1.0, 0.25]]).T.contiguous())
        self.register_buffer("z", torch.tensor([[8, 7, 0], [15, 8, 3]]))

    def forward(self, x):
        shifts = torch.arange(0, 32, 8)[:, None]
        w = torch.bitwise_and(torch.bitwise_right_shift(self.q[:, None], shifts.int()), 15).long()
        y = (w - self.z[:, None]) * self.s[:, None]
        return x @ y.reshape(8, 3), w.reshape(8, 3).sum(0)


@forward("h:float32[V,3]=-4:4", "src:int64[E]=0:1", "dst:int64[E]=0:1", dims="V=2:4:6 E=1:5:9", refused="the exporter has no form of bincount", feeds=(lambda: {"h": np.ones((6, 3), np.float32), "src": np.array([5, 4, 5]), "dst": np.array([0, 0, 0])}, lambda: {"h": np.zeros((2, 3), np.float32), "src": np.array([1]), "dst": np.array([1])}))  # fmt: skip
def A7225GraphAttention(self, h, src, dst):
    """GAT: a softmax over the edges of a node by amax and sum scattered, lone nodes zero, the degree's normalisation."""
    v = h.shape[0]
    e = F.leaky_relu((h[src] * h[dst]).sum(-1), 0.2)
    m = torch.full((v,), float("-inf")).scatter_reduce(0, dst, e, "amax")
    a = torch.exp(e - m[dst])
    s = torch.zeros(v).index_add(0, dst, a)
    out = torch.zeros_like(h).index_add(0, dst, (a / s[dst])[:, None] * h[src])
    deg = torch.bincount(dst, minlength=v)
    norm = torch.where(deg > 0, deg.clamp(min=1).float().rsqrt(), 0.0)
    return out * norm[:, None], deg, torch.isinf(m)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, g):
        return g, None


@forward("x:float32[N,T]=-3:3", "mask:bool[N,T]", dims="N=1:2:4 T=1:5:9", kinds=FINITE, feeds=(lambda: {"x": np.full((2, 5), 0.125, np.float32), "mask": np.zeros((2, 5), bool)}, lambda: {"x": np.arange(9, dtype=np.float32).reshape(1, 9) / 8, "mask": np.arange(9)[None] % 2 == 0}))  # fmt: skip
def A7226Policy(self, x, mask):
    """A policy: logits straight-through to quarters, illegal moves masked, the entropy, greedy moves and none where none is legal."""
    q = Straight.apply(x, 4)
    logits = q.masked_fill(~mask, torch.finfo(q.dtype).min)
    lp = logits.log_softmax(-1)
    p = lp.exp()
    ent = -torch.where(mask, p * lp, torch.zeros_like(p)).sum(-1)
    move = torch.where(mask.any(-1), logits.argmax(-1), -1)
    return move, ent, p * mask, mask.long().cumsum(-1)


@forward("u:float32[N,H,W]=-2:2", dims="N=1:1:2 H=1:6:10 W=1:6:10", kinds=FINITE, feeds=(lambda: {"u": np.ones((1, 1, 10), np.float32)}, lambda: {"u": np.eye(10, dtype=np.float32)[None]}))  # fmt: skip
def A7227Stencil(self, u):
    """Heat and upwind advection on a torus by rolls, four steps; a wall column written in place; the divergence at the end."""
    h, w = u.shape[1:]
    for i in range(4):
        lap = u.roll(1, 1) + u.roll(-1, 1) + u.roll(1, 2) + u.roll(-1, 2) - 4 * u
        v = torch.where(u > 0, u - u.roll(1, 2), u.roll(-1, 2) - u)
        u = u + 0.1 * lap - 0.05 * u.clamp(-1, 1) * v
        u[:, :, 0] = 0.25 * i
        u[:, h // 2] *= 0.5
    return u, u.diff(dim=2).abs().sum((1, 2)), u.flip(1).cummax(1).values
