"""Wrappers and pipelines: letterbox + net + decode, tiles with overlap, flips, ensembles, the best of k, streaming caches."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


def small(c: int = 3, o: int = 4) -> nn.Module:
    return nn.Sequential(nn.Conv2d(c, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, o, 3, padding=1))


@attack("x:uint8[H,W,3]=0:255", dims="H=10:20:40 W=12:24:40")
class A7671LetterboxNetDecode(nn.Module):
    """HWC bytes, resized to fit 32x32 keeping the ratio (rounded in Python), padded with 114, a net, boxes mapped back and clipped."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small(3, 5)

    def forward(self, x: torch.Tensor):
        h, w = x.shape[:2]
        r = min(32 / h, 32 / w)
        nh, nw = round(h * r), round(w * r)
        t, left = (32 - nh) // 2, (32 - nw) // 2
        y = F.interpolate(x.permute(2, 0, 1)[None].float() / 255, (nh, nw), mode="bilinear", align_corners=False)
        y = F.pad(y, (left, 32 - nw - left, t, 32 - nh - t), value=114 / 255)
        p = F.avg_pool2d(self.net(y), 8).flatten(2).transpose(1, 2)[0]
        xy = (p[:, :2].sigmoid() * 32 - torch.tensor([left, t])) / r
        wh = p[:, 2:4].exp() * 4 / r
        lo = torch.maximum(xy - wh / 2, torch.zeros(2))
        hi = torch.minimum(xy + wh / 2, torch.tensor([w, h], dtype=torch.float32))
        return torch.cat([lo, hi, p[:, 4:].sigmoid()], 1)


@attack("x:float32[1,3,H,W]", dims="H=16:24:41 W=16:20:37", kinds=FINITE)
class A7672TilesWithOverlap(nn.Module):
    """A picture is cut to 16x16 tiles with a stride of 12, the last ones moved inwards, the net's outputs averaged with a weight window."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small(3, 2)
        w = torch.minimum(torch.arange(1.0, 17), torch.arange(16.0, 0, -1))
        self.register_buffer("win", torch.outer(w, w) / 64)

    @staticmethod
    def starts(n: int) -> list[int]:
        s = list(range(0, n - 16, 12))
        return [*s, n - 16]

    def forward(self, x: torch.Tensor):
        _, _, h, w = x.shape
        out, norm = torch.zeros(1, 2, h, w), torch.zeros(1, 1, h, w)
        for i in self.starts(h):
            for j in self.starts(w):
                out[:, :, i : i + 16, j : j + 16] += self.net(x[:, :, i : i + 16, j : j + 16]) * self.win
                norm[:, :, i : i + 16, j : j + 16] += self.win
        return out / norm


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=6:9:14 W=6:10:15", kinds=FINITE)
class A7673FlipsAndScales(nn.Module):
    """Test-time augmentation: identity, flip, transpose and 1.5 times larger, put back and averaged; agreement as a share of equal argmaxes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small()

    def forward(self, x: torch.Tensor):
        ways = [(lambda t: t, lambda t: t), (lambda t: t.flip(-1), lambda t: t.flip(-1)), (lambda t: t.mT, lambda t: t.mT)]
        y = [b(self.net(f(x)).softmax(1)) for f, b in ways]
        big = self.net(F.interpolate(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=False)).softmax(1)
        y.append(F.interpolate(big, size=x.shape[-2:], mode="area"))
        m = torch.stack(y).mean(0)
        return m, (y[0] + 0.01 * m).amax(1)


@attack("x:float32[N,6]", dims="N=1:3:7", kinds=FINITE)
class A7674EnsembleVote(nn.Module):
    """Five nets by functional_call over stacked weights with vmap; the trimmed mean, the entropy, mutual information."""

    def __init__(self) -> None:
        super().__init__()
        nets = [nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)) for _ in range(5)]
        from torch.func import stack_module_state

        params, buffers = stack_module_state(nets)
        self.stacked = nn.ParameterDict({k.replace(".", "_"): nn.Parameter(v.detach()) for k, v in params.items()})
        self.names = {k: k.replace(".", "_") for k in params}
        object.__setattr__(self, "base", nets[0])

    def forward(self, x: torch.Tensor):
        from torch.func import functional_call, vmap

        p = {k: self.stacked[n] for k, n in self.names.items()}
        y = vmap(lambda q, v: functional_call(self.base, q, (v,)), in_dims=(0, None))(p, x).softmax(-1)
        s = y.sort(0).values[1:-1].mean(0)
        h = -(s * s.clamp(min=1e-9).log()).sum(-1)
        return s, h - (-(y * y.clamp(min=1e-9).log()).sum(-1)).mean(0)


@attack("b:float32[K,4]=0:50", "s:float32[K]=0.1:1", dims="K=4:9:16", kinds=("normal", "unit"))
class A7675BestOfKWithSoftNms(nn.Module):
    """Keeps the best four by rounds of soft NMS with a Gaussian decay: argmax, gather, decay, and marks taken ones with -1."""

    def forward(self, b: torch.Tensor, s: torch.Tensor):
        b = torch.cat([b[:, :2], b[:, :2] + b[:, 2:] + 1], 1)
        area = (b[:, 2:] - b[:, :2]).prod(1)
        ids, vals = [], []
        for _ in range(4):
            v, i = s.max(0)
            box = b[i]
            inter = (torch.minimum(b[:, 2:], box[2:]) - torch.maximum(b[:, :2], box[:2])).clamp(min=0).prod(1)
            iou = inter / (area + area[i] - inter)
            s = s * torch.exp(-(iou**2) / 0.5)
            s = torch.where(torch.arange(s.shape[0]) == i, torch.full_like(s, -1.0), s)
            ids.append(i)
            vals.append(v)
        return torch.stack(ids), torch.stack(vals)


@attack("x:float32[N,3,T]", "c:float32[N,3,4]", "p:int64[]=0:100", dims="N=1:1:2 T=1:4:9", kinds=FINITE)
class A7676StreamingConvAndRing(nn.Module):
    """A causal conv with a cache of four frames handed in and out, a ring position modulo seven, and a rotary phase by the position."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 5)

    def forward(self, x: torch.Tensor, c: torch.Tensor, p: torch.Tensor):
        y = torch.cat([c, x], 2)
        out = self.conv(y)
        pos = p + torch.arange(x.shape[2])
        return out * torch.cos(pos * 0.1)[None, None], y[:, :, -4:], (p + x.shape[2]) % 7, pos % 7


@attack("x:float32[N,4]", dims="N=1:2:4", kinds=FINITE, refused="state that forward changes")
class A7677RunningMean(nn.Module):
    """A smoother that keeps the mean of the last outputs in a buffer between calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ema", torch.zeros(4))
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        y = self.lin(x)
        self.ema = 0.9 * self.ema + 0.1 * y.mean(0)
        return y - self.ema


@attack("x:float32[N,3,H,W]", dims="N=1:1:3 H=8:16:40 W=8:16:40", kinds=FINITE)
class A7678DownThenUpWithLimits(nn.Module):
    """Large pictures are shrunk to at most 400 pixels first (the factor by a square root), the mask is put back to the full size and thresholded."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small(3, 1)

    def forward(self, x: torch.Tensor):
        h, w = x.shape[-2:]
        y = x
        if h * w > 400:
            f = math.sqrt(400 / (h * w))
            y = F.interpolate(x, (max(8, int(h * f)), max(8, int(w * f))), mode="bilinear", antialias=False)
        m = self.net(y)
        m = F.interpolate(m, (h, w), mode="bicubic", align_corners=True)
        return m.sigmoid()
