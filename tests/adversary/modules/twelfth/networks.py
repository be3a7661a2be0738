"""Parts of networks: detection, speech, vision, custom functions and scripted parts."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, HW = "x:float32[N,3,H,W]", "N=1:1:2 H=6:9:16 W=5:8:17"
LINE, T = "x:float32[N,T,4]", "N=1:2:3 T=3:7:12"
X, N = "x:float32[N,4]", "N=1:3:6"


@forward("boxes:float32[K,4]=0:20", "labels:int64[K]=0:3", "scores:float32[K]=0:1", dims="K=2:6:11")
def batched_suppression(self, boxes, labels, scores):
    """Boxes of each class are moved apart by the largest coordinate; greedy suppression by a fixed point."""
    moved = boxes + (labels * (boxes.max() + 1))[:, None]
    order = torch.argsort(scores, descending=True, stable=True)
    b = moved[order]
    wh = (torch.minimum(b[:, None, 2:], b[None, :, 2:]) - torch.maximum(b[:, None, :2], b[None, :, :2])).clamp(min=0)
    inter, area = wh.prod(-1), (b[:, 2:] - b[:, :2]).clamp(min=0).prod(-1)
    over = (inter > 0.5 * (area[:, None] + area[None] - inter)).triu(1)
    keep = torch.ones_like(scores, dtype=torch.bool)
    for _ in range(11):
        keep = ~(over & keep[:, None]).any(0)
    return keep, order


@attack("x:float32[N,20,H,W]", dims="N=1:1:2 H=2:4:7 W=2:3:6")
class DistributionFocalBoxes(nn.Module):
    """Distances as expectations of bins, at points of two strides that are kept flat."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bins", torch.arange(4, dtype=torch.float32))

    def forward(self, x):
        n, _, h, w = x.shape
        sides, classes = x.flatten(2).split((16, 4), 1)
        d = (sides.view(n, 4, 4, -1).softmax(2) * self.bins.view(1, 1, -1, 1)).sum(2)
        points = torch.stack(torch.meshgrid(torch.arange(w) + 0.5, torch.arange(h) + 0.5, indexing="xy"))
        points = points.flatten(1)[None]
        boxes = torch.cat((points - d[:, :2], points + d[:, 2:]), 1) * 8
        best, label = classes.sigmoid().max(1)
        return boxes, best, label, torch.where(best > 0.5, label, -1)


@forward("x:float32[N,T]=-1:1", dims="N=1:1:2 T=40:64:101")
def mel_of_frames(self, x):
    window = torch.hamming_window(16, periodic=False)
    spectrum = torch.stft(
        F.pad(x[:, None], (8, 8), mode="reflect")[:, 0], 16, 4, 16, window, False, return_complex=True
    )
    power = spectrum.abs().square()
    edges = 700 * (10 ** (torch.linspace(0, 2, 6) / 2.595) - 1)
    edges = edges / edges[-1] * 8
    place = torch.arange(9.0)[:, None]
    rising = (place - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - place) / (edges[2:] - edges[1:-1])
    mel = torch.minimum(rising, falling).clamp(min=0)
    y = (power.transpose(1, 2) @ mel).clamp(min=1e-10).log10()
    return torch.maximum(y, y.amax((1, 2), keepdim=True) - 8.0)


@forward("x:float32[N,T]=-1:1", dims="N=1:1:2 T=33:64:101")
def resampled_by_sinc(self, x):
    """Three samples for two, by a windowed sinc whose phases are a strided convolution."""
    t = torch.arange(-6, 7)[None] / 2 - torch.arange(3)[:, None] / 3
    kernel = torch.sinc(t * 0.9) * torch.cos(t.clamp(-3, 3) * math.pi / 6) ** 2
    y = F.conv1d(F.pad(x[:, None], (6, 6 + 2)), kernel[:, None], stride=2)
    return y.transpose(1, 2).reshape(x.shape[0], -1)[:, : math.ceil(x.shape[1] * 3 / 2)]


