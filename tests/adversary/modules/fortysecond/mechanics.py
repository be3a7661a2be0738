# ruff: noqa: E501, E731, PT018, RUF005 - attacks are written as users write them
"""torch's own mechanics within networks: functional calls, vmap, gradients, checkpoints, parametrizations, hooks, compiled parts, subclasses of containers."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = X4, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4420FunctionalCall(nn.Module):
    """torch.func.functional_call with weights that the input makes, a stacked ensemble by vmap over weights, a tied weight in both."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
        self.register_buffer("many", torch.randn(3, 4, 4))
    def forward(self, x):
        p = dict(self.net.named_parameters())
        p["0.weight"] = p["0.weight"] + torch.einsum("nti,ntj->ij", x, x) / x.shape[1] * 0.01
        y = torch.func.functional_call(self.net, p, (x,))
        z = torch.func.vmap(lambda w: torch.func.functional_call(self.net, {"0.weight": w}, (x,)))(self.many)
        return y, z.mean(0), z.std(0)
@forward(X4, "y:float32[N,T,4]", dims=ROWS, kinds=FINITE[:4], feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "y": np.ones((1, 1, 4), np.float32)},), refused="the module cannot be exported")
def A4421NestedVmap(self, x, y):
    """vmap of vmap with in_dims and out_dims, a shared operand, a where within, a flip and a cumulative sum of each example."""
    def pair(a, b):
        return torch.where(a @ b > 0, (a - b).abs().sum(), a.cumsum(0)[-1] - b.flip(0)[0])
    d = torch.vmap(torch.vmap(pair, (None, 0)), (0, None))
    each = torch.vmap(d, out_dims=2)(x, y)
    mean = torch.vmap(lambda v: v - v.mean(0), in_dims=1, out_dims=1)(x)
    return each, mean, torch.vmap(torch.dot)(x[:, 0], y[:, -1]), torch.vmap(torch.diag)(x[:, 0])
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20), refused="cannot be exported")
class A4422ForcesOfAnEnergy(nn.Module):
    """Forces are the gradient of an energy, by torch.func.grad under vmap; a Jacobian by jacrev, a directional derivative by jvp."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.Linear(6, 1))
    def forward(self, x):
        e = lambda v: self.net(v).sum()
        f = -torch.func.grad(e)(x)
        j = torch.func.vmap(torch.func.jacrev(lambda v: torch.tanh(self.net[0](v))))(x[:, 0])
        _, t = torch.func.jvp(e, (x,), (torch.ones_like(x),))
        return self.net(x), f, j, t
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20), refused="forward takes a derivative")
class A4423ScoreByAutograd(nn.Module):
    """A score by torch.autograd.grad with enable_grad within a forward: one step of Langevin without noise, a clip of the gradient by its norm."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
    def forward(self, x):
        with torch.enable_grad():
            v = x.detach().requires_grad_(True)
            g = torch.autograd.grad(self.net(v).sum(), v)[0]
        n = g.flatten(1).norm(dim=1).view(-1, 1, 1)
        return x - 0.1 * g * (1.0 / n.clamp(min=1.0))
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.levels = levels
        y = torch.round(x * levels) / levels
        ctx.mark_non_differentiable(y)
        return y
    @staticmethod
    def backward(ctx, g):
        return g, None
class TopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        v, i = x.topk(k, -1)
        ctx.save_for_backward(i)
        return torch.zeros_like(x).scatter(-1, i, v), i
    @staticmethod
    def backward(ctx, g, _):
        return g, None
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(x, lo):
        y = x.clone()
        y[y < lo] = lo
        return y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.lo = inputs[1]
    @staticmethod
    def backward(ctx, g):
        return g, None
@forward(X4, dims=ROWS, kinds=FEW, feeds=(*lengths(1, 20), halves(1, 9, 4)))
def A4424FunctionsOfAutograd(self, x):
    """Custom functions of both styles: rounding straight through, top-k by scatter, a clip that writes in place, levels by the size."""
    y = Round.apply(x, 2.0 if x.shape[1] > 8 else 4.0)
    z, i = TopK.apply(y, 2)
    return y, z, i, Clip.apply(x, -0.75)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4425Checkpointed(nn.Module):
    """Blocks under checkpoint with a list of results and keyword arguments, checkpoint_sequential, a counter in a closure that a recomputation would move."""
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(4))
        self.norm = nn.LayerNorm(4)
    def forward(self, x):
        seen = []
        def run(block, v, *, scale):
            seen.append(len(seen))
            return v + block(v) * scale * (1 + seen[-1])
        for k, b in enumerate(self.blocks):
            x = checkpoint(run, b, x, scale=0.5**k, use_reentrant=False) if k < 2 else run(b, x, scale=0.25)
        y = checkpoint_sequential(list(self.blocks), 2, x, use_reentrant=False)
        return self.norm(y), x * len(seen)
class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).mT
    def right_inverse(self, w):
        return w.triu()
