# ruff: noqa: E501, RUF046 - attacks are written as users write them
"""Vision: positions, windows, crops, letter boxes, equalised pictures, masks."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import at_sides as at

P = "x:float32[N,3,H,W]=-4:4"
G = "x:float32[N,2,H,W]=-4:4"


@attack(
    P,
    dims="N=1:1:2 H=16:32:96%8 W=16:32:96%8",
    kinds=FINITE,
    feeds=at(P, hw=((32, 32), (16, 64), (64, 16), (96, 32), (24, 24), (56, 88))),
)
class A6900DinoPositions(nn.Module):
    """DINO's positions: as trained for the trained square, else bicubic with a tenth added to the sides."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 8, 8)
        self.cls, self.pos = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 17, 8))

    def forward(self, x):
        n, _, h, w = x.shape
        t = torch.cat((self.cls.expand(n, -1, -1), self.patch(x).flatten(2).mT), 1)
        if t.shape[1] - 1 == 16 and w == h:
            return t + self.pos
        h0, w0 = h // 8 + 0.1, w // 8 + 0.1
        grid = self.pos[:, 1:].reshape(1, 4, 4, 8).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, scale_factor=(h0 / 4, w0 / 4), mode="bicubic")
        assert grid.shape[-2:] == (int(h0), int(w0))
        return t + torch.cat((self.pos[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)), 1)


@attack(
    G,
    dims="N=1:1:2 H=3:12:25 W=3:12:25",
    kinds=FINITE,
    feeds=at(G, hw=((3, 25), (4, 4), (4, 5), (5, 5), (8, 8), (3, 3), (13, 4), (12, 24))),
    refused="the path through the module depends on the size",
)
class A6901SwinShift(nn.Module):
    """Windows of four, padded, shifted by half unless one window covers the smaller side; the mask forbids neighbours."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(2, 6)

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        k, s = 4, 2
        if min(h, w) <= k:
            s, k = 0, min(h, w)
        x = F.pad(x, (0, 0, 0, -w % k, 0, -h % k))
        hp, wp = x.shape[1:3]
        if s:
            x = torch.roll(x, (-s, -s), (1, 2))
        win = x.view(n, hp // k, k, wp // k, k, c).transpose(2, 3).reshape(-1, k * k, c)
        q, kk, v = self.qkv(win).chunk(3, -1)
        a = q @ kk.mT / math.sqrt(c)
        if s:
            ids = torch.zeros(1, hp, wp)
            i = 0
            for hs in (slice(0, -k), slice(-k, -s), slice(-s, None)):
                for ws in (slice(0, -k), slice(-k, -s), slice(-s, None)):
                    ids[:, hs, ws] = i
                    i += 1
            ids = ids.view(1, hp // k, k, wp // k, k).transpose(2, 3).reshape(-1, k * k)
            m = (ids[:, None] != ids[:, :, None]).float() * -100
            a = (a.view(n, -1, k * k, k * k) + m).view(-1, k * k, k * k)
        y = (a.softmax(-1) @ v).view(n, hp // k, wp // k, k, k, c).transpose(2, 3).reshape(n, hp, wp, c)
        if s:
            y = torch.roll(y, (s, s), (1, 2))
        return y[:, :h, :w]


@forward(
    "x:uint8[H,W,3]",
    dims="H=20:48:120 W=20:64:120",
    feeds=at("x:uint8[H,W,3]=0:255", hw=((120, 20), (64, 64), (20, 119), (33, 97), (96, 64))),
)
def A6902SamPreprocess(self, x):
    """SAM: the longest side to 64 by int(side * scale + 0.5), normalised, padded at the right and below."""
    h, w = x.shape[:2]
    s = 64 / max(h, w)
    nh, nw = int(h * s + 0.5), int(w * s + 0.5)
    y = x.permute(2, 0, 1)[None].float()
    y = F.interpolate(y, (nh, nw), mode="bilinear", align_corners=False)
    y = (y - torch.tensor([123.675, 116.28, 103.53]).view(3, 1, 1)) / torch.tensor([58.395, 57.12, 57.375]).view(
        3, 1, 1
    )
    return F.pad(y, (0, 64 - nw, 0, 64 - nh))


@forward(
    "x:uint8[H,W,3]",
    dims="H=20:48:130 W=20:64:130",
    feeds=at("x:uint8[H,W,3]=0:255", hw=((128, 20), (64, 64), (64, 61), (128, 125), (63, 64), (32, 31))),
    refused="the path through the module depends on the size",
)
def A6903LetterBox(self, x):
    """YOLO's letter box: round half to even, a border of 114 halved with a tenth to the one side, never enlarged."""
    h, w = x.shape[:2]
    r = min(64 / h, 64 / w, 1.0)
    nh, nw = round(h * r), round(w * r)
    y = x.permute(2, 0, 1)[None].float()
    if (nh, nw) != (h, w):
        y = F.interpolate(y, (nh, nw), mode="bilinear")
    dw, dh = (64 - nw) / 2, (64 - nh) / 2
    pad = (round(dw - 0.1), round(dw + 0.1), round(dh - 0.1), round(dh + 0.1))
    return F.pad(y, pad, value=114.0) / 255, torch.tensor([r, dw, dh])


