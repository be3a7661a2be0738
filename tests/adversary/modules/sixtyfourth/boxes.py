"""Detection, segmentation, pose, tracking by hand: NMS, soft-argmax, peaks, letterbox, anchors, polygons, matching, components, RLE, tiles."""
# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


def iou_matrix(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    lo, hi = torch.maximum(a[..., :, None, :2], b[..., None, :, :2]), torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    both = (hi - lo).clamp(min=0).prod(-1)
    area = lambda c: (c[..., 2] - c[..., 0]).clamp(min=0) * (c[..., 3] - c[..., 1]).clamp(min=0)  # noqa: E731
    return both / (area(a)[..., :, None] + area(b)[..., None, :] - both + 1e-6)


@attack("x:float32[T,4]=0:9", "s:float32[T]=0:1", dims="T=2:5:9", kinds=("normal", "unit", "halves", "ascending"))
class A7737NmsByMaskLoop(nn.Module):
    """NMS as a loop over sorted boxes with a keep mask; suppressed scores are zero, in the input's order."""

    def forward(self, x, s):
        b = torch.cat([torch.minimum(x[:, :2], x[:, 2:]), torch.maximum(x[:, :2], x[:, 2:])], 1)
        order = torch.sort(s, descending=True, stable=True).indices
        iou = iou_matrix(b[order], b[order])
        keep = torch.ones(x.shape[0], dtype=torch.bool)
        for i in range(x.shape[0]):
            keep = keep & ~(keep[i] & (iou[i] > 0.4) & (torch.arange(x.shape[0]) > i))
        out = torch.zeros_like(keep).scatter(0, order, keep)
        return s * out, keep.sum()


@attack("x:float32[T,4]=0:9", "s:float32[T]=0:1", dims="T=2:5:9", kinds=("normal", "unit", "halves"), refused="Loop may take rounds")
class A7738NmsWhileInPython(nn.Module):
    """NMS with a while loop over what is left, as tutorials write it; gives indices of a size that the values choose."""

    def forward(self, x, s):
        order = s.argsort(descending=True)
        keep = []
        while order.numel() > 0:
            i = order[0]
            keep.append(i)
            iou = iou_matrix(x[i][None], x[order])[0]
            order = order[1:][iou[1:] <= 0.5]
        return torch.stack(keep)


@attack("x:float32[N,T,4]=0:9", "s:float32[N,T]=0:1", dims="N=1:2:3 T=2:5:9", kinds=("normal", "unit", "halves"))
class A7739MatrixNmsAndFastNms(nn.Module):
    """SOLO's matrix NMS (gauss decay) and YOLACT's fast NMS, top min(5, T) by decayed score."""

    def forward(self, x, s):
        b = torch.cat([x[..., :2], x[..., :2] + x[..., 2:]], -1)
        v, i = s.sort(dim=1, descending=True, stable=True)
        b = b.gather(1, i[..., None].expand(-1, -1, 4))
        iou = iou_matrix(b, b).triu(1)
        comp = iou.amax(1)
        decay = (torch.exp(-2 * iou**2) / torch.exp(-2 * comp[..., None] ** 2)).amin(1)
        keep = comp <= 0.5
        k = min(5, x.shape[1])
        t = (v * decay).topk(k, dim=1)
        return t.values, keep, (v * keep).sum(1)


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=3:6:11 W=4:5:9", kinds=FINITE)
class A7740SoftArgmaxAndDark(nn.Module):
    """Soft-argmax by softmax over H*W; hard argmax to x, y by modulo; DARK's quarter offset by the sign of neighbours."""

    def forward(self, x):
        n, k, h, w = x.shape
        p = x.flatten(2).softmax(-1).view(n, k, h, w)
        sx, sy = (p.sum(2) * torch.linspace(-1, 1, w)).sum(-1), (p.sum(3) * torch.linspace(-1, 1, h)).sum(-1)
        i = x.flatten(2).argmax(-1)
        px, py = i % w, i // w
        q = F.pad(x, (1, 1, 1, 1), mode="replicate").flatten(2)
        at = lambda dy, dx: q.gather(2, ((py + 1 + dy) * (w + 2) + px + 1 + dx)[..., None])[..., 0]  # noqa: E731
        ox, oy = torch.sign(at(0, 1) - at(0, -1)) * 0.25, torch.sign(at(1, 0) - at(-1, 0)) * 0.25
        return sx, sy, px + ox, py + oy


@attack("x:float32[N,2,H,W]", dims="N=1:1:2 H=3:6:11 W=4:5:9", kinds=FINITE)
class A7741CenterNetPeaks(nn.Module):
    """Heatmap peaks by max_pool equality, top K over classes and places, offsets by gather, class by floor division."""

    def forward(self, x):
        n, c, h, w = x.shape
        hm = x.sigmoid()
        hm = hm * (F.max_pool2d(hm, 3, 1, 1) == hm)
        s, i = hm.view(n, -1).topk(6, dim=1)
        cls = torch.div(i, h * w, rounding_mode="trunc")
        i = i % (h * w)
        ys, xs = (i // w).float(), (i % w).float()
        off = x.permute(0, 2, 3, 1).reshape(n, -1, c).gather(1, i[..., None].expand(-1, -1, c))
        return s, cls, torch.stack([xs, ys], -1) + off


@attack("x:float32[N,3,H,W]=0:255", dims="N=1:1:2 H=5:16:31 W=6:12:29", kinds=("bytes", "unit", "zeros", "ascending"))
class A7742LetterboxTo16(nn.Module):
    """Letterbox to 16x16: a ratio by the longer side, rounded sizes, padding of 114 split by round(d - 0.1); scale out."""

    def forward(self, x):
        h, w = x.shape[-2:]
        r = min(16 / h, 16 / w)
        nh, nw = int(round(h * r)), int(round(w * r))
        dh, dw = (16 - nh) / 2, (16 - nw) / 2
        y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
        t, b, lft, rgt = round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1)
        return F.pad(y, (lft, rgt, t, b), value=114.0) / 255, torch.tensor([r, dw, dh])


@attack("x:float32[N,8,H,W]", dims="N=1:1:2 H=2:4:7 W=2:3:6", kinds=FINITE)
class A7743AnchorsBySizeAndDecode(nn.Module):
    """Anchors from the feature map's size, delta decode with a clamp of log(1000/16), clipped to the image, small ones at -1."""

    def forward(self, x):
        n, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.arange(h) * 8.0, torch.arange(w) * 8.0, indexing="ij")
        base = torch.tensor([[-8.0, -8, 8, 8], [-11, -5, 11, 5]])
        a = (torch.stack([xs, ys, xs, ys], -1)[:, :, None] + base).reshape(-1, 4)
        d = x.view(n, 2, 4, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, 4)
        wh, c = a[:, 2:] - a[:, :2], (a[:, 2:] + a[:, :2]) / 2
        nc = d[..., :2] * wh + c
        nwh = torch.exp(d[..., 2:].clamp(max=math.log(1000.0 / 16))) * wh
        b = torch.cat([nc - nwh / 2, nc + nwh / 2], -1)
        b = torch.stack([b[..., 0::2].clamp(0, 8 * w), b[..., 1::2].clamp(0, 8 * h)], -1).flatten(2)
        small = ((b[..., 1::1][..., :1] - b[..., :1]) < 1).float()
        return b, small


