"""Sizes that follow from one another, under names of their own as the hint says."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.modules.sixtyfifth.speech_text65 import A7815PastOfZeroLength
from tests.adversary.modules.sixtyfifth.types65 import A7867TiedSizes


@attack("ids:int64[N,S]=0:9", "pk:float32[N,2,P,4]", "pv:float32[N,2,P,4]", "mask:int64[N,K]=0:1", dims="N=1:1:2 S=1:1:3 P=0:4:7 K=1:5:10", kinds=("normal", "unit"), refused="the module itself raises")
class A7872PastNamedApart(A7815PastOfZeroLength):
    pass


@attack("x:float32[N,T,H]", "y:float32[N,U,H]", dims="N=1:1:2 T=1:4:6 U=2:8:12 H=4:8:12%4", kinds=FINITE, refused="the module itself raises AssertionError")
class A7873TiedNamedApart(A7867TiedSizes):
    pass


@attack("ids:int64[N,1]=0:9", "pk:float32[N,2,P,4]", "mask:bool[N,K]", dims="N=1:1:2 P=0:4:7 K=8", kinds=("normal", "unit"))
class A7874MaskCutToPast(nn.Module):
    """A decoder step with one token, an empty past allowed, a static mask that is cut to P + 1 and rolled by P."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(10, 8)

    def forward(self, ids, pk, mask):
        k = torch.cat([pk, self.e(ids).view(ids.shape[0], 1, 2, 4).transpose(1, 2)], 2)
        m = mask[:, : k.shape[2]].roll(pk.shape[2], 1)
        q = k[:, :, -1:]
        s = (q @ k.mT) / 2
        s = s.masked_fill(~m[:, None, None], -1e9)
        return s.softmax(-1) @ k, k, pk.sum(2) / max(pk.shape[2], 1), s.argmax(-1)


@forward("x:float32[N,T,3]", "w:float32[E,3]", "i:int64[E]=0:2", dims="N=1:2:3 T=3:4:6 E=1:4:7", kinds=FINITE)
def A7875ScatterMeans(self, x, w, i):
    """Means per segment in four ways: index_add over counts, scatter_reduce mean with self, index_reduce, segment by one-hot matmul."""
    t = x.shape[1]
    total = torch.zeros(t, 3).index_add_(0, i, w)
    n = torch.bincount(i, minlength=t)
    a = total / n.clamp(min=1)[:, None]
    one = torch.nn.functional.one_hot(i, 3).float()
    c = (one.T @ w) / one.sum(0).clamp(min=1)[:, None]
    d = x.scatter_reduce(1, i.clamp(max=2)[None, :, None].expand(x.shape[0], -1, 3), w[None].expand(x.shape[0], -1, -1), "sum")
    return a, c, d


@forward("x:float32[N,T,3]", "w:float32[E,3]", "i:int64[E]=0:2", dims="N=1:2:3 T=3:4:6 E=1:4:7", kinds=FINITE)
def A7876ScatterReduceMeanOnly(self, x, w, i):
    return torch.zeros(x.shape[1], 3).scatter_reduce(0, i[:, None].expand(-1, 3), w, "mean", include_self=False)


@forward("x:float32[N,T,3]", "w:float32[E,3]", "i:int64[E]=0:2", dims="N=1:2:3 T=3:4:6 E=1:4:7", kinds=FINITE)
def A7877ScatterReduceAmaxWithoutSelf(self, x, w, i):
    """amax and prod without self over zeros: rows that nothing hits keep what was there; index_reduce_ mean with self."""
    j = i[:, None].expand(-1, 3)
    return torch.zeros(x.shape[1], 3).scatter_reduce(0, j, w, "amax", include_self=False), torch.full((x.shape[1], 3), 2.0).scatter_reduce(0, j, w, "prod", include_self=False)


@forward("x:float32[T,3]", "w:float32[E,3]", "i:int64[E]=0:2", dims="T=3:4:6 E=1:4:7", kinds=FINITE)
def A7878IndexReduceMean(self, x, w, i):
    return x.clone().index_reduce_(0, i, w, "mean", include_self=True)


class Lora(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base, self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
        self.scaling = 2.0

    def forward(self, x):
        return self.base(x) + self.b(self.a(x)) * self.scaling


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7879AdapterSwitchedOffForAWhile(nn.Module):
    """The reference's logits with the adapter's scaling set to zero and put back in a finally (DPO, classifier-free guidance with adapters)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Lora()

    def forward(self, x):
        policy = self.net(x)
        kept, self.net.scaling = self.net.scaling, 0.0
        try:
            reference = self.net(x)
        finally:
            self.net.scaling = kept
        return policy - reference, policy
