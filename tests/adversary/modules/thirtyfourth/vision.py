# ruff: noqa: E501, RUF005, RUF046 - attacks are written as users write them
"""Attention, windows, masks, positions, norms, pooling and resizing as vision and speech code has them, at rare sizes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

SHORT = "N=1:2:4 T=2:9:24"
FROM_ONE = "N=1:2:4 T=1:9:24"
ROOM = "N=1:2:3 H=2:9:21 W=2:12:20"
WIDE = "N=1:1:3 H=1:8:25 W=1:11:22"


@attack("x:float32[N,T,8]", "keep:bool[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(2, 5, 8, keep=np.zeros((2, 5), bool)), normal(1, 1, 8, keep=np.zeros((1, 1), bool))))
class A3425HiddenRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
    def forward(self, x, keep):
        none = ~keep.any(1, keepdim=True)
        y, w = self.attention(x, x, x, key_padding_mask=~(keep | none))
        return torch.where(none[..., None], x, y), w.mean(1)
@forward("x:float32[N,T,8]", "keep:bool[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(2, 5, 8, keep=np.zeros((2, 5), bool)), normal(1, 1, 8, keep=np.zeros((1, 1), bool))))
def A3426SdpaBoolAndBias(self, x, keep):
    q = x.unflatten(-1, (2, 4)).transpose(1, 2)
    t = x.shape[1]
    m = keep[:, None, None] & torch.ones(t, t, dtype=torch.bool).tril()
    a = F.scaled_dot_product_attention(q, q, q, attn_mask=m)
    bias = torch.zeros(t, t).masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(2), torch.finfo(torch.float32).min)
    b = F.scaled_dot_product_attention(q, q, q, attn_mask=bias + (1.0 - keep[:, None, None].float()) * -10000.0, scale=0.3)
    return a.nan_to_num(0.0), b
@attack("x:float32[N,T,8]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 8), normal(2, 3, 8), normal(1, 24, 8)))
class A3427RelativeShift(nn.Module):
    """Transformer-XL's shift by a pad and a view."""
    def __init__(self):
        super().__init__()
        self.q, self.r = nn.Linear(8, 8), nn.Linear(8, 8)
    def forward(self, x):
        n, t, c = x.shape
        pos = torch.arange(t - 1, -t, -1.0)[:, None] / 10000 ** (torch.arange(0, c, 2) / c)
        r = self.r(torch.cat([pos.sin(), pos.cos()], -1))
        bd = self.q(x) @ r.T
        bd = F.pad(bd, (1, 0)).view(n, 2 * t, t)[:, 1:].view(n, t, 2 * t - 1)[..., :t]
        return ((self.q(x) @ x.mT + bd) / math.sqrt(c)).softmax(-1) @ x
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 4), normal(2, 6, 4), normal(1, 24, 4)))
class A3428ChunkedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
    def forward(self, x):
        n, t, c = x.shape
        w = 5
        pad = (w - t % w) % w
        q, k, v = F.pad(self.qkv(x), (0, 0, 0, pad)).chunk(3, -1)
        chunks = (t + pad) // w
        q = q.reshape(n, chunks, w, c)
        k = F.pad(k, (0, 0, w, 0)).unfold(1, 2 * w, w).mT
        v = F.pad(v, (0, 0, w, 0)).unfold(1, 2 * w, w).mT
        qi = torch.arange(t + pad).view(chunks, w, 1)
        ki = F.pad(torch.arange(t + pad), (w, 0), value=-1).unfold(0, 2 * w, w)[:, None]
        ok = (ki >= 0) & (ki <= qi) & (qi - ki < w) & (ki < t)
        s = (q @ k.mT / c**0.5).masked_fill(~ok, -torch.inf)
        return (s.softmax(-1).nan_to_num(0.0) @ v).reshape(n, -1, c)[:, :t]
