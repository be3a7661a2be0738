"""Medicine, images, volumes, time series and graphs as whole little networks."""
# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"
I = "x:float32[N,1,H,W]"
ID = "N=1:1:2 H=4:6:9 W=5:7:10"


@forward("x:int16[N,H,W]=-1024:3071", dims="N=1:2:3 H=2:4:7 W=2:5:8")
def A7976HounsfieldWindows(self, x):
    """CT: three windows to bytes by the DICOM formula with its minus one half, masks of air and bone counted, percentiles of the body, a lung by a product of masks."""
    out = []
    for c, w in ((40, 400), (-600, 1500), (300, 1)):
        f = ((x.float() - (c - 0.5)) / max(w - 1, 1) + 0.5) * 255
        f = torch.where(x.float() <= c - 0.5 - (w - 1) / 2, 0.0, torch.where(x.float() > c - 0.5 + (w - 1) / 2, 255.0, f))
        out.append(f.clamp(0, 255).to(torch.uint8))
    hu = x * 2 - 1024
    return torch.stack(out, 1), hu, (x > 300).sum((1, 2)), (x < -900).float().mean((1, 2)), torch.quantile(x.float().flatten(1), 0.995, dim=1)


@forward(I, dims=ID, kinds=FINITE)
def A7977GeodesicRounds(self, x):
    """Morphological reconstruction by as many rounds of dilation as the longer side, connected labels by the maximum of ids, top-hat, gradient with -inf pads."""
    n, _, h, w = x.shape
    mask = (x > 0).float()
    seed = mask * (x >= x.amax((2, 3), keepdim=True)).float()
    ids = torch.arange(1, h * w + 1).view(1, 1, h, w) * mask
    for _ in range(max(h, w)):
        seed = F.max_pool2d(seed, 3, 1, 1) * mask
        ids = F.max_pool2d(ids, 3, 1, 1) * mask
    ero = -F.max_pool2d(-x, 3, 1, 1)
    return seed, ids, x - F.max_pool2d(ero, 3, 1, 1), F.max_pool2d(x, 3, 1, 1) - ero


@forward(I, dims=ID, kinds=("unit", "tenths", "halves", "bytes"))
def A7978ClaheTiles(self, x):
    """Histogram equalisation: 8 bins by one-hot of bytes, clipped with the excess shared, look-up by cumulated shares, tiles by adaptive pooling, gamma that follows the mean."""
    q = (torch.sigmoid(x) * 7).round().long()
    oh = F.one_hot(q[:, 0], 8).permute(0, 3, 1, 2).float()
    hist = F.adaptive_avg_pool2d(oh, 2)
    cut = hist.clamp(max=0.3)
    cut = cut + (hist - cut).sum(1, keepdim=True) / 8
    cdf = cut.cumsum(1)
    lut = F.interpolate(cdf, x.shape[2:], mode="bilinear", align_corners=False)
    y = lut.gather(1, q)
    g = torch.log(torch.tensor(0.5)) / torch.log(torch.sigmoid(x).mean((1, 2, 3), keepdim=True))
    return y, torch.sigmoid(x) ** g


@forward(I, dims=ID, kinds=FINITE)
def A7979DistanceTransform(self, x):
    """Exact Euclidean distances by min-plus along both axes, capped where there is no seed, signed by the mask, Hausdorff of two masks by masked maxima."""
    inside = x[:, 0] > 0
    h, w = x.shape[2:]
    dh = (torch.arange(h)[:, None] - torch.arange(h)).float() ** 2
    dw = (torch.arange(w)[:, None] - torch.arange(w)).float() ** 2

    def edt(m):
        f = torch.where(m, 0.0, 1e4)
        f = (f[:, None] + dh[None, :, :, None]).amin(2)
        f = (f[:, :, None, :] + dw[None, None]).amin(3)
        return f.clamp(max=float(h * h + w * w)).sqrt()

    a, b = edt(inside), edt(~inside)
    return a - b, torch.where(inside, b, 0).amax((1, 2)), inside.flatten(1).any(1)