EQ = tuple(
    (lambda a=a: {"x": np.array(a, np.uint8)})
    for a in (
        np.full((8, 9), 7),
        np.eye(8) * 255,
        np.arange(255)[:, None] // np.array([1, 2]),
        np.full((16, 16), 255),
        np.repeat([[0, 1]], 300, 0).T[:, :300],
    )
)


@forward("x:uint8[H,W]", dims="H=2:8:300 W=2:9:300", feeds=EQ)
def A6904Equalise(self, x):
    """PIL's equalisation by a table; a step of zero leaves the picture as it is."""
    f = x.flatten().long()
    hist = torch.zeros(256, dtype=torch.int64).scatter_add(0, f, torch.ones_like(f))
    last = hist[f.max()]
    step = (f.numel() - last) // 255
    lut = (hist.cumsum(0) + step // 2) // step.clamp(min=1)
    lut = torch.cat((torch.zeros(1, dtype=torch.int64), lut[:-1])).clamp(0, 255)
    return torch.where(step == 0, x, lut[x.long()].to(torch.uint8))


@forward("m:bool[H,W]", dims="H=1:6:12 W=1:6:12")
def A6905Components(self, m):
    """Connected components: labels spread by max pooling as often as both sides together."""
    h, w = m.shape
    lab = (torch.arange(h * w, dtype=torch.float32).view(1, 1, h, w) + 1) * m
    for _ in range(h + w):
        lab = F.max_pool2d(lab, 3, 1, 1) * m
    size = (lab.flatten()[:, None] == lab.flatten()).sum(1).view(h, w) * m
    return lab, size, (size == size.max()) & m


@forward(G, dims="N=1:1:2 H=5:12:37 W=5:12:37", kinds=FINITE, feeds=at(G, hw=((8, 8), (9, 16), (5, 5), (33, 36))))
def A6906Unshuffled(self, x):
    """Reflection to multiples of four, pixels to channels, back, and cut; even sides go without reflection."""
    h, w = x.shape[2:]
    b, r = (4 - h % 4) % 4, (4 - w % 4) % 4
    y = F.pad(x, (0, r, 0, b), mode="reflect") if b or r else x
    z = F.pixel_unshuffle(y, 4)
    z = z - z.mean(1, keepdim=True) if (h + w) % 11 else z
    return F.pixel_shuffle(z, 4)[..., :h, :w]


@forward(G, "m:bool[N,H,W]", dims="N=1:1:2 H=1:6:12 W=1:6:12", kinds=FINITE)
def A6907CentroidHead(self, x, m):
    """Centres and boxes of masks: an empty mask has a centre that is no number, replaced; its box is inside out."""
    h, w = m.shape[1:]
    ys, xs = torch.arange(h).view(1, h, 1), torch.arange(w).view(1, 1, w)
    c = m.sum((1, 2))
    cy, cx = (ys * m).sum((1, 2)) / c, (xs * m).sum((1, 2)) / c
    box = torch.stack(
        (
            xs.masked_fill(~m, w).amin((1, 2)),
            ys.masked_fill(~m, h).amin((1, 2)),
            xs.masked_fill(~m, -1).amax((1, 2)),
            ys.masked_fill(~m, -1).amax((1, 2)),
        ),
        1,
    )
    f = (x * m[:, None]).sum((2, 3)) / c[:, None]
    return torch.stack((cy, cx), 1).nan_to_num(0.5), box, torch.where(f.isnan(), x.mean((2, 3)), f)


@forward(
    G,
    dims="N=1:1:2 H=1:12:40 W=1:12:40",
    kinds=FINITE,
    feeds=at(G, hw=((9, 11), (11, 9), (17, 13), (15, 15), (12, 12), (40, 3))),
)
def A6908CentreCrop(self, x):
    """torchvision's centre crop of 12: padded where smaller, the corner rounded half to even."""
    h, w = x.shape[2:]
    c = 12
    if c > w or c > h:
        x = F.pad(
            x,
            (
                (c - w) // 2 if c > w else 0,
                (c - w + 1) // 2 if c > w else 0,
                (c - h) // 2 if c > h else 0,
                (c - h + 1) // 2 if c > h else 0,
            ),
        )
        h, w = x.shape[2:]
        if (h, w) == (c, c):
            return x
    top, left = int(round((h - c) / 2.0)), int(round((w - c) / 2.0))
    return x[..., top : top + c, left : left + c]


@forward(
    G,
    dims="N=1:1:2 H=1:16:33 W=1:16:33",
    kinds=FINITE,
    feeds=at(G, hw=((1, 1), (2, 3), (1, 33), (31, 17), (16, 16))),
    refused="the path through the module depends on the size",
)
def A6909Pyramid(self, x):
    """A Laplacian pyramid: halves by area, back by aligned corners, as deep as the smaller side allows."""
    out, y = [], x
    depth = min(3, int(math.log2(min(x.shape[2:]))))
    for _ in range(depth):
        d = F.interpolate(y, scale_factor=0.5, mode="area")
        out.append((y - F.interpolate(d, y.shape[2:], mode="bilinear", align_corners=True)).abs().mean((1, 2, 3)))
        y = d
    return torch.stack([*out, y.mean((1, 2, 3))]).sum(0), F.interpolate(y, x.shape[2:], mode="nearest-exact")


@attack(
    G,
    dims="N=1:1:2 H=8:12:30 W=8:12:30",
    kinds=FINITE,
    feeds=at(G, hw=((8, 8), (14, 20), (9, 15), (30, 8), (29, 29))),
    refused="the path through the module depends on the size",
)
class A6910Tiles(nn.Module):
    """Tiles of eight every six, the last one flush with the border; what overlaps is averaged."""

    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(2, 2, 3, 1, 1)

    def forward(self, x):
        h, w = x.shape[2:]
        y, c = torch.zeros_like(x), torch.zeros(1, 1, h, w)
        ys = sorted({min(i, h - 8) for i in range(0, h, 6)})
        xs = sorted({min(i, w - 8) for i in range(0, w, 6)})
        for i in ys:
            for j in xs:
                y[:, :, i : i + 8, j : j + 8] += self.net(x[:, :, i : i + 8, j : j + 8])
                c[:, :, i : i + 8, j : j + 8] += 1
        return y / c


@forward(
    G, dims="N=1:1:2 H=8:24:60 W=8:24:60", kinds=FINITE, feeds=at(G, hw=((24, 24), (25, 24), (60, 8), (47, 23), (8, 8)))
)
def A6911Thumb(self, x):
    """A thumbnail with antialias, never enlarged, of at least one pixel, the aspect kept by rounding."""
    h, w = x.shape[2:]
    if max(h, w) > 24:
        s = max(h, w) / 24
        x = F.interpolate(x, (max(1, round(h / s)), max(1, round(w / s))), mode="bilinear", antialias=True)
    return x.clamp(-1, 1), x.mean((2, 3))


@attack(G, dims="N=1:1:2 H=2:12:26 W=2:12:26", kinds=FINITE, feeds=at(G, hw=((2, 3), (6, 6), (7, 13), (4, 25), (5, 5))))
class A6912PyramidPool(nn.Module):
    """PSPNet's bins of 1, 2, 3 and 6 over maps that may be smaller than the bins."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(2, 2, 1) for _ in range(4))

    def forward(self, x):
        out = [x]
        for conv, b in zip(self.convs, (1, 2, 3, 6), strict=True):
            p = F.adaptive_max_pool2d(x, b) if b == 3 else F.adaptive_avg_pool2d(x, b)
            out.append(F.interpolate(conv(p), x.shape[2:], mode="bilinear", align_corners=b == 2))
        return torch.cat(out, 1)


@forward(G, dims="N=1:1:2 H=2:12:21 W=2:12:21", kinds=FINITE, feeds=at(G, hw=((2, 2), (3, 21), (20, 20), (21, 21))))
def A6913Unpooled(self, x):
    """SegNet: the places of maxima in pooling with a ceiling, and back to them; ties go to the first."""
    y, i = F.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True)
    return F.max_unpool2d(y, i, 2, 2, output_size=x.shape[2:]), i % x.shape[3]
