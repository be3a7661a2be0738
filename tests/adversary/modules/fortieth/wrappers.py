# ruff: noqa: E501, B009, PT018, UP033, UP045 - attacks are written as users write them
"""State, hooks, parametrizations, autograd functions, scripts and traces, caches, outputs, NumPy, seeds, experts, quantisers."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
from typing import NamedTuple, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"
AT = tuple(values_at(X4, N=1, T=t) for t in (1, 2, 8, 23, 24))


@attack(X4, dims=ROWS, kinds=FEW)
class A4242ReversibleNorm(nn.Module):
    """RevIN: statistics of this call are kept on the module and taken off again behind the layer."""
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.tensor([1.0, 2, 0.5, 1])), nn.Parameter(torch.zeros(4))
        self.lin = nn.Linear(4, 4)
    def norm(self, x):
        self.mean = x.mean(1, keepdim=True).detach()
        self.stdev = torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5).detach()
        return (x - self.mean) / self.stdev * self.w + self.b
    def denorm(self, x):
        return (x - self.b) / (self.w + 1e-10) * self.stdev + self.mean
    def forward(self, x):
        y = self.norm(x)
        return self.denorm(y + self.lin(y)), self.mean[:, 0]
@attack("x:float32[N,4,T]", dims="N=2:2:4 T=2:9:24", kinds=FEW, refused="the module cannot be exported")
class A4243NormsThatTrain(nn.Module):
    """A batch norm whose forward switches to training, one without running statistics, an instance norm with them, momentum None."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.BatchNorm1d(4, momentum=None), nn.BatchNorm1d(4, track_running_stats=False)
        self.c = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
    def forward(self, x):
        self.a.train()
        return self.a(x), self.b(x), self.c(x), F.batch_norm(x, None, None, training=True, eps=1e-3)
@attack(X4, dims=ROWS, kinds=FINITE[:4])
class A4244NormsOfWeights(nn.Module):
    """Spectral norms of both kinds, a weight norm along another axis, a pruned layer, an orthogonal one, a skew one by the matrix exponential."""
    def __init__(self):
        super().__init__()
        self.a = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.b = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))
        self.c = nn.utils.weight_norm(nn.Linear(4, 4), dim=1)
        self.d = nn.Linear(4, 4)
        prune.l1_unstructured(self.d, "weight", 0.5)
        self.e = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
    def forward(self, x):
        y = self.c(F.relu(self.b(self.a(x))))
        return self.d(y), self.e(x), (self.e(x).norm(dim=-1) - x.norm(dim=-1)).abs() < 0.1
