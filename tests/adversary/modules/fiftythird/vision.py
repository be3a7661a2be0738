# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them
"""Vision: preprocessing in the forward, necks, flow, stereo, depth, super-resolution, codecs, video, features."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftythird.speech import at

RGB = "x:float32[N,3,H,W]=0:1"
MAP = "x:float32[N,4,H,W]"
BYTES = "x:uint8[N,H,W,3]=0:255"


def picture(text: str = RGB, low: int = 8, high: int = 33, **own: tuple[int, ...]) -> dict:
    """Pictures of some tens of pixels, looked at round multiples of four and eight."""
    h = own.get("h", tuple(v for v in (low, low + 1, 15, 16, 17, 24, 31, 32, high, high) if low <= v <= high))
    w = own.get("w", h[::-1])
    return {"dims": f"N=1:1:2 H={low}:16:{high} W={low}:20:{high}", "feeds": at(text, N=(1, 2), H=h, W=w)}


@forward(BYTES, **picture(BYTES, 1, 40))
def A6830Letterbox(self, x):
    """YOLO: the smaller ratio to 32 by 32, Python's rounding, grey ends by halves less and more 0.1, BGR to RGB."""
    h, w = x.shape[1:3]
    r = min(32 / h, 32 / w)
    nw, nh = int(round(w * r)), int(round(h * r))
    y = x.flip(-1).permute(0, 3, 1, 2).float()
    y = F.interpolate(y, (max(nh, 1), max(nw, 1)), mode="bilinear", align_corners=False)
    dw, dh = (32 - y.shape[3]) / 2, (32 - y.shape[2]) / 2
    top, bottom = int(round(dh - 0.1)), int(round(dh + 0.1))
    left, right = int(round(dw - 0.1)), int(round(dw + 0.1))
    return F.pad(y, (left, right, top, bottom), value=114.0) / 255


