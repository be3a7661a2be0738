# ruff: noqa: E501 - attacks are written as users write them
"""State that shows late, what is asked of torch itself, hooks and parametrizations that depend on sizes, memory of inputs and outputs."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.utils import parametrize

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:40"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
SOME = {"dims": ROWS, "kinds": FEW, "feeds": tuple(values_at(X4, N=n, T=t) for n, t in ((1, 1), (3, 1), (1, 2), (1, 37), (3, 40), (2, 16), (1, 17), (1, 33)))}
FLAT = {"dims": ROWS, "kinds": FEW, "feeds": sprinkled(7e4, -7e4, sizes=((1, 1), (1, 2), (3, 1), (3, 3), (1, 40), (2, 16), (1, 17)))}


@attack(X4, **SOME, refused="the module gives another")
class A4761EveryTwelfthCall(nn.Module):
    """A cycle of twelve scales that is a member: eleven are alike."""
    def __init__(self):
        super().__init__()
        self.scales = itertools.cycle([1.0] * 11 + [1.5])
    def forward(self, x):
        return x * next(self.scales)
@attack(X4, **SOME, refused="the module gives another")
class A4762LeastRecentlyUsed(nn.Module):
    """A cache of four sizes by an OrderedDict whose entries are written in place when they are found."""
    def __init__(self):
        super().__init__()
        self.seen = OrderedDict()
    def forward(self, x):
        t = x.shape[1]
        if t in self.seen:
            self.seen.move_to_end(t)
        else:
            self.seen[t] = torch.zeros(t, 1)
            if len(self.seen) > 4:
                self.seen.popitem(last=False)
        table = self.seen[t]
        table += 1
        return x + (table > 30)
@attack(X4, **SOME, refused="forward keeps")
class A4763TableMadeByTheLargest(nn.Module):
    """A table grown by doubling, whose values depend on how large it is."""
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.linspace(0, 1, 8), persistent=False)
    def forward(self, x):
        while len(self.table) < x.shape[1]:
            self.table = torch.linspace(0, 1, 2 * len(self.table))
        return x + self.table[: x.shape[1], None]
@attack(X4, **SOME)
class A4764WeakTables(nn.Module):
    """A WeakValueDictionary by size: who made it last holds it, values by size alone."""
    class Box:
        def __init__(self, n):
            self.bias = torch.arange(n).float().sin()[:, None]
    def __init__(self):
        super().__init__()
        self.boxes, self.last = weakref.WeakValueDictionary(), None
    def forward(self, x):
        box = self.boxes.get(x.shape[1]) or self.Box(x.shape[1])
        self.boxes[x.shape[1]] = self.last = box
        return x + box.bias
@attack(X4, **SOME, refused="forward keeps")
class A4765FoldedOnFirstUse(nn.Module):
    """A norm is folded into its layer at the first call, as deploy() does, with a flag of the class."""
    done = False
    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.norm.running_mean.add_(0.3)
        self.norm.running_var.mul_(2)
    @torch.no_grad()
    def fold(self):
        s = self.norm.weight / (self.norm.running_var + self.norm.eps).sqrt()
        self.lin.weight.mul_(s[:, None])
        self.lin.bias.copy_((self.lin.bias - self.norm.running_mean) * s + self.norm.bias)
        self.done = True
    def forward(self, x):
        if not self.done:
            self.fold()
        return self.lin(x)
@attack(X4, **SOME, refused="the module returns a different")
class A4766HookThatLeavesLater(nn.Module):
    """A hook that takes itself off at its third call and until then adds nothing but to a count."""
    def __init__(self):
        super().__init__()
        self.lin, self.count = nn.Linear(4, 4), []
        self.handle = self.lin.register_forward_hook(self.hook)
    def hook(self, m, i, o):
        self.count.append(tuple(o.shape))
        if len(self.count) == 3:
            self.handle.remove()
        return o * (2 if len(self.count) == 3 else 1)
    def forward(self, x):
        return self.lin(x)
@attack(X4, **SOME)
class A4767HooksWithKeywords(nn.Module):
    """Pre-hooks with keywords, prepended, one that swaps arguments at a size, an always-called one."""
    class Gate(nn.Module):
        def forward(self, x, *, scale=1.0, bias=None):
            return x * scale + (0 if bias is None else bias)
    def __init__(self):
        super().__init__()
        self.gate = self.Gate()
        self.gate.register_forward_pre_hook(lambda m, a, k: (a, {**k, "scale": k.get("scale", 1.0) / a[0].shape[1]}), with_kwargs=True)
        self.gate.register_forward_pre_hook(lambda m, a, k: (a, {"bias": a[0].amax(1, keepdim=True), **k}), with_kwargs=True, prepend=True)
        self.gate.register_forward_hook(lambda m, a, k, o: o + 1 if k["scale"] < 1 / 16 else o, with_kwargs=True, always_call=True)
    def forward(self, x):
        return self.gate(x, scale=2.0), self.gate(x[:, :1])
@attack(X4, **SOME, refused="the module cannot be exported")
class A4768WeightsByLength(nn.Module):
    """A parametrization that reads the length from its owner; weights through functional_call; two states of an ensemble by vmap."""
    class Shrink(nn.Module):
        steps = 1
        def forward(self, w):
            return w / (1 + self.steps / 10)
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", self.Shrink())
        self.many = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
    def forward(self, x):
        self.lin.parametrizations.weight[0].steps = x.shape[1]
        y = self.lin(x)
        p = {k: v * (1 + 1 / x.shape[1]) for k, v in self.many[0].named_parameters()}
        w, b = stack_module_state(list(self.many))
        z = vmap(lambda a, c: functional_call(self.many[0], (a, c), (x,)))(w, b)
        return y, functional_call(self.many[0], p, (x,)), z.mean(0)
@attack(X4, **SOME)
class A4769LazyAtFirst(nn.Module):
    """Lazy layers, a LazyBatchNorm, and a projection registered at the first call from the input's width."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LazyConv1d(4, 3, padding=1), nn.LazyBatchNorm1d()
        self.a(torch.zeros(1, 4, 3))
        self.b.eval()(torch.zeros(1, 4, 3))
        self.c = None
    def forward(self, x):
        y = self.b(self.a(x.mT)).mT
        if self.c is None:
            self.c = nn.Identity() if x.shape[-1] == 4 else nn.Linear(x.shape[-1], 4)
        return self.c(y)
