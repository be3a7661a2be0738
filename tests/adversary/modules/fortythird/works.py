# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Works of engineers: detectors, trackers, readers of text, point clouds, graphs, codecs, recommenders, samplers, state spaces, metrics."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"
IMAGE = "x:float32[N,3,H,W]"
HW = "N=1:1:2 H=1:8:16 W=1:9:16"
ENDS = tuple(values_at(IMAGE, N=n, H=h, W=w) for n, h, w in ((1, 1, 1), (1, 1, 16), (1, 16, 1), (2, 16, 16), (1, 15, 8), (2, 7, 14)))


def lengths(*sizes: int, text: str = X4, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


@attack(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
class A4581AnchorsByLevel(nn.Module):
    """Anchors of two levels that NumPy lays over both axes, kept in a dictionary by the level's shape."""
    def __init__(self):
        super().__init__()
        self.kept = {}
    def grid(self, h, w, s):
        if (h, w, s) not in self.kept:
            ys, xs = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
            self.kept[h, w, s] = torch.from_numpy(np.stack([xs, ys], -1).reshape(-1, 2)).float().add(0.5) * s
        return self.kept[h, w, s]
    def forward(self, x):
        out = []
        for s in (1, 2):
            y = F.max_pool2d(x, s, ceil_mode=True) if s > 1 else x
            g = self.grid(*y.shape[-2:], s)
            out.append(torch.cat([g.expand(x.shape[0], -1, -1), y.flatten(2).mT.sigmoid() * s], -1))
        return torch.cat(out, 1)
@attack(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
class A4582SineEmbedding2d(nn.Module):
    """DETR's sine places with a normalised cumulative sum, a temperature of floor powers."""
    def forward(self, x):
        m = torch.ones(x.shape[0], *x.shape[-2:])
        y, z = m.cumsum(1), m.cumsum(2)
        y, z = (v / (v.amax((1, 2), keepdim=True) + 1e-6) * 2 * math.pi for v in (y, z))
        d = torch.arange(4.0)
        d = 10000 ** (2 * torch.div(d, 2, rounding_mode="floor") / 4)
        p = [torch.stack([(v[..., None] / d)[..., ::2].sin(), (v[..., None] / d)[..., 1::2].cos()], -1).flatten(3) for v in (y, z)]
        return torch.cat(p, -1).permute(0, 3, 1, 2) + x.mean(1, keepdim=True)
@forward(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
def A4583LetterboxAndBack(self, x):
    """A letterbox to sixteen by Python's round of the halves, then cut out again."""
    h, w = x.shape[-2:]
    r = min(16 / h, 16 / w)
    nh, nw = round(h * r), round(w * r)
    dh, dw = (16 - nh) / 2, (16 - nw) / 2
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
    y = F.pad(y, (round(dw - 0.1), round(dw + 0.1), round(dh - 0.1), round(dh + 0.1)), value=114 / 255)
    return y, y[..., round(dh - 0.1) : round(dh - 0.1) + nh, round(dw - 0.1) : round(dw - 0.1) + nw].amax((2, 3))
@attack(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
class A4584ShiftedWindows(nn.Module):
    """Windows of four, shifted only where the picture is longer than one, padded where it must be."""
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(3, 9)
    def forward(self, x):
        n, c, h, w = x.shape
        x = F.pad(x, (0, -w % 4, 0, -h % 4))
        sh = 2 if x.shape[2] > 4 else 0
        sw = 2 if x.shape[3] > 4 else 0
        y = x.roll((-sh, -sw), (2, 3)).unflatten(2, (-1, 4)).unflatten(4, (-1, 4)).permute(0, 2, 4, 3, 5, 1).flatten(3, 4)
        q, k, v = self.q(y).chunk(3, -1)
        y = ((q @ k.mT).softmax(-1) @ v).unflatten(3, (4, 4)).permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)
        return y.roll((sh, sw), (2, 3))[..., :h, :w]
@forward("b:float32[M,4]=0:16", "s:float32[M]=0:1", dims="M=1:6:12", kinds=("normal", "zeros", "halves", "ones"))
def A4585SoftNms(self, b, s):
    """Fast NMS by a matrix above its diagonal, ties of scores in their order, a soft decay."""
    s, o = torch.sort(s, descending=True, stable=True)
    b = torch.cat([b[o, :2], b[o, :2] + b[o, 2:]], 1)
    lt, rb = torch.maximum(b[:, None, :2], b[None, :, :2]), torch.minimum(b[:, None, 2:], b[None, :, 2:])
    i = (rb - lt).clamp(min=0).prod(-1)
    a = (b[:, 2:] - b[:, :2]).prod(-1)
    u = (i / (a[:, None] + a - i).clamp(min=1e-6)).triu(1)
    return s * (1 - u.amax(0)), u.amax(0) <= 0.5, (-(u**2) / 0.5).exp().amin(0) * s
@forward("a:float32[M,4]", "b:float32[K,4]", dims="M=1:4:8 K=1:5:8", kinds=("normal", "halves"))
def A4586GreedyTracks(self, a, b):
    """As many matches as the shorter side has, each the least distance left; rows without one stay -1."""
    d = torch.cdist(a, b)
    out = torch.full((a.shape[0],), -1)
    for _ in range(min(a.shape[0], b.shape[0])):
        f = d.flatten().argmin()
        r, c = f // b.shape[0], f % b.shape[0]
        out = torch.where(torch.arange(a.shape[0]) == r, c, out)
        d = d.masked_fill((torch.arange(a.shape[0]) == r)[:, None] | (torch.arange(b.shape[0]) == c), float("inf"))
    return out
@attack("p:float32[N,P,3]", dims="N=1:1:2 P=1:8:16", kinds=FINITE[:4])
class A4587SampledPoints(nn.Module):
    """Farthest points (four at most), balls by a sort of places, groups by gather, a pool."""
    def forward(self, p):
        n, m = p.shape[:2]
        d, at, out = torch.full((n, m), 1e10), torch.zeros(n, dtype=torch.long), []
        for _ in range(4):
            out.append(at)
            c = p[torch.arange(n), at][:, None]
            d = torch.minimum(d, ((p - c) ** 2).sum(-1))
            at = d.argmax(-1)
        i = torch.stack(out, 1)
        c = p.gather(1, i[..., None].expand(-1, -1, 3))
        g = torch.arange(m).expand(n, 4, m).clone()
        g[torch.cdist(c, p) > 1.0] = m
        g = g.sort(-1).values[..., : min(m, 3)]
        g = torch.where(g == m, g[..., :1], g)
        return i, g, (p[torch.arange(n)[:, None, None], g] - c[:, :, None]).amax(2)
@attack("x:float32[V,4]", "e:int64[2,E]=0:0", dims="V=1:5:9 E=1:6:12", kinds=FINITE[:4])
class A4588GraphAttention(nn.Module):
    """Edges with loops of their own added, a softmax by target, degrees under a root."""
    def __init__(self):
        super().__init__()
        self.lin, self.a = nn.Linear(4, 4), nn.Linear(8, 1)
    def forward(self, x, e):
        v = x.shape[0]
        s, t = torch.cat([e, torch.arange(v).expand(2, v)], 1)
        h = self.lin(x)
        w = F.leaky_relu(self.a(torch.cat([h[s], h[t]], 1))[:, 0], 0.2)
        top = torch.full((v,), -1e9).scatter_reduce(0, t, w, "amax")
        w = (w - top[t]).exp()
        w = w / torch.zeros(v).index_add(0, t, w)[t]
        deg = torch.zeros(v).index_add(0, t, torch.ones_like(w)).rsqrt()
        return torch.zeros_like(h).index_add(0, t, h[s] * w[:, None]), deg
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 19, 20))
class A4589ResidualCodes(nn.Module):
    """Residual codes of three books, nearest by a distance with ties, as bits packed in a number."""
    def __init__(self):
        super().__init__()
        self.register_buffer("books", torch.randn(3, 8, 4).mul(2).round() / 2)
    def forward(self, x):
        r, q, codes = x, torch.zeros_like(x), []
        for b in self.books:
            i = ((r[..., None, :] - b) ** 2).sum(-1).argmin(-1)
            q, r = q + b[i], r - b[i]
            codes.append(i)
        c = torch.stack(codes, -1)
        return q, c, (c * 8 ** torch.arange(3)).sum(-1), sum(c.unbind(-1)) % 8
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 3, 19, 20))
class A4590SelectiveScan(nn.Module):
    """Mamba's scan, step by step, with a causal convolution cut to the length and a state in a list."""
    def __init__(self):
        super().__init__()
        self.conv, self.dt, self.bc = nn.Conv1d(4, 4, 3, padding=2, groups=4), nn.Linear(4, 4), nn.Linear(4, 6)
        self.a = nn.Parameter(torch.arange(1.0, 4).repeat(4, 1).log())
    def forward(self, x):
        t = x.shape[1]
        u = F.silu(self.conv(x.mT)[..., :t].mT)
        dt, (b, c) = F.softplus(self.dt(u)), self.bc(u).chunk(2, -1)
        s, ys = u.new_zeros(x.shape[0], 4, 3), []
        for i in range(t):
            s = s * torch.exp(dt[:, i, :, None] * -self.a.exp()) + dt[:, i, :, None] * b[:, i, None] * u[:, i, :, None]
            ys.append((s * c[:, i, None]).sum(-1))
        return torch.stack(ys, dim=1) + u, s
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 19, 20))
class A4591StridedSampler(nn.Module):
    """A sampler of five DDIM steps by linspace of integers, a guided half, a threshold by a quantile."""
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(5, 4)
        self.register_buffer("abar", torch.linspace(0.99, 0.01, 100).cumprod(0).clamp(min=1e-4))
    def forward(self, x):
        ts = np.linspace(0, 99, 5).round().astype(int)[::-1]
        for i, t in enumerate(ts):
            a, b = self.abar[int(t)], self.abar[int(ts[i + 1])] if i < 4 else torch.tensor(1.0)
            two = torch.cat([x, x * 0])
            e, u = self.net(F.pad(two, (0, 1), value=t / 100)).chunk(2)
            e = u + 2.0 * (e - u)
            x0 = (x - (1 - a).sqrt() * e) / a.sqrt()
            s = x0.abs().flatten(1).quantile(0.9, dim=1).clamp(min=1.0)[:, None, None]
            x = b.sqrt() * x0.clamp(-s, s) / s + (1 - b).sqrt() * e
        return x