class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).mT
@attack(X4, dims=ROWS, kinds=FINITE[:4], refused="the module cannot be exported")
class A4245ParametrizedInACache(nn.Module):
    """A symmetric weight in `parametrize.cached`, the exponential of it, its determinant, weights that a call lays over others."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(self.lin, "weight", Symmetric())
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        with nn.utils.parametrize.cached():
            y = self.lin(self.lin(x))
            z = x @ torch.linalg.matrix_exp(self.lin.weight * 0.1)
        fast = {n: p - 0.1 * p.sign() for n, p in self.head.named_parameters()}
        return y, z, torch.func.functional_call(self.head, fast, (y,))
class RoundWithStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step, bits=8):
        q = torch.round(x / step).clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        ctx.save_for_backward(x, step)
        ctx.mark_non_differentiable(q)
        return q * step, q
    @staticmethod
    def backward(ctx, g, _):
        return g, None, None
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        return g
@attack(X4, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([0.125, 0.375, -0.125, 40], np.float32).reshape(1, 1, 4)},))
class A4246LearnedSteps(nn.Module):
    """LSQ by autograd functions: a straight-through rounding with whole numbers beside it, a memory-saving swish, detach tricks."""
    def __init__(self):
        super().__init__()
        self.step, self.lin = nn.Parameter(torch.tensor(0.25)), nn.Linear(4, 4)
    def forward(self, x):
        y, q = RoundWithStep.apply(x, self.step, 4)
        w = self.lin.weight / 0.0625
        w = (w + (w.round() - w).detach()) * 0.0625
        return Swish.apply(F.linear(y, w)), q.to(torch.int8), y + (x - y).detach() * 0
@functools.lru_cache(maxsize=None)
def sinusoid(t, d, dtype):
    p = torch.arange(t, dtype=torch.float32)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
    pe = torch.zeros(t, d, dtype=dtype)
    pe[:, 0::2], pe[:, 1::2] = p.sin(), p.cos()
    return pe
@attack(X4, dims=ROWS, kinds=FEW, feeds=AT)
class A4248TablesThatGrow(nn.Module):
    """Places by a cached function, a buffer that grows with the longest input so far, a dictionary that forgets all but two shapes."""
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", sinusoid(4, 4, torch.float32).clone(), persistent=False)
        self.memo = collections.OrderedDict()
    def forward(self, x):
        t = x.shape[1]
        if t > self.pe.shape[0]:
            self.pe = sinusoid(2 * t, 4, x.dtype)
        if t not in self.memo:
            self.memo[t] = torch.ones(t, t).tril() / torch.arange(1, t + 1)[:, None]
            if len(self.memo) > 2:
                self.memo.popitem(last=False)
        return x + self.pe[:t], self.memo[t] @ x, x * 2**0.5 + sinusoid(t, 4, x.dtype)
class Result(NamedTuple):
    logits: torch.Tensor
    hidden: Optional[torch.Tensor]
    extra: dict
@dataclasses.dataclass
class Output:
    last: torch.Tensor
    results: Result
    loss: Optional[torch.Tensor] = None
    def to_tuple(self):
        return tuple(v for v in (self.last, self.results, self.loss) if v is not None)
@forward(X4, dims=ROWS, kinds=FEW, feeds=AT)
def A4249NestedOutputs(self, x):
    """A dataclass with a NamedTuple with a dictionary, None here and there, one tensor twice, the input itself, a constant, nothing at all in one."""
    y = x.softmax(-1)
    extra = collections.OrderedDict(b=y, a=[x, (y.argmax(-1), None)], c=torch.tensor([1, 2]), d=y[:, :0])
    return Output(y, Result(x + 1, None, extra))
@attack(X4, dims=ROWS, kinds=FEW, feeds=AT)
class A4250HooksInARow(nn.Module):
    """A hook that changes keyword arguments, one that makes a tuple of an output, one on a shared layer with a closure, one that only looks."""
    def __init__(self):
        super().__init__()
        self.lin, self.seen = nn.Linear(4, 4), []
        self.block = Scaled()
        self.block.register_forward_pre_hook(lambda m, a, k: (a, {**k, "by": k["by"] * 2}), with_kwargs=True)
        self.block.register_forward_hook(lambda m, a, out: (out, out.amax(1)))
        self.lin.register_forward_hook(lambda m, a, out: out + a[0] if a[0].shape[1] > 2 else None)
        self.register_forward_hook(lambda m, a, out: (*out, out[0].sum()))
    def forward(self, x):
        y, top = self.block(self.lin(x), by=1.5)
        return self.lin(y), top
class Scaled(nn.Module):
    def forward(self, x, by=1.0):
        return x * by
@attack(X4, dims=ROWS, kinds=FEW, refused="the module itself raises TypeError")
class A4251HookThatLeaves(nn.Module):
    """A hook that sets up a scale from what comes at the first call and removes itself."""
    def __init__(self):
        super().__init__()
        self.lin, self.scale = nn.Linear(4, 4), None
        self.handle = self.lin.register_forward_hook(self.first)
    def first(self, m, a, out):
        self.scale = out.abs().amax().detach()
        self.handle.remove()
    def forward(self, x):
        return self.lin(x) / self.scale
@forward(X4, dims=ROWS, kinds=FEW, feeds=AT, refused="the module cannot be exported")
def A4252NoiseOfASeed(self, x):
    """Noise that a generator with a seed gives, always the same for a size, in a fork of the state."""
    g = torch.Generator().manual_seed(7)
    noise = torch.randn(x.shape[1], generator=g)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        fixed = torch.rand(4)
    return x + fixed, x.mT + noise
@forward(XT, dims=ROWS, kinds=FEW, feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 2, 3, 23, 24)), refused="the exported model differs from the module")
def A4253NumpyOfSizes(self, x):
    """NumPy for what sizes give: a window, an interpolation of a curve, a cumulative product of a shape, rounding."""
    t = x.shape[1]
    w = torch.from_numpy(np.hanning(t).astype(np.float32))
    curve = torch.as_tensor(np.interp(np.linspace(0, 1, t), [0, 0.3, 1], [0, 1, 0.5]), dtype=x.dtype)
    k = int(np.round(t * 0.5)) + int(np.prod(x.shape)) % 3
    return x * w, x * curve, x.roll(k, 1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 2, 3, 12, 23, 24)), refused="the path through the module depends on the size")
def A4254TriesAView(self, x):
    """A view in rows of four, or where that fails in rows of three, or padded: RuntimeError decides by the size."""
    n = x.shape[0]
    try:
        y = x.view(n, -1, 4)
    except RuntimeError:
        try:
            y = x.view(n, -1, 3).amax(2, keepdim=True).expand(-1, -1, 4)
        except RuntimeError:
            y = F.pad(x, (0, 4 - x.shape[1] % 4)).view(n, -1, 4)
    with contextlib.suppress(AssertionError):
        assert x.shape[1] > 5
        y = y + 1
    return y.sum(1)
@attack("ids:int64[N,T]=0:9", dims=ROWS)
class A4255ChecksAndNames(nn.Module):
    """Checks by assert and torch._check, a warning, a print, an activation by its name, a match, isinstance, a stack of contexts."""
    def __init__(self):
        super().__init__()
        self.emb, self.act = nn.Embedding(10, 4), nn.GELU()
        self.kind = "max"
    def forward(self, ids, mask=None, *, scale: float = 2.0):
        assert ids.dim() == 2 and ids.dtype == torch.int64, f"ids are {ids.dtype} of {tuple(ids.shape)}"
        torch._check(ids.shape[1] >= 1, lambda: "empty")
        if ids.shape[1] > 1000:
            raise ValueError(f"{ids.shape[1]} is too long")
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            x = getattr(torch, "tanh")(self.emb(ids)) if mask is None else mask
        if isinstance(self.act, nn.ReLU) or not callable(self.act):
            x = -x
        x = self.act(x) * scale
        match self.kind, x.ndim:
            case "max", 3:
                x = x.amax(1)
            case _:
                x = x.mean(1)
        return x, ids.ne(0).all(1)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=AT)
class A4256MixtureOfExperts(nn.Module):
    """Mixtral: two of three experts for each token, the tokens of each by torch.where, added up by index_add_; balance of the load."""
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 4)) for _ in range(3)])
    def forward(self, x):
        n, t, d = x.shape
        h = x.view(-1, d)
        logits = self.gate(h)
        w, sel = torch.topk(F.softmax(logits, 1, dtype=torch.float), 2, -1)
        w /= w.sum(-1, keepdim=True)
        out = torch.zeros((n * t, d), dtype=h.dtype)
        mask = F.one_hot(sel, 3).permute(2, 1, 0)
        for e, expert in enumerate(self.experts):
            idx, top = torch.where(mask[e])
            out.index_add_(0, top, (expert(h[None, top].reshape(-1, d)) * w[top, idx, None]).to(h.dtype))
        return out.view(n, t, d), mask.float().mean((1, 2)) * 3
@attack(X4, dims=ROWS, kinds=FEW, refused="returns a different 'output_1' when run again")
class A4257TeacherMovesOn(nn.Module):
    """A teacher whose weights follow the student's at each call."""
    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(4, 4), nn.Linear(4, 4)
    @torch.no_grad()
    def forward(self, x):
        for s, t in zip(self.student.parameters(), self.teacher.parameters(), strict=True):
            t.mul_(0.9).add_(s, alpha=0.1)
        return self.student(x), self.teacher(x)
