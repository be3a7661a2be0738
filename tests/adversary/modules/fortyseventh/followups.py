# ruff: noqa: E501, E731, SIM108, RUF059, RUF100, UP003 - attacks are written as users write them
"""What was refused strangely or nearly failed, in parts: resizers, caches, branches, empties, halves, calls."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import NAN, ODD, own
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.modules.fortysixth.sounds import WAVE, wav
from tests.adversary.values import values_at

X, XY = "x:float32[N,T]", ("x:float32[N,T]", "y:float32[N,S]")


@forward(IMAGE, **pix(IMAGE), refused="the exported model differs from the")
def A5801HalfAntialiased(self, x):
    """Half of the size with antialiasing, at least one."""
    return F.interpolate(x, (max(x.shape[2] // 2, 1), max(x.shape[3] // 2, 1)), mode="bilinear", antialias=True)


@forward(IMAGE, **pix(IMAGE))
def A5802CubicAntialiased(self, x):
    """A bicubic with antialiasing to a fixed size."""
    return F.interpolate(x, (5, 5), mode="bicubic", antialias=True)


@forward(IMAGE, **pix(IMAGE, low=4))
def A5803CubicTwoThirds(self, x):
    """A bicubic with antialiasing to a half and two thirds, of four and more."""
    return F.interpolate(x, (x.shape[2] // 2, x.shape[3] * 2 // 3), mode="bicubic", antialias=True)


@forward(IMAGE, **pix(IMAGE))
def A5804NearestExactBack(self, x):
    """The nearest-exact from a half back to the size."""
    h, w = x.shape[-2:]
    return F.interpolate(x[:, :, : (h + 1) // 2, : max(w * 2 // 3, 1)], (h, w), mode="nearest-exact")


@attack(IMAGE, **pix(IMAGE))
class A5805GridsInDict(nn.Module):
    """A grid kept in a dict of the instance by (h, w), as in many detectors."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = (x.shape[2], x.shape[3])
        if key not in self.kept:
            self.kept[key] = torch.stack(torch.meshgrid(torch.arange(key[0]), torch.arange(key[1]), indexing="ij")).float()[None]
        return x + self.kept[key]