class A44Step(torch.autograd.Function):
    """Rounds by a size in forward; setup_context keeps what it may; dirty in place."""
    @staticmethod
    def forward(x, n):
        return torch.where(x > 0, x.ceil(), x / 2) if n > 16 else x.round()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        return g, None
class A44Dirty(torch.autograd.Function):
    """A clamp in place that is marked."""
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.clamp_(-1e4, 6e4)
    @staticmethod
    def backward(ctx, g):
        return g
@forward(XT, **FLAT)
def A4770FunctionsOfAutograd(self, x):
    """A function of autograd with a way by size, one that writes in place, one nested in the other."""
    y = x * 1
    v = y[:, :16]
    A44Dirty.apply(v)
    return A44Step.apply(x, x.shape[1]), y, A44Step.apply(v, v.shape[1] + 1)
@forward(XT, **FLAT)
def A4771WhatTorchIsAsked(self, x):
    """Grad mode, the default type, inference mode, requires_grad, leafs and versions choose nothing in a run, and something in a trace."""
    a = x * (1.0 if not x.requires_grad else 2.0)
    b = a * 2 if torch.get_default_dtype() == torch.float32 else a
    if x._version > 0 or torch.jit.is_tracing() or torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export():
        b = b + 1
    return b, x.is_leaf * x, a.numel() / a.element_size() * x[:, :1]
@forward(XT, **FLAT)
def A4772InputIsItsOutput(self, x):
    """The input itself, a view of it and a clone; the clone is written, then the input by a masked in-place write behind both."""
    c = x.clone()
    v = x.view(-1)
    c.masked_fill_(c > 6e4, 0.5)
    x.neg_()
    return x, v, c, x.detach()
