# ruff: noqa: E501 - attacks are written as users write them
"""Numbers of the size where an operator takes an attribute, axes by the size, weights by the size, NaN where an operator has its own mind, tables of few hundred sizes."""

from __future__ import annotations

import datetime
import math
import struct
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, vmap
from torch.nn.utils import parametrize

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.values import values_at

XT, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
FEW = ("normal", "halves", "zeros", "tenths", "positive")
BY = {"dims": "N=1:2:3 T=1:20:300", "kinds": FEW, "feeds": sprinkled(5.0, -5.0, 70.0, sizes=((1, 1), (1, 2), (3, 3), (1, 149), (2, 150), (1, 151), (1, 299), (3, 300)))}
INF, NAN = math.inf, math.nan
ODD = {"dims": "N=1:2:3 T=1:9:20", "kinds": FEW, "feeds": (lambda: {"x": np.array([[1, NAN, 2, -0.0, INF, 2, NAN, -INF, 0.5, 0, -3, NAN]], np.float32)}, lambda: {"x": np.array([[NAN, 1], [1, NAN], [NAN, NAN]], np.float32)}, lambda: {"x": np.array([[NAN]], np.float32)})}


@forward(XT, **BY)
def A4861SlopesBySize(self, x):
    """Slopes, knees and limits of activations from the length."""
    t = x.shape[1]
    return F.leaky_relu(x, 1 / t), F.elu(x, t / 10), F.hardtanh(x, -t / 50, t / 40), F.softshrink(x, 1 / t), F.hardshrink(x, 3 / t), F.celu(x, t / 7), F.threshold(x, t / 100, -float(t))
@forward(XT, **BY, refused="the exported model differs from the module")
def A4862SoftplusBySize(self, x):
    """softplus by beta and threshold, logit's eps, huber's delta, smooth L1's beta, nan_to_num and pow by the length."""
    t = x.shape[1]
    return F.softplus(x, t / 20, 10.0), F.softplus(x, 1.0, t / 20), torch.logit(x, 1 / (t + 2)), F.huber_loss(x, -x, delta=t / 30, reduction="none"), F.smooth_l1_loss(x, -x, beta=t / 30, reduction="none"), x.abs().pow(1 / t), torch.where(x > 4, NAN, x).nan_to_num(t / 9)
