"""Wide ranges in which few sizes come out otherwise: indices from floats by linspace, quantiles, nearest neighbours, adaptive windows, hops."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import make


def at(text: str, name: str, *values: int):
    """Points at these sizes of one dim."""
    return tuple(partial(make, (text,), {name: v}, "normal", 4) for v in values)


@forward("x:float32[1,T,2]=-2:2", dims="T=2:32:400", kinds=FINITE, feeds=at("x:float32[1,T,2]=-2:2", "T", *range(2, 400, 7)))
def A7485FramesByLinspace(self, x):
    """TSN and SlowFast take frames at linspace(0, T - 1, k).long(), at rounded ones, and at (arange + 0.5) * T / k."""
    t = x.shape[1]
    a = torch.linspace(0, t - 1, 8).long()
    b = torch.linspace(0, t - 1, 15).round().long()
    c = ((torch.arange(6) + 0.5) * (t / 6)).long()
    d = torch.linspace(0, t - 1, max(t // 4, 1)).long()
    return x[:, a], x[:, b], x[:, c], x[:, d], x.index_select(1, torch.linspace(1, t, 11).floor().long() - 1)


@forward("x:float32[1,2,H,3]=-2:2", dims="H=2:32:400", kinds=FINITE, feeds=at("x:float32[1,2,H,3]=-2:2", "H", *range(3, 400, 7)))
def A7486NearestToFixed(self, x):
    """Nearest interpolation to fixed sizes from any, by scale factors that are not whole, exact nearest, adaptive pools to 7 and 6."""
    a = F.interpolate(x, size=(24, 3), mode="nearest")
    b = F.interpolate(x, size=(14, 5), mode="nearest-exact")
    c = F.interpolate(x, scale_factor=(0.6, 1.0), mode="nearest")
    d = F.adaptive_avg_pool2d(x, (7, 1))
    e = F.adaptive_max_pool2d(x, (6, 2))
    return a, b, c, d, e


@forward("x:float32[1,T]=-2:2", dims="T=2:21:400", kinds=FINITE, feeds=at("x:float32[1,T]=-2:2", "T", *range(4, 400, 7), 11, 21, 31, 41, 101, 201))
def A7487QuantilesBySize(self, x):
    """Quantiles whose place q * (T - 1) is whole at some sizes, lower, higher and nearest; trimmed means of int(0.1 * T); kthvalue of ceil(0.3 * T)."""
    t = x.shape[1]
    a = [torch.quantile(x, q, dim=1, interpolation=m) for q in (0.1, 0.35, 0.7, 0.9) for m in ("lower", "higher", "nearest")]
    k = int(0.1 * t)
    s = x.sort(1)[0]
    b = s[:, k : t - k].mean(1)
    c = x.kthvalue(math.ceil(0.3 * t), dim=1)[0]
    d = x.topk(max(1, int(t * 0.07)), dim=1)[0]
    return torch.stack(a), b, c, d


@forward("x:float32[1,T]=-2:2", dims="T=2:21:400", kinds=FINITE, feeds=at("x:float32[1,T]=-2:2", "T", *range(5, 400, 7)))
def A7488HopsInFloats(self, x):
    """round() of halves of sizes, T ** 0.5, log2, arange by a float step of 1 / T, buckets of positions i * 8 / T, floor of T * 1.1, hops of T / 100 seconds."""
    t = x.shape[1]
    a = F.pad(x, (0, round(t * 0.5))), x[:, : int(t**0.5)], x[:, : int(math.log2(t)) + 1]
    b = torch.arange(0, 1, 1 / t)[:t] * x
    i = torch.arange(t)
    c = torch.zeros(1, 8).index_add(1, (i * 8 / t).long(), x)
    d = torch.zeros(1, 7).index_add(1, torch.floor(i / t * 7).long(), x)
    e = torch.zeros(1, 10).index_add(1, (i.float() / t * 10).long(), x)
    return *a, b, c, d, e, F.pad(x, (0, math.floor(t * 1.1) - t)), x[:, :: max(1, round(t / 40))]


@forward("x:float32[1,T]=0:1", dims="T=2:21:200", kinds=("unit", "ones", "zeros", "positive"))
def A7489BinsOfValues(self, x):
    """Histograms and bins of values at edges: histc of 10 bins, (x * 10).long(), bucketize by linspace and by arange of tenths, // 0.1, searchsorted in cumulated weights."""
    h = torch.histc(x[0], 10, 0.0, 1.0)
    a = (x * 10).long() + (x / 0.1).floor().long() * 100 + (x // 0.1).long() * 10000
    b = torch.bucketize(x, torch.linspace(0, 1, 11)) + 100 * torch.bucketize(x, torch.arange(0, 1.1, 0.1), right=True)
    c = torch.searchsorted(torch.tensor([0.1, 0.2, 0.3, 0.4]).cumsum(0), x)
    return h, a, b, c, (x * 255).to(torch.uint8), (x * 255 + 0.5).clamp(0, 255).to(torch.uint8), torch.round(x * 20) / 20


@forward("x:float32[1,2,H,W]=-2:2", dims="H=2:9:64 W=2:7:64", kinds=FINITE)
def A7490WarpsByGrids(self, x):
    """Identity and shifted grids sampled by nearest: affine_grid both corners, meshgrids of linspace, rotations by 90 degrees, pixel grids normalised by 2 * i / (W - 1) - 1."""
    h, w = x.shape[-2:]
    th = torch.tensor([[[1.0, 0, 0], [0, 1.0, 0]]])
    a = F.grid_sample(x, F.affine_grid(th, list(x.shape), align_corners=False), mode="nearest", align_corners=False)
    b = F.grid_sample(x, F.affine_grid(th, list(x.shape), align_corners=True), mode="nearest", align_corners=True)
    yy, xx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    g = torch.stack([2.0 * xx / max(w - 1, 1) - 1, 2.0 * yy / max(h - 1, 1) - 1], -1)[None]
    c = F.grid_sample(x, g, mode="bilinear", align_corners=True)
    d = F.grid_sample(x, g, mode="nearest", align_corners=True)
    return a, b, c, d
