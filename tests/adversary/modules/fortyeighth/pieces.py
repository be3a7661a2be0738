# ruff: noqa: E501, B023, RUF059, E731, E741 - attacks are written as users write them
"""Parts of networks as teams ship them: detection, tracking, language, speech, recommendation, points, time series."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
BOX, BOX2 = "x:float32[N,T,4]=0:20", "y:float32[N,S,4]=0:20"


@forward(BOX, BOX2, **two(BOX, BOX2))
def A6016AssignedAnchors(self, x, y):
    """Task-aligned assignment: anchors in a ground truth's box, the top few by IoU, ties to the larger IoU, -1 for none."""
    c = (x[..., :2] + x[..., 2:]) / 2
    lt, rb = c[:, None] - y[:, :, None, :2], y[:, :, None, 2:] - c[:, None]
    inside = torch.cat([lt, rb], -1).amin(-1) > 1e-9
    a = (x[..., 2:] - x[..., :2]).clamp(min=0).prod(-1)[:, None]
    b = (y[..., 2:] - y[..., :2]).clamp(min=0).prod(-1)[..., None]
    wh = (torch.minimum(x[:, None, :, 2:], y[:, :, None, 2:]) - torch.maximum(x[:, None, :, :2], y[:, :, None, :2])).clamp(min=0)
    iou = wh.prod(-1) / (a + b - wh.prod(-1)).clamp(min=1e-9)
    k = min(3, x.shape[1])
    top = torch.zeros_like(iou).scatter(2, iou.topk(k, 2).indices, 1.0).bool() & inside
    multi = top.sum(1, keepdim=True) > 1
    best = F.one_hot(iou.argmax(1), y.shape[1]).transpose(1, 2).bool()
    pos = torch.where(multi, best, top)
    return torch.where(pos.any(1), pos.int().argmax(1), -1), iou, pos.sum(-1)


@forward("d:float32[N,T,5]", **seq("d:float32[N,T,5]"), refused="the path through the module depends on the size")
def A6017SoftNms(self, d):
    """Soft-NMS, Gaussian, in as many rounds as there are boxes: the best is taken, the others decay."""
    xy, wh, s = d[..., :2], d[..., 2:4].abs() + 0.1, d[..., 4].sigmoid()
    done = torch.zeros_like(s, dtype=torch.bool)
    order = []
    for _ in range(d.shape[1]):
        at = torch.where(done, -1.0, s).argmax(1, keepdim=True)
        done = done.scatter(1, at, True)
        order.append(at)
        g = lambda v: v.gather(1, at[..., None].expand(-1, 1, 2))
        i = (torch.minimum(xy + wh, g(xy + wh)) - torch.maximum(xy, g(xy))).clamp(min=0).prod(-1)
        iou = i / (wh.prod(-1) + g(wh).prod(-1) - i)
        s = torch.where(done, s, s * torch.exp(-iou * iou / 0.5))
    return s, torch.cat(order, 1)


@forward("x:float32[N,T,4]", "y:float32[N,S,4]", **two(X4, "y:float32[N,S,4]", high=8))
def A6018GreedyMatches(self, x, y):
    """A tracker's greedy matching: the least cost first, its row and column closed by infinity, as often as the shorter."""
    c = torch.cdist(x, y)
    n, t, s = c.shape
    out = torch.full((n, t), -1)
    for _ in range(min(t, s)):
        v, at = c.flatten(1).min(1)
        r, k = at // s, at % s
        ok = v < 2.0
        rows = torch.arange(t) == r[:, None]
        out = torch.where(rows & ok[:, None], k[:, None], out)
        c = c.masked_fill(rows[..., None], math.inf).masked_fill((torch.arange(s) == k[:, None])[:, None], math.inf)
    return out, (out < 0).sum(1)