@attack(IMAGE, **pix(IMAGE))
class A5806GridsInDictWithLimit(nn.Module):
    """The same, and a dict of four is emptied."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = tuple(x.shape[-2:])
        if key not in self.kept:
            if len(self.kept) >= 4:
                self.kept.clear()
            self.kept[key] = torch.stack(torch.meshgrid(torch.arange(key[0]), torch.arange(key[1]), indexing="ij")).float()[None]
        return x + self.kept[key]


@functools.lru_cache(maxsize=4)
def grid(h, w):
    """A grid of floats."""
    return torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")).float()[None] / max(h, w)


@forward(IMAGE, **pix(IMAGE))
def A5807GridsByLru(self, x):
    """The same by lru_cache."""
    return x + grid(x.shape[2], x.shape[3])


@attack(IMAGE, **pix(IMAGE))
class A5808GridMadeAnew(nn.Module):
    """One grid that is made anew where its size is another, or its device."""

    def __init__(self):
        super().__init__()
        self.g, self.size = None, None

    def forward(self, x):
        if self.g is None or self.size != x.shape[-2:] or self.g.device != x.device:
            self.size = x.shape[-2:]
            self.g = torch.stack(torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="ij")).float()[None]
        return x * self.g


class Dino(nn.Module):
    """Positions of a ViT of 3 by 3 patches."""

    short, by_size = False, False

    def __init__(self):
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, 4, 2, 2), nn.Parameter(torch.randn(1, 1 + 9, 4))

    def forward(self, x):
        h0, w0 = x.shape[2] // 2, x.shape[3] // 2
        t = self.patch(x).flatten(2).transpose(1, 2)
        if self.short and h0 * w0 == 9 and h0 == w0:
            return t + self.pos[:, 1:]
        p = self.pos[:, 1:].reshape(1, 3, 3, 4).permute(0, 3, 1, 2)
        if self.by_size:
            p = F.interpolate(p, size=(h0, w0), mode="bicubic", align_corners=False)
        else:
            p = F.interpolate(p, scale_factor=(float(h0 + 0.1) / 3, float(w0 + 0.1) / 3), mode="bicubic")
        assert int(h0) == p.shape[-2]
        return t + p.permute(0, 2, 3, 1).reshape(1, -1, 4)


PATCHES = {"dims": "N=1:1:2 H=2:8:20%2 W=2:8:20%2", "kinds": FEW, "feeds": tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h in range(2, 21, 2) for w in (2, 6, 10, 20))}


@attack("x:float32[N,3,H,W]", **PATCHES)
class A5809DinoByFactor(Dino):
    """Factors of floats with an offset."""


@attack("x:float32[N,3,H,W]", **PATCHES, refused="the path through the module depends")
class A5810DinoWithTheShortWay(Dino):
    """The same, and what has the size of the training goes a short way."""

    short = True


@attack("x:float32[N,3,H,W]", **PATCHES)
class A5812DinoBySize(Dino):
    """By sizes, with the short way."""

    by_size = short = True


@forward(*XY, **two(*XY, zero=True))
def A5813SumOverNone(self, x, y):
    """Sums over the other side, of which there may be none."""
    d = (x[:, :, None] - y[:, None]).abs()
    return d.sum(-1), d.sum(1)


@forward("a:float32[N,T,4]", "b:float32[N,S,4]", **two("a:float32[N,T,4]", "b:float32[N,S,4]", zero=True))
def A5814ProductsOfNone(self, a, b):
    """The usual pairwise overlap by prod, without any box on the other side."""
    wh = (torch.min(a[:, :, None, 2:], b[:, None, :, 2:]) - torch.max(a[:, :, None, :2], b[:, None, :, :2])).clamp(min=0)
    return wh.prod(-1), (b[..., 2:] - b[..., :2]).prod(-1)


@forward("a:float32[N,T,4]", "b:float32[N,S,4]", **two("a:float32[N,T,4]", "b:float32[N,S,4]", zero=True))
def A5815SquaresOfNone(self, a, b):
    """Distances of centres by a sum over the last axis, without any on the other side."""
    return ((a[:, :, None, :2] - b[:, None, :, :2]) ** 2).sum(-1), (b[..., 2:] - b[..., :2]).norm(dim=-1), b.mean(-1), b.amax(-1)


@forward(*XY, **two(*XY))
def A5816TheLonger(self, x, y):
    """The longer of two, padded with nothing else."""
    return x * 2 if x.shape[1] >= y.shape[1] else y * 3


@forward(IMAGE, **pix(IMAGE))
def A5817Landscape(self, x):
    """Landscape is turned to portrait."""
    h, w = x.shape[-2:]
    return x.transpose(2, 3) if w > h else x


@forward(IMAGE, **pix(IMAGE))
def A5818LandscapeByRatio(self, x):
    """The same, scaled by a ratio rounded to a tenth."""
    h, w = x.shape[-2:]
    y = x.transpose(2, 3) if w > h else x
    return y * round(w / h, 1)


@attack(X4, **seq(X4))
class A5819BfloatLinear(nn.Module):
    """A linear in bfloat16."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8).bfloat16()

    def forward(self, x):
        return self.a(x.bfloat16()).float()


@attack(X4, **seq(X4))
class A5820BfloatSoftmax(nn.Module):
    """Attention whose weights are rounded to bfloat16, as in all models of bfloat16."""

    def forward(self, x):
        return (x @ x.transpose(1, 2)).softmax(-1).to(torch.bfloat16).float()


