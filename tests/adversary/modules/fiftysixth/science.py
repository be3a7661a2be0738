# ruff: noqa: E501 - attacks are written as users write them
"""Science: scatters and segments, neighbours, farthest points, counts, searches, filters, Fourier, bags, linear algebra."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

X = "x:float32[N,K,3]=-4:4"
D = "N=1:1:2 K=1:8:20"


def clouds(*many, n=1):
    return tuple(halves(n, k, 3, seed=i) for i, k in enumerate(many))


@forward("x:float32[K,3]=-4:4", "i:int64[K]=0:5", dims="K=1:8:20", kinds=FINITE,
         feeds=(halves(8, 3, i=np.array([0, 0, 5, 5, 2, 2, 2, 0])), halves(1, 3, i=np.array([3])), halves(20, 3, i=np.zeros(20, np.int64))))  # fmt: skip
def A7190Segments(self, x, i):
    """Segment sums, means with counts clamped, maxima with empty segments as zero, products, a softmax by segments."""
    idx = i[:, None].expand(-1, 3)
    z = x.new_zeros(6, 3)
    s = z.scatter_add(0, idx, x)
    c = torch.bincount(i, minlength=6)[:6]
    mx = z.scatter_reduce(0, idx, x, "amax", include_self=False)
    e = (x - mx[i]).exp()
    soft = e / z.index_add(0, i, e)[i]
    pr = (z + 1).scatter_reduce(0, idx, x.clamp(-2, 2), "prod")
    return s, s / c.clamp(min=1)[:, None], mx, soft, pr, z.scatter_reduce(0, idx, x, "mean", include_self=True)


@forward(X, dims=D, kinds=FINITE, feeds=clouds(1, 2, 3, 4, 8, 20))
def A7191Knn(self, x):
    """DGCNN's neighbours by negative squared distances, as many as there are up to four, edge features by flat gather."""
    n, k, _ = x.shape
    inner = -2 * x @ x.mT
    xx = x.square().sum(-1, keepdim=True)
    d = -xx - inner - xx.mT
    d = d.round(decimals=3)
    v, i = d.topk(min(4, k), dim=-1)
    m = min(4, k)
    i = d.sort(dim=-1, descending=True, stable=True).indices[..., :m]
    f = x.reshape(n * k, 3)[(i + torch.arange(n).view(-1, 1, 1) * k).view(-1)].view(n, k, m, 3)
    return torch.cat((f - x[:, :, None], x[:, :, None].expand_as(f)), -1).amax(2), v


@forward(X, dims=D, kinds=FINITE, feeds=clouds(1, 2, 3, 4, 8, 20))
def A7192Fps(self, x):
    """Farthest points: five steps, first of the ties by argmax, more than there are points repeats the first."""
    n, k, _ = x.shape
    dist = torch.full((n, k), 1e10)
    far = torch.zeros(n, dtype=torch.long)
    rows = torch.arange(n)
    out = []
    for _ in range(5):
        out.append(far)
        c = x[rows, far][:, None]
        dist = torch.minimum(dist, (x - c).square().sum(-1))
        far = dist.argmax(-1)
    i = torch.stack(out, 1)
    return i, x.gather(1, i[..., None].expand(-1, -1, 3)), dist


@forward(X, dims=D, kinds=FINITE, feeds=clouds(1, 2, 3, 5, 8, 20))
def A7193BallQuery(self, x):
    """PointNet++: indices within a radius, those beyond set to K and sorted, the first repeated where too few."""
    n, k, _ = x.shape
    d = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square()
    g = torch.arange(k).view(1, 1, k).repeat(n, k, 1)
    g[d > 4.1] = k
    g = g.sort(dim=-1)[0][:, :, :3]
    first = g[:, :, :1].expand_as(g)
    g = torch.where(g == k, first, g)
    return g, d <= 4.1


@forward("x:float32[K]=-4:4", "y:float32[M]=-5:5", dims="K=1:8:20 M=1:5:12", kinds=FINITE,
         feeds=(halves(8, y=np.array([-4, -3, 0, 0.5, 5], np.float32)), lambda: {"x": np.zeros(5, np.float32), "y": np.array([0, -0.0, 1e-9], np.float32)}))  # fmt: skip
def A7194Interp(self, x, y):
    """np.interp: searchsorted of both sides, borders clamped, equal knots give no division by zero."""
    s = x.sort().values
    f = s.square()
    r = torch.searchsorted(s, y, right=True)
    low = torch.searchsorted(s, y)
    hi = r.clamp(1, max(1, x.shape[0] - 1)).clamp(max=x.shape[0] - 1)
    lo = (hi - 1).clamp(min=0)
    w = torch.where(s[hi] > s[lo], (y - s[lo]) / (s[hi] - s[lo]), 0.0).clamp(0, 1)
    return torch.lerp(f[lo], f[hi], w), r - low, torch.bucketize(y, torch.tensor([-1.0, 0, 0, 2]), right=True)