@attack("i:int64[N,T]=-1:30", dims=ROWS, feeds=(lambda: {"i": np.array([[-1, -1]])}, lambda: {"i": np.array([[30, -1, 4, 0]])}))
class A4592HashedBags(nn.Module):
    """Ids hashed into a table by a remainder, -1 left out, bags of mean, sum and max, crossed features."""
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 4, padding_idx=0)
    def forward(self, i):
        ok = (i >= 0)[..., None]
        h = torch.where(i >= 0, (i * 2654435761 % 2**32) % 6 + 1, 0)
        e = self.emb(h)
        n = ok.sum(1)
        cross = (h[:, :, None] * 31 + h[:, None]) % 7
        return e.sum(1) / n.clamp(min=1), e.masked_fill(~ok, -1e9).amax(1), h, cross, (e.sum(1) ** 2 - (e**2).sum(1)) / 2, n > 0
@forward("x:float32[N,T]", "y:int64[N,T]=0:1", dims=ROWS, kinds=FEW)
def A4593AreaUnderCurve(self, x, y):
    """AUC by mean ranks of ties, average precision by a sort, recall at a moving k, NaN without positives."""
    less = (x[:, :, None] > x[:, None]).float() + 0.5 * (x[:, :, None] == x[:, None])
    p, q = y.float(), 1 - y.float()
    auc = (less * p[:, :, None] * q[:, None]).sum((1, 2)) / (p.sum(1) * q.sum(1))
    o = torch.sort(x, dim=1, descending=True, stable=True).indices
    s = p.gather(1, o)
    prec = s.cumsum(1) / torch.arange(1, x.shape[1] + 1)
    k = max(1, x.shape[1] // 3)
    return auc.nan_to_num(0.5), (prec * s).sum(1) / p.sum(1).clamp(min=1), s[:, :k].sum(1) / k
@attack(X4, dims="N=1:1:2 T=1:6:12", kinds=FINITE[:4], feeds=lengths(1, 3, 4, 5, 12))
class A4594LogBuckets(nn.Module):
    """T5's relative buckets in logs, ALiBi's slopes of three heads, a window that acts over four steps only."""
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(8, 1)
    def forward(self, x):
        t = x.shape[1]
        d = torch.arange(t)[None] - torch.arange(t)[:, None]
        n = d.abs()
        far = 2 + (torch.log(n.float().clamp(min=1) / 2) / math.log(8 / 2) * 2).to(torch.long)
        b = (d > 0).long() * 4 + torch.where(n < 2, n, far.clamp(max=3))
        w = x @ x.mT + self.emb(b)[..., 0] - n * 2.0 ** -torch.arange(1.0, 4)[:, None, None, None]
        if t > 4:
            w = w.masked_fill(n > 4, float("-inf"))
        return w.softmax(-1) @ x
@attack(XT, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 20, text=XT))
class A4595HoltWinters(nn.Module):
    """A level, a trend and a season of four in a deque that turns, step by step."""
    def forward(self, x):
        level, trend, out = x[:, 0], torch.zeros_like(x[:, 0]), []
        season = deque([torch.zeros_like(level)] * 4, maxlen=4)
        for v in x.unbind(1):
            s = season[0]
            new = 0.5 * (v - s) + 0.5 * (level + trend)
            trend = 0.2 * (new - level) + 0.8 * trend
            season.append(0.3 * (v - new) + 0.7 * s)
            level = new
            out.append(level + trend + s)
        return torch.stack(out, 1), level
