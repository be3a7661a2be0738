"""Points, rays, graphs, filters, warps and heat maps in the manner of public repositories."""
# ruff: noqa: E501, RUF005 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.modules.fortyseventh.followups_end import farthest_point_sample


class Embedder:
    """NeRF's, with a list of closures."""

    def __init__(self, **kwargs):
        self.kwargs = kwargs
        self.create_embedding_fn()

    def create_embedding_fn(self):
        embed_fns, d, out_dim = [], self.kwargs["input_dims"], 0
        if self.kwargs["include_input"]:
            embed_fns.append(lambda x: x)
            out_dim += d
        freq_bands = 2.0 ** torch.linspace(0.0, self.kwargs["max_freq_log2"], steps=self.kwargs["num_freqs"])
        for freq in freq_bands:
            for p_fn in self.kwargs["periodic_fns"]:
                embed_fns.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))
                out_dim += d
        self.embed_fns, self.out_dim = embed_fns, out_dim

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


@attack("rays:float32[R,6]=-1:1", dims="R=1:4:9", kinds=("normal", "unit", "halves", "zeros"))
class A7800NerfRender(nn.Module):
    """Stratified samples, positional encoding, raw2outputs with cumprod of 1-alpha and a 1e10 far distance, sample_pdf's searchsorted."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = Embedder(include_input=True, input_dims=3, max_freq_log2=3, num_freqs=4, periodic_fns=[torch.sin, torch.cos])
        self.net = nn.Sequential(nn.Linear(self.emb.out_dim, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, rays):
        o, d = rays[..., :3], rays[..., 3:]
        t = torch.linspace(0.0, 1.0, steps=6)
        z = 1.0 / (1.0 / 2.0 * (1.0 - t) + 1.0 / 6.0 * t)
        z = z.expand([rays.shape[0], 6])
        pts = o[..., None, :] + d[..., None, :] * z[..., :, None]
        raw = self.net(self.emb.embed(pts.reshape(-1, 3))).reshape(list(pts.shape[:-1]) + [4])
        dists = z[..., 1:] - z[..., :-1]
        dists = torch.cat([dists, torch.Tensor([1e10]).expand(dists[..., :1].shape)], -1)
        dists = dists * torch.norm(d[..., None, :], dim=-1)
        alpha = 1.0 - torch.exp(-F.relu(raw[..., 3]) * dists)
        w = alpha * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        rgb = torch.sum(w[..., None] * torch.sigmoid(raw[..., :3]), -2)
        depth, acc = torch.sum(w * z, -1), torch.sum(w, -1)
        disp = 1.0 / torch.max(1e-10 * torch.ones_like(depth), depth / (acc + 1e-5))
        return rgb + (1.0 - acc[..., None]), disp, w


@forward("xyz:float32[B,N,3]", dims="B=1:1:2 N=8:12:20", kinds=("normal", "unit", "mixed-scales", "positive"))
def A7801PointnetSampleAndGroup(self, xyz):
    """farthest_point_sample (from index 0), query_ball_point with N as the mark of nothing, index_points, as PointNet++ in PyTorch writes them."""
    b, n, _ = xyz.shape
    batch = torch.arange(b, dtype=torch.long)
    centroids = farthest_point_sample(xyz, 4)
    new = xyz[batch[:, None], centroids]
    sq = torch.sum((new[:, :, None] - xyz[:, None]) ** 2, -1)
    group = torch.arange(n, dtype=torch.long).view(1, 1, n).repeat([b, 4, 1])
    group[sq > 1.0**2] = n
    group = group.sort(dim=-1)[0][:, :, :5]
    first = group[:, :, 0].view(b, 4, 1).repeat([1, 1, 5])
    mask = group == n
    group[mask] = first[mask]
    grouped = xyz[batch[:, None, None], group] - new[:, :, None]
    return centroids, grouped.max(2)[0], group


@forward("x:float32[B,3,N]", dims="B=1:1:3 N=6:9:15", kinds=("normal", "unit", "positive"))
def A7802DgcnnKnn(self, x):
    """DGCNN's get_graph_feature: knn by the expanded square, flat indices with idx_base, cat of differences."""
    k = 5
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x**2, dim=1, keepdim=True)
    pd = -xx - inner - xx.transpose(2, 1)
    idx = pd.topk(k=k, dim=-1)[1]
    b, d, n = x.size()
    idx = (idx + torch.arange(0, b).view(-1, 1, 1) * n).view(-1)
    xt = x.transpose(2, 1).contiguous()
    feature = xt.view(b * n, -1)[idx, :].view(b, n, k, d)
    xt = xt.view(b, n, 1, d).repeat(1, 1, k, 1)
    return torch.cat((feature - xt, xt), dim=3).permute(0, 3, 1, 2).contiguous().amax(-1)


