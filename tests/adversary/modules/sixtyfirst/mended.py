"""What the round and new networks of transformers showed, and what converts since."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack


@attack("x:float32[N,3,5]", "y:float32[N,3,5]", dims="N=1:2:4")
class A7500NamesOfNumpy(nn.Module):
    def forward(self, x, y):
        a = x.var(axis=-1, keepdims=True) + x.std(axis=(1, 2), keepdims=True)
        b = torch.mean(x ** 2, axis=2, keepdims=True) + torch.max(x, axis=1, keepdims=True).values
        c = torch.cumsum(x, axis=1) + x.softmax(axis=-1) + torch.sort(x, axis=2).values
        d = torch.maximum(x1=x, x2=y) * F.cosine_similarity(x1=x, x2=y, dim=2).unsqueeze(2) + torch.trapezoid(y, x=x.cumsum(axis=-1)).unsqueeze(2)
        return a + b + c + d + torch.logsumexp(x, axis=1, keepdims=True) + x.argmax(axis=2, keepdims=True)


@attack("x:float32[N,6]", dims="N=1:2:4")
class A7501RouterInItsType(nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = nn.Linear(6, 3)
        self.dtype = torch.float32

    def forward(self, x):
        self.classifier = self.classifier.to(self.dtype)
        return self.classifier(x.to(self.dtype)).softmax(-1)


@attack("x:float32[N,6]", dims="N=1:2:4")
class A7502DoubledWithinForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head.double()(x.double()).float()


def chunk(x, w):
    x = x.view(x.size(0), torch.div(x.size(1), w * 2, rounding_mode="trunc"), w * 2, x.size(2))
    size, stride = list(x.size()), list(x.stride())
    size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
    return x.as_strided(size=size, stride=stride)


@attack("x:float32[T,N,6]", dims="N=1:2:3 T=16:32:64%16")
class A7503LongformersChunks(nn.Module):
    def forward(self, x):
        q = (x + 1).transpose(0, 1)
        q = q.view(q.shape[0], q.shape[1], 2, 3).transpose(1, 2).reshape(-1, q.shape[1], 3)
        return chunk(q, 4) * 2


@attack("x:float32[3,T,4]", dims="T=8:16:32")
class A7504StridesOfTurned(nn.Module):
    def forward(self, x):
        y = (x * 2).transpose(0, 1)
        return y.as_strided((y.shape[0], 3, 4), (4, 2, 1)) + 1


@attack("x:float32[N,T,6]", "lang:int64[N]=0:1", dims="N=1:2:4 T=1:3:6")
class A7505AdaptersByLanguage(nn.Module):
    def __init__(self):
        super().__init__()
        self.adapters = nn.ModuleDict({k: nn.Sequential(nn.Linear(6, 3), nn.GELU(), nn.Linear(3, 6)) for k in ("de", "en")})

    def forward(self, x, lang):
        new = torch.zeros_like(x)
        for i, k in enumerate(self.adapters.keys()):
            mask = lang == i
            new[mask] = self.adapters[k](x[mask])
        return new + x


@attack("x:float32[N,T,6]", "kind:int64[N,T]=0:2", dims="N=1:2:4 T=1:3:6")
class A7506RowsBackByTwoAxes(nn.Module):
    def forward(self, x, kind):
        y = x.clone()
        y[kind == 1] = x[kind == 1] * 3
        y[kind == 2] = torch.arange(6.0)
        return y


@attack("x:float32[N,5,4]", "y:float32[N,5]", dims="N=1:2:4")
class A7507Diagonals(nn.Module):
    def forward(self, x, y):
        a = torch.diagonal_scatter(x, y.new_ones(x.shape[0], 3), offset=1, dim1=1, dim2=2)
        b = torch.diagonal_scatter(x, y[:, :3], offset=-2, dim1=1, dim2=2)
        return a, b, torch.diagonal_scatter(x, y[:, :4], offset=1, dim1=2, dim2=1)


@attack("x:float32[N,2,H,W]", dims="N=1:1:2 H=5:8:12 W=5:9:12")
class A7508PoolsDividedByAnother(nn.Module):
    def forward(self, x):
        a = F.avg_pool2d(x, (2, 3), stride=2, padding=(1, 0), ceil_mode=True, divisor_override=5)
        return a, F.avg_pool2d(x, 2, stride=3, padding=1, ceil_mode=True, divisor_override=3)


@attack("x:float32[0,8]", dims="", refused="comparing nothing proves nothing")
class A7509WithoutElements(nn.Module):
    def forward(self, x):
        return x * 2


@attack("x:float32[N,H,W]", dims="N=1:1:2 H=4:6:9 W=4:7:8")
class A7510PatchesByStride(nn.Module):
    def forward(self, x):
        n, h, w = x.shape
        s = x.stride()
        patches = x.as_strided((n, h - 2, w - 2, 3, 3), (s[0], s[1], s[2], s[1], s[2]))
        turned = (x * 2).transpose(1, 2)
        t = turned.stride()
        return patches.amax((3, 4)), turned.as_strided((n, w, h // 2), (t[0], t[1], 2 * t[2]))
