"""Modules that behave otherwise at few sizes: remainders, windows, single steps, coinciding sizes, tables and grids by a size."""
# ruff: noqa: E501, RUF046, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,T,4]=-2:2", "w:float32[T]=-2:2", dims="N=1:2:5 T=1:3:5", kinds=FINITE, refused="the path through the module depends on the size")
def A7468CoincidingSizes(self, x, w):
    """A weight of T that is broadcast over channels or over time according to which size coincides (4 == T), a branch where N == T, a square transposed."""
    n, t, c = x.shape
    y = x * w if w.shape[0] == c else x * w[:, None]
    if n == t:
        y = y + y.transpose(0, 1)
    elif n == t - 1:
        y = y - y.mean()
    return y, y.reshape(t, n, c) if n != t else y


@forward("x:float32[N,2,T]=-2:2", dims="N=1:1:3 T=1:7:17", kinds=FINITE)
def A7469OverlapAdd(self, x):
    """Padded to hops by the remainder, windows by unfold, overlap-add by fold, cut, normalised by counts; other code where T < the kernel."""
    n, c, t = x.shape
    k, h = 6, 4
    if t < k:
        return F.pad(x, (0, k - t)).cumsum(-1)[..., :t]
    rest = (h - (t - k) % h) % h
    y = F.pad(x, (k - h, rest + k - h))
    f = y.unfold(-1, k, h) * torch.hann_window(k)
    m = f.shape[2]
    f = f.permute(0, 1, 3, 2).reshape(n, c * k, m)
    ln = (m - 1) * h + k
    o = F.fold(f, (1, ln), (1, k), stride=(1, h)).squeeze(2)
    d = F.fold(torch.hann_window(k)[None, :, None].expand(1, k, m), (1, ln), (1, k), stride=(1, h)).squeeze(2)
    return (o / (d + 1e-3))[..., k - h : k - h + t]


@attack("x:float32[N,L,4]=-2:2", dims="N=1:1:2 L=2:5:26", kinds=FINITE)
class A7470VitSqrtGrid(nn.Module):
    """A ViT's positions interpolated to int(sqrt(L - 1)) squared, used only where that is the length; a fallback by linear interpolation else, class token apart."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.pe = nn.Parameter(torch.randn(1, 10, 4))

    def forward(self, x):
        l = x.shape[1] - 1
        g = int(math.sqrt(l))
        cls, p = self.pe[:, :1], self.pe[:, 1:]
        if l == 9:
            return x + self.pe
        if g * g == l:
            p = F.interpolate(p.reshape(1, 3, 3, 4).permute(0, 3, 1, 2), size=(g, g), mode="bicubic", align_corners=False)
            p = p.permute(0, 2, 3, 1).view(1, -1, 4)
        else:
            p = F.interpolate(p.transpose(1, 2), size=l, mode="linear", align_corners=False).transpose(1, 2)
        return x + torch.cat([cls, p], 1)


@forward("x:float32[N,T,3]=-2:2", dims="N=1:2:3 T=1:4:6", kinds=FINITE, refused="the path through the module depends on the size")
def A7471SqueezedSteps(self, x):
    """T == 1 squeezed by squeeze(1) with an addition that then broadcasts otherwise, std unbiased of one step, diffs of one step that are empty, first and last the same."""
    d = x.diff(dim=1)
    v = x.std(1, unbiased=x.shape[1] > 1)
    y = x.mean(1, keepdim=True).expand_as(x)
    z = x.squeeze(1)
    if z.dim() == 2:
        z = (z * 3).unsqueeze(1)
    return torch.cat([x[:, :1], d], 1), v, y - z, d.abs().sum(1) / max(1, x.shape[1] - 1)


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=3:8:19 W=3:9:17", kinds=FINITE)
class A7472PyramidBySize(nn.Module):
    """Levels by log2 of the smaller side, a U-Net padded at odd sizes by differences, center crops of the skips, a reduced-kernel pool where the map is smaller."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.c = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[-2:]
        levels = max(1, min(3, int(math.log2(min(h, w)))))
        skips, y = [], x
        for _ in range(levels - 1):
            skips.append(y)
            y = F.max_pool2d(F.relu(self.c(y)), 2, ceil_mode=True)
        for s in reversed(skips):
            y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True)
            dh, dw = s.size(2) - y.size(2), s.size(3) - y.size(3)
            y = F.pad(y, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2]) + s
        k = (min(h, 7), min(w, 7))
        p = F.avg_pool2d(y, k, 1)
        t, l = (h - 3) // 2, int(round((w - 3) / 2.0))
        return y, p, x[:, :, t : t + 3, l : l + 3]


