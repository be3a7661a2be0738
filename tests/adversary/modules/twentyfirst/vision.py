"""Parts of networks for vision: detection, tracking, segmentation."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack


@attack("heat:float32[N,5,H,W]", "wh:float32[N,2,H,W]", "reg:float32[N,2,H,W]", dims="N=1:1:2 H=4:8:17 W=4:8:17")
class CenterNetDecode(nn.Module):
    def forward(self, heat, wh, reg):
        heat = heat.sigmoid()
        keep = (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        heat = heat * keep
        n, c, h, w = heat.shape
        scores, inds = torch.topk(heat.view(n, c, -1), 6)
        inds = inds % (h * w)
        ys, xs = (inds // w).float(), (inds % w).int().float()
        score, ind = torch.topk(scores.view(n, -1), 6)
        classes = (ind / 6).int()
        inds = inds.view(n, -1, 1).gather(1, ind.unsqueeze(-1)).view(n, 6)
        ys, xs = ys.view(n, -1).gather(1, ind), xs.view(n, -1).gather(1, ind)

        def feat(t):
            return t.permute(0, 2, 3, 1).reshape(n, -1, 2).gather(1, inds.unsqueeze(2).expand(n, 6, 2))

        r, s = feat(reg), feat(wh)
        xs, ys = xs[..., None] + r[..., :1], ys[..., None] + r[..., 1:]
        boxes = torch.cat([xs - s[..., :1] / 2, ys - s[..., 1:] / 2, xs + s[..., :1] / 2, ys + s[..., 1:] / 2], 2)
        return boxes, score, classes


@attack("cls:float32[N,A,3]", "deltas:float32[N,A,4]=-9:9", "size:int32[N,2]=20:90", dims="N=1:1:3 A=5:12:30")
class RpnDecode(nn.Module):
    """torchvision's BoxCoder and clip to each image."""

    def __init__(self):
        super().__init__()
        self.clip = math.log(1000.0 / 16)

    def forward(self, cls, deltas, size):
        a = torch.arange(deltas.shape[1], dtype=torch.float32)
        anchors = torch.stack([a, a * 2, a + 10, a * 2 + 7], -1)
        wh = anchors[:, 2:] - anchors[:, :2]
        ctr = anchors[:, :2] + 0.5 * wh
        dxy, dwh = deltas[..., :2] / 10, torch.clamp(deltas[..., 2:] / 5, max=self.clip)
        c, s = dxy * wh + ctr, torch.exp(dwh) * wh
        boxes = torch.stack([c - 0.5 * s, c + 0.5 * s], 2).flatten(2)
        x, y = boxes[..., 0::2], boxes[..., 1::2]
        w, h = size[:, 1, None, None], size[:, 0, None, None]
        x = torch.minimum(x.clamp(min=0), w.to(x.dtype))
        y = torch.minimum(y.clamp(min=0), h.to(y.dtype))
        boxes = torch.stack((x, y), dim=boxes.dim()).reshape(boxes.shape)
        keep = ((boxes[..., 2] - boxes[..., 0]) >= 1) & ((boxes[..., 3] - boxes[..., 1]) >= 1)
        scores = torch.where(keep, cls.softmax(-1)[..., 1:].amax(-1), torch.full((), -1.0))
        return boxes, scores, keep.sum(1)


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=10:32:70 W=10:32:70")
class UnetOfAnySize(nn.Module):
    """Skip connections padded by the difference, and the mask as bytes with a colour each."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, 2)
        self.c = nn.Conv2d(8, 5, 1)
        self.register_buffer("palette", torch.randint(0, 256, (5, 3), dtype=torch.uint8))

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        u = self.up(b)
        dy, dx = a.shape[2] - u.shape[2], a.shape[3] - u.shape[3]
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        logits = self.c(torch.cat([a, u], 1))
        mask = logits.softmax(1).max(1)[1]
        return self.palette[mask].permute(0, 3, 1, 2), logits


@attack("heat:float32[N,4,H,W]", dims="N=1:1:2 H=3:8:17 W=3:8:17")
class PoseDarkDecode(nn.Module):
    """HRNet: maxima with a quarter of a step by the sign of the differences."""

    def forward(self, heat):
        n, k, h, w = heat.shape
        flat = heat.reshape(n, k, -1)
        score, idx = flat.max(2)
        px, py = idx % w, idx // w
        inner = (px > 0) & (px < w - 1) & (py > 0) & (py < h - 1)
        cx, cy = px.clamp(1, w - 2), py.clamp(1, h - 2)

        def at(x, y):
            return flat.gather(2, (y * w + x)[..., None])[..., 0]

        dx = at(cx + 1, cy) - at(cx - 1, cy)
        dy = at(cx, cy + 1) - at(cx, cy - 1)
        xy = torch.stack([px, py], -1).float()
        xy += torch.stack([dx, dy], -1).sign() * 0.25 * inner[..., None]
        return xy * torch.tensor([4.0, 4.0]), score, torch.where(score > 0, idx, -torch.ones_like(idx))


@attack("points:float32[N,P,4]=-9:9", dims="N=1:1:2 P=1:20:50")
class PillarScatter(nn.Module):
    """PointPillars: voxel indices, means and a canvas by index_add."""

    def forward(self, points):
        n, p, _ = points.shape
        ij = torch.floor((points[..., :2] + 8) / 2).long()
        valid = ((ij >= 0) & (ij < 8)).all(-1)
        flat = (ij[..., 1] * 8 + ij[..., 0]).masked_fill(~valid, 64)
        flat = flat + torch.arange(n)[:, None] * 65
        canvas = torch.zeros(n * 65, 4).index_add_(0, flat.view(-1), points.reshape(-1, 4))
        count = torch.zeros(n * 65).scatter_add_(0, flat.view(-1), torch.ones(n * p))
        mean = canvas / count.clamp(min=1)[:, None]
        top = torch.full((n * 65,), -1e9).scatter_reduce_(0, flat.view(-1), points[..., 2].reshape(-1), "amax")
        return mean.view(n, 65, 4)[:, :64].transpose(1, 2).reshape(n, 4, 8, 8), top.view(n, 65)[:, :64], valid.sum(1)


@attack("ids:int32[N,3]=-2000:2000", "table:float32[64,4]", dims="N=1:7:20")
class HashGrid(nn.Module):
    """Instant-NGP's spatial hash with primes, in int64, and the eight corners."""

    def forward(self, ids, table):
        x = ids.long()
        off = torch.stack(torch.meshgrid(*[torch.arange(2)] * 3, indexing="ij"), -1).view(1, 8, 3)
        c = x[:, None] // 16 + off
        h = c[..., 0] ^ (c[..., 1] * 2654435761) ^ (c[..., 2] * 805459861)
        i = h % 64
        f = (x % 16).float() / 16
        w = torch.where(off == 1, f[:, None], 1 - f[:, None]).prod(-1)
        return (table[i] * w[..., None]).sum(1), i, h & 0xFFFF


