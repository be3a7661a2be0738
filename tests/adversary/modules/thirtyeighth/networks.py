# ruff: noqa: E501 - attacks are written as users write them
"""Blocks that users write, each with one quiet trap: detectors, OCR, vocoders, trackers, depth, flow, point clouds, caches."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

ROWS = "N=1:2:3 T=1:9:24"
MAPS = "N=1:1:2 H=1:6:12 W=1:7:13"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
IMAGES = (normal(1, 3, 1, 1), halves(1, 3, 12, 13), halves(2, 3, 1, 13), halves(1, 3, 12, 1), halves(1, 3, 2, 3))


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:16:33 W=8:17:33", kinds=FINITE, feeds=(normal(1, 3, 8, 8), normal(1, 3, 32, 9), normal(1, 3, 31, 33)))
class A4000PadToStrideAndCrop(nn.Module):
    """Pads to a multiple of eight, an U of two levels, and cuts the padding off again; where there is none, `-0` is not used."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(7, 3, 1)
    def forward(self, x):
        ph, pw = -x.shape[2] % 8, -x.shape[3] % 8
        y = F.pad(x, (pw // 2, pw - pw // 2, ph // 2, ph - ph // 2), mode="replicate")
        z = F.interpolate(self.b(self.a(y).relu_()), scale_factor=4, mode="bilinear")
        z = self.c(torch.cat([y, z], 1))
        return z[:, :, ph // 2 : ph // 2 + x.shape[2], pw // 2 : z.shape[3] - (pw - pw // 2)]
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:16:33 W=8:17:33", kinds=FINITE, feeds=(normal(1, 3, 8, 8), normal(1, 3, 32, 16), normal(2, 3, 16, 9)))
class A4001CropByMinusPad(nn.Module):
    """The same with `[..., :-pad]`, which is empty where the pad is zero, and is passed over by an `if`."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect")
    def forward(self, x):
        pad = -x.shape[3] % 8
        y = self.conv(F.pad(x, (0, pad)))
        y = F.pixel_shuffle(F.pixel_unshuffle(y[:, :, : y.shape[2] // 8 * 8], 8), 8)
        if pad:
            y = y[..., :-pad]
        return y, y.mean((2, 3))
@attack("x:float32[N,3,H,W]", dims=MAPS, kinds=FINITE, feeds=IMAGES)
class A4002Bifpn(nn.Module):
    """Fast fusion with weights that are clamped; the pooled level has another size where it is odd."""
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Parameter(torch.tensor([1.0, -0.5])), nn.Parameter(torch.tensor([0.3, 0.2, 0.0]))
        self.conv = nn.Conv2d(3, 3, 3, padding=1, groups=3)
    def forward(self, x):
        low = F.max_pool2d(x, 3, 2, 1, ceil_mode=True)
        w1 = self.w1.relu()
        up = F.interpolate(low, size=x.shape[2:], mode="nearest-exact")
        top = self.conv(F.silu((w1[0] * x + w1[1] * up) / (w1.sum() + 1e-4)))
        w2 = F.relu(self.w2)
        down = F.max_pool2d(top, 3, 2, 1, ceil_mode=True)
        return top, (w2[0] * low + w2[1] * down + w2[2] * low) / (w2.sum() + 1e-4)
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A4003CornerPooling(self, x):
    """CornerNet's running maxima from the far side, and the corner peaks with the place of each maximum."""
    top = x.flip(2).cummax(2)
    left = x.flip(3).cummax(3)
    tl = top[0].flip(2) + left[0].flip(3)
    peak = (F.max_pool2d(tl, 3, 1, 1) == tl) & (tl > 0)
    return tl, x.shape[2] - 1 - top[1].flip(2), left[1], peak.sum((2, 3)), x.cummin(2)[1]
@attack("x:float32[N,3,H,W]", dims=MAPS, kinds=FINITE, feeds=IMAGES)
class A4004CoordAttention(nn.Module):
    """Pools of each axis joined, a norm by the batch's own statistics never, split again; H and W change places."""
    def __init__(self):
        super().__init__()
        self.c1, self.bn, self.ch, self.cw = nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 3, 1), nn.Conv2d(8, 3, 1)
    def forward(self, x):
        _n, _c, h, w = x.size()
        ph, pw = F.adaptive_avg_pool2d(x, (h, 1)), F.adaptive_avg_pool2d(x, (1, w)).permute(0, 1, 3, 2)
        y = F.hardswish(self.bn(self.c1(torch.cat([ph, pw], 2))))
        a, b = torch.split(y, [h, w], 2)
        return x * self.ch(a).sigmoid() * self.cw(b.permute(0, 1, 3, 2)).sigmoid()
@attack("x:float32[N,T,6]", "h:float32[2,N,5]", dims=ROWS, kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 6), np.float32), "h": np.zeros((2, 1, 5), np.float32)},))
class A4005CrnnWithCtcScores(nn.Module):
    """OCR: a bidirectional GRU that is given its state, log probabilities, greedy ids and a confidence of what is not blank."""
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(6, 5, bidirectional=True, batch_first=True), nn.Linear(10, 4)
    def forward(self, x, h):
        y, last = self.rnn(x, h)
        p = self.out(y).log_softmax(-1)
        v, ids = p.max(-1)
        solid = (ids != 0) & (ids != torch.roll(ids, 1, 1))
        return p, last, ids.masked_fill(~solid, 0), torch.where(solid.any(1), (v * solid).sum(1) / solid.sum(1).clamp(min=1), -math.inf)