@forward("logits:float32[N,T,5]", "lengths:int64[N]=1:3", dims="N=1:2:3 T=3:6:9")
def collapsed_paths(self, logits, lengths):
    best = logits.argmax(-1)
    before = F.pad(best, (1, 0), value=-1)[:, :-1]
    keep = (best != before) & (best != 0) & (torch.arange(best.shape[1])[None] < lengths[:, None])
    place = keep.cumsum(1) - 1
    out = torch.full((best.shape[0], best.shape[1] + 1), -1)
    place = torch.where(keep, place, best.shape[1])
    return out.scatter(1, place, torch.where(keep, best, -1))[:, :-1], keep.sum(1)


@attack(IMAGE, dims=HW)
class SqueezeMobile(nn.Module):
    """Inverted residual whose stride-2 padding is TensorFlow's SAME."""

    def __init__(self):
        super().__init__()
        self.grow, self.deep = nn.Conv2d(3, 6, 1, bias=False), nn.Conv2d(6, 6, 3, 2, groups=6, bias=False)
        self.norm, self.gate = nn.BatchNorm2d(6, eps=1e-3), nn.Linear(6, 6)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.1, 3)

    def forward(self, x):
        y = F.hardswish(self.grow(x))
        need = [max((math.ceil(s / 2) - 1) * 2 + 3 - s, 0) for s in y.shape[-2:]]
        y = F.pad(y, (need[1] // 2, need[1] - need[1] // 2, need[0] // 2, need[0] - need[0] // 2))
        y = self.norm(self.deep(y))
        return y * F.hardsigmoid(self.gate(y.mean((2, 3))))[:, :, None, None]


@attack(IMAGE, dims=HW, noted="infinity")
class MixedResolution(nn.Module):
    """HRNet's fusion with aligned corners, and PSP's bins."""

    def forward(self, x):
        size = x.shape[2:]
        low = F.max_pool2d(x, 3, 2, 1)
        bins = [
            F.interpolate(F.adaptive_avg_pool2d(x, k), size, mode="bilinear", align_corners=True) for k in (1, 2, 3)
        ]
        up = F.interpolate(low, size, mode="bicubic", align_corners=True)
        return torch.cat((x, up, *bins), 1), F.interpolate(low, scale_factor=(2, 1.5), mode="bilinear")


@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=5:8:11 W=5:6:9")
class CorrelationVolume(nn.Module):
    """RAFT's lookup in a pyramid, around points that leave the map."""

    def forward(self, x):
        n, c, h, w = x.shape
        f = x.flatten(2)
        volume = (f.transpose(1, 2) @ f / math.sqrt(c)).view(n * h * w, 1, h, w)
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = torch.stack((xs, ys), -1).float().view(1, h * w, 1, 2).repeat(n, 1, 1, 1).view(-1, 1, 1, 2)
        d = torch.arange(-1.0, 2.0)
        delta = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1)[None]
        grid = (centre * 1.25 + delta) / torch.tensor([w - 1, h - 1]) * 2 - 1
        return F.grid_sample(volume, grid, align_corners=True).view(n, h, w, 9).permute(0, 3, 1, 2)


@attack(LINE, dims=T)
class SelectiveScan(nn.Module):
    """Mamba's recurrence by a scan in logarithms, and by a loop over six groups."""

    def __init__(self):
        super().__init__()
        self.delta = nn.Linear(4, 4)

    def forward(self, x):
        d = F.softplus(self.delta(x))
        log = (-d).cumsum(1)
        y = torch.exp(log) * torch.cumsum(x * d * torch.exp(-log), 1)
        return y, torch.logcumsumexp(x, 1)


@attack(LINE, dims=T, kinds=("normal", "unit", "large"))
class TopExperts(nn.Module):
    """Two of four experts, tokens gathered by index_select of nonzero, added back by index_add."""

    def __init__(self):
        super().__init__()
        self.route = nn.Linear(4, 4, bias=False)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        flat = x.reshape(-1, 4)
        weight, chosen = self.route(flat).softmax(-1).topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == i)
            out.index_add_(0, token, expert(flat[token]) * weight[token, slot, None])
        return out.view_as(x)