@forward(XT, "y:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(values_at(XT, "y:float32[N,T]", N=1, T=1), values_at(XT, "y:float32[N,T]", N=3, T=40)))
def A4773SwapOfInputs(self, x, y):
    """Inputs swapped by a tuple, written by copy_, a set_ of a size of one, out= of the other, an iadd by broadcasting."""
    a, b = y, x
    a = a.clone()
    t = a[:, :1].clone()
    a[:, :1].copy_(b[:, -1:])
    b = torch.add(b, t, out=torch.empty_like(b))
    a += t
    torch.maximum(a, b, out=a)
    return a, b, t
@attack(XT, **FLAT)
class A4774DropoutsOfAllKinds(nn.Module):
    """Dropouts that do nothing: p of none in training, eval, feature ones; a bernoulli of ones; a noise of deviation none; rrelu's middle."""
    def __init__(self):
        super().__init__()
        self.d = nn.Dropout(0.0)
        self.r = nn.RReLU(0.1, 0.3)
        self.a = nn.AlphaDropout(0.5)
    def forward(self, x):
        self.d.train()
        y = self.d(x) * torch.bernoulli(torch.ones(1))
        return F.dropout(y, 0.0), self.r(y), self.a(x), F.dropout(x, 0.5, training=self.training), torch.normal(x, torch.zeros_like(x)), F.dropout1d(x, 0.9, False)
@attack(X4, dims="N=1:2:3 T=2:9:40", kinds=FEW, refused="the module cannot be exported")
class A4775NormsInTrainingMode(nn.Module):
    """An instance norm with running numbers in eval, a group norm of one, a batch norm without numbers, one whose momentum is None, training for a call on a copy."""
    def __init__(self):
        super().__init__()
        self.i = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.i.running_mean.add_(0.2)
        self.b = nn.BatchNorm1d(4, track_running_stats=False)
        self.m = nn.BatchNorm1d(4, momentum=None)
    def forward(self, x):
        y = x.mT
        c = copy.deepcopy(self.m).train()
        return self.i(y), self.b(y), c(y), c.running_mean + 0, self.m(y), F.batch_norm(y, None, None, training=True)
@attack(X4, **SOME)
class A4776OnceWarned(nn.Module):
    """A warning that is given once sets a flag; an error of a shape is caught and the sum taken otherwise."""
    def __init__(self):
        super().__init__()
        self.warned = False
    def forward(self, x):
        if x.shape[1] > 32 and not self.warned:
            warnings.warn("long", stacklevel=2)
            self.warned = True
        try:
            y = x + torch.ones(x.shape[0], 17, 4)
        except RuntimeError:
            y = x - 1
        return y * (1 + self.warned) / (1 + self.warned)
A44Pair = namedtuple("A44Pair", "first second", defaults=(None,))
@dataclass
class A44Found:
    """What a head gives."""
    boxes: torch.Tensor
    scores: torch.Tensor | None = None
    extra: tuple = ()
    def __iter__(self):
        return iter((self.boxes, *self.extra))
@attack(X4, **SOME)
class A4777OutputsWithHoles(nn.Module):
    """A dataclass that iterates otherwise than its fields, with a None, a named pair with a default, and the same tensor twice."""
    def forward(self, x):
        y = x.mean(1)
        return A44Found(y, extra=(A44Pair(x), A44Pair(y, second=y.view(-1)))), {"b": y, "a": [x, (y,)]}
class A44Base(nn.Module):
    """A base whose forward calls methods of those below it."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def head(self, x):
        return self.lin(x)
    def forward(self, x, *, twice=False):
        y = self.head(x)
        return self.head(y) if twice else y
class A44Mixin:
    """In between by the order of resolution."""
    def head(self, x):
        return super().head(x).relu() if x.shape[1] % 8 else super().head(x).tanh()
@attack(X4, **SOME)
class A4778OrderOfResolution(A44Mixin, A44Base):
    """A mixin's head by size, a forward that is called twice with a keyword, __call__ with a default."""
    def forward(self, x):
        return super().forward(x), super().forward(x, twice=x.shape[1] > 17)
    def __call__(self, x, extra=0.5):
        a, b = super().__call__(x)
        return a + extra, b
@attack(X4, **SOME, refused="the module returns a different")
class A4779GlobalHooks(nn.Module):
    """A forward that is replaced on the instance by a partial, a wrapped method, and a property that counts in tens."""
    def __init__(self):
        super().__init__()
        self.lin, self.n = nn.Linear(4, 4), 0
        inner = self.lin.forward
        @functools.wraps(inner)
        def wrapped(x, *a):
            self.n += 1
            return inner(x, *a) * (1.0 if self.n < 25 else 1.25)
        self.lin.forward = wrapped
    def forward(self, x):
        return self.lin(x)
