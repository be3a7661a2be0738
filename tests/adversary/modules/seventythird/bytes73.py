"""int8 outside of quantisation, reductions of one number, and sizes that a class keeps."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("i:int64[N,T]=0:99", dims="N=1:2:5 T=1:3:7")
class A8410EmbeddingInInt8(nn.Module):
    """A table of int8 with a scale for each row."""

    def __init__(self):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.register_buffer("table", torch.randint(-127, 128, (100, 8), generator=draw).to(torch.int8))
        self.register_buffer("scale", torch.rand(100, 1, generator=draw) / 100)

    def forward(self, i):
        return self.table[i].float() * self.scale[i]


@forward("labels:int8[N,T]=-1:3", "x:float32[N,4,T]=-2:2", dims="N=1:2:5 T=1:3:7", kinds=FINITE)
def A8411IgnoredLabels(self, labels, x):
    """-1 is no label."""
    is_label = labels != -1
    index = torch.where(is_label, labels, torch.zeros_like(labels)).long()
    picked = x.gather(1, index[:, None])[:, 0] * is_label
    return picked, labels.clamp(min=0) + 1, (labels == 2).sum(1), -labels, labels.abs() // 2


@forward("x:float32[N,8]=-2:2", dims="N=1:2:5", kinds=FINITE)
def A8412RoundedByHand(self, x):
    """Activations rounded to int8 with a scale of their own, as an engine for language models does."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
    q = (x / scale).round().clamp(-128, 127).to(torch.int8)
    return (q.int() * q.int()).sum(-1), q.float() * scale


@forward("q:int8[N,T]=-128:127", dims="N=1:2:3 T=1:5:7", kinds=FINITE)
def A8413BytesWithSigns(self, q):
    """All that int8 does: comparisons, quotients, signs, an absolute value that does not fit."""
    return q.float() * 0.02, q.int().abs() % 128, (q == -128).any(1), q // 3, q % 7, q.sign().float(), q.abs(), q + q


@forward(
    "k:int8[N,T,8]=-127:127", "s:float32[N,T,1]=0.01:0.1", "x:float32[N,1,8]=-2:2", dims="N=1:2:5 T=1:3:7", kinds=FINITE
)
def A8414CacheInInt8(self, k, s, x):
    """A cache of keys in int8, handed in and out."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
    k, s = torch.cat([k, (x / scale).round().to(torch.int8)], 1), torch.cat([s, scale], 1)
    return k, s, F.softmax((k.float() * s) @ x.transpose(1, 2), 1)


@forward("x:float32[N,8]=-2:2", dims="N=1:2:5", kinds=FINITE)
def A8415ReductionsOfOne(self, x):
    """Reductions of what has no axes left."""
    top = x.max()
    return x - top.mean(), top.sum() + x, x.mean().amax() * x, x * top.norm(), x - top.prod()


@forward("x:float32[N,8]=-2:2", dims="N=1:2:5", kinds=FINITE, refused="integer modulo by zero")
def A8421SumOfExponentialsOfOne(self, x):
    """An axis of what has none, of which torch's exporter has no form."""
    return x + x.max().logsumexp(0)


@attack("x:float32[N,T,3]=-2:2", dims="N=1:3:6 T=1:5:9")
class A8416SizesOfAClass(nn.Module):
    """The last two sizes, kept in the class."""

    sizes = (0, 0)

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        length = x.shape[1]
        before, last = A8416SizesOfAClass.sizes
        A8416SizesOfAClass.sizes = (last, length)
        return self.layer(x) + [0.0, 1.0][before == length and last == length + 1]
