# ruff: noqa: E501 - attacks are written as users write them
"""Pictures: samplers, affine maps, resizes in all modes, pads, fold and unfold, shuffles, histograms, colours."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import at_sides as at
from tests.adversary.values import values_at

P = "x:float32[N,2,H,W]=-4:4"
SIDES = ((2, 2), (3, 4), (5, 5), (8, 7), (16, 16), (2, 16), (16, 3), (7, 11))
D = "N=1:1:2 H=2:8:16 W=2:8:16"


@forward(P, dims=D, kinds=FINITE, feeds=at(P, hw=SIDES))
def A7145ScaleFactors(self, x):
    """Resizes by factors that do not divide, with the factor kept or made anew, of four modes."""
    a = F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=False)
    b = F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=False, recompute_scale_factor=True)
    c = F.interpolate(x, scale_factor=(0.7, 1.3), mode="nearest")
    d = F.interpolate(x, scale_factor=0.7, mode="nearest-exact")
    return a - b, c, d, F.interpolate(x, scale_factor=2.3, mode="bicubic", align_corners=True)


@forward(P, "y:float32[N,2,K,L]=-4:4", dims="N=1:1:2 H=1:6:11 W=1:6:11 K=1:5:9 L=1:5:9", kinds=FINITE,
         feeds=tuple(values_at(P, "y:float32[N,2,K,L]=-4:4", N=1, H=h, W=w, K=k, L=m) for h, w, k, m in ((1, 1, 9, 9), (11, 1, 1, 4), (6, 6, 6, 6), (7, 5, 3, 9), (9, 10, 9, 5))), refused="the exported model differs from the module")  # fmt: skip
def A7146SizeOfOther(self, x, y):
    """A map resized to another's size in modes that differ in the sample; area over sizes that do not divide."""
    s = y.shape[-2:]
    a = F.interpolate(x, s, mode="nearest") + F.interpolate(x, size=s, mode="nearest-exact")
    b = F.interpolate(x, s, mode="bilinear", align_corners=True) + F.interpolate(x, s, mode="area")
    return a + y, b, F.interpolate(x, s, mode="bicubic", align_corners=False, antialias=True)


@forward(P, "t:float32[N,2,3]=-1.5:1.5", dims="N=1:1:2 H=1:6:12 W=1:6:12", kinds=FINITE,
         feeds=(halves(1, 2, 6, 6, t=np.array([[[0, 1, 0], [-1, 0, 0]]], np.float32)), halves(1, 2, 1, 12, t=np.array([[[1, 0, 0.5], [0, -1, 0]]], np.float32)), halves(2, 2, 5, 8, t=np.tile(np.eye(2, 3, dtype=np.float32), (2, 1, 1)))))  # fmt: skip
def A7147Affine(self, x, t):
    """Quarter turns and shifts by half by affine_grid, both corners, three pads; the size of the output is another."""
    n, c, h, w = x.shape
    g = F.affine_grid(t, (n, c, h, w + 1), align_corners=False)
    k = F.affine_grid(t, (n, c, h + 2, w), align_corners=True)
    a = F.grid_sample(x, g, mode="bilinear", padding_mode="zeros", align_corners=False)
    b = F.grid_sample(x, k, mode="bilinear", padding_mode="border", align_corners=True)
    return a, b, F.grid_sample(x, g, mode="bilinear", padding_mode="reflection", align_corners=True)


@forward("x:float32[N,2,D,H,W]=-4:4", dims="N=1:1:2 D=2:4:7 H=2:4:7 W=2:4:7", kinds=FINITE,
         feeds=tuple(values_at("x:float32[N,2,D,H,W]=-4:4", N=1, D=d, H=h, W=w) for d, h, w in ((2, 2, 2), (7, 2, 3), (4, 5, 6), (3, 7, 7))))  # fmt: skip
def A7148Volume(self, x):
    """Volumes: trilinear by half with corners, nearest by 1.5, a reflected pad of one, a pool with ceilings."""
    a = F.interpolate(x, scale_factor=0.5, mode="trilinear", align_corners=True)
    b = F.interpolate(x, scale_factor=1.5, mode="nearest")
    c = F.pad(x, (1, 1, 1, 0, 0, 1), mode="reflect")
    return a, b, c, F.avg_pool3d(x, 2, 2, 0, ceil_mode=True, count_include_pad=False)


