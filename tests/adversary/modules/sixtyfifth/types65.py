"""Types and sizes: float64, half and bfloat16 inputs, big integers, 0-d tensors, sizes of one and zero, sizes tied, ties, sorts, NaN and infinities."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float64[N,T]", "k:float64[]=0.5:2", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "halves", "tenths"), refused="FP64")
def A7860DoublesOfTimestamps(self, x, k):
    """float64: timestamps of 1.7e9 seconds subtracted, a phase modulo one, a cast to float at the end."""
    base = 1.7e9 + x * 0.001
    d = base - base[:, :1]
    return d.float(), torch.remainder(base * k, 1.0).float(), (x * k).sum(1)


@forward("x:float16[N,T,8]", "w:float16[8,4]", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "halves", "tenths", "positive"))
def A7861HalvesMixed(self, x, w):
    """half inputs: softmax in float32 cast back, a sum of squares in float32, a mean in half, a comparison with a python decimal, finfo.min of half."""
    a = torch.softmax(x.float(), -1).type_as(x)
    n = (x.float().pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
    m = (x * n.half()) @ w
    return a, m, x.masked_fill(x > 0.1, torch.finfo(x.dtype).min).amax(1), (x * 0.1).sum(1, dtype=torch.float32)


@forward("i:int64[N,T]=-9007199254740991:9007199254740991", "j:int64[N,T]=0:4294967296", dims="N=1:2:3 T=1:5:9", refused="differ by more than nothing")
def A7863BeyondFiftyThree(self, i, j):
    """int64 beyond 2^53: parity, comparison of neighbours, a sum, a hash of ids into buckets, an argmax, sorting, shifts, min and max by torch.where."""
    n = i + 1
    h = (j * 2654435761) % 1000003
    return i % 2, n > i, i.sum(1), h, i.argmax(1), i.sort(1).values, (i >> 20) & 0xFFFF, torch.where(i > j, i, j), i.amax(1), i - j, i == n - 1


@forward("s:float32[]", "n:int64[]=0:5", "x:float32[N,T]", dims="N=1:2:3 T=6:6:9", kinds=FINITE)
def A7864ZeroDimensional(self, s, n, x):
    """0-d tensors: type promotion (0-d float64 stays float32), an index by a 0-d tensor, roll by sizes, a 0-d output, stacking, item-free slicing by masks."""
    t = torch.arange(x.shape[1])
    return x * s, x[:, n], x * torch.tensor(0.1, dtype=torch.float64), x * (t < n), x.index_select(1, n.reshape(1)), torch.stack([s, n.float()]).sum(), (n / 2), n // 2, s.expand(x.shape[0])


@forward("x:float32[N,T,C]", dims="N=1:1:3 T=1:1:5 C=1:3:4", kinds=FINITE)
def A7865SizesOfOneThatMove(self, x):
    """squeeze() without a dim, squeeze(1), expand_as, broadcasting against its own slice, var of one, std keepdim, a mean of a single element, chunk and unbind of one."""
    a = x.squeeze(1) if x.shape[1] == 1 else x.mean(1)
    parts = torch.chunk(x, 2, dim=1)
    d = x - x[:, :1]
    return a, parts[-1].sum(1), d / (d.pow(2).mean((1, 2), keepdim=True) + 1e-3).sqrt(), x[:, -1].expand(x.shape[0], x.shape[2]), F.normalize(x, dim=1), (x == x.amax(1, keepdim=True)).float().sum(1)


@forward("x:float32[N,T]", "y:float32[N,S]", dims="N=1:2:3 T=0:3:6 S=0:2:4", kinds=FINITE)
def A7866SizesOfZero(self, x, y):
    """Axes that may be empty: sums, means of nothing guarded, cat, prod, a matmul over nothing, softmax along nothing, cumsum, masks."""
    z = torch.cat([x, y], 1)
    n = z.shape[1]
    return z, x.sum(1), x.sum(1) / max(n, 1), x.prod(1), x.mT @ x, x.softmax(1), torch.einsum("nt,ns->ts", x, y), y.cumsum(1), (x > 0).all(1), F.pad(z, (0, 1)).amax(1)


@attack("x:float32[N,T,H]", "y:float32[N,2*T,H]", dims="N=1:1:2 T=1:4:6 H=4:8:12%4", kinds=FINITE)
class A7867TiedSizes(nn.Module):
    """One input is twice as long as another; H is divisible by four heads; an interleave and a strided difference."""

    def forward(self, x, y):
        n, t, h = x.shape
        u = torch.repeat_interleave(x, 2, dim=1)
        assert y.shape[1] == 2 * t
        a = (u * y).view(n, 2 * t, 4, h // 4).transpose(1, 2)
        w = (a @ a.mT / (h // 4) ** 0.5).softmax(-1)
        return (w @ a).transpose(1, 2).flatten(2), y[:, ::2] - x, y.view(n, t, 2, h).mean(2)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=("halves", "ones", "zeros", "normal", "ascending"))
def A7868TiesEverywhere(self, x):
    """Ties: sort stable descending, argsort flipped, topk of few, argmax and argmin, min and max with indices, unique_consecutive counts by hand, median, kthvalue, cummax indices."""
    v, i = x.sort(dim=1, descending=True, stable=True)
    j = x.flip(1).argsort(dim=1, stable=True)
    k = min(3, x.shape[1])
    rank = i.argsort(1)
    run = F.pad(v[:, 1:] != v[:, :-1], (1, 0), value=True).cumsum(1)
    return i, j, x.topk(k, 1, largest=False).values, x.argmax(1), x.argmin(1), x.min(1)[1], rank, run, x.cummax(1)[1], x.cummin(1)[1], torch.searchsorted(x.sort(1).values, x, right=True)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:9")
def A7869NanAndInfinities(self, x):
    """nansum, nanmean, nan_to_num with all defaults, isfinite masks, where(isnan) fills, maximum, min of inf, 0 * inf guarded, log of negatives, sign."""
    y = torch.where(x < -1, torch.full_like(x, float("nan")), x)
    return y.nansum(1), torch.nanmean(F.pad(y, (0, 1)), 1), y.nan_to_num(), (x / 0.0).nan_to_num(posinf=5.0, neginf=-5.0, nan=1.0), torch.isfinite(x.log()), torch.where(y.isnan(), 0.0, y), x.clamp(-1e30, 1e30).exp().clamp(max=1e4), torch.fmax(y, torch.zeros(()))


@forward("x:uint8[N,H,W,3]=0:255", dims="N=1:1:2 H=2:5:8 W=3:4:7")
def A7870BytesOfCameras(self, x):
    """NHWC bytes: BGR to RGB, /255 with mean and std, YUV in fixed point by shifts of int32, wrap of uint8 sums, a difference of frames as abs of int16, nearest resize of bytes, thresholds."""
    r, g, b = x.flip(-1).unbind(-1)
    f = (x.permute(0, 3, 1, 2).float() / 255 - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    y = ((66 * r.int() + 129 * g.int() + 25 * b.int() + 128) >> 8) + 16
    d = (x[:, 1:].to(torch.int16) - x[:, :-1].to(torch.int16)).abs().to(torch.uint8)
    return f, y.to(torch.uint8), r + g, d, F.interpolate(x.permute(0, 3, 1, 2).float(), scale_factor=2, mode="nearest").byte(), x[..., 0] > 127, x // 16 * 16, x.float().mean((1, 2)).round().to(torch.uint8), -x, x << 1


@attack("b:float32[N,A,8]", "h:float32[N,A,3]", dims="N=1:1:2 A=84:84:84", kinds=("normal", "unit", "halves"))
class A7871YoloV8Decode(nn.Module):
    """DFL with a conv of arange weights, anchors by strides for fixed levels, dist2bbox, a final topk without NMS as YOLOv10 (scores over classes flattened, // and %)."""

    def __init__(self) -> None:
        super().__init__()
        self.dfl = nn.Conv2d(2, 1, 1, bias=False)
        self.dfl.weight.data[:] = torch.arange(2, dtype=torch.float).view(1, 2, 1, 1)
        pts, st = [], []
        for s, n in ((8, 8), (16, 4), (32, 2)):
            y, x = torch.meshgrid(torch.arange(n) + 0.5, torch.arange(n) + 0.5, indexing="ij")
            pts.append(torch.stack((x, y), -1).view(-1, 2))
            st.append(torch.full((n * n, 1), float(s)))
        self.anchors, self.strides = torch.cat(pts).T, torch.cat(st).T

    def forward(self, b, h):
        n, a, _ = b.shape
        d = self.dfl(b.transpose(1, 2).view(n, 4, 2, a).transpose(2, 1).softmax(1)).view(n, 4, a)
        lt, rb = d.chunk(2, 1)
        x1y1, x2y2 = self.anchors.unsqueeze(0) - lt, self.anchors.unsqueeze(0) + rb
        boxes = (torch.cat(((x1y1 + x2y2) / 2, x2y2 - x1y1), 1) * self.strides).transpose(1, 2)
        s = h.sigmoid()
        index = torch.topk(s.amax(-1), 10, dim=-1)[1].unsqueeze(-1)
        boxes, s = boxes.gather(1, index.expand(-1, -1, 4)), s.gather(1, index.expand(-1, -1, 3))
        v, i = torch.topk(s.flatten(1), 10)
        return torch.cat([boxes[torch.arange(n)[:, None], i // 3], v[..., None], (i % 3)[..., None].float()], -1)