@attack(MAP, **picture(MAP, 4, 40))
class A6831DetrSine(nn.Module):
    """DETR's sine positions from a mask's cumulative sums, normalised to two pi, with sizes that round up to a stride."""

    def forward(self, x):
        n, _, h, w = x.shape
        hp, wp = math.ceil(h / 8) * 8, math.ceil(w / 8) * 8
        m = torch.ones((n, hp, wp), dtype=torch.bool)
        m[:, :h, :w] = False
        m = F.interpolate(m[None].float(), size=(hp // 8, wp // 8)).to(torch.bool)[0]
        y, z = (~m).cumsum(1, dtype=torch.float32), (~m).cumsum(2, dtype=torch.float32)
        y, z = y / (y[:, -1:] + 1e-6) * 2 * math.pi, z / (z[:, :, -1:] + 1e-6) * 2 * math.pi
        d = 10000 ** (2 * torch.div(torch.arange(4, dtype=torch.float32), 2, rounding_mode="floor") / 4)
        y, z = y[..., None] / d, z[..., None] / d
        y, z = (torch.stack((v[..., 0::2].sin(), v[..., 1::2].cos()), 4).flatten(3) for v in (y, z))
        return torch.cat((y, z), 3).permute(0, 3, 1, 2), F.adaptive_max_pool2d(x, (2, 3)), m


@attack("a:float32[N,4,H,W]", "b:float32[N,4,H,W]", **{k: v for k, v in picture("a:float32[N,4,H,W]", 8, 20).items() if k == "dims"}, feeds=at("a:float32[N,4,H,W]", "b:float32[N,4,H,W]", N=(1, 2), H=(8, 9, 15, 16, 20), W=(20, 8, 17, 9, 8)))
class A6832RaftLookup(nn.Module):
    """RAFT: all pairs, a pyramid by average pooling, lookups by bilinear sampling with zeros outside, radius 1."""

    def forward(self, a, b):
        n, c, h, w = a.shape
        corr = (a.flatten(2).transpose(1, 2) @ b.flatten(2)).view(n * h * w, 1, h, w) / math.sqrt(c)
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        coords = torch.stack((x, y), -1).float()[None].repeat(n, 1, 1, 1) + a[:, :2].permute(0, 2, 3, 1)
        d = torch.linspace(-1, 1, 3)
        delta = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1)
        out = []
        for i in range(3):
            g = coords.reshape(-1, 1, 1, 2) / 2**i + delta[None]
            hh, ww = corr.shape[-2:]
            gx, gy = g.split([1, 1], -1)
            g = torch.cat((2 * gx / max(ww - 1, 1) - 1, 2 * gy / max(hh - 1, 1) - 1), -1)
            out.append(F.grid_sample(corr, g, align_corners=True).view(n, h, w, -1))
            corr = F.avg_pool2d(corr, 2, stride=2)
        return torch.cat(out, -1)


@attack("a:float32[N,4,H,W]", "b:float32[N,4,H,W]", dims="N=1:1:2 H=1:6:12 W=3:10:24", feeds=at("a:float32[N,4,H,W]", "b:float32[N,4,H,W]", N=(1, 2), H=(1, 2, 12), W=(3, 4, 6, 7, 8, 24)))
class A6833GwcVolume(nn.Module):
    """Stereo: a group-wise volume written by slices up to six disparities (or the width), soft-argmin, the best two."""

    def forward(self, a, b):
        n, c, h, w = a.shape
        most = min(6, w)
        v = a.new_zeros((n, 2, most, h, w))
        for i in range(most):
            if i > 0:
                v[:, :, i, :, i:] = (a[..., i:] * b[..., :-i]).view(n, 2, 2, h, w - i).mean(2)
            else:
                v[:, :, i] = (a * b).view(n, 2, 2, h, w).mean(2)
        p = v.mean(1).softmax(1)
        d = torch.arange(most, dtype=p.dtype).view(1, most, 1, 1)
        top, i = p.topk(2, 1)
        return (p * d).sum(1, keepdim=True), top.sum(1), v


@attack(RGB, **picture(RGB, 9, 48, h=(9, 15, 16, 17, 20, 21, 31, 32, 33, 40, 47, 48)))
class A6834TiledUpscale(nn.Module):
    """Real-ESRGAN's tiles of sixteen with an overlap of two, each clipped at the borders, written to an output."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.Conv2d(3, 12, 3, padding=1)

    def forward(self, x):
        n, c, h, w = x.shape
        out = x.new_zeros((n, c, h * 2, w * 2))
        for y in range(math.ceil(h / 16)):
            for z in range(math.ceil(w / 16)):
                x0, x1 = z * 16, min(z * 16 + 16, w)
                y0, y1 = y * 16, min(y * 16 + 16, h)
                px0, px1, py0, py1 = max(x0 - 2, 0), min(x1 + 2, w), max(y0 - 2, 0), min(y1 + 2, h)
                t = F.pixel_shuffle(self.conv(x[:, :, py0:py1, px0:px1]), 2)
                sy, sx = (y0 - py0) * 2, (x0 - px0) * 2
                out[:, :, y0 * 2 : y1 * 2, x0 * 2 : x1 * 2] = t[:, :, sy : sy + (y1 - y0) * 2, sx : sx + (x1 - x0) * 2]
        return out


@attack(RGB, **picture(RGB, 4, 33))
class A6835JpegBlocks(nn.Module):
    """A codec: BT.601 with full range, edges replicated to blocks of eight, DCT, a quantiser that rounds, and back."""

    def __init__(self):
        super().__init__()
        k = torch.arange(8)
        m = torch.cos((2 * k[None] + 1) * k[:, None] * math.pi / 16) / 2
        m[0] /= math.sqrt(2)
        self.register_buffer("m", m)
        self.register_buffer("q", (k[:, None] + k + 1.37) * 3)

    def forward(self, x):
        h, w = x.shape[2:]
        r, g, b = x.mul(255).unbind(1)
        y = 0.299 * r + 0.587 * g + 0.114 * b - 128
        y = F.pad(y[:, None], (0, -w % 8, 0, -h % 8), "replicate")
        p = y.unfold(2, 8, 8).unfold(3, 8, 8)
        f = self.m @ p @ self.m.T / self.q
        soft = f - torch.sin(2 * math.pi * f) / (2 * math.pi)
        z = self.m.T @ (soft * self.q) @ self.m
        z = z.permute(0, 1, 2, 4, 3, 5).reshape(y.shape)
        return (z[:, 0, :h, :w] + 128).clamp(0, 255), (1 - 0.168736 * r - 0.331264 * g + 0.5 * b)


@attack("x:float32[N,K,H,W]", dims="N=1:1:2 K=3:3:3 H=1:8:16 W=1:8:16", feeds=tuple((lambda h=h, w=w, s=s: {"x": np.random.RandomState(s).randint(-1, 2, (1, 3, h, w)).astype(np.float32)}) for s, (h, w) in enumerate(((1, 1), (2, 2), (3, 8), (5, 16), (16, 3)))))
class A6836HeatmapPose(nn.Module):
    """HRNet's decoding: the argmax, zero where it is not positive, a quarter towards the higher neighbour inside the border."""

    def forward(self, x):
        n, k, h, w = x.shape
        f = x.reshape(n, k, -1)
        v, i = f.max(-1, keepdim=True)
        p = torch.cat((i % w, i // w), -1).float()
        p = p * (v > 0)
        px, py = p[..., 0].long(), p[..., 1].long()
        inside = (px > 1) & (px < w - 1) & (py > 1) & (py < h - 1)

        def g(dx, dy):
            return f.gather(2, ((py + dy).clamp(0, h - 1) * w + (px + dx).clamp(0, w - 1))[..., None])[..., 0]

        d = torch.stack((g(1, 0) - g(-1, 0), g(0, 1) - g(0, -1)), -1)
        return p + torch.sign(d) * 0.25 * inside[..., None], v


@attack("x:float32[N,T,4,6,6]", dims="N=1:1:2 T=1:8:17", feeds=at("x:float32[N,T,4,6,6]", N=(1, 2), T=(1, 2, 3, 4, 5, 7, 8, 9, 16, 17)), noted="with an infinity in an input the file differs")
class A6837TemporalShift(nn.Module):
    """TSM with zeros by slices, then a SlowFast choice of every fourth frame by linspace, and a pooled clip."""

    def forward(self, x):
        n, t, c, h, w = x.shape
        out = torch.zeros_like(x)
        out[:, :-1, :1] = x[:, 1:, :1]
        out[:, 1:, 1:2] = x[:, :-1, 1:2]
        out[:, :, 2:] = x[:, :, 2:]
        slow = torch.index_select(x, 1, torch.linspace(0, t - 1, max(t // 4, 1)).long())
        return out, slow, F.adaptive_avg_pool3d(x.transpose(1, 2), (2, 1, 1))


@forward("x:float32[N,1,H,W]=0:1", **picture("x:float32[N,1,H,W]=0:1", 3, 20))
def A6838CannyLike(self, x):
    """Kornia: replicated Sobel, angles in bins of 45 by rounding, suppression by shifted neighbours, hysteresis once."""
    k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    g = F.conv2d(F.pad(x, (1, 1, 1, 1), "replicate"), torch.stack((k, k.T))[:, None])
    gx, gy = g[:, :1], g[:, 1:]
    mag = torch.sqrt(gx * gx + gy * gy + 1e-6)
    n9 = F.unfold(F.pad(mag, (1, 1, 1, 1)), 3).view(x.shape[0], 9, *x.shape[2:])
    horizontal = gx.abs() > gy.abs() * 2.4142135
    vertical = gy.abs() > gx.abs() * 2.4142135
    same = gx * gy > 0
    a = torch.where(horizontal, n9[:, 3:4], torch.where(vertical, n9[:, 1:2], torch.where(same, n9[:, :1], n9[:, 2:3])))
    b = torch.where(horizontal, n9[:, 5:6], torch.where(vertical, n9[:, 7:8], torch.where(same, n9[:, 8:9], n9[:, 6:7])))
    y = mag * ((mag >= a) & (mag >= b))
    strong, weak = y > 0.2, y > 0.1
    return y, strong | (weak & (F.max_pool2d(strong.float(), 3, 1, 1) > 0))


@forward(MAP, **picture(MAP, 2, 24), noted="with an infinity in an input the file differs")
def A6839PanopticNeck(self, x):
    """FPN sums of nearest upsampling to odd sizes, PPM bins 1, 2, 3, 6, ceil-mode pooling without the padding."""
    a = F.max_pool2d(x, 3, 2, 1, ceil_mode=True)
    b = F.avg_pool2d(a, 2, 2, ceil_mode=True, count_include_pad=False)
    p = a + F.interpolate(b, size=a.shape[-2:], mode="nearest")
    q = x + F.interpolate(p, size=x.shape[-2:], mode="nearest-exact")
    bins = [F.interpolate(F.adaptive_avg_pool2d(q, s), q.shape[2:], mode="bilinear", align_corners=True) for s in (1, 2, 3, 6)]
    return torch.cat(bins, 1)


@attack(MAP, "m:bool[N,1,H,W]", dims="N=1:1:2 H=1:8:16 W=1:8:16", feeds=at(MAP, "m:bool[N,1,H,W]", N=(1, 2), H=(1, 2, 3, 16), W=(1, 3, 16, 2)))
class A6840PartialConv(nn.Module):
    """A partial convolution for inpainting: ratio of windows, updated mask, zero where no pixel was seen; masked mean and deviation."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x, m):
        f = m.to(x.dtype)
        u = F.conv2d(f, torch.ones(1, 1, 3, 3), padding=1)
        r = 9 / (u + 1e-8)
        u = u.clamp(0, 1)
        r = r * u
        b = self.conv.bias.view(1, -1, 1, 1)
        y = ((self.conv(x * f) - b) * r + b) * u
        n = f.sum((2, 3), keepdim=True)
        mean = (x * f).sum((2, 3), keepdim=True) / n.clamp(min=1)
        return y, u, torch.sqrt(((x - mean).pow(2) * f).sum((2, 3)) / (n.flatten(1) - 1))


@attack(BYTES, **picture(BYTES, 9, 30))
class A6841CropTenFlip(nn.Module):
    """CenterCrop by rounding halves, five crops in one batch, gamma by a table of bytes, and solarize."""

    def __init__(self):
        super().__init__()
        self.register_buffer("lut", ((torch.arange(256) / 255) ** 2.2 * 255 + 0.5).to(torch.uint8))

    def forward(self, x):
        h, w = x.shape[1:3]
        top, left = int(round((h - 8) / 2.0)), int(round((w - 8) / 2.0))
        g = self.lut[x.long()]
        s = torch.where(g >= 128, 255 - g, g)
        c = s[:, top : top + 8, left : left + 8]
        five = torch.stack((s[:, :8, :8], s[:, :8, w - 8 :], s[:, h - 8 :, :8], s[:, h - 8 :, w - 8 :], c), 1)
        return torch.cat((five, five.flip(3)), 1), (x + 50), c.float().div(255).sub(0.485)


@attack(RGB, **picture(RGB, 5, 30))
class A6842SelfSupervisedDepth(nn.Module):
    """Monodepth: disparity to depth, edge-aware smoothness of a mean-normalised disparity, SSIM by reflection, the median's scale."""

    def forward(self, x):
        d = 1 / (1 / 100 + (1 / 0.1 - 1 / 100) * torch.sigmoid(x[:, :1]))
        nd = d / (d.mean(2, True).mean(3, True) + 1e-7)
        gx, gy = (nd[..., :-1] - nd[..., 1:]).abs(), (nd[..., :-1, :] - nd[..., 1:, :]).abs()
        gx = gx * torch.exp(-(x[..., :-1] - x[..., 1:]).abs().mean(1, keepdim=True))
        gy = gy * torch.exp(-(x[..., :-1, :] - x[..., 1:, :]).abs().mean(1, keepdim=True))
        a, b = F.pad(x[:, :1], (1, 1, 1, 1), "reflect"), F.pad(x[:, 1:2], (1, 1, 1, 1), "reflect")
        ma, mb = F.avg_pool2d(a, 3, 1), F.avg_pool2d(b, 3, 1)
        sa, sb, sab = F.avg_pool2d(a * a, 3, 1) - ma**2, F.avg_pool2d(b * b, 3, 1) - mb**2, F.avg_pool2d(a * b, 3, 1) - ma * mb
        s = (2 * ma * mb + 1e-4) * (2 * sab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (sa + sb + 9e-4))
        return gx.mean() + gy.mean(), ((1 - s) / 2).clamp(0, 1), d / d.flatten(1).median(1).values[:, None, None, None]


@attack("x:float32[N,5,H,W]", dims="N=1:1:2 H=4:9:17 W=4:9:17", feeds=at("x:float32[N,5,H,W]", N=(1, 2), H=(4, 5, 8, 9, 17), W=(17, 4, 5, 8, 9)))
class A6843UnetOddSizes(nn.Module):
    """A U-Net that pads what it upsampled by the difference, and concatenates; GroupNorm over few, attention gate."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b = nn.Conv2d(5, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.up, self.norm = nn.ConvTranspose2d(4, 4, 2, 2), nn.GroupNorm(2, 4, eps=0.01)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = F.silu(self.norm(self.b(F.max_pool2d(a, 2))))
        c = F.silu(self.norm(self.b(F.max_pool2d(b, 2))))
        u = self.up(c)
        dy, dx = b.shape[2] - u.shape[2], b.shape[3] - u.shape[3]
        b = b + F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        u = self.up(b)
        dy, dx = a.shape[2] - u.shape[2], a.shape[3] - u.shape[3]
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.last(torch.cat((a, u), 1)).softmax(1)