@attack("x:float32[N,T,6]", dims="N=1:2:3 T=2:9:24", kinds=FINITE, feeds=(normal(1, 2, 6), normal(2, 24, 6), normal(1, 3, 6)))
class A4006AntiAliasedSnake(nn.Module):
    """BigVGAN: up by two, snake, down by two, with a Kaiser filter whose padding is cut at both ends."""
    def __init__(self):
        super().__init__()
        k = torch.kaiser_window(12, periodic=False, beta=4.66)
        t = torch.arange(-6, 6) + 0.5
        self.register_buffer("f", (k * torch.sinc(t / 2) / (k * torch.sinc(t / 2)).sum()).view(1, 1, -1))
        self.alpha = nn.Parameter(torch.linspace(-1, 2, 6)[:, None])
    def forward(self, x):
        y = x.mT
        c = y.shape[1]
        y = F.pad(y, (5, 5), mode="replicate")
        y = 2 * F.conv_transpose1d(y, self.f.expand(c, -1, -1), stride=2, groups=c)
        y = y[..., 15:-15]
        a = self.alpha.exp()
        y = y + (1.0 / (a + 1e-9)) * torch.sin(y * a).pow(2)
        return F.conv1d(F.pad(y, (5, 6), mode="replicate"), self.f.expand(c, -1, -1), stride=2, groups=c).mT
@forward("x:float32[N,T]", dims="N=1:1:2 T=40:64:200", kinds=FINITE, feeds=(normal(1, 40), normal(1, 41), normal(2, 199), lambda: {"x": np.zeros((1, 100), np.float32)}))
def A4007MultiResolutionStft(self, x):
    """Two resolutions: spectral convergence, log magnitudes, group delay; silence divides by its norm."""
    out = []
    for n, hop in ((16, 5), (32, 8)):
        s = torch.stft(x, n, hop, win_length=n - 4, window=torch.hann_window(n - 4), return_complex=True, pad_mode="reflect")
        mag = torch.clamp(s.abs(), min=1e-5)
        ref = torch.roll(mag, 1, -1)
        out += [torch.linalg.norm(ref - mag, dim=(1, 2)) / torch.linalg.norm(ref, dim=(1, 2)), mag.log().mean((1, 2)), mag.argmax(1)]
    return tuple(out)
@forward("tracks:float32[N,P,4]", "dets:float32[N,S,4]", dims="N=1:1:2 P=1:4:7 S=1:5:7", kinds=FEW)
def A4008TrackAssociation(self, tracks, dets):
    """GIoU of all pairs, a gate, one round of mutual best and what is left of either side."""
    def corners(b):
        return torch.cat([b[..., :2] - b[..., 2:].abs() / 2, b[..., :2] + b[..., 2:].abs() / 2], -1)
    a, b = corners(tracks)[:, :, None], corners(dets)[:, None]
    wh = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    inter = wh.prod(-1)
    union = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - inter
    giou = inter / (union + 1e-7) - (hull - union) / (hull + 1e-7)
    gate = giou > -0.5
    s = giou.masked_fill(~gate, -2.0)
    best = (s == s.amax(2, keepdim=True)) & (s == s.amax(1, keepdim=True)) & gate
    partner = torch.where(best.any(2), best.int().argmax(2), -1)
    free = torch.ones(dets.shape[:2], dtype=torch.bool).scatter(1, partner.clamp(min=0), False)
    return giou, partner, free, (~best.any(1)).sum(1)