@attack(X4, **seq(X4))
class A5821Autocast(nn.Module):
    """autocast to bfloat16 about a part, and off within it."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.a(x)
            with torch.autocast("cpu", enabled=False):
                z = self.b(y.float().relu())
        return z, y.float()


@forward(X4, **seq(X4))
def A5822NumpysWholeNumbers(self, x):
    """A table by numpy with astype(int), beside a size that is truncated from a share."""
    k = max(int(x.shape[1] * 0.7), 1)
    edges = np.floor(np.linspace(0.5, 3.9, 4)).astype(int)
    w = np.zeros(4, dtype=int)
    w[: edges[2]] = (np.array([1.7, 2.2, 3.9])[: edges[2]]).astype(int)
    return x[:, :k] * torch.from_numpy(w.astype(np.float32)), x[:, k - 1 :]


@forward(X4, **seq(X4), refused="the exported model differs from the")
def A5823KindsOfWholeNumbers(self, x):
    """isinstance(n, int), type(n) is int, int as a key and a dtype, int("3"), beside a size truncated from a share."""
    k = max(int(x.shape[1] * 0.7), 1)
    f = 2.0 if isinstance(x.shape[0], int) else 3.0
    g = {int: 5.0, float: 7.0}[type(3)]
    h = 1.0 if type(x.shape[-1]) is int else 0.5
    n = np.array([2.6, -2.6]).astype(int).sum() + int("3") + int(2.9) + int(True) + int(-0.5)
    return x[:, :k] * (f * g * h), x + float(n), x.to(torch.int64) * int("11", 2)


@forward(WAVE, **wav(WAVE, low=16))
def A5824MfccProducts(self, x):
    """Frames of what is padded, a spectrum, and two products with tables."""
    f = F.pad(x, (0, (-x.shape[1]) % 8)).unfold(1, 16, 8)
    p = torch.fft.rfft(f, 16).abs().square()
    e = (p @ torch.ones(9, 6) + 1).log()
    return e @ torch.ones(6, 4)


@forward(WAVE, **wav(WAVE, low=16))
def A5825FramesByProduct(self, x):
    """Frames of what is padded times a table."""
    f = F.pad(x, (0, (-x.shape[1]) % 8)).unfold(1, 16, 8)
    return f @ torch.linspace(-1, 1, 64).view(16, 4)


def first_argument(function):
    """A decorator that reads the size of the first argument."""

    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) * args[1].shape[1]

    return inner


@attack(X4, **seq(X4))
class A5826DecoratedByPlace(nn.Module):
    """A decorator that takes the input by its place."""

    @first_argument
    def forward(self, x):
        return x + 1


@attack(X4, "y:float32[N,T,4]", **seq(X4, "y:float32[N,T,4]"))
class A5827PlacesOnly(nn.Module):
    """Parameters by place only, with a default, and a keyword one."""

    def forward(self, x, y=None, /, *, scale=2.0):
        return x * scale if y is None else x * scale + y


@attack(X4, "y:float32[N,T,4]", **seq(X4, "y:float32[N,T,4]"))
class A5828ManyByStar(nn.Module):
    """Any count of inputs by a star."""

    def forward(self, *xs):
        return sum(v * (i + 1) for i, v in enumerate(xs)) / len(xs)


@attack(X4, "y:float32[N,T,4]", **seq(X4, "y:float32[N,T,4]"))
class A5829ManyByTwoStars(nn.Module):
    """Any inputs by their names."""

    def forward(self, **batch):
        return batch["x"] - batch.get("y", 0), torch.cat([batch[k] for k in sorted(batch)], -1)


@forward(X, **seq(X, own=own(ODD[:, :6], ODD[:, 8:], NAN)))
def A5830RemaindersOfInfinity(self, x):
    """Remainders of infinities by a tenth, by one, by a tensor."""
    return x % 0.1, x % 1, torch.remainder(x, torch.tensor(0.7)), x % -2


@forward(X, **seq(X, own=own(ODD[:, :6], ODD[:, 8:], NAN)))
def A5831QuotientsOfInfinity(self, x):
    """Quotients of infinities, rounded down, and their C remainders."""
    return x // 0.1, x // 1, torch.fmod(x, 0.7), torch.div(x, 0.3, rounding_mode="floor"), torch.div(x, 0.3, rounding_mode="trunc")


@forward("p:float32[N,T]=-7:7", **seq("p:float32[N,T]=-7:7", own=(lambda: {"p": np.array([[1e6, -1e6, 3e7, np.inf, 12345.678, -0.0]], np.float32)},)))
def A5832PhaseWrapped(self, p):
    """A phase wrapped by % of two pi, and by a product with its inverse."""
    return p % (2 * math.pi), (p + math.pi) % (2 * math.pi) - math.pi, p - 2 * math.pi * torch.round(p / (2 * math.pi)), torch.remainder(p, 1.0) * 360


@forward("x:float32[N,3,H,W]", "d:float32[N,1,H,W]=0.1:9", **pix("x:float32[N,3,H,W]", "d:float32[N,1,H,W]=0.1:9"))
def A5833DepthToPointsUntied(self, x, d):
    """Depth to points with constants, and the sampler without a mask at exactly the border."""
    n, _, h, w = d.shape
    ys, xs = torch.meshgrid(torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32), indexing="ij")
    p = torch.stack([(xs - 4) / 7, (ys - 3) / 7, torch.ones(h, w)])[None] * d
    u, v = (p[:, 0] + 0.25) / p[:, 2].clamp(min=1e-3) * 7 + 4, p[:, 1] / p[:, 2].clamp(min=1e-3) * 7 + 3
    g = torch.stack([u / ((w - 1) / 2 if w > 1 else 1) - 1, v / ((h - 1) / 2 if h > 1 else 1) - 1], -1)
    return F.grid_sample(x, g, padding_mode="border", align_corners=True), p