class Positive(nn.Module):
    def forward(self, w):
        return F.softplus(w) + 0.1
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4426Parametrizations(nn.Module):
    """A symmetric and then positive weight, an orthogonal one, a spectral norm of a convolution, weight norm old and new, parametrize.cached around two calls."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Conv1d(4, 4, 3, padding=1)
        parametrize.register_parametrization(self.a, "weight", Symmetric())
        parametrize.register_parametrization(self.a, "weight", Positive())
        nn.utils.parametrizations.orthogonal(self.b)
        nn.utils.parametrizations.spectral_norm(self.c)
        self.d = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4), dim=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.e = nn.utils.weight_norm(nn.Conv1d(4, 4, 1), dim=None)
            self.f = nn.utils.spectral_norm(nn.Linear(4, 4))
    def forward(self, x):
        with parametrize.cached():
            y = self.a(self.b(x)) + self.a(x)
        return self.c(y.mT).mT, self.d(x), self.e(x.mT), self.f(x)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4427HooksForOneCall(nn.Module):
    """Features are taken by hooks that are put on within forward and removed behind it; a pre-hook with keyword arguments, a hook that changes the output, order by prepend."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
        self.net[2].register_forward_hook(lambda m, a, out: out * 2)
        self.net[2].register_forward_hook(lambda m, a, out: out + 1, prepend=True)
        self.net[0].register_forward_pre_hook(lambda m, a, k: ((a[0] - a[0].mean(-1, keepdim=True),), k), with_kwargs=True)
    def forward(self, x):
        feats = {}
        handles = [m.register_forward_hook(lambda m, a, o, k=k: feats.__setitem__(k, o)) for k, m in self.net.named_children()]
        try:
            y = self.net(x)
        finally:
            for h in handles:
                h.remove()
        z = self.net(y)
        return z, torch.cat([feats[k] for k in sorted(feats, reverse=True)], -1)