@attack(X4, MT, **seq(X4, MT), refused="the path through the module depends on the size")
class A6019KalmanWithGaps(nn.Module):
    """A Kalman filter of constant speed over measurements that may be missing, gain by a solve, and its Mahalanobis gate."""

    def forward(self, x, m):
        f = torch.eye(4) + torch.diag(torch.ones(2), 2)
        h, q, r = torch.eye(2, 4), torch.eye(4) * 0.01, torch.eye(2) * 0.1
        n = x.shape[0]
        s, p = x.new_zeros(n, 4), torch.eye(4).expand(n, 4, 4)
        out, gates = [], []
        for t in range(x.shape[1]):
            s, p = s @ f.T, f @ p @ f.T + q
            e = x[:, t, :2] - s @ h.T
            v = h @ p @ h.T + r
            k = torch.linalg.solve(v, h @ p).transpose(1, 2)
            gate = (e[:, None] @ torch.linalg.inv(v) @ e[..., None])[:, 0, 0]
            use = (m[:, t] & (gate < 9.4877))[:, None]
            s = torch.where(use, s + (k @ e[..., None])[..., 0], s)
            p = torch.where(use[..., None], p - k @ h @ p, p)
            out.append(s)
            gates.append(gate)
        return torch.stack(out, 1), torch.stack(gates, 1), p


@attack(IDS, "a:int64[N,T]=0:1", **seq(IDS, "a:int64[N,T]=0:1"))
class A6020EncoderWithPadding(nn.Module):
    """BERT in short by torch's own encoder: padding of a mask, positions by counts of what is no padding, a pooled mean."""

    def __init__(self):
        super().__init__()
        self.e, self.p = nn.Embedding(10, 8, padding_idx=1), nn.Embedding(64, 8, padding_idx=1)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu"), 2, enable_nested_tensor=False)

    def forward(self, i, a):
        a = a.index_fill(1, torch.tensor([0]), 1)
        real = i.ne(1).int()
        pos = (torch.cumsum(real, 1).type_as(real) + 0) * real
        h = self.enc(self.e(i) + self.p(pos.long() + 1), src_key_padding_mask=a == 0)
        w = a[..., None].type_as(h)
        return (h * w).sum(1) / w.sum(1).clamp(min=1e-9), pos


@attack(IDS, MT, **seq(IDS, MT))
class A6021NestedFastPath(nn.Module):
    """torch's own encoder with nested tensors on: the fast path cuts the output to the longest that is real."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 8)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)

    def forward(self, i, m):
        pad = m.clone()
        pad[:, 0] = False
        pad = pad.int().cummax(1).values.bool()
        return self.enc(self.e(i), src_key_padding_mask=pad).sum(1)


@attack(X4, **seq(X4))
class A6022AlibiAndRotary(nn.Module):
    """ALiBi slopes for three heads, rotary of half the width with interleaving, a window, softcapped scores, NTK by length."""

    def slopes(self, n):
        p = 2 ** math.floor(math.log2(n))
        s = [2 ** (-8 * (i + 1) / p) for i in range(p)]
        return s + [2 ** (-4 * (2 * i + 1) / p) for i in range(n - p)]

    def forward(self, x):
        n, t, c = x.shape
        base = 10000.0 * max(1.0, 2 * t / 16 - 1) ** (c / (c - 2))
        inv = base ** (-torch.arange(0, c, 2).float() / c)
        a = torch.arange(t)[:, None] * inv
        a, b = a.cos().repeat_interleave(2, -1), a.sin().repeat_interleave(2, -1)
        rot = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        q = x * a + rot * b
        d = torch.arange(t)[None] - torch.arange(t)[:, None]
        s = 5 * torch.tanh(q @ q.transpose(1, 2) / 5)[:, None] + torch.tensor(self.slopes(3))[:, None, None] * d
        return s.masked_fill((d > 0) | (d < -6), -math.inf).softmax(-1) @ x[:, None], base * x[:, 0]


@forward("l:float32[N,T,6]", "i:int64[N,S]=1:5", **two("l:float32[N,T,6]", "i:int64[N,S]=1:5", high=9))
def A6023CtcByHand(self, l, i):
    """CTC's forward sums by hand: blanks between, skips where labels differ, log domain, the last two states."""
    p = l.log_softmax(-1)
    n, t, _ = p.shape
    s = i.shape[1]
    ext = torch.zeros(n, 2 * s + 1, dtype=torch.long)
    ext[:, 1::2] = i
    skip = F.pad((ext[:, 2:] != 0) & (ext[:, 2:] != ext[:, :-2]), (2, 0))
    e = p.gather(2, ext[:, None].expand(-1, t, -1))
    a = torch.full_like(e[:, 0], -1e30)
    a[:, :2] = e[:, 0, :2]
    for k in range(1, t):
        one = F.pad(a[:, :-1], (1, 0), value=-1e30)
        two_ = torch.where(skip, F.pad(a[:, :-2], (2, 0), value=-1e30), -1e30)
        a = torch.logsumexp(torch.stack([a, one, two_]), 0) + e[:, k]
    return torch.logaddexp(a[:, -1], a[:, -2]).clamp(min=-1e4)


