"""Vision before and behind a network: anchors, box codes, pasted masks, warps, colours, demosaic, histograms."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import halves

IMG = "x:float32[N,3,H,W]=0:1"
D = "N=1:2:2 H=2:4:7 W=3:5:8"


@forward(IMG, dims=D, kinds=("unit", "normal", "zeros", "ones", "tenths", "halves"), feeds=(halves(1, 3, 4, 4),))
def A8184RgbHsvRgb(self, x):
    """RGB to HSV as kornia has it (max index by ties, modulo 1 of a negative hue), a hue shift, and back by sector with gather."""
    mx, i = x.max(1)
    mn = x.amin(1)
    d = mx - mn
    s = d / (mx + 1e-8)
    dd = torch.where(d == 0, torch.ones_like(d), d)
    r, g, b = ((mx - c) for c in x.unbind(1))
    h = torch.stack((b - g, r - b + 2 * dd, g - r + 4 * dd), 1) / dd[:, None]
    h = (h.gather(1, i[:, None])[:, 0] / 6) % 1.0
    h2 = (h + 0.3) % 1.0
    hi = torch.floor(h2 * 6) % 6
    f = h2 * 6 % 6 - hi
    p, q, t = mx * (1 - s), mx * (1 - f * s), mx * (1 - (1 - f) * s)
    k = hi.long()
    idx = torch.stack((k, k + 6, k + 12), 1)
    o = torch.stack((mx, q, p, p, t, mx, t, mx, mx, q, p, p, p, p, t, mx, mx, q), 1).gather(1, idx)
    return s, mx, o


@forward(IMG, dims=D, kinds=("unit", "zeros", "ones", "tiny"))
def A8185SrgbLab(self, x):
    """sRGB gamma by where of both branches, XYZ by einsum, Lab by cube roots of clamped values below a threshold, back to L in percent, luma rounded to bytes."""
    lin = torch.where(x > 0.04045, ((x.clamp(min=0.04045) + 0.055) / 1.055) ** 2.4, x / 12.92)
    m = torch.tensor(
        [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]],
        device=x.device,
    )
    xyz = torch.einsum("ij,njhw->nihw", m, lin) / torch.tensor([0.95047, 1.0, 1.08883], device=x.device)[:, None, None]
    f = torch.where(xyz > 0.008856, xyz.clamp(min=0.008856) ** (1 / 3), 7.787 * xyz + 4 / 29)
    lab = torch.stack((116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])), 1)
    return lab, (x * 255).round().to(torch.uint8)


@forward("y:uint8[N,H,W]=0:255", "uv:uint8[N,H//2,W//2,2]=0:255", dims="N=1:1:2 H=2:4:8%2 W=2:4:8%2")
def A8186Nv12(self, y, uv):
    """NV12 to RGB in integers: chroma repeated by repeat_interleave, fixed-point with >> 8 of negatives, clamped to bytes, and the byte's own overflow."""
    u = uv.permute(0, 3, 1, 2).repeat_interleave(2, 2).repeat_interleave(2, 3).to(torch.int32) - 128
    c = (y.to(torch.int32) - 16)[:, None] * 298
    r = (c + 409 * u[:, 1:] + 128) >> 8
    g = (c - 100 * u[:, :1] - 208 * u[:, 1:] + 128) >> 8
    b = (c + 516 * u[:, :1] + 128) >> 8
    rgb = torch.cat((r, g, b), 1).clamp(0, 255).to(torch.uint8)
    return rgb, y + 100, (y * 3) >> 1, y // 7


@forward("x:float32[N,1,H,W]=0:1", dims="N=1:1:2 H=4:6:10%2 W=4:6:10%2", kinds=("unit", "halves", "zeros"))
def A8187Demosaic(self, x):
    """RGGB demosaic: strided writes into zeros, bilinear kernels by grouped conv with reflect pads, white balance from means of the four phases."""
    n, _, h, w = x.shape
    o = x.new_zeros(n, 3, h, w)
    o[:, 0, ::2, ::2] = x[:, 0, ::2, ::2]
    o[:, 1, ::2, 1::2] = x[:, 0, ::2, 1::2]
    o[:, 1, 1::2, ::2] = x[:, 0, 1::2, ::2]
    o[:, 2, 1::2, 1::2] = x[:, 0, 1::2, 1::2]
    k = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]], device=x.device) / 4
    g = torch.tensor([[0.0, 1, 0], [1, 4, 1], [0, 1, 0]], device=x.device) / 4
    y = F.conv2d(F.pad(o, (1, 1, 1, 1), mode="reflect"), torch.stack((k, g, k))[:, None], groups=3)
    ph = F.pixel_unshuffle(x, 2).mean((2, 3))
    return (
        y
        * torch.stack((ph[:, 1] / (ph[:, 0] + 0.1), torch.ones_like(ph[:, 0]), ph[:, 1] / (ph[:, 3] + 0.1)), 1)[
            ..., None, None
        ]
    )


