"""What Python and the habits around it bring in: named outputs, default arguments, closures, generators, numpy, views, sizes as tensors."""
# ruff: noqa: E501, RUF059, B008 - attacks are written as users write them

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import itertools
import math
import typing

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

X = "x:float32[N,T]"
D = "N=1:2:3 T=1:5:9"


class Mode(enum.Enum):
    MEAN = "mean"
    MAX = "max"


@dataclasses.dataclass
class Config:
    mode: Mode = Mode.MAX
    sizes: tuple[int, ...] = (1, 2, 3)
    scale: float = 1 / 3


class Out(typing.NamedTuple):
    first: torch.Tensor
    rest: dict[str, torch.Tensor]


@attack(X, dims=D, kinds=FINITE)
class A8224ConfigAndMatch(nn.Module):
    """A dataclass config with an enum, match statements by it and by the rank, a named tuple with a dict inside as the output, cached_property tables."""

    def __init__(self, cfg: Config | None = None) -> None:
        super().__init__()
        self.cfg = cfg or Config()

    def forward(self, x):
        match self.cfg.mode:
            case Mode.MEAN:
                y = x.mean(1)
            case Mode.MAX:
                y = x.amax(1)
        match tuple(x.shape):
            case (_, 1):
                z = x * 2
            case (n, t) if t > n:
                z = x[:, :n]
            case _:
                z = x
        return Out(y, {f"s{s}": z * s * self.cfg.scale for s in self.cfg.sizes})


@forward(X, dims=D, kinds=FINITE)
def A8225NumpyInTheMiddle(self, x):
    """Positions made by numpy from the sizes in float64, cast by from_numpy, np.float64 scalars times the input, np.ceil of a size, a window by np.hanning of the size."""
    n, t = x.shape
    p = torch.from_numpy(np.linspace(0, 1, t).astype(np.float32)).to(x.device)
    k = int(np.ceil(t / 2))
    return x * p, x[:, :k] * np.float64(0.1), x + torch.as_tensor(np.arange(t, dtype=np.float32), device=x.device)


@forward(X, dims=D, kinds=FINITE)
def A8226IteratorsAndStars(self, x):
    """zip of unbinds, enumerate, reversed, itertools.accumulate and pairwise over chunks, star-unpacking, sum() with a start, max() of python over sizes, functools-free folds."""
    first, *rest = x[:, :1].expand(-1, 4).unbind(1)
    acc = list(itertools.accumulate(rest, lambda a, b: a * 0.5 + b, initial=first))
    pairs = [b - a for a, b in itertools.pairwise(acc)]
    od = collections.OrderedDict((str(i), v) for i, v in enumerate(reversed(pairs)))
    return sum(od.values(), torch.zeros_like(first)), torch.stack([*od.values()], -1), x.sum() / max(*x.shape, 4)


@forward("x:float32[N,C,T]", dims="N=1:2:3 C=1:2:4 T=1:4:7", kinds=FINITE)
def A8227ViewsAndStrides(self, x):
    """In-place writes through transposes, narrow, diagonal, a flat view of a contiguous clone, a chunk with a rest, unflatten and movedim, a step slice that is written to."""
    y = x.clone()
    y.transpose(1, 2)[:, 0] += 1
    y.narrow(2, 0, 1).mul_(2)
    y.diagonal(dim1=1, dim2=2).add_(3)
    f = y.view(-1)
    f[::2] = f[::2] * 0.5
    y[..., ::3] = -1
    a = y.chunk(2, 2)[0]
    a += 10
    return y, torch.cat(y.split(2, dim=2)[::-1], 2), y.movedim(-1, 0).flatten(1)


