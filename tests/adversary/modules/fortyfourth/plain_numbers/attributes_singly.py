# ruff: noqa: E501 - attacks are written as users write them
"""One operator in each whose attribute is a number of the size."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled

XT, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
FEW = ("normal", "halves", "zeros", "tenths", "positive")
BY = {"dims": "N=1:2:3 T=1:20:300", "kinds": FEW, "feeds": sprinkled(5.0, -5.0, 70.0, sizes=((1, 1), (1, 2), (3, 3), (1, 149), (2, 150), (1, 151), (1, 299), (3, 300)))}


@forward(XT, **BY)
def A4911LeakyBySize(self, x):
    """leaky_relu."""
    return F.leaky_relu(x, 1 / x.shape[1])
@forward(XT, **BY)
def A4912EluBySize(self, x):
    """elu and celu."""
    return F.elu(x, x.shape[1] / 10), F.celu(x, x.shape[1] / 7)
@forward(XT, **BY)
def A4913HardtanhBySize(self, x):
    """hardtanh and threshold."""
    return F.hardtanh(x, -x.shape[1] / 50, x.shape[1] / 40), F.threshold(x, x.shape[1] / 100, -float(x.shape[1]))
@forward(XT, **BY)
def A4914ShrinkBySize(self, x):
    """softshrink and hardshrink."""
    return F.softshrink(x, 1 / x.shape[1]), F.hardshrink(x, 3 / x.shape[1])
@forward(XT, **BY)
def A4915SoftplusBeta(self, x):
    """softplus by beta."""
    return F.softplus(x, x.shape[1] / 20, 10.0)
@forward(XT, **BY)
def A4916SoftplusThreshold(self, x):
    """softplus by threshold."""
    return F.softplus(x, 1.0, x.shape[1] / 20)
@forward(XT, **BY)
def A4917LogitEpsilon(self, x):
    """logit by eps."""
    return torch.logit(x, 1 / (x.shape[1] + 2))
@forward(XT, **BY)
def A4918HuberDelta(self, x):
    """huber by delta."""
    return F.huber_loss(x, -x, delta=x.shape[1] / 30, reduction="none")
@forward(XT, **BY)
def A4919SmoothBeta(self, x):
    """smooth L1 by beta."""
    return F.smooth_l1_loss(x, -x, beta=x.shape[1] / 30, reduction="none")
@forward(XT, **BY)
def A4920RootBySize(self, x):
    """A root by the size."""
    return x.abs().pow(1 / x.shape[1]), torch.float_power(x.abs(), 2 / x.shape[1]).float(), x.abs() ** (x.shape[1] % 4)
@forward(XT, **BY, refused="the exported model differs from the module")
def A4921NanBySize(self, x):
    """nan_to_num by a size."""
    return torch.where(x > 4, math.nan, x).nan_to_num(x.shape[1] / 9)
@forward(XT, **BY)
def A4922LayerEpsilon(self, x):
    """layer_norm by eps."""
    return F.layer_norm(x[..., None] * torch.arange(1.0, 5), (4,), eps=1 / x.shape[1])
@forward(XT, **BY)
def A4923RmsEpsilon(self, x):
    """rms_norm by eps."""
    return F.rms_norm(x[..., None] * torch.arange(1.0, 5), (4,), eps=x.shape[1] / 10)
@forward(XT, **BY, refused="the exported model differs from the module")
def A4924BatchEpsilon(self, x):
    """batch_norm and instance norm by eps."""
    y = x[:, None].expand(-1, 2, -1) * torch.tensor([[1.0], [2.0]])
    return F.batch_norm(y, torch.zeros(2), torch.ones(2), eps=x.shape[1] / 50), F.group_norm(torch.cat([y, -y], 2), 1, eps=1 / x.shape[1])
@forward(XT, **BY, refused="the module cannot be exported")
def A4925NormOrder(self, x):
    """normalize by an order, cosine similarity by eps."""
    y = x[..., None] * torch.arange(1.0, 5)
    return F.normalize(y, p=1 + x.shape[1] % 3, dim=-1), F.normalize(y, dim=-1, eps=x.shape[1] / 3)
@forward(XT, **BY)
def A4926AddcmulValue(self, x):
    """addcmul, addcdiv, lerp, add and sub by alpha, baddbmm by beta."""
    t = x.shape[1]
    y = x[:, None]
    return torch.addcmul(x, x, x, value=1 / t), torch.addcdiv(x, x, x.abs() + 1, value=t / 9), torch.lerp(x, -x, t / 300), torch.add(x, x, alpha=1 / t), torch.sub(x, x, alpha=t), torch.baddbmm(y, y[..., :1], y, beta=t / 10, alpha=1 / t)
@forward(XT, **BY)
def A4927ClampsBySize(self, x):
    """clamp by quotients, masked_fill, full, where, a comparison with a quotient, a remainder by one."""
    t = x.shape[1]
    return x.clamp(-t / 60, t // 40), x.masked_fill(x > 1, t / 3), torch.full_like(x, t / 3), torch.where(x > t / 60, x, t / 7), x % (t / 7), x // (t / 30)
@forward(XT, **BY)
def A4928AverageBySize(self, x):
    """avg_pool1d by a half and a third."""
    return F.avg_pool1d(x[:, None], x.shape[1] // 2 + 1, x.shape[1] // 3 + 1)
@forward(XT, **BY)
def A4929MaximumBySize(self, x):
    """max_pool1d by a quarter with pads."""
    k = x.shape[1] // 4 + 1
    return F.max_pool1d(x[:, None], k, 2, k // 2)
@forward(XT, **BY)
def A4930WindowsBySize(self, x):
    """unfold by a root."""
    return x.unfold(1, math.isqrt(x.shape[1]), x.shape[1] // 7 + 1)
@forward(XT, **BY)
def A4931QuantileBySize(self, x):
    """quantile by one over the size; kthvalue by a third."""
    return x.quantile(1 / x.shape[1], 1), x.kthvalue(x.shape[1] // 3 + 1, 1).values
@forward(XT, **BY, refused="the exported model differs from the module")
def A4932ResizedByAFactor(self, x):
    """A resize by a factor of the size."""
    t = x.shape[1]
    return F.interpolate(x[:, None], scale_factor=(t + 10) / t, mode="linear")
@attack(X4, **{**BY, "feeds": sprinkled(5.0, sizes=((1, 1), (3, 3), (1, 150), (3, 300)), more=(4,))})
class A4933SlopeMember(nn.Module):
    """A layer's slope is set from the length."""
    def __init__(self):
        super().__init__()
        self.act = nn.LeakyReLU()
    def forward(self, x):
        self.act.negative_slope = 1 / x.shape[1]
        return self.act(x)
