# ruff: noqa: E501, SIM300 - attacks are written as users write them
"""Sizes that choose frames, crops, windows, pads, rounds of a loop: one trap each, and a point at every length."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "halves", "ones")
X4, IMAGE = "x:float32[N,T,4]", "x:float32[N,2,H,W]"


def seq(low: int = 1, high: int = 40, more: tuple = (), **other: object) -> dict:
    """Sequences, judged at every length."""
    feeds = tuple(values_at(X4, *more, N=1 + t % 3, T=t) for t in range(low, high + 1))
    return {"dims": f"N=1:2:3 T={low}:{max(low, 9)}:{high}", "kinds": FEW, "feeds": feeds, **other}


def pix(low: int = 1, high: int = 24, **other: object) -> dict:
    """Pictures, judged at every height."""
    feeds = tuple(values_at(IMAGE, N=1, H=h, W=w) for h in range(low, high + 1) for w in {low, low + (h * 7) % (high - low + 1), h})
    return {"dims": f"N=1:1:2 H={low}:{(low + high) // 2}:{high} W={low}:{(low + high) // 2 - 1}:{high}", "kinds": FEW, "feeds": feeds, **other}


@forward(X4, **seq(4))
def A5001SlowPathway(self, x):
    """SlowFast takes a quarter of the frames at the places of a linspace that is cut."""
    t = x.shape[1]
    return x.index_select(1, torch.linspace(0, t - 1, t // 4).long())
@forward(IMAGE, **pix(3))
def A5002CentreCrop(self, x):
    """torchvision's center_crop: pads where the picture is smaller, and rounds halves to even."""
    h, w = x.shape[-2:]
    c = 8
    if c > w or c > h:
        pad = [(c - w) // 2 if c > w else 0, (c - w + 1) // 2 if c > w else 0, (c - h) // 2 if c > h else 0, (c - h + 1) // 2 if c > h else 0]
        x = F.pad(x, pad)
        h, w = x.shape[-2:]
        if c == w and c == h:
            return x
    top, left = round((h - c) / 2.0), round((w - c) / 2.0)
    return x[..., top : top + c, left : left + c]
@forward(X4, **seq(5))
def A5003BandsOfNumpy(self, x):
    """Bands whose borders NumPy cuts from a linspace of the length."""
    edges = np.linspace(0, x.shape[1], 5 + 1).astype(int)
    return torch.stack([x[:, a:b].mean(1) for a, b in itertools.pairwise(edges)], 1)
@forward(IMAGE, **pix(6, 20))
def A5004PyramidOfSpp(self, x):
    """SPP-net: kernels by ceil, pads by what is left, at three levels."""
    out = []
    for level in (1, 2, 3):
        h, w = x.shape[2:]
        kh, kw = math.ceil(h / level), math.ceil(w / level)
        ph, pw = (kh * level - h + 1) // 2, (kw * level - w + 1) // 2
        out.append(F.max_pool2d(x, (kh, kw), (kh, kw), (ph, pw)).flatten(1)[:, : 2 * level * level])
    return torch.cat(out, 1)
@forward(X4, **seq(), refused="the exported model differs from the module")
def A5005DilationOfLength(self, x):
    """A convolution whose dilation grows with the length."""
    d = max(1, x.shape[1] // 8)
    return F.conv1d(x.mT, torch.ones(4, 1, 3) / 3, padding=d, dilation=d, groups=4)
@forward(X4, **seq())
def A5006TurnedBySevenModulo(self, x):
    """A ring is turned by seven places, modulo its length."""
    k = 7 % x.shape[1]
    return torch.cat([x[:, k:], x[:, :k]], 1)
@forward(X4, **seq())
def A5007LargestOfSomeDivisors(self, x):
    """Groups of the largest of four counts that divides the length."""
    n, t, c = x.shape
    g = next(d for d in (6, 4, 3, 1) if t % d == 0)
    return x.view(n, g, t // g, c).mean(2).cumsum(1)[:, -1], x / g
@attack(X4, **seq())
class A5008HaarWhileEven(nn.Module):
    """A Haar step as long as the length is even: as many as twos are in it."""
    def forward(self, x):
        details = x.new_zeros(x.shape[0], 4)
        while x.shape[1] % 2 == 0:
            a, b = x[:, 0::2], x[:, 1::2]
            details = details + (a - b).abs().mean(1)
            x = (a + b) / 2
        return x.sum(1), details
@forward(X4, **seq())
def A5009SplitsByEight(self, x):
    """Parts of eight and a rest: how many there are, the last one, and the mean of their means."""
    parts = x.split(8, 1)
    return sum(p.mean(1) for p in parts) / len(parts), parts[-1]
@forward(X4, **seq())
def A5010FixedByPadOfEitherSign(self, x):
    """A pad that cuts where the sequence is longer."""
    return F.pad(x, (0, 0, 0, 16 - x.shape[1]), value=-1.0), F.pad(x, (0, 0, 20 - x.shape[1], 0))
@forward(X4, **seq())
def A5011RepeatedToTwenty(self, x):
    """Speaker networks repeat what is short and cut it."""
    t = x.shape[1]
    if t <= 20:
        x = x.repeat(1, 20 // t + 1, 1)
    return x[:, :20]
@forward(X4, **seq())
def A5012EveryFewthFrame(self, x):
    """A step of slicing by the length."""
    return x[:, :: max(1, x.shape[1] // 8)]
@forward(X4, **seq(2))
def A5013NearestThreeHalves(self, x):
    """Nearest to three halves of the length, to a third, to two thirds: the source place is a product of floats."""
    t = x.shape[1]
    y = x.mT
    return F.interpolate(y, size=t * 3 // 2), F.interpolate(y, size=-(-t // 3)), F.interpolate(y, size=-(-2 * t // 3), mode="nearest-exact")
@attack(IMAGE, **pix(6))
class A5014SameAsInTensorflow(nn.Module):
    """timm's Conv2dSame and MaxPool2dSame: pads by what the stride leaves, of minus infinity for a maximum."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, 2, dilation=2)
    def pads(self, x, k, s, d):
        out = []
        for n in (x.shape[-1], x.shape[-2]):
            p = max((math.ceil(n / s) - 1) * s + (k - 1) * d + 1 - n, 0)
            out += [p // 2, p - p // 2]
        return out
    def forward(self, x):
        y = self.conv(F.pad(x, self.pads(x, 3, 2, 2)))
        return F.max_pool2d(F.pad(y, self.pads(y, 3, 3, 1), value=-math.inf), 3, 3)
@attack(X4, **seq())
class A5015InceptionOfVideo(nn.Module):
    """I3D's compute_pad: one formula where the stride divides, another where it does not."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 7, 3)
    def forward(self, x):
        t = x.shape[1]
        pad = max(7 - 3, 0) if t % 3 == 0 else max(7 - t % 3, 0)
        return self.conv(F.pad(x.mT, (pad // 2, pad - pad // 2)))
@attack(IMAGE, **pix(2, 16))
class A5016WindowsNoLargerThanTheMap(nn.Module):
    """Video Swin's get_window_size: a window as large as the map where that is smaller, and no shift then."""
    def forward(self, x):
        n, c, h, w = x.shape
        win, shift = [5, 5], [2, 2]
        for i, s in enumerate((h, w)):
            if s <= win[i]:
                win[i], shift[i] = s, 0
        x = F.pad(x, (0, -w % win[1], 0, -h % win[0]))
        if any(i > 0 for i in shift):
            x = x.roll((-shift[0], -shift[1]), (2, 3))
        hp, wp = x.shape[2:]
        y = x.view(n, c, hp // win[0], win[0], wp // win[1], win[1])
        y = (y - y.mean((3, 5), keepdim=True)).reshape(n, c, hp, wp)
        return y.roll((shift[0], shift[1]), (2, 3))[..., :h, :w]
@attack(X4, **seq(10), refused="the path through the module depends on the size")
class A5017PairsFromBothEnds(nn.Module):
    """Odd and even chunks by zip_longest, and what islice leaves."""
    def forward(self, x):
        parts = list(x.split(5, 1))
        total = x.new_zeros(x.shape[0], 4)
        for i, (a, b) in enumerate(itertools.zip_longest(parts[::2], parts[1::2])):
            total = total + (a.sum(1) if b is None else a.sum(1) - b.mean(1)) / (i + 1)
        return total, sum(p.amax(1) for p in itertools.islice(parts, 1, None, 3))
@forward(X4, **seq())
def A5018SymbolicHelpers(self, x):
    """torch's own functions for symbolic sizes, as exporters advise them."""
    t = x.shape[1]
    n = torch.sym_max(t, 12) - torch.sym_min(t, 7)
    return F.pad(x, (0, 0, n, 0)), x[:, : torch.sym_int(t / 3)].sum(1) / torch.sym_float(t)
@attack(IMAGE, dims="N=1:1:2 H=12:20:40 W=12:21:40", kinds=FEW, feeds=tuple(values_at(IMAGE, N=1, H=h, W=w) for h in range(12, 41) for w in (12, 52 - h)))
class A5019ScalesOfMtcnn(nn.Module):
    """An image pyramid: scales by a factor of 0.709 as long as the shorter side has twelve pixels."""
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(2, 3, 3, 2)
    def forward(self, x):
        h, w = x.shape[2:]
        scale, side, total = 1.0, min(h, w), 0.0
        while side >= 12:
            y = F.interpolate(x, (int(h * scale + 1), int(w * scale + 1)), mode="area")
            total = total + self.net(y).amax((2, 3))
            scale *= 0.709
            side *= 0.709
        return total
@forward(IMAGE, **pix(5, 22))
def A5020ConstrainedToAMultiple(self, x):
    """MiDaS: the scale nearer to one, sides rounded to a multiple, down where that is too much."""
    h, w = x.shape[2:]
    sh, sw = 12 / h, 16 / w
    s = sw if abs(1 - sw) < abs(1 - sh) else sh
    size = []
    for v, top in ((s * h, 24), (s * w, 32)):
        y = int(np.round(v / 4) * 4)
        y = int(np.floor(v / 4) * 4) if y > top else y
        size.append(max(y, 4))
    return F.interpolate(x, size, mode="bilinear", align_corners=False)
@forward(X4, **seq())
def A5021SegmentsOfDualPaths(self, x):
    """DPRNN: a gap that fills the last segment, half a segment on both sides, two shifted views joined."""
    n, t, c = x.shape
    k, p = 6, 3
    gap = k - (p + t % k) % k
    y = F.pad(x, (0, 0, p, gap + p))
    a = y[:, :-p].reshape(n, -1, k, c)
    b = y[:, p:].reshape(n, -1, k, c)
    s = torch.cat([a, b], 3).view(n, -1, k, c)
    s = s * torch.arange(1, k + 1)[:, None]
    u = s.view(n, -1, k * 2, c)
    return (u[:, :, :k].reshape(n, -1, c)[:, p:] + u[:, :, k:].reshape(n, -1, c)[:, :-p])[:, :t]
@forward(X4, **seq())
def A5022OverlapAddByGcd(self, x):
    """Conv-TasNet's overlap_and_add: subframes of the greatest common divisor, places of an unfolded range."""
    n, t, _ = x.shape
    frame, step = 4, 2
    sub = math.gcd(frame, step)
    places = torch.arange((step * (t - 1) + frame) // sub).unfold(0, frame // sub, step // sub)
    out = x.new_zeros(n, (step * (t - 1) + frame) // sub, sub)
    out.index_add_(1, places.reshape(-1), x.reshape(n, -1, sub))
    return out.view(n, -1)
@attack(X4, **seq())
class A5023ExtraPadOfEncodec(nn.Module):
    """EnCodec: a fraction of frames is rounded up; a reflection longer than the sequence is made room for and cut again."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 7, 3)
    def forward(self, x):
        y = x.mT
        length = y.shape[-1]
        frames = (length - 7 + 4) / 3 + 1
        extra = (math.ceil(frames) - 1) * 3 + (7 - 4) - length
        left, right = 4, max(extra, 0)
        most, more = max(left, right), 0
        if length <= most:
            more = most - length + 1
            y = F.pad(y, (0, more))
        y = F.pad(y, (left, right), "reflect")
        return self.conv(y[..., : y.shape[-1] - more])
@forward(X4, **seq())
def A5024WhisperMedian(self, x):
    """openai-whisper's median_filter: what is no longer than half the filter comes back as it is."""
    y, width = x.mT, 7
    half = width // 2
    if y.shape[-1] <= half:
        return y
    return F.pad(y, (half, half), "reflect").unfold(-1, width, 1).sort()[0][..., half]
@forward(IMAGE, **pix())
def A5025LocalAverageOfNafnet(self, x):
    """A mean over a window of the training size by an integral image, all of it where the map is smaller, edges repeated."""
    h, w = x.shape[2:]
    k1, k2 = min(h, 9), min(w, 7)
    if 9 >= h and 7 >= w:
        return F.adaptive_avg_pool2d(x, 1).expand_as(x)
    s = F.pad(x.cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    out = (s[..., :-k1, :-k2] + s[..., k1:, k2:] - s[..., :-k1, k2:] - s[..., k1:, :-k2]) / (k1 * k2)
    oh, ow = out.shape[2:]
    pad = ((w - ow) // 2, (w - ow + 1) // 2, (h - oh) // 2, (h - oh + 1) // 2)
    return F.pad(out, pad, mode="replicate")