@forward(P, dims="N=1:1:2 H=4:8:16 W=4:8:16", kinds=FINITE, feeds=at(P, hw=((4, 4), (5, 6), (7, 7), (16, 16), (4, 16))))
def A7149Pads(self, x):
    """A pad of each mode, some negative; circular by three on one side only; the reflected one of half the side."""
    h, w = x.shape[2:]
    a = F.pad(x, (3, 0, 0, 2), mode="circular")
    b = F.pad(x, (w // 2, (w - 1) // 2, h // 2, (h - 1) // 2), mode="reflect")
    c = F.pad(x, (-1, 2, 1, -2), mode="replicate")
    d = F.pad(x, (-1, -1, 3, -3), value=-0.5)
    return a, b, c, d


@forward(P, dims="N=1:1:2 H=3:9:17 W=3:9:17", kinds=FINITE, feeds=at(P, hw=((3, 3), (4, 4), (5, 17), (9, 10), (17, 16))))
def A7150FoldMean(self, x):
    """Patches of three by stride two, softened, folded back and divided by how often each pixel was covered."""
    h, w = x.shape[2:]
    u = F.unfold(x, 3, stride=2, padding=1)
    y = F.fold(u.tanh(), (h, w), 3, stride=2, padding=1)
    n = F.fold(F.unfold(torch.ones_like(x), 3, stride=2, padding=1), (h, w), 3, stride=2, padding=1)
    v = F.unfold(x, (2, 3), dilation=(2, 1), stride=(1, 2))
    return y / n, v.norm(dim=1)


@forward("x:float32[N,8,H,W]=-4:4", dims="N=1:1:2 H=2:8:16%2 W=2:8:16%2", kinds=FINITE,
         feeds=at("x:float32[N,8,H,W]=-4:4", hw=((2, 2), (4, 16), (16, 16), (6, 2))), target="tensorrt==8.6")  # fmt: skip
def A7151Shuffles(self, x):
    """Depth to space by the two orders, space to depth by slices as of YOLOv5's focus, channel shuffle, a checkerboard."""
    n, c, h, w = x.shape
    a = F.pixel_shuffle(x, 2)
    b = x.view(n, 2, 2, c // 4, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // 4, h * 2, w * 2)
    f = torch.cat((x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1)
    g = F.channel_shuffle(F.pixel_unshuffle(x, 2), 4)
    board = (torch.arange(h)[:, None] + torch.arange(w)) % 2 == 0
    return a - b, f - g, x * board


@forward("x:uint8[H,W,3]", dims="H=1:8:20 W=1:8:20",
         feeds=(lambda: {"x": np.full((3, 4, 3), 255, np.uint8)}, lambda: {"x": (np.arange(1200) * 91 % 256).reshape(20, 20, 3).astype(np.uint8)}, lambda: {"x": np.zeros((1, 1, 3), np.uint8)}))  # fmt: skip
def A7152Hsv(self, x):
    """RGB to HSV in OpenCV's bytes: ties of the greatest channel, gray pixels of no hue, sums in bytes that wrap."""
    f = x.float() / 255
    v, i = f.max(-1)
    mn = f.amin(-1)
    d = v - mn
    r, g, b = f.unbind(-1)
    safe = torch.where(d == 0, torch.ones_like(d), d)
    h = torch.stack(((g - b) / safe, (b - r) / safe + 2, (r - g) / safe + 4), 0).gather(0, i[None])[0]
    h = (h / 6) % 1.0 * 180
    s = torch.where(v == 0, 0.0, d / v)
    return h.floor().to(torch.uint8), (s * 255).round().to(torch.uint8), x[..., 0] + x[..., 1], x.max(-1).values - x.min(-1).values


@forward("x:uint8[H,W]", dims="H=1:8:16 W=1:8:16",
         feeds=(lambda: {"x": np.full((3, 4), 255, np.uint8)}, lambda: {"x": (np.arange(256) * 91 % 256).reshape(16, 16).astype(np.uint8)}, lambda: {"x": np.zeros((1, 1), np.uint8)}), target="tensorrt==8.6")  # fmt: skip
def A7153Equalize(self, x):
    """PIL's equalize: the histogram by one_hot, the step without the last value, a look-up table where the step is not zero."""
    hist = F.one_hot(x.flatten().long(), 256).sum(0)
    place = torch.arange(256)
    last = torch.where(hist > 0, place, -1).amax()
    step = torch.div(hist.sum() - hist[last], 255, rounding_mode="floor")
    lut = torch.div(hist.cumsum(0) + torch.div(step, 2, rounding_mode="floor"), step.clamp(min=1), rounding_mode="floor")
    lut = torch.cat((torch.zeros(1, dtype=torch.long), lut[:-1])).clamp(0, 255)
    return torch.where(step == 0, x, lut[x.long()].to(torch.uint8))


@forward(P, dims=D, kinds=FINITE, feeds=at(P, hw=SIDES))
def A7154Hist(self, x):
    """torch.histc and bincount-like counts of all pixels, their quantiles by linear and lower interpolation."""
    f = x.flatten(1)
    h = torch.histc(x, bins=8, min=-4, max=4)
    q = torch.quantile(f, torch.tensor([0.02, 0.5, 0.98]), dim=1)
    lo = torch.quantile(f, 0.25, dim=1, interpolation="lower", keepdim=True)
    y = (f - q[0][:, None]) / (q[2] - q[0]).clamp(min=1e-3)[:, None]
    return h, y.clamp(0, 1).view_as(x), lo


@forward(P, "m:float32[N,3,3]=-0.2:0.2", dims="N=1:1:2 H=2:6:12 W=2:6:12", kinds=FINITE,
         feeds=(halves(1, 2, 6, 6, m=np.zeros((1, 3, 3), np.float32)), halves(1, 2, 5, 12, m=np.array([[[0, 0, 0], [0, 0, 0], [-0.2, 0, 0]]], np.float32))))  # fmt: skip
def A7155Homography(self, x, m):
    """A warp by the inverse of a homography near one; the inverse from cofactors by cross products."""
    n, _, h, w = x.shape
    m = m + torch.eye(3) * 1.5
    a, b, c = m.unbind(1)
    inv = torch.stack((torch.cross(b, c, dim=-1), torch.linalg.cross(c, a), torch.linalg.cross(a, b)), 2) / (a * torch.linalg.cross(b, c)).sum(-1)[:, None, None]
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    p = torch.stack((xs, ys, torch.ones_like(xs)), -1).view(1, -1, 3) @ inv.mT
    z = p[..., 2:]
    g = (p[..., :2] / torch.where(z.abs() > 1e-8, z, 1.0)).view(n, h, w, 2)
    # A ramp: coordinates are off by their rounding, and a picture of noise by that times its slope, which the judge does not measure.
    return F.grid_sample(x.mean((2, 3), keepdim=True) * xs, g, padding_mode="border", align_corners=True), inv


@forward(P, dims="N=1:1:2 H=2:8:15 W=2:8:15", kinds=FINITE, feeds=at(P, hw=((2, 2), (3, 3), (8, 9), (15, 14), (5, 2))), target="tensorrt==8.6", refused="works out the shapes of both branches of an If")
def A7156Pools(self, x):
    """Adaptive pools to sizes that do not divide and to half of the side, a max pool with indices, LP pool."""
    h, w = x.shape[2:]
    a = F.adaptive_avg_pool2d(x, (3, 2))
    b = F.adaptive_max_pool2d(x, ((h + 1) // 2, 1))
    c, i = F.max_pool2d(x, 2, 2, return_indices=True)
    return a, b, F.max_unpool2d(c, i, 2, 2, output_size=(h, w)), F.lp_pool2d(x.abs(), 2, 2)


@attack(P, dims=D, kinds=FINITE, feeds=at(P, hw=SIDES))
class A7157Flow(nn.Module):
    """RAFT: coordinates in pixels scaled by size minus one (a side of one excluded), convex upsampling of the flow by two."""

    def __init__(self):
        super().__init__()
        self.mask = nn.Conv2d(2, 36, 3, padding=1)

    def forward(self, x):
        n, _, h, w = x.shape
        co = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1]).float()[None] + x
        gx, gy = 2 * co[:, 0] / (w - 1) - 1, 2 * co[:, 1] / (h - 1) - 1
        y = F.grid_sample(x, torch.stack((gx, gy), -1), align_corners=True)
        m = self.mask(x).view(n, 1, 9, 2, 2, h, w).softmax(2)
        up = F.unfold(2 * x, (3, 3), padding=1).view(n, 2, 9, 1, 1, h, w)
        up = (m * up).sum(2).permute(0, 1, 4, 2, 5, 3)
        valid = (gx.abs() < 1) & (gy.abs() < 1)
        return y, up.reshape(n, 2, 2 * h, 2 * w), valid


@forward(P, dims="N=1:1:2 H=8:16:40 W=8:16:40", kinds=FINITE, feeds=at(P, hw=((8, 8), (9, 9), (17, 33), (40, 39), (31, 8))))
def A7158Pyramid(self, x):
    """A Laplacian pyramid with blur of five, every second pixel kept, back up by zeros between and the blur times four."""
    k = torch.tensor([1.0, 4, 6, 4, 1]) / 16
    k = (k[:, None] * k).expand(2, 1, 5, 5)
    blur = lambda v: F.conv2d(F.pad(v, (2, 2, 2, 2), mode="reflect"), k, groups=2)  # noqa: E731
    out = []
    for _ in range(2):
        down = blur(x)[:, :, ::2, ::2]
        up = x.new_zeros(x.shape)
        up[:, :, ::2, ::2] = down
        out.append((x - blur(up) * 4).flatten(2).amax(-1))
        x = down
    return torch.stack(out), x


@forward(P, dims=D, kinds=FINITE, feeds=at(P, hw=SIDES))
def A7159CenterCrop(self, x):
    """torchvision's centre crop to eight by six: rounds half to even, pads the smaller side first, and cuts."""
    h, w = x.shape[2:]
    ph, pw = max(8 - h, 0), max(6 - w, 0)
    x = F.pad(x, (pw // 2, (pw + 1) // 2, ph // 2, (ph + 1) // 2))
    h, w = x.shape[2:]
    top, left = round((h - 8) / 2.0), round((w - 6) / 2.0)
    return x[..., top : top + 8, left : left + 6]
