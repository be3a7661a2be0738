"""Small detectors, segmenters, key points, flow and stereo, with their post-processing in forward, as public code writes them."""
# ruff: noqa: E501, E731, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=16:32:48 W=16:24:40", kinds=("normal", "unit", "halves", "zeros"))
class A7442YoloV5Detect(nn.Module):
    """YOLOv5's Detect: grids cached in lists and made again where the shape differs, xy and wh with in-place writes, view of three anchors."""

    stride = None

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.nc, self.nl, self.na, self.no = 2, 2, 3, 7
        self.stride = torch.tensor([8.0, 16.0])
        self.grid = [torch.empty(0) for _ in range(2)]
        self.anchor_grid = [torch.empty(0) for _ in range(2)]
        self.register_buffer("anchors", torch.tensor([10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119]).float().view(2, -1, 2) / 8)
        self.b = nn.ModuleList([nn.Conv2d(3, 8, 7, 8, 3), nn.Conv2d(8, 8, 3, 2, 1)])
        self.m = nn.ModuleList(nn.Conv2d(8, 21, 1) for _ in range(2))

    def _make_grid(self, nx=20, ny=20, i=0):
        d, t = self.anchors[i].device, self.anchors[i].dtype
        shape = 1, self.na, ny, nx, 2
        y, x = torch.arange(ny, device=d, dtype=t), torch.arange(nx, device=d, dtype=t)
        yv, xv = torch.meshgrid(y, x, indexing="ij")
        grid = torch.stack((xv, yv), 2).expand(shape) - 0.5
        anchor_grid = (self.anchors[i] * self.stride[i]).view((1, self.na, 1, 1, 2)).expand(shape)
        return grid, anchor_grid

    def forward(self, x):
        f, z, fs = x, [], []
        for i in range(self.nl):
            f = self.b[i](f)
            fs.append(self.m[i](f))
        for i in range(self.nl):
            bs, _, ny, nx = fs[i].shape
            fs[i] = fs[i].view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
            if self.grid[i].shape[2:4] != fs[i].shape[2:4]:
                self.grid[i], self.anchor_grid[i] = self._make_grid(nx, ny, i)
            y = fs[i].sigmoid()
            y[..., 0:2] = (y[..., 0:2] * 2 + self.grid[i]) * self.stride[i]
            y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * self.anchor_grid[i]
            z.append(y.view(bs, self.na * nx * ny, self.no))
        return torch.cat(z, 1), fs


@forward("h:float32[N,3,H,W]=-4:4", "wh:float32[N,2,H,W]=0:4", "off:float32[N,2,H,W]=0:1", dims="N=1:1:2 H=4:8:11 W=5:9:12", kinds=FINITE)
def A7443CenterNetTwoStageTopk(self, h, wh, off):
    """CenterNet decode: sigmoid_ in place, clamp, peaks, topk in classes then over them, gather_feat with expand, // and % by W as int and float."""
    h = h.sigmoid_().clamp(1e-4, 1 - 1e-4)
    keep = (F.max_pool2d(h, 3, stride=1, padding=1) == h).float()
    h = h * keep
    b, c, H, W = h.size()
    ts, ti = torch.topk(h.view(b, c, -1), 5)
    ti = ti % (H * W)
    ys, xs = (ti / W).int().float(), (ti % W).int().float()
    s, i = torch.topk(ts.view(b, -1), 5)
    cls = (i / 5).int()
    g = lambda f, i: f.gather(1, i.unsqueeze(2).expand(i.size(0), i.size(1), f.size(2)))
    inds = g(ti.view(b, -1, 1), i).view(b, 5)
    ys, xs = g(ys.view(b, -1, 1), i).view(b, 5), g(xs.view(b, -1, 1), i).view(b, 5)
    t = lambda f: g(f.permute(0, 2, 3, 1).contiguous().view(b, -1, 2), inds)
    o, w = t(off), t(wh)
    xs, ys = xs.view(b, 5, 1) + o[..., 0:1], ys.view(b, 5, 1) + o[..., 1:2]
    return torch.cat([xs - w[..., :1] / 2, ys - w[..., 1:] / 2, xs + w[..., :1] / 2, ys + w[..., 1:] / 2, s[..., None], cls.float()[..., None]], 2)


