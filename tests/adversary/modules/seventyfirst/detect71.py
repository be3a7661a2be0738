"""Images: interpolation in every mode, grids, pads, folds, pools with odd settings, transposed convolutions, norms of one element, boxes."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

IMG = "x:float32[N,4,H,W]"
DI = "N=1:1:2 H=4:7:10 W=4:6:11"
FEW = ("normal", "unit", "zeros", "halves", "negative")


@forward(IMG, dims=DI, kinds=FEW)
def A8294ResizeEveryMode(self, x):
    """Every mode by size, align_corners and antialias, by a scale_factor with recompute and without, odd targets by floor of sizes."""
    h, w = x.shape[2:]
    return (
        F.interpolate(x, (h // 2 + 1, w * 2 - 1), mode="bilinear", align_corners=True),
        F.interpolate(x, (h * 2 - 1, w // 2), mode="bicubic", align_corners=False),
        F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        F.interpolate(x, scale_factor=(0.6, 1.3), mode="nearest"),
        F.interpolate(x, (h + 3, w + 1), mode="nearest-exact"),
        F.interpolate(x, scale_factor=0.7, mode="area"),
    )


@forward(IMG, dims=DI, kinds=FEW)
def A8295AntialiasedDown(self, x):
    """antialiased bilinear to a fixed smaller size and to half."""
    return F.interpolate(x, (3, 3), mode="bilinear", antialias=True), F.interpolate(
        x, (x.shape[2] // 2, x.shape[3] // 2), mode="bicubic", antialias=True
    )


@forward(IMG, "g:float32[N,3,5,2]=-1.5:1.5", dims=DI, kinds=FEW)
def A8296GridSampleEdges(self, x, g):
    """grid_sample bicubic, nearest on half pixels, reflection, border; affine_grid from a learnt-like theta with the input's size."""
    t = torch.tensor([[0.9, 0.1, 0.2], [-0.1, 1.1, 0.0]]).expand(x.shape[0], 2, 3)
    a = F.affine_grid(t, x.shape, align_corners=False)
    return (
        F.grid_sample(x, g, mode="bicubic", padding_mode="border", align_corners=False),
        F.grid_sample(x, g, mode="nearest", padding_mode="reflection", align_corners=True),
        F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
        F.grid_sample(x, a, padding_mode="zeros", align_corners=False),
    )


