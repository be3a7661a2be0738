"""Recommenders, robotics, medicine, audio, time series, quantised blocks: steps that no attack has put together so."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack("ids:int64[N,T]=0:40", "len:int64[N]=0:9", dims="N=1:2:3 T=2:5:9")
class A8158HashedBags(nn.Module):
    """Ids hashed by multiplication and a prime modulo into 16 rows, a second hash by xor and shift, bags by lengths, mean with no element."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Embedding(16, 3), nn.Embedding(8, 3)

    def forward(self, ids, len):
        h = (ids * 2654435761 % 4294967291) % 16
        g = (ids ^ (ids >> 3)) & 7
        m = (torch.arange(ids.shape[1]) < len[:, None]).float()[..., None]
        return ((self.a(h) * self.b(g)) * m).sum(1) / m.sum(1).clamp(min=1), h, g


@forward("q:float32[N,4]", "p:float32[N,T,3]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8159QuaternionKinematics(self, q, p):
    """Quaternion normalised with eps, rotated points, to a matrix and back by copysign, to Euler angles by asin of a clamp and atan2, slerp to identity."""
    q = q / (q.norm(dim=-1, keepdim=True) + 1e-3)
    w, v = q[:, :1], q[:, 1:]
    t = 2 * torch.cross(v[:, None].expand_as(p), p, dim=-1)
    r = p + w[:, None] * t + torch.cross(v[:, None].expand_as(p), t, dim=-1)
    x, y, z = v.unbind(-1)
    s = 2 * (w[:, 0] * y - z * x)
    return r, torch.asin(s.clamp(-0.99, 0.99)), torch.copysign(torch.ones_like(x), w[:, 0]) * x


@forward(X, dims="N=1:2:3 T=3:6:9", kinds=FINITE, feeds=(halves(2, 6, 6), normal(3, 9, 6)))
def A8160ReversibleNormAndMovingAverages(self, x):
    """RevIN with unbiased variance, a moving average by replicated ends (DLinear), differences of the season, patches by unfold with an end pad."""
    m, s = x.mean(1, keepdim=True), (x.var(1, keepdim=True) + 1e-5).sqrt()
    y = (x - m) / s
    e = torch.cat((y[:, :1].expand(-1, 1, -1), y, y[:, -1:].expand(-1, 1, -1)), 1)
    tr = F.avg_pool1d(e.transpose(1, 2), 3, 1).transpose(1, 2)
    p = F.pad(y.transpose(1, 2), (0, 2), mode="replicate").unfold(-1, 3, 2)
    return tr * s + m, (y - tr).diff(dim=1, prepend=y[:, :1]), p.mean(-1)


@forward("x:float32[N,1,D,H,W]", dims="N=1:1:2 D=2:4:5 H=3:5:7 W=4:4:6", kinds=("normal", "unit", "zeros", "halves"))
def A8161MedicalVolume(self, x):
    """Windowing of HU, percentile clip by kthvalue of the size, Dice per class, gradients by central differences, argmax labels by components of max-pools."""
    y = ((x * 100 + 40).clamp(-160, 240) + 160) / 400
    k = max(1, int(0.9 * x[0].numel()))
    hi = y.flatten(1).kthvalue(k, dim=1).values
    z = torch.minimum(y, hi[:, None, None, None, None])
    m = (y > 0.5).float()
    d = (2 * (m * y).sum((1, 2, 3, 4)) + 1) / (m.sum((1, 2, 3, 4)) + y.sum((1, 2, 3, 4)) + 1)
    g = F.pad(z[..., 2:] - z[..., :-2], (1, 1, 0, 0, 0, 0), mode="replicate") / 2
    return z, d, g, F.max_pool3d(m, 3, 1, 1) - -F.max_pool3d(-m, 3, 1, 1)


@attack(X, dims=D, kinds=("normal", "unit", "halves", "tiny", "zeros", "negative"))
class A8162FakeQuantBlocks(nn.Module):
    """Groups of three weights in four bits unpacked from bytes by shifts, zero points per group, activations rounded by a per-token absmax."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("packed", torch.randint(0, 256, (6, 3), dtype=torch.uint8))
        self.register_buffer("s", torch.rand(6, 2) * 0.1 + 0.01)
        self.register_buffer("z", torch.randint(0, 16, (6, 2)).to(torch.int8))

    def forward(self, x):
        w = torch.stack((self.packed & 15, self.packed >> 4), -1).view(6, 2, 3).to(torch.int8)
        w = ((w - self.z[..., None]).float() * self.s[..., None]).flatten(1)
        a = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        return F.linear(torch.round(x / a).clamp(-128, 127) * a, w), w


@forward("b:float32[N,T,4]=0:20", "s:float32[N,T]=0:1", dims="N=1:1:2 T=1:5:8", kinds=("unit", "normal"))
def A8163SoftNmsAndFusion(self, b, s):
    """Pairwise IoU with crossed corners ordered, matrix NMS decay with a Gaussian, weighted mean of boxes above 0.5, GIoU to the next box by roll."""
    lo, hi = torch.minimum(b[..., :2], b[..., 2:]), torch.maximum(b[..., :2], b[..., 2:])
    area = (hi - lo).prod(-1)
    inter = (torch.minimum(hi[:, :, None], hi[:, None]) - torch.maximum(lo[:, :, None], lo[:, None])).clamp(min=0).prod(-1)
    iou = inter / (area[:, :, None] + area[:, None] - inter + 1e-6)
    higher = s[:, None] > s[:, :, None]
    comp = (iou * higher).amax(-1)
    decay = torch.exp(-((iou * higher) ** 2 - comp[:, None] ** 2) / 0.5).amin(-1)
    w = torch.sigmoid((iou - 0.5) * 8) * s[:, None]
    return s * decay, (w @ b) / (w.sum(-1, keepdim=True) + 1e-3)


@forward(X, dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8164AliBiAndSinks(self, x):
    """ALiBi slopes by powers, a sliding window of three with two sinks, attention-sink logit appended and dropped, softcap by tanh, causal top-left."""
    t = x.shape[1]
    q = torch.tanh(x).view(x.shape[0], t, 2, 3).transpose(1, 2)
    i = torch.arange(t)
    d = i[:, None] - i[None]
    ok = (d >= 0) & ((d < 3) | (i[None] < 2))
    sl = 2.0 ** -(torch.arange(1, 3) * 4.0)
    a = 5 * torch.tanh(q @ q.mT / 5) - sl[:, None, None] * d
    a = a.masked_fill(~ok, torch.finfo(a.dtype).min)
    a = torch.cat((a, torch.full_like(a[..., :1], 0.3)), -1).softmax(-1)[..., :-1]
    return (a @ q).transpose(1, 2).flatten(2)


@forward("x:float64[N,T]", "i:int64[N]=0:200000000", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="computes in FP64")
def A8165UnixTimes(self, x, i):
    """float64 inputs summed with a large offset, seconds to days and weekday by floor division, a float32 of a difference."""
    s = i * 10 + 1600000000
    day = s // 86400
    return ((x + 1e6) - 1e6).float(), (day + 4) % 7, s % 86400 // 3600


@forward("x:float32[N,L]", dims="N=1:1:2 L=16:24:40", kinds=FINITE)
def A8166MuLawAndPitch(self, x):
    """mu-law codes by floor, decoded, autocorrelation by irfft of a power of two over the length, its lag of the peak replaced by a soft one."""
    y = x.clamp(-1, 1)
    c = torch.sign(y) * torch.log1p(255 * y.abs()) / torch.log(torch.tensor(256.0))
    n = 1 << (2 * x.shape[1] - 1).bit_length()
    f = torch.fft.rfft(y, n)
    r = torch.fft.irfft(f.abs() ** 2, n)[:, : x.shape[1] // 2]
    return c, r, (r.softmax(-1) * torch.arange(r.shape[1])).sum(-1)


@forward("x:float32[N,4,H,W]", dims="N=1:1:2 H=3:6:9 W=3:5:8", kinds=FINITE)
def A8167WaveletsAndBlurPool(self, x):
    """Haar by strided slices with an odd end padded by reflect, blur-pool depthwise, inverse, channel shuffle, CoordConv, SPP with bins of the size."""
    h, w = x.shape[-2:]
    y = F.pad(x, (0, w % 2, 0, h % 2), mode="reflect")
    a, b, c, d = y[..., ::2, ::2], y[..., 1::2, ::2], y[..., ::2, 1::2], y[..., 1::2, 1::2]
    ll, hh = (a + b + c + d) / 2, (a - b - c + d) / 2
    k = torch.tensor([1.0, 2, 1])
    k = (k[:, None] * k / 16).expand(4, 1, 3, 3)
    bl = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), k, stride=2, groups=4)
    spp = torch.cat([F.adaptive_max_pool2d(x, n).flatten(2) for n in (1, 2, 3)], -1)
    return ll, hh, bl, F.channel_shuffle(x, 2) * torch.linspace(-1, 1, w), spp


@forward(X, dims="N=1:2:3 T=2:6:9", kinds=FINITE)
def A8168KalmanLoop(self, x):
    """A constant-velocity Kalman filter with 2x2 inverses by hand over the time axis, gains that converge, innovation gating by where."""
    p = torch.eye(2).expand(x.shape[0], 2, 2)
    s = torch.stack((x[:, 0, 0], torch.zeros(x.shape[0])), -1)
    f = torch.tensor([[1.0, 0.1], [0, 1]])
    out = []
    for t in range(x.shape[1]):
        s, p = s @ f.T, f @ p @ f.T + 0.01 * torch.eye(2)
        r = x[:, t, 0] - s[:, 0]
        k = p[:, :, 0] / (p[:, 0, 0] + 0.5)[:, None]
        s = s + k * torch.where(r.abs() < 3, r, r * 0.1)[:, None]
        p = p - k[:, :, None] * p[:, :1]
        out.append(s)
    return torch.stack(out, 1)


@forward("x:int32[N,T]=-2147483648:2147483647", dims="N=1:2:3 T=2:5:9")
def A8169Int32Wraps(self, x):
    """int32 that wraps: a linear congruence, abs of the least, a mean by shifts, average of two without overflow, sum in int64."""
    y = x * 1664525 + 1013904223
    return y, x.abs(), (x >> 1) + (x.flip(1) >> 1), x.sum(1), y.float() / 2**31


@forward(X, dims=D, kinds=FINITE)
def A8170RoundingModes(self, x):
    """round with decimals of both signs, half away by trunc(x + copysign), floor_divide and remainder of negative floats, frexp by log2, div trunc."""
    return torch.round(x, decimals=1), torch.round(x * 10, decimals=-1), torch.trunc(x + torch.copysign(torch.tensor(0.5), x)), x // 0.5, torch.remainder(x, -2.0), torch.fmod(x, 2.0), torch.div(x, 0.25, rounding_mode="trunc")


@forward(X, dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8171SlotsOfMixtures(self, x):
    """Top-1 switch routing with capacity int(1.25 * n * t / 3): places by a cumsum of one-hots, dropped beyond, index_add back."""
    y = x.reshape(-1, 6)
    cap = int(1.25 * y.shape[0] / 3) + 1
    e = y[:, :3].argmax(-1)
    oh = F.one_hot(e, 3)
    pos = (oh.cumsum(0) * oh).sum(-1) - 1
    keep = pos < cap
    out = torch.zeros(3 * cap + 1, 6).index_add(0, torch.where(keep, e * cap + pos, 3 * cap), y)
    return (out[torch.where(keep, e * cap + pos, 3 * cap)] * keep[:, None]).view(x.shape), out[-1] * 0 + keep.sum()
