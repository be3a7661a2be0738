"""Parts of vision and speech networks at rare sizes (1, odd, H != W) and rare values."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

ROOM = "N=1:2:3 H=2:9:21 W=2:12:20"
WIDE = "N=1:1:3 H=1:8:33 W=1:11:30"
LINE = "N=1:2:4 T=1:12:40"


@forward(
    "x:float32[N,2,H,W]", dims=WIDE, kinds=FINITE, feeds=(halves(1, 2, 1, 1), halves(2, 2, 6, 5), halves(1, 2, 33, 30))
)
def A3302PoolPlaces(self, x):
    y, i = F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)
    rows, columns = i // x.shape[-1], i % x.shape[-1]
    return y, rows, columns, F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)


@attack(
    "x:float32[N,3,H,W]",
    dims="N=1:1:2 H=8:32:88 W=8:48:96",
    kinds=("normal", "ones"),
    feeds=(normal(1, 3, 8, 8), normal(1, 3, 87, 15)),
)
class A3304PatchPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 4, 8, 8)
        self.positions = nn.Parameter(torch.randn(1, 4, 6, 6))

    def forward(self, x):
        y = self.embed(x)
        h, w = y.shape[-2:]
        p = self.positions
        if (h, w) != (6, 6):
            p = F.interpolate(p, (h, w), mode="bicubic", align_corners=False, antialias=False)
        return (y + p).flatten(2).mT


@forward(
    "x:float32[N,T,3]", dims="N=1:2:4 T=2:12:40", kinds=FINITE, feeds=(normal(1, 2, 3), normal(2, 39, 3, scale=1e-6))
)
def A3305MeanAndDeviation(self, x):
    mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True)
    y = (x - mean) / std.clamp_min(torch.finfo(x.dtype).eps)
    return torch.where(std > 0, y, 0.0), torch.var_mean(x, 1, correction=2 if x.shape[1] > 2 else 0)[0]


@forward(
    "x:float32[N,T,3]",
    "lengths:int64[N]=0:40",
    dims=LINE,
    kinds=FINITE,
    feeds=(normal(2, 5, 3, lengths=np.array([0, 1])), normal(2, 40, 3, lengths=np.array([40, 39]))),
)
def A3306MaskedNormal(self, x, lengths):
    mask = (torch.arange(x.shape[1])[None] < lengths[:, None])[..., None]
    n = mask.sum(1, keepdim=True)
    mean = (x * mask).sum(1, keepdim=True) / n.clamp(min=1)
    var = ((x - mean) ** 2 * mask).sum(1, keepdim=True) / (n - 1).clamp(min=1)
    return (x - mean) * mask / (var.sqrt() + 1e-5), (n - 1) // 2, torch.div(n, -4, rounding_mode="floor")


@attack(
    "x:float32[N,T]=-1:1",
    dims="N=1:1:2 T=25:100:430",
    kinds=FINITE,
    feeds=(normal(1, 25, scale=0.1), normal(1, 34, scale=0.1), normal(2, 429, scale=0.1)),
)
class A3307Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(25))
        self.register_buffer("mel", torch.rand(17, 5))

    def forward(self, x):
        frames = x.unfold(-1, 25, 10)
        frames = frames - frames.mean(-1, keepdim=True)
        before = F.pad(frames, (1, 0), mode="replicate")[..., :-1]
        energy = frames.square().sum(-1).clamp_min(1.1920929e-07).log()
        y = F.pad((frames - 0.97 * before) * self.window, (0, 7))
        power = torch.fft.rfft(y).abs().square()
        return torch.cat([energy[..., None], (power @ self.mel).clamp_min(1e-10).log()], -1)


@forward("x:float32[N,T,3]", dims=LINE, kinds=FINITE, feeds=(normal(1, 1, 3), normal(2, 2, 3)))
def A3308Deltas(self, x):
    y = F.pad(x.mT, (2, 2), mode="replicate")
    k = torch.arange(-2.0, 3.0).expand(3, 1, 5) / 10
    d = F.conv1d(y, k, groups=3)
    dd = F.conv1d(F.pad(d, (2, 2), mode="replicate"), k, groups=3)
    return torch.cat([x.mT, d, dd], 1).mT


@attack("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(3, 4, 1, 30)))
class A3309Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group = nn.GroupNorm(2, 4)
        self.beta, self.gamma = nn.Parameter(torch.randn(1, 1, 1, 4)), nn.Parameter(torch.randn(1, 1, 1, 4))

    def forward(self, x):
        y = x.permute(0, 2, 3, 1)
        g = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
        grn = self.gamma * (y * g / (g.mean(-1, keepdim=True) + 1e-6)) + self.beta + y
        return self.group(x), grn, F.local_response_norm(x, 3, 1.0, 0.5, 2.0)


@forward(
    "x:float32[N,1,H,W]",
    dims="N=1:1:2 H=4:16:40 W=4:24:40",
    kinds=("normal", "ones"),
    feeds=(normal(1, 1, 7, 39), normal(1, 1, 40, 13), normal(1, 1, 33, 34)),
)
def A3310Letterbox(self, x):
    h, w = x.shape[-2:]
    scale = min(32 / h, 32 / w)
    nh, nw = max(1, round(h * scale)), max(1, round(w * scale))
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
    top, left = (32 - nh) // 2, (32 - nw) // 2
    return F.pad(y, (left, 32 - nw - left, top, 32 - nh - top), value=114 / 255), torch.tensor([scale, top, left])


@forward(
    "x:float32[N,2,H,W]",
    dims="N=1:1:2 H=6:13:30 W=6:16:30",
    kinds=FINITE,
    feeds=(normal(1, 2, 6, 30), normal(1, 2, 29, 7)),
)
def A3311Pyramid(self, x):
    outputs = []
    for n in (1, 2, 3):
        kh, kw = math.ceil(x.shape[2] / n), math.ceil(x.shape[3] / n)
        ph, pw = (kh * n - x.shape[2] + 1) // 2, (kw * n - x.shape[3] + 1) // 2
        outputs.append(F.max_pool2d(x, (kh, kw), (kh, kw), (ph, pw)).flatten(1))
    return torch.cat(outputs, 1)


@forward(
    "x:float32[N,2,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 2, 1, 1), normal(2, 2, 1, 7), normal(1, 2, 33, 1))
)
def A3312SoftArgmax(self, x):
    n, c, h, w = x.shape
    p = x.flatten(2).softmax(-1).view(n, c, h, w)
    xs, ys = torch.linspace(-1, 1, w), torch.linspace(-1, 1, h)
    ex, ey = (p.sum(2) * xs).sum(-1), (p.sum(3) * ys).sum(-1)
    var = (p * ((xs - ex[..., None, None]) ** 2 + (ys[:, None] - ey[..., None, None]) ** 2)).sum((2, 3))
    return torch.stack([ex, ey, var], -1)


@forward(
    "x:float32[N,2,H,W]", dims=WIDE, kinds=FINITE, feeds=(halves(1, 2, 1, 1), halves(2, 2, 5, 3), halves(1, 2, 33, 30))
)
def A3313HeatmapPeaks(self, x):
    h, w = x.shape[-2:]
    best, i = x.flatten(2).max(-1)
    px, py = i % w, torch.div(i, w, rounding_mode="floor")
    flat = x.flatten(2)

    def at(dx, dy):
        j = (py + dy).clamp(0, h - 1) * w + (px + dx).clamp(0, w - 1)
        return flat.gather(2, j[..., None])[..., 0]

    inside = (px > 0) & (px < w - 1) & (py > 0) & (py < h - 1)
    step = torch.stack([(at(1, 0) - at(-1, 0)).sign(), (at(0, 1) - at(0, -1)).sign()], -1) * 0.25
    return torch.stack([px, py], -1) + step * inside[..., None], best * (best > 0)


@forward(
    "x:float32[N,2,H,W]",
    "boxes:float32[N,4]=0:30",
    dims="N=1:1:3 H=2:8:20 W=2:11:20",
    kinds=FINITE,
    feeds=(
        normal(1, 2, 2, 2, boxes=np.array([[0, 0, 0, 0]], np.float32)),
        normal(1, 2, 9, 7, boxes=np.array([[6, 8, 1, 2]], np.float32)),
    ),
)
def A3314CropByGrid(self, x, boxes):
    h, w = x.shape[-2:]
    x0, y0, x1, y1 = boxes.unbind(-1)
    zero = torch.zeros_like(x0)
    theta = torch.stack(
        [
            (x1 - x0) / (w - 1),
            zero,
            (x0 + x1 - w + 1) / (w - 1),
            zero,
            (y1 - y0) / (h - 1),
            (y0 + y1 - h + 1) / (h - 1),
        ],
        -1,
    )
    grid = F.affine_grid(theta.view(-1, 2, 3), (x.shape[0], 2, 3, 5), align_corners=True)
    return F.grid_sample(x, grid, align_corners=True, padding_mode="border")


@forward("x:float32[N,2,H,W]", "right:float32[N,2,H,W]", dims=WIDE, kinds=FINITE)
def A3315CostVolume(self, x, right):
    w = x.shape[-1]
    costs = []
    for d in range(4):
        shifted = F.pad(right, (d, 0))[..., :w]
        costs.append((x - shifted).abs().mean(1))
    volume = torch.stack(costs, 1)
    best = volume.argmin(1)
    return volume, best, (volume.gather(1, best[:, None])[:, 0] < 1e-3) & (best < w)


@forward("x:uint8[N,3,H,W]", dims=ROOM)
def A3316ByteDifferences(self, x):
    d = x[..., 1:] - x[..., :-1]
    lum = (77 * x[:, 0] + 150 * x[:, 1] + 29 * x[:, 2]) >> 8
    wide = (77 * x[:, 0].int() + 150 * x[:, 1] + 29 * x[:, 2]) >> 8
    return d, lum, wide.to(torch.uint8), x.sum(1), (x // 3 * 5) % 7, ~x


@forward(
    "x:float32[N,T,5]",
    "lengths:int64[N]=0:40",
    dims=LINE,
    kinds=FINITE,
    feeds=(halves(2, 9, 5, lengths=np.array([9, 0])),),
)
def A3317GreedyCtc(self, x, lengths):
    best = x.argmax(-1)
    before = F.pad(best, (1, 0), value=-1)[:, :-1]
    valid = torch.arange(x.shape[1]) < lengths[:, None]
    keep = (best != before) & (best != 0) & valid
    place = keep.cumsum(1) - 1
    out = torch.full_like(best, -1).scatter(1, torch.where(keep, place, x.shape[1] - 1), torch.where(keep, best, -1))
    return torch.where(torch.arange(x.shape[1]) < keep.sum(1, keepdim=True), out, -1)[:, : x.shape[1] - 1], keep.sum(1)


@attack(
    "x:float32[N,T,4]",
    "lengths:int32[N]=0:40",
    dims="N=1:2:4 T=7:12:40",
    kinds=FINITE,
    feeds=(normal(2, 8, 4, lengths=np.array([0, 1], np.int32)), normal(2, 7, 4, lengths=np.array([2, 3], np.int32))),
)
class A3318Subsampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv1d(4, 4, 3, 2), nn.Conv1d(4, 4, 3, 2)

    def forward(self, x, lengths):
        y = self.two(self.one(x.mT).relu()).mT
        after = ((lengths - 1) // 2 - 1) // 2
        mask = torch.arange(y.shape[1]) >= after[:, None]
        return y.masked_fill(mask[..., None], 0.0), after, torch.remainder(after, 3), torch.fmod(after, 3)


@forward(
    "x:float32[N,T]=-1:1",
    dims=LINE,
    kinds=FINITE,
    feeds=(lambda: {"x": np.array([[0.0, -0.0, 1.0, -1.0, 1e-30, 2 / 255 - 1]], np.float32)},),
)
def A3319MuLaw(self, x):
    mu = torch.tensor(255.0)
    y = x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu)
    code = ((y + 1) / 2 * mu + 0.5).to(torch.int64)
    back = code / mu * 2 - 1
    return back.sign() * (torch.exp(back.abs() * torch.log1p(mu)) - 1) / mu


@attack(
    "x:float32[N,T,4]",
    "y:float32[N,S,4]",
    dims="N=1:1:2 T=1:9:90 S=1:12:70",
    kinds=("normal",),
    feeds=(lambda: {"x": np.ones((1, 90, 4), np.float32), "y": np.ones((1, 1, 4), np.float32)},),
)
class A3320Buckets(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 2)

    def forward(self, x, y):
        r = torch.arange(y.shape[1])[None] - torch.arange(x.shape[1])[:, None]
        side, r = (r > 0).long() * 8, r.abs()
        far = 4 + (torch.log(r.float() / 4) / math.log(64 / 4) * 4).long()
        b = side + torch.where(r < 4, r, torch.minimum(far, torch.full_like(far, 7)))
        return (x @ y.mT)[:, None] + self.bias(b).permute(2, 0, 1)


@forward("x:float32[N,T]", dims="N=1:2:4 T=3:12:40", kinds=FINITE, feeds=(halves(1, 3), halves(2, 8)))
def A3321MedianFilter(self, x):
    y = F.pad(x[:, None], (2, 2), mode="reflect")[:, 0].unfold(1, 5, 1)
    z = F.pad(x, (1, 2)).unfold(1, 4, 1)
    return y.median(-1).values, z.median(-1)[0], z.sort(dim=-1, descending=True, stable=True)[1]


@forward("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(halves(1, 4, 1, 1), halves(2, 4, 3, 9)))
def A3322Locations(self, x):
    h, w = x.shape[-2:]
    gy, gx = torch.meshgrid(torch.arange(h) * 8 + 4, torch.arange(w) * 8 + 4, indexing="ij")
    p = torch.stack([gx, gy], -1).reshape(-1, 2)
    d = x.flatten(2).mT
    box = torch.cat([p - d[..., :2], p + d[..., 2:]], -1)
    low = torch.minimum(box[..., :2], torch.tensor([w * 8, h * 8]) - 1).clamp_min(0)
    area = (box[..., 2:] - low).clamp_min(0).prod(-1)
    area = torch.where(area > 16, area, float("inf"))
    value, index = area.min(1)
    return index, torch.where(value.isinf(), -1, index), low


@attack(
    "x:float32[N,4,H,W]",
    dims="N=1:1:2 H=1:5:12 W=1:7:12",
    kinds=FINITE,
    feeds=(normal(1, 4, 1, 1), normal(2, 4, 12, 1)),
)
class A3323Upsampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 3, 3, 2, 1)
        self.shuffle = nn.Conv2d(4, 8, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        a = self.up(x, output_size=(h * 2, w * 2 - 1))
        b = F.pixel_shuffle(self.shuffle(x), 2)
        c = F.interpolate(b, scale_factor=(0.5, 1.5), mode="nearest", recompute_scale_factor=True) if h > 1 else b
        return a, b, c, F.channel_shuffle(x, 2)
