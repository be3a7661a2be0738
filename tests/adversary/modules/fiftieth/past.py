"""What happens past torch's operators, or in the ones that nobody calls: seen at rare values alone."""

from __future__ import annotations

import concurrent.futures
import contextlib
import weakref

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
BIG = sprinkled(7e4, -7e4, 3e7, np.nan, sizes=((1, 9), (2, 12)))


@forward(X, **seq(X, own=BIG), refused="Cannot swap t1")
def A6350TensorsSwapped(self, x):
    """Two tensors change their contents by torch.utils.swap_tensors."""
    y, z = x * 2, (x * 2).clamp(-5e4, 5e4)
    torch.utils.swap_tensors(y, z)
    return y + 1


@forward(X, **seq(X, own=BIG))
def A6351SetToAnother(self, x):
    """A tensor becomes another one by set_()."""
    y, z = x * 2, (x * 2).clamp(max=5e4)
    y.set_(z)
    return y - 1


@forward(X, **seq(X, own=BIG), refused="has no form of _foreach")
def A6352ManyAtOnce(self, x):
    """Lists of tensors are clamped, scaled and written at once."""
    a, b = x * 2, x - 1
    torch._foreach_clamp_max_([a, b], 5e4)
    torch._foreach_clamp_min_((a, b), -5e4)
    c = torch._foreach_add([a, b], 1.0)
    torch._foreach_copy_([a], [c[1]])
    return a, b, c[0]


@forward(X, **seq(X, own=BIG), refused="fake tensor")
def A6353PackedForTheGradient(self, x):
    """Forces by a gradient whose saved tensors are packed in halves' range."""
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(lambda t: t.clamp(-6e4, 6e4), lambda t: t):
        p = x.detach().requires_grad_()
        e = (p * p * p).sum()
    return torch.autograd.grad(e, p)[0]


@forward(X, **seq(X, own=BIG), refused="which the module catches")
def A6354AnomalyIsCaught(self, x):
    """Anomaly detection raises where a gradient is not a number."""
    with torch.enable_grad(), contextlib.suppress(RuntimeError), torch.autograd.detect_anomaly(check_nan=True):
        p = x.detach().requires_grad_()
        e = torch.where(p.abs() > 5e4, (p - p).sqrt() * p.sign(), p * p).sum()
        return torch.autograd.grad(e, p)[0]
    return -x


@forward(X, **seq(X, own=BIG), refused="the exported model differs from the module")
def A6355ClampedByAnotherName(self, x):
    """Memory by other names: dlpack, a storage, a Buffer, a constructor; each is clamped."""
    a, b, c, d = x * 2, x * 3, x * 4, x * 5
    torch.from_dlpack(a).clamp_(max=5e4)
    torch.empty(0).set_(b.untyped_storage(), 0, b.shape, b.stride()).clamp_(max=5e4)
    nn.Buffer(c).clamp_(max=5e4)
    torch.Tensor(d).clamp_(max=5e4)
    return a, b, c, d


@forward(X, **seq(X, own=BIG), refused="has no form of view")
def A6356NansByBits(self, x):
    """What is no number is set to nothing in the bits."""
    y = x + 0.5
    b = y.view(torch.int32)
    b[(b & 0x7FFFFFFF) > 0x7F800000] = 0
    return y


@forward(X, **seq(X, own=BIG), refused="the module cannot be exported")
def A6357PartsInThreads(self, x):
    """Two halves of the columns are clamped by two threads."""
    y = x * 2
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda v: v.clamp_(max=5e4), y.split(8, 1)))
    return y


@forward(X, **seq(X, own=BIG))
def A6358ForkedParts(self, x):
    """torch.jit.fork with a function that writes."""
    y = x * 2
    f = torch.jit.fork(lambda v: v.clamp_(max=5e4), y)
    torch.jit.wait(f)
    return y + 1


class Scratch:
    """Held for the time of a call."""


@forward(X, **seq(X, own=BIG))
def A6359AtTheEndOfAnObject(self, x):
    """A finalizer and a stack of exits write."""
    y, z = x * 2, x * 3
    s = Scratch()
    weakref.finalize(s, lambda: y.clamp_(max=5e4))
    del s
    with contextlib.ExitStack() as stack:
        stack.callback(z.clamp_, -5e4, 5e4)
        w = z + 1
    return y, z, w


@attack(X, **seq(X, own=BIG))
class A6360WeightsAsAVector(nn.Module):
    """Weights are taken as a vector, limited by the largest value, and put back for a call."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(1, 3)

    def forward(self, x):
        v = nn.utils.parameters_to_vector(self.l.parameters())
        s = torch.where(x.abs().amax() > 5e4, 0.5, 1.0)
        w = v * s
        return F.linear(x[..., None], w[:3].view(3, 1), w[3:])


@forward(X, **seq(X, own=BIG))
def A6361BitsAsUnsignedShorts(self, x):
    """Levels of sixteen bits in uint16, split into bytes and joined again."""
    u = (x.nan_to_num(0.0).clamp(0, 1) * 65535).round().to(torch.int32).to(torch.uint16)
    i = u.to(torch.int32)
    return i & 255, (i >> 8).to(torch.uint8), i.float() / 65535, u.to(torch.int64) + 1


@attack(X, **seq(X, own=BIG), refused="Couldn't swap Linear.weight")
class A6362LayerTurnedToHalf(nn.Module):
    """A layer's weights go to halves and back at each call, which is the same after the first."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(1, 3)

    def forward(self, x):
        self.l.half().float()
        return self.l(x[..., None])


class Squash(torch.autograd.Function):
    """Cast under autocast by its decorator."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x):
        return x * 3 + 1

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return g * 3


@attack(X, **seq(X, own=BIG))
class A6363CastByTheFunction(nn.Module):
    """A function of one's own that asks for single precision under autocast."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(1, 3)

    def forward(self, x):
        y = Squash.apply(x)
        with torch.autocast("cpu", torch.bfloat16):
            h = self.l(x[..., None])
            return y, Squash.apply(h) - h.float()
