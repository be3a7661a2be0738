"""Pictures: bytes, resizing, boxes, anchors, codecs, windows, tiles, colours, post-processing."""
# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,3,H,W]"
D = "N=1:1:2 H=6:9:16 W=7:10:15"


@forward("x:uint8[N,H,W,3]=0:255", dims=D)
def A7930BytesThroughLut(self, x):
    """Bytes: gamma by a table of 256, gray in whole numbers with a shift, Otsu's threshold by cumulative histograms, posterize by masks."""
    lut = (torch.arange(256) / 255.0).pow(1 / 2.2).mul(255).round().to(torch.uint8)
    y = lut[x.long()]
    g = (x[..., 0].int() * 77 + x[..., 1].int() * 150 + x[..., 2].int() * 29) >> 8
    hist = torch.zeros(x.shape[0], 256).scatter_add(1, g.flatten(1).long(), torch.ones(x.shape[0], g[0].numel()))
    w = hist.cumsum(1)
    m = (hist * torch.arange(256)).cumsum(1)
    total = w[:, -1:]
    var = (m[:, -1:] * w - m * total) ** 2 / (w * (total - w)).clamp(min=1)
    return y, g.to(torch.uint8), var.argmax(1), x & 0b11100000, 255 - x, (x.float().mean(-1) > 127).to(torch.uint8) * 255


@forward(X, dims=D, kinds=FINITE)
def A7931LetterboxAndBack(self, x):
    """Letterbox to a square of the longer side with gray 114/255, boxes scaled back, ratio from min of two quotients, pads halved and rounded minus a tenth."""
    h, w = x.shape[-2:]
    s = 16
    r = min(s / h, s / w)
    nh, nw = int(round(h * r)), int(round(w * r))
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
    dh, dw = (s - nh) / 2, (s - nw) / 2
    top, left = int(round(dh - 0.1)), int(round(dw - 0.1))
    y = F.pad(y, (left, s - nw - left, top, s - nh - top), value=114 / 255)
    b = torch.sigmoid(y[:, :, ::4, ::4].flatten(2)) * s
    return y, (b - torch.tensor([left, top, left]).float()[:, None]) / r


@forward(X, dims=D, kinds=FINITE, refused="a form that loops of files lack")
def A7932TiledInference(self, x):
    """Tiles of five with stride three, last tile flush, blended by hat weights, written in place into sums."""
    n, c, h, w = x.shape
    hat = 1 - (torch.arange(5) - 2).abs() / 3
    wt = hat[:, None] * hat
    out, norm = torch.zeros_like(x), x.new_zeros(h, w)
    ys = sorted({*range(0, h - 4, 3), h - 5})
    xs = sorted({*range(0, w - 4, 3), w - 5})
    for i in ys:
        for j in xs:
            t = torch.tanh(x[..., i : i + 5, j : j + 5]) * wt
            out[..., i : i + 5, j : j + 5] += t
            norm[i : i + 5, j : j + 5] += wt
    return out / norm


