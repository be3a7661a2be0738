# ruff: noqa: E501, B023 - attacks are written as users write them
"""More craft: objects of boxes, contexts of types, late binding, members by text, functions of functions."""

from __future__ import annotations

import dataclasses
import functools

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X = "x:float32[N,T]"


@dataclasses.dataclass
class Boxes:
    """A list of boxes by their members."""

    xy: torch.Tensor
    wh: torch.Tensor
    scale: float = 1.0

    def __mul__(self, k):
        return dataclasses.replace(self, xy=self.xy * k, wh=self.wh * k, scale=self.scale * k)

    @property
    def area(self):
        return self.wh.prod(-1)

    def __getitem__(self, at):
        return Boxes(self.xy[at], self.wh[at], self.scale)

    def __len__(self):
        return self.xy.shape[0]


@forward(X4, **seq(X4))
def A6009BoxesAsObjects(self, x):
    """Boxes as a dataclass: scaled, indexed by order of area, their number, and a total by sum() with a start."""
    b = Boxes(x[0, :, :2], x[0, :, 2:].abs()) * 2
    b = b[b.area.argsort(descending=True, stable=True)]
    return b.xy, b.area * b.scale, x * len(b), sum((b[k : k + 1].area for k in range(1)), torch.zeros(()))


@attack(X4, **seq(X4))
class A6010AutocastWithin(nn.Module):
    """bfloat16 by autocast, off again within, and what softmax and sums become there."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            y = self.a(x)
            with torch.autocast("cpu", enabled=False):
                z = self.b(y.float())
            s = y @ y.transpose(1, 2)
            w = s.softmax(-1)
        return z, w.float(), (y.sum(1) > 0.5)


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]"), refused="the exported model differs from the module")
def A6011LargerOfTwo(self, x, y):
    """max() of Python over two sums, sorted() by a mean."""
    s = max(x.sum(), y.sum())
    a, b = sorted((x.mean(), y.mean()), key=float)
    return s, b - a


@forward(IMAGE, **pix(IMAGE))
def A6012LoopsOverChannels(self, x):
    """Late binding: lambdas made in a loop see its last variable; a default keeps each; a comprehension of its own."""
    late = [lambda v: v * k for k in (1, 2, 3)]
    kept = [lambda v, k=k: v * k for k in (1, 2, 3)]
    return sum(f(x) for f in late), sum(f(x) for f in kept), torch.stack([c.flip(-1) if j % 2 else c for j, c in enumerate(x.unbind(1))], 1)


@attack(X4, **seq(X4))
class A6013RowsAsMembers(nn.Module):
    """Heads in a ModuleDict chosen by the parity of the length as text; getattr with a name made of it."""

    def __init__(self):
        super().__init__()
        self.h = nn.ModuleDict({"0": nn.Linear(4, 2), "1": nn.Linear(4, 2)})
        self.layer0, self.layer1, self.layer2 = (nn.Linear(4, 2) for _ in range(3))

    def forward(self, x):
        t = x.shape[1]
        return self.h[str(t % 2)](x), getattr(self, f"layer{min(t // 10, 2)}")(x)


@forward(X4, **seq(X4), refused="the module cannot be exported")
def A6014VmapOfSorts(self, x):
    """vmap over samples of a function with a sort and a scan; functional_call with other weights; a jvp by hand."""
    lin = nn.Linear(4, 4, bias=False)
    w = {"weight": torch.eye(4).flip(0) * 2}
    y = torch.func.functional_call(lin, w, (x,))
    return torch.vmap(lambda v: v.sort(0).values.cumsum(0))(x), y, torch.vmap(torch.dot, (0, 0))(x[:, 0], x[:, -1])


@forward(X, **seq(X), refused="the path through the module depends on the size")
def A6015UnpackedRows(self, x):
    """Python's unpacking of a tensor: first and rest, zip with itself shifted, reversed, min over a list of rows."""
    head, *rest = x.T.unsqueeze(-1) if x.shape[1] > 1 else (x, x)
    steps = [b - a for a, b in zip(x[:, :-1].unbind(1), x[:, 1:].unbind(1), strict=True)]
    return head, rest[-1], torch.stack(steps or [x[:, 0]], 1), functools.reduce(torch.minimum, x.unbind(1))
