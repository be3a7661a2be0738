# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Pictures and points: camera pipelines, OCR heads, trackers, point clouds, sliding windows, masks, warps."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, constant, halves
from tests.adversary.values import at_sides as at

P = "x:float32[N,2,H,W]=-4:4"
D = "N=1:1:2 H=2:8:14 W=2:8:14"


@forward("x:int32[N,H,W]=0:1023", dims="N=1:1:2 H=2:6:12%2 W=2:8:12%2",
         feeds=(lambda: {"x": np.full((1, 4, 4), 1023, np.int32)}, lambda: {"x": np.zeros((1, 2, 2), np.int32)}, lambda: {"x": (np.arange(144).reshape(1, 12, 12) * 37 % 1024).astype(np.int32)}))  # fmt: skip
def A7204Bayer(self, x):
    """A raw frame of ten bits: black level in integers, RGGB phases, white balance, gamma by a table, to bytes."""
    v = (x - 64).clamp(min=0)
    r, g1, g2, b = v[:, ::2, ::2], v[:, ::2, 1::2], v[:, 1::2, ::2], v[:, 1::2, 1::2]
    g = (g1 + g2) >> 1
    rgb = torch.stack((r * 2, g, (b * 3) // 2), 1).clamp(max=959)
    lut = ((torch.arange(960) / 959.0) ** (1 / 2.2) * 255).round().to(torch.uint8)
    full = F.interpolate(rgb.float(), scale_factor=2, mode="bilinear")
    return lut[rgb.long()], full, (rgb == 959).any(1).sum((1, 2))


class Decoded(NamedTuple):
    ids: torch.Tensor
    length: torch.Tensor
    score: torch.Tensor


@attack("x:float32[N,1,8,W]=-2:2", dims="N=1:2:3 W=4:16:33", kinds=FINITE,
        feeds=tuple(lambda s=s: {"x": (np.random.RandomState(s[3]).randint(-4, 5, s) / 2).astype(np.float32)} for s in ((1, 1, 8, 4), (3, 1, 8, 33), (2, 1, 8, 7))))  # fmt: skip
class A7205OcrHead(nn.Module):
    """CRNN: columns of features, a GRU both ways, greedy CTC packed to the left by a stable argsort, zeros after."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.conv = nn.Conv2d(1, 4, 3, stride=(2, 1), padding=1)
        self.rnn = nn.GRU(4, 3, bidirectional=True, batch_first=True)
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        f = F.relu(self.conv(x)).amax(2).transpose(1, 2)
        p = self.head(self.rnn(f)[0]).log_softmax(-1)
        best, ids = p.max(-1)
        prev = F.pad(ids, (1, 0), value=-1)[:, :-1]
        keep = (ids != prev) & (ids != 0)
        order = torch.argsort((~keep).int(), dim=1, stable=True)
        packed = torch.where(keep, ids, 0).gather(1, order)
        return Decoded(packed, keep.sum(1), (best * keep).sum(1))


@forward("x:float32[A,4]=0:10", "y:float32[B,4]=0:10", dims="A=1:4:6 B=1:3:6", kinds=FINITE,
         feeds=(lambda: {"x": np.tile(np.array([[1, 1, 2, 2]], np.float32), (6, 1)), "y": np.tile(np.array([[1, 1, 2, 2]], np.float32), (6, 1))}, lambda: {"x": np.zeros((1, 4), np.float32), "y": np.zeros((6, 4), np.float32)}))  # fmt: skip
def A7206GreedyMatch(self, x, y):
    """SORT's matching done greedily for three rounds: the best pair over the flat matrix, its row and column struck out."""
    a = torch.cat((x[:, :2], x[:, :2] + x[:, 2:]), 1)
    b = torch.cat((y[:, :2], y[:, :2] + y[:, 2:]), 1)
    wh = (torch.minimum(a[:, None, 2:], b[None, :, 2:]) - torch.maximum(a[:, None, :2], b[None, :, :2])).clamp(min=0)
    inter = wh.prod(-1)
    cost = inter / (x[:, None, 2:].prod(-1) + y[None, :, 2:].prod(-1) - inter + 1)
    taken = torch.full((x.shape[0],), -1, dtype=torch.long)
    n = y.shape[0]
    for _ in range(3):
        flat = cost.reshape(-1).argmax()
        i, j = flat // n, flat % n
        ok = cost[i, j] > 0.05
        taken = torch.where((torch.arange(x.shape[0]) == i) & ok, j, taken)
        cost = cost.index_fill(0, i.view(1), -1.0).index_fill(1, j.view(1), -1.0)
    return taken, cost, (taken < 0).nonzero()


@forward("x:float32[N,P,3]=-4:4", dims="N=1:1:2 P=4:12:24", kinds=FINITE,
         feeds=(halves(1, 4, 3), halves(2, 24, 3), *constant((1, 9, 3), value=1.0)))  # fmt: skip
def A7207FarthestPoints(self, x):
    """PointNet++: four farthest points (the first of ties), a ball query with the first index repeated, the group's maximum."""
    n, p, _ = x.shape
    dist = x.new_full((n, p), 1e10)
    far = torch.zeros(n, dtype=torch.long)
    rows = torch.arange(n)
    picked = []
    for _ in range(4):
        picked.append(far)
        c = x[rows, far][:, None]
        dist = torch.minimum(dist, ((x * 4).round() - (c * 4).round()).square().sum(-1))
        far = dist.argmax(-1)
    idx = torch.stack(picked, 1)
    centre = x[rows[:, None], idx]
    d = ((centre[:, :, None] * 4).round() - (x[:, None] * 4).round()).square().sum(-1)
    group = torch.arange(p).expand(n, 4, p).clone()
    group[d > 64] = p
    group = group.sort(-1).values[..., :4]
    first = group[..., :1].expand_as(group)
    group = torch.where(group == p, first, group)
    feats = x[rows[:, None, None], group] - centre[:, :, None]
    return idx, feats.amax(2), (d <= 64).sum(-1)


@attack(P, dims="N=1:1:2 H=6:10:17 W=6:9:17", kinds=FINITE, feeds=at(P, hw=((6, 6), (7, 17), (12, 12), (17, 16))))
class A7208SlidingWindow(nn.Module):
    """MONAI: windows of six by stride four laid over a padded volume by unfold, a net, a gaussian blend folded back, cut."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.net = weight_norm(nn.Conv2d(2, 3, 3, padding=1))
        g = torch.exp(-((torch.arange(6) - 2.5) ** 2) / 4)
        self.register_buffer("w", g[:, None] * g)

    def forward(self, x):
        n, c, h, w = x.shape
        ph, pw = (-(h - 6)) % 4, (-(w - 6)) % 4
        y = F.pad(x, (pw // 2, pw - pw // 2, ph // 2, ph - ph // 2), mode="constant", value=0.5)
        hh, ww = y.shape[-2:]
        u = F.unfold(y, 6, stride=4)
        t = u.shape[-1]
        win = u.transpose(1, 2).reshape(n * t, c, 6, 6)
        z = (self.net(win) * self.w).reshape(n, t, 3 * 36).transpose(1, 2)
        out = F.fold(z, (hh, ww), 6, stride=4)
        norm = F.fold(self.w.reshape(1, 36, 1).expand(1, 36, t), (hh, ww), 6, stride=4)
        return (out / norm)[..., ph // 2 : ph // 2 + h, pw // 2 : pw // 2 + w], u.new_tensor([t])


class Pad(Enum):
    ZEROS = "zeros"
    BORDER = "border"


@attack(P, "f:float32[N,2,H,W]=-3:3", dims=D, kinds=FINITE, feeds=at(P, "f:float32[N,2,H,W]=-3:3", hw=((2, 2), (3, 14), (8, 7), (14, 14))))
class A7209FlowWarp(nn.Module):
    """A ramp warped by a flow in pixels, a forward-backward check, an enum that chooses the border, spectral norm after."""

    border = Pad.BORDER

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.c = spectral_norm(nn.Conv2d(2, 2, 1))

    def warp(self, v, flow):
        h, w = v.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        base = torch.stack((xs, ys)).to(v)[None] + flow
        size = torch.tensor([w - 1, h - 1]).clamp(min=1).view(1, 2, 1, 1)
        return F.grid_sample(v, (base / size * 2 - 1).permute(0, 2, 3, 1), padding_mode=self.border.value, align_corners=True)

    def forward(self, x, f):
        h, w = x.shape[-2:]
        ramp = x.mean((2, 3), keepdim=True) + torch.linspace(0, 1, w) + torch.linspace(0, 1, h)[:, None]
        back = self.warp(ramp, f)
        return back, self.c(back), (f.abs().amax(1, keepdim=True) > 1.5).float() * x


@forward("x:float32[N,H,W]=-4:4", dims="N=1:1:2 H=3:8:12 W=3:7:12", kinds=FINITE, feeds=(halves(1, 3, 3), halves(2, 12, 12), halves(1, 5, 12)))
def A7210Components(self, x):
    """Connected components by twelve rounds of spreading the greatest label through a maximum pool, then boxes of the largest."""
    m = (x > 0).float()
    n, h, w = x.shape
    lab = (torch.arange(h * w, dtype=torch.float32).view(1, h, w) + 1) * m
    for _ in range(12):
        lab = F.max_pool2d(lab[:, None], 3, 1, 1)[:, 0] * m
    flat = lab.flatten(1).long()
    count = torch.zeros(n, h * w + 1, dtype=torch.long).scatter_add_(1, flat, torch.ones_like(flat))
    count[:, 0] = 0
    best = count.argmax(1)
    mask = lab == best[:, None, None]
    rows, cols = mask.any(2), mask.any(1)
    y0, x0 = rows.int().argmax(1), cols.int().argmax(1)
    y1, x1 = h - rows.flip(1).int().argmax(1), w - cols.flip(1).int().argmax(1)
    return lab, torch.stack((x0, y0, x1, y1), 1), count.amax(1)


@forward("x:uint8[H,W,3]", dims="H=2:8:16 W=2:8:16",
         feeds=(lambda: {"x": np.full((3, 4, 3), 255, np.uint8)}, lambda: {"x": (np.arange(768) * 91 % 256).reshape(16, 16, 3).astype(np.uint8)}))  # fmt: skip
def A7211Yuv(self, x):
    """Bytes to NV12 by BT.601 in integers with shifts, chroma from every second pixel, and back to RGB in bytes."""
    v = x.int()
    r, g, b = v.unbind(-1)
    y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16
    u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128
    w = ((112 * r - 94 * g - 18 * b + 128) >> 8) + 128
    uv = torch.stack((u[::2, ::2], w[::2, ::2]), -1)
    big = uv.repeat_interleave(2, 0).repeat_interleave(2, 1)[: x.shape[0], : x.shape[1]]
    c, d, e = y - 16, big[..., 0] - 128, big[..., 1] - 128
    rgb = torch.stack(((298 * c + 409 * e + 128) >> 8, (298 * c - 100 * d - 208 * e + 128) >> 8, (298 * c + 516 * d + 128) >> 8), -1).clamp(0, 255)
    return y.to(torch.uint8), uv.to(torch.uint8), rgb.to(torch.uint8), uv.flatten(1)


@forward("x:float32[N,4,H,W]=-4:4", dims="N=1:1:2 H=4:8:13 W=4:8:13", kinds=FINITE, feeds=at("x:float32[N,4,H,W]=-4:4", hw=((4, 4), (5, 13), (7, 7), (13, 12))), target="tensorrt==10")  # fmt: skip
def A7212SwinShift(self, x):
    """Windows of four, shifted by two over a padded map, with Swin's mask made from region numbers by slices."""
    n, c, h, w = x.shape
    y = F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4)).permute(0, 2, 3, 1)
    hp, wp = y.shape[1:3]
    img = torch.zeros(1, hp, wp, 1)
    cnt = 0
    for hs in (slice(0, -4), slice(-4, -2), slice(-2, None)):
        for ws in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            img[:, hs, ws] = cnt
            cnt += 1

    def part(v):
        return v.view(v.shape[0], hp // 4, 4, wp // 4, 4, -1).transpose(2, 3).reshape(-1, 16, v.shape[-1])

    m = part(img).squeeze(-1)
    mask = (m[:, None] != m[:, :, None]).float() * -100.0
    t = part(torch.roll(y, (-2, -2), (1, 2)))
    a = t @ t.mT / 2
    a = (a.view(n, -1, 16, 16) + mask).view(-1, 16, 16).softmax(-1) @ t
    o = a.view(n, hp // 4, wp // 4, 4, 4, c).transpose(2, 3).reshape(n, hp, wp, c)
    return torch.roll(o, (2, 2), (1, 2))[:, :h, :w].permute(0, 3, 1, 2), mask.sum((1, 2))


@forward(P, dims="N=1:1:2 H=2:8:13 W=2:8:13", kinds=FINITE, feeds=(halves(1, 2, 2, 2), halves(2, 2, 13, 13), halves(1, 2, 7, 4)))
def A7213Heatmap(self, x):
    """Pose: the argmax with a quarter shift by the sign of the neighbours, at the edge no shift; soft-argmax and its spread."""
    n, k, h, w = x.shape
    v, i = x.flatten(2).max(-1)
    px, py = i % w, torch.div(i, w, rounding_mode="floor")
    pad = F.pad(x, (1, 1, 1, 1)).flatten(2)
    at_ = lambda dy, dx: pad.gather(2, ((py + 1 + dy) * (w + 2) + px + 1 + dx)[..., None])[..., 0]  # noqa: E731
    inside = (px > 0) & (px < w - 1) & (py > 0) & (py < h - 1)
    dx, dy = torch.sign(at_(0, 1) - at_(0, -1)) * 0.25, torch.sign(at_(1, 0) - at_(-1, 0)) * 0.25
    xy = torch.stack((px + dx * inside, py + dy * inside), -1)
    p = x.flatten(2).softmax(-1).view_as(x)
    mx, my = (p.sum(2) * torch.arange(w)).sum(-1), (p.sum(3) * torch.arange(h)).sum(-1)
    return torch.where((v > 0)[..., None], xy, -1.0), torch.stack((mx, my), -1)


@forward("x:float32[N,2,D,H,W]=-4:4", dims="N=1:1:1 D=1:4:6 H=2:4:6 W=2:5:6", kinds=FINITE, target="tensorrt==8.6",
         feeds=(lambda: {"x": np.zeros((1, 2, 1, 2, 2), np.float32)}, lambda: {"x": (np.random.RandomState(2).randint(-6, 7, (1, 2, 6, 6, 6)) / 2).astype(np.float32)}))  # fmt: skip
def A7214Dice(self, x):
    """A segmentation's ends: argmax over classes, one-hot, boundaries by erosion, surface counts, centres of mass, flips averaged."""
    p = (x.softmax(1) + x.flip(-1).softmax(1).flip(-1)) / 2
    lab = p.argmax(1)
    oh = F.one_hot(lab, 2).movedim(-1, 1).float()
    er = -F.max_pool3d(-F.pad(oh, (1,) * 6), 3, 1)
    edge = (oh - er) > 0
    vol = oh.sum((2, 3, 4))
    grids = torch.meshgrid(*(torch.arange(s, dtype=torch.float32) for s in x.shape[2:]), indexing="ij")
    com = torch.stack([(oh * g).sum((2, 3, 4)) for g in grids], -1) / vol.clamp(min=1)[..., None]
    return lab, edge.sum((2, 3, 4)), com