@attack(X4, dims=ROWS, kinds=FEW, feeds=AT)
class A4258FakeQuantisers(nn.Module):
    """torch.ao's fake quantisers with their observers off, per channel, a real quantisation and back, a dynamic one of a tensor."""
    def __init__(self):
        super().__init__()
        self.fq = torch.ao.quantization.FakeQuantize(torch.ao.quantization.MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
        self.fq(torch.linspace(-1, 3, 100).view(10, 10))
        self.fq.disable_observer()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("s", torch.tensor([0.1, 0.25, 0.5, 0.01]))
        self.register_buffer("z", torch.tensor([0, 3, -2, 0], dtype=torch.int32))
    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(self.lin.weight, self.s, self.z, 0, -128, 127)
        y = torch.quantize_per_tensor(x, 0.25, 3, torch.quint8).dequantize()
        lo, hi = x.amin().clamp(max=0), x.amax().clamp(min=0)
        scale = ((hi - lo) / 255).clamp(min=1e-8)
        zp = (-lo / scale).round().clamp(0, 255)
        return self.fq(x), F.linear(x, w), y, ((x / scale + zp).round().clamp(0, 255) - zp) * scale
@attack(X4, dims=ROWS, kinds=FEW, refused="returns a different 'output' when run again")
class A4259StreamsItsState(nn.Module):
    """A GRU that goes on from where the last call ended, reset by a method."""
    def __init__(self):
        super().__init__()
        self.gru, self.h = nn.GRU(4, 4, batch_first=True), None
    def reset(self):
        self.h = None
    def forward(self, x):
        if self.h is not None and self.h.shape[1] != x.shape[0]:
            self.reset()
        y, self.h = self.gru(x, self.h)
        return y