@forward("x:float32[N,T,2]", dims="N=1:2:3 T=3:5:9", kinds=FINITE)
def A7744PolygonAreaAndInside(self, x):
    """Shoelace area with roll, convexity by signs of cross products, point-in-polygon by parity of crossings at the origin."""
    nxt = x.roll(-1, 1)
    cross = x[..., 0] * nxt[..., 1] - nxt[..., 0] * x[..., 1]
    e = nxt - x
    e2 = e.roll(-1, 1)
    turn = torch.sign(e[..., 0] * e2[..., 1] - e[..., 1] * e2[..., 0]).sum(1)
    up = (x[..., 1] > 0) != (nxt[..., 1] > 0)
    hit = up & ((nxt[..., 0] - x[..., 0]) * (0 - x[..., 1]) / (nxt[..., 1] - x[..., 1] + 1e-12) + x[..., 0] > 0)
    return cross.sum(1) / 2, turn, hit.sum(1) % 2 == 1


@attack("a:float32[T,4]=0:9", "b:float32[U,4]=0:9", dims="T=1:4:6 U=1:3:6", kinds=("normal", "unit", "halves", "ascending"))
class A7745GreedyMatching(nn.Module):
    """Greedy assignment: min(T, U) times the best pair of an IoU matrix, row and column struck out, unmatched at -1."""

    def forward(self, a, b):
        a, b = torch.cat([a[:, :2], a[:, :2] + a[:, 2:]], 1), torch.cat([b[:, :2], b[:, :2] + b[:, 2:]], 1)
        m = iou_matrix(a, b)
        u = b.shape[0]
        match = torch.full((a.shape[0],), -1)
        for _ in range(min(a.shape[0], u)):
            k = m.argmax()
            i, j = k // u, k % u
            ok = m.view(-1)[k] > 0.05
            match = torch.where((torch.arange(a.shape[0]) == i) & ok, j, match)
            m = m.index_fill(0, i[None], -1.0).index_fill(1, j[None], -1.0)
        return match, (match >= 0).sum()