@attack("x:float32[V,4]", "e:int64[2,E]=0:3", dims="V=4:6:9 E=1:7:12", kinds=FINITE)
class A7803GatSegmentSoftmax(nn.Module):
    """GAT with segment softmax: scatter_reduce amax, exp, index_add; isolated nodes; degree normalisation with inf set to zero; self loops added."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.a = nn.Linear(4, 6), nn.Linear(12, 1, bias=False)

    def forward(self, x, e):
        v = x.size(0)
        loop = torch.arange(v)
        src, dst = torch.cat([e[0], loop]), torch.cat([e[1], loop])
        h = self.f(x)
        s = F.leaky_relu(self.a(torch.cat([h[src], h[dst]], -1)), 0.2).squeeze(-1)
        top = torch.full((v,), float("-inf")).scatter_reduce(0, dst, s, "amax")
        ex = (s - top[dst]).exp()
        den = torch.zeros(v).index_add_(0, dst, ex)
        att = ex / (den[dst] + 1e-16)
        out = torch.zeros_like(h).index_add(0, dst, h[src] * att[:, None])
        deg = torch.zeros(v).scatter_add_(0, e[1], torch.ones(e.size(1)))
        inv = deg.pow(-0.5)
        inv[inv == float("inf")] = 0
        gcn = torch.zeros_like(h).scatter_add_(0, e[1][:, None].expand(-1, 6), h[e[0]] * (inv[e[0]] * inv[e[1]])[:, None])
        mean = torch.zeros_like(h).scatter_reduce_(0, e[1][:, None].expand(-1, 6), h[e[0]], "mean", include_self=False)
        return out, gcn, mean


@attack("z:float32[N,T,2]", dims="N=1:2:3 T=1:4:6", kinds=("normal", "unit", "halves", "zeros", "positive"))
class A7804KalmanFilter(nn.Module):
    """A constant-velocity filter over T steps: predict, gain by torch.linalg.solve of a 2x2, Joseph form; missing measurements are NaN-free by a flag of zero."""

    def __init__(self) -> None:
        super().__init__()
        f = torch.eye(4)
        f[0, 2] = f[1, 3] = 0.1
        self.register_buffer("f", f)
        self.register_buffer("h", torch.eye(2, 4))
        self.register_buffer("q", torch.eye(4) * 0.01)
        self.register_buffer("r", torch.eye(2) * 0.1)

    def forward(self, z):
        n, t, _ = z.shape
        x, p = torch.zeros(n, 4, 1), torch.eye(4).expand(n, 4, 4) * 10
        out = []
        for i in range(t):
            x, p = self.f @ x, self.f @ p @ self.f.T + self.q
            s = self.h @ p @ self.h.T + self.r
            det = s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] * s[:, 1, 0]
            inv = torch.stack([torch.stack([s[:, 1, 1], -s[:, 0, 1]], -1), torch.stack([-s[:, 1, 0], s[:, 0, 0]], -1)], -2) / det[:, None, None]
            k = p @ self.h.T @ inv
            x = x + k @ (z[:, i, :, None] - self.h @ x)
            i_kh = torch.eye(4) - k @ self.h
            p = i_kh @ p @ i_kh.mT + k @ self.r @ k.mT
            out.append(x.squeeze(-1))
        return torch.stack(out, 1), p


@attack("x:float32[N,2,H,W]", "m:float32[N,3,3]=-0.1:0.1", dims="N=1:1:2 H=4:6:9 W=3:5:8", kinds=("normal", "unit", "halves", "zeros"))
class A7805HomographyWarp(nn.Module):
    """kornia's warp_perspective: normalising matrices by size (H - 1), the inverse, homogeneous divide with eps, grid_sample align_corners."""

    def norm(self, h, w):
        eps = 1e-14
        wd = eps if w == 1 else w - 1.0
        hd = eps if h == 1 else h - 1.0
        t = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]])
        t[0, 0] = t[0, 0] * 2.0 / wd
        t[1, 1] = t[1, 1] * 2.0 / hd
        return t.unsqueeze(0)

    def forward(self, x, m):
        n, _, h, w = x.shape
        m = m + torch.eye(3)
        nm = self.norm(h, w)
        dst = nm @ (m @ torch.linalg.inv(nm))
        src = torch.linalg.inv(dst)
        xs, ys = torch.linspace(-1, 1, w), torch.linspace(-1, 1, h)
        grid = torch.stack(torch.meshgrid([xs, ys], indexing="ij"), dim=-1).permute(1, 0, 2).unsqueeze(0).expand(n, h, w, 2)
        p = F.pad(grid.reshape(n, -1, 2), [0, 1], "constant", 1.0) @ src.transpose(1, 2)
        z = p[..., -1:]
        scale = torch.where(torch.abs(z) > 1e-8, 1.0 / (z + 1e-8), torch.ones_like(z))
        return F.grid_sample(x, (scale * p[..., :-1]).view(n, h, w, 2), align_corners=True, mode="bilinear", padding_mode="zeros")