@forward("x:int64[K]=0:7", dims="K=1:8:20",
         feeds=(lambda: {"x": np.array([3, 3, 1, 7, 1, 0])}, lambda: {"x": np.zeros(20, np.int64)}, lambda: {"x": np.array([7])}))  # fmt: skip
def A7195UniqueLike(self, x):
    """Ranks of values among the present ones (np.unique's inverse) by one_hot and cumsum, first places, run lengths."""
    hot = F.one_hot(x, 8)
    present = hot.any(0)
    rank = (present.long().cumsum(0) - 1)[x]
    first = hot.argmax(0)
    change = torch.cat((torch.ones(1, dtype=torch.bool), x[1:] != x[:-1]))
    run = change.cumsum(0) - 1
    lens = torch.zeros_like(x).scatter_add(0, run, torch.ones_like(x))
    return rank, torch.where(present, first, -1), lens, torch.isin(x, torch.tensor([1, 3]))


@forward("x:float32[N,T,2]=-4:4", dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=tuple(values_at("x:float32[N,T,2]=-4:4", N=1, T=t) for t in (1, 2, 3, 23, 24)))
def A7196Kalman(self, x):
    """Kalman steps along the time with gains by a solve of two by two; starts with the first measure."""
    f = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    m, p = x[:, 0], torch.eye(2).expand(x.shape[0], 2, 2)
    out = []
    for t in range(x.shape[1]):
        m, p = m @ f.T, f @ p @ f.T + 0.1 * torch.eye(2)
        s = p + 0.5 * torch.eye(2)
        det = s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] * s[:, 1, 0]
        inv = torch.stack((s[:, 1, 1], -s[:, 0, 1], -s[:, 1, 0], s[:, 0, 0]), -1).view(-1, 2, 2) / det[:, None, None]
        k = p @ inv
        m = m + (k @ (x[:, t] - m)[..., None])[..., 0]
        p = (torch.eye(2) - k) @ p
        out.append(m)
    return torch.stack(out, 1)


@forward("x:float32[N,T]=-4:4", dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=tuple(values_at("x:float32[N,T]=-4:4", N=1, T=t) for t in (1, 2, 3, 7, 8, 23, 24)), target="tensorrt==8.6")
def A7197Ema(self, x):
    """Exponential means in three forms: as a matrix of powers, adjusted by weights, and by a loop over the time."""
    t = x.shape[1]
    d = (torch.arange(t)[:, None] - torch.arange(t)).float()
    w = torch.where(d >= 0, 0.7**d, 0.0)
    a = x @ w.T
    b = a / w.sum(1)
    v, out = x[:, 0], []
    for i in range(t):
        v = torch.lerp(v, x[:, i], 0.3)
        out.append(v)
    return a, b, torch.stack(out, 1)


@forward("x:float32[N,T]=-4:4", "k:float32[N,M]=-4:4", dims="N=1:1:2 T=1:9:24 M=1:4:9", kinds=FINITE,
         feeds=tuple(values_at("x:float32[N,T]=-4:4", "k:float32[N,M]=-4:4", N=1, T=t, M=m) for t, m in ((1, 1), (2, 9), (9, 4), (24, 9), (8, 8), (7, 4))))  # fmt: skip