@forward("x:float32[N,T,3,H,W]", dims="N=1:1:2 T=1:4:8 H=2:4:6 W=2:5:6", kinds=FEW)
def A4596SegmentsOfVideo(self, x):
    """TSN's segments by linspace, TSM's shift by an eighth (none), differences, a tubelet pool padded in time."""
    t = x.shape[1]
    i = torch.linspace(0, t - 1, 4).round().long()
    j = (torch.arange(4) * t / 4 + t / 8).long()
    y = x.clone()
    y[:, :-1, :1] = x[:, 1:, :1]
    y[:, 1:, 1:2] = x[:, :-1, 1:2]
    z = F.pad(x.transpose(1, 2), (0, 0, 0, 0, 0, t % 2), mode="replicate") if t > 1 else x.transpose(1, 2)
    return x[:, i], x[:, j], y, F.avg_pool3d(z, (2 if t > 1 else 1, 2, 2)), (x[:, 1:] - x[:, :-1]).abs().sum((1, 3, 4))
@attack("x:float32[N,3,8,W]", dims="N=1:1:2 W=4:20:40", kinds=FINITE[:4])
class A4597ReaderOfLines(nn.Module):
    """A line reader: strides of (2, 1), a bidirectional LSTM, the width kept in a ratio, a greedy read with blanks."""
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 4, 3, (2, 2), 1), nn.Conv2d(4, 4, 3, (2, 1), (1, 1))
        self.rnn, self.head = nn.LSTM(8, 4, bidirectional=True, batch_first=True), nn.Linear(8, 5)
    def forward(self, x):
        y = F.relu(self.c2(F.relu(self.c1(x)))).flatten(1, 2).mT
        p = self.head(self.rnn(y)[0]).log_softmax(-1)
        i = p.argmax(-1)
        keep = (i != 0) & (i != F.pad(i, (1, 0), value=-1)[:, :-1])
        conf = (p.amax(-1).exp() * keep).sum(1) / keep.sum(1).clamp(min=1)
        return p, keep, conf, round(x.shape[3] / x.shape[2], 1) * p[:, 0]
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 19, 20))
class A4598CrfOfTags(nn.Module):
    """Viterbi with back pointers read from the end, starts and ends, ties to the first."""
    def __init__(self):
        super().__init__()
        self.tr = nn.Parameter(torch.randn(4, 4).round())
    def forward(self, x):
        s, back = x[:, 0], []
        for i in range(1, x.shape[1]):
            v = s[:, :, None] + self.tr
            s, at = v.max(1)
            s = s + x[:, i]
            back.append(at)
        best = s.argmax(1)
        path = [best]
        for at in reversed(back):
            path.append(at.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], 1), s.amax(1)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 3, 16, 20))
class A4599ScaleOfTheContext(nn.Module):
    """Qwen's log-n scale over eight trained steps by a list that Python makes, attention sinks of two, a mask by a table of the length."""
    def __init__(self):
        super().__init__()
        self.logn = [math.log(i, 8) if i > 8 else 1.0 for i in range(1, 33)]
    def forward(self, x):
        t = x.shape[1]
        q = x * torch.tensor(self.logn[:t])[:, None]
        i = torch.arange(t)
        m = (i[:, None] - i < 6) & (i <= i[:, None]) | (i < 2) & (i <= i[:, None])
        return F.scaled_dot_product_attention(q, x, x, attn_mask=m), q * self.logn[t - 1]
@forward(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
def A4600WindowsOfTwoAxes(self, x):
    """A window by NumPy over both axes, of one where the axis is one, Python's divmod of sizes beside it."""
    h, w = x.shape[-2:]
    v = np.outer(np.hamming(h), np.bartlett(w))
    q, r = divmod(h * w, 7)
    return x * torch.from_numpy(v).float(), x * q + r, x / max(float(v.sum()), 1.0)