@torch.compile(backend="eager")
def glu(x, w, k=2):
    a, b = (x @ w).chunk(k, -1)
    return a * torch.sigmoid(b)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4428CompiledParts(nn.Module):
    """A decorated function, a compiled child, torch.compiler.disable on a helper, is_compiling asked, a branch on the size within."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 8))
        self.child = torch.compile(nn.Linear(4, 4), backend="eager")
    @torch.compiler.disable
    def scale(self, x):
        return x * (2 if x.shape[1] > 10 else 3)
    def forward(self, x):
        y = glu(x, self.w)
        if torch.compiler.is_compiling():
            y = y.contiguous()
        return self.child(y), self.scale(y)
class Chain(nn.Sequential):
    """Called from the back, sliced, by names; keeps each second result."""
    def forward(self, x, upto=-1, keep=2):
        kept = []
        for k, m in enumerate(reversed(self[:upto])):
            x = m(x)
            if not k % keep:
                kept.append(x)
        return x, kept + [self[upto](x)]
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 20))
class A4429SequentialWithIndices(nn.Module):
    """A Sequential that runs backwards, is sliced from the end, extended, joined by +, repeated by *, whose items are replaced by index before use."""
    def __init__(self):
        super().__init__()
        self.chain = Chain(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
        self.chain[1] = nn.Sigmoid()
        self.more = (nn.Sequential(nn.Linear(4, 4)) * 2) + nn.Sequential(nn.ELU())
        self.more.insert(1, nn.LayerNorm(4))
        self.more.pop(0)
        self.more.append(self.chain[0])
    def forward(self, x):
        y, kept = self.chain(x)
        z = self.more[-1](self.more[:2](x)) + self.more(y)
        return z, torch.cat(kept, -1), self.chain[-3:](y)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 7, 8, 9, 16, 17, 20))
class A4430RoutedByName(nn.Module):
    """A ModuleDict whose key is made of the size, a ParameterDict, a ParameterList by a remainder of the batch, a registry of the class."""
    registry: ClassVar[dict] = {"small": torch.tanh, "large": torch.relu}
    def __init__(self):
        super().__init__()
        self.d = nn.ModuleDict({"small": nn.Linear(4, 4), "large": nn.Conv1d(4, 4, 1)})
        self.p = nn.ParameterDict({"small": nn.Parameter(torch.ones(4)), "large": nn.Parameter(-torch.ones(4))})
        self.l = nn.ParameterList(nn.Parameter(torch.full((4,), float(k))) for k in range(3))
    def forward(self, x):
        key = "small" if x.shape[1] <= 8 else "large"
        y = self.d[key](x) if key == "small" else self.d[key](x.mT).mT
        return self.registry[key](y) * self.p[key] + self.l[x.shape[0] % 3]
@attack(X4, dims=ROWS, kinds=FINITE[:3], feeds=lengths(1, 20), refused="the exported model differs from the module")
class A4431ContextsWithin(nn.Module):
    """autocast to bfloat16 around a linear and off within, a decorator no_grad, inference_mode, a context manager of its own that scales, nullcontext by a flag."""
    def __init__(self):
        super().__init__()
        self.a, self.gain, self.half = nn.Linear(4, 4), 1.0, False
    @contextlib.contextmanager
    def louder(self, k):
        old, self.gain = self.gain, self.gain * k
        try:
            yield self
        finally:
            self.gain = old
    @torch.no_grad()
    def loud(self, x):
        return x * self.gain
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.a(x)
            with torch.autocast("cpu", enabled=False):
                z = self.a(x)
        with self.louder(3.0), self.louder(2.0), contextlib.nullcontext() if not self.half else torch.autocast("cpu"):
            w = self.loud(z)
        return y.float(), z, w, self.loud(x), y.dtype == torch.bfloat16 and w
class Boxes(torch.Tensor):
    @property
    def area(self):
        return (self[..., 2] - self[..., 0]).clamp(min=0) * (self[..., 3] - self[..., 1]).clamp(min=0)
@forward("x:float32[N,4]", dims="N=1:3:6", kinds=FEW)
def A4432SubclassOfTensor(self, x):
    """Boxes as a subclass of Tensor with a property, an overlap by its broadcasts, back to a plain tensor."""
    b = x.as_subclass(Boxes)
    lt, rb = torch.maximum(b[:, None, :2], b[None, :, :2]), torch.minimum(b[:, None, 2:], b[None, :, 2:])
    i = (rb - lt).clamp(min=0).prod(-1)
    iou = i / (b.area[:, None] + b.area - i).clamp(min=1e-6)
    return iou.as_subclass(torch.Tensor), b.area.as_subclass(torch.Tensor)
class Quaternion:
    """With operators, made from lists, comparable; its length is kept when it is first asked for."""
    def __init__(self, v):
        self.v = v
    def __mul__(self, o):
        if not isinstance(o, Quaternion):
            return Quaternion(self.v * o)
        a, b = self.v.unbind(-1), o.v.unbind(-1)
        return Quaternion(torch.stack([a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2], a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]], -1))
    __rmul__ = __mul__
    def __invert__(self):
        return Quaternion(self.v * torch.tensor([1.0, -1, -1, -1]))
    def __matmul__(self, p):
        return (self * Quaternion(F.pad(p, (1, 0))) * ~self).v[..., 1:]
    @functools.cached_property
    def norm(self):
        return self.v.norm(dim=-1, keepdim=True)
    def unit(self):
        return Quaternion(torch.where(self.norm > 1e-6, self.v / self.norm, torch.tensor([1.0, 0, 0, 0])))
@forward(X4, "p:float32[N,T,3]", dims=ROWS, kinds=FEW)
def A4433QuaternionsWithOperators(self, x, p):
    """Rotations by objects with operators, a guard at zero, slerp by a dot's sign with a linear branch near one, products along the sequence by reduce."""
    q = Quaternion(x).unit()
    r = Quaternion(x.flip(1)).unit()
    dot = (q.v * r.v).sum(-1, keepdim=True)
    b = torch.where(dot < 0, -r.v, r.v)
    dot = dot.abs().clamp(max=1)
    th = torch.acos(dot.clamp(max=0.9995))
    s = torch.where(dot > 0.9995, torch.lerp(q.v, b, 0.25), (torch.sin(0.75 * th) * q.v + torch.sin(0.25 * th) * b) / torch.sin(th))
    return q @ p, (0.5 * q * 2).v, F.normalize(s, dim=-1), (~q).v
@attack(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20))
class A4434DefaultsThatStay(nn.Module):
    """A default list that a call empties again, a default tensor, a dictionary of the class that is copied, globals() read, kwargs popped with a default."""
    config: ClassVar[dict] = {"eps": 1e-5, "steps": (1, 2)}
    def norm(self, x, eps=None, w=torch.tensor([1.0, 2, 3, 4]), acc=[], **k):  # noqa: B006, B008
        acc.append(x)
        total = sum(acc) / len(acc)
        acc.clear()
        return total * w / (x.norm(dim=-1, keepdim=True) + (eps or self.config["eps"])) * k.pop("gain", 0.5)
    def forward(self, x, *, scale=1.0):
        c = {**self.config, "steps": self.config["steps"][::-1]}
        y = self.norm(x, gain=2)
        for s in c["steps"]:
            y = self.norm(y[:, ::s], eps=s) + globals()["math"].pi * s
        return y * scale
@attack(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 20))
class A4435ChecksThatPass(nn.Module):
    """Asserts on sizes and types, torch._assert, torch._check, warnings in branches, a ValueError for what cannot be, print of shapes, isinstance of inputs."""
    def forward(self, x, mask=None):
        assert isinstance(x, torch.Tensor) and x.dtype.is_floating_point, "a tensor"
        torch._check(x.shape[1] >= 1)
        torch._assert(x.shape[-1] == 4, "four")
        if x.ndim != 3 or x.shape[1] > 64:
            raise ValueError(f"{tuple(x.shape)}")
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool)
        if x.shape[1] < 2:
            warnings.warn("short", stacklevel=1)
            return x * math.e
        return (x * mask[..., None]).sum(1, keepdim=True).expand_as(x) / mask.sum(1)[:, None, None]