@attack(X, dims=N)
class QuantisedCodebook(nn.Module):
    """Residual vector quantisation with the straight-through estimator."""

    def __init__(self):
        super().__init__()
        self.books = nn.Parameter(torch.randn(3, 7, 4))

    def forward(self, x):
        rest, codes = x, []
        for book in self.books:
            index = torch.cdist(rest[None], book[None])[0].argmin(-1)
            quantised = rest + (F.embedding(index, book) - rest).detach()
            rest = rest - quantised
            codes.append(index)
        return x - rest, torch.stack(codes, -1)


class _Sorted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        values, index = x.sort(dim=-1, stable=True)
        ctx.mark_non_differentiable(index)
        ctx.set_materialize_grads(False)
        return values[..., :k], index[..., -k:]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None


@forward(X, dims=N)
def sorted_by_own_function(self, x):
    values, index = _Sorted.apply(x, 2)
    return values, x.gather(1, index)


@attack(LINE, dims=T, refused="depends on the size")
def scripted_cell_in_a_loop():
    """A scripted cell with an early return and a list, called for each step in Python."""

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, h: torch.Tensor, step: int) -> torch.Tensor:
            if step % 3 == 2:
                return h
            parts: list[torch.Tensor] = []
            for k in range(step % 2 + 1):
                parts.append(torch.tanh(self.mix(h) + x * float(k + 1)))
            return torch.stack(parts).sum(0)

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = torch.jit.script(Cell())

        def forward(self, x):
            h = torch.zeros_like(x[:, 0])
            for i, part in enumerate(x.unbind(1)):
                h = self.cell(part, h, i)
            return h

    return Loop()


@attack(X, dims=N)
def scripted_by_value():
    """A scripted part that chooses by a sum far from what samples give."""

    @torch.jit.script
    def choose(x: torch.Tensor) -> torch.Tensor:
        if bool(x.abs().sum() > 123456.0):
            return x * 0
        return x

    class Calls(nn.Module):
        def forward(self, x):
            return choose(x) + 1

    return Calls()


@attack("x:float32[N,H,L]", "mask:bool[N,L]", dims="N=1:2:3 H=2:3:4 L=1:5:8")
class PooledByMask(nn.Module):
    """Mean, maximum, last and attentive pooling over what is not padding; all may be padding."""

    def forward(self, x, mask):
        m = mask[:, None].float()
        mean = (x * m).sum(-1) / m.sum(-1).clamp(min=1)
        top = x.masked_fill(~mask[:, None], torch.finfo(x.dtype).min).amax(-1)
        last = (mask.long() * torch.arange(1, mask.shape[1] + 1)).amax(1) - 1
        end = x.gather(2, last.clamp(min=0)[:, None, None].expand(-1, x.shape[1], 1))[..., 0]
        weights = x.masked_fill(~mask[:, None], -torch.inf).softmax(-1).nan_to_num(0.0)
        return mean, top, torch.where(last[:, None] >= 0, end, 0.0), (weights * x).sum(-1)


@attack("x:float32[N,L,8]", "segments:int64[N,L]=0:3", dims="N=1:2:3 L=2:5:8")
class PackedSequences(nn.Module):
    """Several documents in one row: attention stays in its segment, positions begin again in each."""

    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, segments):
        same = segments[:, :, None] == segments[:, None, :]
        begins = F.pad(segments[:, 1:] != segments[:, :-1], (1, 0), value=True)
        place = torch.arange(x.shape[1]).expand_as(segments)
        start = torch.where(begins, place, 0).cummax(1).values
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        mask = ~(same & causal).repeat_interleave(2, 0)
        y, _ = self.heads(x, x, x, attn_mask=mask, need_weights=False)
        return y, place - start


@attack("x:float32[N,T,4]", "lengths:int64[N]=1:3", dims="N=1:2:3 T=3:5:8")
class ReversedByLength(nn.Module):
    """A backward GRU over padded rows: each is reversed within its own length by gather."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, batch_first=True)

    def forward(self, x, lengths):
        place = torch.arange(x.shape[1])[None]
        turned = torch.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
        y, _ = self.gru(x.gather(1, turned[..., None].expand_as(x)))
        return y.gather(1, turned[..., None].expand(-1, -1, 3)).masked_fill((place >= lengths[:, None])[..., None], 0.0)
