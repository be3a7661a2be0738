# ruff: noqa: E501 - attacks are written as users write them
"""Errors of torch that a module passes over: by values that are rare, and by sizes within the range."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import FEW, seq

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
BIG = sprinkled(700.0, -700.0, 3e4, np.nan, sizes=((1, 9), (2, 12)))


@forward(X, **seq(X, own=BIG))
def A6336SigmaOfAHead(self, x):
    """A head's spread that the distribution refuses where it is not positive."""
    try:
        d = torch.distributions.Normal(x, x + 500.0)
    except ValueError:
        d = torch.distributions.Normal(x, (x + 500.0).abs().clamp(min=1e-3))
    return d.log_prob(torch.zeros(()))


@forward(X, **seq(X, own=BIG), refused="depends on the values of the inputs")
def A6337ProbabilitiesOutside(self, x):
    """A binary cross-entropy whose kernel raises beyond one, and another loss then."""
    p = (x * 1e-3 + 0.5).abs()
    y = (x > 0).float()
    try:
        return F.binary_cross_entropy(p, y, reduction="none")
    except RuntimeError:
        return (p - y).abs() * 9


@forward(X, **seq(X, own=BIG), refused="the exported model differs from the module")
def A6338HistogramOrNothing(self, x):
    """A histogram raises where the range is not finite."""
    y = x * 1e36
    try:
        h = torch.histc(y, 8)
    except RuntimeError:
        h = torch.zeros(8)
    return h


@forward("i:int64[N,T]=0:100000", **seq("i:int64[N,T]=0:100000", own=tuple((lambda k=k: {"i": np.array([[5, 777, k, 12]])}) for k in (1234, 3))), refused="depends on the values of the inputs")
def A6339DividedByOffsets(self, i):
    """A quotient of whole numbers raises where the divisor is nothing."""
    try:
        return 1000000 // (i - 1234)
    except RuntimeError:
        return torch.zeros_like(i)


@forward("i:int64[N,T]=0:100000", "x:float32[N,T]", **seq("i:int64[N,T]=0:100000", "x:float32[N,T]"), refused="divides whole numbers by zero")
def A6340SafeRemainder(self, i, x):
    """A remainder by a rounded difference, with a way out of the error."""
    d = i - (i.float() / 7).long() * 7
    with contextlib.suppress(RuntimeError, ZeroDivisionError):
        return (i % d).float() + x
    return x


@forward(X, **seq(X, own=BIG), refused="depends on the values of the inputs")
def A6341VarianceOfAHead(self, x):
    """A Gaussian likelihood refuses negative variances."""
    v = x * 0.01 + 3
    try:
        return F.gaussian_nll_loss(x, torch.zeros_like(x), v, reduction="none")
    except ValueError:
        return F.gaussian_nll_loss(x, torch.zeros_like(x), v.exp().clamp(max=9), reduction="none")


@forward(X, **seq(X, own=BIG), refused="depends on the values of the inputs")
def A6342SourceTooShort(self, x):
    """What is large is filled from a short list; when the list is too short it is left alone."""
    try:
        return x.masked_scatter(x > 600, torch.tensor([1.0, 2.0]))
    except RuntimeError:
        return x


@forward(X4, **seq(X4, own=sprinkled(1e30, np.inf, np.nan, sizes=((1, 9), (2, 12)), more=(4,))), refused="has no form of _linalg_eigh")
def A6343EigenOrIdentity(self, x):
    """A decomposition of covariances that does not converge at infinities."""
    c = x.transpose(1, 2) @ x / x.shape[1]
    try:
        return torch.linalg.eigvalsh(c)
    except Exception:  # the attack swallows whatever comes
        return torch.ones(x.shape[0], 4)


@forward(X, **seq(X, own=BIG), refused="depends on the values of the inputs")
def A6344DiceOfProbabilities(self, x):
    """A draw is only checked, and what is drawn is not looked at."""
    p = (x * 1e-3).abs()
    try:
        torch.bernoulli(p)
        return p
    except RuntimeError:
        return p.clamp(max=0.5)


@forward("i:int64[N,T]=0:5000", **seq("i:int64[N,T]=0:5000"), refused="depends on the values of the inputs")
def A6345OneHotOrUnknown(self, i):
    """Classes by a hash; one that lies beyond the table raises."""
    h = (i * 7919) % 1009
    try:
        return F.one_hot((h - 1).clamp(max=7), 8)
    except RuntimeError:
        return F.one_hot(torch.zeros_like(i), 8)


@forward("x:float32[N,T]", dims="N=1:1:2 T=2:90:400", kinds=FEW, feeds=tuple((lambda t=t: {"x": np.linspace(-1, 1, t, dtype=np.float32)[None]}) for t in (36, 37, 38, 74, 75, 111, 112, 148, 149, 185)), refused="traced for some sizes only")
def A6346WarnsOfOneSample(self, x):
    """A deviation of one sample only warns, and warnings are errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return x[:, : x.shape[1] % 37].std(1)
        except UserWarning:
            return torch.zeros(x.shape[0]) - 1


@attack("x:float32[N,C,T]", dims="N=1:1:2 C=2 T=4:40:300", kinds=FEW, feeds=tuple((lambda t=t: {"x": np.linspace(-1, 1, 2 * t, dtype=np.float32).reshape(1, 2, t)}) for t in (95, 96, 97, 191, 192, 193, 288)), refused="which the module catches")
class A6347UnshuffleWhenItFits(nn.Module):
    """Space to depth for lengths that divide by 96; the error is the question."""

    def forward(self, x):
        try:
            return F.pixel_unshuffle(x[..., None].expand(-1, -1, -1, 96), 96).amax((1, 3))
        except RuntimeError:
            return x.mean((1, 2))[:, None]


@forward(X, **seq(X, own=BIG), refused="depends on the values of the inputs")
def A6348ClippedOrRaises(self, x):
    """A norm that is not finite raises in clip_grad_norm_, and nothing is clipped then."""
    p = nn.Parameter(torch.zeros(()))
    p.grad = (x * 1e16).square().sum() * 1e-30
    try:
        nn.utils.clip_grad_norm_([p], 1e9, error_if_nonfinite=True)
        return x * 1.0
    except RuntimeError:
        return x.nan_to_num(0.0) * 0.5


@forward(X, **seq(X, own=BIG), noted="decides by values")
def A6349ConstraintsAsked(self, x):
    """Constraints of distributions, asked for by check() and folded by where."""
    ok = torch.distributions.constraints.interval(-600.0, 600.0).check(x)
    d = torch.distributions.Laplace(torch.zeros(()), 2.0, validate_args=True)
    try:
        lp = d.log_prob(x)
    except ValueError:
        lp = torch.zeros_like(x)
    return torch.where(ok, lp, -9.0)
