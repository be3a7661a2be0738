# ruff: noqa: E501 - attacks are written as users write them
"""Arguments that take plain numbers, from a size: ordinary at all lengths of thousands but one, or seen at rare values only."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.values import values_at

X4, XT = "x:float32[N,T,4]", "x:float32[N,T]"
ONE = {"dims": "N=1:1:2 T=1:100:4000", "kinds": ("normal", "halves"), "feeds": tuple(values_at(X4, N=1, T=t) for t in (1, 1400, 2800, 2801, 2802, 4000))}
FLAT = {**ONE, "feeds": tuple(values_at(XT, N=1, T=t) for t in (1, 1400, 2800, 2801, 2802, 4000))}


def once(t: int) -> int:
    """One at 2801, and nothing elsewhere to 4000, without a comparison."""
    return (1 // (1 + abs(t % 53 - 45))) * (1 // (1 + abs(t % 59 - 28)))


@forward(X4, **ONE)
def A45F01LayerNorm(self, x):
    """layer_norm with a large epsilon at one length."""
    return F.layer_norm(x, (4,), eps=1e-5 + once(x.shape[1]))
@forward(X4, **ONE)
def A45F02GroupNorm(self, x):
    """group_norm with a large epsilon at one length."""
    return F.group_norm(x.flatten(0, 1), 2, eps=0.1 + once(x.shape[1]))
@attack(X4, **ONE, refused="the exported model differs from the module")
class A45F03BatchNorm(nn.Module):
    """A batch norm whose epsilon is set."""
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
    def forward(self, x):
        self.norm.eps = 1e-5 + once(x.shape[1])
        return self.norm(x.mT)
@forward(XT, **FLAT)
def A45F04FakeQuantise(self, x):
    """fake_quantize whose scale and zero point are another one at one length."""
    k = once(x.shape[1])
    return torch.fake_quantize_per_tensor_affine(x, 0.05 + k, 3 + k, -128, 127)
@forward(XT, **FLAT)
def A45F05RoundedDecimals(self, x):
    """round to decimals that are one less at one length."""
    return x.round(decimals=2 - once(x.shape[1]))
@forward(XT, **FLAT, refused="the exported model differs from the module")
def A45F06TurnedAtOne(self, x):
    """rot90, diff, a power of a matrix by whole numbers."""
    k = once(x.shape[1])
    return torch.rot90(x, 2 + 2 * k, (0, 1)), x.diff(n=1 + k, dim=1).sum(1), x[:, None, :1].pow(2 + k)
@forward(XT, **FLAT)
def A45F07SortedTheOtherWay(self, x):
    """Flags by a size: descending, largest, right, keepdim of none."""
    k = bool(once(x.shape[1]))
    return x.sort(dim=1, descending=k).values, x.topk(1, 1, largest=not k).values, torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5]), right=k)
@forward(X4, **ONE)
def A45F08CornersAtOne(self, x):
    """align_corners and an antialias by a flag of the size."""
    return F.interpolate(x.mT, size=7, mode="linear", align_corners=bool(once(x.shape[1])))
@forward(X4, **ONE)
def A45F09DistanceEpsilon(self, x):
    """pairwise_distance's eps and cdist's order."""
    k = once(x.shape[1])
    return F.pairwise_distance(x, x.roll(1, -1), p=2.0, eps=1e-6 + k), torch.cdist(x[:, :3], x[:, :2], p=1.0 + k)
@forward(X4, **ONE)
def A45F10Smoothing(self, x):
    """Label smoothing, a margin, a delta and a beta at one length."""
    k = once(x.shape[1])
    y = torch.zeros(x.shape[:2], dtype=torch.long)
    return F.cross_entropy(x.mT, y, label_smoothing=0.1 + k / 2, reduction="none"), F.margin_ranking_loss(x, -x, torch.ones_like(x), margin=0.1 + k, reduction="none")
@forward(X4, **ONE)
def A45F11GroupsOfAHalf(self, x):
    """The number of groups of a norm and of a shuffle at one length."""
    k = once(x.shape[1])
    y = x.flatten(0, 1)
    return F.group_norm(y, 2 - k), F.channel_shuffle(y[..., None, None], 2 + 2 * k)
@forward("i:int64[N,T]=0:49407", "x:float32[N,T,4]", dims="N=1:2:3 T=1:20:300", feeds=(lambda: {"i": np.array([[3, 5, 3]]), "x": np.random.RandomState(0).randn(1, 3, 4).astype(np.float32)},))
def A45F12IgnoredIndex(self, i, x):
    """A target that equals the length is ignored."""
    return F.nll_loss(x.repeat(1, 1, 12500).log_softmax(-1).mT, i, ignore_index=x.shape[1], reduction="none")
@forward(X4, dims="N=1:2:3 T=1:20:300", kinds=("normal", "zeros", "tiny"), feeds=(lambda: {"x": (np.random.RandomState(0).randn(1, 151, 4) * 1e-6).astype(np.float32)},), refused="the exported model differs from the module")
def A45F13EpsilonBesideALoop(self, x):
    """An epsilon of the length in a norm of a norm's rest."""
    y = F.layer_norm(x, (4,), torch.ones(4), torch.zeros(4), 1e-12 * x.shape[1])
    return y.mean(1), F.instance_norm(x.mT.repeat(1, 1, 2), eps=1e-12 * x.shape[1])
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=("normal", "zeros", "halves"), feeds=sprinkled(70.0, 1e4, sizes=((1, 1), (1, 151), (1, 300))))
def A45F14FakeQuantiseByLength(self, x):
    """Limits of a quantiser beyond ordinary values are of the length."""
    return torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 100 + x.shape[1])
@forward(XT, dims="N=1:2:3 T=1:20:300", kinds=("normal", "zeros", "halves"), feeds=sprinkled(0.5, sizes=((1, 1), (1, 150), (1, 151))), refused="the module cannot be exported")
def A45F15RightByParity(self, x):
    """The side of a search is the parity of the length, which ties alone show."""
    return torch.bucketize(x, torch.tensor([-0.5, 0.5, 7.25]), right=x.shape[1] % 2 == 1)
@forward(X4, dims="N=1:2:3 T=1:20:300", kinds=("normal", "zeros"), feeds=(lambda: {"x": (np.random.RandomState(0).randn(1, 151, 4) * 1e-5).astype(np.float32)},))
def A45F16GaussianEpsilon(self, x):
    """A gaussian loss with a floor of the variance by the length; a distance's eps; a quantile far out."""
    return F.gaussian_nll_loss(x, x.roll(1, -1), x.abs(), eps=1e-8 * x.shape[1], reduction="none"), F.pairwise_distance(x, x.roll(1, -1), eps=1e-8 * x.shape[1])