@forward("s:float32[M]=0.05:1", "l:int64[M]=0:2", "m:float32[M,H,W]=0:1", dims="M=1:4:9 H=3:5:8 W=4:6:7", kinds=("unit", "normal", "positive", "ones"))
def A7444MatrixNms(self, s, l, m):
    """SOLOv2's matrix NMS: sort, masks by matmul, triu by diagonal=1, labels expanded and compared, compensating IoU, gaussian decay, min over columns."""
    n = len(l)
    s, i = torch.sort(s, descending=True, stable=True)
    m, l = (m[i] > 0.5).float(), l[i]
    area = m.sum((1, 2)).float()
    f = m.reshape(n, -1)
    inter = torch.mm(f, f.transpose(1, 0))
    e = area.expand(n, n)
    iou = (inter / (e + e.transpose(1, 0) - inter + 1e-6)).triu(diagonal=1)
    lm = l.expand(n, n)
    lm = (lm == lm.transpose(1, 0)).triu(diagonal=1)
    comp = (iou * lm).max(0)[0].expand(n, n).transpose(1, 0)
    d = iou * lm
    dm = torch.exp(-2.0 * (d**2))
    cm = torch.exp(-2.0 * (comp**2))
    co, _ = (dm / cm).min(0)
    lin, _ = ((1 - d) / (1 - comp + 1e-3)).min(0)
    u = s * co
    return torch.where(u >= 0.05, u, u.new_zeros(n)), s * lin, l


@attack("x:float32[N,3,H,W]=-2:2", "ims:float32[N,2]=20:60", dims="N=1:1:2 H=8:16:24 W=8:12:20", kinds=FINITE)
class A7445RetinaHead(nn.Module):
    """Anchors from scales and ratios with round(), shifts by meshgrid and reshape, a cache keyed by a string of the shape, deltas clamped by log(1000/16), boxes clipped to sizes per image."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.c, self.r = nn.Conv2d(3, 12, 3, 2, 1), nn.Conv2d(3, 24, 3, 2, 1)
        self._cache = {}

    def cell(self):
        sc, ar = torch.tensor([8.0, 12.0]), torch.tensor([0.5, 1.0, 2.0])
        hr = torch.sqrt(ar)
        ws, hs = ((1 / hr)[:, None] * sc[None, :]).view(-1), (hr[:, None] * sc[None, :]).view(-1)
        return (torch.stack([-ws, -hs, ws, hs], dim=1) / 2).round()

    def grid(self, size, stride):
        key = f"{size[0]}x{size[1]}"
        if key in self._cache:
            return self._cache[key]
        sx = torch.arange(0, size[1], dtype=torch.int32) * stride
        sy = torch.arange(0, size[0], dtype=torch.int32) * stride
        yy, xx = torch.meshgrid(sy, sx, indexing="ij")
        s = torch.stack((xx.reshape(-1), yy.reshape(-1), xx.reshape(-1), yy.reshape(-1)), 1)
        a = (s.view(-1, 1, 4) + self.cell().view(1, -1, 4)).reshape(-1, 4)
        self._cache[key] = a
        return a

    def forward(self, x, ims):
        c, r = self.c(x), self.r(x)
        n, _, h, w = c.shape
        perm = lambda t, k: t.view(n, -1, k, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, k)
        c, r = perm(c, 2), perm(r, 4)
        an = self.grid((h, w), 2)
        wd, ht = an[:, 2] - an[:, 0], an[:, 3] - an[:, 1]
        cx, cy = an[:, 0] + 0.5 * wd, an[:, 1] + 0.5 * ht
        dx, dy, dw, dh = (r * torch.tensor([0.1, 0.1, 0.2, 0.2])).unbind(-1)
        dw, dh = torch.clamp(dw, max=math.log(1000.0 / 16)), dh.clamp(max=math.log(1000.0 / 16))
        px, py, pw, ph = dx * wd + cx, dy * ht + cy, dw.exp() * wd, dh.exp() * ht
        b = torch.stack((px - 0.5 * pw, py - 0.5 * ph, px + 0.5 * pw, py + 0.5 * ph), -1)
        b = torch.stack([torch.min(b[..., i].clamp(min=0), ims[:, 1 - i % 2, None]) for i in range(4)], -1)
        s, lab = c.sigmoid().max(-1)
        ts, ti = s.topk(min(h * w * 6, 20), dim=1)
        return torch.stack([b[i, ti[0]] for i in range(1)]).squeeze(0), torch.gather(b, 1, ti[..., None].expand(-1, -1, 4)), ts, lab.gather(1, ti)


@attack("a:float32[N,4,H,W]=-2:2", "b:float32[N,4,H,W]=-2:2", dims="N=1:1:2 H=8:10:15 W=8:9:14", kinds=FINITE)
class A7446RaftLookup(nn.Module):
    """RAFT: an all-pairs correlation pyramid by avg_pool2d, lookups around coordinates by grid_sample with align_corners, two iterations, convex upsampling by unfold."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.f = nn.Conv2d(2 * 9, 2, 3, padding=1)
        self.m = nn.Conv2d(4, 4 * 9, 1)

    def coords(self, n, h, w):
        c = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        return torch.stack(c[::-1], dim=0).float()[None].repeat(n, 1, 1, 1)

    def forward(self, a, b):
        n, d, h, w = a.shape
        corr = torch.matmul(a.view(n, d, h * w).transpose(1, 2), b.view(n, d, h * w)).view(n, h, w, 1, h, w) / torch.sqrt(torch.tensor(d).float())
        corr = corr.reshape(n * h * w, 1, h, w)
        pyr = [corr, F.avg_pool2d(corr, 2, stride=2)]
        c0, c1 = self.coords(n, h, w), self.coords(n, h, w)
        for _ in range(2):
            c = c1.permute(0, 2, 3, 1)
            out = []
            for i, p in enumerate(pyr):
                dl = torch.linspace(-1, 1, 3)
                delta = torch.stack(torch.meshgrid(dl, dl, indexing="ij"), axis=-1)
                q = c.reshape(n * h * w, 1, 1, 2) / 2**i + delta.view(1, 3, 3, 2)
                H, W = p.shape[-2:]
                xg, yg = q.split([1, 1], dim=-1)
                q = torch.cat([2 * xg / (W - 1) - 1, 2 * yg / (H - 1) - 1], -1)
                out.append(F.grid_sample(p, q, align_corners=True).view(n, h, w, -1))
            c1 = c1.detach() + 0.1 * self.f(torch.cat(out, -1).permute(0, 3, 1, 2).contiguous())
        flow = c1 - c0
        mask = torch.softmax(self.m(a).view(n, 1, 9, 2, 2, h, w), dim=2)
        up = F.unfold(2 * flow, [3, 3], padding=1).view(n, 2, 9, 1, 1, h, w)
        return torch.sum(mask * up, dim=2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 2 * h, 2 * w)