@attack("x:float32[N,1,H,W]", dims="N=1:1:2 H=3:6:8 W=3:5:8", kinds=("normal", "unit", "halves", "zeros", "ones", "ascending"))
class A7746ConnectedComponents(nn.Module):
    """Labels by iterated max pooling inside a mask, H*W times at most as a range; component count by roots."""

    def forward(self, x):
        n, _, h, w = x.shape
        m = (x > 0.2).float()
        ids = torch.arange(1, h * w + 1, dtype=torch.float32).view(1, 1, h, w)
        y = ids * m
        for _ in range(h + w):
            y = F.max_pool2d(y, 3, 1, 1) * m
        return y.long(), ((y == ids) & (m > 0)).sum((1, 2, 3))


@attack("x:bool[N,T]", dims="N=1:2:3 T=2:6:11")
class A7747RunLengths(nn.Module):
    """RLE of a mask without data-dependent sizes: run ids by cumsum of changes, run lengths by scatter_add into T slots."""

    def forward(self, x):
        t = x.shape[1]
        ch = torch.cat([x[:, :1], x[:, 1:] ^ x[:, :-1]], 1)
        rid = ch.long().cumsum(1)
        runs = torch.zeros(x.shape[0], t + 1, dtype=torch.int64).scatter_add_(1, rid, torch.ones_like(rid))
        longest = (runs * (torch.arange(t + 1) % 2)).amax(1)
        return runs, longest, rid[:, -1]


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=6:9:17 W=6:8:15", kinds=("normal", "unit", "ones", "halves"))
class A7748TilesAndMerge(nn.Module):
    """Overlapping tiles of six every four, the last ones moved inward, a net on each, merged by weights in place."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x):
        n, _, h, w = x.shape
        out, cnt = torch.zeros(n, 2, h, w), torch.zeros(1, 1, h, w)
        for i in range(0, max(h - 6, 0) + 4, 4):
            i = min(i, h - 6)
            for j in range(0, max(w - 6, 0) + 4, 4):
                j = min(j, w - 6)
                out[:, :, i : i + 6, j : j + 6] += self.net(x[:, :, i : i + 6, j : j + 6])
                cnt[:, :, i : i + 6, j : j + 6] += 1
        return out / cnt, cnt


@attack("x:float32[N,5,H,W]", "b:float32[N,K,4]=-4:12", dims="N=1:1:2 K=1:2:4 H=3:6:9 W=3:5:8", kinds=("normal", "unit", "ones", "halves", "ascending"))
class A7749RoiAlignByGridSample(nn.Module):
    """RoI align by grid_sample with boxes that leave the picture, a PointRend of the four least certain points."""

    def forward(self, x, b):
        n, c, h, w = x.shape
        k = b.shape[1]
        u = (torch.arange(3) + 0.5) / 3
        gx = b[..., None, 0:1] + (b[..., None, 2:3] - b[..., None, 0:1]) * u[:, None]
        gy = b[..., None, 1:2] + (b[..., None, 3:4] - b[..., None, 1:2]) * u[:, None]
        g = torch.stack([gx[:, :, None].expand(n, k, 3, 3, 1), gy[:, :, :, None].expand(n, k, 3, 3, 1)], -1)[..., 0, :]
        g = (2 * g + 1) / torch.tensor([w, h]) - 1
        y = F.grid_sample(x, g.flatten(1, 2), align_corners=False).view(n, c, k, 3, 3)
        unsure = -(y[:, 0] - 0.1).abs().flatten(2)
        i = unsure.topk(4, dim=-1).indices
        return y, y[:, 1].flatten(2).gather(2, i)
