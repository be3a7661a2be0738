"""Sizes that meet values: boxes, ratios, masks, counts."""

from __future__ import annotations

import torch

from tests.adversary.attack import forward

B = ("x:float32[N,3,H,W]", "b:float32[N,4]=0:1")


D = "N=1:1:3 H=2:6:12 W=2:7:12"


@forward(*B, dims=D)
def whwh(self, x, b):
    h, w = x.shape[-2:]
    return b * torch.tensor([w, h, w, h]), x.mean((2, 3))


@forward(*B, dims=D)
def ratio(self, x, b):
    h, w = x.shape[-2:]
    return b * torch.as_tensor(h / w), x.mean((2, 3))


@forward(*B, dims=D)
def full_area(self, x, b):
    h, w = x.shape[-2:]
    return torch.full((x.shape[0],), h * w), b, x.mean((2, 3))


@forward(*B, dims=D)
def tensor_of_ratio(self, x, b):
    h, w = x.shape[-2:]
    return b * torch.tensor([w / 12, h / 12, w / 12, h / 12]), x.mean((2, 3))


@forward("m:float32[N,M,9,7]", dims="N=1:1:2 M=1:3:4")
def boxes_of_masks(self, m):
    inter = (m > 0.5).sum(-1, dtype=torch.int32).sum(-1, dtype=torch.int32)
    union = (m > -0.5).sum(-1, dtype=torch.int32).sum(-1, dtype=torch.int32)
    b = m > 0
    h, w = b.shape[-2:]
    ih = b.max(-1)[0]
    yc = ih * torch.arange(h)[None, None]
    bottom = yc.max(-1)[0]
    top = (yc + h * (~ih)).min(-1)[0]
    iw = b.max(-2)[0]
    xc = iw * torch.arange(w)[None, None]
    right, left = xc.max(-1)[0], (xc + w * (~iw)).min(-1)[0]
    empty = (right < left) | (bottom < top)
    return torch.stack([left, top, right, bottom], -1) * (~empty).unsqueeze(-1), inter / union


@forward("m:float32[N,M,9,7]", dims="N=1:1:2 M=1:3:4")
def sum_of_shorts(self, m):
    return (m > 0.5).sum(-1, dtype=torch.int16).sum(-1, dtype=torch.int32)


@forward("i:int32[N,T]=-40:40", "b:bool[N,T]", dims="N=1:2:3 T=2:6:12")
def half_sum_of_integers(self, i, b):
    return i.half().sum(1), b.sum(1) * 0.5


@forward("i:int64[N,T]=0:5", dims="N=1:2:3 T=2:6:12")
def one_hot_of_what_is_there(self, i):
    return i.diff(dim=1), torch.isin(i, torch.tensor([1, 4])), i.all(1), torch.logical_not(i), i.argmax(1)
