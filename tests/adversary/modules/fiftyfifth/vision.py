# ruff: noqa: E501 - attacks are written as users write them
"""Vision: resizes of large models, fractions as positions, wavelets, hashes of coordinates, packed colours."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import at_sides as at
from tests.adversary.values import values_at

P = "x:float32[N,3,H,W]=-4:4"
G = "x:float32[N,2,H,W]=-4:4"


@forward(
    P,
    dims="N=1:1:2 H=4:24:64 W=4:24:64",
    kinds=FINITE,
    feeds=at(P, hw=((8, 8), (24, 24), (16, 33), (12, 36), (63, 4), (40, 20), (36, 24), (17, 34))),
    refused="the path through the module depends on the size",
)
def A7000DynamicTiles(self, x):
    """InternVL: the grid of tiles closest in aspect; of equal ones the last whose half is still covered; a thumbnail."""
    h, w = x.shape[2:]
    grids = sorted(
        {(i, j) for n in range(1, 5) for i in range(1, n + 1) for j in range(1, n + 1) if i * j <= 4},
        key=lambda g: g[0] * g[1],
    )
    best, ratio = float("inf"), (1, 1)
    for g in grids:
        diff = abs(w / h - g[0] / g[1])
        if diff < best:
            best, ratio = diff, g
        elif diff == best and w * h > 0.5 * 12 * 12 * g[0] * g[1]:
            ratio = g
    y = F.interpolate(x, (12 * ratio[1], 12 * ratio[0]), mode="bicubic")
    tiles = y.unfold(2, 12, 12).unfold(3, 12, 12).permute(0, 2, 3, 1, 4, 5).flatten(1, 2)
    if ratio != (1, 1):
        tiles = torch.cat((tiles, F.interpolate(x, (12, 12), mode="bicubic")[:, None]), 1)
    return tiles


@forward(
    P,
    dims="N=1:1:2 H=2:20:90 W=2:20:90",
    kinds=FINITE,
    feeds=at(P, hw=((2, 2), (6, 10), (10, 6), (20, 20), (90, 2), (2, 90), (22, 18), (90, 90), (7, 9))),
    refused="the path through the module depends on the size",
)
def A7001SmartResize(self, x):
    """Qwen's resize: both sides to multiples of four half to even, the pixels between two bounds."""
    h, w = x.shape[2:]
    nh, nw = round(h / 4) * 4, round(w / 4) * 4
    if nh * nw > 400:
        beta = math.sqrt(h * w / 400)
        nh, nw = max(4, math.floor(h / beta / 4) * 4), max(4, math.floor(w / beta / 4) * 4)
    elif nh * nw < 64:
        beta = math.sqrt(64 / (h * w))
        nh, nw = math.ceil(h * beta / 4) * 4, math.ceil(w * beta / 4) * 4
    y = F.interpolate(x, (nh, nw), mode="bilinear", antialias=True)
    return y.reshape(x.shape[0], 3, nh // 4, 4, nw // 4, 4).mean((3, 5)), torch.tensor([nh, nw])


@attack(
    P,
    dims="N=1:1:2 H=4:24:160%4 W=4:24:160%4",
    kinds=FINITE,
    feeds=at(P, hw=((4, 4), (28, 24), (40, 48), (96, 100), (160, 4), (76, 44), (124, 116))),
)
class A7002FractionalPositions(nn.Module):
    """Idefics: the fractions of rows and columns by arange with a step, put in buckets of a table of eight by eight."""

    def __init__(self):
        super().__init__()
        self.conv, self.pos = nn.Conv2d(3, 4, 4, 4), nn.Embedding(64, 4)

    def forward(self, x):
        y = self.conv(x)
        h, w = y.shape[2:]
        edges = torch.arange(1 / 8, 1.0, 1 / 8)
        fh, fw = torch.arange(0, 1 - 1e-6, 1 / h), torch.arange(0, 1 - 1e-6, 1 / w)
        bh, bw = torch.bucketize(fh, edges, right=True), torch.bucketize(fw, edges, right=True)
        ids = (bh[:, None] * 8 + bw).flatten()
        return y.flatten(2).mT + self.pos(ids)


@forward(
    "x:float32[H,W]=-4:4",
    dims="H=1:24:1500 W=1:24:1500",
    kinds=("normal", "zeros"),
    feeds=tuple(values_at("x:float32[H,W]=-4:4", H=h, W=w) for h, w in ((842, 421), (1263, 421), (421, 842), (24, 24))),
    refused="the path through the module depends on the size",
)
def A7003GcdScale(self, x):
    """A scale where both sides share 421 as greatest divisor and the picture is the taller way."""
    h, w = x.shape
    return x.mean(1) * (2.0 if math.gcd(h, w) == 421 and h > w else 1.0)


@forward(
    G,
    dims="N=1:1:2 H=2:8:16 W=2:8:16",
    kinds=FINITE,
    feeds=at(G, hw=((2, 2), (3, 16), (9, 9), (16, 5), (8, 7))),
    refused="manual_seed expected a long",
)
def A7004MaskedAuto(self, x):
    """MAE with noise from a seed of both sides: the shuffled quarter stays, the rest is filled with the mean."""
    n, c, h, w = x.shape
    noise = torch.rand(h * w, generator=torch.Generator().manual_seed(h * 1000 + w))
    shuffle = noise.argsort()
    back = shuffle.argsort()
    keep = max(1, h * w // 4)
    t = x.flatten(2).mT[:, shuffle[:keep]]
    full = torch.cat((t, t.mean(1, keepdim=True).expand(n, h * w - keep, c)), 1)
    return full[:, back].mT.reshape(n, c, h, w)


@forward(
    G,
    dims="N=1:1:2 H=3:9:21 W=3:9:21",
    kinds=FINITE,
    feeds=at(G, hw=((9, 9), (9, 10), (10, 9), (21, 3), (3, 21), (8, 8))),
    refused="the path through the module depends on the size",
)
def A7005Upright(self, x):
    """Pictures taller than wide are turned; flipped where the sides differ in their last bit; a sum over rows of it."""
    h, w = x.shape[2:]
    y = torch.rot90(x, 1 if h > w else 0, (2, 3))
    y = y.flip(3) if (h ^ w) & 1 else y
    ramp = torch.linspace(0, 1, y.shape[3])
    return (y * ramp).cumsum(2).flatten(2)


@forward(
    G,
    dims="N=1:1:2 H=2:12:30 W=2:12:30",
    kinds=FINITE,
    feeds=at(G, hw=((12, 12), (7, 6), (12, 7), (6, 6), (30, 30), (29, 28), (13, 13))),
    refused="the path through the module depends on the size",
)
def A7006TryPatches(self, x):
    """Patches of six where the view exists; the error of the view leads to padding by the edge."""
    n, c, h, w = x.shape
    try:
        p = x.view(n, c, h // 6, 6, w // 6, 6)
    except RuntimeError:
        x = F.pad(x, (0, -w % 6, 0, -h % 6), mode="replicate")
        p = x.view(n, c, x.shape[2] // 6, 6, x.shape[3] // 6, 6)
    return p.amax((3, 5)), p.std((3, 5))


@forward(
    G,
    dims="N=1:1:2 H=1:12:40 W=1:12:40",
    kinds=FINITE,
    feeds=(halves(1, 2, 12, 11), halves(2, 2, 40, 39), halves(1, 2, 1, 1), halves(1, 2, 20, 3)),
)
def A7007Salient(self, x):
    """The upper twentieth of all pixels, at least one and at most fifty, by the k-th largest; ties all count."""
    n, _, h, w = x.shape
    k = min(max(1, int(h * w * 0.05)), 50)
    e = x.square().sum(1).flatten(1)
    t = e.topk(k).values[:, -1:]
    m = (e >= t).view(n, 1, h, w)
    return x * m, m.sum((1, 2, 3)) / k, e.kthvalue(h * w - k + 1).values


@attack(
    "x:float32[N,K,2]=-4:4",
    dims="N=1:1:2 K=1:16:40",
    kinds=FINITE,
    feeds=(lambda: {"x": np.array([[[-4, 4], [-0.0625, 0.0625], [3.999, -3.999], [0, -1]]], np.float32)},),
)
class A7008HashGrid(nn.Module):
    """Instant-NGP: corners of cells at four resolutions, hashed by primes with exclusive or, into small tables."""

    def __init__(self):
        super().__init__()
        self.tables = nn.Parameter(torch.randn(4, 64, 2))

    def forward(self, x):
        out = []
        for level in range(4):
            p = x * (4 << level)
            low = p.floor()
            f, low = p - low, low.long()
            acc = 0
            for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
                i = (low[..., 0] + dy) * 1 ^ (low[..., 1] + dx) * 2654435761
                w = (f[..., 0] if dy else 1 - f[..., 0]) * (f[..., 1] if dx else 1 - f[..., 1])
                acc = acc + self.tables[level][i % 64] * w[..., None]
            out.append(acc)
        return torch.cat(out, -1)


@forward(
    "x:float32[N,1,H,W]=-4:4",
    dims="N=1:1:2 H=2:9:24 W=2:9:24",
    kinds=("zeros", "halves", "ones", "bytes"),
    feeds=(halves(1, 1, 9, 8), halves(2, 1, 24, 2), halves(1, 1, 2, 2)),
)
def A7009Canny(self, x):
    """Sobel, angles in four directions, thinning by rolled neighbours, hysteresis of four steps."""
    x = (x * 2).round()
    p = F.pad(x, (1, 1, 1, 1), mode="replicate")
    k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    gx, gy = F.conv2d(p, k.view(1, 1, 3, 3)), F.conv2d(p, k.t().reshape(1, 1, 3, 3))
    mag = gx.abs() + gy.abs()
    d = torch.rad2deg(torch.atan2(gy, gx)).remainder(180).div(45).round().long() % 4
    ahead = torch.stack([mag.roll(s, (2, 3)) for s in ((0, -1), (-1, -1), (-1, 0), (-1, 1))])
    back = torch.stack([mag.roll(s, (2, 3)) for s in ((0, 1), (1, 1), (1, 0), (1, -1))])
    thin = mag * ((mag >= ahead.gather(0, d[None])[0]) & (mag > back.gather(0, d[None])[0]))
    strong, weak = thin > 14, thin > 5
    for _ in range(4):
        strong = (F.max_pool2d(strong.float(), 3, 1, 1) > 0) & weak
    return strong, thin


@forward(
    "x:uint8[H,W]",
    dims="H=2:8:33 W=2:8:33",
    feeds=at("x:uint8[H,W]=0:255", hw=((2, 2), (3, 3), (33, 32), (8, 8), (5, 33))),
    refused="the path through the module depends on the size",
)
def A7010Lifting(self, x):
    """JPEG 2000's reversible wavelet: floors of negative halves by shifts, mirrored borders, odd and even sides."""

    def lift(v):
        even, odd = v[..., ::2], v[..., 1::2]
        right = torch.cat((even[..., 1:], even[..., -1:]), -1)[..., : odd.shape[-1]]
        odd = odd - ((even[..., : odd.shape[-1]] + right) >> 1)
        left = torch.cat((odd[..., :1], odd), -1)[..., : even.shape[-1]]
        own = odd if odd.shape[-1] == even.shape[-1] else torch.cat((odd, odd[..., -1:]), -1)
        return even + ((left + own + 2) >> 2), odd

    low, high = lift(x.int() - 128)
    ll, lh = lift(low.mT)
    hl, hh = lift(high.mT)
    return ll.mT, lh.mT, hl.mT, hh.mT


@forward(
    "x:uint8[H,W,3]",
    dims="H=1:8:20 W=1:8:20",
    feeds=(
        lambda: {"x": np.full((3, 4, 3), 255, np.uint8)},
        lambda: {"x": (np.arange(20 * 20 * 3) * 37 % 256).reshape(20, 20, 3).astype(np.uint8)},
    ),
)
def A7011Packed565(self, x):
    """Colours packed in sixteen bits with a sign, a sum that wraps, unpacked with repeated upper bits."""
    r, g, b = x.short().unbind(-1)
    v = (r >> 3 << 11) | (g >> 2 << 5) | (b >> 3)
    total = v.sum(1, dtype=torch.int16)
    u = v.int() & 0xFFFF
    r, g, b = u >> 11, u >> 5 & 63, u & 31
    y = torch.stack((r << 3 | r >> 2, g << 2 | g >> 4, b << 3 | b >> 2), -1).to(torch.uint8)
    return v, total, y, y - x, (x.float() - y.float()).abs().amax()


@forward(
    G,
    "g:float32[N,K,2]=-3:3",
    dims="N=1:1:2 H=1:6:14 W=1:6:14 K=1:4:8",
    kinds=FINITE,
    feeds=tuple(
        values_at(G, "g:float32[N,K,2]=-3:3", N=1, H=h, W=w, K=5) for h, w in ((1, 1), (6, 1), (7, 7), (3, 14), (2, 4))
    ),
    refused="the path through the module depends on the size",
)
def A7012Samplers(self, x, g):
    """Points read by reflected bilinear, by bordered bicubic, or by nearest where the area is a multiple of seven."""
    h, w = x.shape[2:]
    g = g[:, :, None]
    a = F.grid_sample(x, g, padding_mode="reflection", align_corners=(h + w) % 3 == 0)
    b = F.grid_sample(x, g, mode="bicubic", padding_mode="border", align_corners=False)
    c = F.grid_sample(x, g, mode="nearest" if h * w % 7 == 0 else "bilinear", align_corners=False)
    return torch.cat((a, b, c), 1).squeeze(-1)


@attack(
    P,
    dims="N=1:1:2 H=6:32:130 W=6:32:130",
    kinds=FINITE,
    feeds=at(P, hw=((64, 64), (65, 64), (128, 127), (6, 130), (31, 32), (11, 121), (33, 111))),
    refused="the path through the module depends on the size",
)
class A7013Stem(nn.Module):
    """A stem whose stride goes by the bits of the shorter side; a palindrome of the sides' digits turns channels."""

    def __init__(self):
        super().__init__()
        self.stems = nn.ModuleDict({str(s): nn.Conv2d(3, 4, s + 1, stride=s, padding=s // 2) for s in (1, 2, 4, 8)})

    def forward(self, x):
        h, w = x.shape[2:]
        s = 1 << min(3, max(0, min(h, w).bit_length() - 4))
        y = self.stems[str(s)](x).relu().mean((2, 3))
        digits = f"{h}{w}"
        return y.flip(1) if digits == digits[::-1] else y


@forward(
    P,
    dims="N=1:1:2 H=2:32:1500 W=2:32:1500",
    kinds=("normal", "zeros"),
    feeds=at(P, hw=((32, 243), (243, 32), (750, 2), (2, 750), (16, 97), (4, 1500), (41, 37))),
    noted="the module looks its size up in a table",
)
def A7014Crowded(self, x):
    """Means of rows; a picture of exactly 1500 pixels, or 7776, passes through a square root first."""
    h, w = x.shape[2:]
    if h * w in {1500, 7776, 1517, 1552}:
        x = x.abs().sqrt()
    return x.mean(2).amax(-1), x.mean(3).amin(-1)