@attack("p:float32[N,4,H,W]=-2:2", "c:float32[N,K,4]=-2:2", "b:float32[N,K,4]=0:1", dims="N=1:1:2 H=5:8:12 W=6:9:11 K=1:3:5", kinds=FINITE)
class A7447YolactMasks(nn.Module):
    """Prototypes by coefficients, crops by row and column comparisons with sanitised boxes (min, max, padding 1, clamp), upsampled, areas, boxes of masks by any and argmax."""

    def san(self, x1, x2, size):
        x1, x2 = x1 * size, x2 * size
        x1, x2 = torch.min(x1, x2), torch.max(x1, x2)
        return torch.clamp(x1 - 1, min=0), torch.clamp(x2 + 1, max=size)

    def forward(self, p, c, b):
        n, _, h, w = p.shape
        m = torch.sigmoid(p.permute(0, 2, 3, 1) @ c.transpose(1, 2).unsqueeze(1))
        x1, x2 = self.san(b[..., 0], b[..., 2], w)
        y1, y2 = self.san(b[..., 1], b[..., 3], h)
        rows = torch.arange(w, dtype=x1.dtype).view(1, 1, -1, 1)
        cols = torch.arange(h, dtype=x1.dtype).view(1, -1, 1, 1)
        crop = (rows >= x1.view(n, 1, 1, -1)) * (rows < x2.view(n, 1, 1, -1)) * (cols >= y1.view(n, 1, 1, -1)) * (cols < y2.view(n, 1, 1, -1))
        m = (m * crop.float()).permute(0, 3, 1, 2)
        u = F.interpolate(m, (h * 2, w * 2), mode="bilinear", align_corners=False)
        bin_ = u.gt(0.5)
        hit = bin_.any(2)
        left, right = hit.int().argmax(-1), 2 * w - 1 - hit.flip(-1).int().argmax(-1)
        return u, bin_.sum((2, 3)), torch.where(hit.any(-1), left, -1), torch.where(hit.any(-1), right, -1)


@forward("x:float32[N,K,H,W]=-6:6", "d:float32[N,K,D]=-6:6", dims="N=1:1:2 K=1:3:4 H=3:8:12 W=4:6:11 D=3:5:9", kinds=FINITE)
def A7448KeypointForms(self, x, d):
    """Soft-argmax by marginals, HRNet's get_max_preds with a mask and shifts of a quarter by signs (gathers clamped at borders), SimCC by argmax of vectors, DARK-like log derivatives."""
    n, k, h, w = x.shape
    p = x.view(n, k, -1).softmax(-1).view_as(x)
    gx, gy = torch.linspace(-1, 1, w), torch.linspace(-1, 1, h)
    soft = torch.stack([(p.sum(2) * gx).sum(-1), (p.sum(3) * gy).sum(-1)], -1)
    v, i = x.reshape(n, k, -1).max(2)
    i = i.reshape(n, k, 1)
    preds = i.repeat(1, 1, 2).float()
    preds[:, :, 0] = preds[:, :, 0] % w
    preds[:, :, 1] = torch.floor(preds[:, :, 1] / w)
    preds *= (v.unsqueeze(-1) > 0.0).repeat(1, 1, 2).float()
    px, py = preds[..., 0].long(), preds[..., 1].long()
    f = x.flatten(2)
    at = lambda yy, xx: f.gather(2, (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1)).unsqueeze(-1)).squeeze(-1)
    inside = (px > 1) & (px < w - 1) & (py > 1) & (py < h - 1)
    diff = torch.stack([at(py, px + 1) - at(py, px - 1), at(py + 1, px) - at(py - 1, px)], -1)
    preds = preds + torch.sign(diff) * 0.25 * inside.unsqueeze(-1)
    sx = d.argmax(-1) / 2.0
    return soft, preds, torch.where(d.amax(-1) <= 0, -1.0, sx)