@attack("x:int32[N,3]=0:1023", dims="N=1:7:20")
class Morton(nn.Module):
    def spread(self, x):
        x = (x | (x << 16)) & 0x030000FF
        x = (x | (x << 8)) & 0x0300F00F
        x = (x | (x << 4)) & 0x030C30C3
        return (x | (x << 2)) & 0x09249249

    def forward(self, x):
        code = self.spread(x[:, 0]) | (self.spread(x[:, 1]) << 1) | (self.spread(x[:, 2]) << 2)
        code, order = code.sort(stable=True)
        gray = code ^ (code >> 1)
        return code, order, gray, ~code, -code // 3, -code % 1000, torch.fmod(-code, 1000)


@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=3:8:15 W=3:8:15")
class TransposedToASize(nn.Module):
    """output_size of the encoder's own size, dilation and groups."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(4, 6, 3, 2, 1)
        self.up = nn.ConvTranspose2d(6, 4, 3, 2, 1, groups=2)
        self.wide = nn.ConvTranspose2d(4, 2, (2, 3), (1, 2), (1, 0), output_padding=(0, 1), dilation=(2, 1))

    def forward(self, x):
        y = self.up(F.relu(self.down(x)), output_size=x.shape[2:])
        return y + x, self.wide(y)


@attack("x:float32[N,4,8,8]", "style:float32[N,4]", dims="N=1:2:4")
class ModulatedConv(nn.Module):
    """StyleGAN: a group for each sample of the batch; blur by upfirdn."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 4, 3, 3))
        self.register_buffer("k", torch.outer(torch.tensor([1.0, 3, 3, 1]), torch.tensor([1.0, 3, 3, 1])) / 64)

    def forward(self, x, style):
        n = x.shape[0]
        w = self.w[None] * (style + 1).view(n, 1, 4, 1, 1)
        w = w * torch.rsqrt(w.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        y = F.conv2d(x.reshape(1, -1, 8, 8), w.reshape(-1, 4, 3, 3), padding=1, groups=n).view(n, 6, 8, 8)
        up = y.reshape(n, 6, 8, 1, 8, 1)
        up = F.pad(up, (0, 1, 0, 0, 0, 1)).reshape(n, 6, 16, 16)
        up = F.pad(up, (2, 1, 2, 1))
        return F.conv2d(up.reshape(-1, 1, 19, 19), self.k.flip([0, 1])[None, None] * 4).view(n, 6, 16, 16)
