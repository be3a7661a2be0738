# ruff: noqa: E501 - attacks are written as users write them
"""Trackers, text, audio, detectors, recommenders, packed sequences, distributions, vmap, hooks, own functions, caches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, rnn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

SHORT = "N=1:2:3 T=2:9:24"
FROM_ONE = "N=1:2:3 T=1:9:24"
PLANE = "N=1:1:2 H=2:9:17 W=2:8:15"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
ENDS = (normal(1, 1, 4), normal(2, 24, 4), halves(2, 3, 4))
PLANES = (normal(1, 4, 2, 2), normal(2, 4, 17, 15), halves(1, 4, 3, 8), halves(1, 4, 16, 5))


def _lengths(*values, t=24):
    return lambda: {"x": np.random.RandomState(t).randn(len(values), t, 4).astype(np.float32), "lengths": np.array(values)}


@attack("x:float32[N,T,4]", "lengths:int64[N]=1:24", dims=FROM_ONE, kinds=FEW, feeds=(_lengths(1, 24, 3), _lengths(2, 1, 2, t=2), _lengths(1, t=1)))
class A3575PackedBothWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True, num_layers=2)
    def forward(self, x, lengths):
        n = lengths.clamp(max=x.shape[1])
        y, (h, c) = self.lstm(rnn.pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False))
        y, k = rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1], padding_value=-1.0)
        return y, torch.cat([h[-2], h[-1]], 1), c[0], k
@attack("x:float32[N,T,4]", "h:float32[2,N,3]", dims=FROM_ONE, kinds=FEW)
class A3576StreamedRelu(nn.Module):
    """An Elman network with ReLU, fed in two calls whose state goes on."""
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 3, 2, nonlinearity="relu", batch_first=True, bias=False)
        self.gru = nn.GRU(3, 3)
    def forward(self, x, h):
        k = (x.shape[1] + 1) // 2
        a, h = self.rnn(x[:, :k], h)
        b, h = self.rnn(x[:, -k:], h)
        y, g = self.gru(torch.cat([a, b], 1).mT.permute(2, 0, 1), h[1:])
        return y, h, g
@attack("ids:int64[N,T]=0:19", dims=FROM_ONE, feeds=(lambda: {"ids": np.zeros((1, 1), np.int64)}, lambda: {"ids": np.array([[5, 2, 0, 0, 0], [2, 0, 0, 0, 0], [0, 7, 2, 2, 9]])}))
class A3579FairseqPositions(nn.Module):
    """Positions that count from the padding index, eos pooling and a sentence order from it."""
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(20, 4, padding_idx=0, scale_grad_by_freq=True), nn.EmbeddingBag(20, 4, mode="sum", padding_idx=0)
    def forward(self, ids):
        mask = ids.ne(0).int()
        at = (mask.cumsum(1).type_as(mask) * mask).long()
        end = ids.eq(2).int().argmax(1)
        n = torch.arange(ids.shape[0], device=ids.device)
        y = self.token(ids) + self.token.weight[at.clamp(max=19)]
        half = ids.new_zeros(ids.shape).masked_scatter(ids > 9, ids.clamp(max=3))
        return y[n, end], at, self.place(ids), y.masked_fill(mask.unsqueeze(-1) == 0, 0).sum(1) / mask.sum(1, keepdim=True).clamp(min=1), half.sum()
@attack("x:float32[N,4,H,W]", dims=PLANE, kinds=FEW, feeds=PLANES)
class A3581FcosLevels(nn.Module):
    """Locations of two levels with their strides, centerness and boxes clipped to the image."""
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(4, 4, 3, 2, 1)
    def forward(self, x):
        h, w = x.shape[2:]
        boxes, score = [], []
        for stride in (1, 2):
            fh, fw = x.shape[2:]
            y, z = torch.meshgrid((torch.arange(fh) + 0.5) * stride, (torch.arange(fw) + 0.5) * stride, indexing="ij")
            c = torch.stack([z, y], -1).view(-1, 2)
            d = x.flatten(2).mT.exp().clamp(max=1e4)
            b = torch.cat([c - d[..., :2], c + d[..., 2:]], -1)
            boxes.append(torch.stack([b[..., 0::2].clamp(0, w), b[..., 1::2].clamp(0, h)], -1).flatten(-2))
            low, high = d[..., ::2].sort(-1)[0].unbind(-1)
            score.append((low / high).sqrt())
            x = self.down(x)
        return torch.cat(boxes, 1), torch.cat(score, 1)
@forward("x:float32[N,T,4]", "scores:float32[N,T]", dims=SHORT, kinds=FEW)
def A3582SoftSuppression(self, x, scores):
    """Gaussian soft-NMS for as many rounds as there are boxes, up to six."""
    xy = torch.cat([torch.minimum(x[..., :2], x[..., 2:]), torch.maximum(x[..., :2], x[..., 2:])], -1)
    area = (xy[..., 2:] - xy[..., :2]).prod(-1)
    s, keep = scores.sigmoid(), []
    for _ in range(min(x.shape[1], 6)):
        v, i = s.max(1)
        b = xy.gather(1, i[:, None, None].expand(-1, 1, 4))
        inter = (torch.minimum(xy[..., 2:], b[..., 2:]) - torch.maximum(xy[..., :2], b[..., :2])).clamp(min=0).prod(-1)
        iou = inter / (area + area.gather(1, i[:, None]) - inter).clamp_min(1e-6)
        s = (s * torch.exp(-iou.square() / 0.5)).scatter(1, i[:, None], -1.0)
        keep.append(torch.stack([i.float(), v], -1))
    return torch.stack(keep, 1), (s > 0.2).sum(1)
@forward("x:float32[N,4,H,W]", dims=PLANE, kinds=FEW, feeds=PLANES)
def A3583Morphology(self, x):
    h, w = x.shape[2:]
    erode = -F.max_pool2d(-x, 3, 1, 1)
    tophat = x - F.max_pool2d(erode, 3, 1, 1)
    edges = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), torch.tensor([[[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]]).repeat(4, 1, 1, 1), groups=4)
    box = F.avg_pool2d(x, (min(3, h), 1), 1, (min(3, h) // 2, 0), count_include_pad=False)
    big = F.unfold(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3).view(x.shape[0], 4, 9, h, w).median(2)[0]
    return tophat, edges, box, big, F.lp_pool2d(x, 2, 2, ceil_mode=True), F.max_pool2d(x, (2, 1), (1, 2), ceil_mode=True)
@attack("x:float32[N,4,H,W]", dims=PLANE, kinds=FEW, feeds=PLANES)
class A3584TransposedToSize(nn.Module):
    """Decoders that ask a transposed convolution for the size of the skip, and shuffles of channels."""
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1)
        self.same, self.mix = nn.Conv2d(4, 8, (2, 4), padding="same", dilation=(2, 1), padding_mode="replicate"), nn.ChannelShuffle(2)
    def forward(self, x):
        y = self.up(self.down(x), output_size=x.shape[-2:])
        return y + x, self.mix(self.same(x)), F.local_response_norm(x, 3), F.pixel_shuffle(x, 2), nn.Softmax2d()(x)
@forward("x:float32[N,4,H,W]", "k:int64[N]=0:3", dims=PLANE, kinds=FEW)
def A3585TurnsByValue(self, x, k):
    """Test-time augmentation whose flips each example chooses, undone afterwards."""
    a = torch.where((k % 2 == 1)[:, None, None, None], x.flip(3), x)
    a = torch.where((k >= 2)[:, None, None, None], a.flip(2), a)
    y = a * torch.arange(x.shape[3]) + a.roll(1, 2)
    y = torch.where((k >= 2)[:, None, None, None], y.flip(2), y)
    r = [torch.rot90(x, i, (2, 3)).mean(2 if i % 2 == 0 else 3) for i in range(4)]
    return torch.where((k % 2 == 1)[:, None, None, None], y.flip(3), y), r[0] + r[2], r[1] - r[3], torch.rot90(x, x.shape[0], (1, 0))
@attack("x:float32[N,T]=-1:1", dims="N=1:1:2 T=40:90:300", kinds=("normal", "halves", "zeros", "ones"), feeds=(normal(1, 40, scale=0.3), normal(2, 299, scale=0.3), normal(1, 64, scale=0.3)))
class A3586CepstraAndPitch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("bank", torch.rand(17, 8))
        k = torch.arange(8.0)
        self.register_buffer("dct", torch.cos(math.pi / 8 * (k + 0.5)[:, None] * k) * 0.5)
    def forward(self, x):
        y = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
        s = torch.stft(y, 32, 10, window=self.window, center=True, pad_mode="reflect", return_complex=True)
        mel = (s.real**2 + s.imag**2).mT @ self.bank
        c = (mel + 1e-6).log() @ self.dct
        d = F.conv1d(F.pad(c.mT.flatten(0, 1)[:, None], (2, 2), mode="replicate"), torch.tensor([[[-2.0, -1, 0, 1, 2]]]) / 10)
        r = F.pad(x, (0, 31)).unfold(1, 32, 1)
        lag = torch.einsum("bt,btk->bk", x, r) / (x.square().sum(1, keepdim=True) + 1e-3)
        return c, d[:, 0], lag, (x[:, 1:] * x[:, :-1] < 0).sum(1)
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=ENDS)
class A3587ReversibleByBatch(nn.Module):
    """Series: RevIN, a decomposition by a replicated average, a lag table and seasonal naive."""
    def __init__(self):
        super().__init__()
        self.gain, self.line = nn.Parameter(torch.rand(4) + 0.5), nn.LazyLinear(4)
        self.line(torch.zeros(1, 4))
    def forward(self, x):
        t = x.shape[1]
        mean, sd = x.mean(1, keepdim=True), (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        y = (x - mean) / sd * self.gain
        front, end = y[:, :1].repeat(1, 2, 1), y[:, -1:].repeat(1, 2, 1)
        trend = F.avg_pool1d(torch.cat([front, y, end], 1).mT, 5, 1).mT
        lags = torch.stack([F.pad(y, (0, 0, k, 0))[:, :t] for k in (1, 2, 7)], -1)
        season = y[:, (torch.arange(t + 3) % min(7, t)) + t - min(7, t)]
        return self.line(y - trend) * sd + mean, lags.sum(-1), season, y.diff(dim=1, prepend=y[:, :1])
@attack("x:float32[N,T,4]", "seen:int64[N,T]=0:6", dims=FROM_ONE, kinds=FEW)
class A3588DeepInterest(nn.Module):
    """Recommenders: target attention over a history with zeros, crosses of pairs, hashed ids, experts by share."""
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(7, 4, padding_idx=0, max_norm=1.0)
        self.bilinear, self.prelu = nn.Bilinear(4, 4, 2), nn.PReLU(4)
    def forward(self, x, seen):
        e = self.items(seen)
        w = (e * x).sum(-1).masked_fill(seen == 0, -2**32 + 1).softmax(-1)
        user = (w[..., None] * e).sum(1)
        i, j = torch.triu_indices(4, 4, 1)
        pair = x[..., i] * x[..., j]
        fm = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(-1)
        bucket = (seen * 2654435761 + 12345) % 97 % 7
        return user, pair.mean(1), fm, self.bilinear(user, x[:, 0]), self.prelu(x.mT.reshape(x.shape[0], 4, -1)), self.items(bucket)
class _Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, steps: int, signed: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.mark_non_differentiable(x)
        scale = x.abs().amax((1, 2), keepdim=True).clamp_min(1e-8) / steps
        q = (x / scale).round().clamp(-steps if signed else 0, steps)
        return q * scale, q.to(torch.int8)
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor, _: torch.Tensor) -> Any:
        return g, None, None
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(halves(2, 24, 4), halves(1, 1, 4)))
class A3591OwnFunctionOfTwo(nn.Module):
    def forward(self, x):
        a, q = _Quantise.apply(x, x.shape[1] * 5)
        b, r = _Quantise.apply(x, 7, False)
        return {"a": (a, q), "b": [b, r.sum(1)], "n": q.int().abs().sum((1, 2))}
class _Circulant(nn.Module):
    def forward(self, row):
        i = torch.arange(row.shape[0])
        return row[(i[:, None] - i) % row.shape[0]]
    def right_inverse(self, full):
        return full[:, 0]
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FEW)
class A3592ParametrizedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Conv1d(4, 4, 3, padding=1)
        parametrize.register_parametrization(self.a, "weight", _Circulant())
        parametrizations.orthogonal(self.b, orthogonal_map="cayley")
        nn.utils.weight_norm(self.c, dim=None)
        nn.utils.spectral_norm(self.b, name="bias") if False else nn.utils.remove_weight_norm(self.c)
        self.calls = 0
    def forward(self, x):
        with parametrize.cached():
            return self.a(self.b(self.a(x))), self.c(x.mT) @ self.b(x), torch.linalg.matrix_power(self.a.weight, 3)
@attack("x:float32[N,T,4]", "mask:bool[N,T]", dims=FROM_ONE, kinds=FEW)
class A3593HooksWithKeywords(nn.Module):
    """A pre-hook that fills in a mask, one that rewrites keywords, and a hook that pools what came out."""
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True, add_zero_attn=True)
        self.attend.register_forward_pre_hook(lambda m, a, k: (a, {**k, "key_padding_mask": ~k["key_padding_mask"]}), with_kwargs=True)
        self.attend.register_forward_hook(lambda m, a, k, y: (y[0] * k["query"].sign(), y[1]), with_kwargs=True)
    def forward(self, x, mask):
        y, w = self.attend(query=x, key=x, value=x.flip(1), key_padding_mask=mask)
        return y, w
@attack("x:float32[N,T,4]", "past:float32[N,P,4]", "at:int64[N]=0:12", dims="N=1:2:3 T=1:4:9 P=1:5:12", kinds=FEW)
class A3594CacheWithRotary(nn.Module):
    """Keys of the past and new ones with rotary positions that go on, a window, a sink, and values repeated for groups."""
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 8, bias=False), nn.Linear(4, 4, bias=False)
    def turn(self, x, at):
        a = at[:, None, :, None] * 100.0 ** (-torch.arange(0, 2, 2) / 2)
        x1, x2 = x.chunk(2, -1)
        return torch.cat([x1 * a.cos() - x2 * a.sin(), x2 * a.cos() + x1 * a.sin()], -1)
    def forward(self, x, past, at):
        t, p = x.shape[1], past.shape[1]
        i = torch.arange(t) + at[:, None]
        j = torch.cat([torch.arange(-p, 0), torch.arange(t)]) + at[:, None]
        k, v = self.kv(torch.cat([past, x], 1)).unflatten(-1, (2, 1, 2)).permute(2, 0, 3, 1, 4)
        q = self.turn(self.q(x).unflatten(-1, (4, 2)).transpose(1, 2), i)
        k = self.turn(k, j)
        ok = (j[:, None] <= i[..., None]) & ((i[..., None] - j[:, None] < 4) | (j[:, None] < 1)) & (j[:, None] >= 0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=ok[:, None], enable_gqa=True)
        return y, torch.cat([past, x], 1)[:, -p:]
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FEW, feeds=ENDS)
class A3595OptionalArguments(nn.Module):
    """Arguments with defaults that only one caller gives, and outputs in a nest."""
    def part(self, x, *, scale: float | None = None, mask: torch.Tensor | None = None, **rest: Any):
        x = x if scale is None else x * scale
        x = x if mask is None else x.masked_fill(mask, rest.get("fill", -1.0))
        return (x, {"sum": x.sum(1), **{k: x * v for k, v in rest.items() if k != "fill"}})
    def forward(self, x, y=None, flag: bool = True):
        a = self.part(x)
        b = self.part(x, scale=1 / x.shape[1], mask=x > 0.5, fill=x.shape[1])
        c = self.part(x, mask=(torch.arange(x.shape[1]) % 2 == 0)[:, None], twice=2) if flag and y is None else None
        return {"b": b, "a": [a[0][:, -1], None], "c": c}
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FEW, feeds=ENDS)
class A3598BuffersThatAreScratch(nn.Module):
    """Scratch memory kept between calls, of which only what was written is read, and a table that is built when too short."""
    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.full((3, 30, 4), 9.0))
        self.register_buffer("slots", torch.arange(30))
        self.line = nn.Linear(4, 4)
    def forward(self, x):
        n, t = x.shape[:2]
        self.scratch[:n, :t].copy_(x)
        self.scratch[:n, t : t + 2].fill_(-1.0)
        view = self.scratch[:n, : t + 2]
        view[:, 1:].add_(self.line(view[:, :-1]) * 0.5)
        at = self.slots[: t + 2].flip(0)
        return view.index_select(1, at), view.cumsum(1)[:, t - 1], torch.nonzero(self.slots[:t] % 2 == 1)[:, 0]
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FEW, feeds=(halves(2, 24, 4), normal(1, 2, 4)))
class A3599AdaptiveVocabulary(nn.Module):
    """Adaptive softmax's tables, a hierarchical sum, and a bottleneck through norms of groups."""
    def __init__(self):
        super().__init__()
        self.head = nn.AdaptiveLogSoftmaxWithLoss(4, 12, [4, 8], div_value=2.0, head_bias=True)
        self.norm, self.glu = nn.GroupNorm(2, 4), nn.GLU(1)
    def forward(self, x):
        y = self.norm(x.mT).mT
        p = self.head.log_prob(y.flatten(0, 1)).unflatten(0, x.shape[:2])
        return p, p.argmax(-1), self.glu(x.mT), torch.logsumexp(p.view(*x.shape[:2], 3, 4), -1).exp(), self.head.predict(y.flatten(0, 1))