@attack(X4, **{**BY, "feeds": sprinkled(5.0, sizes=((1, 1), (3, 3), (1, 150), (3, 300)), more=(4,))})
class A4934EpsilonMember(nn.Module):
    """A norm's epsilon is set from the length."""
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
    def forward(self, x):
        self.norm.eps = x.shape[1] / 100
        return self.norm(x)
@attack(X4, **{**BY, "feeds": sprinkled(5.0, sizes=((1, 1), (3, 3), (1, 150), (3, 300)), more=(4,))})
class A4935ScaleMember(nn.Module):
    """Members that are scales and shifts of the length, and a child that reads its parent's."""
    class Child(nn.Module):
        scale = 1.0
        def forward(self, x):
            return x * self.scale
    def __init__(self):
        super().__init__()
        self.child = self.Child()
    def forward(self, x):
        self.child.scale = 1 / x.shape[1]
        y = self.child(x)
        self.child.scale = x.shape[1] // 2
        return y, self.child(x)
@forward(XT, **BY)
def A4936GumbelTau(self, x):
    """A softmax by a temperature of the size, logsumexp over it, a root mean by a power of the size."""
    t = x.shape[1]
    return (x / (t / 30)).softmax(1), (x.logsumexp(1) - math.log(t)), (x * t**-0.5).tanh(), x / math.sqrt(t), x * (1 + math.log2(t)) ** 2
