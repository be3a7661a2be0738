# ruff: noqa: E501, E731, E741, B905, RUF059 - attacks are written as users write them
"""Parts of published networks of speech and vision, each with the one line where it may go wrong."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "ones", "tenths")
X4, IMAGE, MT = "x:float32[N,T,4]", "x:float32[N,2,H,W]", "m:bool[N,T]"
LENGTHS = (*range(1, 18), 20, 23, 24, 31, 32, 33, 39, 40)


def seq(*inputs: str, low: int = 1, own: tuple = (), **other: object) -> dict:
    """Sequences, judged at many lengths."""
    feeds = tuple(values_at(*inputs, N=1 + t % 3, T=t) for t in LENGTHS if t >= low)
    return {"dims": f"N=1:2:3 T={low}:9:40", "kinds": FEW, "feeds": (*own, *feeds), **other}


def pix(*inputs: str, low: int = 1, high: int = 16, own: tuple = (), **other: object) -> dict:
    """Pictures, judged at every height."""
    feeds = tuple(values_at(*inputs, N=1, H=h, W=w) for h in range(low, high + 1) for w in {low, low + (h * 7) % (high - low + 1), h})
    return {"dims": f"N=1:1:2 H={low}:{max(low, 8)}:{high} W={low}:{max(low, 9)}:{high}", "kinds": FEW, "feeds": (*own, *feeds), **other}


@forward(X4, "a:float32[N,T]=0:1", **seq(X4, "a:float32[N,T]=0:1", own=((lambda: {"x": np.ones((1, 6, 4), np.float32), "a": np.array([[0.5, 0.5, 0.25, 0.75, 1.0, 0.0]], np.float32)}),)))
def A5076IntegrateAndFire(self, x, a):
    """Paraformer's CIF: weights are summed up until one is reached, the rest goes on; what fired is kept by where."""
    total, frame, fired, frames = torch.zeros(x.shape[0]), torch.zeros(x.shape[0], 4), [], []
    for t in range(x.shape[1]):
        left = 1 - total
        total = total + a[:, t]
        fire = total >= 1
        fired.append(total)
        total = torch.where(fire, total - 1, total)
        now = torch.where(fire, left, a[:, t])
        frame = frame + now[:, None] * x[:, t]
        frames.append(frame)
        frame = torch.where(fire[:, None], (a[:, t] - now)[:, None] * x[:, t], frame)
    return torch.stack(fired, 1), torch.stack(frames, 1) * (torch.stack(fired, 1) >= 1)[..., None]
@forward("x:float32[N,T]", "w:float32[N,3]", "h:float32[N,3]", "d:float32[N,2]", dims="N=1:2:3 T=1:9:24", kinds=FEW, feeds=(lambda: {"x": np.array([[-1.0, 1.0, 0.0, 1.0000001, -1.0000001, 2.0, -7.0]], np.float32), "w": np.zeros((1, 3), np.float32), "h": np.zeros((1, 3), np.float32), "d": np.zeros((1, 2), np.float32)},))
def A5077SplineOfVits(self, x, w, h, d):
    """Rational quadratic splines with linear tails: bins by a count of borders, the inside by a mask."""
    inside = (x >= -1) & (x <= 1)
    def borders(v):
        v = 0.001 + (1 - 0.003) * v.softmax(-1)
        c = F.pad(v.cumsum(-1), (1, 0)) * 2 - 1
        c[..., 0], c[..., -1] = -1, 1
        return c, c[..., 1:] - c[..., :-1]
    cw, w = borders(w)
    ch, h = borders(h)
    d = 0.001 + F.softplus(F.pad(d, (1, 1), value=math.log(math.exp(0.999) - 1)))
    edges = cw.clone()
    edges[..., -1] += 1e-6
    xi = x.clamp(-1, 1)
    b = (xi[..., None] >= edges[:, None]).sum(-1) - 1
    g = lambda v: v.gather(1, b)
    theta = (xi - g(cw)) / g(w)
    delta, t1 = g(h / w), theta * (1 - theta)
    y = g(ch) + g(h) * (delta * theta**2 + g(d) * t1) / (delta + (g(d) + g(d[:, 1:]) - 2 * delta) * t1)
    out = torch.zeros_like(x)
    out[inside] = y[inside]
    out[~inside] = x[~inside]
    return out, b