@forward("l:float32[N,T,6]", **seq("l:float32[N,T,6]"))
def A6024GreedyDecoded(self, l):
    """CTC greedy: repeats and blanks dropped, moved to the front by a stable sort, lengths, confidences, a text's hash."""
    b = l.argmax(-1)
    keep = (b != 0) & (b != F.pad(b, (1, 0), value=-1)[:, :-1])
    o = torch.argsort(keep.int(), dim=1, descending=True, stable=True)
    n = keep.sum(1)
    y = b.gather(1, o).masked_fill(torch.arange(b.shape[1]) >= n[:, None], -1)
    h = torch.zeros(b.shape[0], dtype=torch.long)
    for k in range(b.shape[1]):
        h = torch.where(k < n, (h * 31 + y[:, k]) % 1000003, h)
    return y, n, (l.softmax(-1).amax(-1) * keep).sum(1) / n.clamp(min=1), h


@attack("i:int64[N,T]=0:30", "w:float32[N,T]=0:1", **seq("i:int64[N,T]=0:30", "w:float32[N,T]=0:1"))
class A6025HashedBags(nn.Module):
    """Recommendation: quotient and remainder tables, a bag by weights, mean and max, a cross of pairs by triangles, a DCN."""

    def __init__(self):
        super().__init__()
        self.q, self.r, self.bag = nn.Embedding(5, 4), nn.Embedding(7, 4), nn.EmbeddingBag(31, 4, mode="sum")
        self.top, self.w = nn.EmbeddingBag(31, 4, mode="max", padding_idx=0), nn.Parameter(torch.randn(4, 4))

    def forward(self, i, w):
        e = self.q(i // 7) * self.r(i % 7)
        f = torch.stack([self.bag(i, per_sample_weights=w), self.top(i), e.mean(1), e.amax(1)], 1)
        z = f @ f.transpose(1, 2)
        r, c = torch.tril_indices(4, 4, -1)
        x0 = f.flatten(1)[:, :4]
        return z[:, r, c], x0 * (x0 @ self.w) + x0, e


@attack("p:float32[N,T,3]", **seq("p:float32[N,T,3]", low=4))
class A6026GroupedPoints(nn.Module):
    """PointNet++: farthest points, a ball query that repeats its first, groups relative to centres, a pooled maximum."""

    def forward(self, p):
        n, t, _ = p.shape
        k = max(t // 4, 1)
        d = torch.full((n, t), 1e10)
        far = torch.zeros(n, dtype=torch.long)
        ids = []
        for _ in range(k):
            ids.append(far)
            c = p.gather(1, far[:, None, None].expand(-1, 1, 3))
            d = torch.minimum(d, (p - c).square().sum(-1))
            far = d.argmax(1)
        at = torch.stack(ids, 1)
        c = p.gather(1, at[..., None].expand(-1, -1, 3))
        dist = (c[:, :, None] - p[:, None]).square().sum(-1)
        g = torch.arange(t).expand(n, k, t).masked_fill(dist > 1.0, t).sort(-1).values[..., :4]
        g = torch.where(g == t, g[..., :1], g)
        rows = torch.arange(n)[:, None, None]
        return (p[rows, g] - c[:, :, None]).amax(2), at, g


@forward("p:float32[N,T,3]=-4:4", **seq("p:float32[N,T,3]=-4:4"))
def A6027PillarsOfPoints(self, p):
    """Voxels of points: cells by floor of a quotient, those outside go to a last bin, means and counts, a canvas."""
    c = torch.floor((p[..., :2] + 3.0) / 0.75).long()
    ok = ((c >= 0) & (c < 8)).all(-1)
    at = torch.where(ok, c[..., 1] * 8 + c[..., 0], 64)
    n = p.shape[0]
    cnt = torch.zeros(n, 65).scatter_add(1, at, torch.ones_like(at, dtype=torch.float32))
    s = torch.zeros(n, 65, 3).scatter_add(1, at[..., None].expand_as(p), p)
    top = torch.full((n, 65), -math.inf).scatter_reduce(1, at, p[..., 2], "amax")
    canvas = torch.cat([s / cnt.clamp(min=1)[..., None], top.clamp(min=-9)[..., None]], -1)[:, :64].transpose(1, 2).view(n, 4, 8, 8)
    return F.max_pool2d(canvas, 2), cnt.long(), ok


@forward(X, **seq(X, low=2))
def A6028SeasonsByWindow(self, x):
    """Decomposition: a centred mean with an even window, seasonal means by phase, residual, scaled by its deviation (MAD)."""
    t = x.shape[1]
    k = min(4, t)
    y = F.pad(x[:, None], (k // 2, k - 1 - k // 2), mode="replicate")
    trend = F.avg_pool1d(y, k, 1)[:, 0]
    d = x - trend
    ph = torch.arange(t) % k
    s = torch.zeros(x.shape[0], k).index_add(1, ph, d) / torch.zeros(k).index_add(0, ph, torch.ones(t))
    r = d - s[:, ph]
    med = r.median(1, keepdim=True).values
    mad = (r - med).abs().median(1, keepdim=True).values
    return trend, s, torch.where(mad > 0, (r - med) / (1.4826 * mad.clamp(min=1e-12)), torch.zeros_like(r))


@forward(X4, **seq(X4))
def A6029BeatsTracked(self, x):
    """Beats: half-wave rectified flux, a local maximum, autocorrelation's best lag within limits, its tempo, a pulse train."""
    f = F.pad((x[:, 1:] - x[:, :-1]).clamp(min=0).sum(-1), (1, 0))
    t = f.shape[1]
    g = f - F.avg_pool1d(F.pad(f[:, None], (3, 3)), 7, 1)[:, 0]
    spec = torch.fft.rfft(g, n=2 * t)
    ac = torch.fft.irfft(spec.abs().square(), n=2 * t)[:, :t]
    lags = torch.arange(t)
    ok = (lags >= 2) & (lags <= 20)
    lag = torch.where(ok, ac.round(decimals=3), -math.inf).argmax(1)
    pulse = (lags % lag[:, None].clamp(min=1)) == 0
    return ac, 60.0 / lag.clamp(min=1), (g * pulse).sum(1)


@attack(IMAGE, **pix(IMAGE))
class A6030DeformableByHand(nn.Module):
    """A deformable convolution by hand: offsets added to a grid, bilinear corners with a zero border, a modulation."""

    def __init__(self):
        super().__init__()
        self.off, self.w = nn.Conv2d(2, 27, 3, padding=1), nn.Parameter(torch.randn(3, 2, 9) * 0.3)

    def forward(self, x):
        n, c, h, w = x.shape
        o = self.off(x)
        dy, dx, m = o[:, :18:2], o[:, 1:18:2], o[:, 18:].sigmoid()
        ky, kx = torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij")
        y = torch.arange(h).view(1, 1, h, 1) + ky.reshape(1, 9, 1, 1) + dy
        z = torch.arange(w).view(1, 1, 1, w) + kx.reshape(1, 9, 1, 1) + dx
        y0, x0 = y.floor(), z.floor()
        acc = 0
        for a in (0, 1):
            for b in (0, 1):
                yy, xx = (y0 + a), (x0 + b)
                wt = (1 - (y - yy).abs()) * (1 - (z - xx).abs()) * ((yy >= 0) & (yy < h) & (xx >= 0) & (xx < w))
                at = yy.clamp(0, h - 1).long() * w + xx.clamp(0, w - 1).long()
                v = x.flatten(2).gather(2, at.flatten(1)[:, None].expand(-1, c, -1)).view(n, c, 9, h, w)
                acc = acc + v * wt[:, None]
        return torch.einsum("nckhw,ock->nohw", acc * m[:, None], self.w)


@forward("x:float32[N,4,H,W]", **pix("x:float32[N,4,H,W]"))
def A6031AnchorsOfLevels(self, x):
    """Anchors of three levels whose sizes are ceilings of halves, decoded by exp with a limit, clipped, the best few by score."""
    h, w = x.shape[-2:]
    out = []
    for k in (1, 2, 4):
        hh, ww = math.ceil(h / k), math.ceil(w / k)
        f = F.adaptive_avg_pool2d(x, (hh, ww))
        gy, gx = torch.meshgrid((torch.arange(hh) + 0.5) * k, (torch.arange(ww) + 0.5) * k, indexing="ij")
        c = torch.stack([gx, gy], -1).view(1, -1, 2)
        d = f.flatten(2).transpose(1, 2)
        ctr, half = c + d[..., :2] * k, d[..., 2:].clamp(max=math.log(1000 / 16)).exp() * k / 2
        b = torch.cat([ctr - half, ctr + half], -1)
        out.append(torch.stack([b[..., 0].clamp(0, w), b[..., 1].clamp(0, h), b[..., 2].clamp(0, w), b[..., 3].clamp(0, h)], -1))
    b = torch.cat(out, 1)
    s = (b[..., 2:] - b[..., :2]).prod(-1)
    v, i = s.topk(min(5, s.shape[1]), 1)
    return b, v, i


@attack("x:float32[2,E]=-1:1", "a:int64[2,E]=0:5", dims="E=1:7:20", kinds=FEW, feeds=tuple(values_at("x:float32[2,E]=-1:1", "a:int64[2,E]=0:5", E=e) for e in range(1, 21)))
class A6032SegmentsOfEdges(nn.Module):
    """Message passing on six nodes: a softmax by targets, degree norms with infinities set to zero, multi-aggregation."""

    def forward(self, x, a):
        s, d = a
        deg = torch.zeros(6).index_add(0, d, torch.ones_like(x[0]))
        dis = deg.pow(-0.5)
        dis = dis.masked_fill(dis == math.inf, 0)
        top = torch.zeros(6).scatter_reduce(0, d, x[0], "amax", include_self=False)
        e = (x[0] - top[d]).exp()
        w = e / (torch.zeros(6).index_add(0, d, e)[d] + 1e-16)
        msg = x * (dis[s] * dis[d])
        agg = [torch.zeros(2, 6).scatter_reduce(1, d.expand(2, -1), msg, k, include_self=False) for k in ("mean", "amin", "amax", "sum")]
        std = (torch.zeros(2, 6).scatter_reduce(1, d.expand(2, -1), msg * msg, "mean", include_self=False) - agg[0] ** 2).clamp(min=0).add(1e-5).sqrt()
        return w, torch.cat([*agg, std]), dis
