"""Modules that change their own weights together with their own structure at the first call, and give the same in every call."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,6]"
D = "N=1:2:5"


@attack(X, dims=D, kinds=FINITE)
class A8224FusesItsNormOnce(nn.Module):
    """The first call in eval folds the norm into the layer before it and puts an Identity in its place."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l, self.bn = nn.Linear(6, 4), nn.BatchNorm1d(4)
        self.bn.running_mean.normal_()
        self.bn.running_var.uniform_(0.5, 2)

    def forward(self, x):
        if not self.training and isinstance(self.bn, nn.BatchNorm1d):
            k = self.bn.weight.data / (self.bn.running_var + self.bn.eps).sqrt()
            self.l.weight.data = self.l.weight.data * k[:, None]
            self.l.bias.data = (self.l.bias.data - self.bn.running_mean) * k + self.bn.bias.data
            self.bn = nn.Identity()
        return self.bn(self.l(x))


@attack(X, dims=D, kinds=FINITE)
class A8224MergesABranchOnce(nn.Module):
    """The first call adds one layer's weights to another's and deletes the one (RepVGG)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        if hasattr(self, "b"):
            self.a.weight.data.add_(self.b.weight.data)
            self.a.bias.data.add_(self.b.bias.data)
            del self.b
        return self.a(x)


@attack(X, dims=D, kinds=FINITE)
class A8224TransposesOnce(nn.Module):
    """The first call stores the weight the other way round and sets a flag."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.w, self.done = nn.Parameter(torch.randn(4, 6)), False

    def forward(self, x):
        if not self.done:
            self.w.data = self.w.data.t().contiguous()
            self.done = True
        return x @ self.w


@attack(X, dims=D, kinds=FINITE)
class A8224RemovesWeightNormOnce(nn.Module):
    """The first call takes the parametrisation of weight_norm away (vocoders for inference)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l = parametrizations.weight_norm(nn.Linear(6, 4))

    def forward(self, x):
        if parametrize.is_parametrized(self.l):
            parametrize.remove_parametrizations(self.l, "weight")
        return self.l(x)


class Lora(nn.Linear):
    def __init__(self):
        super().__init__(6, 4)
        self.a, self.b, self.merged = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(4, 2)), False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.merged:
            d = self.b.data @ self.a.data
            self.weight.data += -d if mode else d
            self.merged = not mode
        return self

    def forward(self, x):
        y = super().forward(x)
        return y if self.merged else y + x @ self.a.mT @ self.b.mT


@attack(X, dims=D, kinds=FINITE)
def A8216LoraMergedByEval():
    """loralib: train(False) merges the adapter into the weight, train(True) takes it out again."""
    torch.manual_seed(0)
    return nn.Sequential(Lora(), nn.Tanh())


@attack(X, dims=D, kinds=FINITE)
class A8216EmaSwappedByEval(nn.Module):
    """train(False) swaps the weights for their average, train(True) swaps them back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l, self.e, self.swapped = nn.Linear(6, 4), nn.Linear(6, 4), False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.swapped:
            self.l.weight.data, self.e.weight.data = self.e.weight.data, self.l.weight.data
            self.swapped = not mode
        return self

    def forward(self, x):
        return self.l(x)


@attack(X, dims=D, kinds=FINITE)
class A8216FusedByEval(nn.Module):
    """train(False) folds the norm into the layer before it, for good."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l, self.bn = nn.Linear(6, 4), nn.BatchNorm1d(4)
        self.bn.running_mean.normal_()

    def train(self, mode=True):
        super().train(mode)
        if not mode and isinstance(self.bn, nn.BatchNorm1d):
            k = self.bn.weight.data / (self.bn.running_var + self.bn.eps).sqrt()
            self.l.weight.data = self.l.weight.data * k[:, None]
            self.l.bias.data = (self.l.bias.data - self.bn.running_mean) * k + self.bn.bias.data
            self.bn = nn.Identity()
        return self

    def forward(self, x):
        return self.bn(self.l(x))
