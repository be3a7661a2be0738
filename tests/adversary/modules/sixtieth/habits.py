# ruff: noqa: E501, B905 - attacks are written as users write them
"""Habits of Python and of torch: parametrizations, func, vmap, outputs of all kinds, buffers that forward changes, merged weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations as P
from torch.nn.utils import parametrize

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


class LoRA(nn.Module):
    """A weight with its low-rank part, as a parametrization."""

    def __init__(self, o, i, r=2):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(r, i) * 0.3), nn.Parameter(torch.randn(o, r) * 0.3)

    def forward(self, w):
        return w + 2.0 * self.b @ self.a


@attack("x:float32[N,6]=-2:2", dims="N=1:3:5", kinds=FINITE)
class A7420Parametrized(nn.Module):
    """LoRA over spectral_norm over an orthogonal weight, and a weight shared by two layers of which one is parametrized."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = P.spectral_norm(nn.Linear(6, 6))
        parametrize.register_parametrization(self.a, "weight", LoRA(6, 6))
        self.b = P.orthogonal(nn.Linear(6, 6, bias=False))
        self.c = nn.utils.weight_norm(nn.Linear(6, 4), dim=None)
        self.d = nn.Linear(6, 4)
        self.d.weight = self.c.weight_v
        self.eval()

    def forward(self, x):
        return self.c(self.b(self.a(x)).tanh()) - self.d(x)


@attack("x:float32[N,4,H,W]=-3:3", dims="N=2:2:4 H=4:5:8 W=4:6:9", kinds=FINITE)
class A7421NoRunningStats(nn.Module):
    """BatchNorm without running statistics (over the batch even in eval), InstanceNorm with them, a BatchNorm with momentum None."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a = nn.BatchNorm2d(4, track_running_stats=False)
        self.b = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.b.running_mean.normal_()
        self.b.running_var.uniform_(0.5, 2)
        self.c = nn.BatchNorm2d(4, momentum=None, affine=False)
        self.c.running_mean.normal_()
        nn.init.normal_(self.a.weight)
        self.eval()

    def forward(self, x):
        return self.c(self.b(self.a(x))) + x.mean((2, 3), keepdim=True)


@attack("x:float32[N,T,4]=-2:2", "w:float32[N,4,3]=-1:1", dims="N=1:2:4 T=1:3:5", kinds=FINITE, refused="cannot be exported")
class A7422Vmap(nn.Module):
    """torch.vmap over the batch with a None dim and out_dims, nested over rows; an ensemble by stack_module_state and functional_call."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.m = nn.ModuleList(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)) for _ in range(3))
        self.b = nn.Parameter(torch.randn(3))

    def forward(self, x, w):
        y = torch.vmap(lambda a, m, c: a @ m + c, in_dims=(0, 0, None), out_dims=1)(x, w, self.b)
        z = torch.vmap(torch.vmap(lambda v: v / (v.norm() + 1e-3)))(x)
        params, buffers = torch.func.stack_module_state(list(self.m))
        e = torch.vmap(lambda p, b: torch.func.functional_call(self.m[0], (p, b), (x,)))(params, buffers)
        return y, z, e.var(0, unbiased=False)


@forward("x:float32[N,T,4]=-2:2", "w:float32[N,4,3]=-1:1", dims="N=1:2:4 T=1:3:5", kinds=FINITE, refused="cannot be exported")
def A7431VmapOnce(self, x, w):
    """One vmap over the batch, with a None dim and out_dims of 1."""
    return torch.vmap(lambda a, m, c: a @ m + c, in_dims=(0, 0, None), out_dims=1)(x, w, torch.ones(3))


@forward("x:float32[N,T,4]=-2:2", dims="N=1:2:4 T=1:3:5", kinds=FINITE)
def A7432VmapNested(self, x):
    """vmap in vmap: each row by its norm."""
    return torch.vmap(torch.vmap(lambda v: v / (v.norm() + 1e-3)))(x)


@attack("x:float32[N,4]=-2:2", dims="N=1:2:4", kinds=FINITE)
class A7433Ensemble(nn.Module):
    """An ensemble by stack_module_state and functional_call, as torch's tutorial writes it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.m = nn.ModuleList(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)) for _ in range(3))

    def forward(self, x):
        params, buffers = torch.func.stack_module_state(list(self.m))
        return torch.vmap(lambda p, b: torch.func.functional_call(self.m[0], (p, b), (x,)))(params, buffers).mean(0)


@attack("x:float32[N,3]=-2:2", dims="N=1:2:4", kinds=FINITE, refused="forward takes a derivative")
class A7423Grad(nn.Module):
    """A gradient in forward: a force from an energy by torch.func.grad under vmap, and a Jacobian's trace by jvp."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.f = nn.Sequential(nn.Linear(3, 5), nn.Softplus(), nn.Linear(5, 1))

    def forward(self, x):
        e = self.f(x)
        g = torch.vmap(torch.func.grad(lambda v: self.f(v).squeeze()))(x)
        return e, -g


