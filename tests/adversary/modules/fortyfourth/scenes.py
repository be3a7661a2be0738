# ruff: noqa: E501 - attacks are written as users write them
"""Parts of networks for pictures, tracks, speech, tables and text at the corners of their sizes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "unit", "halves", "zeros", "tenths", "ones")
ROWS = "N=1:2:3 T=1:9:40"
XT, X4, IMAGE = "x:float32[N,T]", "x:float32[N,T,4]", "x:float32[N,3,H,W]"


def points(text: str, names: str, *sizes: tuple[int, ...], more: tuple = ()) -> tuple:
    """Points at sizes of dims that are named by a letter each."""
    return tuple(values_at(text, *more, **dict(zip(names, s, strict=True))) for s in sizes)


EDGES = points(X4, "NT", (1, 1), (3, 1), (1, 2), (2, 7), (2, 8), (1, 33), (3, 40))
PIXELS = points(IMAGE, "NHW", (1, 1, 1), (1, 1, 40), (2, 40, 1), (1, 31, 33), (1, 32, 32), (1, 15, 17), (2, 39, 40))


@attack(X4, "boxes:float32[N,T,4]=0:20", dims=ROWS, kinds=FEW, feeds=points(X4, "NT", (1, 1), (3, 40), (1, 12), more=("boxes:float32[N,T,4]=0:20",)))
class A4781NmsByRounds(nn.Module):
    """Suppression in eight rounds or as many as there are boxes: the best left, those over it off, classes kept apart by an offset of the largest corner."""
    def forward(self, x, boxes):
        s, c = x.max(-1)
        b = torch.cat([boxes[..., :2], boxes[..., :2] + boxes[..., 2:]], -1)
        b = b + (c * (b.amax((1, 2), keepdim=True)[..., 0] + 1))[..., None]
        area = (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
        picks = []
        for _ in range(min(8, x.shape[1])):
            i = s.argmax(1, keepdim=True)
            best = b.gather(1, i[..., None].expand(-1, -1, 4))
            wh = (torch.minimum(best[..., 2:], b[..., 2:]) - torch.maximum(best[..., :2], b[..., :2])).clamp(min=0)
            inter = wh.prod(-1)
            s = torch.where(inter > 0.5 * (area + area.gather(1, i) - inter), -torch.inf, s).scatter(1, i, -torch.inf)
            picks.append(i)
        return torch.cat(picks, 1), s
@forward("a:float32[N,T,4]=0:10", "b:float32[N,S,4]=0:10", dims="N=1:1:2 T=1:4:9 S=1:5:9", kinds=FEW, feeds=points("a:float32[N,T,4]=0:10", "NTS", (1, 1, 9), (2, 9, 1), (1, 9, 9), (1, 1, 1), more=("b:float32[N,S,4]=0:10",)))
def A4782TracksInTwoPasses(self, a, b):
    """ByteTrack: tracks meet sure boxes first and the others behind, greedy in as many rounds as the fewer are, centre distances as costs."""
    cost = torch.cdist(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    sure = b[..., 2:].prod(-1) > 25
    match = torch.full(a.shape[:2], -1)
    for part in (sure, ~sure):
        c = cost.masked_fill(~part[:, None], torch.inf).masked_fill((match >= 0)[..., None], torch.inf)
        for _ in range(min(a.shape[1], b.shape[1])):
            v, k = c.flatten(1).min(1)
            i, j = k // b.shape[1], k % b.shape[1]
            ok = (v < 4)[:, None]
            row = torch.arange(a.shape[1]) == i[:, None]
            match = torch.where(row & ok, j[:, None], match)
            c = c.masked_fill(row[..., None] | (torch.arange(b.shape[1]) == j[:, None])[:, None], torch.inf)
    return match, (match >= 0).sum(1)
@attack(X4, dims=ROWS, kinds=FEW, feeds=EDGES, refused="the path through the module depends on t")
class A4783GreedyWithEarlyExit(nn.Module):
    """Six steps of decoding with a break when all rows have ended, a length penalty, scores of what came after the end off."""
    def __init__(self):
        super().__init__()
        self.cell, self.emb, self.out = nn.GRUCell(4, 4), nn.Embedding(5, 4), nn.Linear(4, 5)
    def forward(self, x):
        h, tok = x.mean(1), x.new_zeros(x.shape[0], dtype=torch.long)
        done, score, ids = tok > 0, x.new_zeros(x.shape[0]), []
        for _ in range(6):
            h = self.cell(self.emb(tok), h)
            p, tok = self.out(h).log_softmax(-1).max(-1)
            score = score + p * ~done
            tok = torch.where(done, 0, tok)
            done = done | (tok == 4)
            ids.append(tok)
            if done.all():
                break
        n = (torch.stack(ids, 1) > 0).sum(1)
        return score / (5 + n).float() ** 0.6, n
@attack(X4, dims=ROWS, kinds=FEW, feeds=EDGES)
class A4784ChunkMaskByALoop(nn.Module):
    """WeNet's chunk mask: rows written in a Python loop by slices whose ends are minima, left chunks limited."""
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 12)
    def forward(self, x):
        t, size, left = x.shape[1], 4, 1
        mask = torch.zeros(t, t, dtype=torch.bool)
        for i in range(t):
            start = max((i // size - left) * size, 0)
            mask[i, start:min((i // size + 1) * size, t)] = True
        q, k, v = self.q(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), mask.sum(0)
@attack(IMAGE, dims="N=1:1:2 H=1:24:40 W=1:32:40", kinds=FEW, feeds=PIXELS)
class A4785GridAttention(nn.Module):
    """MaxViT: blocks of seven and a dilated grid of seven behind pads by the size, padded keys hidden, cut back."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(3, 9)
    def attend(self, t, m):
        q, k, v = self.qkv(t).chunk(3, -1)
        s = (q @ k.mT / math.sqrt(3)).masked_fill(~m[..., None, :], -1e4)
        return s.softmax(-1) @ v
    def forward(self, x):
        n, _, h, w = x.shape
        ph, pw = -h % 7, -w % 7
        y = F.pad(x, (0, pw, 0, ph)).permute(0, 2, 3, 1)
        m = F.pad(torch.ones(n, h, w, dtype=torch.bool), (0, pw, 0, ph))
        a, b = (h + ph) // 7, (w + pw) // 7
        t = y.view(n, a, 7, b, 7, 3).transpose(2, 3).reshape(n, a * b, 49, 3)
        g = y.view(n, 7, a, 7, b, 3).permute(0, 2, 4, 1, 3, 5).reshape(n, a * b, 49, 3)
        u = self.attend(t, m.view(n, a, 7, b, 7).transpose(2, 3).reshape(n, a * b, 49))
        v = self.attend(g, m.view(n, 7, a, 7, b).permute(0, 2, 4, 1, 3).reshape(n, a * b, 49))
        u = u.view(n, a, b, 7, 7, 3).transpose(2, 3).reshape(n, h + ph, w + pw, 3)[:, :h, :w]
        v = v.view(n, a, b, 7, 7, 3).permute(0, 3, 1, 4, 2, 5).reshape(n, h + ph, w + pw, 3)[:, :h, :w]
        return (u + v).permute(0, 3, 1, 2)
@forward(IMAGE, "y:float32[N,3,H,W]", dims="N=1:1:2 H=1:8:20 W=4:16:40", kinds=FEW, feeds=points(IMAGE, "NHW", (1, 1, 4), (1, 20, 7), (2, 3, 40), (1, 2, 39), more=("y:float32[N,3,H,W]",)))
def A4786DisparityByShifts(self, x, y):
    """A cost volume over as many shifts as a quarter of the width, a soft argmin, a left-right check by sampling whole places."""
    d = x.shape[-1] // 4
    cost = torch.stack([(x - F.pad(y, (i, 0))[..., :x.shape[-1]]).abs().mean(1) for i in range(d)], 1)
    p = (-cost).softmax(1)
    disp = (p * torch.arange(d)[:, None, None]).sum(1)
    src = (torch.arange(x.shape[-1]) - disp.round().long()).clamp(min=0)
    return disp, cost.argmin(1), (disp.gather(-1, src) - disp).abs() < 0.5
@attack(IMAGE, dims="N=1:1:2 H=8:24:40 W=8:32:40", kinds=FEW, feeds=points(IMAGE, "NHW", (1, 8, 8), (2, 40, 8), (1, 13, 14), (1, 9, 38), (1, 39, 23)))
class A4787TilesThatOverlap(nn.Module):
    """Tiles of eight every six, the last one moved back to the border, added up and divided by counts."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)
    def forward(self, x):
        h, w = x.shape[2:]
        out, count = x.new_zeros(x.shape[0], 2, h, w), x.new_zeros(1, 1, h, w)
        for i in [*range(0, h - 8, 6), h - 8]:
            for j in [*range(0, w - 8, 6), w - 8]:
                out[..., i:i + 8, j:j + 8] += self.conv(x[..., i:i + 8, j:j + 8])
                count[..., i:i + 8, j:j + 8] += 1
        return out / count
@forward(IMAGE, dims="N=1:1:2 H=1:24:40 W=1:32:40", kinds=FEW, feeds=PIXELS)
def A4788KeypointsWithQuarter(self, x):
    """Heatmaps: the best place, a quarter towards the larger neighbour inside of the border, Taylor's refinement guarded, scores."""
    h, w = x.shape[2:]
    v, k = x.flatten(2).max(-1)
    r, c = k // w, k % w
    def read(dr, dc):
        return x.flatten(2).gather(-1, ((r + dr).clamp(0, h - 1) * w + (c + dc).clamp(0, w - 1))[..., None])[..., 0]
    inside = (r > 0) & (r < h - 1) & (c > 0) & (c < w - 1)
    dx, dy = read(0, 1) - read(0, -1), read(1, 0) - read(-1, 0)
    q = torch.stack([c + torch.where(inside, dx.sign() * 0.25, 0.0), r + torch.where(inside, dy.sign() * 0.25, 0.0)], -1)
    dxx = read(0, 1) - 2 * v + read(0, -1)
    t = torch.where(inside & (dxx.abs() > 1e-3), (-dx / 2 / dxx).clamp(-0.5, 0.5), 0.0)
    return q, t, q / torch.tensor([w, h]), v
@forward("x:float32[1,1,H,W]", dims="H=1:6:9 W=1:7:9", kinds=FEW, feeds=points("x:float32[1,1,H,W]", "HW", (1, 1), (1, 9), (9, 9), (2, 3)))
def A4789ConnectedParts(self, x):
    """Labels of connected pixels: the least place spread by pools in as many rounds as there are rows and columns, counted by scatter."""
    h, w = x.shape[2:]
    on = x > 0
    lab = torch.where(on, torch.arange(1, h * w + 1).view(1, 1, h, w).float(), 0.0)
    for _ in range(h + w):
        lab = F.max_pool2d(lab, 3, 1, 1) * on
    size = torch.zeros(h * w + 1).scatter_add(0, lab.flatten().long(), torch.ones(h * w))
    return lab, size[1:], (size[1:] > 0).sum()
@attack(XT, dims="N=1:1:3 T=100:800:2400", kinds=FEW[:3], feeds=points(XT, "NT", (1, 100), (1, 101), (3, 399), (1, 400), (1, 2399), (2, 2400), (1, 1601)))
class A4790WhisperFrontEnd(nn.Module):
    """Log mel: padded or cut to 1600, a periodic Hann window, the last frame dropped, floors by the largest of all less eight."""
    def __init__(self):
        super().__init__()
        self.register_buffer("mel", torch.rand(8, 101))
    def forward(self, x):
        x = F.pad(x, (0, max(0, 1600 - x.shape[1])))[:, :1600]
        s = torch.stft(x, 200, 80, window=torch.hann_window(200), return_complex=True)[..., :-1].abs() ** 2
        y = (self.mel @ s).clamp(min=1e-10).log10()
        return (torch.maximum(y, y.amax() - 8) + 4) / 4
@forward(XT, dims="N=1:1:3 T=16:80:200", kinds=FEW, feeds=points(XT, "NT", (1, 16), (1, 17), (3, 31), (2, 200), (1, 33)))
def A4791Yin(self, x):
    """YIN: a difference function over lags up to half the length, its cumulative mean, the first below a bound or else the least, a parabola."""
    n = x.shape[1] // 2
    d = torch.stack([(x[:, :n] - x[:, k:k + n]).square().sum(1) for k in range(n)], 1)
    c = d * torch.arange(n) / d.cumsum(1).clamp(min=1e-8)
    c = torch.cat([torch.ones_like(c[:, :1]), c[:, 1:]], 1)
    below = (c < 0.5) & (torch.arange(n) >= 2)
    lag = torch.where(below.any(1), below.int().argmax(1), c[:, 1:].argmin(1) + 1)
    return c, lag
@attack(X4, "lens:int64[N]=0:40", dims="N=1:2:3 T=1:9:40", kinds=FEW, feeds=tuple((lambda n, t, v: lambda: {"x": np.arange(n * t * 4, dtype=np.float32).reshape(n, t, 4) % 7 - 3, "lens": np.array(v)})(*a) for a in ((1, 1, [0]), (1, 40, [0]), (2, 9, [9, 10]), (3, 7, [0, 3, 40]))))
class A4792MasksByLengths(nn.Module):
    """Lengths that may be none or more than there is: masks both ways round, the last valid step, a reversal within, means, convolutions masked, lengths halved."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, 2, 1)
    def forward(self, x, lens):
        t = x.shape[1]
        m = torch.arange(t) < lens[:, None]
        y = self.conv((x * m[..., None]).mT).mT
        n = torch.div(lens - 1, 2, rounding_mode="floor") + 1
        k = torch.arange(y.shape[1]) < n[:, None]
        last = x.gather(1, (lens.clamp(1, t) - 1)[:, None, None].expand(-1, 1, 4))
        i = torch.where(m, lens[:, None] - 1 - torch.arange(t), torch.arange(t)).clamp(0, t - 1)
        return (y * k[..., None]).sum(1) / n.clamp(min=1)[:, None], last, x.gather(1, i[..., None].expand_as(x)), x.masked_fill(~m[..., None], -torch.inf).amax(1), F.pad(m, (1, 0)).int().diff(dim=1)
@attack("x:float32[N,4,H,W]", "y:float32[N,4,A,B]", dims="N=1:1:2 H=1:6:12 W=1:6:12 A=1:3:12 B=1:3:12", kinds=FEW, feeds=points("x:float32[N,4,H,W]", "NHWAB", (1, 1, 1, 12, 12), (1, 12, 12, 1, 1), (2, 12, 7, 5, 3), (1, 5, 5, 12, 1), (1, 7, 11, 3, 9), more=("y:float32[N,4,A,B]",)))
class A4793RelativePositionsResized(nn.Module):
    """SAM's decomposed positions of unlike queries and keys: a table resized to twice the larger less one, coordinates by quotients of both."""
    def __init__(self):
        super().__init__()
        self.rel = nn.Parameter(torch.randn(11, 4))
    def table(self, q, k):
        n = 2 * max(q, k) - 1
        r = F.interpolate(self.rel.T[None], size=n, mode="linear")[0].T
        a = torch.arange(q)[:, None] * max(k / q, 1.0)
        b = torch.arange(k)[None] * max(q / k, 1.0)
        return r[(a - b + (k - 1) * max(q / k, 1.0)).long()]
    def forward(self, x, y):
        return torch.einsum("nchw,hac->nhwa", x, self.table(x.shape[2], y.shape[2])), torch.einsum("nchw,wbc->nhwb", x, self.table(x.shape[3], y.shape[3]))
@attack(XT, dims="N=1:2:3 T=1:24:100", kinds=FEW, feeds=points(XT, "NT", (1, 1), (1, 23), (3, 24), (1, 25), (1, 99), (2, 100)))
class A4794SeriesTakenApart(nn.Module):
    """A trend by an even moving mean with ends held, a season of seven by means of each phase, patches with a replicated end, a reversible norm."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 3)
    def forward(self, x):
        n, t = x.shape
        mu, sd = x.mean(1, keepdim=True), (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
        z = (x - mu) / sd
        trend = F.avg_pool1d(F.pad(z[:, None], (6, 5), mode="replicate"), 12, 1)[:, 0]
        r = F.pad(z - trend, (0, -t % 7), value=math.nan).view(n, -1, 7)
        season = r.nanmean(1).nan_to_num(0.0)[:, torch.arange(t) % 7]
        p = F.pad(z, (0, 8 if t >= 4 else 8 - t + 4), mode="replicate").unfold(1, 8, 4)
        return trend, season, self.lin(p) * sd[..., None] + mu[..., None]
@forward("i:int64[N,T]=0:30000", dims=ROWS, feeds=points("i:int64[N,T]=0:30000", "NT", (1, 1), (3, 40), (1, 2), (2, 3)))
def A4795HashedNgrams(self, i):
    """Ids of two and three neighbours hashed modulo a prime with ends from a pad, first occurrences, run lengths, a count of each in the row."""
    p = F.pad(i, (2, 0), value=-1)
    two = (p[:, 1:-1] * 1000003 + i) % 8191
    three = ((p[:, :-2] * 1000003 ^ p[:, 1:-1]) * 1000003 ^ i) % 8191
    same = i[:, :, None] == i[:, None]
    first = (same & torch.ones_like(same).tril(-1)).sum(-1) == 0
    run = torch.arange(i.shape[1]) - torch.where(F.pad(i[:, 1:] != i[:, :-1], (1, 0), value=True), torch.arange(i.shape[1]), 0).cummax(1).values
    return two, three, first, run, same.sum(-1)
@attack(X4, "past:float32[N,S,4]", dims="N=1:1:2 T=1:3:8 S=0:6:12", kinds=FEW, feeds=points(X4, "NTS", (1, 1, 0), (2, 8, 0), (1, 8, 12), (1, 1, 7), (1, 1, 1), more=("past:float32[N,S,4]",)))
class A4796SinksAndAWindow(nn.Module):
    """Two sinks and a window of five from a cache that may be empty; rotary places by the end, cut by negative slices."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
    def rotate(self, v, p):
        a = p[:, None] * torch.tensor([1.0, 0.1])
        u, w = v[..., :2], v[..., 2:]
        return torch.cat([u * a.cos() - w * a.sin(), u * a.sin() + w * a.cos()], -1)
    def forward(self, x, past):
        keys = torch.cat([past, x], 1)
        total = keys.shape[1]
        if total > 7:
            keys = torch.cat([keys[:, :2], keys[:, -5:]], 1)
        q, k, v = (self.qkv(x)[..., :4], *self.qkv(keys)[..., 4:].chunk(2, -1))
        n = keys.shape[1]
        s = self.rotate(q, torch.arange(n - x.shape[1], n).clamp(min=0)) @ self.rotate(k, torch.arange(n)).mT
        mask = torch.arange(n) <= torch.arange(n - x.shape[1], n)[:, None]
        return s.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0) @ v, keys
