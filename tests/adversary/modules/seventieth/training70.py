"""What training and quantising leave in a module: fake quantisers, EMA, norms by parametrisation, hooks, shared and lazy weights."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,6]"
D = "N=1:2:5"
C = "x:float32[N,3,T]"
DC = "N=1:2:3 T=3:5:9"


def seeded(cls):
    init = cls.__init__

    @functools.wraps(init)
    def wrapped(self, *a, **k):
        torch.manual_seed(3)
        init(self, *a, **k)

    cls.__init__ = wrapped
    return cls


class Ste(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, g):
        return g


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8211LsqFakeQuant(nn.Module):
    """LSQ: weights and inputs through x/s, clamp, round by a straight-through (r - y).detach() + y, grad_scale by detach, and a sign by an autograd.Function."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(6, 4)
        self.s = nn.Parameter(torch.tensor(0.125))
        self.sw = nn.Parameter(torch.rand(4, 1) * 0.05 + 0.02)

    def q(self, x, s, lo, hi):
        g = 1.0 / (x.shape[-1] * hi) ** 0.5
        s = (s - s * g).detach() + s * g
        y = (x / s).clamp(lo, hi)
        return ((y.round() - y).detach() + y) * s

    def forward(self, x):
        y = F.linear(self.q(x, self.s, 0, 15), self.q(self.l.weight, self.sw, -8, 7), self.l.bias)
        return y, Ste.apply(y)


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8212TorchFakeQuants(nn.Module):
    """torch.fake_quantize per tensor and per channel, quantize_per_tensor().dequantize(), an observer's FakeQuantize frozen by eval."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 6))
        self.register_buffer("s", torch.tensor([0.05, 0.1, 0.02, 0.3]))
        self.register_buffer("z", torch.tensor([0, 2, -3, 1], dtype=torch.int32))

    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(self.w, self.s, self.z, 0, -128, 127)
        y = torch.fake_quantize_per_tensor_affine(x, 0.125, 3, 0, 255)
        return F.linear(y, w)


@attack(C, dims=DC, kinds=FINITE)
@seeded
class A8213NormsOfWeights(nn.Module):
    """weight_norm of the new and the old form, spectral_norm of both, orthogonal, a parametrisation that is symmetric, one cached, all in eval."""

    def __init__(self):
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Conv1d(3, 4, 3, padding=1))
        self.b = nn.utils.weight_norm(nn.Conv1d(4, 4, 1), dim=None)
        self.c = parametrizations.spectral_norm(nn.Linear(4, 4))
        self.d = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.e = nn.Linear(4, 4, bias=False)

        class Symmetric(nn.Module):
            def forward(self, w):
                return w.triu() + w.triu(1).mT

        parametrize.register_parametrization(self.e, "weight", Symmetric())

    def forward(self, x):
        y = self.b(torch.relu(self.a(x))).mT
        with parametrize.cached():
            return self.e(self.d(self.c(y))) + self.e(y)


@attack(C, dims=DC, kinds=FINITE)
@seeded
class A8214BatchNormsOfAllKinds(nn.Module):
    """BatchNorm with momentum None after ten batches, without affine, without running statistics (batch statistics in eval), InstanceNorm that tracks, a frozen one by its own formula."""

    def __init__(self):
        super().__init__()
        self.a = nn.BatchNorm1d(3, momentum=None)
        self.b = nn.BatchNorm1d(3, affine=False)
        self.c = nn.BatchNorm1d(3, track_running_stats=False)
        self.d = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
        self.train()
        for i in range(10):
            x = torch.randn(4, 3, 7) * (i + 1)
            self.d(self.b(self.a(x)))

    def forward(self, x):
        y = self.d(self.b(self.a(x)))
        rv, rm = self.a.running_var, self.a.running_mean
        z = (x - rm[:, None]) * (rv[:, None] + self.a.eps).rsqrt()
        return y, self.c(x + 0.1 * torch.arange(x.shape[2], device=x.device)), z


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8215DropoutLeftInTrain(nn.Module):
    """Layers that call self.train(False) of a child in forward, F.dropout with training=self.training, a functional dropout at p=0, alpha dropout module in eval."""

    def __init__(self):
        super().__init__()
        self.l, self.d, self.a = nn.Linear(6, 6), nn.Dropout(0.5), nn.AlphaDropout(0.3)

    def forward(self, x):
        self.d.eval()
        y = F.dropout(self.l(x), 0.4, self.training)
        return self.a(self.d(y)) + F.dropout(x, 0.0, True)


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8216EmaShadow(nn.Module):
    """An EMA copy by deepcopy, swapped in for eval by a context manager that restores, its decay by a count in a buffer that only training moves."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
        self.ema = copy.deepcopy(self.net).requires_grad_(False)
        with torch.no_grad():
            for p in self.ema.parameters():
                p.mul_(0.5)
        self.register_buffer("n", torch.tensor(0))

    def forward(self, x):
        if self.training:
            self.n += 1
            return self.net(x)
        return self.ema(x), self.net(x) - self.ema(x)


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8217HooksOfEveryKind(nn.Module):
    """A pre-hook that scales, a forward hook that replaces the output, one with kwargs, always_call, a hook that keeps activations for forward to read, one removed, a backward hook, a state-dict hook."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
        self.keep = {}
        self.a.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
        self.a.register_forward_hook(lambda m, a, o: o + 1)
        self.a.register_forward_hook(lambda m, a, o: self.keep.__setitem__("a", o))
        self.b.register_forward_pre_hook(lambda m, a, k: ((a[0] + k.pop("bias", 0),), k), with_kwargs=True)
        self.b.register_forward_hook(lambda m, a, k, o: torch.relu(o), with_kwargs=True, always_call=True)
        self.b.register_forward_hook(lambda m, a, o: o * 100).remove()
        self.b.register_full_backward_hook(lambda m, gi, go: None)
        self._register_load_state_dict_pre_hook(lambda *a: None)
        self.register_forward_hook(lambda m, a, o: {"y": o, "z": o.sum(1)})

    def forward(self, x):
        y = self.b(self.a(x), bias=3)
        return y + self.keep.pop("a")


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8218SharedEverywhere(nn.Module):
    """Tied weights transposed, one module at two names, a parameter that is a view of a buffer, a deepcopied pair that shares inside, a weight replaced by a slice of another."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = self.a
        self.c = copy.deepcopy(nn.ModuleList([self.a, self.b]))
        self.d = nn.Linear(6, 6, bias=False)
        self.d.weight = nn.Parameter(self.a.weight.data.T)
        self.register_buffer("flat", torch.randn(12))
        self.v = self.flat.view(2, 6)
        self.flat[:6] = 0.5

    def forward(self, x):
        y = self.b(torch.tanh(self.a(x)))
        y = self.c[1](self.c[0](y)) @ self.a.weight
        return self.d(y), F.linear(x, self.v), F.linear(x, self.flat[3:9][None])