@forward("d:int64[N,T]=0:3", **seq("d:int64[N,T]=0:3"))
def A5078PathOfDurations(self, d):
    """VITS's generate_path: masks of running sums, less the row before."""
    n, t = d.shape
    total = d.cumsum(-1)
    path = (torch.arange(24)[None] < total.reshape(-1, 1)).float().view(n, t, 24)
    return path - F.pad(path, (0, 0, 1, 0))[:, :-1], total[:, -1].clamp_min(1)
@forward("x:float32[N,T]", **seq("x:float32[N,T]"))
def A5079PadOrTrim(self, x):
    """Whisper's pad_or_trim: by index_select where it is longer, by a pad where it is shorter."""
    length = 17
    if x.shape[-1] > length:
        x = x.index_select(dim=-1, index=torch.arange(length, device=x.device))
    if x.shape[-1] < length:
        widths = [(0, 0)] * x.ndim
        widths[-1] = (0, length - x.shape[-1])
        x = F.pad(x, [p for sizes in widths[::-1] for p in sizes])
    return x
@forward(X4, **seq(X4))
def A5080SlidingMeans(self, x):
    """Kaldi's cepstral means over a moving window that is shifted at the ends, by running sums and gathers."""
    n, t, c = x.shape
    s = F.pad(x.cumsum(1), (0, 0, 1, 0))
    i = torch.arange(t)
    start = (i - 5).clamp(min=0)
    end = start + 11
    over = (end - t).clamp(min=0)
    start, end = (start - over).clamp(min=0), end.clamp(max=t)
    return x - (s[:, end] - s[:, start]) / (end - start)[:, None]
@forward(X4, **seq(X4))
def A5081DeltasOfDeltas(self, x):
    """torchaudio's compute_deltas over a window of five, twice, with replicated ends."""
    y = x.mT
    n = 2
    denominator = n * (n + 1) * (2 * n + 1) / 3
    kernel = torch.arange(-n, n + 1, 1.0).repeat(4, 1, 1)
    first = F.conv1d(F.pad(y, (n, n), mode="replicate"), kernel, groups=4) / denominator
    return first, F.conv1d(F.pad(first, (n, n), mode="replicate"), kernel, groups=4) / denominator
@attack(X4, **seq(X4))
class A5082PositionsByConvolution(nn.Module):
    """wav2vec 2.0: a grouped convolution with an even kernel under weight norm along its last axis, whose last frame is cut."""
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 6, padding=3, groups=2), name="weight", dim=2)
        self.remove = 1 if self.conv.kernel_size[0] % 2 == 0 else 0
    def forward(self, x):
        y = self.conv(x.transpose(1, 2))
        return x + F.gelu(y[:, :, : -self.remove] if self.remove > 0 else y).transpose(1, 2)
@attack(X4, MT, **seq(X4, MT))
class A5083LocationSensitive(nn.Module):
    """Three steps of Tacotron 2: the sum of former weights is convolved, padding has minus infinity."""
    def __init__(self):
        super().__init__()
        self.cell, self.q, self.loc = nn.LSTMCell(8, 6), nn.Linear(6, 4), nn.Conv1d(2, 4, 5, padding=2, bias=False)
    def forward(self, x, m):
        n, t, _ = x.shape
        m = m & (torch.arange(t) > 0)
        h, c = x.new_zeros(n, 6), x.new_zeros(n, 6)
        w = total = x.new_zeros(n, t)
        context, out = x.new_zeros(n, 4), []
        for _ in range(3):
            h, c = self.cell(torch.cat([context, x.mean(1)], -1), (h, c))
            e = torch.tanh(self.q(h)[:, None] + self.loc(torch.stack([w, total], 1)).mT + x).sum(-1)
            w = e.masked_fill(m, -float("inf")).softmax(1)
            total = total + w
            context = torch.bmm(w[:, None], x)[:, 0]
            out.append(context)
        return torch.stack(out, 1), total
