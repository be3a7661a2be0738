# ruff: noqa: RUF034 - attacks are written as users write them
"""Settings of a library that a module changes or asks for, and transforms of functions with rules of their own."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
TINY = sprinkled(1e-39, -3e-40, 1e-45, 0.0, -0.0, 2e-38, sizes=((1, 9), (2, 12)))
BIG = sprinkled(7e4, -7e4, 3e7, 1e10, sizes=((1, 9), (2, 12)))


@forward(X, **seq(X, own=TINY))
def A6500DenormalsFlushed(self, x):
    """set_flush_denormal for the time of a call."""
    torch.set_flush_denormal(True)
    try:
        return (x * 0.5 != 0).float() + (x * 0.5 > 0)
    finally:
        torch.set_flush_denormal(False)


@forward(X, **seq(X, own=TINY))
def A6501DenormalsCounted(self, x):
    """Zero or not: denormals are numbers."""
    return x == 0, x.sign(), x * 1e38, x.to(torch.bool), torch.where(x > 0, 1.0, 0.0), x.count_nonzero(1)


@forward(X, **seq(X, own=BIG))
def A6502DefaultOfDoubles(self, x):
    """set_default_dtype makes constants of doubles."""
    torch.set_default_dtype(torch.float64)
    try:
        k = torch.tensor(0.1)
    finally:
        torch.set_default_dtype(torch.float32)
    return (x + k).float(), ((x * k) * 10 == x).float()


class Softclip(torch.autograd.Function):
    """Has a rule for vmap of its own, which clamps."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return (x * 2).clamp(max=6e4), in_dims[0]


@forward(X, **seq(X, own=BIG), refused="cannot be exported")
def A6503RuleOfVmap(self, x):
    """A function whose rule for vmap differs at large values."""
    return torch.vmap(Softclip.apply)(x), Softclip.apply(x)


class Jumps(torch.autograd.Function):
    """Forward mode by a jvp of one's own."""

    @staticmethod
    def forward(x):
        return x.abs()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return torch.where(x > 6e4, 0 * t, t * x.sign())


@forward(X, **seq(X, own=BIG), refused="cannot be exported")
def A6504ForwardModeOfOnesOwn(self, x):
    """torch.func.jvp with a rule that stops at large values."""
    return torch.func.jvp(Jumps.apply, (x,), (torch.ones_like(x),))


@forward(X, **seq(X, own=BIG), refused="cannot be exported")
def A6505JacobianOfRows(self, x):
    """Diagonal Jacobians by vmap of grad with a clamp."""
    return torch.vmap(torch.func.grad(lambda r: (r.clamp(-6e4, 6e4) ** 2).sum()))(x)


@forward(X, **seq(X, own=BIG))
def A6506InferenceAsked(self, x):
    """Whether gradients are on decides nothing that shows but at large values."""
    k = 2.0 if torch.is_inference_mode_enabled() or not torch.is_grad_enabled() else 2.0
    with torch.no_grad(), torch.inference_mode(False):
        return (x * k).clamp(max=6e4)


def limited(limit):
    """A decorator that limits what a method returns."""

    def wrap(f):
        @functools.wraps(f)
        def inner(self, *a):
            y = f(self, *a)
            y.data.clamp_(max=limit)
            return y

        return inner

    return wrap


@attack(X, **seq(X, own=BIG))
class A6507LimitedByDecorator(nn.Module):
    """.data is clamped by a decorator."""

    @limited(6e4)
    def forward(self, x):
        return x * 2


@attack(X, **seq(X, own=BIG), refused="the module itself raises TypeError")
class A6508LimitedByCall(nn.Module):
    """__call__ is one's own, and limits."""

    def __call__(self, *a):
        return super().__call__(*a).clamp(max=6e4)

    def forward(self, x):
        return x * 3


@attack(X4, **seq(X4, own=()), refused="traced for some sizes")
class A6509EnsembleStacked(nn.Module):
    """Three heads by stack_module_state and functional_call under vmap."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

    def forward(self, x):
        params, buffers = torch.func.stack_module_state(list(self.heads))
        return torch.vmap(lambda p, b: torch.func.functional_call(self.heads[0], (p, b), (x,)))(params, buffers).amax(0)


@attack(X4, **seq(X4))
class A6510SpectralOfEval(nn.Module):
    """spectral_norm of both kinds, weight_norm and an orthogonal one, in one head."""

    def __init__(self):
        super().__init__()
        p = nn.utils.parametrizations
        self.a, self.b = p.spectral_norm(nn.Linear(4, 4)), p.weight_norm(nn.Linear(4, 4))
        self.c = p.orthogonal(nn.Linear(4, 4))

    def forward(self, x):
        with nn.utils.parametrize.cached():
            return self.c(self.b(self.a(x))) + F.linear(x, self.c.weight)


@forward(X, **seq(X, own=BIG))
def A6511SavedThenRestored(self, x):
    """The input is changed in place and put back by a context manager."""
    y = x * 1

    @contextlib.contextmanager
    def muted(t):
        before = t.clone()
        t.clamp_(max=6e4)
        yield t
        t.copy_(before)

    with muted(y) as t:
        s = t.sum(1)
    return s, y


@forward(X, **seq(X, own=BIG), refused="the exported model differs")
def A6512ThroughNumpysView(self, x):
    """A view of NumPy of a tensor that is computed, clamped by NumPy."""
    y = x.detach() * 2
    a = y.numpy()
    np.minimum(a, 6e4, out=a)
    return y
