"""Recommenders: bags, crosses, hashed ids, attention over a history, factorisation machines, truncated sequences."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("ids:int64[N,T]=0:400000000", "w:float32[N,T]=0:1", dims="N=1:2:4 T=1:5:9", kinds=FINITE)
class A7631HashedBags(nn.Module):
    """Two multiplicative hashes of an id into small tables, a weighted sum bag, id 0 is padding, the mean by the count."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Embedding(97, 6)
        self.b = nn.Embedding(101, 6)

    def forward(self, ids: torch.Tensor, w: torch.Tensor):
        h1 = (ids * 2654435761 + 12345) % 97
        h2 = ((ids ^ (ids >> 7)) * 40503) % 101
        keep = (ids != 0).float() * w
        e = (self.a(h1) + self.b(h2)) * keep[..., None]
        return e.sum(1) / keep.sum(1, keepdim=True).clamp(min=1e-3), e.square().sum(1)


@attack("ids:int32[N,F]=0:30", "d:float32[N,5]=0:50", dims="N=1:3:6 F=2:4:7", kinds=FINITE)
class A7632DeepFm(nn.Module):
    """Field offsets onto one table, the second order by the square of sums, a deep part on log1p of the dense ones, a cross layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(31 * 7, 4)
        self.first = nn.Embedding(31 * 7, 1)
        self.dense = nn.Linear(5, 4)
        self.cross = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, ids: torch.Tensor, d: torch.Tensor):
        i = ids + 31 * torch.arange(ids.shape[1], dtype=ids.dtype)
        e = self.table(i)
        second = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1)
        x0 = x = self.dense(torch.log1p(d.clamp(min=0))) + e.mean(1)
        for layer in self.cross:
            x = x0 * layer(x) + x
        return torch.sigmoid(self.first(i).sum((1, 2)) + second + x.sum(1)), x


@attack("h:int64[N,T]=0:50", "q:int64[N]=1:50", dims="N=1:2:4 T=1:6:12", kinds=FINITE)
class A7633DinAttention(nn.Module):
    """Deep interest: the last eight of a history, attention MLP on the four features, padding -inf where any is there, else zero."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(51, 8, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(32, 10), nn.PReLU(10), nn.Linear(10, 1))

    def forward(self, h: torch.Tensor, q: torch.Tensor):
        h = h[:, -8:]
        k, t = self.emb(h), self.emb(q)[:, None].expand(-1, h.shape[1], -1)
        z = torch.cat([t, k, t - k, t * k], -1)
        s = self.mlp(z.flatten(0, 1)).view(h.shape[0], -1)
        m = h > 0
        a = torch.softmax(s.masked_fill(~m, -torch.inf), 1).nan_to_num(0.0)
        return (a[..., None] * k).sum(1), a.max(1).values, m.sum(1)


@attack("v:int64[M]=0:39", "o:int64[N]=0:0", dims="M=3:8:14 N=1:3:3")
class A7634BagWithOffsets(nn.Module):
    """nn.EmbeddingBag with offsets, mean mode and a padding index."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 5, mode="mean", padding_idx=3)

    def forward(self, v: torch.Tensor, o: torch.Tensor):
        return self.bag(v, o + torch.arange(o.shape[0]))


@attack("u:int64[N]=0:99", "i:int64[K]=0:9999", dims="N=1:2:3 K=5:20:40")
class A7635TopKWithSeenRemoved(nn.Module):
    """Scores by a product, what was seen goes to -inf, a bonus for one special item id, best five with their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Embedding(100, 6)
        self.i = nn.Embedding(10000, 6)

    def forward(self, u: torch.Tensor, i: torch.Tensor):
        s = self.u(u) @ self.i(i).T
        s = s + 10.0 * (i == 4711)
        s = s.masked_fill((i % 100)[None] == u[:, None], float("-inf"))
        v, j = s.topk(5, sorted=True)
        return v, i[j], torch.isinf(v).sum(1)


@attack("x:int64[N,T]=0:1000", dims="N=1:2:3 T=2:6:9", refused="depends on the values")
class A7636OneSpecialUser(nn.Module):
    """A blocked id (424) anywhere in the batch switches to an empty answer through a Python branch; all other ids are ordinary."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(1001, 4)

    def forward(self, x: torch.Tensor):
        e = self.emb(x).mean(1)
        if (x == 424).any():
            return torch.zeros_like(e)
        return e


@attack("x:float32[N,D]=-3:3", "seg:int64[N]=0:3", dims="N=1:5:9 D=4:4:4", kinds=FINITE)
class A7637MmoeOfTasks(nn.Module):
    """Multi-gate experts, three tasks, a segment-wise bias and calibration by a table with bucketize."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 6), nn.SiLU()) for _ in range(3))
        self.gates = nn.ParameterList(nn.Parameter(torch.randn(4, 3)) for _ in range(3))
        self.heads = nn.ModuleDict({k: nn.Linear(6, 1) for k in ("click", "like", "share")})
        self.register_buffer("edges", torch.tensor([0.11, 0.31, 0.52, 0.73, 0.94]))
        self.register_buffer("rates", torch.tensor([0.01, 0.08, 0.2, 0.45, 0.7, 0.9]))
        self.bias = nn.Embedding(4, 3)

    def forward(self, x: torch.Tensor, seg: torch.Tensor):
        e = torch.stack([m(x) for m in self.experts], 1)
        out = {}
        for n, (name, head) in enumerate(self.heads.items()):
            g = torch.softmax(x @ self.gates[n], -1)
            out[name] = torch.sigmoid(head((g[..., None] * e).sum(1)).squeeze(1) + self.bias(seg)[:, n])
        cal = self.rates[torch.bucketize(out["click"], self.edges, right=True)]
        return {**out, "calibrated": cal}