@forward(X4, MT, **seq(X4, MT))
def A5084MaskWhereAllIsHidden(self, x, m):
    """Mask2Former: rows that would attend to nothing attend to all, by an index of booleans."""
    hidden = m[:, None] | (x @ x.mT).sigmoid().lt(0.5)
    hidden[torch.where(hidden.sum(-1) == hidden.shape[-1])] = False
    return (x @ x.mT).masked_fill(hidden, -math.inf).softmax(-1) @ x, hidden
@forward("m:bool[N,H,W]", dims="N=1:1:2 H=1:8:16 W=1:9:16", feeds=tuple(values_at("m:bool[N,H,W]", N=2, H=h, W=w) for h, w in ((1, 1), (1, 16), (16, 1), (7, 13))))
def A5085ReferencePointsByValidRatio(self, m):
    """Deformable DETR: points of a level over the valid share of the padded picture, which may be none."""
    n, h, w = m.shape
    vh, vw = (~m[:, :, 0]).sum(1).float() / h, (~m[:, 0]).sum(1).float() / w
    y, x = torch.meshgrid(torch.linspace(0.5, h - 0.5, h), torch.linspace(0.5, w - 0.5, w), indexing="ij")
    y = y.reshape(-1)[None] / (vh[:, None] * h)
    x = x.reshape(-1)[None] / (vw[:, None] * w)
    return torch.stack((x, y), -1)
@forward("m:bool[N,H,W]", dims="N=1:1:2 H=1:8:40 W=1:9:40", feeds=tuple(values_at("m:bool[N,H,W]", N=2, H=h, W=w) for h, w in ((1, 1), (1, 40), (39, 1), (7, 13), (40, 40))))
def A5086ProposalsOfTheEncoder(self, m):
    """Two-stage proposals: only those within one hundredth of the borders, logits of boxes, infinity elsewhere."""
    n, h, w = m.shape
    y, x = torch.meshgrid(torch.linspace(0, h - 1, h), torch.linspace(0, w - 1, w), indexing="ij")
    grid = (torch.stack([x, y], -1)[None] + 0.5) / torch.tensor([w, h])
    p = torch.cat([grid, torch.ones_like(grid) * 0.05], -1).view(1, -1, 4).expand(n, -1, 4)
    valid = ((p > 0.01) & (p < 0.99)).all(-1, keepdim=True)
    return torch.log(p / (1 - p)).masked_fill(m.flatten(1)[..., None], float("inf")).masked_fill(~valid, float("inf")), valid
@forward("x:float32[N,1,H,W]", **pix("x:float32[N,1,H,W]"))
def A5087SuppressionOfSuperpoint(self, x):
    """simple_nms: maxima, what they suppress, and new maxima of what is left, twice; plateaus stay."""
    pool = lambda v: F.max_pool2d(v, 5, 1, 2)
    zeros, mask = torch.zeros_like(x), x == pool(x)
    for _ in range(2):
        near = pool(mask.float()) > 0
        left = torch.where(near, zeros, x)
        mask = mask | ((left == pool(left)) & ~near)
    scores = torch.where(mask, x, zeros)
    b = 2
    scores[..., :b, :] = scores[..., -b:, :] = -1
    scores[..., :b] = scores[..., -b:] = -1
    return scores