@forward("x:float32[N,H,W]=0:1", dims="N=1:2:3 H=2:4:6 W=3:4:7", kinds=("unit", "halves", "zeros", "ones"))
def A8188HistogramEqualised(self, x):
    """Bytes, a histogram of 16 bins by one_hot and by scatter_add, its cumulative sum as a lookup, a zero-aware minimum of the CDF, gamma by a table of 16."""
    b = (x.clamp(0, 1) * 255).to(torch.uint8).flatten(1)
    k = (b >> 4).long()
    h = F.one_hot(k, 16).sum(1)
    h2 = torch.zeros(x.shape[0], 16, dtype=torch.long, device=x.device).scatter_add_(1, k, torch.ones_like(k))
    c = h.cumsum(1)
    lo = torch.where(c > 0, c, c[:, -1:]).amin(1, keepdim=True)
    eq = ((c - lo) * 255 // (c[:, -1:] - lo).clamp(min=1)).gather(1, k).view_as(x)
    t = (torch.arange(16, device=x.device) / 15.0) ** (1 / 2.2)
    return eq.to(torch.uint8), h2, t[k].view_as(x)


@forward(
    "x:float32[N,C,H,W]",
    "s:float32[N,2]=8:64",
    dims="N=1:1:2 C=1:2:2 H=1:3:5 W=2:4:6",
    kinds=("normal", "unit", "zeros"),
)
def A8189AnchorsAndDecode(self, x, s):
    """Anchors of two scales and three ratios in float from cell strides by the input's own size, box deltas decoded with exp clamped at log(1000/16), clipped to each image's size."""
    n, c, h, w = x.shape
    stride = (32 / h, 48 / w)
    r = torch.tensor([0.5, 1.0, 2.0], device=x.device).sqrt()
    sc = torch.tensor([16.0, 32.0], device=x.device)
    wh = torch.stack(((sc[:, None] / r).flatten(), (sc[:, None] * r).flatten()), 1)
    gy, gx = torch.meshgrid(
        (torch.arange(h, device=x.device) + 0.5) * stride[0],
        (torch.arange(w, device=x.device) + 0.5) * stride[1],
        indexing="ij",
    )
    ctr = torch.stack((gx, gy), -1).reshape(-1, 1, 2)
    d = torch.tanh(x.mean(1)).reshape(n, -1, 1, 1) * torch.tensor([0.1, 0.2, 5.0, -1.0], device=x.device)
    p = ctr + d[..., :2] * wh
    sz = wh * d[..., 2:].clamp(max=math.log(1000.0 / 16)).exp()
    b = torch.cat((p - sz / 2, p + sz / 2), -1).flatten(1, 2)
    lim = s.flip(1).repeat(1, 2)[:, None]
    b = torch.minimum(b.clamp(min=0), lim)
    keep = ((b[..., 2:] - b[..., :2]) >= 1).all(-1)
    return b, keep


@forward(
    "x:float32[N,K,H,W]",
    dims="N=1:1:2 K=1:2:3 H=3:5:8 W=3:4:8",
    kinds=("normal", "unit", "halves", "zeros"),
    feeds=(halves(1, 2, 5, 5),),
)
def A8190CenterNetPeaks(self, x):
    """NMS-free peaks: equality with a max pool, top 4 of all classes by one flat topk, class, row and column by // and %, offsets read back by gather, scores of ties zeroed."""
    n, k, h, w = x.shape
    p = x.sigmoid()
    p = p * (F.max_pool2d(p, 3, 1, 1) == p)
    v, i = p.flatten(1).topk(4)
    c, r = i // (h * w), i % (h * w)
    o = x.mean(1).flatten(1).gather(1, r)
    return v, c, torch.stack(((r % w) + o, torch.div(r, w, rounding_mode="trunc").float()), -1)


@forward(
    "m:float32[K,1,6,6]=0:1",
    "b:float32[K,4]=0:10",
    "x:float32[1,H,W]",
    dims="K=1:3:5 H=4:8:12 W=5:9:11",
    kinds=("unit", "normal", "zeros"),
)
def A8191PasteMasks(self, m, b, x):
    """Masks pasted into images of moving size by a grid from boxes (detectron2), divided by widths that can be 0, thresholded, painted in order by an argmax over instances."""
    h, w = x.shape[1:]
    x0, y0, x1, y1 = b.split(1, 1)
    gy = (torch.arange(h, device=x.device) + 0.5 - y0) / (y1 - y0 + 10.5) * 2 - 1
    gx = (torch.arange(w, device=x.device) + 0.5 - x0) / (x1 - x0 + 10.5) * 2 - 1
    g = torch.stack((gx[:, None].expand(-1, h, -1), gy[:, :, None].expand(-1, -1, w)), -1)
    y = F.grid_sample(m, g, align_corners=False)[:, 0]
    return y, y.amax(0) + x[0], (y >= 0.25).sum((1, 2))


@forward(
    "x:float32[N,2,H,W]",
    "q:float32[N,8]=-1:1",
    dims="N=1:2:2 H=3:5:7 W=3:4:8",
    kinds=("normal", "unit", "zeros", "halves"),
)
def A8192Homography(self, x, q):
    """A homography near the identity whose last element is 1, its inverse by adjugate, pixels to normalised coordinates with size - 1, bilinear with border, flow of the pixels."""
    n, _, h, w = x.shape
    m = torch.eye(3, device=x.device) + 0.1 * torch.cat((q, q.new_zeros(n, 1)), 1).view(n, 3, 3)
    inv = torch.stack(
        (
            torch.cross(m[:, 1], m[:, 2], dim=-1),
            torch.cross(m[:, 2], m[:, 0], dim=-1),
            torch.cross(m[:, 0], m[:, 1], dim=-1),
        ),
        2,
    )
    gy, gx = torch.meshgrid(
        torch.linspace(-1, 1, h, device=x.device), torch.linspace(-1, 1, w, device=x.device), indexing="ij"
    )
    p = torch.stack((gx, gy, torch.ones_like(gx)), -1).view(1, -1, 3) @ inv.mT
    z = p[..., 2:]
    p = p[..., :2] / torch.where(z.abs() < 0.2, 0.2 * torch.ones_like(z), z)
    y = F.grid_sample(x, p.view(n, h, w, 2), padding_mode="border", align_corners=True)
    return y, (p[..., 0] + 1) * (w - 1) / 2


@forward(
    "x:float32[N,2,H,W]",
    "f:float32[N,2,H,W]=-2:2",
    dims="N=1:1:2 H=2:4:6 W=2:5:7",
    kinds=("normal", "unit", "halves", "zeros"),
)
def A8193ForwardSplat(self, x, f):
    """Flow by forward splatting: rounded targets half to even, out-of-range ones put at the last place and zeroed, index_put with accumulate, weights of hits, holes filled by zero."""
    n, c, h, w = x.shape
    yy, xx = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij")
    tx, ty = (xx + f[:, 0]).round().long(), (yy + f[:, 1]).round().long()
    ok = (tx >= 0) & (tx < w) & (ty >= 0) & (ty < h)
    lin = torch.where(ok, ty * w + tx, h * w).flatten(1)
    o = x.new_zeros(n, c, h * w + 1).scatter_add(2, lin[:, None].expand(-1, c, -1), x.flatten(2))[..., :-1]
    k = x.new_zeros(n, h * w + 1).scatter_add(1, lin, torch.ones_like(lin, dtype=x.dtype))[..., :-1]
    return torch.where(k[:, None] > 0, o / k[:, None].clamp(min=1), 0).view_as(x), k.view(n, h, w)


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=5:9:13 W=5:8:16", kinds=("unit", "zeros", "halves"))
class A8194LetterboxAndTiles(nn.Module):
    """A letterbox to 16 by the smaller scale of sizes with round(), pads by // 2 and the rest, normalisation by buffers, and a tile mean by adaptive pools."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))

    def forward(self, x):
        h, w = x.shape[-2:]
        r = min(16 / h, 16 / w)
        nh, nw = round(h * r), round(w * r)
        y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
        dh, dw = 16 - nh, 16 - nw
        y = F.pad(y, (dw // 2, dw - dw // 2, dh // 2, dh - dh // 2), value=114 / 255)
        return (y - self.mean) / self.std, F.adaptive_avg_pool2d(x, (2, 3))