@forward("x:float32[N,T,4]", "n:int64[N]=1:9", dims="N=1:2:3 T=3:5:9", kinds=FINITE, feeds=())
def A8228LastValidStep(self, x, n):
    """The last valid step by fancy indices, a roll by the size, the mask by tril of a ones matrix at lengths, attention bias -10000, positions by cumsum of a mask minus one with pad 1."""
    t = x.shape[1]
    n = n.clamp(max=t)
    i = torch.arange(x.shape[0], device=x.device)
    m = torch.ones(t, t, device=x.device).tril()[n - 1]
    pos = (m.cumsum(1) - 1).masked_fill(m == 0, 1).long()
    return x[i, n - 1], x.roll(t // 2, 1), pos, (x.mean(2) + (1 - m) * -10000).softmax(1), x[i, -n]


@attack(X, dims=D, kinds=FINITE)
class A8229Contexts(nn.Module):
    """forward under inference_mode, no_grad, autocast off, a user's context manager that sets a scale for the layers within, an ExitStack, profiler ranges."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.scale = 1.0
        self.l = nn.Linear(1, 3)

    @contextlib.contextmanager
    def scaled(self, s):
        old, self.scale = self.scale, s
        try:
            yield self
        finally:
            self.scale = old

    def part(self, x):
        return self.l(x[:, :1]) * self.scale

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.autograd.profiler.record_function("net"))
            me = stack.enter_context(self.scaled(0.1))
            a = me.part(x)
        with torch.autocast("cpu", enabled=False):
            b = self.part(x)
        return a, b


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 9),))
def A8230AliasesOfOutputs(self, x):
    """The input itself, the same output twice, a view of the input, a None, an int, an empty tuple, a bool, a detached clone among the outputs."""
    y = torch.relu(x)
    return x, y, y, x[:, :1], x.detach().clone(), (y.T, [y.sum(1)])


@attack("x:float32[N,T]", "mask:bool[N,T]", dims=D, kinds=FINITE)
class A8231OptionalArguments(nn.Module):
    """Keyword-only arguments with defaults, *args and **kwargs that nothing fills, a default tensor, a bool flag, an inherited forward by super()."""

    class Base(nn.Module):
        def forward(self, x, *more, bias=None, **kw):
            y = x if bias is None else x + bias
            for m in more:
                y = torch.where(m, y, kw.get("fill", -1.0))
            return y

    def __init__(self):
        super().__init__()
        self.base = self.Base()

    def forward(self, x, mask=None, *, flip: bool = False, scale=torch.tensor(2.0), **unused):
        y = self.base(x, *([] if mask is None else [mask]), fill=0.5)
        return (y.flip(1) if flip else y) * scale


@forward("x:float32[N,H,W]", dims="N=1:1:2 H=1:4:7 W=1:5:7", kinds=FINITE, refused="what was exported cannot be compared with the module: ONNX R")
def A8232OddEvenSizes(self, x):
    """Halves by // and by shifts, up and down paths that crop to each other's size, a centre crop by differences of parity, fftshift by rolls of -(-n // 2), checkerboard masks."""
    n, h, w = x.shape
    p = F.pad(x, (0, w % 2, 0, h % 2))
    d = F.avg_pool2d(p, 2)
    u = F.interpolate(d[:, None], scale_factor=2.0)[:, 0, :h, :w]
    s = x.roll((h // 2, -(-w // 2)), (1, 2))
    b = ((torch.arange(h, device=x.device)[:, None] + torch.arange(w, device=x.device)) & 1).bool()
    e = math.floor((h - 1) / 2)
    return u, s, torch.where(b, x, -x), x[:, e : e + 1 + (h + 1) % 2], x[:, h >> 1, w >> 1]


@forward("x:float32[N,T,3]", dims="N=1:2:4 T=0:3:5", kinds=("normal", "unit", "halves"))
def A8233EmptySets(self, x):
    """A set that may be empty: sums, a max with an appended zero, means by max(1, n), cat with itself, attention over a learnt token first, any and all."""
    z = torch.cat((x.new_zeros(x.shape[0], 1, 3), x), 1)
    a = (z[:, :1] @ z.mT).softmax(-1) @ z
    return x.sum(1) / max(1, x.shape[1]), z.amax(1), a, (x > 0).any(1), (x > 0).all(1), torch.cat((x, x), 1)


@forward("x:float32[N,6]", "k:int64[]=1:6", dims="N=1:2:4", kinds=FINITE)
def A8234ScalarInput(self, x, k):
    """A 0-d integer input: masks by arange < k, a gather of x at k - 1, division by k, a shift by modulo, one-hot by comparison, powers."""
    i = torch.arange(6, device=x.device)
    return (
        x * (i < k),
        x[:, k - 1],
        x.sum(1) / k,
        x[:, (i + k) % 6],
        (i == k - 1).long(),
        0.5**k,
        x.gather(1, (6 - k).expand(x.shape[0], 1)),
    )


@attack("x:float32[N,T,4]", "h:float32[1,N,3]", dims="N=1:2:3 T=1:4:7", kinds=("normal", "unit", "zeros", "halves"))
class A8235PackedGru(nn.Module):
    """A GRU with a hidden state passed in, a bidirectional LSTM with proj_size, an RNN with relu whose last steps are taken, GRUCell by a loop over T."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.g = nn.GRU(4, 3, batch_first=True)
        self.r = nn.RNN(4, 3, nonlinearity="relu", batch_first=True)
        self.l = nn.LSTM(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x, h):
        y, h2 = self.g(x, h)
        r, _ = self.r(x)
        o, (hn, cn) = self.l(x)
        return y + h.transpose(0, 1), h2, r[:, -1], o, hn[-1], cn


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A8236SizesAsTensors(self, x):
    """torch.tensor(x.shape), x.numel(), len(x), x.size(-1) in tensors and floats, new_tensor of sizes, a slice by int(tensor of sizes), scalar_tensor."""
    s = torch.tensor(x.shape, device=x.device)
    k = int(torch.tensor(x.shape[1] / 2).ceil())
    return (
        x / s[1],
        s.prod() + x.numel(),
        x[:, :k],
        x * x.new_tensor([len(x), x.size(-1)]).mean(),
        torch.scalar_tensor(x.shape[1]) ** 0.5,
    )