@forward(X4, "y:float32[N,S,4]", dims="N=1:1:2 T=1:8:20 S=1:9:20", kinds=FEW, feeds=tuple(values_at(X4, "y:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((1, 1), (1, 20), (20, 1), (5, 19))))
def A5088MutualMatches(self, x, y):
    """LoFTR: a double softmax, mutual maxima above a threshold, a border that is written by negative slices, the place of each match."""
    s = x @ y.mT / 0.1
    conf = s.softmax(1) * s.softmax(2)
    mask = conf > 0.2
    mask[:, :1] = False
    mask[:, :, -1:] = False
    mask = mask * (conf == conf.max(2, keepdim=True)[0]) * (conf == conf.max(1, keepdim=True)[0])
    valid, place = mask.max(2)
    return valid, place, conf.gather(2, place[..., None])[..., 0] * valid
@forward(X4, "y:float32[N,S,4]", dims="N=1:1:2 T=1:8:20 S=1:9:20", kinds=FEW, feeds=tuple(values_at(X4, "y:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((1, 1), (1, 20), (20, 1), (5, 19))))
def A5089OptimalTransport(self, x, y):
    """SuperGlue: a dustbin, marginals by logarithms of sizes, five rounds in logarithms, mutual places or minus one."""
    n, t, s = x.shape[0], x.shape[1], y.shape[1]
    z = F.pad(x @ y.mT, (0, 1, 0, 1), value=0.5)
    norm = -x.new_tensor(t + s).log()
    mu = torch.cat([norm.expand(t), x.new_tensor(s).log()[None] + norm]).expand(n, -1)
    nu = torch.cat([norm.expand(s), x.new_tensor(t).log()[None] + norm]).expand(n, -1)
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for _ in range(5):
        u = mu - torch.logsumexp(z + v[:, None], 2)
        v = nu - torch.logsumexp(z + u[..., None], 1)
    z = z + u[..., None] + v[:, None] - norm
    a, b = z[:, :-1, :-1].max(2), z[:, :-1, :-1].max(1)
    mutual = torch.arange(t)[None] == b.indices.gather(1, a.indices)
    score = torch.where(mutual, a.values.exp(), 0.0)
    return torch.where(mutual & (score > 0.05), a.indices, -1), score
@forward("w:float32[N,T]=0:1", **seq("w:float32[N,T]=0:1", low=2))
def A5090SampledByTheDensity(self, w):
    """NeRF's sample_pdf at even places: places found from the right, neighbours clamped, small mass replaced by one."""
    n, t = w.shape
    bins = torch.linspace(0, 1, t + 1).expand(n, t + 1)
    pdf = (w + 1e-5) / (w + 1e-5).sum(-1, keepdim=True)
    cdf = F.pad(pdf.cumsum(-1), (1, 0))
    u = torch.linspace(0.03, 0.97, 7).expand(n, 7).contiguous()
    inds = torch.searchsorted(cdf.contiguous(), u, right=True)
    low, up = (inds - 1).clamp(min=0), inds.clamp(max=cdf.shape[-1] - 1)
    g = lambda v: (v.gather(1, low), v.gather(1, up))
    (c0, c1), (b0, b1) = g(cdf), g(bins)
    den = c1 - c0
    den = torch.where(den < 1e-5, torch.ones_like(den), den)
    return b0 + (u - c0) / den * (b1 - b0)
@forward("x:float32[N,2,H,W]", **pix(IMAGE, own=(values_at(IMAGE, N=2, H=1, W=1),)))
def A5091EnergyOfSimam(self, x):
    """SimAM divides by the pixels less one, which is nothing for one pixel."""
    n = x.shape[2] * x.shape[3] - 1
    d = (x - x.mean((2, 3), keepdim=True)).pow(2)
    return x * torch.sigmoid(d / (4 * (d.sum((2, 3), keepdim=True) / n + 1e-4)) + 0.5)
@attack(IMAGE, **pix(IMAGE, low=2, high=12))
class A5092ReassembledFeatures(nn.Module):
    """CARAFE: kernels shuffled up, softmax over the window, windows of the map repeated to the nearest."""
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(2, 36, 3, padding=1)
    def forward(self, x):
        n, c, h, w = x.shape
        k = F.pixel_shuffle(self.enc(x), 2).softmax(1)
        u = F.interpolate(x, scale_factor=2, mode="nearest")
        u = F.unfold(u, 3, dilation=2, padding=2).view(n, c, 9, h * 2, w * 2)
        return torch.einsum("nkhw,nckhw->nchw", k, u)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:8:16 W=1:9:16", kinds=("normal", "descending"), feeds=tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h, w in ((1, 1), (1, 5), (2, 4), (3, 3), (16, 16))))
def A5093UncertainPoints(self, x):
    """PointRend: the least certain places of a map twice as large, as many as there are, at most nine, refined and put back."""
    y = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    n, c, h, w = y.shape
    top = y.sort(1, descending=True).values
    uncertain = (top[:, 1] - top[:, 0]).flatten(1) - torch.arange(h * w) % 17 * 0.01 - torch.arange(h * w) * 0.25
    idx = uncertain.topk(min(h * w, 9), 1).indices
    px, py = (idx % w + 0.5) / w, torch.div(idx, w, rounding_mode="floor").add(0.5) / h
    fine = F.grid_sample(x, torch.stack([px, py], -1)[:, :, None] * 2 - 1, align_corners=False)[..., 0]
    return y.flatten(2).scatter(2, idx[:, None].expand(-1, c, -1), fine * 0.5).view(n, c, h, w)
@forward("r:float32[N,3,3]", dims="N=1:2:9", kinds=("normal", "ones", "halves"), feeds=(lambda: {"r": np.stack([np.eye(3), np.diag([1, -1, -1]), np.diag([-1, 1, -1]), np.diag([-1, -1, 1])]).astype(np.float32)},))
def A5094QuaternionOfAMatrix(self, r):
    """PyTorch3D: four candidates, the best conditioned one taken by a mask of booleans."""
    m00, m01, m02, m10, m11, m12, m20, m21, m22 = torch.unbind(r.reshape(-1, 9), -1)
    s = torch.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], -1)
    q = torch.zeros_like(s)
    q[s > 0] = torch.sqrt(s[s > 0])
    rows = [[q[:, 0] ** 2, m21 - m12, m02 - m20, m10 - m01], [m21 - m12, q[:, 1] ** 2, m10 + m01, m02 + m20], [m02 - m20, m10 + m01, q[:, 2] ** 2, m12 + m21], [m10 - m01, m20 + m02, m21 + m12, q[:, 3] ** 2]]
    c = torch.stack([torch.stack(v, -1) for v in rows], -2) / (2.0 * q[..., None].max(torch.tensor(0.1)))
    out = c[F.one_hot(q.argmax(-1), 4) > 0.5, :].reshape(-1, 4)
    return torch.where(out[..., 0:1] < 0, -out, out)
@forward(IMAGE, **pix(IMAGE))
def A5095DifferentiableBinarisation(self, x):
    """DBNet: a steep step by an exponential that overflows, and its dilation by two."""
    b = torch.reciprocal(1 + torch.exp(-50 * (x[:, :1] * 9 - x[:, 1:])))
    return b, F.max_pool2d((b > 0.5).float(), 2, 1, 1)[..., 1:, 1:]
@forward(X4, **seq(X4))
def A5096NeighboursOfPoints(self, x):
    """DGCNN: as many of the nearest as there are, at most five, their differences and their maximum."""
    n, t, c = x.shape
    inner = -2 * x @ x.mT
    xx = (x**2).sum(-1, keepdim=True)
    idx = (-xx - inner - xx.mT).topk(min(5, t), -1).indices
    flat = (idx + torch.arange(n).view(-1, 1, 1) * t).view(-1)
    f = x.reshape(n * t, c)[flat].view(n, t, -1, c)
    return (f - x[:, :, None]).square().sum((2, 3)), f.shape[2] * x[:, :1]
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:8:16 W=1:9:16", kinds=FEW, feeds=tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h in range(1, 17) for w in (1, h, 17 - h)))
def A5097PatchesOfAnySize(self, x):
    """NaViT-like: pads to a patch, a mask of patches that have a real pixel, positions by fractions of each side, cut to a table."""
    n, c, h, w = x.shape
    p = 3
    ph, pw = math.ceil(h / p), math.ceil(w / p)
    y = F.pad(x, (0, pw * p - w, 0, ph * p - h))
    tokens = y.view(n, c, ph, p, pw, p).permute(0, 2, 4, 1, 3, 5).reshape(n, ph * pw, -1)
    edges = torch.arange(1 / 7, 1.0, 1 / 7)
    fh, fw = torch.arange(0, 1 - 1e-6, 1 / ph), torch.arange(0, 1 - 1e-6, 1 / pw)
    place = (torch.bucketize(fh, edges, right=True)[:, None] * 7 + torch.bucketize(fw, edges, right=True)).flatten()
    return tokens.mean(-1), place
@forward("x:float32[N,T]", **seq("x:float32[N,T]", low=8))
def A5098FramesByStrides(self, x):
    """Kaldi's frames with snipped edges by as_strided, DC off, emphasis with the first repeated, padded to a power of two."""
    n, t = x.shape
    m = 1 + (t - 8) // 3
    f = x.contiguous().as_strided((n, m, 8), (t, 3, 1))
    f = f - f.mean(2, keepdim=True)
    f = f - 0.97 * F.pad(f, (1, 0), mode="replicate")[..., :-1]
    return F.pad(f * torch.hann_window(8, periodic=False).pow(0.85), (0, 8)), torch.max(f.pow(2).sum(2), torch.tensor(torch.finfo(torch.float).eps)).log()
@attack("x:float32[N,T,4]", "mem:float32[N,S,4]", dims="N=1:1:2 T=1:5:12 S=0:6:12", kinds=FEW, feeds=tuple(values_at(X4, "mem:float32[N,S,4]", N=1, T=t, S=s) for t in (1, 5, 12) for s in (0, 1, 7, 8, 9, 12)))
class A5099ChunkWithLeftContext(nn.Module):
    """WeNet's forward_chunk: a cache of required size by a negative start, all of it, or none."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x, mem):
        keys = torch.cat([mem, self.lin(x)], 1)
        required, size = 8, keys.size(1)
        start = 0 if required < 0 else size if required == 0 else max(size - required, 0)
        new = keys[:, start:]
        pos = torch.arange(mem.size(1) - keys.size(1), 0) + size
        return (x @ keys.mT).softmax(-1) @ keys, new, pos
@forward("a:float32[N,T,4]=0:1", "b:float32[N,K,4]=0:1", dims="N=1:1:2 T=1:6:12 K=1:4:9", kinds=("unit", "zeros", "tenths", "ones"), feeds=tuple(values_at("a:float32[N,T,4]=0:1", "b:float32[N,K,4]=0:1", N=1, T=t, K=k) for t, k in ((1, 1), (12, 1), (1, 9), (12, 9))))
def A5100MatcherOfDetectron(self, a, b):
    """Detectron2's Matcher: below, between and above thresholds, low-quality matches kept where a box is anyone's best, ties too."""
    lt, rb = torch.max(a[:, :, None, :2], b[:, None, :, :2]), torch.min(a[:, :, None, 2:], b[:, None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda v: (v[..., 2:] - v[..., :2]).prod(-1)
    iou = torch.where(inter > 0, inter / (area(a)[..., None] + area(b)[:, None] - inter), torch.zeros(1))
    vals, matches = iou.max(2)
    labels = torch.full_like(matches, 1)
    for l, low, high in zip((0, -1, 1), (-math.inf, 0.3, 0.7), (0.3, 0.7, math.inf)):
        labels[(vals >= low) & (vals < high)] = l
    best = (iou == iou.amax(1, keepdim=True)).any(2)
    labels[best] = 1
    return matches, labels, vals