@dataclass
class Out:
    """As transformers' ModelOutput without its base."""

    logits: torch.Tensor
    hidden: tuple
    extra: dict
    none: None = None


@attack("x:float32[N,4]=-2:2", dims="N=1:2:4", kinds=FINITE)
class A7424DataclassOut(nn.Module):
    """A dataclass with a tuple, a dict and None inside it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.f = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        hs = [x]
        for f in self.f:
            hs.append(f(hs[-1]).relu())
        return Out(hs[-1].sum(-1), tuple(hs), {"max": hs[-1].amax(), "n": [h.mean(0) for h in hs[1:]]})


@attack("x:float32[N,4]=-2:2", dims="N=1:2:4", kinds=FINITE)
class A7425Buffers(nn.Module):
    """Buffers that forward changes and never reads again before it fills them, an attribute set and read within a call, a lru-like dict of positions."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("ema", torch.ones(4))
        self.cache = {}
        self.last = None

    def forward(self, x):
        n = x.shape[0]
        if n not in self.cache:
            self.cache[n] = torch.arange(n)[:, None] * 0.5
        self.last = x * 2 + self.cache[n]
        if self.training:
            self.ema.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.last * self.ema + self.last.mean(0)


@attack("x:float32[N,4]=-2:2", dims="N=1:2:4", kinds=FINITE, refused="a")
class A7426Counts(nn.Module):
    """A counter of calls that is added to the output: every call is another function."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps += 1
        return x * self.steps


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7427Hooks(nn.Module):
    """Forward hooks that change outputs, a pre-hook with kwargs, a method patched on the instance, partial as an activation, checkpointing."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.f, self.g = nn.Linear(6, 6), nn.Linear(6, 6)
        self.f.register_forward_hook(lambda m, i, o: o + i[0] * 0.5)
        self.g.register_forward_pre_hook(lambda m, a, k: ((a[0].clamp(-1, 1),), k), with_kwargs=True)
        self.act = partial(F.gelu, approximate="tanh")
        old = self.g.forward
        self.g.forward = lambda x: old(x) * 1.5

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        y = checkpoint(self.f, x, use_reentrant=False)
        with torch.autocast("cpu", enabled=False):
            y = self.act(y)
        return self.g(y).squeeze_(0).unsqueeze(0) if x.shape[0] == 1 else self.g(y)


@forward("x:float32[N,T]=-9:9", "i:int64[N,T]=-5:5", dims="N=1:2:3 T=2:4:7", kinds=FINITE)
def A7428Semantics(self, x, i):
    """Signs of remainders, floor of negative quotients, divisions of ints, fmod, shifts, bucketize on edges, heaviside, ties rounded, searchsorted right."""
    e = torch.tensor([-2.0, 0.0, 1.5, 3.0])
    a = torch.remainder(i, -3) + torch.fmod(i, 3) * 100 + i // -2 * 10000
    b = torch.div(x, 2.5, rounding_mode="floor") + x % -2.5
    c = torch.bucketize(x, e) + 10 * torch.bucketize(x.round(), e, right=True) + 100 * torch.searchsorted(e, x, side="right")
    d = torch.round(x * 4, decimals=1) + torch.heaviside(x, torch.tensor(0.5)) + torch.copysign(torch.tensor(1.0), x)
    return a, b, c, d, (i << 2) ^ (i >> 1), i.float().pow(3).to(torch.int32), x.frac(), x.trunc().to(torch.int8)


@attack("x:float16[N,T,8]=-2:2", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7429HalfNet(nn.Module):
    """A half network with RMSNorm in float32, a softmax in float32, and a bfloat16 island."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.n = nn.RMSNorm(8)
        self.f = nn.Linear(8, 8)
        self.half()

    def forward(self, x):
        y = self.f(F.rms_norm(x.float(), (8,), self.n.weight.float(), 1e-6).to(x.dtype))
        p = F.softmax(y @ y.mT, dim=-1, dtype=torch.float32).to(y.dtype)
        return (p @ x).to(torch.bfloat16).float() + y.float()


@attack("x:float32[N,C2,H]=-2:2", dims="N=1:2:3 C2=2:4:8%2 H=3:5:8", kinds=FINITE, refused="depends on the size")
class A7430Iterators(nn.Module):
    """Chunks over a dynamic axis, einops-like reshapes by unflatten, tensor_split at indices, sums by a generator, a walrus, match, zip of unbind."""

    def forward(self, x):
        a, b = x.chunk(2, 1)
        t1, t2, t3 = torch.tensor_split(x, (1, 3), dim=2)
        s = sum(p * w for p, w in zip((a, b), (0.3, 0.7)))
        match x.dim():
            case 3:
                y = x.unflatten(1, (2, -1)).movedim(1, -1).flatten(2)
            case _:
                y = x
        if (h := x.size(2)) % 2:
            y = y * 2
        *_, last = x.unbind(0)
        return s, y, t1.sum(2) + t2.prod(2) + (t3.amax(2) if h > 3 else 0), last
