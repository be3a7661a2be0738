# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Parts of networks: detection, tracking, speech, codecs, points, flow, diffusion, language, with their rare values."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
BOX = "x:float32[N,T,4]=0:20"


@forward(BOX, "s:float32[N,T]=0:1", "c:int64[N,T]=0:3", **seq(BOX, "s:float32[N,T]=0:1", "c:int64[N,T]=0:3"))
def A6241MatrixNms(self, x, s, c):
    """SOLO's matrix NMS of boxes by classes: decays of the scores, sorted, linear and Gaussian kernels."""
    o = s.argsort(dim=1, descending=True, stable=True)
    g = lambda v: v.gather(1, o[..., None].expand(-1, -1, v.shape[-1])) if v.dim() == 3 else v.gather(1, o)
    b, p, k = g(x), g(s), g(c)
    lt, rb = torch.maximum(b[:, :, None, :2], b[:, None, :, :2]), torch.minimum(b[:, :, None, 2:], b[:, None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = (b[..., 2:] - b[..., :2]).clamp(min=0).prod(-1)
    iou = (inter / (area[:, :, None] + area[:, None] - inter).clamp(min=1e-6)).triu(1) * (k[:, :, None] == k[:, None])
    most = iou.amax(1)[:, :, None]
    gauss = torch.exp(-2 * (iou**2 - most**2)).amin(1)
    lin = ((1 - iou) / (1 - most).clamp(min=1e-3)).amin(1)
    return p * gauss, p * lin, k, (p * gauss > 0.05).sum(1)


@forward("x:float32[N,T,5]", "y:float32[N,S,5]", **two("x:float32[N,T,5]", "y:float32[N,S,5]", high=8))
def A6242GaussianRotatedIou(self, x, y):
    """Rotated boxes as Gaussians: Bhattacharyya distances of covariances by closed forms of 2 by 2 matrices (ProbIoU)."""

    def cov(b):
        w, h, a = b[..., 2].exp().clamp(max=20) ** 2 / 12, b[..., 3].exp().clamp(max=20) ** 2 / 12, b[..., 4]
        co, si = a.cos(), a.sin()
        return w * co**2 + h * si**2, w * si**2 + h * co**2, (w - h) * co * si

    a1, b1, c1 = (v[:, :, None] for v in cov(x))
    a2, b2, c2 = (v[:, None] for v in cov(y))
    dx, dy = x[:, :, None, 0] - y[:, None, :, 0], x[:, :, None, 1] - y[:, None, :, 1]
    den = (a1 + a2) * (b1 + b2) - (c1 + c2) ** 2 + 1e-3
    t1 = ((a1 + a2) * dy**2 + (b1 + b2) * dx**2) / den * 0.25
    t2 = (c1 + c2) * -dx * dy / den * 0.5
    t3 = 0.5 * torch.log(den / (4 * ((a1 * b1 - c1**2).clamp(min=0) * (a2 * b2 - c2**2).clamp(min=0)).sqrt() + 1e-3) + 1e-3)
    bd = (t1 + t2 + t3).clamp(1e-3, 100.0)
    return 1 - (1 - torch.exp(-bd) + 1e-3).sqrt()


@forward("x:float32[N,T,8]", **seq("x:float32[N,T,8]"))
def A6243DistributionOfEdges(self, x):
    """YOLOv8's DFL of two edges with four bins, anchors at halves, strides by a buffer of the length, xyxy to xywh and back."""
    n, t, _ = x.shape
    d = x.view(n, t, 2, 4).softmax(-1) @ torch.arange(4.0)
    a = torch.arange(t) + 0.5
    lo, hi = a[None] - d[..., 0], a[None] + d[..., 1]
    c, w = (lo + hi) / 2, hi - lo
    return torch.stack([c, w], -1) * 8, (c - w / 2 - lo).abs() < 1e-4, w.amax(1)


@forward(X4, MT, **seq(X4, MT))
def A6244TracksWithAges(self, x, m):
    """A tracker's book-keeping in tensors: hits, misses, ages since the last hit, states by thresholds, ids by running counts."""
    t = x.shape[1]
    at = torch.arange(t)
    last = torch.where(m, at, -1).cummax(1).values
    age = torch.where(last >= 0, at - last, at + 1)
    hits = m.int().cumsum(1)
    state = torch.where(hits < 3, 0, torch.where(age > 5, 2, 1))
    born = m & (F.pad(age, (1, 0), value=9)[:, :-1] > 2)
    ids = born.cumsum(1) * m
    pos = x.gather(1, last.clamp(min=0)[..., None].expand_as(x)) + (x - x.roll(1, 1)).mean(1, keepdim=True) * age[..., None]
    return state, ids, pos, age


@forward("x:float32[N,L]", dims="N=1:1:2 L=64:120:300", kinds=FEW, refused="the exported model differs from the module")
def A6245PitchByCepstrum(self, x):
    """Frames by unfold, a window, log spectra, the cepstrum's peak between two lags, voiced by a threshold, interpolated by a parabola."""
    f = F.pad(x, (16, 16), mode="reflect").unfold(1, 32, 8) * torch.hamming_window(32, periodic=False)
    s = torch.log(torch.fft.rfft(f).abs() + 1e-4)
    c = torch.fft.irfft(s, n=32)[..., 2:16].round(decimals=4)
    v, k = c.max(-1)
    l, r = c.gather(-1, (k - 1).clamp(min=0)[..., None])[..., 0], c.gather(-1, (k + 1).clamp(max=13)[..., None])[..., 0]
    den = l - 2 * v + r
    off = torch.where((k > 0) & (k < 13) & (den.abs() > 1e-3), 0.5 * (l - r) / torch.where(den.abs() > 1e-3, den, 1.0), 0.0)
    return torch.where(v > 0.1, 1.0 / (k + 2 + off), 0.0), k


@attack("x:float32[N,L]", dims="N=1:1:2 L=30:120:300", kinds=FEW)
class A6246HifiUpsampler(nn.Module):
    """A vocoder's end: transposed convolutions whose padding is (k - s) // 2, odd output padding, receptive fields summed, cut to a hop."""

    def __init__(self):
        super().__init__()
        self.ups = nn.ModuleList(nn.ConvTranspose1d(1 if i == 0 else 2, 2, k, s, (k - s) // 2, output_padding=(k - s) % 2) for i, (k, s) in enumerate(((8, 4), (5, 2), (7, 3))))
        self.res = nn.ModuleList(nn.Conv1d(2, 2, 3, dilation=d, padding=d) for d in (1, 3, 5))

    def forward(self, x):
        y = x[:, None]
        for u in self.ups:
            y = u(F.leaky_relu(y, 0.1))
            y = sum(r(F.leaky_relu(y, 0.1)) + y for r in self.res) / len(self.res)
        return torch.tanh(y[..., : x.shape[1] * 24])


@forward(X, **seq(X))
def A6247AdpcmCodec(self, x):
    """Quantised with feedback per frame of eight: a scale by maximum to a power of two, codes in four bits, packed two a byte, decoded."""
    t = x.shape[1]
    y = F.pad(x, (0, -t % 8)).view(x.shape[0], -1, 8)
    e = torch.ceil(torch.log2(y.abs().amax(-1, keepdim=True).clamp(min=2.0**-10)))
    q = torch.round(y / 2**e * 7).clamp(-8, 7).to(torch.int8)
    u = (q & 15).to(torch.uint8)
    b = u[..., ::2] | (u[..., 1::2] << 4)
    back = torch.stack([b & 15, b >> 4], -1).flatten(-2).to(torch.int8)
    back = torch.where(back > 7, back - 16, back)
    return b, (back.float() / 7 * 2**e).flatten(1)[:, :t], e[..., 0].to(torch.int16)


@forward("p:float32[N,T,3]", "q:float32[N,S,3]", **two("p:float32[N,T,3]", "q:float32[N,S,3]"))
def A6248ChamferAndFeatures(self, p, q):
    """Clouds: both nearest ways, normals' sign, a Hausdorff maximum, three nearest interpolated by inverse distances where there are three."""
    d = (p[:, :, None] - q[:, None]).square().sum(-1)
    a, i = d.min(2)
    b, j = d.min(1)
    k = min(3, q.shape[1])
    v, at = d.topk(k, 2, largest=False)
    w = 1 / (v + 1e-8)
    w = w / w.sum(-1, keepdim=True)
    f = q.gather(1, at.flatten(1)[..., None].expand(-1, -1, 3)).view(*at.shape, 3)
    mutual = j.gather(1, i) == torch.arange(p.shape[1])
    return a.mean(1) + b.mean(1), torch.maximum(a.amax(1), b.amax(1)).sqrt(), (f * w[..., None]).sum(2), mutual


@forward("x:float32[N,2,H,W]", "f:float32[N,2,H,W]=-3:3", **pix("x:float32[N,2,H,W]", "f:float32[N,2,H,W]=-3:3"))
def A6249ForwardSplat(self, x, f):
    """Softmax splatting: pixels moved by a flow to four neighbours by scatter, weights of importance, holes where nothing lands."""
    n, c, h, w = x.shape
    gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    tx, ty = gx + f[:, 0], gy + f[:, 1]
    x0, y0 = tx.floor(), ty.floor()
    imp = x.abs().sum(1).clamp(max=5).exp()
    out, wsum = x.new_zeros(n, c, h * w), x.new_zeros(n, 1, h * w)
    for dx in (0, 1):
        for dy in (0, 1):
            xi, yi = x0 + dx, y0 + dy
            ok = (xi >= 0) & (xi < w) & (yi >= 0) & (yi < h)
            k = (1 - (tx - xi).abs()) * (1 - (ty - yi).abs()) * ok * imp
            at = (yi.clamp(0, h - 1) * w + xi.clamp(0, w - 1)).long().flatten(1)[:, None]
            out = out.scatter_add(2, at.expand(-1, c, -1), (x * k[:, None]).flatten(2))
            wsum = wsum.scatter_add(2, at, k.flatten(1)[:, None])
    return torch.where(wsum > 1e-6, out / wsum.clamp(min=1e-6), 0.0).view(n, c, h, w), (wsum <= 1e-6).view(n, 1, h, w)


@attack("x:float32[N,T]", "t:int64[N]=0:49", **seq("x:float32[N,T]", "t:int64[N]=0:49"))
class A6250DpmSolverStep(nn.Module):
    """One step of DPM-Solver++ with a cosine schedule in a buffer, thresholded by a quantile, the last step without noise."""

    def __init__(self):
        super().__init__()
        s = torch.linspace(0, 1, 51, dtype=torch.float64)
        a = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
        self.register_buffer("a", (a / a[0]).clamp(min=1e-4).float())

    def forward(self, x, t):
        at, prev = self.a[t + 1][:, None], torch.where(t > 0, self.a[t], torch.ones(()))[:, None]
        x0 = (x - (1 - at).sqrt() * torch.sin(x)) / at.sqrt()
        q = torch.quantile(x0.abs(), 0.9, dim=1, keepdim=True).clamp(min=1.0)
        x0 = x0.clamp(-q, q) / q
        lt, lp = torch.log(at / (1 - at)) / 2, torch.log(prev / (1 - prev).clamp(min=1e-6)) / 2
        h = lp - lt
        return torch.where(t[:, None] == 0, x0, ((1 - prev) / (1 - at)).sqrt() * x - prev.sqrt() * torch.expm1(-h) * x0)


@forward("l:float32[N,T,6]", "s:float32[N]", **seq("l:float32[N,T,6]", "s:float32[N]"))
def A6251DiverseBeams(self, l, s):
    """Beams of two groups: the second is punished for what the first took, finished ones keep their score, length penalties, ties."""
    p = l[:, -1].log_softmax(-1)
    a, ia = (s[:, None] + p).topk(2, 1)
    took = F.one_hot(ia, 6).sum(1)
    b, ib = (s[:, None] + p - 0.5 * took).topk(2, 1)
    done = torch.cat([ia, ib], 1) == 5
    score = torch.cat([a, b], 1) / ((5 + l.shape[1]) / 6) ** 0.8
    best = score.masked_fill(~done, -1e9).amax(1) if l.shape[1] > 3 else score.amax(1)
    return torch.cat([ia, ib], 1), score, best, done.any(1)


@forward("e:int64[2,E]=0:5", "x:float32[6,4]", "w:float32[E]=0:1", dims="E=0:7:20", kinds=FEW, feeds=tuple(values_at("e:int64[2,E]=0:5", "x:float32[6,4]", "w:float32[E]=0:1", E=k) for k in range(21)))
def A6252GatWithNoEdges(self, e, x, w):
    """Graph attention over edges that may be none: a softmax by target, self-loops appended, degrees, a norm of both ends, a maximum."""
    loop = torch.arange(6)
    s, d = torch.cat([e[0], loop]), torch.cat([e[1], loop])
    ww = torch.cat([w, torch.ones(6)])
    z = F.leaky_relu((x[s] * x[d]).sum(-1), 0.2) * ww
    m = torch.full((6,), -math.inf).scatter_reduce(0, d, z, "amax")
    a = (z - m[d]).exp()
    a = a / torch.zeros(6).index_add(0, d, a)[d]
    y = torch.zeros(6, 4).index_add(0, d, x[s] * a[:, None])
    deg = torch.zeros(6).index_add(0, d, ww)
    norm = deg.rsqrt()[s] * deg.rsqrt()[d] * ww
    return y, torch.zeros(6, 4).index_add(0, d, x[s] * norm[:, None]), x.index_reduce(0, d, x[s], "amax"), torch.bincount(e[1], minlength=6)


@attack(IMAGE, **pix(IMAGE, low=2))
class A6253SwinV2Cosine(nn.Module):
    """Cosine attention with a clamped logit scale, log-spaced offsets with sign, padded to windows, a mask for padded keys."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.log(10 * torch.ones(1)))
        self.mlp = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1, bias=False))

    def forward(self, x):
        n, c, h, w = x.shape
        k = 4
        y = F.pad(x, (0, -w % k, 0, -h % k))
        real = F.pad(torch.ones(1, 1, h, w), (0, -w % k, 0, -h % k))
        part = lambda v: v.unfold(2, k, k).unfold(3, k, k).flatten(4).permute(0, 2, 3, 4, 1).flatten(0, 2)
        q, r = F.normalize(part(y), dim=-1), part(real)[..., 0]
        d = torch.arange(1 - k, k).float()
        t = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1) / (k - 1) * 8
        t = torch.sign(t) * torch.log2(t.abs() + 1) / math.log2(8)
        i = torch.arange(k * k)
        rel = (i[:, None] // k - i[None] // k + k - 1) * (2 * k - 1) + i[:, None] % k - i[None] % k + k - 1
        b = 16 * torch.sigmoid(self.mlp(t).view(-1)[rel])
        s = q @ q.transpose(1, 2) * self.scale.clamp(max=math.log(100)).exp() + b
        s = s + torch.where(r.repeat(n, 1) > 0, 0.0, -100.0)[:, None]
        o = (s.softmax(-1) @ part(y)).view(n, -(-h // k), -(-w // k), k, k, c)
        return o.permute(0, 5, 1, 3, 2, 4).reshape(n, c, y.shape[2], y.shape[3])[..., :h, :w]


@attack(IDS, **seq(IDS))
class A6254MambaStep(nn.Module):
    """A selective scan as a cumulative sum in logs, chunked by eight with a remainder, states carried over chunks."""

    def __init__(self):
        super().__init__()
        self.e, self.dt = nn.Embedding(10, 4), nn.Linear(4, 4)

    def forward(self, i):
        x = self.e(i)
        n, t, c = x.shape
        k = 8
        dt = F.softplus(self.dt(x)) * 0.5
        x, dt = (F.pad(v, (0, 0, 0, -t % k)).view(n, -1, k, c) for v in (x, dt))
        a = dt.cumsum(2)
        low = torch.exp(-(a[:, :, :, None] - a[:, :, None])).masked_fill(~torch.ones(k, k).tril().bool()[..., None], 0.0)
        y = (low * (x * dt)[:, :, None]).sum(3)
        ends, decay = y[:, :, -1], torch.exp(-a[:, :, -1]).clamp(min=1e-20).log().cumsum(1)
        z = torch.exp(decay[:, :, None] - decay[:, None]).masked_fill(~torch.ones(x.shape[1], x.shape[1]).tril().bool()[..., None], 0.0)
        st = F.pad((z * ends[:, None]).sum(2), (0, 0, 1, 0))[:, :-1]
        return (y + torch.exp(-a) * st[:, :, None]).flatten(1, 2)[:, :t]


@forward(IMAGE, **pix(IMAGE, low=2))
def A6255DifferentiableBinarised(self, x):
    """OCR's binarisation, its boxes by projections of a mask, reading order by rows of half a height, the tallest line's crop mean."""
    p, th = x[:, 0].sigmoid(), x[:, 1].sigmoid()
    b = torch.reciprocal(1 + torch.exp(-50 * (p - th)))
    m = b > 0.3
    rows, cols = m.any(2), m.any(1)
    top = torch.where(rows.any(1), rows.int().argmax(1), -1)
    bot = torch.where(rows.any(1), x.shape[2] - 1 - rows.flip(1).int().argmax(1), -1)
    runs = (rows & ~F.pad(rows, (1, 0))[:, :-1]).sum(1)
    lab = (rows & ~F.pad(rows, (1, 0))[:, :-1]).cumsum(1) * rows
    size = (lab[:, :, None] == torch.arange(1, 4)).sum(1)
    return b, top, bot, runs, size.argmax(1), cols.sum(1), (p * m).sum((1, 2)) / m.sum((1, 2)).clamp(min=1)


@forward(X, MT, **seq(X, MT, low=3))
def A6256ForecastLosses(self, x, m):
    """Scores of forecasts with gaps: MASE with a seasonal step, pinball at three levels, sMAPE whose zero by zero is zero, coverage."""
    y = x.roll(1, 1)
    e = (x - y).abs()
    mase = (e * m).sum(1) / m.sum(1).clamp(min=1) / (x[:, 2:] - x[:, :-2]).abs().mean(1).clamp(min=1e-8)
    q = torch.tensor([0.1, 0.5, 0.9])
    d = (x - y)[..., None]
    pin = torch.maximum(q * d, (q - 1) * d).mean(1)
    sm = (2 * e / (x.abs() + y.abs())).nan_to_num(0.0).mean(1)
    return mase, pin, sm, ((x >= y - 0.5) & (x <= y + 0.5)).float().mean(1)


@forward("k:float32[N,3,3]", "p:float32[N,T,3]", **seq("k:float32[N,3,3]", "p:float32[N,T,3]"))
def A6257FisheyeProjected(self, k, p):
    """Kannala-Brandt: radius by atan2, a polynomial of the angle, points behind the camera and on the axis, undistorted by Newton's steps."""
    r = p[..., :2].norm(dim=-1)
    th = torch.atan2(r, p[..., 2])
    td = th * (1 + 0.1 * th**2 - 0.02 * th**4)
    s = torch.where(r > 1e-8, td / r.clamp(min=1e-8), 1.0 / p[..., 2].clamp(min=1e-3))
    uv = (k[:, None] @ torch.cat([p[..., :2] * s[..., None], torch.ones_like(r)[..., None]], -1)[..., None])[..., 0]
    t = td
    for _ in range(4):
        t = t - (t * (1 + 0.1 * t**2 - 0.02 * t**4) - td) / (1 + 0.3 * t**2 - 0.1 * t**4).clamp(min=0.1)
    return uv, t.clamp(-9, 9), (p[..., 2] > 0) & (th < 1.5)


@attack(X4, **seq(X4))
class A6258FsqAndLookupFree(nn.Module):
    """Tokenizers: finite scalars with even and odd levels (a half offset by atanh), bits by sign to indices and back."""

    def __init__(self):
        super().__init__()
        self.register_buffer("levels", torch.tensor([8, 5, 5, 2]))
        self.register_buffer("basis", torch.tensor([1, 8, 40, 200]))

    def forward(self, x):
        half = (self.levels - 1) * (1 + 1e-3) / 2
        off = torch.where(self.levels % 2 == 0, 0.5, 0.0)
        z = torch.tanh(x + torch.atanh(off / half)) * half - off
        q = z.round() / (self.levels // 2)
        i = ((q * (self.levels // 2) + self.levels // 2) * self.basis).sum(-1).to(torch.int32)
        back = (i[..., None] // self.basis) % self.levels
        bits = (x > 0).int()
        code = (bits << torch.arange(4)).sum(-1)
        return q, i, back, code, ((code[..., None] >> torch.arange(4)) & 1) * 2 - 1


@attack(IMAGE, **pix(IMAGE))
class A6259MixtureOfDepths(nn.Module):
    """Tokens of a picture are routed: an eighth (rounded up) goes through a layer, placed back by a scatter, ties to the first."""

    def __init__(self):
        super().__init__()
        self.r, self.f = nn.Linear(2, 1), nn.Linear(2, 2)

    def forward(self, x):
        y = x.flatten(2).transpose(1, 2)
        k = max(1, math.ceil(y.shape[1] / 8))
        w, at = self.r(y)[..., 0].topk(k, 1, sorted=False)
        at, o = at.sort(1)
        w = w.gather(1, o)[..., None]
        sel = y.gather(1, at[..., None].expand(-1, -1, 2))
        return y.scatter_add(1, at[..., None].expand(-1, -1, 2), self.f(sel) * w.sigmoid()).transpose(1, 2).view_as(x), at


@forward("x:float32[N,T]", "r:float32[N]=0.5:2", **seq("x:float32[N,T]", "r:float32[N]=0.5:2"))
def A6260SpeedPerturbed(self, x, r):
    """Resampled by a rate of each: linear interpolation at places of an input, beyond the end silence, and how long it becomes."""
    t = x.shape[1]
    at = torch.arange(t) * r[:, None]
    lo = at.floor().long()
    f = at - lo
    g = lambda k: torch.where(k < t, x.gather(1, k.clamp(max=t - 1)), 0.0)
    return g(lo) * (1 - f) + g(lo + 1) * f, torch.ceil(t / r).long()