@attack("l:float32[N,Q,4]=-4:4", "m:float32[N,Q,H,W]=-4:4", dims="N=1:1:1 Q=1:4:7 H=3:5:8 W=4:6:9", kinds=FINITE)
class A7449PanopticMerge(nn.Module):
    """Mask2Former's merge without loops over kept ones: scores by softmax without the last class, argmax over queries of scored masks, areas by one_hot, kept by ratios, ids by cumsum."""

    def forward(self, l, m):
        s, lab = l.softmax(-1).max(-1)
        valid = lab.ne(3) & (s > 0.3)
        pm = m.sigmoid()
        pr = torch.where(valid, s, -1.0)[:, :, None, None] * pm
        ids = pr.argmax(1)
        oh = F.one_hot(ids, m.shape[1]).permute(0, 3, 1, 2).bool()
        area, orig = oh.flatten(2).sum(-1), (pm >= 0.5).flatten(2).sum(-1)
        ok = valid & (area > 0) & (orig > 0) & (area / orig.clamp(min=1) >= 0.5)
        num = ok.long().cumsum(1) * ok
        seg = num.gather(1, ids.flatten(1)).view_as(ids)
        return seg, ok, F.interpolate(seg[:, None].float(), scale_factor=2.0, mode="nearest").to(torch.int32)


@attack("x:float32[1,4,H,W]=-2:2", "r:float32[R,5]=0:20", dims="H=8:12:20 W=9:16:21 R=1:3:6", kinds=FINITE)
class A7450RoiByGridSample(nn.Module):
    """RoIAlign by affine_grid and grid_sample with theta in place, deformable sampling by hand (floor, clamp, gather of four corners), levels by log2 of areas, a plane sweep of shifts."""

    def forward(self, x, r):
        n, c, h, w = x.shape
        b = torch.stack([torch.min(r[:, 1], r[:, 3]), torch.min(r[:, 2], r[:, 4]), torch.max(r[:, 1], r[:, 3]) + 1, torch.max(r[:, 2], r[:, 4]) + 1], 1)
        theta = torch.zeros(r.size(0), 2, 3)
        theta[:, 0, 0] = (b[:, 2] - b[:, 0]) / (w - 1)
        theta[:, 0, 2] = (b[:, 0] + b[:, 2] - w + 1) / (w - 1)
        theta[:, 1, 1] = (b[:, 3] - b[:, 1]) / (h - 1)
        theta[:, 1, 2] = (b[:, 1] + b[:, 3] - h + 1) / (h - 1)
        g = F.affine_grid(theta, torch.Size((r.size(0), 1, 6, 6)), align_corners=False)
        y = F.max_pool2d(F.grid_sample(x.expand(r.size(0), -1, -1, -1), g, align_corners=False), 2, 2)
        cx, cy = (b[:, 0] + b[:, 2]) / 2, (b[:, 1] + b[:, 3]) / 2
        x0, y0 = cx.floor(), cy.floor()
        out = 0
        for dx in (0, 1):
            for dy in (0, 1):
                xi, yi = x0 + dx, y0 + dy
                ok = (xi >= 0) & (xi <= w - 1) & (yi >= 0) & (yi <= h - 1)
                wt = (1 - (cx - xi).abs()) * (1 - (cy - yi).abs()) * ok
                idx = (yi.clamp(0, h - 1) * w + xi.clamp(0, w - 1)).long()
                out = out + x.view(c, h * w)[:, idx] * wt
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        lvl = torch.floor(2 + torch.log2(torch.sqrt(area) / 8 + 1e-6)).clamp(0, 3).to(torch.int64)
        cost = torch.stack([(x[..., 4:] * x[..., 4 - d : w - d]).mean(1) for d in range(4)], 1)
        return y, out, lvl, cost.argmax(1), cost.softmax(1)