@forward("x:float32[N,T,6]", dims="N=1:2:3 T=1:9:24", kinds=FINITE, feeds=(normal(1, 1, 6), halves(2, 24, 6)))
def A4009KalmanPredictUpdate(self, x):
    """A constant-velocity filter over the rows, the covariance of two by two written out; the first row starts it."""
    pos, vel = x[:, 0, :2], torch.zeros_like(x[:, 0, :2])
    p = torch.eye(2).expand(x.shape[0], 2, 2) * 10.0
    f = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    out = []
    for t in range(x.shape[1]):
        pos = pos + vel
        p = f @ p @ f.mT + torch.eye(2) * 0.1
        s = p[:, 0, 0] + 1.0
        k = p[:, :, 0] / s[:, None]
        r = x[:, t, :2] - pos
        pos = pos + k[:, :1] * r
        vel = vel + k[:, 1:] * r
        p = p - k[:, :, None] * p[:, :1, :]
        out.append(torch.cat([pos, vel, s[:, None]], -1))
    return torch.stack(out, 1), p
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FINITE, feeds=IMAGES)
def A4010Warp(self, x):
    """RAFT's sampler: flow in pixels, normalised by size minus one, which is zero for a row; a mask of what is inside."""
    _n, _c, h, w = x.shape
    flow = x[:, :2]
    ys, xs = torch.meshgrid(torch.arange(h, dtype=x.dtype), torch.arange(w, dtype=x.dtype), indexing="ij")
    gx, gy = xs + flow[:, 0], ys + flow[:, 1]
    nx, ny = 2.0 * gx / max(w - 1, 1) - 1.0, 2.0 * gy / max(h - 1, 1) - 1.0
    grid = torch.stack([nx, ny], -1)
    warped = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)
    inside = (nx.abs() <= 1) & (ny.abs() <= 1)
    return warped * inside[:, None], inside.float().mean((1, 2)), F.grid_sample(x, grid, mode="nearest", padding_mode="zeros", align_corners=True)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:5:8 W=1:6:9", kinds=FINITE, feeds=(*IMAGES[:1], halves(1, 3, 8, 9), normal(1, 3, 1, 9)))
def A4011LocalCorrelation(self, x):
    """PWC: a cost volume within three pixels, by padding and slices; normalised features, and the best displacement."""
    f = F.normalize(x, dim=1)
    g = f.roll((1, -2), (2, 3))
    h, w = x.shape[2:]
    p = F.pad(g, (2, 2, 2, 2))
    vol = torch.stack([(f * p[:, :, i : i + h, j : j + w]).sum(1) for i in range(5) for j in range(5)], 1)
    best = vol.argmax(1)
    return F.leaky_relu(vol, 0.1), best // 5 - 2, best % 5 - 2, vol.softmax(1).amax(1)
@forward("x:float32[N,T,3]", dims="N=1:2:3 T=4:12:30", kinds=("normal", "positive", "unit", "negative"), feeds=(normal(1, 4, 3), normal(2, 30, 3)))
def A4012BallQuery(self, x):
    """PointNet++: the first four points within a radius; where there are fewer the first one is repeated."""
    n, t, _ = x.shape
    centres = x[:, ::4]
    d = torch.sum((centres[:, :, None] - x[:, None]) ** 2, -1)
    idx = torch.arange(t).view(1, 1, t).repeat(n, centres.shape[1], 1)
    idx[d > 1.0] = t
    idx = idx.sort(dim=-1)[0][:, :, :4]
    first = idx[:, :, :1].expand(-1, -1, 4)
    mask = idx == t
    idx[mask] = first[mask]
    g = x[torch.arange(n)[:, None, None], idx]
    return idx, (g - centres[:, :, None]).amax(2), mask.sum(-1)
