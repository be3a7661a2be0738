# ruff: noqa: E501, RUF012, RUF046, RUF059 - attacks are written as users write them
"""Vision, OCR and video: what stands before and behind a network, inside of the module."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

BYTES = "x:uint8[N,H,W,3]=0:255"


def frames(*inputs: str, low: int = 1, high: int = 20, **other: object) -> dict:
    """Clips, judged at each count of frames."""
    feeds = tuple(values_at(*inputs, N=1, T=t, H=3 + t % 4, W=4 + t % 3) for t in range(low, high + 1))
    return {"dims": f"N=1:1:2 T={low}:{max(low, 8)}:{high} H=3:5:8 W=3:6:8", "kinds": FEW, "feeds": feeds, **other}


@forward(BYTES, **pix(BYTES))
def A5701LetterboxInside(self, x):
    """Ultralytics: the lesser ratio, the new size rounded, the padding halved and rounded by -0.1 and +0.1, 114 about it."""
    n, h, w, c = x.shape
    r = min(12 / h, 10 / w)
    nw, nh = int(round(w * r)), int(round(h * r))
    dw, dh = (10 - nw) / 2, (12 - nh) / 2
    y = F.interpolate(x.permute(0, 3, 1, 2).float(), (max(nh, 1), max(nw, 1)), mode="bilinear", align_corners=False)
    y = F.pad(y, (round(dw - 0.1), round(dw + 0.1), round(dh - 0.1), round(dh + 0.1)), value=114.0)
    return y / 255.0, torch.tensor([r, dw, dh])


@forward(BYTES, **pix(BYTES))
def A5702RedAndBlueInBytes(self, x):
    """BGR to RGB and to luma in whole numbers: products in int32, shifted by 14 bits, as OpenCV's."""
    bgr = x.flip(-1)
    r, g, b = bgr.to(torch.int32).unbind(-1)
    y = (r * 4899 + g * 9617 + b * 1868 + (1 << 13)) >> 14
    cr = ((r - y) * 11682 + (128 << 14) + (1 << 13)) >> 14
    cb = ((b - y) * 9241 + (128 << 14) + (1 << 13)) >> 14
    return torch.stack([y, cr, cb], -1).clamp(0, 255).to(torch.uint8), y.to(torch.uint8) - bgr[..., 1]


@forward(BYTES, **pix(BYTES))
def A5703HueOfBytes(self, x):
    """RGB to HSV as torchvision does, with ones where the span is zero, and the hue modulo one."""
    img = x.permute(0, 3, 1, 2).to(torch.float32).div_(255)
    r, g, b = img.unbind(-3)
    maxc, minc = torch.max(img, dim=-3).values, torch.min(img, dim=-3).values
    eqc = maxc == minc
    cr = maxc - minc
    ones = torch.ones_like(maxc)
    s = cr / torch.where(eqc, ones, maxc)
    div = torch.where(eqc, ones, cr)
    rc, gc, bc = (maxc - r) / div, (maxc - g) / div, (maxc - b) / div
    hr = (maxc == r) * (bc - gc)
    hg = ((maxc == g) & (maxc != r)) * (2.0 + rc - bc)
    hb = ((maxc != g) & (maxc != r)) * (4.0 + gc - rc)
    hue = torch.fmod((hr + hg + hb) / 6.0 + 1.0, 1.0)
    i = torch.floor(hue * 6.0)
    return torch.stack((hue, s, maxc), -3), i.to(torch.int32) % 6


@forward(IMAGE, **pix(IMAGE, low=2))
def A5704ShortestSideWithCap(self, x):
    """Detectron's resize: the shortest edge to 9, but the longest not beyond 14, halves rounded up by int(+ 0.5)."""
    h, w = x.shape[-2:]
    scale = 9 * 1.0 / min(h, w)
    newh, neww = (9, scale * w) if h < w else (scale * h, 9)
    if max(newh, neww) > 14:
        scale = 14 * 1.0 / max(newh, neww)
        newh, neww = newh * scale, neww * scale
    neww, newh = int(neww + 0.5), int(newh + 0.5)
    return F.interpolate(x, size=(newh, neww), mode="bilinear", align_corners=False), torch.tensor([[newh / h, neww / w]])


