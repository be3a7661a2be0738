"""Image operations written by hand: colours, histograms, filters, warps, morphology, metrics, super resolution, point clouds, graphs."""
# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=2:5:9 W=2:6:8", kinds=FINITE)
def A7531ColoursRoundTrip(self, x):
    """sRGB linear and back with its two pieces, RGB to HSV with ties of the largest channel and a modulo of six, HSV back by chosen thirds, Lab's cube root, YCbCr rounded to bytes."""
    lin = torch.where(x > 0.04045, ((x + 0.055) / 1.055) ** 2.4, x / 12.92)
    back = torch.where(lin > 0.0031308, 1.055 * torch.pow(lin.clamp(min=0.0031308), 1 / 2.4) - 0.055, 12.92 * lin)
    mx, i = x.max(1)
    mn = x.min(1).values
    d = mx - mn
    s = torch.where(mx > 0, d / torch.where(mx > 0, mx, torch.ones_like(mx)), torch.zeros_like(mx))
    dd = torch.where(d == 0, torch.ones_like(d), d)
    r, g, b = ((mx - x[:, k]) / dd for k in range(3))
    h = torch.stack([b - g, 2.0 + r - b, 4.0 + g - r], 1).gather(1, i[:, None]).squeeze(1)
    h = (h / 6.0) % 1.0
    hi = torch.floor(h * 6) % 6
    f = ((h * 6) % 6) - hi
    p, q, t = mx * (1 - s), mx * (1 - f * s), mx * (1 - (1 - f) * s)
    idx = torch.stack([hi, hi + 6, hi + 12], 1).long()
    rgb = torch.stack((mx, q, p, p, t, mx, t, mx, mx, q, p, p, p, p, t, mx, mx, q), 1).gather(1, idx)
    xyz = torch.einsum("ij,njhw->nihw", torch.tensor([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]), lin)
    fl = torch.where(xyz > 0.008856, xyz.clamp(min=0.008856).pow(1 / 3), 7.787 * xyz + 4 / 29)
    ycc = (torch.einsum("ij,njhw->nihw", torch.tensor([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0]]), x) + 16).round().clamp(0, 255).to(torch.uint8)
    return back, h, s, rgb, 116 * fl[:, 1] - 16, ycc