@forward(IMG, dims=DI, kinds=FEW)
def A8297PadsOfEachMode(self, x):
    """reflect, replicate and circular pads of half the size, negative pads, a constant of -inf before a pool, pads of one side by parity."""
    h, w = x.shape[2:]
    return (
        F.pad(x, (w // 2, w - 1, 0, h // 2), mode="reflect"),
        F.pad(x, (2, w, h, 1), mode="replicate"),
        F.pad(x, (w // 2, w // 2, 1, 0), mode="circular"),
        F.pad(x, (-1, -1, w % 2, -(h // 3))),
        F.max_pool2d(F.pad(x, (1, 2, 1, 2), value=float("-inf")), 3, 2),
    )


@forward(IMG, dims=DI, kinds=FEW)
def A8298FoldAndShuffle(self, x):
    """unfold with stride, dilation and padding, fold back with overlap divided by counts, Tensor.unfold windows, pixel shuffles after a pad to even."""
    n, c, h, w = x.shape
    u = F.unfold(x, 3, padding=1)
    f = F.fold(u, (h, w), 3, padding=1) / F.fold(torch.ones_like(u), (h, w), 3, padding=1)
    d = F.unfold(x, 2, dilation=2, stride=(1, 2))
    p = F.pixel_unshuffle(F.pad(x, (0, w % 2, 0, h % 2)), 2)
    return (
        f,
        d,
        x.unfold(3, 3, 2).amax(-1),
        F.pixel_shuffle(p, 2)[..., :h, :w],
        F.channel_shuffle(x, 2),
        F.pixel_shuffle(x, 2),
    )


@forward(IMG, dims=DI, kinds=FEW)
def A8299OddPools(self, x):
    """Pools with ceil_mode and padding, dilation, divisor_override, count_include_pad=False, adaptive to 3x2 and (None, 1), lp_pool, indices of a max pool."""
    m, i = F.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True)
    return (
        F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        F.max_pool2d(x, 2, 1, dilation=2),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        F.avg_pool2d(x, 2, 3, divisor_override=3),
        F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(x, (None, 1)),
        F.lp_pool2d(x.abs(), 2, 2, ceil_mode=True), m, i,
    )  # fmt: skip


@attack(IMG, dims=DI, kinds=FEW)
class A8300Convolutions(nn.Module):
    """'same' with an even kernel and dilation, circular and reflect padding modes, a transposed one with output_padding, groups and output_size, depthwise."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        self.a = nn.Conv2d(4, 4, (2, 4), padding="same", dilation=(2, 1))
        self.b = nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode="circular")
        self.c = nn.Conv2d(4, 8, 3, padding="same", padding_mode="reflect", groups=4)
        self.d = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, groups=2)
        self.e = nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)

    def forward(self, x):
        h, w = x.shape[2:]
        return self.a(x), self.b(x), self.c(x), self.d(x), self.e(x, output_size=(2 * h, 2 * w - 1))


@attack("x:float32[N,4,T]", dims="N=2:2:3 T=1:4:7", kinds=FINITE)
class A8301NormsOfFewElements(nn.Module):
    """GroupNorm with as many groups as channels at T=1, instance norm guarded by the size, LayerNorm over the channels, RMSNorm, local response."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(12)
        self.g, self.g1 = nn.GroupNorm(4, 4), nn.GroupNorm(1, 4, eps=0.1)
        self.i = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.r, self.l = nn.RMSNorm(4), nn.LocalResponseNorm(3, alpha=0.5)
        self.b = nn.BatchNorm1d(4, eps=0.3)

    def forward(self, x):
        return self.g(x), self.g1(x), self.i(x), self.r(x.mT), self.l(x), self.b(x)


@forward("a:float32[N,4]=0:9", "b:float32[M,4]=0:9", dims="N=0:3:5 M=1:2:6", kinds=FEW)
def A8302BoxOverlaps(self, a, b):
    """GIoU and DIoU matrices of corner boxes that may be empty or inverted, the best box of each by max with its index, thresholded matches."""
    lt, rb = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = [(v[:, 2:] - v[:, :2]).clamp(min=0).prod(-1) for v in (a, b)]
    union = area[0][:, None] + area[1] - inter
    iou = inter / (union + 1e-3)
    wh = torch.maximum(a[:, None, 2:], b[:, 2:]) - torch.minimum(a[:, None, :2], b[:, :2])
    c = wh.clamp(min=1e-3).prod(-1)
    best, which = iou.max(1)
    which = torch.where(best > 0.1, which, -1)
    return iou - (c - union) / c, best, which, (which >= 0).sum()


@forward("x:float32[N,5,H,W]", dims="N=1:1:2 H=1:3:6 W=1:4:6", kinds=FEW)
def A8303YoloDecode(self, x):
    """Grid offsets by meshgrid of both indexings, strides, sigmoid and exp, a top-k over all cells with k by the smaller of 5 and cells, gather of boxes."""
    n, c, h, w = x.shape
    yy, xx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    xy = (x[:, :2].sigmoid() + torch.stack((xx, yy))) * 8
    wh = x[:, 2:4].clamp(max=4).exp() * 4
    box = torch.cat((xy - wh / 2, xy + wh / 2), 1).flatten(2).mT
    k = min(5, h * w)
    s, i = x[:, 4].flatten(1).sigmoid().topk(k, 1)
    return box.gather(1, i[..., None].expand(-1, -1, 4)), s, i // w, i % w


@forward("x:float32[N,T]", dims="N=1:2:3 T=3:6:12", kinds=FEW)
def A8304OneDimensionalResize(self, x):
    """linear to a fixed size and by a factor from the size, nearest by floor of indices, trilinear of a rank-5 view, resampling by index and a fraction."""
    n, t = x.shape
    y = F.interpolate(x[:, None], 7, mode="linear", align_corners=True)
    z = F.interpolate(x[:, None], scale_factor=5 / t, mode="linear")
    p = torch.linspace(0, t - 1, 5)
    lo = p.floor().long()
    hi = (lo + 1).clamp(max=t - 1)
    v = F.interpolate(x[:, None, :, None, None], (5, 2, 2), mode="trilinear")
    return y, z, torch.lerp(x[:, lo], x[:, hi], p - lo), v[:, 0, :, 1]