@forward("a:float32[N,4,H,W]", "b:float32[N,4,H,W]", "c:float32[N,2,H,W]=-2:2", dims="N=1:1:2 H=8:10:13 W=8:9:12", kinds=("normal", "unit", "halves"))
def A7806RaftCorrelation(self, a, b, c):
    """RAFT's CorrBlock: all-pairs volume, an average pyramid of two, lookups with bilinear_sampler in a 3x3 window."""
    n, d, h, w = a.shape
    corr = torch.matmul(a.view(n, d, h * w).transpose(1, 2), b.view(n, d, h * w)).view(n, h, w, 1, h, w) / torch.sqrt(torch.tensor(d).float())
    corr = corr.reshape(n * h * w, 1, h, w)
    pyramid = [corr, F.avg_pool2d(corr, 2, stride=2)]
    gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    coords = (torch.stack([gx, gy]).float()[None] + c).permute(0, 2, 3, 1)
    out = []
    for i in range(2):
        r = 1
        dx, dy = torch.linspace(-r, r, 2 * r + 1), torch.linspace(-r, r, 2 * r + 1)
        delta = torch.stack(torch.meshgrid(dy, dx, indexing="ij"), axis=-1)
        cl = coords.reshape(n * h * w, 1, 1, 2) / 2**i + delta.view(1, 2 * r + 1, 2 * r + 1, 2)
        hh, ww = pyramid[i].shape[-2:]
        xg, yg = cl.split([1, 1], dim=-1)
        grid = torch.cat([2 * xg / (ww - 1) - 1, 2 * yg / (hh - 1) - 1], dim=-1)
        out.append(F.grid_sample(pyramid[i], grid, align_corners=True).view(n, h, w, -1))
    return torch.cat(out, -1).permute(0, 3, 1, 2).contiguous().float()


@forward("x:float32[N,3,H,W]", dims="N=1:2:3 H=3:6:9 W=3:5:8", kinds=("normal", "unit", "halves", "ascending", "zeros"))
def A7807HeatmapDecoding(self, x):
    """HRNet's get_max_preds with the quarter offset by the sign of neighbours (clamped indices), and soft-argmax, DARK's taylor step."""
    n, k, h, w = x.shape
    flat = x.reshape(n, k, -1)
    maxv, idx = flat.max(2, keepdim=True)
    px, py = idx % w, torch.div(idx, w, rounding_mode="floor")
    preds = torch.cat([px, py], 2).float() * (maxv > 0.0).repeat(1, 1, 2)
    pxc, pyc = px.clamp(1, w - 2), py.clamp(1, h - 2)
    take = lambda a, b: flat.gather(2, b * w + a)  # noqa: E731
    dx = take(pxc + 1, pyc) - take(pxc - 1, pyc)
    dy = take(pxc, pyc + 1) - take(pxc, pyc - 1)
    inner = (px > 0) & (px < w - 1) & (py > 0) & (py < h - 1)
    off = torch.where(inner, torch.cat([dx.sign(), dy.sign()], 2) * 0.25, torch.zeros(()))
    p = F.softmax(flat * 10, 2).view(n, k, h, w)
    sx = (p.sum(2) * torch.linspace(0, w - 1, w)).sum(-1)
    sy = (p.sum(3) * torch.arange(h, dtype=torch.float32)).sum(-1)
    return preds + off, torch.stack([sx, sy], -1), maxv