@forward("x:uint8[N,1,H,W]=0:255", dims="N=1:1:2 H=2:5:9 W=2:6:8")
def A7532HistogramsOfBytes(self, x):
    """Counts of 256 bins by scatter_add, equalisation by a cumulative table and gather with wrap on purpose of bytes, Otsu's threshold by argmax of between-class variance, median by cumulative counts."""
    n = x.shape[0]
    f = x.flatten(1).long()
    h = torch.zeros(n, 256, dtype=torch.int64).scatter_add(1, f, torch.ones_like(f))
    c = h.cumsum(1)
    total = x.shape[2] * x.shape[3]
    mn = torch.where(c > 0, c, total).amin(1, keepdim=True)
    lut = ((c - mn).clamp(min=0) * 255 // (total - mn).clamp(min=1)).to(torch.uint8)
    eq = lut.gather(1, f).view_as(x)
    p = h.float() / total
    w = p.cumsum(1)
    m = (p * torch.arange(256)).cumsum(1)
    mt = m[:, -1:]
    v = (mt * w - m) ** 2 / (w * (1 - w) + 1e-12)
    med = (c >= (total + 1) // 2).int().argmax(1)
    return h, eq, v.argmax(1), med, x + 200, (x.to(torch.int16) * 300 - 7) >> 3


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:7:11 W=4:6:9", kinds=FINITE)
class A7533BilateralAndUnsharp(nn.Module):
    """A bilateral filter by unfold with weights of colours, unsharp masking by a threshold, a guided filter of box sums by cumulative sums cut and joined, a median of nine by sort."""

    def box(self, x, r):
        c = x.cumsum(2)
        h = torch.cat([c[:, :, r : 2 * r + 1], c[:, :, 2 * r + 1 :] - c[:, :, : -2 * r - 1], c[:, :, -1:] - c[:, :, -2 * r - 1 : -r - 1]], 2)
        c = h.cumsum(3)
        return torch.cat([c[..., r : 2 * r + 1], c[..., 2 * r + 1 :] - c[..., : -2 * r - 1], c[..., -1:] - c[..., -2 * r - 1 : -r - 1]], 3)

    def forward(self, x):
        n, c, h, w = x.shape
        p = F.unfold(F.pad(x, (1,) * 4, mode="reflect"), 3).view(n, c, 9, h, w)
        d = (p - x.unsqueeze(2)).abs().sum(1, keepdim=True)
        g = torch.tensor([math.exp(-(i * i + j * j) / 2) for i in (-1, 0, 1) for j in (-1, 0, 1)]).view(1, 1, 9, 1, 1)
        k = g * torch.exp(-0.5 * (d / 0.1) ** 2)
        y = (p * k).sum(2) / k.sum(2)
        diff = x - y
        sharp = torch.where(diff.abs() * 255 > 3, (x + 1.5 * diff).clamp(0, 1), x)
        ones = self.box(torch.ones_like(x[:, :1]), 1)
        mean = self.box(x, 1) / ones
        var = self.box(x * x, 1) / ones - mean * mean
        a = var / (var + 0.04)
        return y, sharp, self.box(a, 1) / ones * x + self.box(mean * (1 - a), 1) / ones, p.sort(2).values[:, :, 4], p.median(2).values


@forward("x:float32[N,1,H,W]=-1:1", dims="N=1:1:2 H=3:6:9 W=3:7:8", kinds=FINITE)
def A7534MorphologyBySoftAndHard(self, x):
    """Erosion as a negated pool, opening, a cross by unfold with infinities, top hat, hit or miss by convolving booleans, geodesic reconstruction of three steps, distance by min over all pixels."""
    er = -F.max_pool2d(-x, 3, 1, 1)
    op = F.max_pool2d(er, 3, 1, 1)
    n, _, h, w = x.shape
    cross = torch.tensor([float("-inf"), 0, float("-inf"), 0, 0, 0, float("-inf"), 0, float("-inf")]).view(1, 9, 1)
    di = (F.unfold(F.pad(x, (1, 1, 1, 1), value=-1e4), 3) + cross).amax(1).view(n, 1, h, w)
    m = x > 0
    hm = F.conv2d(m.float(), torch.tensor([[[[0.0, 1, 0], [1, -9, 1], [0, 1, 0]]]]), padding=1) == 4
    rec = er
    for _ in range(3):
        rec = torch.minimum(F.max_pool2d(rec, 3, 1, 1), x)
    yy, xx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    pts = torch.stack([yy, xx], -1).view(-1, 2).float()
    dist = ((pts[:, None] - pts[None]) ** 2).sum(-1).sqrt()
    d = torch.where(m.view(n, 1, -1), float("inf"), dist).amin(-1).view(n, h, w)
    return op, x - op, di, hm, rec, d.clamp(max=99)


@attack("x:float32[N,3,H,W]=0:1", "y:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=11:16:24 W=11:13:20", kinds=("normal", "unit", "halves", "zeros", "tenths"))
class A7535MetricsAsOutputs(nn.Module):
    """SSIM by a Gaussian window built at each call and expanded by groups, multi-scale at one more, PSNR with infinity where equal, gradient magnitudes, total variation, Charbonnier."""

    def win(self, c):
        g = torch.exp(-((torch.arange(11).float() - 5) ** 2) / (2 * 1.5**2))
        g = (g / g.sum()).unsqueeze(1)
        return g.mm(g.t()).float().unsqueeze(0).unsqueeze(0).expand(c, 1, 11, 11).contiguous()

    def ssim(self, x, y):
        c = x.shape[1]
        w = self.win(c).type_as(x)
        f = lambda v: F.conv2d(v, w, groups=c)  # noqa: E731
        mx, my = f(x), f(y)
        sx, sy, sxy = f(x * x) - mx.pow(2), f(y * y) - my.pow(2), f(x * y) - mx * my
        cs = (2 * sxy + 0.03**2) / (sx + sy + 0.03**2)
        return ((2 * mx * my + 0.01**2) / (mx.pow(2) + my.pow(2) + 0.01**2) * cs).flatten(1).mean(-1)

    def forward(self, x, y):
        mse = ((x - y) ** 2).mean((1, 2, 3))
        psnr = torch.where(mse == 0, torch.full_like(mse, float("inf")), -10 * torch.log10(mse))
        tv = (x[..., 1:] - x[..., :-1]).abs().mean() + (x[:, :, 1:] - x[:, :, :-1]).abs().mean()
        return self.ssim(x, y), psnr, tv, torch.sqrt((x - y) ** 2 + 1e-6).mean((-1, -2))


@attack("x:float32[N,3,H,W]=0:1", "f:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=4:6:9 W=4:7:8", kinds=FINITE)
class A7536SplatsAndWarps(nn.Module):
    """Forward warping: four corners by index_add in flattened pictures with weights and validity, normalised; backward by grid_sample with a mask of ones thresholded; consistency of both."""

    def forward(self, x, f):
        n, c, h, w = x.shape
        yy, xx = torch.meshgrid(torch.arange(h, dtype=x.dtype), torch.arange(w, dtype=x.dtype), indexing="ij")
        tx, ty = xx + f[:, 0], yy + f[:, 1]
        x0, y0 = tx.floor(), ty.floor()
        acc, wsum = x.new_zeros(n * h * w, c), x.new_zeros(n * h * w)
        src = x.permute(0, 2, 3, 1).reshape(-1, c)
        base = (torch.arange(n) * h * w).view(n, 1, 1)
        for dx in (0, 1):
            for dy in (0, 1):
                xi, yi = x0 + dx, y0 + dy
                ok = (xi >= 0) & (xi < w) & (yi >= 0) & (yi < h)
                wt = (1 - (tx - xi).abs()) * (1 - (ty - yi).abs()) * ok
                i = (base + yi.clamp(0, h - 1).long() * w + xi.clamp(0, w - 1).long()).flatten()
                acc = acc.index_add(0, i, src * wt.reshape(-1, 1))
                wsum.index_add_(0, i, wt.flatten())
        out = (acc / (wsum[:, None] + 1e-3)).view(n, h, w, c).permute(0, 3, 1, 2)
        g = torch.stack([2 * tx / max(w - 1, 1) - 1, 2 * ty / max(h - 1, 1) - 1], -1)
        back = F.grid_sample(x, g, mode="bilinear", padding_mode="zeros", align_corners=True)
        m = F.grid_sample(torch.ones_like(x), g, align_corners=True)
        m = (m >= 0.9999).to(x)
        return out, back * m, wsum.view(n, h, w)


@attack("x:float32[N,12,H,W]=-2:2", dims="N=1:1:2 H=2:4:6 W=2:6:8", kinds=FINITE)
class A7537ShufflesByView(nn.Module):
    """Space to depth in YOLO's order and TensorFlow's, pixel shuffle by view with an ICNR-like weight, a tiled 8-fold self ensemble of flips and turns over a square conv, blocks of Haar."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.c = nn.Conv2d(12, 12, 3, padding=1)
        w = torch.randn(3, 12, 3, 3)
        self.c.weight.data.copy_(w.repeat_interleave(4, 0))

    def forward(self, x):
        n, c, h, w = x.shape
        y = F.pixel_shuffle(self.c(x), 2)
        f = torch.cat([y[..., ::2, ::2], y[..., 1::2, ::2], y[..., ::2, 1::2], y[..., 1::2, 1::2]], 1)
        tf = y.permute(0, 2, 3, 1).reshape(n, h, 2, w, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, 12)
        ens = 0
        for k in range(4):
            for fl in (False, True):
                z = torch.rot90(x, k, (2, 3))
                z = self.c(z.flip(-1) if fl else z)
                z = z.flip(-1) if fl else z
                ens = ens + torch.rot90(z, -k, (2, 3))
        a, b, cc, d = y[..., ::2, ::2], y[..., ::2, 1::2], y[..., 1::2, ::2], y[..., 1::2, 1::2]
        haar = torch.stack([a + b + cc + d, a - b + cc - d, a + b - cc - d, a - b - cc + d], 2) / 2
        return f, tf, ens / 8, haar.flatten(1, 2)


@attack("p:float32[N,M,3]=-2:2", dims="N=1:1:2 M=8:12:20", kinds=("normal", "unit"))
class A7538PointsSampledFarthest(nn.Module):
    """PointNet++: farthest points for four with argmax in a loop, a ball query by sort of masked indices with the first repeated, grouped, T-net with an identity added, knn interpolation of three."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.m = nn.Sequential(nn.Conv2d(6, 8, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.t = nn.Linear(8, 9)
        self.eval()

    def forward(self, p):
        n, m, _ = p.shape
        cent = torch.zeros(n, 4, dtype=torch.long)
        dist = torch.ones(n, m) * 1e10
        far = torch.zeros(n, dtype=torch.long)
        bi = torch.arange(n)
        for i in range(4):
            cent[:, i] = far
            c = p[bi, far, :].view(n, 1, 3)
            d = ((p - c) ** 2).sum(-1)
            mask = d < dist
            dist[mask] = d[mask]
            far = torch.max(dist, -1)[1]
        q = p[bi[:, None], cent]
        sq = ((q[:, :, None] - p[:, None]) ** 2).sum(-1)
        idx = torch.arange(m).view(1, 1, m).repeat(n, 4, 1)
        idx[sq > 1.0] = m
        idx = idx.sort(dim=-1)[0][:, :, :5]
        first = idx[:, :, 0].view(n, 4, 1).repeat(1, 1, 5)
        hole = idx == m
        idx[hole] = first[hole]
        g = p[bi.view(n, 1, 1), idx]
        g = torch.cat([g - q.unsqueeze(2), g], -1).permute(0, 3, 2, 1)
        h = self.m(g).max(2)[0]
        mat = self.t(h.max(2)[0]).view(n, 3, 3) + torch.eye(3)
        dd, ii = sq.transpose(1, 2).sort(-1)
        r = 1.0 / (dd[..., :3] + 1e-8)
        up = (h.transpose(1, 2)[bi.view(n, 1, 1), ii[..., :3]] * (r / r.sum(2, keepdim=True)).unsqueeze(-1)).sum(2)
        return cent, h, torch.bmm(p, mat), up


@attack("x:float32[V,4]=-2:2", "e:int64[2,E]=0:3", "w:float32[E]=0:1", dims="V=4:6:9 E=1:7:12", kinds=FINITE)
class A7539GraphLayers(nn.Module):
    """GCN with self loops by cat and degrees to -0.5 with infinities masked, GAT's softmax over neighbours by scatter_reduce amax, GIN, a virtual node, pooled by rank; triplet counts by index_add in int64."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.l, self.a = nn.Linear(4, 4, bias=False), nn.Parameter(torch.randn(2, 4))

    def forward(self, x, e, w):
        v = x.size(0)
        loops = torch.arange(v)
        src, dst = torch.cat([e[0], loops]), torch.cat([e[1], loops])
        ww = torch.cat([w, w.new_full((v,), 2.0)])
        deg = torch.zeros(v).scatter_add_(0, dst, ww)
        dis = deg.pow(-0.5)
        dis.masked_fill_(dis == float("inf"), 0.0)
        h = self.l(x)
        gcn = torch.zeros_like(h).index_add_(0, dst, (dis[src] * ww * dis[dst])[:, None] * h[src])
        al = F.leaky_relu((h * self.a[0]).sum(-1)[src] + (h * self.a[1]).sum(-1)[dst], 0.2)
        mx = torch.full((v,), float("-inf")).scatter_reduce(0, dst, al, "amax")
        ex = (al - mx[dst]).exp()
        gat = torch.zeros_like(h).index_add(0, dst, (ex / (torch.zeros(v).index_add(0, dst, ex)[dst] + 1e-16))[:, None] * h[src])
        mean = torch.zeros_like(x).scatter_reduce(0, dst[:, None].expand(-1, 4), x[src], "mean", include_self=False)
        cnt = torch.zeros(v, dtype=torch.int64).index_add(0, e[1], torch.ones_like(e[0]))
        return gcn, gat, mean, cnt, torch.bincount(e[0], minlength=4)[:4]


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:8:12 W=4:8:12", kinds=FINITE, refused="traced for some sizes only")
class A7540KernelsBuiltFromSizes(nn.Module):
    """A blur whose kernel length and sigma come from the size (odd by | 1), a resize with anti-aliasing by its ratio, a centre crop by rounding, crops of five, jitter of a fixed seed."""

    def forward(self, x):
        n, c, h, w = x.shape
        k = min(h, 7) | 1
        sigma = 0.3 * ((k - 1) * 0.5 - 1) + 0.8
        t = torch.linspace(-(k - 1) / 2, (k - 1) / 2, k)
        g = torch.exp(-0.5 * (t / sigma) ** 2)
        g = g / g.sum()
        kern = (g[:, None] * g[None]).expand(c, 1, k, k)
        y = F.conv2d(F.pad(x, [k // 2] * 4, mode="replicate"), kern, groups=c)
        small = F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True, align_corners=False)
        top, left = int(round((h - 4) / 2.0)), int(round((w - 4) / 2.0))
        crop = x[..., top : top + 4, left : left + 4]
        gen = torch.Generator().manual_seed(3)
        noise = torch.randn((1, c, 1, 1), generator=gen)
        return y, small, crop, (x + 0.1 * noise).clamp(0, 1)
