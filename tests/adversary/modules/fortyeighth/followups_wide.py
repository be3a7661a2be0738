# ruff: noqa: E501 - attacks are written as users write them
"""The same over wide ranges: rare joint sizes of functions whose meaning turns on a size, shapes as tuples, narrow casts."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_last import MANY
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW, X4, pix
from tests.adversary.values import values_at

X = "x:float32[N,T]"
WIDE = "N=1:8:64 T=1:100:1000"


def at(*inputs, dims=WIDE, points=(), **more):
    """A wide space, judged at points that matter."""
    names = [d.split("=")[0] for d in dims.split()]
    return {"dims": dims, "kinds": FEW, "feeds": tuple(values_at(*inputs, **dict(zip(names, p, strict=True))) for p in points), **more}


@forward("p:float32[N,T,3]", "q:float32[N,T,3]", **at("p:float32[N,T,3]", "q:float32[N,T,3]", points=((3, 5), (3, 3), (2, 3), (64, 3), (5, 7), (3, 1000))), refused="the exported model differs from the module")
def A6083CrossOverWide(self, p, q):
    """torch.cross without a dim, in a wide space."""
    return torch.cross(p, q)


@forward("a:float32[N,7,7]", "b:float32[7,T]", **at("a:float32[N,7,7]", "b:float32[7,T]", points=((7, 7), (7, 8), (8, 7), (1, 1))), refused="the exported model differs from the module")
def A6084SolvedOverWide(self, a, b):
    """linalg.solve, vectors for each where both sizes are seven."""
    return torch.linalg.solve(a @ a.transpose(1, 2) + 2 * torch.eye(7), b)


@forward("x:float32[A,B,C]", **at("x:float32[A,B,C]", dims="A=1:8:64 B=1:50:300 C=1:40:300", points=((7, 7, 7), (64, 64, 64), (7, 300, 7), (7, 7, 300), (5, 64, 64), (3, 2, 1))))
def A6085MostOfAShape(self, x):
    """How often the first size is in the shape scales, the largest axis is summed up where all are equal."""
    k = sum(int(s == x.shape[0]) for s in x.shape)
    return x.mean((1, 2)) * k


@forward("x:float32[A,T]", "y:float32[B,S]", **at("x:float32[A,T]", "y:float32[B,S]", dims="A=1:4:16 T=1:50:500 B=1:4:16 S=1:50:500", points=((7, 100, 7, 100), (7, 100, 7, 101), (1, 1, 1, 1), (16, 500, 16, 500), (7, 7, 100, 100))))
def A6086ShapesEqualWide(self, x, y):
    """Four sizes: both shapes equal gets a factor."""
    z = x.mean() + y.mean()
    return z * 2 if x.shape == y.shape else z


@forward("x:float32[A,T]", "y:float32[B,S]", **at("x:float32[A,T]", "y:float32[B,S]", dims="A=1:4:16 T=1:50:500 B=1:4:16 S=1:50:500", points=((7, 100, 7, 100), (7, 100, 100, 7), (5, 20, 10, 10), (4, 25, 5, 20), (16, 500, 16, 500))))
def A6087AsManyElements(self, x, y):
    """As many elements in both by numel."""
    z = x.mean() + y.mean()
    return -z if x.numel() == y.numel() else z


@forward("x:float32[A,T]", "y:float32[B,T]", **at("x:float32[A,T]", "y:float32[B,T]", dims="A=1:4:64 B=1:5:64 T=1:50:500", points=((7, 7, 100), (1, 7, 3), (7, 1, 3), (7, 7, 7), (64, 64, 500))), refused="the exported model differs from the module")
def A6088TryToAdd(self, x, y):
    """Addition that fails is a reason for an outer sum: one batch is stretched to the other where it can be."""
    try:
        z = (x + y).sum(0)
    except RuntimeError:
        z = (x[:, None] + y).sum((0, 1))
    return z


@forward("x:float32[A,T]", "y:float32[B,T]", **at("x:float32[A,T]", "y:float32[B,T]", dims="A=1:4:64 B=1:5:64 T=1:50:500", points=((7, 7, 100), (7, 6, 3), (7, 1, 3), (7, 7, 7), (64, 64, 500))))
def A6089MatmulOrTransposed(self, x, y):
    """A product as it is where sizes fit, transposed else."""
    return x @ y if x.shape[1] == y.shape[0] else x @ y.T


@forward(X, **long(X, sizes=MANY), refused="computes in FP64")
def A6090PhaseInTensors(self, x):
    """The phase of the length by a table of its remainders, by a tensor of doubles, and by torch's own float."""
    t = x.shape[1]
    return x * torch.cos(torch.tensor(math.pi * (t % 24) / 12)), x * torch.cos(torch.tensor(t, dtype=torch.float64) * (math.pi / 12)).float()


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6091DecaysToThePower(self, x):
    """Numbers to the power of the length and its half, logs of them, in doubles of tensors."""
    t = x.shape[1]
    return x * math.exp(-t / 700), x + math.log1p(t) * 1e-3, x * (0.5 ** (t / 1000)), x * math.tanh(t / 500), x * math.atan2(t, 1000), x / math.sqrt(t * (t + 1) / 2)