@attack("x:float32[N,4,H,W]", "o:float32[N,18,H,W]=-2:2", dims="N=1:1:2 H=3:5:7 W=3:4:6", kinds=("normal", "unit", "halves"))
class A7808DeformableByHand(nn.Module):
    """Deformable convolution v1 by gather of the four corners with clamp (the older PyTorch repositories), padded by one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 3, kernel_size=3, stride=3, bias=False)

    def forward(self, x, o):
        n, c, h, w = x.shape
        x = F.pad(x, (1, 1, 1, 1))
        hp, wp = x.shape[-2:]
        py, px = torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij")
        pn = torch.cat([py.flatten(), px.flatten()]).view(1, 18, 1, 1).type_as(o)
        y0, x0 = torch.meshgrid(torch.arange(1, h + 1), torch.arange(1, w + 1), indexing="ij")
        p0 = torch.cat([y0.flatten().view(1, 1, h, w).repeat(1, 9, 1, 1), x0.flatten().view(1, 1, h, w).repeat(1, 9, 1, 1)], 1).type_as(o)
        p = (p0 + pn + o).permute(0, 2, 3, 1)
        lt = p.floor()
        rb = lt + 1
        cl = lambda q: torch.cat([q[..., :9].clamp(0, hp - 1), q[..., 9:].clamp(0, wp - 1)], -1)  # noqa: E731
        lt, rb, p = cl(lt).long(), cl(rb).long(), cl(p)
        lb, rt = torch.cat([lt[..., :9], rb[..., 9:]], -1), torch.cat([rb[..., :9], lt[..., 9:]], -1)
        weight = lambda q, sy, sx: (1 + sy * (q[..., :9].type_as(p) - p[..., :9])) * (1 + sx * (q[..., 9:].type_as(p) - p[..., 9:]))  # noqa: E731

        def at(q):
            index = (q[..., :9] * wp + q[..., 9:]).unsqueeze(1).expand(-1, c, -1, -1, -1).reshape(n, c, -1)
            return x.reshape(n, c, -1).gather(-1, index).view(n, c, h, w, 9)

        y = weight(lt, 1, 1)[:, None] * at(lt) + weight(rb, -1, -1)[:, None] * at(rb) + weight(lb, 1, -1)[:, None] * at(lb) + weight(rt, -1, 1)[:, None] * at(rt)
        y = torch.cat([y[..., s : s + 3].contiguous().view(n, c, h, w * 3) for s in range(0, 9, 3)], -1).contiguous().view(n, c, h * 3, w * 3)
        return self.conv(y)


@forward("b:float32[N,K,4]=0:20", "s:float32[N,K]=0:1", "anchors:float32[K,4]=1:16", dims="N=1:2:3 K=2:6:10", kinds=("normal", "unit", "halves", "ones"))
def A7809BoxesAndIou(self, b, s, anchors):
    """encode/decode as torchvision's BoxCoder with the clip of log(1000/16), IoU and GIoU matrices, soft-NMS weights as matrix NMS."""
    x1, y1, w, h = b.unbind(-1)
    boxes = torch.stack([x1, y1, x1 + w, y1 + h], -1)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
    lt, rb = torch.max(boxes[:, :, None, :2], boxes[:, None, :, :2]), torch.min(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    union = area[:, :, None] + area[:, None] - inter
    iou = inter / union.clamp(min=1e-6)
    elt, erb = torch.min(boxes[:, :, None, :2], boxes[:, None, :, :2]), torch.max(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    enc = (erb - elt).clamp(min=0).prod(-1)
    giou = iou - (enc - union) / enc.clamp(min=1e-6)
    order = s.argsort(dim=1, descending=True, stable=True)
    sorted_iou = iou.gather(1, order[..., None].expand_as(iou)).gather(2, order[:, None].expand_as(iou)).triu(1)
    comp = sorted_iou.amax(1)
    decay = (torch.exp(-2 * sorted_iou**2) / torch.exp(-2 * comp[:, :, None] ** 2)).amin(1)
    aw, ah = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
    dw = (b[..., 2] / 5).clamp(max=4.135166556742356)
    dec = torch.stack([b[..., 0] / 10 * aw + anchors[:, 0] + 0.5 * aw, dw.exp() * aw, b[..., 1] / 10 * ah], -1)
    return giou, s.gather(1, order) * decay, dec