@forward(XT, **BY, refused="the module cannot be exported")
def A4863EpsilonsBySize(self, x):
    """Epsilons of norms by the length; an exponent of a norm; addcmul and lerp by a share; masked_fill by a size; a clamp by a quotient."""
    t = x.shape[1]
    y = x[..., None] * torch.arange(1.0, 5)
    return F.layer_norm(y, (4,), eps=1 / t), F.rms_norm(y, (4,), eps=t / 10), F.normalize(y, p=1 + t % 3, dim=-1), torch.addcmul(x, x, x, value=1 / t), torch.lerp(x, -x, t / 300), x.masked_fill(x > 1, t / 3), x.clamp(-t / 60, t // 40)
@forward(XT, **BY)
def A4864AxesBySize(self, x):
    """An axis, a transposition and a number of turns by the parity of the length."""
    d = x.shape[1] % 2
    return x.cumsum(d), x.softmax(d), x.flip(d), torch.roll(x, 1, d), torch.rot90(x, x.shape[1] % 4).sum()
@forward(XT, **BY)
def A4865DiagonalsBySize(self, x):
    """tril and triu by offsets of the length, a power of a matrix, a diagonal of half, one_hot of as many, roll by a third, a polynomial by order."""
    t = x.shape[1]
    m = (x[:, :, None] * x[:, None]).clamp(-1, 1)
    return m.tril(t // 2 - 3), m.triu(-(t // 3)), m.diagonal(t // 2, 1, 2), F.one_hot((x > 0).long(), 2 + t // 50).sum(1), x.roll((t // 3, t % 5), (1, 1)), m.tril(-t).sum((1, 2))
@forward(XT, **BY, refused="the path through the module depends on the size")
def A4866PoolsBySize(self, x):
    """Pools whose kernel and stride are from the length, an unfold by a root, a quantile by a share, a resize by a factor of the length."""
    t = x.shape[1]
    y = x[:, None]
    return F.avg_pool1d(y, t // 2 + 1, t // 3 + 1), F.max_pool1d(y, t // 4 + 1, 2, (t // 4 + 1) // 2), x.unfold(1, math.isqrt(t), t // 7 + 1), x.quantile(1 / t, 1), F.interpolate(y, scale_factor=(t + 10) / t, mode="linear") if t > 10 else y
class A44ByLength(nn.Module):
    """A map of weights that knows a length."""
    steps = 1
    def forward(self, w):
        return w / (1 + self.steps / 10)
@attack(X4, "y:float32[N]", dims="N=1:2:3 T=1:20:300", kinds=FEW, feeds=(values_at(X4, "y:float32[N]", N=1, T=1), values_at(X4, "y:float32[N]", N=3, T=300)))
class A4867WeightsOfALength(nn.Module):
    """A parametrization whose member is the length of this call."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", A44ByLength())
    def forward(self, x, y):
        self.lin.parametrizations.weight[0].steps = x.shape[1]
        return self.lin(x) + y[:, None, None]
@attack(X4, dims="N=1:2:3 T=1:20:300", kinds=FEW)
class A4868MembersOfALength(nn.Module):
    """Members of layers that are numbers of the length: a slope, an epsilon, a scale, a shift by one that is put back."""
    def __init__(self):
        super().__init__()
        self.act, self.norm, self.drop, self.shift = nn.LeakyReLU(), nn.LayerNorm(4), nn.Dropout(), 0
    def forward(self, x):
        t = x.shape[1]
        self.act.negative_slope, self.norm.eps, self.drop.p = 1 / t, t / 100, t / 1000
        self.shift = t // 2
        y = self.drop(self.act(self.norm(x))).roll(self.shift, 1)
        self.shift = 0
        return y
@attack(X4, dims="N=1:2:3 T=1:20:300", kinds=FEW, refused="the module cannot be exported")
class A4869EnsembleByVmap(nn.Module):
    """Weights in a stack, mapped over by vmap of functional_call, scaled by the length."""
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 2)
        self.w, self.b = nn.Parameter(torch.randn(3, 2, 4)), nn.Parameter(torch.randn(3, 2))
    def forward(self, x):
        z = vmap(lambda w, b: functional_call(self.one, {"weight": w, "bias": b}, (x,)))(self.w, self.b)
        p = {k: v * (1 + 1 / x.shape[1]) for k, v in self.one.named_parameters()}
        return z.mean(0), functional_call(self.one, p, (x,))
@attack(X4, dims="N=1:2:3 T=1:20:300", kinds=FEW)
class A4870FunctionalCallAlone(nn.Module):
    """Weights of a call are those of the layer by a share of the length."""
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 2)
    def forward(self, x):
        return functional_call(self.one, {k: v * (1 + 1 / x.shape[1]) for k, v in self.one.named_parameters()}, (x,))
@forward(XT, **ODD)
def A4871HeavisideOfNaN(self, x):
    """heaviside."""
    return torch.heaviside(x, torch.tensor(0.25))
@forward(XT, **ODD)
def A4872PoolsOfNaN(self, x):
    """Max pools with NaN."""
    return F.max_pool1d(x[:, None], 3, 1, 1), F.adaptive_max_pool1d(x[:, None], 1), F.max_pool2d(x[:, None, None].expand(-1, -1, 2, -1), (2, 1))
@forward(XT, **ODD)
def A4873OrderOfNaN(self, x):
    """topk, sort and argsort with NaN."""
    return x.topk(1, 1).values, x.sort(dim=1, stable=True).values, x.argsort(dim=1, descending=True, stable=True)
@forward(XT, **ODD)
def A4874ActivationsOfNaN(self, x):
    """Piecewise activations of NaN."""
    return F.relu(x), F.relu6(x), F.hardswish(x), F.hardsigmoid(x), F.threshold(x, 0.1, 7.0), F.leaky_relu(x), F.elu(x), F.hardshrink(x), F.softshrink(x), F.hardtanh(x), F.selu(x)
@forward(XT, **ODD)
def A4875ExtremesOfNaN(self, x):
    """Largest ones and places."""
    return x.amax(1), x.argmax(1), x.max(1).indices, x.cummax(1).values, x.clamp(x.roll(1, 1), torch.tensor(2.0)), x.clamp(min=torch.tensor(NAN)), x.median(1).values
@forward(XT, **ODD)
def A4876TruthOfNaN(self, x):
    """Truth of NaN, membership, counts, all and any, where."""
    return x.bool(), x.logical_not(), torch.isin(x, torch.tensor([1.0, NAN])), torch.count_nonzero(x, 1), x.all(1), x.any(1), x.sign(), x.sgn(), x != x, torch.where(x.bool(), 1.0, 2.0)
@forward(XT, **ODD)
def A4877SumsOfNaN(self, x):
    """Products by zero of a mask, norms, hypot, xlogy, scatter_reduce of maxima with NaN, one minus, a softmax."""
    i = (torch.arange(x.shape[1]) % 3).expand_as(x)
    z = torch.zeros(x.shape[0], 3)
    return x * (x == x), torch.xlogy(torch.zeros_like(x), x), z.scatter_reduce(1, i, x, "amax"), z.scatter_reduce(1, i, x, "amin", include_self=False), torch.hypot(x, x), x.norm(p=INF, dim=1), x.norm(p=0, dim=1)
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=FEW)
def A4878TableOfSliceIndices(self, x):
    """slice.indices as a factor."""
    return x * slice(-3, None, -7).indices(x.shape[1])[0] + slice(100, 200).indices(x.shape[1])[1]
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=FEW)
def A4879TableOfChecksums(self, x):
    """A checksum as a factor."""
    return x * (zlib.crc32(struct.pack("<I", x.shape[1])) % 7)
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=FEW)
def A4880TableOfBits(self, x):
    """Bits turned round, a population count."""
    return x + (~x.shape[1]), x * (x.shape[1]).bit_count(), x - int(bin(x.shape[1])[:1:-1], 2)
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=FEW)
def A4881TableOfGamma(self, x):
    """lgamma, combinations, erf, remainder, the digits of a text, a modular power."""
    t = x.shape[1]
    return x * math.lgamma(t), x + math.comb(t, 2), x * math.erf(t / 100), x + math.remainder(t, 7), x + sum(map(int, str(t)))
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=FEW)
def A4882TableOfTimes(self, x):
    """Minutes of a clip by a timedelta and by divmod."""
    m, s = divmod(x.shape[1], 60)
    return x * (m * 100 + s), x + datetime.timedelta(minutes=int(x.shape[1])).seconds // 3600
@attack(X4, dims="N=1:2:3 T=1:9:20", kinds=FEW)
class A4883FoldedOnceCopied(nn.Module):
    """A folded layer is made at the first call and kept beside the one it came from."""
    def __init__(self):
        super().__init__()
        self.lin, self.norm, self.folded = nn.Linear(4, 4), nn.BatchNorm1d(4), None
        self.norm.running_var.mul_(2)
    def forward(self, x):
        if self.folded is None:
            s = self.norm.weight / (self.norm.running_var + self.norm.eps).sqrt()
            self.folded = (self.lin.weight * s[:, None]).detach(), ((self.lin.bias - self.norm.running_mean) * s + self.norm.bias).detach()
        return F.linear(x, *self.folded)