@attack(X, dims=D, kinds=FINITE)
class A7933AnchorsCachedByFeature(nn.Module):
    """Anchors of two strides by ceil of the size, base sizes by ratios, cell centres, cached by the tuple of feature sizes and dtype; decoded with clamps."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, 2 * 5, 3, stride=2, padding=1)
        self.cache = {}

    def grid(self, h, w, stride, like):
        key = (h, w, stride, like.dtype, like.device)
        if key not in self.cache:
            y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            c = (torch.stack((x, y), -1).to(like) + 0.5) * stride
            r = torch.tensor([0.5, 2.0]).sqrt()
            wh = torch.stack((stride * 2 / r, stride * 2 * r), -1)
            self.cache[key] = torch.cat((c[:, :, None].expand(h, w, 2, 2), wh.expand(h, w, 2, 2)), -1)
        return self.cache[key]

    def forward(self, x):
        p = self.head(x)
        n, _, h, w = p.shape
        p = p.view(n, 2, 5, h, w).permute(0, 3, 4, 1, 2)
        a = self.grid(h, w, 2, x)
        ctr = a[..., :2] + p[..., :2] * a[..., 2:]
        wh = a[..., 2:] * p[..., 2:4].clamp(max=math.log(1000 / 16)).exp()
        b = torch.cat((ctr - wh / 2, ctr + wh / 2), -1)
        lim = torch.tensor([x.shape[-1], x.shape[-2]] * 2)
        b = torch.minimum(b.clamp(min=0), lim)
        return b.flatten(1, 3), p[..., 4].sigmoid().flatten(1)


@forward(X, dims=D, kinds=FINITE)
def A7934ScaleFactorUsual(self, x):
    """interpolate with scale_factor 1.3 and recompute_scale_factor both ways, antialias down, nearest-exact, area, bicubic aligned."""
    a = F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)
    b = F.interpolate(x, scale_factor=(0.7, 1.9), mode="bicubic", align_corners=False)
    c = F.interpolate(x, scale_factor=0.6, mode="bilinear", antialias=True)
    d = F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] + 3), mode="nearest-exact")
    return a, b, c, d, F.interpolate(x, scale_factor=0.5, mode="area")


@forward(X, dims=D, kinds=FINITE)
def A7935ModulatedDeformSampling(self, x):
    """Deformable attention by grid_sample on flattened levels: offsets from the values, locations normalised by (W, H), weights softmaxed over levels and points."""
    n, c, h, w = x.shape
    lv = [x, F.avg_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1)]
    ref = torch.tanh(x.mean((2, 3)))[:, :2]
    off = torch.tanh(x[:, :, :2, :2].flatten(1)).view(n, 6, 2)
    out = []
    for v in lv:
        hh, ww = v.shape[-2:]
        loc = ref[:, None] + off / torch.tensor([ww, hh])
        out.append(F.grid_sample(v, loc[:, None], mode="bilinear", padding_mode="zeros", align_corners=False)[:, :, 0])
    s = torch.stack(out, -2).flatten(2)
    return (s * s.softmax(-1)).sum(-1), s.sum(1)


@forward("x:float32[N,T,6]", dims="N=1:2:3 T=4:6:12", kinds=("normal", "unit", "halves", "ascending", "positive"))
def A7936WeightedBoxesFusion(self, x):
    """Weighted boxes fusion by a fixed cluster matrix, DIoU and CIoU matrices, top-k of fixed size padded by -1 to ten."""
    c, wh = x[..., :2], F.softplus(x[..., 2:4])
    b = torch.cat((c - wh / 2, c + wh / 2), -1)
    lt = torch.maximum(b[:, :, None, :2], b[:, None, :, :2])
    rb = torch.minimum(b[:, :, None, 2:], b[:, None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = wh.prod(-1)
    iou = inter / (area[:, :, None] + area[:, None] - inter)
    v = 4 / math.pi**2 * (torch.atan(wh[..., 0] / wh[..., 1])[:, :, None] - torch.atan(wh[..., 0] / wh[..., 1])[:, None]) ** 2
    ciou = iou - v * v / (1 - iou + v).clamp(min=1e-3)
    s = x[..., 4].sigmoid()
    k = min(10, x.shape[1])
    top = s.topk(k, 1)
    fused = (iou * s[:, None]) @ b / (iou * s[:, None]).sum(-1, keepdim=True)
    return ciou, F.pad(fused.gather(1, top.indices[..., None].expand(-1, -1, 4)), (0, 0, 0, 10 - k), value=-1), F.pad(top.indices, (0, 10 - k), value=-1)


@forward(X, dims=D, kinds=FINITE)
def A7937PanopticGroupingByCentre(self, x):
    """Panoptic-DeepLab: centres by a max-pool peak, top six, pixels to the nearest centre by offsets, ids multiplied into a label divisor."""
    n, _, h, w = x.shape
    heat = x[:, 0].sigmoid()
    peak = torch.where((F.max_pool2d(heat[:, None], 3, 1, 1)[:, 0] == heat) & (heat > 0.3), heat, -1.0)
    s, i = peak.flatten(1).topk(6, 1)
    cy, cx = i // w, i % w
    yy = torch.arange(h)[:, None] + x[:, 1]
    xx = torch.arange(w) + x[:, 2]
    d = (yy[..., None] - cy[:, None, None]) ** 2 + (xx[..., None] - cx[:, None, None]) ** 2
    d = torch.where((s > 0)[:, None, None], d, torch.inf)
    inst = torch.where((s > 0).any(1)[:, None, None], d.argmin(-1) + 1, 0)
    return inst * 1000 + x.argmax(1), (s > 0).sum(1)


@forward(X, dims=D, kinds=FINITE)
def A7938WindowsWithPadAndShift(self, x):
    """Swin V2: cosine attention in windows of four after pads, a shift by two only where the side is larger than the window, log-spaced bias."""
    n, c, h, w = x.shape
    ph, pw = (4 - h % 4) % 4, (4 - w % 4) % 4
    y = F.pad(x, (0, pw, 0, ph)).permute(0, 2, 3, 1)
    hh, ww = h + ph, w + pw
    shift = 0 if min(hh, ww) <= 8 else 2
    if shift:
        y = torch.roll(y, (-shift, -shift), (1, 2))
    y = y.view(n, hh // 4, 4, ww // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)
    q = F.normalize(y, dim=-1)
    r = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
    rel = (r[:, :, None] - r[:, None]).float()
    bias = (rel.sign() * torch.log2(rel.abs() + 1)).sum(0)
    y = (q @ q.mT * 3 + bias).softmax(-1) @ y
    y = y.view(n, hh // 4, ww // 4, 4, 4, c).transpose(2, 3).reshape(n, hh, ww, c)
    if shift:
        y = torch.roll(y, (shift, shift), (1, 2))
    return y[:, :h, :w].permute(0, 3, 1, 2).contiguous()


@forward(X, dims=D, kinds=FINITE)
def A7939UnusualFunctional(self, x):
    """F.* with unusual options: pad circular then conv with groups, pixel_unshuffle after a pad, local_response_norm, fractional shapes of max_pool2d(return_indices) unpooled with output_size, lp_pool infinite-like, feature alpha."""
    h, w = x.shape[-2:]
    a = F.conv2d(F.pad(x, (2, 1, 1, 2), mode="circular"), torch.ones(3, 1, 3, 3) / 9, groups=3, dilation=1)
    b = F.pixel_unshuffle(F.pad(x, (0, w % 2, 0, h % 2), mode="replicate"), 2)
    p, i = F.max_pool2d(x, 2, return_indices=True, ceil_mode=True)
    u = F.max_unpool2d(p, i, 2, output_size=(h, w)) if h % 2 == 0 and w % 2 == 0 else F.interpolate(p, (h, w))
    return a, b, u, F.local_response_norm(x, 2, alpha=0.3, k=2.0), F.lp_pool2d(x.abs(), 3.0, (2, 3), stride=(1, 2))


@forward("x:float32[N,3,H,W]", "y:float32[N,3,H//2,W//2]", dims="N=1:1:2 H=6:8:16%2 W=8:10:14%2", kinds=FINITE)
def A7940DerivedHalfSizes(self, x, y):
    """A second picture of half the sides: joint bilateral upsampling by unfold, a guided filter with box sums by cumulative sums."""
    n, c, h, w = x.shape
    up = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
    k = F.unfold(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3).view(n, c, 9, h, w)
    wt = torch.exp(-(k - x[:, :, None]).square().sum(1) / 0.5)
    v = F.unfold(F.pad(up, (1, 1, 1, 1), mode="reflect"), 3).view(n, c, 9, h, w)
    s = F.pad(x.cumsum(2).cumsum(3), (1, 0, 1, 0))
    box = s[..., 2:, 2:] - s[..., :-2, 2:] - s[..., 2:, :-2] + s[..., :-2, :-2]
    return (v * wt[:, None]).sum(2) / wt.sum(1, keepdim=True), box / 4
