# ruff: noqa: E501 - attacks are written as users write them
"""One operator or layer in each, with a size or a value at its edge."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.values import values_at

FEW = ("normal", "unit", "halves", "zeros", "tenths", "ones")
XT, X4, IMAGE = "x:float32[N,T]", "x:float32[N,T,4]", "x:float32[N,3,H,W]"


def seq(**more: object) -> dict:
    """Sequences with points at their ends."""
    return {"dims": "N=1:2:3 T=1:9:40", "kinds": FEW, "feeds": tuple(values_at(X4, N=n, T=t) for n, t in ((1, 1), (3, 1), (1, 2), (1, 3), (2, 4), (2, 7), (2, 8), (1, 33), (3, 40))), **more}


PIX = {"dims": "N=1:1:2 H=2:8:24 W=2:9:24", "kinds": FEW, "feeds": tuple(values_at(IMAGE, N=n, H=h, W=w) for n, h, w in ((1, 2, 2), (1, 3, 24), (2, 23, 23), (1, 13, 7), (1, 5, 5), (2, 24, 24)))}
FLAT = {"dims": "N=1:2:3 T=1:9:40", "kinds": FEW, "feeds": sprinkled(0.0, -2.5, 40.0, sizes=((1, 1), (2, 2), (3, 3), (1, 40)))}


@forward(X4, **seq())
def A4884DownwardPlaces(self, x):
    """arange that goes down by two names rows."""
    return x[:, torch.arange(x.shape[1] - 1, -1, -2)]
@forward(X4, **seq())
def A4885EndOrNone(self, x):
    """An end below zero, or None where that is zero."""
    return x[:, x.shape[1] // 3:-(x.shape[1] // 4) or None]
@forward(X4, **seq())
def A4886ParityMask(self, x):
    """A mask made of places picks rows; a step by the size picks the first."""
    t = x.shape[1]
    return x[:, torch.arange(t) % 3 == 1], x[:, ::t], x[:, 1::max(1, t // 3)]
@forward(X4, **seq(), refused="the path through the module depends on the size")
def A4887ThirdsByChunk(self, x):
    """chunk into three, of which the last may be missing: a mean of each."""
    return torch.cat([v.mean(1, keepdim=True) for v in x.chunk(3, 1)], 1).mean(1)
@forward(X4, **seq())
def A4888SplitOfRest(self, x):
    """split by two fifths and the rest; tensor_split at places."""
    t = x.shape[1]
    a, b, c = x.split([t // 2, t - t // 2 - t // 5, t // 5], 1)
    p, q, r = x.tensor_split((t // 4, t // 2), 1)
    return a.sum(1), b, c.sum(1), p, torch.hstack([r, q])
@forward(X4, **seq())
def A4889BlocksOfRows(self, x):
    """block_diag and column_stack of two rows; all pairs of two columns."""
    return torch.block_diag(x[0], x[-1]), torch.column_stack([x[0], x[-1]]), torch.cartesian_prod(x[0, :, 0], x[0, :, 1])
@forward(IMAGE, **PIX)
def A4890UnpooledToItsSize(self, x):
    """max_unpool to the size that it came from, odd or even."""
    v, i = F.max_pool2d(x, 2, 2, return_indices=True)
    return F.max_unpool2d(v, i, 2, 2, output_size=x.shape[2:])
@forward(IMAGE, **PIX)
def A4891PoolsWithCeil(self, x):
    """Ceil with a stride over the kernel, with a divisor, and without counting pads."""
    return F.max_pool2d(x, 2, 3, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.avg_pool2d(x, 2, 2, ceil_mode=True, divisor_override=3)
@forward(IMAGE, **PIX)
def A4892PoolsOfPowers(self, x):
    """LP pools of odd and fractional powers, negative sums within."""
    return F.lp_pool2d(x, 3.0, 2), F.lp_pool2d(x.abs(), 1.5, 2, ceil_mode=True)
@forward(IMAGE, **PIX)
def A4893AdaptiveToAThird(self, x):
    """Adaptive pools to a third of the height and to two columns."""
    return F.adaptive_avg_pool2d(x, (max(1, x.shape[2] // 3), 2)), F.adaptive_max_pool2d(x, (2, 2))
@forward("x:float32[N,2,D,H,W]", dims="N=1:1:2 D=1:3:5 H=1:4:6 W=1:5:6", kinds=FEW, feeds=tuple(values_at("x:float32[N,2,D,H,W]", N=1, D=d, H=h, W=w) for d, h, w in ((1, 1, 1), (5, 1, 6), (2, 6, 6))), refused="the module cannot be exported")
def A4894VolumeThroughAGrid(self, x):
    """An affine grid of a moving volume, sampled with a border."""
    t = torch.eye(3, 4)[None].expand(x.shape[0], 3, 4) * 0.9
    return F.grid_sample(x, F.affine_grid(t, list(x.shape), align_corners=False), padding_mode="border", align_corners=False)
@forward("x:float32[N,2,D,H,W]", dims="N=1:1:2 D=1:3:5 H=1:4:6 W=1:5:6", kinds=FEW, feeds=tuple(values_at("x:float32[N,2,D,H,W]", N=1, D=d, H=h, W=w) for d, h, w in ((1, 1, 1), (5, 1, 6), (2, 6, 6))))
def A4895VolumesResized(self, x):
    """Trilinear to a fixed size and by a factor, a max pool with pads and ceil, a stride over a kernel of one."""
    return F.interpolate(x, size=(4, 3, 7), mode="trilinear"), F.interpolate(x, scale_factor=1.5, mode="trilinear", align_corners=True), F.max_pool3d(F.pad(x, (1, 1) * 3), 2, 2, ceil_mode=True), F.avg_pool3d(x, 1, 2)
@forward(XT, dims="N=1:2:3 T=2:9:40", kinds=FEW)
def A4896CovarianceOfRows(self, x):
    """cov of moving rows and of one row, corrcoef."""
    return torch.cov(x.T), torch.cov(x.T, correction=0), torch.corrcoef(x.T + torch.arange(x.shape[1])[:, None] * torch.arange(x.shape[0]))
@forward(XT, **FLAT)
def A4897PoissonLoss(self, x):
    """Poisson's loss with Stirling's term; kl_div of targets of none; a gaussian loss with the smallest variance."""
    y = x.flip(1)
    return F.poisson_nll_loss(x.clamp(max=9), y.abs().round(), full=True, reduction="none"), F.kl_div(x, y.abs(), reduction="none"), F.hinge_embedding_loss(x, torch.where(y > 0, 1.0, -1.0), reduction="none")
@forward(XT, **FLAT)
def A4898GaussianLoss(self, x):
    """A gaussian loss whose variance may be none."""
    return F.gaussian_nll_loss(x, x.flip(1), x.abs(), full=True, reduction="none")
@forward(XT, **FLAT, refused="the module cannot be exported")
def A4899NormalQuantiles(self, x):
    """ndtri, log_ndtr, erfcx, entr, sinc, digamma, multigammaln."""
    return torch.special.ndtri(x / 100 + 0.5), torch.special.log_ndtr(x), torch.special.erfcx(x.abs()), torch.special.entr(x), torch.sinc(x), torch.digamma(x.abs() + 0.5), torch.special.multigammaln(x.abs() + 2, 2)
@forward(X4, **seq(), refused="the module cannot be exported")
def A4900SlogdetAndTriangles(self, x):
    """Determinants, solutions by a triangle, a power of three, of a Gram matrix with a load."""
    g = x.mT @ x / x.shape[1] + torch.eye(4)
    return torch.linalg.det(g[:, :2, :2]), *torch.linalg.slogdet(g[:, :3, :3]), torch.matrix_power(g, 3)
@forward(X4, **seq(), refused="the module cannot be exported")
def A4901CholeskySolved(self, x):
    """Cholesky and a triangle, matrix norms."""
    g = x.mT @ x / x.shape[1] + torch.eye(4)
    c = torch.linalg.cholesky(g)
    return torch.linalg.solve_triangular(c, x.mT, upper=False), torch.linalg.matrix_norm(g, 1), torch.linalg.cross(x[..., :3], x[..., 1:])
@forward(XT, **FLAT, refused="the exported model differs from the module")
def A4902DistancesThatCount(self, x):
    """cdist that counts what differs."""
    return torch.cdist(x[..., None], x.flip(1)[..., None], p=0.0)
@forward(XT, **FLAT)
def A4903RenormalisedRows(self, x):
    """renorm of rows, norms of order a half, of none and of minus infinity."""
    return torch.renorm(x, 2, 0, 1.0), torch.linalg.vector_norm(x, 0.5, dim=1), torch.linalg.vector_norm(x, 0, dim=1), torch.linalg.vector_norm(x, -math.inf, dim=1)
@attack(X4, dims="N=1:2:3 T=2:9:40", kinds=FEW, refused="the module cannot be exported")
class A4904CopyInTraining(nn.Module):
    """Batch statistics through a copy in training mode."""
    def __init__(self):
        super().__init__()
        self.m = nn.BatchNorm1d(4, momentum=None)
    def forward(self, x):
        c = copy.deepcopy(self.m).train()
        return c(x.mT), F.batch_norm(x.mT, None, None, training=True)
@attack(X4, **seq())
class A4905MaskByALoop(nn.Module):
    """Rows of a mask are written in a Python loop by a slice whose ends are an extreme."""
    def forward(self, x):
        t = x.shape[1]
        mask = torch.zeros(t, t)
        for i in range(t):
            mask[i, max((i // 4 - 1) * 4, 0):min((i // 4 + 1) * 4, t)] = 1.0
        return x.mT @ mask
@attack(X4, **seq())
class A4906BooleanMaskByALoop(nn.Module):
    """The same of booleans."""
    def forward(self, x):
        t = x.shape[1]
        mask = torch.zeros(t, t, dtype=torch.bool)
        for i in range(t):
            mask[i, max((i // 4 - 1) * 4, 0):min((i // 4 + 1) * 4, t)] = True
        return x.mean(-1)[:, None].masked_fill(mask, 0.0)
@forward(X4, dims="N=1:2:3 T=0:9:20", kinds=FEW, feeds=(values_at(X4, N=1, T=0), values_at(X4, N=3, T=1)), refused="the exported model differs from the module")
def A4907MeanOfNoSteps(self, x):
    """A mean over channels and one over steps where there are none, sums and a softmax."""
    return x.mean(-1), x.sum(1), x.softmax(1), x.mean(1)
@forward("x:float32[N,4]", dims="N=0:2:5", kinds=FEW, feeds=(lambda: {"x": np.zeros((0, 4), np.float32)},), refused="the exported model differs from the module")
def A4908BatchOfNone(self, x):
    """A batch of none through ordinary operators."""
    return x.amax(-1), x.argmax(-1), F.layer_norm(x, (4,)), x @ x.mT, x.sum(), (x > 0).all(), x.flip(0), x.sort(-1).values, F.one_hot(x.argmax(-1), 4)
@forward(XT, **FLAT)
def A4909LetterOfTheLoop(self, x):
    """A while loop over a float of the size that shrinks: rounds by a decimal."""
    s, n = float(x.shape[1]), 0
    while s > 1.5:
        s, n = s * 0.7, n + 1
    return x * n