@attack("x:float32[N,T,4]=-2:2", dims="N=1:1:2 T=1:9:14", kinds=FINITE)
class A7473BandedChunks(nn.Module):
    """Longformer-like: chunks of 4 by padding, each with its neighbours by concatenated shifts, masked at the ends, a global first token; split by a list of sizes from T."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        n, t, d = x.shape
        p = -t % 4
        y = F.pad(x, (0, 0, 0, p))
        c = (t + p) // 4
        q, k = (f(y).view(n, c, 4, d) for f in (self.q, self.k))
        z = k.new_zeros(n, 1, 4, d)
        kk = torch.cat([torch.cat([z, k[:, :-1]], 1), k, torch.cat([k[:, 1:], z], 1)], 2)
        i = torch.arange(c)[:, None, None] * 4 + torch.arange(4)[:, None]
        j = torch.arange(c)[:, None, None] * 4 + torch.arange(-4, 8)
        ok = (j >= 0) & (j < t) & ((i - j).abs() <= 3)
        s = (q @ kk.transpose(-1, -2)).masked_fill(~ok, -1e4).softmax(-1)
        o = (s @ kk).reshape(n, -1, d)[:, :t]
        a, b, e = x.split([t // 3, t - t // 3 * 2, t // 3], dim=1)
        return o, b.sum(1), (e + a).flatten(1).sum(1), x.tensor_split(3, dim=1)[1].sum(1)


@forward("x:float32[N,C,H,W]=-2:2", dims="N=1:1:2 C=1:3:4 H=1:4:7 W=1:5:6", kinds=FINITE, refused="the path through the module depends on the size")
def A7474GreyOrColour(self, x):
    """A channel repeated where it is one, alpha dropped where there are four, transposed where H > W, reflected pads where larger than 1 and replicated else, flattened in both orders."""
    if x.size(1) == 1:
        x = x.repeat(1, 3, 1, 1)
    elif x.size(1) == 4:
        x = x[:, :3] * x[:, 3:]
    elif x.size(1) == 2:
        x = torch.cat([x, x.mean(1, True)], 1)
    if x.size(2) > x.size(3):
        x = x.transpose(2, 3)
    mode = "reflect" if min(x.shape[2:]) > 1 else "replicate"
    y = F.pad(x, (1, 1, 1, 1), mode=mode)
    y = F.avg_pool2d(y, 3, 2, ceil_mode=True)
    return y, x.flatten(2).permute(2, 0, 1).flatten(1), x.permute(0, 3, 2, 1).flatten(1).argmax(1)


@attack("x:float32[N,T,6]=-2:2", "p:float32[P,6]=-2:2", dims="N=1:1:2 T=2:6:12 P=1:3:6", kinds=FINITE, refused="the path through the module depends on the size")
class A7475PrefixMerge(nn.Module):
    """Tokens merged (ToMe) with r = min(3, T // 2) by bipartite matching and scatter_reduce, prompts before them cut to a limit, tables indexed by the size, a chunked feed-forward of remainders."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.tab = nn.Embedding(20, 6)
        self.f = nn.Linear(6, 6)

    def forward(self, x, p):
        n, t, c = x.shape
        r = min(3, t // 2)
        m = F.normalize(x, dim=-1)
        a, b = m[:, ::2], m[:, 1::2]
        s = a @ b.transpose(-1, -2)
        nm, ni = s.max(-1)
        e = nm.argsort(dim=-1, descending=True, stable=True)[..., None]
        un, src = e[:, r:], e[:, :r]
        dst = ni[..., None].gather(1, src)
        sa, sb = x[:, ::2], x[:, 1::2]
        u = sa.gather(1, un.expand(-1, -1, c))
        o = sb.scatter_reduce(1, dst.expand(n, r, c), sa.gather(1, src.expand(n, r, c)), reduce="mean")
        y = torch.cat([u, o], 1)
        z = torch.cat([p.expand(n, -1, -1), y], 1)[:, :10]
        z = z + self.tab.weight[z.shape[1]]
        ch = [self.f(k) for k in z.split(4, 1)]
        return torch.cat(ch, 1), self.tab(torch.tensor(t) - 1), z[:, -(z.shape[1] // 2) :]


@forward("x:float32[N,T,3]=-2:2", "c:float32[S,3]=-2:2", dims="N=1:2:3 T=1:4:6 S=1:3:6", kinds=FINITE, refused="the path through the module depends on the size")
def A7476SetsOfSizes(self, x, c):
    """Padded or cut to the other's size, a square solved only where S == 3, interpolated where T differs from S, linspace and arange by both, meshgrid of both, k for topk by the smaller."""
    n, t, d = x.shape
    s = c.shape[0]
    y = x[:, :s] if t >= s else torch.cat([x, x[:, -1:].expand(-1, s - t, -1)], 1)
    z = F.interpolate(x.transpose(1, 2), size=s, mode="linear", align_corners=t < s).transpose(1, 2) if t != s else x * 2
    g = torch.stack(torch.meshgrid(torch.linspace(0, 1, t), torch.linspace(-1, 1, s), indexing="xy"), -1)
    k = min(t, s, 3)
    v, i = torch.topk((x @ c.t()).flatten(1), k)
    q = torch.arange(0, t * s, s) + torch.arange(t - 1, -1, -1)
    return y + c, z, g, v, i // s, q, c @ x[0, :1].t() if s == d else c.sum(1, True)