def A7198FftConv(self, x, k):
    """A convolution by rfft with the sum of both lengths less one, same part cut; the spectrum's greatest bin."""
    t, m = x.shape[1], k.shape[1]
    n = t + m - 1
    y = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(k, n=n), n=n)
    same = y[:, (m - 1) // 2 : (m - 1) // 2 + t]
    return y, same, torch.fft.rfftfreq(n, 0.5).expand(x.shape[0], -1), torch.fft.fftshift(y, 1)


@attack("i:int64[N,K]=-1:99999999", "w:float32[N,K]=0:1", dims="N=1:2:4 K=1:5:9",
        feeds=(lambda: {"i": np.array([[-1, -1, 0], [99999999, 3, -1]]), "w": np.ones((2, 3), np.float32)}, lambda: {"i": np.full((1, 5), -1), "w": np.zeros((1, 5), np.float32)}))  # fmt: skip
class A7199HashBag(nn.Module):
    """Recommendation: ids hashed by multiplication in sixty-four bits, -1 as padding, weighted mean bags, max bags."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(17, 4, padding_idx=0)

    def forward(self, i, w):
        m = i >= 0
        h = torch.where(m, ((i * 2654435761) ^ (i >> 7)) % 16 + 1, 0)
        v = self.e(h)
        mean = (v * (w * m)[..., None]).sum(1) / (w * m).sum(1, keepdim=True).clamp(min=1e-6)
        mx = v.masked_fill(~m[..., None], -torch.inf).amax(1)
        return mean, torch.where(m.any(1, keepdim=True), mx, 0.0), h


@attack("i:int64[K]=0:9", "o:int64[3]=0:1", dims="K=2:6:12", feeds=(lambda: {"i": np.array([1, 2, 3, 9]), "o": np.array([0, 0, 1])}, lambda: {"i": np.array([1, 2, 3, 9, 9]), "o": np.array([0, 1, 1])}), target="tensorrt==8.6")
class A7200Bag(nn.Module):
    """nn.EmbeddingBag with offsets, among which are empty bags; sum, mean and max."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.EmbeddingBag(10, 4, mode=m) for m in ("sum", "mean", "max"))

    def forward(self, i, o):
        o = torch.cat((torch.zeros_like(o[:1]), o[1:].cummax(0).values))
        return self.a(i, o), self.b(i, o), self.c(i, o)


@forward("x:float32[N,3,3]=-2:2", "b:float32[N,3,2]=-4:4", dims="N=1:1:4", kinds=FINITE,
         feeds=(lambda: {"x": np.zeros((1, 3, 3), np.float32), "b": np.ones((1, 3, 2), np.float32)}, lambda: {"x": np.ones((1, 3, 3), np.float32), "b": np.eye(3, 2, dtype=np.float32)[None]}), refused="the exporter has no form of linalg_solve_triangular")  # fmt: skip
def A7201Linalg(self, x, b):
    """Cholesky of a Gram with a ridge, triangular and plain solves, determinant and log of it, an inverse."""
    a = x @ x.mT + torch.eye(3) * 0.5
    c = torch.linalg.cholesky(a)
    y = torch.linalg.solve_triangular(c, b, upper=False)
    s, ld = torch.linalg.slogdet(a)
    return c, y, torch.cholesky_solve(b, c), torch.linalg.solve(a, b), torch.linalg.det(x), ld * s, torch.linalg.inv(a)


@forward("x:float32[N,3,2]=-2:2", dims="N=1:1:4", kinds=("normal", "unit", "positive"), feeds=(lambda: {"x": np.array([[[1, 0], [0, 1], [0, 0]]], np.float32)}, lambda: {"x": np.array([[[0, 1], [2, 0], [0, 0]]], np.float32)}), refused="the exporter has no form of linalg_qr")
def A7202GramSchmidt(self, x):
    """Six-dimensional rotations: Gram-Schmidt by hand, QR's R with its signs, angles by acos of a trace clamped."""
    a = F.normalize(x[..., 0], dim=-1)
    b = F.normalize(x[..., 1] - (a * x[..., 1]).sum(-1, keepdim=True) * a, dim=-1)
    r = torch.stack((a, b, torch.linalg.cross(a, b)), -1)
    q, u = torch.linalg.qr(x)
    tr = r.diagonal(dim1=1, dim2=2).sum(-1)
    return r, q @ u, u.abs(), ((tr - 1) / 2).clamp(-1, 1)


@forward("x:float32[K,4]=-4:4", "e:int64[2,M]=0:5", dims="K=6:8:12 M=1:9:20", kinds=FINITE,
         feeds=(halves(6, 4, e=np.array([[0, 1, 2, 5, 5], [1, 0, 2, 0, 4]])), halves(12, 4, e=np.array([[5, 5, 5], [5, 0, 1]]))))  # fmt: skip
def A7203Gcn(self, x, e):
    """GCN: self loops, degrees by scatter, isolated nodes get zero for an infinity, messages by index_add."""
    k = x.shape[0]
    loop = torch.arange(k).expand(2, -1)
    row, col = torch.cat((e, loop), 1)
    deg = torch.zeros(k).scatter_add_(0, col, torch.ones_like(col, dtype=x.dtype))
    raw = torch.zeros(k).index_add(0, e[1], torch.ones(e.shape[1]))
    inv = raw.pow(-0.5)
    inv = inv.masked_fill(inv == float("inf"), 0)
    w = deg.rsqrt()[row] * deg.rsqrt()[col]
    return torch.zeros_like(x).index_add_(0, col, x[row] * w[:, None]), inv, torch.einsum("ki,kj->ij", x, x)
