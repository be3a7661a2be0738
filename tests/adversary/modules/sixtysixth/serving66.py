"""From training to serving: averaged weights, adapters, pruning, fake quantisation, wrappers that select what is served."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import copy
import enum
import functools
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize, prune
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=FINITE)
class A7880AveragedModel(nn.Module):
    """swa_utils.AveragedModel with EMA and buffers averaged, updated twice from a moved base, served beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6))
        self.ema = AveragedModel(self.base, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
        for k in range(3):
            with torch.no_grad():
                for p in self.base.parameters():
                    p.add_(0.1 * (k + 1))
            self.ema.update_parameters(self.base)

    def forward(self, x):
        return self.ema(x) - self.base(x), self.ema.n_averaged + x.shape[1]


class SwapEma:
    """with ema.applied(model): the shadow weights for the block, as training code evaluates."""

    def __init__(self, model) -> None:
        self.shadow = {k: v.detach() * 0.5 for k, v in model.named_parameters()}

    def __call__(self, model):
        return functools.partial(torch.func.functional_call, model, self.shadow)


@attack(X, dims=D, kinds=FINITE, refused="gets other data")
class A7881SwappedEma(nn.Module):
    """EMA shadow kept in a plain dict beside the module, stored and swapped by p.data for one call, restored after it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 6)
        self.shadow = {k: v.detach().clone() * 0.5 for k, v in self.net.named_parameters()}

    def forward(self, x):
        backup = {k: p.data for k, p in self.net.named_parameters()}
        for k, p in self.net.named_parameters():
            p.data = self.shadow[k]
        try:
            y = self.net(x)
        finally:
            for k, p in self.net.named_parameters():
                p.data = backup[k]
        return y, self.net(x)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2, names=("a", "b")) -> None:
        super().__init__()
        self.base, self.active, self.merged = base, "a", False
        self.down = nn.ModuleDict({n: nn.Linear(6, rank, bias=False) for n in names})
        self.up = nn.ModuleDict({n: nn.Linear(rank, 6, bias=False) for n in names})
        self.scaling = {n: 2.0 / (i + 1) for i, n in enumerate(names)}

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.up[self.active].weight @ self.down[self.active].weight * self.scaling[self.active]
            self.merged = True

    def unmerge(self):
        if self.merged:
            self.base.weight.data -= self.up[self.active].weight @ self.down[self.active].weight * self.scaling[self.active]
            self.merged = False

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + self.up[self.active](self.down[self.active](x)) * self.scaling[self.active]


@attack(X, dims=D, kinds=FINITE)
class A7882LoraMergedAndSwitched(nn.Module):
    """PEFT's LoRA: one layer merged at construction, another switched to the second adapter for longer sequences and switched back."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.v = LoRALinear(nn.Linear(6, 6)), LoRALinear(nn.Linear(6, 6))
        self.q.merge()

    def forward(self, x):
        self.v.active = "b" if x.shape[1] > 4 else "a"
        y = self.q(x) + self.v(x)
        self.v.active = "a"
        return y, self.v(x)


@attack(X, dims=D, kinds=FINITE, refused="gets other data")
class A7883MergeInForward(nn.Module):
    """merge() and unmerge() of LoRA around a call in forward (weights move by rounding only)."""

    def __init__(self) -> None:
        super().__init__()
        self.q = LoRALinear(nn.Linear(6, 6))

    def forward(self, x):
        before = self.q(x)
        with torch.no_grad():
            self.q.merge()
            y = self.q(x)
            self.q.unmerge()
        return y, before


@attack(X, dims=D, kinds=FINITE)
class A7884PrunedInMany(nn.Module):
    """prune: unstructured, ln_structured, a custom mask, iterative container, one of them removed; the mask buffers are read in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Conv1d(6, 6, 3, padding=1), nn.Linear(6, 6)
        prune.l1_unstructured(self.a, "weight", amount=0.3)
        prune.random_unstructured(self.a, "bias", amount=2)
        prune.ln_structured(self.b, "weight", amount=2, n=2, dim=0)
        prune.l1_unstructured(self.b, "weight", amount=0.2)
        prune.custom_from_mask(self.c, "weight", torch.eye(6))
        prune.remove(self.c, "weight")

    def forward(self, x):
        y = self.a(x) + self.c(x) * self.a.weight_mask.mean()
        return y, self.b(x.transpose(1, 2))


@attack(X, dims=D, kinds=FINITE)
class A7885FakeQuantPerChannel(nn.Module):
    """Fake quantisation of QAT: per-tensor affine with a zero point, per-channel symmetric weights, a FakeQuantize module with its observer off."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(6, 6)
        self.fq = torch.ao.quantization.FakeQuantize(observer=torch.ao.quantization.MinMaxObserver, quant_min=0, quant_max=255)
        self.fq(torch.linspace(-2, 3, 50))
        self.fq.disable_observer()
        self.register_buffer("s", torch.rand(6) * 0.05 + 0.01)
        self.register_buffer("z", torch.zeros(6, dtype=torch.int32))

    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(self.f.weight, self.s, self.z, 0, -128, 127)
        y = F.linear(self.fq(x), w, self.f.bias)
        return torch.fake_quantize_per_tensor_affine(y, 0.03, 7, -8, 127)


@attack(X, dims=D, kinds=FINITE)
class A7886LearnedStepSize(nn.Module):
    """LSQ with a gradient scale by detach tricks, PACT's learned clip by its formula of absolute values, DoReFa's tanh weights."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.alpha = nn.Parameter(torch.tensor(0.11)), nn.Parameter(torch.tensor(1.7))
        self.w = nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        g = 1.0 / (x.shape[1] * 127) ** 0.5
        s = (self.step - self.step * g).detach() + self.step * g
        v = (x / s).clamp(-128, 127)
        q = (v.round() - v).detach() + v
        p = 0.5 * (x.abs() - (x - self.alpha).abs() + self.alpha)
        p = torch.round(p * 15 / self.alpha) * self.alpha / 15
        t = torch.tanh(self.w)
        t = 2 * torch.round((t / (2 * t.abs().max()) + 0.5) * 3) / 3 - 1
        return q * s, F.linear(p, t)


class LowRank(nn.Module):
    def __init__(self, w) -> None:
        super().__init__()
        u, s, v = torch.linalg.svd(w)
        self.register_buffer("u", u[:, :3] * s[:3])
        self.register_buffer("v", v[:3])

    def forward(self, w):
        return self.u @ self.v + 0.1 * w


@attack(X, dims=D, kinds=FINITE)
class A7887StackedParametrizations(nn.Module):
    """A parametrization of low rank and one of skew symmetry, two on one tensor, one on a bias, then deepcopy of the module; one removed with leave_parametrized."""

    def __init__(self) -> None:
        super().__init__()
        f = nn.Linear(6, 6)
        parametrize.register_parametrization(f, "weight", LowRank(f.weight.detach()))
        parametrize.register_parametrization(f, "weight", Skew())
        parametrize.register_parametrization(f, "bias", nn.Softplus(), unsafe=True)
        self.f = copy.deepcopy(f)
        self.g = nn.Linear(6, 6)
        parametrize.register_parametrization(self.g, "weight", LowRank(self.g.weight.detach()))
        parametrize.remove_parametrizations(self.g, "weight", leave_parametrized=True)

    def forward(self, x):
        return self.f(x), self.g(x), torch.matrix_exp(self.f.weight * 0.1)


class Skew(nn.Module):
    def forward(self, w):
        return w.triu(1) - w.triu(1).mT


class Head(enum.Enum):
    BOXES = "boxes"
    MASKS = "masks"

    @property
    def width(self):
        return {"boxes": 4, "masks": 5}[self.value]


class Level(enum.IntFlag):
    NONE, LOW, HIGH = 0, 1, 2


@dataclass
class Output:
    logits: torch.Tensor
    extras: dict = field(default_factory=dict)
    aux: list = field(default_factory=list)

    def with_(self, **more):
        return Output(self.logits, {**self.extras, **more}, self.aux)


@attack(X, dims=D, kinds=FINITE)
class A7888EnumsAndDataclasses(nn.Module):
    """Heads by an enum in a dict, flags composed from the size, a frozen dataclass-like output replaced and unpacked into a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({h.value: nn.Linear(6, h.width) for h in Head})
        self.table = {h: i for i, h in enumerate(Head)}

    def forward(self, x):
        level = (Level.LOW if x.shape[1] > 3 else Level.NONE) | (Level.HIGH if x.shape[1] > 6 else Level.NONE)
        out = Output(self.heads[Head.BOXES.value](x) * (1 + int(level)))
        for h in Head:
            out = out.with_(**{h.name.lower(): self.heads[h.value](x) + self.table[h]})
        if Level.HIGH in level:
            out.extras["boxes"] = out.extras["boxes"].flip(1)
        return {"logits": out.logits, **out.extras}


@attack(X, dims=D, kinds=FINITE)
class A7889WeightStandardisation(nn.Module):
    """BiT's standardized conv, StyleGAN's modulated grouped conv by the batch, equalised learning rate, demodulation."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 6, 3))
        self.style = nn.Linear(6, 6)

    def forward(self, x):
        v, m = torch.var_mean(self.w, dim=(1, 2), keepdim=True, unbiased=False)
        y = F.conv1d(x.mT, (self.w - m) / torch.sqrt(v + 1e-10), padding="same")
        b, t, c = x.shape
        s = self.style(x.mean(1)) + 1
        w = self.w[None] * s[:, None, :, None]
        d = torch.rsqrt(w.square().sum((2, 3), keepdim=True) + 1e-8)
        z = F.conv1d(x.mT.reshape(1, b * c, t), (w * d).reshape(b * 8, c, 3), padding=1, groups=b)
        return y, z.reshape(b, 8, t)
