# ruff: noqa: E501, E731, E741, B905, RUF059 - attacks are written as users write them
"""Vision networks of 2024 to 2026, small: windows, deformable attention, detectors without suppression, prompted masks."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=9:16:23 W=8:16:21", kinds=FINITE)
class A7380SwinShifted(nn.Module):
    """Swin with dynamic H and W: padded to windows of 4, rolled by 2, a mask from slices, a relative bias table, rolled back, cut."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.ws, self.sh = 4, 2
        self.pe = nn.Conv2d(3, 8, 2, 2, padding=0)
        self.qkv = nn.Linear(8, 24)
        self.table = nn.Parameter(torch.randn(49, 2))
        c = torch.stack(torch.meshgrid([torch.arange(4), torch.arange(4)], indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None, :]).permute(1, 2, 0).contiguous()
        r[:, :, 0] += 3
        r[:, :, 1] += 3
        r[:, :, 0] *= 7
        self.register_buffer("idx", r.sum(-1))

    def forward(self, x):
        x = self.pe(x).permute(0, 2, 3, 1)
        b, h, w, c = x.shape
        ws, sh = self.ws, self.sh
        x = F.pad(x, (0, 0, 0, (ws - w % ws) % ws, 0, (ws - h % ws) % ws))
        _, hp, wp, _ = x.shape
        s = torch.roll(x, shifts=(-sh, -sh), dims=(1, 2))
        img = torch.zeros((1, hp, wp, 1))
        cnt = 0
        for hs in (slice(0, -ws), slice(-ws, -sh), slice(-sh, None)):
            for wsl in (slice(0, -ws), slice(-ws, -sh), slice(-sh, None)):
                img[:, hs, wsl, :] = cnt
                cnt += 1
        part = lambda t: t.view(t.shape[0], hp // ws, ws, wp // ws, ws, -1).permute(0, 1, 3, 2, 4, 5).reshape(-1, ws * ws, t.shape[-1])
        mw = part(img).squeeze(-1)
        m = mw.unsqueeze(1) - mw.unsqueeze(2)
        m = m.masked_fill(m != 0, -100.0).masked_fill(m == 0, 0.0)
        y = part(s)
        q, k, v = self.qkv(y).reshape(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
        a = (q * 0.5) @ k.transpose(-2, -1) + self.table[self.idx.view(-1)].view(16, 16, -1).permute(2, 0, 1)
        nw = m.shape[0]
        a = (a.view(b, nw, 2, 16, 16) + m.unsqueeze(1).unsqueeze(0)).view(-1, 2, 16, 16).softmax(-1)
        y = (a @ v).transpose(1, 2).reshape(-1, ws, ws, c)
        y = y.view(b, hp // ws, wp // ws, ws, ws, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(b, hp, wp, c)
        return torch.roll(y, shifts=(sh, sh), dims=(1, 2))[:, :h, :w].contiguous()


@attack("x:float32[N,4,H,W]=-2:2", "q:float32[N,Q,4]=-2:2", dims="N=1:1:2 H=4:8:13 W=5:9:12 Q=1:3:6", kinds=FINITE)
class A7381DeformableAttention(nn.Module):
    """Multi-scale deformable attention: two levels, grid_sample of points, spatial shapes as tensors, prod, cumsum of level starts, split of the flat value."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.d = nn.Conv2d(4, 4, 3, 2, 1)
        self.off, self.aw, self.vp, self.ref = nn.Linear(4, 2 * 2 * 3 * 2), nn.Linear(4, 2 * 2 * 3), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x, q):
        ms = [x, self.d(x)]
        n, nq, _ = q.shape
        shapes = torch.tensor([[m.shape[2], m.shape[3]] for m in ms], dtype=torch.long)
        start = torch.cat((shapes.new_zeros((1,)), shapes.prod(1).cumsum(0)[:-1]))
        val = self.vp(torch.cat([m.flatten(2).transpose(1, 2) for m in ms], 1)).view(n, -1, 2, 2)
        off = self.off(q).view(n, nq, 2, 2, 3, 2)
        aw = self.aw(q).view(n, nq, 2, 6).softmax(-1).view(n, nq, 2, 2, 3)
        norm = torch.stack([shapes[..., 1], shapes[..., 0]], -1)
        loc = self.ref(q).sigmoid()[:, :, None, None, None, :] + off / norm[None, None, None, :, None, :]
        vl = val.split([m.shape[2] * m.shape[3] for m in ms], dim=1)
        g = 2 * loc - 1
        out = []
        for l, m in enumerate(ms):
            v = vl[l].flatten(2).transpose(1, 2).reshape(n * 2, 2, m.shape[2], m.shape[3])
            gl = g[:, :, :, l].transpose(1, 2).flatten(0, 1)
            out.append(F.grid_sample(v, gl, mode="bilinear", padding_mode="zeros", align_corners=False))
        a = aw.transpose(1, 2).reshape(n * 2, 1, nq, 6)
        y = (torch.stack(out, dim=-2).flatten(-2) * a).sum(-1).view(n, 4, nq)
        return y.transpose(1, 2).contiguous(), start


@attack("l:float32[N,Q,5]=-4:4", "b:float32[N,Q,4]=-2:2", "s:int64[N,2]=8:640", dims="N=1:1:3 Q=4:7:12", kinds=FINITE)
class A7382RtDetrPost(nn.Module):
    """RT-DETR's post-processing: sigmoid, topk over flattened queries and classes, labels by remainder, floor_divide for boxes, scaled."""

    def forward(self, l, b, s):
        b = b.sigmoid()
        cx, cy, w, h = b.unbind(-1)
        box = torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], -1) * s.repeat(1, 2).unsqueeze(1)
        sc, i = torch.topk(l.sigmoid().flatten(1), 6, dim=-1)
        lab = i - torch.div(i, 5, rounding_mode="floor") * 5
        lab2 = torch.fmod(i, 5)
        j = i // 5
        box = box.gather(1, j.unsqueeze(-1).repeat(1, 1, box.shape[-1]))
        return lab, box, sc, lab2


class MaskOut(NamedTuple):
    masks: torch.Tensor
    iou: torch.Tensor


@attack("f:float32[1,8,H,W]=-2:2", "pts:float32[1,P,2]=0:64", "lab:int64[1,P]=-1:1", dims="H=4:8:12 W=4:6:10 P=1:3:5", kinds=FINITE)
class A7383SamDecoder(nn.Module):
    """A SAM-like decoder: points (label -1 is none) to random Fourier features, a padding point, two-way attention, hypernetworks, an upscaled mask, the best of IoU."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.register_buffer("G", torch.randn(2, 4))
        self.nap, self.pe0, self.pe1 = nn.Embedding(1, 8), nn.Embedding(1, 8), nn.Embedding(1, 8)
        self.iou, self.mt = nn.Embedding(1, 8), nn.Embedding(3, 8)
        self.a = nn.MultiheadAttention(8, 2, batch_first=True)
        self.c = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 4, 2, 2), nn.GELU(), nn.ConvTranspose2d(4, 2, 2, 2))
        self.hyp = nn.ModuleList(nn.Linear(8, 2) for _ in range(3))
        self.ip = nn.Linear(8, 3)

    def enc(self, c):
        c = (2 * c - 1) @ self.G * 2 * math.pi
        return torch.cat([c.sin(), c.cos()], -1)

    def forward(self, f, pts, lab):
        h, w = f.shape[-2:]
        pts = torch.cat([pts + 0.5, torch.zeros((pts.shape[0], 1, 2))], 1)
        lab = torch.cat([lab, -torch.ones((lab.shape[0], 1), dtype=lab.dtype)], 1)
        p = pts.clone()
        p[:, :, 0] = p[:, :, 0] / 64
        p[..., 1] /= 64
        e = self.enc(p)
        e[lab == -1] = 0.0
        e[lab == -1] += self.nap.weight
        e[lab == 0] += self.pe0.weight
        e[lab == 1] += self.pe1.weight
        g = torch.ones((h, w))
        grid = torch.stack([(g.cumsum(1) - 0.5) / w, (g.cumsum(0) - 0.5) / h], -1)
        pe = self.enc(grid).permute(2, 0, 1)[None]
        t = torch.cat([self.iou.weight, self.mt.weight], 0).unsqueeze(0).expand(e.shape[0], -1, -1)
        t = torch.cat([t, e], 1)
        s = f.flatten(2).permute(0, 2, 1)
        ps = pe.flatten(2).permute(0, 2, 1)
        t = t + self.a(t, t, t)[0]
        t = t + self.c(t, s + ps, s)[0]
        u = self.up(s.transpose(1, 2).view(1, 8, h, w))
        hyper = torch.stack([self.hyp[i](t[:, 1 + i]) for i in range(3)], 1)
        m = (hyper @ u.flatten(2)).view(1, -1, h * 4, w * 4)
        iou = self.ip(t[:, 0])
        best = torch.argmax(iou, -1)
        m = m[torch.arange(m.shape[0]), best].unsqueeze(1)
        return MaskOut(F.interpolate(m, (32, 32), mode="bilinear", align_corners=False), iou)


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=8:16:24 W=8:12:20", kinds=FINITE)
class A7384CenterNet(nn.Module):
    """Peaks by a 3x3 max pool compared for equality, topk within classes and over classes, integer divisions by W, regressions gathered."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.b = nn.Conv2d(3, 8, 3, 2, 1)
        self.hm, self.wh, self.rg = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 2, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        f = self.b(x).relu()
        heat = self.hm(f).sigmoid().clamp(1e-4, 1 - 1e-4)
        n, c, h, w = heat.size()
        heat = heat * (F.max_pool2d(heat, 3, stride=1, padding=1) == heat).float()
        s, i = torch.topk(heat.view(n, c, -1), 5)
        i = i % (h * w)
        ys, xs = (i // w).float(), (i % w).int().float()
        s, k = torch.topk(s.view(n, -1), 5)
        cls = torch.div(k, 5, rounding_mode="trunc").int()
        ga = lambda t: t.view(n, -1, 1).gather(1, k.view(n, -1, 1)).view(n, 5)
        i, ys, xs = ga(i), ga(ys), ga(xs)
        tr = lambda t: t.permute(0, 2, 3, 1).contiguous().view(n, -1, 2).gather(1, i.unsqueeze(2).expand(n, 5, 2))
        r, wh = tr(self.rg(f)), tr(self.wh(f))
        xs, ys = xs.view(n, 5, 1) + r[:, :, 0:1], ys.view(n, 5, 1) + r[:, :, 1:2]
        b = torch.cat([xs - wh[..., 0:1] / 2, ys - wh[..., 1:2] / 2, xs + wh[..., 0:1] / 2, ys + wh[..., 1:2] / 2], 2)
        return {"scores": s, "boxes": b, "classes": cls}


@attack("x:float32[N,6,H,W]=-2:2", dims="N=1:1:2 H=5:8:13 W=6:7:12", kinds=FINITE)
class A7385DinoPosInterp(nn.Module):
    """DINOv2's positions: bicubic by scale_factor with the 0.1 offset, antialias, registers, patches cut, LayerScale, SwiGLU."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.pos = nn.Parameter(torch.randn(1, 17, 6))
        self.cls, self.reg = nn.Parameter(torch.randn(1, 1, 6)), nn.Parameter(torch.randn(1, 2, 6))
        self.g = nn.Parameter(torch.full((6,), 0.3))
        self.w12, self.w3 = nn.Linear(6, 16), nn.Linear(8, 6)

    def forward(self, x):
        n, c, h, w = x.shape
        pp = self.pos[:, 1:].reshape(1, 4, 4, 6).permute(0, 3, 1, 2)
        pp = F.interpolate(pp, size=(h, w), mode="bicubic", antialias=True)
        t = torch.cat([self.cls.expand(n, -1, -1), x.flatten(2).transpose(1, 2)], 1)
        t = t + torch.cat([self.pos[:, :1], pp.permute(0, 2, 3, 1).view(1, -1, 6)], 1)
        t = torch.cat([t[:, :1], self.reg.expand(n, -1, -1), t[:, 1:]], 1)
        a, b = self.w12(t).chunk(2, -1)
        t = t + self.g * self.w3(F.silu(a) * b)
        return t[:, 0], t[:, 3:].reshape(n, h, w, -1).permute(0, 3, 1, 2).contiguous()


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=8:12:24%4 W=8:16:24%4", kinds=FINITE)
class A7386VMambaCross(nn.Module):
    """VMamba's cross scan: four directions by flips and transposes in a new_empty buffer, a cumulative form, cross merge."""

    def forward(self, x):
        B, C, H, W = x.shape
        L = H * W
        xs = x.new_empty((B, 4, C, H * W))
        xs[:, 0] = x.flatten(2, 3)
        xs[:, 1] = x.transpose(dim0=2, dim1=3).flatten(2, 3)
        xs[:, 2:4] = torch.flip(xs[:, 0:2], dims=[-1])
        d = torch.sigmoid(xs * 0.2) * 0.1
        c = d.cumsum(-1)
        ys = torch.exp(-c) * torch.cumsum(torch.exp(c) * xs * d, -1)
        ys = ys[:, 0:2] + ys[:, 2:4].flip(dims=[-1]).view(B, 2, -1, L)
        y = ys[:, 0] + ys[:, 1].view(B, -1, W, H).transpose(dim0=2, dim1=3).contiguous().view(B, -1, L)
        return y.view(B, C, H, W)


@attack("x:float32[N,4,H,W]=-3:3", dims="N=1:1:2 H=6:10:16 W=7:9:15", kinds=FINITE)
class A7387MaxViTGrid(nn.Module):
    """Carafe-like upsampling by unfold and pixel_shuffle, coordinate attention by adaptive pools, an anti-alias blur by groups."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.k = nn.Conv2d(4, 36, 3, padding=1)
        self.ca = nn.Conv2d(4, 4, 1)
        b = torch.tensor([1.0, 2, 1])
        self.register_buffer("blur", (b[:, None] * b / 16).repeat(4, 1, 1, 1), persistent=False)

    def forward(self, x):
        n, c, h, w = x.shape
        m = F.pixel_shuffle(self.k(x), 2).softmax(1)
        u = F.unfold(x, 3, padding=1).view(n, c * 9, h, w)
        u = F.interpolate(u, scale_factor=2, mode="nearest").view(n, c, 9, h * 2, w * 2)
        y = (u * m.unsqueeze(1)).sum(2)
        ph, pw = F.adaptive_avg_pool2d(x, (None, 1)), F.adaptive_avg_pool2d(x, (1, None)).permute(0, 1, 3, 2)
        a, b = torch.split(self.ca(torch.cat([ph, pw], 2)).sigmoid(), [h, w], dim=2)
        z = F.conv2d(F.pad(x * a * b.permute(0, 1, 3, 2), (1, 1, 1, 1), mode="reflect"), self.blur, stride=2, groups=4)
        return y, z


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=16:24:40 W=16:32:41", kinds=("normal", "unit", "bytes", "halves"))
class A7388YoloDfl(nn.Module):
    """YOLO11's head: anchors built in forward from shapes by arange + 0.5 and meshgrid, DFL by a frozen conv, dist2bbox, one-to-one topk of YOLOv10."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.s = nn.ModuleList([nn.Conv2d(3, 6, 3, 4, 1), nn.Conv2d(6, 6, 3, 2, 1)])
        self.bx, self.cl = nn.Conv2d(6, 16, 1), nn.Conv2d(6, 3, 1)
        self.dfl = nn.Conv2d(4, 1, 1, bias=False).requires_grad_(False)
        self.dfl.weight.data[:] = nn.Parameter(torch.arange(4, dtype=torch.float).view(1, 4, 1, 1))

    def forward(self, x):
        a = self.s[0](x)
        fs = [a, self.s[1](a)]
        pts, st = [], []
        for f, s in zip(fs, (4, 8)):
            h, w = f.shape[2:]
            sx, sy = torch.arange(end=w) + 0.5, torch.arange(end=h) + 0.5
            sy, sx = torch.meshgrid(sy, sx, indexing="ij")
            pts.append(torch.stack((sx, sy), -1).view(-1, 2))
            st.append(torch.full((h * w, 1), s, dtype=torch.float))
        an, st = torch.cat(pts).transpose(0, 1), torch.cat(st).transpose(0, 1)
        y = torch.cat([torch.cat((self.bx(f), self.cl(f)), 1).view(x.shape[0], 19, -1) for f in fs], 2)
        box, cls = y.split((16, 3), 1)
        b, _, t = box.shape
        d = self.dfl(box.view(b, 4, 4, t).transpose(2, 1).softmax(1)).view(b, 4, t)
        lt, rb = d.chunk(2, 1)
        p = torch.cat((an - lt, an + rb), 1) * st
        pr = torch.cat((p, cls.sigmoid()), 1).transpose(-1, -2)
        bb, sc = pr.split([4, 3], dim=-1)
        i = sc.amax(dim=-1).topk(min(10, t))[1].unsqueeze(-1)
        bb, sc = bb.gather(1, i.repeat(1, 1, 4)), sc.gather(1, i.repeat(1, 1, 3))
        s2, i2 = sc.flatten(1).topk(min(10, t))
        k = torch.arange(b)[..., None]
        return torch.cat([bb[k, i2 // 3], s2[..., None], (i2 % 3)[..., None].float()], -1)