@forward("x:float32[N,L]", dims="N=1:2:3 L=12:24:61", kinds=FINITE)
def A7980PanTompkins(self, x):
    """ECG: derivative, square, moving window, local maxima with plateaus to the left, refractory by max-pool, first three peaks by top-k of falling times, RR and rate with a fallback."""
    d = F.pad(x[:, 2:] - x[:, :-2], (1, 1)) / 2
    s = F.avg_pool1d((d * d)[:, None], 5, 1, 2, count_include_pad=False)[:, 0]
    left, right = F.pad(s[:, :-1], (1, 0), value=-1.0), F.pad(s[:, 1:], (0, 1), value=-1.0)
    peak = (s > left) & (s >= right) & (s == F.max_pool1d(s[:, None], 7, 1, 3)[:, 0]) & (s > s.mean(1, keepdim=True))
    t = torch.arange(x.shape[1])
    at = torch.where(peak, t, x.shape[1]).topk(3, largest=False)[0]
    ok = at < x.shape[1]
    rr = (at[:, 1:] - at[:, :-1]).float()
    rate = torch.where(ok[:, 1:].any(1), 60.0 / (rr * ok[:, 1:]).sum(1).clamp(min=1) * ok[:, 1:].sum(1), -1.0)
    return peak, at, rate


