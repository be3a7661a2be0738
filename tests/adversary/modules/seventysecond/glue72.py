"""Glue: global hooks, forwards that are attributes, iterators, cached tables, autograd in forward, casts and ties."""

from __future__ import annotations

import copy
import functools
import types
import weakref

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=2:5:9"
GAIN = 1.0
WEAK: weakref.WeakValueDictionary[int, torch.Tensor] = weakref.WeakValueDictionary()


@functools.lru_cache(maxsize=1)
def last_window(t: int) -> list[float]:
    """One table is kept, and is made for the next length again."""
    return [1 / (1 + i + t) for i in range(t)]


@attack("x:float32[N,6]", dims="N=1:2:4", kinds=FINITE)
class A8374ForwardIsAttribute(nn.Module):
    """The forward of deployment, put in place of the other, after the weights were folded."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 6), nn.LayerNorm(6)
        self.forward = self.deployed

    def deployed(self, x):
        return self.linear(x) + 1

    def forward(self, x):
        return self.norm(self.linear(x))


@attack("x:float32[N,6]", dims="N=1:2:4", kinds=FINITE)
class A8375ForwardOfPart(nn.Module):
    """The forward of a part, replaced by a function that the part's own is bound in."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        own = self.linear.forward
        self.linear.forward = types.MethodType(lambda part, x: own(x) * part.in_features, self.linear)

    def forward(self, x):
        return self.linear(x).relu()


@attack(X, dims=D, kinds=FINITE, refused="the module returns a different")
class A8376IteratorOfScales(nn.Module):
    """Scales out of an iterator, which ends after three calls."""

    def __init__(self):
        super().__init__()
        self.scales = iter([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])

    def forward(self, x):
        return x * next(self.scales, 2.0)


@forward(X, dims=D, kinds=FINITE)
def A8377WeakCache(self, x):
    """A cache whose tables go as soon as nobody holds them."""
    t = int(x.shape[1])
    table = WEAK.get(t)
    if table is None:
        table = torch.linspace(0, 1, t)
        WEAK[t] = table
    return x * table


@forward(X, dims=D, kinds=FINITE)
def A8378OneTableKept(self, x):
    """functools.lru_cache of one entry."""
    return x * torch.tensor(last_window(x.shape[1]))


@forward(X, dims=D, kinds=FINITE)
def A8379GlobalGain(self, x):
    """A global that is a number and that forward sets from the number of rows at each call, before it reads it."""
    global GAIN
    GAIN = float(x.shape[0])
    return x * GAIN


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE, refused="forward takes a derivative")
class A8380GradientInForward(nn.Module):
    """A score: the gradient of an energy by the input."""

    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            (grad,) = torch.autograd.grad(self.energy(x).sum(), x)
        return -grad


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE)
class A8381CallWithScaledWeights(nn.Module):
    """functional_call with weights that the input scales."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x):
        scale = x.abs().mean()
        weights = {k: v * scale for k, v in self.net.named_parameters()}
        return torch.func.functional_call(self.net, weights, (x,))


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE)
class A8382CopyInForward(nn.Module):
    """A deep copy of a part, whose weights are halved at each call."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x):
        other = copy.deepcopy(self.net)
        other.weight.data.mul_(0.5)
        return self.net(x) - other(x)


@forward("x:float32[N,T]=-300:300", dims=D, kinds=FINITE)
def A8383WrappedBytes(self, x):
    """Bytes that wrap, by way of int16."""
    return (x.to(torch.int16).to(torch.uint8) + 10).float()


@forward("x:int32[N,T]=-100:100", dims=D)
def A8384SignedBits(self, x):
    """Shifts and masks of negative numbers, and remainders of both kinds."""
    return (x >> 2) + (x & 7) + torch.remainder(x, 5) + torch.fmod(x, 5) * 2 + torch.div(x, 3, rounding_mode="floor")


@forward("x:float32[N,T]=0:4", dims=D, kinds=FINITE)
def A8385HalfUp(self, x):
    """Whole and half numbers rounded to even, to two decimals, and up."""
    y = torch.floor(x * 2) / 2
    return torch.round(y) + torch.floor(y + 0.5) * 10 + torch.round(y / 8, decimals=2) * 100


@forward("x:float32[N,T]=0:3", dims=D, kinds=FINITE)
def A8386TiesOfRanks(self, x):
    """Ranks of rows with many ties, by a stable sort of a sort."""
    y = torch.floor(x)
    order = torch.argsort(y, dim=1, stable=True, descending=True)
    return torch.argsort(order, dim=1, stable=True)


@forward("x:float32[N,T]=0:3", dims=D, kinds=FINITE)
def A8387LastOfMaxima(self, x):
    """The last place of the maximum, by flipping."""
    y = torch.floor(x)
    return x.shape[1] - 1 - y.flip(1).argmax(1)


@forward(X, dims=D, kinds=FINITE)
def A8388NumpyScalars(self, x):
    """Scalars of NumPy beside tensors: float64 of NumPy is a Python float, an array of one is not."""
    return x * np.float64(0.1) + np.float32(0.3) * x + float(np.array(7) // 2)


@forward(X, dims=D, kinds=FINITE)
def A8389DoubleInside(self, x):
    """A double beside floats: a tensor of one axis promotes, a scalar does not."""
    scale = torch.tensor([1 / 3], dtype=torch.float64)
    return (x * scale).float() + x * torch.tensor(1 / 3, dtype=torch.float64)


@forward(X, dims=D, kinds=FINITE)
def A8390StridedWindows(self, x):
    """Windows of three by as_strided of a padded copy."""
    y = F.pad(x, (1, 1)).contiguous()
    return y.as_strided((x.shape[0], x.shape[1], 3), (x.shape[1] + 2, 1, 1)).amax(2)


@forward(X, dims=D, kinds=FINITE)
def A8391ContiguousOfTransposed(self, x):
    """Whether a transposed tensor is contiguous, which it is at one row or one column alone."""
    y = x.t()
    return y * 2 if y.is_contiguous() else y + 1


@forward(X, dims="N=1:2:4 T=1:5:9", kinds=FINITE)
def A8392StrideDecides(self, x):
    """The stride of an axis of size one."""
    return x[:, :1] * x.t().stride(0) + x.stride(0)


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE)
class A8393SliceOfSequential(nn.Module):
    """Layers of a Sequential up to the number of rows."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        return self.layers[: x.shape[0]](x)


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE, refused="a tensor gets other data")
class A8394NoEffectParameter(nn.Module):
    """A parameter of an alias whose tensor is replaced by `data` in forward."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.alias = self.weight

    def forward(self, x):
        self.alias.data = torch.full((4,), 3.0)
        return x * self.weight


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE, refused="forward changes 'count' and depends on it")
class A8395NumpyViewOfBuffer(nn.Module):
    """A counter behind a NumPy view of a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.view = self.count.numpy()

    def forward(self, x):
        self.view += 1
        return x * (self.count > 50)


@attack(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size")
class A8396TensorSubclass(nn.Module):
    """A subclass of Tensor that counts what is done with it."""

    class Counted(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls += 1
            return super().__torch_function__(func, types, args, kwargs or {})

    def forward(self, x):
        self.Counted.calls = 0
        y = x.as_subclass(self.Counted)
        y = y + 1
        y = y * 2 if x.shape[1] > 6 else y
        return (y * self.Counted.calls).as_subclass(torch.Tensor)