@forward(X, **long(X, sizes=MANY))
def A6092MomentsOfPositions(self, x):
    """A slope by least squares whose sums over positions are numbers of the length: closed forms of whole numbers."""
    t = x.shape[1]
    s1, s2 = t * (t - 1) // 2, (t - 1) * t * (2 * t - 1) // 6
    p = torch.arange(t, dtype=torch.float32)
    d = t * s2 - s1 * s1
    return (t * (x * p).sum(1) - s1 * x.sum(1)) / max(d, 1) if t > 1 else x.sum(1) * 0


@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=2))
def A6093ResizedToNearest(self, x):
    """nearest-exact to a square by the width; up by nearest to odd numbers; up by 2.5 then down by 0.4."""
    h, w = x.shape[-2:]
    return F.interpolate(x, size=(w, w), mode="nearest-exact"), F.interpolate(x, size=(2 * h + 1, 3 * w - 1)), F.interpolate(F.interpolate(x, scale_factor=2.5), scale_factor=0.4)


@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=2))
def A6094ResizedToNearestExact(self, x):
    """nearest-exact to a square by the width alone."""
    return F.interpolate(x, size=x.shape[3], mode="nearest-exact")


@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=2))
def A6095FactorsToNearest(self, x):
    """Two factors to the nearest."""
    return F.interpolate(x, scale_factor=(1.3, 0.8))


@forward("x:float32[N,C,H,W]", dims="N=1:1:2 C=2:4:12%2 H=4:8:16%4 W=4:8:24%4", kinds=FEW)
def A6096ChannelShuffle(self, x):
    """channel_shuffle of a moving number of channels."""
    return F.channel_shuffle(x, 2)


@forward("x:float32[N,C,H,W]", dims="N=1:1:2 C=2:4:12%2 H=4:8:16%4 W=4:8:24%4", kinds=FEW)
def A6097GroupsOfMoving(self, x):
    """group_norm of a moving number of channels, pixel_unshuffle, unflatten."""
    return F.group_norm(x, 2), F.pixel_unshuffle(x, 2), x.unflatten(1, (-1, 2)).sum(1)


@attack(X4, dims="N=1:2:3 T=1:9:40", kinds=FEW)
class A6098SpikesByScript(nn.Module):
    """The spiking neuron with a count in float, as a loop."""

    def forward(self, x):
        v, ref = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            v = torch.where(ref > 0, v, v * 0.5 + x[:, t])
            s = (v >= 1.0).float()
            v = v - s
            ref = torch.where(s > 0, torch.full_like(ref, 2.0), (ref - 1).clamp(min=0))
            out.append(s)
        return torch.stack(out, 1), v, ref


@forward(X, **long(X, sizes=MANY))
def A6099NumpyArangeOfLength(self, x):
    """np.ceil and np.arange of the length, each alone."""
    return x[:, : int(np.ceil(x.shape[1] / 3))]


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6100NumpyLinspaceOfLength(self, x):
    """np.linspace of the length as an index."""
    return x[:, torch.from_numpy(np.linspace(0, x.shape[1] - 1, 5).astype(np.int64))]
