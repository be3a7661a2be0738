"""Writes in place through views and other names, which show only where neighbours differ by one half."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import halves

SHORT = "N=1:2:4 T=2:9:24"
EVEN = "N=1:2:4 T=2:8:24%2"
ROOM = "N=1:2:3 H=2:7:12 W=2:9:13"
FINITE = (
    "normal",
    "unit",
    "bytes",
    "halves",
    "zeros",
    "tenths",
    "halves",
    "ascending",
    "positive",
    "negative",
    "halves",
)


TWO = (halves(1, 2, 4), halves(2, 8, 4), halves(4, 24, 4))
IMAGES = (halves(1, 4, 2, 2), halves(2, 4, 7, 5), halves(3, 4, 12, 13))


def rare(y):
    """Elements that are one half more than the one before them."""
    return y == torch.roll(y, 1, -1) + 0.5


class Steps(nn.Module):
    """A loop over a size, which no traced run can hold."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        outs = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            outs.append(h)
        return torch.stack(outs, 1)


class Beside(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = Steps()


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3353OutIntoSlices(Beside):
    def forward(self, x):
        y = self.steps(x)
        torch.where(rare(x), torch.tensor(0.0), y, out=y)
        torch.maximum(y[:, 0], x[:, 0], out=y[:, 0])
        y[..., 1:3].copy_(y[..., :1])
        return y


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3354InplaceLayers(Beside):
    def __init__(self):
        super().__init__()
        self.relu, self.hard = nn.ReLU(inplace=True), nn.Hardtanh(-1, 1, inplace=True)
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        y = self.line(self.steps(x)) + x
        z = self.relu(y) + y
        w = self.hard(z[:, ::2]) - F.leaky_relu(z[:, 1::2].mean(1, keepdim=True), 0.1, True)
        F.threshold(y[..., :2], 0.5, -1.0, inplace=True)
        return y, z, w


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3355ComplexParts(self, x):
    y = x * 1.0
    z = torch.view_as_complex(y.view(*x.shape[:2], 2, 2))
    z.imag[rare(x)[..., :2]] = 0.0
    z.real.mul_(2)
    torch.view_as_real(z)[..., 0].masked_fill_(rare(x)[..., 2:], 7.0)
    return y, (z * z.conj()).real


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3358LastOfDuplicates(self, x):
    index = torch.arange(x.shape[1]) % 3
    y = x[:, :1].repeat(1, 3, 1)
    y[:, index[: x.shape[1]]] += 1.0
    z = torch.zeros(x.shape[0], 3, 4)
    z.index_add_(1, index, x, alpha=-2)
    z.index_fill_(1, torch.tensor([-1, 2]), 0.5)
    return y, z


@forward("x:float32[N,4,H,W]", dims=ROOM, kinds=FINITE, feeds=IMAGES)
def A3360SplitsWritten(self, x):
    y = x + 0
    a, b = y.tensor_split(2, dim=-1)
    a[rare(x)[..., : a.shape[-1]]] = 1.0
    b *= 0.5
    for i, part in enumerate(y.unbind(1)):
        part.add_(i * rare(x)[:, i])
    first, *rest = y.hsplit([1, 3]) if y.dim() == 1 else torch.split(y, [1, 3], 1)
    rest[0].relu_()
    return y, first


@attack("x:float32[N,4,H,W]", dims=ROOM, kinds=FINITE, feeds=IMAGES)
class A3361BufferInForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("work", torch.zeros(1, 4, 16, 16))

    def forward(self, x):
        h, w = x.shape[-2:]
        self.work.zero_()
        self.work[:, :, :h, :w] = x[:1]
        self.work[..., :h, :w][rare(x[:1])] = 5.0
        return F.avg_pool2d(self.work, 4), x + self.work[..., :h, :w]


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3362RunningMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = x - self.mean
        if self.training:
            self.count += 1
            self.mean.lerp_(x.mean((0, 1)), 0.1)
        y.flatten(1)[:, ::3].mul_(torch.where(rare(x).flatten(1)[:, ::3], 0.0, 1.0))
        return y, self.count


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3363InputWritten(self, x):
    before = x.sum(1)
    y = x
    y = torch.atleast_3d(y)
    y[rare(x)] = 0.0
    x += 1
    return before, x.sum(1), y.amax(1)


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3364ExpandedRow(self, x):
    row = x[:, :1] * 1.0
    wide = row.expand(-1, x.shape[1], -1)
    row[rare(row)] = 4.0
    out = wide + x
    own = wide.clone()
    own[:, -1] -= x[:, 0]
    row.zero_()
    return out, own, wide.sum(1)


@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3365DirtyFunction(nn.Module):
    class Snap(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y, mask):
            ctx.mark_dirty(y)
            return y.masked_fill_(mask, 2.0)

        @staticmethod
        def backward(ctx, g):
            return g, None

    def forward(self, x):
        y = x * 2
        z = self.Snap.apply(y, rare(x))
        return y.mean(1), (z - y).sum(), y.detach().add_(1).sum(1), y.sum(1)


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3366AliasesInContainers(self, x):
    parts = {"low": x[..., :2] * 1, "high": x[..., 2:] * 1}
    seen = list(parts.values())
    parts["low"] += rare(x)[..., :2]
    parts["high"] = parts["high"] + 1
    pair = [parts["low"]] * 2
    pair[0].mul_(2)
    seen[1].t_() if seen[1].dim() == 2 else seen[1].transpose_(1, 2)
    return seen[0], seen[1], pair[1].mean(1), parts["high"]


@forward("x:float32[N,T,4]", dims=EVEN, kinds=FINITE, feeds=(halves(1, 2, 4), halves(3, 24, 4)))
def A3368RotaryInPlace(self, x):
    n, t, _ = x.shape
    y = x.unflatten(1, (t // 2, 2)).clone()
    a, b = y[..., :2], y[..., 2:]
    angle = torch.arange(t // 2)[:, None, None] * 0.3
    a.copy_(a * angle.cos() - b * angle.sin())
    b.copy_(a * angle.sin() + b * angle.cos())
    y.flatten(1, 2)[rare(x)] = 0.0
    return y.view(n, t, 4)


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3369Overlapping(self, x):
    y = x.clone()
    y[:, 1:] = y[:, :-1] * 1.0
    z = x.clone()
    z[:, 1:] += z[:, :-1].clone()
    z[:, ::2], z[:, -1] = z[:, ::2] * 2, z[:, 0] * 1
    z.flip(1)[:, 0] = 99.0
    z[(z[:, :, 0] > 0), 1] = -1.0
    return y, z


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3370GridsOfOneTensor(self, x):
    line = x[:, :, 0] * 1.0
    gx, gy = torch.broadcast_tensors(line[:, :, None], line[:, None, :])
    line[rare(line)] = 3.0
    line.unsqueeze(1).expand(-1, 2, -1)[:, 0].sub_(0.25)
    a, b = torch.meshgrid(line[0], line[-1], indexing="xy")
    line[:, :1].fill_(8.0)
    return gx - gy, a + b * 2