@attack("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(1, 4, 25, 1), normal(2, 4, 7, 9)))
class A3429ShiftedMask(nn.Module):
    """Swin's mask of regions, made from the padded sizes in forward."""
    def forward(self, x):
        n, c, h, w = x.shape
        s, sh = 4, 2
        x = F.pad(x, (0, (s - w % s) % s, 0, (s - h % s) % s))
        hp, wp = x.shape[-2:]
        ids = torch.zeros(hp, wp)
        for i, a in enumerate((slice(0, -s), slice(-s, -sh), slice(-sh, None))):
            for j, b in enumerate((slice(0, -s), slice(-s, -sh), slice(-sh, None))):
                ids[a, b] = i * 3 + j
        win = ids.view(hp // s, s, wp // s, s).transpose(1, 2).reshape(-1, s * s)
        m = (win[:, None] != win[:, :, None]).float() * -100.0
        y = torch.roll(x, (-sh, -sh), (2, 3)).view(n, c, hp // s, s, wp // s, s).permute(0, 2, 4, 3, 5, 1).reshape(n, -1, s * s, c)
        y = (y @ y.mT * 0.5 + m).softmax(-1) @ y
        y = y.view(n, hp // s, wp // s, s, s, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, hp, wp)
        return torch.roll(y, (sh, sh), (2, 3))[..., :h, :w]
@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=1:5:9 W=1:7:9", kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(1, 4, 9, 1), normal(2, 4, 3, 8)))
class A3430DecomposedRelative(nn.Module):
    """SAM's rows and columns of relative positions, interpolated where the size is another one."""
    def __init__(self):
        super().__init__()
        self.rel_h, self.rel_w = nn.Parameter(torch.randn(9, 4)), nn.Parameter(torch.randn(9, 4))
    def get(self, n, table):
        size = 2 * n - 1
        if table.shape[0] != size:
            table = F.interpolate(table.T[None], size=size, mode="linear")[0].T
        i = torch.arange(n)
        return table[i[:, None] - i + n - 1]
    def forward(self, x):
        n, c, h, w = x.shape
        q = x.permute(0, 2, 3, 1)
        rh = torch.einsum("bhwc,hkc->bhwk", q, self.get(h, self.rel_h))
        rw = torch.einsum("bhwc,wkc->bhwk", q, self.get(w, self.rel_w))
        s = q.flatten(1, 2) @ q.flatten(1, 2).mT * 0.5
        s = (s.view(n, h, w, h, w) + rh[..., None] + rw[..., None, :]).view(n, h * w, h * w)
        return (s.softmax(-1) @ q.flatten(1, 2)).view(n, h, w, c)
@forward("x:float32[N,2,H,W]", "mask:bool[N,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 2, 1, 1, mask=np.ones((1, 1, 1), bool)), normal(2, 2, 3, 5, mask=np.ones((2, 3, 5), bool))))
def A3431DetrPositions(self, x, mask):
    free = ~mask
    y, z = free.cumsum(1, dtype=torch.float32), free.cumsum(2, dtype=torch.float32)
    y = (y - 0.5) / (y[:, -1:] + 1e-6) * (2 * math.pi)
    z = (z - 0.5) / (z[:, :, -1:] + 1e-6) * (2 * math.pi)
    t = 20 ** (2 * (torch.arange(4) // 2) / 4)
    p = torch.cat([y[..., None] / t, z[..., None] / t], -1)
    p = torch.stack([p[..., 0::2].sin(), p[..., 1::2].cos()], -1).flatten(3)
    ratio = torch.stack([free[:, 0].sum(1) / x.shape[3], free[:, :, 0].sum(1) / x.shape[2]], -1)
    return p, ratio, x.masked_fill(mask[:, None], 0).sum((2, 3))
@forward("x:float32[N,T,4]", "lengths:int64[N]=0:24", dims=FROM_ONE, kinds=FINITE, feeds=(normal(2, 5, 4, lengths=np.array([0, 0])), normal(2, 24, 4, lengths=np.array([24, 1])), normal(1, 1, 4, lengths=np.array([0]))))
def A3432StatisticsPooling(self, x, lengths):
    m = (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
    n = m.sum(1)
    mean = torch.where(m, x, 0.0).sum(1) / n.clamp(min=1)
    var = (torch.where(m, x - mean[:, None], 0.0) ** 2).sum(1) / n.clamp(min=1)
    top = x.masked_fill(~m, -torch.inf).amax(1)
    low = x.masked_fill(~m, torch.inf).argmin(1)
    return mean, var.clamp_min(1e-9).sqrt(), torch.where(top.isinf(), 0.0, top), low, x.masked_fill(~m, -1e9).softmax(1)
@attack("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(1, 4, 25, 2), normal(2, 4, 7, 5)))
class A3433AdaptivePools(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Conv2d(4, 4, 1)
    def forward(self, x):
        h, w = x.shape[-2:]
        a = F.adaptive_avg_pool2d(x, (3, 2))
        b = F.adaptive_max_pool2d(x, (2, 5))
        y = [F.interpolate(self.line(F.adaptive_avg_pool2d(x, k)), (h, w), mode="bilinear", align_corners=False) for k in (1, 2, 3, 6)]
        return a, b, sum(y), F.adaptive_avg_pool2d(x, (None, 1)), F.adaptive_max_pool2d(x, (h // 2 + 1, 1))
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=5:17:40 W=5:23:40", kinds=("normal", "halves", "bytes"), feeds=(normal(1, 3, 5, 5), normal(1, 3, 39, 6), normal(2, 3, 8, 33)))
class A3434FeaturePyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(3 if i == 0 else 4, 4, 3, 2, 1) for i in range(3))
        self.up = nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in range(3))
    def forward(self, x):
        levels = []
        for layer in self.down:
            x = layer(x).relu()
            levels.append(x)
        out = [self.up[2](levels[2])]
        for i in (1, 0):
            side = self.up[i](levels[i])
            out.insert(0, side + F.interpolate(out[0], size=side.shape[-2:], mode="nearest"))
        return out + [F.max_pool2d(out[-1], 1, 2, 0)]
@attack("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(1, 4, 25, 22), normal(2, 4, 3, 4)))
class A3435UNetCrop(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
    def forward(self, x):
        y = F.max_pool2d(x, 2, ceil_mode=True)
        y = self.up(y)
        dh, dw = x.shape[2] - y.shape[2], x.shape[3] - y.shape[3]
        y = F.pad(y, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2])
        return torch.cat([x, y], 1)
@forward("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(halves(1, 4, 1, 1), halves(1, 4, 25, 22), halves(2, 4, 1, 5)))
def A3436HeatmapNms(self, x):
    n, c, h, w = x.shape
    peak = F.max_pool2d(x, 3, 1, 1)
    y = x * (peak == x)
    k = min(5, h * w)
    s, i = y.view(n, c, -1).topk(k)
    s2, j = s.view(n, -1).topk(k)
    place = i.view(n, -1).gather(1, j)
    return s2, torch.where(s2 > 0, place // w, -1), torch.where(s2 > 0, place % w, -1), torch.where(s2 > 0, torch.div(j, k, rounding_mode="trunc"), -1)
@attack("x:float32[N,4,H,W]", dims=ROOM, kinds=FINITE, feeds=(normal(1, 4, 2, 2), normal(2, 4, 21, 3), normal(1, 4, 4, 20)))
class A3437InstanceAndSwitch(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w = nn.InstanceNorm2d(4, affine=True), nn.Parameter(torch.rand(3))
    def forward(self, x):
        mi, vi = x.mean((2, 3), keepdim=True), x.var((2, 3), keepdim=True)
        ml, t = mi.mean(1, keepdim=True), vi + mi**2
        vl = t.mean(1, keepdim=True) - ml**2
        w = self.w.softmax(0)
        y = (x - w[0] * mi - w[1] * ml) / (w[0] * vi + w[1] * vl + w[2] + 1e-5).sqrt()
        return self.norm(x), y, F.layer_norm(x, x.shape[1:]), F.rms_norm(x, x.shape[-1:])
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 4), normal(2, 24, 4), normal(1, 2, 4)))
class A3438CausalConformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.point, self.depth, self.norm = nn.Conv1d(4, 8, 1), nn.Conv1d(4, 4, 7, groups=4), nn.BatchNorm1d(4)
    def forward(self, x):
        y = F.glu(self.point(x.mT), 1)
        y = self.norm(self.depth(F.pad(y, (6, 0))))
        y = F.silu(y).mT
        y = y - y.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
        return F.avg_pool1d(y.mT, 2, 2, ceil_mode=True, count_include_pad=False).mT
@forward("x:float32[N,T,4]", "memory:float32[N,S,4]", dims="N=1:1:3 T=1:5:12 S=1:7:30", kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "memory": np.ones((1, 1, 4), np.float32)},))
def A3440Monotonic(self, x, memory):
    t, s = x.shape[1], memory.shape[1]
    prior = -((torch.arange(t)[:, None] / t - torch.arange(s) / s) ** 2) / (2 * 0.2**2)
    a = (x @ memory.mT + prior).softmax(-1)
    centre = (torch.arange(t) * s) // t
    near = (torch.arange(s) - centre[:, None]).abs() <= max(1, s // 10)
    b = (x @ memory.mT).masked_fill(~near, -torch.inf).softmax(-1)
    return a @ memory, b @ memory, (b > 1 / s).sum(-1)
@attack("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(1, 4, 25, 22), normal(2, 4, 2, 5)))
class A3441CoordinateAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.a, self.b = nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1), nn.Conv2d(2, 4, 1)
    def forward(self, x):
        h, w = x.shape[-2:]
        rows, columns = x.mean(3, keepdim=True), x.mean(2, keepdim=True).mT
        y = F.hardswish(self.mix(torch.cat([rows, columns], 2)))
        rows, columns = y.split([h, w], 2)
        k = int(abs((math.log2(h + 1) + 1) / 2)) // 2 * 2 + 1
        z = F.avg_pool1d(x.mean((2, 3))[:, None], k, 1, k // 2)[:, 0]
        return x * self.a(rows).sigmoid() * self.b(columns.mT).sigmoid() + z[..., None, None]
@attack("x:float32[N,2,H,W]", dims="N=1:1:2 H=2:6:13 W=2:9:13", kinds=FINITE, feeds=(normal(1, 2, 2, 2), normal(1, 2, 13, 5)))
class A3442DeformableSampling(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Conv2d(2, 4, 3, padding=1)
    def forward(self, x):
        n, c, h, w = x.shape
        o = self.offset(x).view(n, 2, 2, h, w).permute(0, 1, 3, 4, 2)
        ref = torch.stack(torch.meshgrid((torch.arange(h) + 0.5) / h, (torch.arange(w) + 0.5) / w, indexing="ij"), -1).flip(-1)
        grid = (ref + o / torch.tensor([w, h])) * 2 - 1
        y = F.grid_sample(x.repeat_interleave(2, 0), grid.flatten(0, 1), mode="bilinear", padding_mode="zeros", align_corners=False)
        return y.view(n, 2, c, h, w).softmax(1).sum(2), F.grid_sample(x, grid[:, 0], mode="bicubic", padding_mode="border", align_corners=True)
@attack("x:float32[N,T,4]", "y:float32[N,S,4]", "keep:bool[N,S]", dims="N=1:1:3 T=1:5:12 S=1:7:13", kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "y": np.ones((1, 1, 4), np.float32), "keep": np.zeros((1, 1), bool)},))
class A3444BidirectionalFusion(nn.Module):
    def forward(self, x, y, keep):
        s = x @ y.mT
        s = s - s.amax((1, 2), keepdim=True)
        s = s.clamp(-50000, 50000)
        back = s.mT.masked_fill(~keep[..., None], float("-inf"))
        a = s.masked_fill(~keep[:, None], float("-inf")).softmax(-1)
        return a.nan_to_num(0.0) @ y, back.softmax(1).nan_to_num(0.0) @ x, torch.where(keep.any(1), s.amax((1, 2)), 1.0)
@attack("x:float32[N,T,4]", "lengths:int64[N]=1:24", dims="N=1:2:4 T=2:9:24", kinds=FINITE, feeds=(normal(2, 9, 4, lengths=np.array([1, 9])), normal(1, 2, 4, lengths=np.array([24]))))
class A3445EncoderWithLengths(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    def forward(self, x, lengths):
        pad = torch.arange(x.shape[1]) >= lengths[:, None]
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        y = self.encoder(x, mask=causal, src_key_padding_mask=pad.float().masked_fill(pad, -torch.inf), is_causal=False)
        return y[torch.arange(x.shape[0]), lengths.clamp(max=x.shape[1]) - 1], y.masked_fill(pad[..., None], 0)
@forward("x:float32[N,T]=-1:1", dims="N=1:1:2 T=1:90:500", kinds=FINITE, feeds=(normal(1, 1), normal(1, 401), normal(2, 79), normal(1, 80)))
def A3446FramesOfAnySize(self, x):
    n = x.shape[1]
    count = max(1, 1 + math.ceil((n - 80) / 30))
    need = (count - 1) * 30 + 80
    y = F.pad(x, (0, max(0, need - n))).unfold(1, 80, 30)
    zero = ((y[..., 1:] * y[..., :-1]) < 0).float().mean(-1)
    rms = y.square().mean(-1).sqrt()
    db = 20 * torch.log10(rms.clamp(min=1e-5))
    return zero, torch.maximum(db, db.amax(1, keepdim=True) - 80), (db > db.median(1, keepdim=True)[0]).sum(1)
@attack("x:float32[N,4,H,W]", dims=WIDE, kinds=FINITE, feeds=(normal(1, 4, 1, 1), normal(1, 4, 25, 22), normal(2, 4, 3, 1)))
class A3447AxialAndGrid(nn.Module):
    """MaxViT's grid attention after a pad, and positions of a learnt table by rows and columns."""
    def __init__(self):
        super().__init__()
        self.rows, self.columns = nn.Embedding(25, 2), nn.Embedding(22, 2)
    def forward(self, x):
        n, c, h, w = x.shape
        p = torch.cat([self.rows(torch.arange(h))[:, None].expand(h, w, 2), self.columns.weight[:w].expand(h, w, 2)], -1)
        y = x + p.permute(2, 0, 1)
        y = F.pad(y, (0, -w % 3, 0, -h % 3))
        gh, gw = y.shape[2] // 3, y.shape[3] // 3
        y = y.view(n, c, 3, gh, 3, gw).permute(0, 3, 5, 2, 4, 1).reshape(n * gh * gw, 9, c)
        y = F.scaled_dot_product_attention(y, y, y)
        y = y.view(n, gh, gw, 3, 3, c).permute(0, 5, 3, 1, 4, 2).reshape(n, c, 3 * gh, 3 * gw)[..., :h, :w]
        return y, F.scaled_dot_product_attention(x.mT, x.mT, x.mT, is_causal=True).mT
@forward("x:float32[N,C,T]", dims="N=1:1:3 C=1:4:8 T=1:9:24", kinds=FINITE, feeds=(normal(1, 1, 1), normal(2, 8, 1), normal(1, 1, 24)))
def A3448ChannelsMove(self, x):
    n, c, t = x.shape
    scale = torch.sqrt(torch.tensor(1.0 / (c * t)))
    g = F.layer_norm(x, (t,)) * scale
    k = max(1, min(3, t))
    w = torch.hamming_window(k, periodic=False)
    y = F.conv1d(x.reshape(1, n * c, t), (w / w.sum()).expand(n * c, 1, k), padding=k // 2, groups=n * c).view(n, c, -1)
    return g, y, F.avg_pool1d(x, 3, 1, 1, count_include_pad=False), F.interpolate(x, size=c + t, mode="linear", align_corners=True), (x @ x.mT) / t
@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=7:20:64 W=7:28:64", kinds=("normal", "bytes", "halves"), feeds=(normal(1, 3, 7, 7), normal(1, 3, 64, 9), normal(1, 3, 33, 47)))
class A3449ShortSideResize(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406])[:, None, None])
    def forward(self, x):
        h, w = x.shape[-2:]
        short, long = (w, h) if w <= h else (h, w)
        a, b = 24, int(24 * long / short)
        nw, nh = (a, b) if w <= h else (b, a)
        y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
        top, left = int(round((nh - 20) / 2.0)), int(round((nw - 20) / 2.0))
        return (y[..., top : top + 20, left : left + 20] - self.mean) / 0.226