@attack("x:float32[N,2,D,H,W]", dims="N=1:1:2 D=2:4:5 H=3:4:6 W=3:5:6", kinds=FINITE)
class A7981NnUnetBlocks(nn.Module):
    """A tiny 3D U-Net: instance norm with affine, leaky slopes of 0.01, anisotropic strides, skip cropped or padded to the size, deep supervision in eval, trilinear to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv3d(2, 4, (1, 3, 3), padding=(0, 1, 1)), nn.InstanceNorm3d(4, affine=True), nn.LeakyReLU())
        self.b = nn.Conv3d(4, 6, 3, (1, 2, 2), 1)
        self.up = nn.ConvTranspose3d(6, 4, (1, 2, 2), (1, 2, 2))
        self.heads = nn.ModuleList([nn.Conv3d(8, 3, 1), nn.Conv3d(6, 3, 1)])

    def forward(self, x):
        a = self.a(x)
        b = F.silu(self.b(a))
        u = self.up(b)
        u = u[..., : a.shape[-2], : a.shape[-1]]
        u = F.pad(u, (0, a.shape[-1] - u.shape[-1], 0, a.shape[-2] - u.shape[-2]), mode="replicate") if u.shape[-2:] != a.shape[-2:] else u
        y = self.heads[0](torch.cat((a, u), 1))
        z = F.interpolate(self.heads[1](b), y.shape[2:], mode="trilinear", align_corners=True)
        return (y + z).softmax(1), y.argmax(1).to(torch.uint8)


@attack("x:float32[N,T,6]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7982RevinDlinear(nn.Module):
    """Forecasting: RevIN with last subtracted, moving-average decomposition by repeated ends, frequency MLP by rfft of the length, horizon as long as the context."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.linspace(0.5, 1.5, 6))
        self.b = nn.Parameter(torch.linspace(-0.1, 0.1, 6))
        self.mix = nn.Linear(6, 6)

    def forward(self, x):
        last = x[:, -1:]
        sd = torch.sqrt(torch.var(x, 1, keepdim=True, unbiased=False) + 1e-2)
        y = (x - last) / sd * self.w + self.b
        k = 5
        pad = torch.cat((y[:, :1].repeat(1, (k - 1) // 2, 1), y, y[:, -1:].repeat(1, k // 2, 1)), 1)
        trend = F.avg_pool1d(pad.mT, k, 1).mT
        season = y - trend
        f = torch.fft.rfft(season, dim=1, norm="ortho")
        f = torch.complex(self.mix(f.real) - f.imag, self.mix(f.imag) + f.real)
        s = torch.fft.irfft(f, n=x.shape[1], dim=1, norm="ortho")
        return ((trend + s) - self.b) / (self.w + 1e-10) * sd + last


@forward(X, dims=D, kinds=FINITE, refused="the file cannot hold it as a loop")
def A7983SoftDtwAndScan(self, x):
    """DTW by antidiagonals of a skewed matrix, Hillis-Steele scan with doubling strides, exponential smoothing by a triangular power matrix, Holt's trend by a loop."""
    a, b = x[..., :3], x[..., 3:].flip(1)
    t = x.shape[1]
    d = torch.cdist(torch.tanh(a), torch.tanh(b), p=1)
    rows = [d[:, 0].cumsum(1)]
    for i in range(1, t):
        r = [rows[-1][:, 0] + d[:, i, 0]]
        for j in range(1, t):
            r.append(d[:, i, j] + torch.minimum(torch.minimum(rows[-1][:, j], rows[-1][:, j - 1]), r[-1]))
        rows.append(torch.stack(r, 1))
    s, k = x, 1
    while k < t:
        s = s + F.pad(s[:, :-k], (0, 0, k, 0))
        k *= 2
    n = torch.arange(t)
    m = torch.where(n[:, None] >= n, 0.7 ** (n[:, None] - n).clamp(min=0), 0.0)
    return rows[-1][:, -1], s, m @ x


@forward("x:float32[V,4]", "e:int64[2,E]=0:2", "b:int64[V]=0:1", dims="V=3:5:8 E=1:4:9", kinds=FINITE)
def A7984GraphPooling(self, x, e, b):
    """PyG by hand: degree with self loops, D^-1/2 with inf to 0, segment softmax, sort-pool of the top two of each graph padded by zeros, global max with empty graphs."""
    v = x.shape[0]
    src, dst = e
    deg = torch.zeros(v).scatter_add(0, dst, torch.ones(e.shape[1]))
    inv = deg.pow(-0.5)
    inv = inv.masked_fill(inv == float("inf"), 0.0)
    h = torch.zeros_like(x).index_add(0, dst, x[src] * (inv[src] * inv[dst])[:, None])
    key = torch.where(b[None] == torch.arange(2)[:, None], h[:, 0], float("-inf"))
    val, at = key.topk(2, 1)
    pooled = torch.where(torch.isfinite(val)[..., None], h[at], 0)
    mx = torch.full((2, 4), float("-inf")).scatter_reduce(0, b[:, None].expand(-1, 4), h, "amax", include_self=False)
    mx = torch.where(mx == float("-inf"), 0, mx)
    return h, pooled, mx, torch.bincount(b, minlength=2)


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=3:5:8 W=3:6:9", kinds=FINITE)
def A7985MemoryFormats(self, x):
    """A decision by is_contiguous(channels_last), by the strides' order and by storage offsets of a slice: pixels of one keep both layouts."""
    y = x.to(memory_format=torch.channels_last)
    if y.is_contiguous() and y.shape[2] * y.shape[3] > 1:
        y = y * 3
    z = y[:, 1:]
    k = z.storage_offset()
    return y * 2 + k, z.permute(0, 2, 3, 1).reshape(z.shape[0], -1), x.stride(1) * x.amax()


@forward("x:float32[N,T,6]", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="goes one way")
def A7986MatchOnShapes(self, x):
    """Structural matching on the shape with guards, an exception for a view that does not divide, walrus in a comprehension, divmod, min with a key over sizes."""
    match x.shape:
        case (1, t, _) if t % 2:
            y = x * 2
        case (_, 1, _):
            y = x - 1
        case (n, t, c) if t > c:
            y = x[:, :c] + n
        case _:
            y = x.exp().clamp(max=9)
    try:
        z = x.view(x.shape[0], x.shape[1] // 2, 12).amax(1)
    except RuntimeError:
        z = x[:, 0].repeat(1, 2)
    q, r = divmod(x.shape[1], 4)
    k = min((3, 5, 7), key=lambda s: (abs(s - x.shape[1]), -s))
    return y, z, x[:, :1] * q + r, x.sum((1, 2)) * k


@forward(X, dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7987SqueezeEverything(self, x):
    """squeeze() without axes where a batch or a length may be one, dist of rows from squeezed operands, unsqueezed by ndim."""
    y = x.mean(-1).squeeze()
    if y.ndim == 0:
        return x.sum(-1) * 5
    if y.ndim == 1:
        y = y.reshape(x.shape[0], x.shape[1]) * 2
    return y


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 5, 6),))
def A7988HistcOfRange(self, x):
    """histc with its range from the values, median lower, mode, kthvalue, nanmedian, aminmax, unique-free ranks of ties."""
    lo, hi = torch.aminmax(x, dim=1)
    return x.median(1)[0], x.flatten().histc(4, -2, 2), x.kthvalue(2, 1)[0], hi - lo, x.round().mode(1)[0], (x[:, :, None] > x[:, None]).sum(2)