@forward(IMAGE, **pix(IMAGE), refused="the exported model differs from the module")
def A5705PilBicubicAntialiased(self, x):
    """Half of the size by floor division with antialiasing, then back with the nearest-exact."""
    h, w = x.shape[-2:]
    y = F.interpolate(x, (max(h // 2, 1), max(w * 2 // 3, 1)), mode="bicubic", antialias=True, align_corners=False)
    z = F.interpolate(y.clamp(-1, 1), (h, w), mode="nearest-exact")
    return y, (x - z).abs().amax((1, 2, 3))


@forward("x:float32[N,5,6]", "y:int64[N,T]=1:5", **seq("x:float32[N,5,6]", "y:int64[N,T]=1:5"))
def A5706CtcAlphas(self, x, y):
    """OCR's rescoring: CTC's forward recursion with blanks, skips where two labels differ, -inf until reached."""
    lp = x.log_softmax(-1)
    n, s = y.shape
    ext = torch.zeros(n, 2 * s + 1, dtype=torch.long)
    ext[:, 1::2] = y
    alpha = torch.full((n, 2 * s + 1), -math.inf)
    alpha[:, 0] = lp[:, 0, 0]
    alpha[:, 1] = lp[:, 0].gather(1, ext[:, 1:2])[:, 0]
    skip = F.pad((ext[:, 2:] != ext[:, :-2]) & (ext[:, 2:] != 0), (2, 0))
    for t in range(1, lp.shape[1]):
        a1 = F.pad(alpha, (1, 0), value=-math.inf)[:, :-1]
        a2 = F.pad(alpha, (2, 0), value=-math.inf)[:, :-2].masked_fill(~skip, -math.inf)
        alpha = torch.logsumexp(torch.stack([alpha, a1, a2]), 0) + lp[:, t].gather(1, ext)
    return torch.logaddexp(alpha[:, -1], alpha[:, -2])


@forward("x:float32[N,H,W]", **pix("x:float32[N,H,W]"))
def A5707LinesByProjection(self, x):
    """Lines of text: rows with ink, their starts and ends by differences, heights put down at their starts."""
    ink = (x > 0.25).sum(-1) >= max(1, x.shape[-1] // 4)
    d = torch.diff(ink.to(torch.int8), dim=-1, prepend=torch.zeros_like(ink[:, :1], dtype=torch.int8), append=torch.zeros_like(ink[:, :1], dtype=torch.int8))
    start, end = d == 1, d == -1
    label = start.cumsum(-1)[:, :-1] * ink
    heights = torch.zeros(x.shape[0], x.shape[1] + 1, dtype=torch.long).scatter_add_(1, label, torch.ones_like(label))
    return label, heights[:, 1:], start.sum(-1), end.int().argmax(-1)


@forward("x:float32[N,T,2,H,W]", **frames("x:float32[N,T,2,H,W]"))
def A5708ShiftInTime(self, x):
    """TSM: an eighth of channels from the future, one from the past, by narrow and in place on zeros."""
    n, t, c, h, w = x.shape
    y = x.reshape(n, t, c * h * w)
    fold = y.shape[-1] // 8
    out = torch.zeros_like(y)
    out[:, :-1, :fold] = y[:, 1:, :fold]
    out[:, 1:, fold : 2 * fold] = y[:, :-1, fold : 2 * fold]
    out[:, :, 2 * fold :] = y[:, :, 2 * fold :]
    return out.view_as(x)


@forward("x:float32[N,T,2,H,W]", **frames("x:float32[N,T,2,H,W]"), refused="the path through the module depends on the size")
def A5709FramesOfSlowFast(self, x):
    """PySlowFast: a slow pathway by index_select of a linspace cast to long, and eight uniform samples."""
    t = x.shape[1]
    slow = torch.index_select(x, 1, torch.linspace(0, t - 1, max(t // 4, 1)).long())
    num = min(8, t)
    at = torch.clamp(torch.linspace(0, t - 1, num), 0, t - 1).long()
    mid = [int(t / num * i + t / num / 2) for i in range(num)]
    return slow, x[:, at], x[:, mid].mean((2, 3, 4))


@attack(BYTES, **pix(BYTES, low=3))
class A5710BackgroundMoves(nn.Module):
    """A background that is blended, a mask by a threshold and opened by pools; the background is returned, not kept."""

    def __init__(self):
        super().__init__()
        self.register_buffer("gray", torch.tensor([0.114, 0.587, 0.299]))

    def forward(self, x):
        g = (x.float() @ self.gray)[:, None]
        bg = F.avg_pool2d(g, 3, 1, 1, count_include_pad=False)
        diff = torch.abs(g - bg) > 25
        m = -F.max_pool2d(-diff.float(), 3, 1, 1)
        m = F.max_pool2d(m, 3, 1, 1)
        ys, xs = m[0, 0].any(1), m[0, 0].any(0)
        h, w = g.shape[-2:]
        box = torch.stack([xs.int().argmax(), ys.int().argmax(), w - 1 - xs.flip(0).int().argmax(), h - 1 - ys.flip(0).int().argmax()])
        return torch.where(m.any(), box, torch.full_like(box, -1)), m.bool(), bg.round().to(torch.uint8)


@forward("b:float32[N,T,4]", "s:float32[N,T]=0:1", **seq("b:float32[N,T,4]", "s:float32[N,T]=0:1"))
def A5711WeightedBoxes(self, b, s):
    """Weighted boxes fusion in one pass: members are what overlaps by more than a half and is not better than its head."""
    x1, x2 = torch.minimum(b[..., 0], b[..., 2]), torch.maximum(b[..., 0], b[..., 2])
    y1, y2 = torch.minimum(b[..., 1], b[..., 3]), torch.maximum(b[..., 1], b[..., 3])
    box = torch.stack([x1, y1, x2, y2], -1)
    area = (x2 - x1) * (y2 - y1)
    wh = (torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:]) - torch.maximum(box[:, :, None, :2], box[:, None, :, :2])).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    iou = inter / (area[:, :, None] + area[:, None] - inter + 1e-9)
    order = torch.argsort(s, dim=1, descending=True, stable=True)
    rank = torch.argsort(order, dim=1)
    dominated = (iou > 0.5) & (rank[:, None, :] < rank[:, :, None])
    head = ~dominated.any(-1)
    member = (iou > 0.5) & (rank[:, None, :] >= rank[:, :, None])
    w = member * s[:, None]
    fused = (w[..., None] * box[:, None]).sum(2) / w.sum(2, keepdim=True).clamp(min=1e-6)
    return fused * head[..., None], (w.sum(2) / member.sum(2).clamp(min=1)) * head, head


@attack(IMAGE, **pix(IMAGE), refused="the path through the module depends on the size")
class A5712GridKeptByShape(nn.Module):
    """A meshgrid kept under a key of sizes in a dict of the class, with a limit at which it is cleared."""

    kept: dict = {}

    def grid(self, h, w):
        if (h, w) not in self.kept:
            if len(self.kept) >= 4:
                type(self).kept.clear()
            ys, xs = torch.meshgrid(torch.arange(h) / max(h - 1, 1), torch.arange(w) / max(w - 1, 1), indexing="ij")
            self.kept[h, w] = torch.stack([xs, ys])[None]
        return self.kept[h, w]

    def forward(self, x):
        g = self.grid(x.shape[2], x.shape[3])
        return torch.cat([x, g.expand(x.shape[0], -1, -1, -1)], 1), (x * g).sum((2, 3))


@forward(IMAGE, **pix(IMAGE), refused="the path through the module depends on the size")
def A5713SlicesOfSahi(self, x):
    """Sliced inference: tiles of six that overlap by two, the last moved back to the border, counted and averaged."""
    h, w = x.shape[-2:]
    out, cnt = torch.zeros_like(x), torch.zeros_like(x[:, :1])
    y0 = 0
    while True:
        y1 = min(y0 + 6, h)
        y0b = max(y1 - 6, 0)
        x0 = 0
        while True:
            x1 = min(x0 + 6, w)
            x0b = max(x1 - 6, 0)
            tile = x[:, :, y0b:y1, x0b:x1]
            out[:, :, y0b:y1, x0b:x1] += tile - tile.mean((2, 3), keepdim=True)
            cnt[:, :, y0b:y1, x0b:x1] += 1
            if x1 == w:
                break
            x0 += 4
        if y1 == h:
            break
        y0 += 4
    return out / cnt


@attack("x:float32[N,3,H,W]", **pix("x:float32[N,3,H,W]", low=1, high=20), refused="the path through the module depends on the size")
class A5714PositionsResizedBicubic(nn.Module):
    """DINOv2's interpolate_pos_encoding with an offset of 0.1, scale factors by floats, and the same size as a short way."""

    def __init__(self):
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, 4, 2, 2), nn.Parameter(torch.randn(1, 1 + 9, 4))

    def forward(self, x):
        x = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
        h0, w0 = x.shape[2] // 2, x.shape[3] // 2
        t = self.patch(x).flatten(2).transpose(1, 2)
        if h0 * w0 == 9 and h0 == w0:
            return t + self.pos[:, 1:]
        p = self.pos[:, 1:].reshape(1, 3, 3, 4).permute(0, 3, 1, 2)
        sx, sy = float(w0 + 0.1) / 3, float(h0 + 0.1) / 3
        p = F.interpolate(p, scale_factor=(sy, sx), mode="bicubic", antialias=False)
        assert (h0, w0) == p.shape[-2:]
        return t + p.permute(0, 2, 3, 1).view(1, -1, 4)


@forward("x:float32[N,6,H,W]", **pix("x:float32[N,6,H,W]", high=9))
def A5715PeaksOfText(self, x):
    """CRAFT: two score maps, links and text as masks, areas of labels grown by a fixed count of steps of a maximum."""
    text, link = x[:, 0] > 0.4, x[:, 1] > 0.4
    both = text | link
    n, h, w = both.shape
    label = torch.where(both, torch.arange(1, h * w + 1).view(1, h, w), 0).float()[:, None]
    for _ in range(6):
        label = F.max_pool2d(label, 3, 1, 1) * both[:, None]
    flat = label.flatten(1).long()
    area = torch.zeros(n, h * w + 1).scatter_add(1, flat, torch.ones(n, h * w))
    top = torch.zeros(n, h * w + 1).scatter_reduce(1, flat, x[:, 0].flatten(1), "amax", include_self=False)
    keep = (area >= 3) & (top >= 0.7)
    keep[:, 0] = False
    return keep.sum(1), keep.gather(1, flat).view(n, h, w), area.gather(1, flat)


@forward("x:float32[N,1,H,W]", "m:bool[N,1,H,W]", **pix("x:float32[N,1,H,W]", "m:bool[N,1,H,W]"))
def A5716InpaintedByDiffusion(self, x, m):
    """Holes are filled by means of what is known about them, until nothing changes or five rounds have gone."""
    known, y = (~m).float(), x.masked_fill(m, 0)
    k = torch.ones(1, 1, 3, 3)
    for _ in range(5):
        num, den = F.conv2d(y * known, k, padding=1), F.conv2d(known, k, padding=1)
        fill = (known == 0) & (den > 0)
        y = torch.where(fill, num / den.clamp(min=1), y)
        known = (known + fill).clamp(max=1)
    return y, known.mean((1, 2, 3))


@forward("a:float32[N,T,4]", "b:float32[N,S,4]", **two("a:float32[N,T,4]", "b:float32[N,S,4]", zero=True))
def A5717GeneralisedIou(self, a, b):
    """GIoU, DIoU and CIoU of all pairs, with atan of ratios of sides that may be zero, and none of the second."""
    cx = lambda v: torch.cat([v[..., :2] - v[..., 2:].abs() / 2, v[..., :2] + v[..., 2:].abs() / 2], -1)  # noqa: E731
    p, q = cx(a)[:, :, None], cx(b)[:, None]
    inter = (torch.minimum(p[..., 2:], q[..., 2:]) - torch.maximum(p[..., :2], q[..., :2])).clamp_(0).prod(-1)
    ap, aq = (p[..., 2:] - p[..., :2]).prod(-1), (q[..., 2:] - q[..., :2]).prod(-1)
    union = ap + aq - inter
    iou = inter / (union + 1e-7)
    hull = torch.maximum(p[..., 2:], q[..., 2:]) - torch.minimum(p[..., :2], q[..., :2])
    c2 = hull.square().sum(-1) + 1e-7
    rho = ((p[..., :2] + p[..., 2:] - q[..., :2] - q[..., 2:]) ** 2).sum(-1) / 4
    at = lambda v: torch.atan((v[..., 2] - v[..., 0]) / (v[..., 3] - v[..., 1] + 1e-7))  # noqa: E731
    v = (4 / math.pi**2) * (at(q) - at(p)).pow(2)
    alpha = v / (v - iou + (1 + 1e-7))
    return iou - (hull.prod(-1) - union) / (hull.prod(-1) + 1e-7), iou - rho / c2, iou - (rho / c2 + v * alpha)


@attack(IMAGE, **pix(IMAGE, low=2))
class A5718BlurPoolReflects(nn.Module):
    """Anti-aliased pooling: reflection of one and two, a blur of strides, registered by a name and found by getattr."""

    def __init__(self):
        super().__init__()
        self.sizes = (1, 2, 1, 2)
        a = torch.tensor(np.array([1.0, 3.0, 3.0, 1.0]))
        self.register_buffer("filt", (a[:, None] * a[None] / (a[:, None] * a[None]).sum()).float()[None, None].repeat(2, 1, 1, 1))
        self.pad = getattr(nn, "Reflect" + "ionPad2d")(self.sizes) if False else nn.ReplicationPad2d(self.sizes)

    def forward(self, x):
        return F.conv2d(self.pad(F.max_pool2d(x, 2, 1)), self.filt, stride=2, groups=x.shape[1])


@forward("x:float32[N,3,H,W]", "d:float32[N,1,H,W]=0.1:9", **pix("x:float32[N,3,H,W]", "d:float32[N,1,H,W]=0.1:9"), refused="the exported model differs from the module")
def A5719DepthToPoints(self, x, d):
    """Depth to points by an inverse of the camera from sizes, and back into the other camera with a z that is clamped."""
    n, _, h, w = d.shape
    f = 0.5 * w / math.tan(math.radians(60) / 2)
    k = torch.tensor([[f, 0.0, (w - 1) / 2], [0.0, f, (h - 1) / 2], [0.0, 0.0, 1.0]])
    ys, xs = torch.meshgrid(torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32), indexing="ij")
    pix_ = torch.stack([xs.reshape(-1), ys.reshape(-1), torch.ones(h * w)])
    p = torch.linalg.inv(k) @ pix_ * d.view(n, 1, -1)
    p[:, 0] += 0.25
    q = k @ p
    uv = q[:, :2] / q[:, 2:].clamp(min=1e-3)
    g = torch.stack([uv[:, 0] / ((w - 1) / 2 if w > 1 else 1) - 1, uv[:, 1] / ((h - 1) / 2 if h > 1 else 1) - 1], -1).view(n, h, w, 2)
    valid = (g.abs().amax(-1) <= 1)[:, None]
    return F.grid_sample(x, g, padding_mode="zeros", align_corners=True) * valid, p


@forward(X4, **seq(X4))
def A5720SlidingMedianOfTracks(self, x):
    """Tracks smoothed by a median of five with copies at the ends, jumps beyond three deviations put to it."""
    y = F.pad(x.transpose(1, 2), (2, 2), mode="replicate").unfold(-1, 5, 1)
    med = y.median(-1).values.transpose(1, 2)
    mad = (x - med).abs().median(1, keepdim=True).values * 1.4826
    out = torch.where((x - med).abs() > 3 * mad + 1e-6, med, x)
    return out, torch.gradient(out, dim=1)[0] if x.shape[1] > 1 else torch.zeros_like(out)