@forward("x:float32[N,T,3]", dims="N=1:1:2 T=1:12:30", kinds=FINITE, feeds=(normal(1, 1, 3), halves(2, 30, 3), lambda: {"x": np.array([[[1.0, 1, 1], [0.99999994, 0, 0], [-1, -1, -1], [-1.0000001, 0, 0]]], np.float32)}))
def A4013VoxelMeans(self, x):
    """A grid of four cells a side over [-1, 1]: counts, means, maxima; outside of it nothing, the upper edge belongs to none."""
    c = torch.floor((x + 1) / 0.5).long()
    ok = ((c >= 0) & (c < 4)).all(-1)
    at = torch.where(ok, c[..., 0] * 16 + c[..., 1] * 4 + c[..., 2], 64)
    n = x.shape[0]
    count = torch.zeros(n, 65, dtype=torch.int64).scatter_add_(1, at, torch.ones_like(at))
    total = torch.zeros(n, 65, 3).scatter_add_(1, at[..., None].expand(-1, -1, 3), x)
    top = torch.full((n, 65), -9.0).scatter_reduce(1, at, x[..., 2], "amax")
    return count[:, :64], (total / count.clamp(min=1)[..., None])[:, :64], top[:, :-1], ok.sum(1)
@attack("x:float32[N,T,8]", "past:float32[N,2,P,8]", dims="N=1:1:2 T=1:4:9 P=1:6:12", kinds=FINITE)
class A4014RotaryWithPast(nn.Module):
    """Keys are cached after the rotation; positions go on behind the past; heads in groups; sliding by eight."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.register_buffer("freq", 1.0 / 10000 ** (torch.arange(0, 4, 2).float() / 4), persistent=False)
    def rot(self, x, at):
        a = at[:, None].float() * self.freq
        cos, sin = a.cos().repeat(1, 2), a.sin().repeat(1, 2)
        x1, x2 = x.chunk(2, -1)
        return x * cos + torch.cat((-x2, x1), -1) * sin
    def forward(self, x, past):
        n, t, _ = x.shape
        p = past.shape[2]
        at = torch.arange(p, p + t)
        q = self.rot(self.q(x).view(n, t, 2, 4).transpose(1, 2), at)
        k = torch.cat([past[:, 0, None, :, :4], self.rot(self.k(x).view(n, t, 1, 4).transpose(1, 2), at)], 2)
        v = torch.cat([past[:, 1, None, :, 4:], self.v(x).view(n, t, 1, 4).transpose(1, 2)], 2)
        i, j = at[:, None], torch.arange(p + t)[None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=(j <= i) & (i - j < 8), enable_gqa=True)
        return y.transpose(1, 2).reshape(n, t, 8), torch.stack([k[:, 0], v[:, 0]], 1)[:, :, -8:]
@attack("x:float32[N,T,8]", "m:bool[N,T]", dims=ROWS, kinds=FINITE)
class A4015ConformerConv(nn.Module):
    """GLU, a depthwise convolution with even width and 'same' padding, a mask before and after, a norm over the kept."""
    def __init__(self):
        super().__init__()
        self.a, self.d, self.b = nn.Conv1d(8, 16, 1), nn.Conv1d(8, 8, 4, padding="same", groups=8, dilation=3), nn.Conv1d(8, 8, 1)
    def forward(self, x, m):
        y = F.glu(self.a(x.mT), 1).masked_fill(m[:, None], 0.0)
        y = self.d(y)
        keep = (~m)[:, None].to(y.dtype)
        n = keep.sum((1, 2), keepdim=True).clamp(min=1)
        mu = (y * keep).sum((1, 2), keepdim=True) / (n * 8)
        var = (((y - mu) * keep) ** 2).sum((1, 2), keepdim=True) / (n * 8)
        y = self.b(F.silu((y - mu) * (var + 1e-5).rsqrt()))
        return (y * keep).mT, keep.sum((1, 2))
@attack("x:float32[N,T,8]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 1, 8), normal(3, 24, 8), normal(1, 7, 8)))
class A4016RelativeShift(nn.Module):
    """Transformer-XL's shift by padding and a view, next to a table of distances that is cut at six."""
    def __init__(self):
        super().__init__()
        self.table, self.q = nn.Embedding(13, 8), nn.Linear(8, 8)
    def forward(self, x):
        n, t, _ = x.shape
        pos = torch.arange(t - 1, -t, -1)
        r = self.table(pos.clamp(-6, 6) + 6)
        s = self.q(x) @ r.T
        s = F.pad(s, (1, 0)).view(n, -1, t)[:, 1:].view(n, t, 2 * t - 1)[:, :, : s.shape[-1] // 2 + 1]
        return (s + x @ x.mT).softmax(-1) @ x
@attack("x:float32[N,T,8]", "ids:int64[N,S]=0:9", dims="N=1:2:3 T=1:9:12 S=1:5:12", kinds=FINITE)
class A4017DecoderStep(nn.Module):
    """A Whisper-like decoder: tied embedding, causal, cross attention, the last token's logits with suppressed ids."""
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(10, 8, padding_idx=0), nn.Parameter(torch.randn(12, 8))
        self.layer = nn.TransformerDecoderLayer(8, 2, 16, 0.0, activation="gelu", batch_first=True, norm_first=True)
        self.register_buffer("suppress", torch.tensor([1, 7, -1]))
    def forward(self, x, ids):
        y = self.emb(ids) * 8**0.5 + self.pos[: ids.shape[1]]
        mask = torch.full((ids.shape[1], ids.shape[1]), -math.inf).triu(1)
        y = self.layer(y, x, tgt_mask=mask)
        logits = y[:, -1] @ self.emb.weight.T
        logits[:, self.suppress] = -math.inf
        seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
        logits = torch.where(seen & (logits > 0), logits / 1.3, torch.where(seen, logits * 1.3, logits))
        return logits, logits.argmax(-1), logits.log_softmax(-1).amax(-1)
@forward("x:float32[N,T,5]", "y:int64[N,T]=-1:4", dims=ROWS, kinds=FINITE, feeds=(lambda: {"x": np.zeros((1, 3, 5), np.float32), "y": np.full((1, 3), -1)}, lambda: {"x": np.ones((2, 1, 5), np.float32), "y": np.array([[4], [-1]])}))
def A4018LossAsScore(self, x, y):
    """Cross entropy with smoothing, weights and an ignored id, focal and dice, per row and in all."""
    w = torch.tensor([1.0, 0.5, 2.0, 0.0, 1.0])
    ce = F.cross_entropy(x.mT, y, weight=w, ignore_index=-1, label_smoothing=0.1, reduction="none")
    keep = y != -1
    hot = F.one_hot(y.clamp(min=0), 5) * keep[..., None]
    p = x.softmax(-1)
    dice = 1 - (2 * (p * hot).sum(1) + 1) / (p.sum(1) + hot.sum(1) + 1)
    focal = F.binary_cross_entropy_with_logits(x, hot.float(), reduction="none") * (1 - torch.where(hot == 1, p, 1 - p)) ** 2
    return ce, dice.mean(-1), focal.sum(-1), F.nll_loss(x.log_softmax(-1).mT, y, ignore_index=-1, reduction="sum")
@attack("x:uint8[N,H,W,3]", dims="N=1:1:2 H=2:6:12 W=2:7:13", feeds=(lambda: {"x": np.full((1, 3, 3, 3), 255, np.uint8)}, lambda: {"x": np.arange(108, dtype=np.uint8).reshape(1, 6, 6, 3) * 2}))
class A4019CameraFrontEnd(nn.Module):
    """Bytes to a letterboxed float image: the shorter side by the longer, a grey border, BGR to RGB, a gamma."""
    def __init__(self, size=8):
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
    def forward(self, x):
        h, w = x.shape[1:3]
        y = x.permute(0, 3, 1, 2).flip(1).float().div_(255)
        bright = (x[..., 0] // 2 + x[..., 1] // 4 + x[..., 2] // 4)
        r = min(self.size / h, self.size / w)
        nh, nw = int(h * r), int(w * r)
        y = F.interpolate(y, size=(nh, nw), mode="bilinear", antialias=False)
        top, left = (self.size - nh) // 2, (self.size - nw) // 2
        y = F.pad(y, (left, self.size - nw - left, top, self.size - nh - top), value=114 / 255)
        return (y - self.mean) / 0.225, bright, bright + x[..., 0], y.pow(1 / 2.2).mul(255).round().to(torch.uint8)
@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=2:6:12 W=2:7:13", kinds=FINITE, feeds=(normal(1, 4, 2, 2), normal(1, 4, 12, 13), normal(1, 4, 3, 2)))
class A4020FourierUnit(nn.Module):
    """LaMa: a real transform in two dims, a convolution of the parts, and back to the input's own size, odd or even."""
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8)
    def forward(self, x):
        n, c, h, w = x.shape
        f = torch.fft.rfftn(x, dim=(-2, -1), norm="ortho")
        f = torch.stack((f.real, f.imag), -1).permute(0, 1, 4, 2, 3).reshape(n, 2 * c, h, w // 2 + 1)
        f = F.relu(self.bn(self.conv(f))).view(n, c, 2, h, w // 2 + 1).permute(0, 1, 3, 4, 2).contiguous()
        return torch.fft.irfftn(torch.view_as_complex(f), s=(h, w), dim=(-2, -1), norm="ortho")
