"""Vision: preprocessing inside the network, windows, pyramids, positions and heads."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, HW = "x:float32[N,3,H,W]", "N=1:1:2 H=5:9:21 W=6:9:22"
MAP = "x:float32[N,4,H,W]"


@forward("x:uint8[N,H,W,3]=0:255", dims=HW)
def camera_bytes_letterboxed(self, x):
    image = x.permute(0, 3, 1, 2).float() / 255
    h, w = image.shape[-2:]
    size = max(h, w)
    top, left = (size - h) // 2, (size - w) // 2
    image = F.pad(image, (left, size - w - left, top, size - h - top), value=114 / 255)
    return image, (image - image.mean((2, 3), keepdim=True)) / image.std((2, 3), keepdim=True).clamp_min(1e-3)


@forward("x:uint8[N,H,W,3]=0:255", dims=HW)
def luma_in_integers(self, x):
    r, g, b = x.to(torch.int32).unbind(-1)
    y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16
    u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128
    return y.to(torch.uint8), u.clamp(0, 255).to(torch.uint8), (x // 2 + x % 7)


@forward(IMAGE, dims=HW)
def short_side_resized(self, x):
    h, w = x.shape[-2:]
    scale = 11 / min(h, w)
    return F.interpolate(x, size=(int(h * scale), int(w * scale)), mode="bilinear", align_corners=False)


@forward(IMAGE, dims=HW, noted="infinity")
def antialiased_half(self, x):
    return F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)


@forward(IMAGE, dims=HW)
def bicubic_by_scale(self, x):
    a = F.interpolate(x, scale_factor=(1.3, 0.7), mode="bicubic", align_corners=False)
    b = F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)
    return a, b


@forward(IMAGE, dims=HW)
def aligned_corners_of_one(self, x):
    a = F.interpolate(x, size=(1, 7), mode="bilinear", align_corners=True)
    return a, F.interpolate(a, size=(3, 1), mode="bicubic", align_corners=True)


@forward(IMAGE, dims=HW, noted="infinity")
def area_and_exact(self, x):
    a = F.interpolate(x, size=(4, 5), mode="area")
    return a, F.interpolate(x, size=(x.shape[3], x.shape[2]), mode="nearest-exact")


@attack(MAP, dims="N=1:1:2 H=4:9:21 W=4:9:22")
class SwinBlock(nn.Module):
    """Windows of 4 with a shift, padded to whole windows, and a mask of regions made by slices."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.bias = nn.Parameter(torch.randn(1, 16, 16))

    def forward(self, x):
        n, c, h, w = x.shape
        x = F.pad(x.permute(0, 2, 3, 1), (0, 0, 0, -w % 4, 0, -h % 4))
        high, wide = x.shape[1], x.shape[2]
        x = torch.roll(x, (-2, -2), (1, 2))
        region = torch.zeros(1, high, wide, 1)
        number = 0
        for rows in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for columns in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                region[:, rows, columns] = number
                number += 1
        mask = self.windows(region).squeeze(-1)
        mask = (mask[:, None] - mask[:, :, None]).ne(0).float() * -100.0
        q, k, v = self.qkv(self.windows(x)).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / 2 + self.bias + mask.repeat(n, 1, 1)
        x = scores.softmax(-1) @ v
        x = x.view(n, high // 4, wide // 4, 4, 4, c).transpose(2, 3).reshape(n, high, wide, c)
        return torch.roll(x, (2, 2), (1, 2))[:, :h, :w].permute(0, 3, 1, 2)

    def windows(self, x):
        n, h, w, c = x.shape
        return x.view(n, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)


@attack(MAP, dims=HW)
class PyramidOfOdd(nn.Module):
    """Stride 2 down, nearest up by a factor, cropped or padded to the lateral."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(4, 4, 3, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.down(a)
        up = F.interpolate(b, scale_factor=2, mode="nearest")
        dh, dw = a.shape[2] - up.shape[2], a.shape[3] - up.shape[3]
        a = a + F.pad(up, (0, dw, 0, dh))
        return x + F.interpolate(a, size=x.shape[2:], mode="bilinear", align_corners=True)


@forward(MAP, dims=HW)
def pools_of_ceil(self, x):
    a = F.max_pool2d(x, 3, 2, 1, ceil_mode=True)
    b = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
    c = F.avg_pool2d(x, (2, 3), (2, 2), (1, 1), ceil_mode=True, count_include_pad=True)
    return a, b, c, F.avg_pool2d(x, 3, 3, ceil_mode=True, divisor_override=2)


@forward(MAP, dims=HW)
def pool_dilated_with_indices(self, x):
    a = F.max_pool2d(x, 2, 1, 1, dilation=2, ceil_mode=True)
    values, indices = F.max_pool2d(x, 2, 2, return_indices=True)
    return a, indices, F.max_unpool2d(values, indices, 2, output_size=x.shape[2:])


@forward(MAP, dims=HW, noted="infinity")
def adaptive_pools_that_overlap(self, x):
    return F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_max_pool2d(x, (None, 4)), F.adaptive_avg_pool2d(x, (2, None))


@attack(MAP, dims=HW)
class TransposedConvolutions(nn.Module):
    """Output padding, dilation and groups together, and an output size asked for by the caller."""

    def __init__(self):
        super().__init__()
        self.a = nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2, dilation=2)
        self.b = nn.ConvTranspose2d(6, 2, (2, 3), (3, 2), (0, 1), bias=False)

    def forward(self, x):
        y = self.a(x)
        return self.b(y, output_size=(y.shape[2] * 3 - 1, y.shape[3] * 2))


@attack(MAP, dims=HW)
class CircularSame(nn.Module):
    """padding="same" with even kernels, circular and reflected."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 4, (4, 2), padding="same", padding_mode="circular")
        self.b = nn.Conv2d(4, 4, 4, padding="same", padding_mode="reflect", dilation=(1, 1), groups=4)
        self.c = nn.Conv2d(4, 2, (2, 4), padding="same", dilation=(3, 1))

    def forward(self, x):
        return self.a(x), self.b(x), self.c(x)


@forward(MAP, dims=HW)
def pixels_shuffled_back(self, x):
    h, w = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
    down = F.pixel_unshuffle(x[:, :, :h, :w], 2)
    return F.pixel_shuffle(down.roll(-3, 1), 4), F.channel_shuffle(down, 8)


@forward(MAP, dims=HW)
def unfolded_and_folded(self, x):
    size = (x.shape[2], x.shape[3])
    columns = F.unfold(x, (3, 2), dilation=(1, 2), padding=(2, 1), stride=(2, 1))
    return columns, F.fold(columns, size, (3, 2), dilation=(1, 2), padding=(2, 1), stride=(2, 1))


@forward(MAP, "flow:float32[N,H,W,2]", dims=HW, noted="infinity")
def warped_by_flow(self, x, flow):
    h, w = x.shape[2:]
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    grid = torch.stack((xs, ys), -1) + flow / 4
    a = F.grid_sample(x, grid, padding_mode="reflection", align_corners=True)
    b = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
    return a, b, F.grid_sample(x, grid, padding_mode="border", align_corners=False)


@forward(MAP, "flow:float32[N,H,W,2]=-2:2", dims=HW)
def warped_bicubic(self, x, flow):
    return F.grid_sample(x, flow, mode="bicubic", padding_mode="border", align_corners=False), F.grid_sample(
        x, flow, mode="bicubic", padding_mode="reflection", align_corners=True
    )


@forward(MAP, "theta:float32[N,2,3]=-2:2", dims=HW)
def spatial_transformer(self, x, theta):
    grid = F.affine_grid(theta, (x.shape[0], 4, x.shape[3], x.shape[2]), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


@attack(IMAGE, dims=HW)
class GaussianBlurMadeHere(nn.Module):
    """The kernel's width follows the image."""

    def forward(self, x):
        h, w = x.shape[-2:]
        sigma = 0.15 * min(h, w)
        steps = torch.arange(-3, 4, dtype=torch.float32)
        kernel = torch.exp(-(steps**2) / (2 * sigma**2))
        kernel = kernel / kernel.sum()
        x = F.pad(x, (3, 3, 3, 3), mode="reflect")
        x = F.conv2d(x, kernel.view(1, 1, 1, 7).expand(3, 1, 1, 7), groups=3)
        return F.conv2d(x, kernel.view(1, 1, 7, 1).expand(3, 1, 7, 1), groups=3)


@forward(IMAGE, dims=HW)
def sine_positions_of_mask(self, x):
    mask = (x > -1e9).any(1)
    y = mask.cumsum(1, dtype=torch.float32)
    y = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi
    steps = torch.arange(6, dtype=torch.float32)
    wave = y[..., None] / 10000 ** (2 * torch.div(steps, 2, rounding_mode="floor") / 6)
    return torch.stack((wave[..., 0::2].sin(), wave[..., 1::2].cos()), 4).flatten(3)


@forward(IMAGE, dims=HW)
def five_crops(self, x):
    h, w = x.shape[-2:]
    ch, cw = int(0.875 * h), round(0.875 * w)
    top, left = round((h - ch) / 2.0), int((w - cw) * 0.5)
    crops = (x[..., :ch, :cw], x[..., h - ch :, w - cw :], x[..., top : top + ch, left : left + cw])
    return torch.stack([c.mean((2, 3)) for c in crops], 1), crops[2]


@forward(IMAGE, dims=HW)
def even_local_response(self, x):
    return F.local_response_norm(x, 2, alpha=0.3, beta=0.75, k=2.0), F.local_response_norm(x, 3)


@attack(MAP, dims=HW)
class BatchOfEval(nn.Module):
    """Without running statistics a batch norm takes the batch's own; instance norm with them takes none."""

    def __init__(self):
        super().__init__()
        self.a = nn.BatchNorm2d(4, track_running_stats=False)
        self.b = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.b.running_mean += torch.tensor([0.5, -1.0, 2.0, 0.0])
        self.b.running_var *= torch.tensor([0.5, 4.0, 1e-3, 1.0])
        self.c = nn.GroupNorm(2, 4, eps=0.1)

    def forward(self, x):
        return self.a(x), self.b(x), self.c(x)