@attack(X, dims=D, kinds=FINITE)
def A8219Compiled():
    """torch.compile around a whole net, whose inner part was compiled too, with an attribute read through the wrapper."""
    torch.manual_seed(4)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.compile(nn.Sequential(nn.Linear(6, 6), nn.GELU()), backend="eager")
            self.scale = 3.0

        def forward(self, x):
            return self.inner(x) * self.scale

    return torch.compile(Net(), backend="eager")


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8220FunctionalCall(nn.Module):
    """A hypernetwork: weights made from the input's mean, applied by torch.func.functional_call to a net that holds others, and stacked ensembles by vmap."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)
        self.gen = nn.Linear(6, 18)
        self.many = nn.ModuleList(nn.Linear(6, 2) for _ in range(3))

    def forward(self, x):
        w = self.gen(x.mean(0)).view(3, 6) * 0.1
        y = torch.func.functional_call(self.net, {"weight": self.net.weight + w}, (x,))
        params, buffers = torch.func.stack_module_state(list(self.many))
        base = self.many[0]
        z = torch.func.vmap(lambda p, b, v: torch.func.functional_call(base, (p, b), (v,)), in_dims=(0, 0, None))(
            params, buffers, x
        )
        return y, z


class Scaled(torch.Tensor):
    """A weight that is known as its values times a scale."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.linear:
            x, w, *rest = args
            with torch._C.DisableTorchFunctionSubclass():
                return F.linear(x, w.as_subclass(torch.Tensor) * 0.5, *rest)
        return super().__torch_function__(func, types, args, kwargs or {})


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8221SubclassWeight(nn.Module):
    """A weight whose __torch_function__ halves it in F.linear alone."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(6, 3)
        self.l.weight = nn.Parameter(self.l.weight.detach().as_subclass(Scaled), requires_grad=False)

    def forward(self, x):
        return F.linear(x, self.l.weight, self.l.bias)


@attack(X, dims=D, kinds=FINITE)
@seeded
class A8222LazyAndMeta(nn.Module):
    """Lazy layers that were run once, a net made on meta and filled by to_empty and load with assign, an uninitialised buffer set to None."""

    def __init__(self):
        super().__init__()
        self.a = nn.LazyLinear(4)
        self.a(torch.zeros(1, 6))
        with torch.device("meta"):
            self.b = nn.Linear(4, 3)
        self.b.load_state_dict({"weight": torch.randn(3, 4), "bias": torch.ones(3)}, assign=True)
        self.register_buffer("extra", None)

    def forward(self, x):
        y = self.b(self.a(x))
        return y if self.extra is None else y + self.extra


@attack(X, dims=D, refused="the lazy layers of tests.adversary.modules.seventieth.traini")
class A8223StillLazy(nn.Module):
    """A lazy layer that nobody has run: its sizes come with the first call."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.a = nn.LazyLinear(4)

    def forward(self, x):
        return torch.relu(self.a(x))
