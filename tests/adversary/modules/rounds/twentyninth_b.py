"""Round 29, sequences: packing, caches, masks by value, buckets of positions, beams, streaming."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _i(*values):
    return np.array(values, np.int64)


@attack(
    "x:float32[N,T,4]", "lengths:int64[N]", dims=SHORT,
    feeds=(lambda: {"x": _r(3, 9, 4), "lengths": _i(2, 9, 1)}, lambda: {"x": _r(4, 12, 4), "lengths": _i(3, 3, 7, 1)}),
)  # fmt: skip
class B29PackedWithTotal(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True, bidirectional=True, num_layers=2)

    def forward(self, x, lengths):
        lengths = lengths.clamp(1, x.shape[1])
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1], padding_value=-1.0)
        return out, torch.cat([h[-2], h[-1]], -1)


@forward(
    "x:float32[N,T,4]", "lengths:int64[N]", dims=SHORT,
    feeds=(lambda: {"x": _r(3, 9, 4), "lengths": _i(0, 9, 4)}, lambda: {"x": _r(2, 5, 4), "lengths": _i(-3, 7)}),
)  # fmt: skip
def B29FlipsByLength(self, x, lengths):
    t = torch.arange(x.shape[1])
    index = (lengths[:, None] - 1 - t[None]) % x.shape[1]
    return x.gather(1, index[..., None].expand(-1, -1, 4))


@attack(
    "x:float32[N,T,8]", "lengths:int64[N]", dims="N=1:2:4 T=11:30:90",
    feeds=(lambda: {"x": _r(3, 11, 8), "lengths": _i(0, 1, 2)}, lambda: {"x": _r(2, 40, 8), "lengths": _i(6, 40)}),
)  # fmt: skip
class B29SubsampledLengths(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 4, 3, 2))
        self.out = nn.Linear(4, 6)

    def forward(self, x, lengths):
        y = self.conv(x[:, None]).transpose(1, 2).flatten(2)
        frames = ((lengths - 3) // 2 + 1 - 3) // 2 + 1
        mask = torch.arange(y.shape[1])[None] < frames[:, None]
        return torch.where(mask[..., None], self.out(y), 0.0), frames, torch.div(lengths - 3, -2, rounding_mode="trunc")


@attack(
    "x:float32[N,T,4]", "cache:float32[N,P,4]", dims="N=1:1:2 T=1:4:9 P=0:4:9",
    feeds=(lambda: {"x": _r(1, 1, 4), "cache": _r(1, 0, 4)}, lambda: {"x": _r(2, 3, 4), "cache": _r(2, 9, 4)},
           lambda: {"x": _r(2, 9, 4), "cache": _r(2, 0, 4)}),
)  # fmt: skip
class B29StreamingConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 5, groups=2)

    def forward(self, x, cache):
        whole = torch.cat([cache, x], 1)
        whole = F.pad(whole, (0, 0, max(0, 4 + x.shape[1] - whole.shape[1]), 0))
        whole = whole[:, -(4 + x.shape[1]) :]
        return self.conv(whole.transpose(1, 2)).transpose(1, 2), whole[:, -4:]


@attack(
    "x:float32[N,T,8]", "k:float32[N,2,P,4]", "v:float32[N,2,P,4]", dims="N=1:1:2 T=1:2:6 P=0:5:12",
    feeds=(lambda: {"x": _r(1, 1, 8), "k": _r(1, 2, 0, 4), "v": _r(1, 2, 0, 4)},
           lambda: {"x": _r(1, 6, 8), "k": _r(1, 2, 9, 4), "v": _r(1, 2, 9, 4)}),
)  # fmt: skip
class B29WindowedCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, k, v):
        n, t, _ = x.shape
        q, kn, vn = self.qkv(x).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([k, kn], 2)[:, :, -8:], torch.cat([v, vn], 2)[:, :, -8:]
        s = k.shape[2]
        mask = torch.ones(t, s, dtype=torch.bool).tril(s - t)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), k, v


@forward(
    "q:float32[N,2,T,4]", "k:float32[N,2,S,4]", dims="N=1:1:2 T=1:4:9 S=1:6:12",
    feeds=(lambda: {"q": _r(1, 2, 1, 4), "k": _r(1, 2, 12, 4)}, lambda: {"q": _r(1, 2, 9, 4), "k": _r(1, 2, 2, 4)},
           lambda: {"q": _r(1, 2, 5, 4), "k": _r(1, 2, 5, 4)}),
)  # fmt: skip
def B29CausalOfUnlikeLengths(self, q, k):
    t = q.shape[2]
    return F.scaled_dot_product_attention(q, k, k + 1, is_causal=t > 1 and t <= k.shape[2])


@attack(
    "x:float32[N,T,8]", "pad:bool[N,T]", dims=SHORT,
    feeds=(lambda: {"x": _r(2, 5, 8), "pad": np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], bool)},
           lambda: {"x": _r(2, 5, 8, scale=30), "pad": np.array([[0, 1, 0, 1, 0], [1, 0, 0, 0, 0]], bool)}),
)  # fmt: skip
class B29BiasedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True, batch_first=True, kdim=8, vdim=6)

    def forward(self, x, pad):
        return self.mha(x, x, x[..., :6], key_padding_mask=pad, average_attn_weights=False)


@attack(
    "x:float32[N,T,8]", "pad:bool[N,T]", dims=SHORT,
    feeds=(lambda: {"x": _r(2, 5, 8), "pad": np.array([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]], bool)},
           lambda: {"x": _r(2, 5, 8), "pad": np.array([[0, 1, 0, 1, 1], [0, 0, 0, 1, 1]], bool)},
           lambda: {"x": _r(2, 5, 8), "pad": np.zeros((2, 5), bool)}),
)  # fmt: skip
class B29NestedEncoder(nn.Module):
    """The fast path cuts to the longest sample where the mask is left-aligned."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=True)

    def forward(self, x, pad):
        pad = pad & (torch.arange(x.shape[1]) > 0)
        return self.encoder(x, src_key_padding_mask=pad)


@attack(
    "ids:int64[N]", dims="N=1:2:6", feeds=(lambda: {"ids": _i(3, 7, 0)}, lambda: {"ids": _i(9, 9, 9, 1, 2, 3)}),
)  # fmt: skip
class B29GreedySteps(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.cell, self.head = nn.Embedding(10, 6), nn.GRUCell(6, 6), nn.Linear(6, 10)

    def forward(self, ids):
        token = ids.remainder(10)
        h = torch.zeros(ids.shape[0], 6)
        done = torch.zeros_like(token, dtype=torch.bool)
        out, score = [], torch.zeros(ids.shape[0])
        for _ in range(6):
            h = self.cell(self.emb(token), h)
            logp, token = self.head(h).log_softmax(-1).max(-1)
            token = token.masked_fill(done, 0)
            score += logp.where(~done, torch.zeros(()))
            done |= token == 4
            out.append(token)
        return torch.stack(out, 1), score, done


@forward(
    "x:float32[N,T,6]", dims=SHORT,
    feeds=(lambda: {"x": np.repeat(_r(2, 3, 6), 4, 1)}, lambda: {"x": np.zeros((1, 7, 6), np.float32)}),
)  # fmt: skip
def B29CollapsesCtc(self, x):
    ids = x.argmax(-1)
    keep = (ids != F.pad(ids, (1, 0), value=-1)[:, :-1]) & (ids != 0)
    place = keep.cumsum(1) - 1
    place = torch.where(keep, place, x.shape[1])
    out = torch.full((x.shape[0], x.shape[1] + 1), -1).scatter(1, place, ids)
    return out[:, :-1], keep.sum(1)


@attack("x:float32[N,T,8]", dims="N=1:1:3 T=1:7:20", feeds=(lambda: {"x": _r(1, 1, 8)}, lambda: {"x": _r(2, 20, 8)}))
class B29RelativeShift(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Linear(8, 8)
        self.u = nn.Parameter(torch.randn(8))

    def forward(self, x):
        n, t, c = x.shape
        place = torch.arange(t - 1, -t, -1.0)
        angle = place[:, None] * torch.exp(torch.arange(0, c, 2) * -(math.log(10000.0) / c))
        p = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        bd = (x + self.u) @ self.pos(p).T
        zero = bd.new_zeros(n, t, 1)
        bd = torch.cat([zero, bd], -1).view(n, -1, t)[:, 1:].view_as(bd)[..., : bd.shape[-1] // 2 + 1]
        return ((x @ x.transpose(1, 2) + bd) / math.sqrt(c)).softmax(-1) @ x


@attack("x:float32[N,T,8]", dims="N=1:1:3 T=1:7:20", feeds=(lambda: {"x": _r(1, 1, 8)}, lambda: {"x": _r(3, 2, 8, scale=50)}))
class B29ConformerConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Conv1d(8, 16, 1)
        self.deep = nn.Conv1d(8, 8, 6, padding="same", groups=8, dilation=3)
        self.bn = nn.BatchNorm1d(8)
        self.bn.running_var.uniform_(0.1, 3)
        self.down = nn.Conv1d(8, 8, 4, padding="same", padding_mode="replicate")

    def forward(self, x):
        y = F.glu(self.up(self.norm(x).mT), 1)
        return x + self.down(F.silu(self.bn(self.deep(y)))).mT


@attack("x:float32[T,N,4]", "h:float32[4,N,3]", "c:float32[4,N,6]", dims="N=1:2:4 T=1:9:20",
        feeds=(lambda: {"x": _r(1, 1, 4), "h": _r(4, 1, 3), "c": _r(4, 1, 6)},
               lambda: {"x": _r(20, 3, 4, scale=100), "h": _r(4, 3, 3), "c": _r(4, 3, 6, scale=1e4)}))  # fmt: skip
class B29ProjectedBothWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True, bias=False)

    def forward(self, x, h, c):
        y, (h, c) = self.rnn(x.flip(0), (h, c))
        return y.flip(0), h[::2], c[1::2]


@attack("x:float32[T,4]", dims="T=1:9:20", feeds=(lambda: {"x": _r(1, 4)}, lambda: {"x": _r(20, 4, scale=1e3)}))
class B29Unbatched(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 5, 3, nonlinearity="relu", bidirectional=True, bias=False)
        self.gru = nn.GRU(10, 3)

    def forward(self, x):
        y, h = self.rnn(x)
        z, g = self.gru(y)
        return z, h, g


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=2:30:150", feeds=(lambda: {"x": _r(1, 130, 4)}, lambda: {"x": _r(1, 33, 4)}))
class B29BucketsOfDistance(nn.Module):
    """T5's, whose logarithm is whole at distances of 16, 32 and 64."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(32, 1)

    def forward(self, x):
        t = x.shape[1]
        far = torch.arange(t)[None] - torch.arange(t)[:, None]
        bucket = (far > 0).long() * 16
        far = far.abs()
        large = 8 + (torch.log(far.float() / 8) / math.log(128 / 8) * (16 - 8)).to(torch.long)
        large = torch.min(large, torch.full_like(large, 15))
        bucket += torch.where(far < 8, far, large)
        return (x @ x.mT + self.bias(bucket)[..., 0]).softmax(-1) @ x


@forward(
    "scores:float32[B,6,50]", "so_far:float32[B,6]", dims="B=1:2:4",
    feeds=(lambda: {"scores": np.zeros((2, 6, 50), np.float32), "so_far": np.zeros((2, 6), np.float32)},
           lambda: {"scores": np.round(_r(3, 6, 50)), "so_far": np.round(_r(3, 6))}),
)  # fmt: skip
def B29BeamStep(self, scores, so_far):
    total = (so_far[..., None] + scores.log_softmax(-1)).flatten(1)
    best, index = total.topk(6, 1)
    parent, token = index // 50, index % 50
    kept = so_far.gather(1, parent)
    return best, parent.to(torch.int32), token, kept, (token == 3).any(1), (best / (5 + parent) ** 0.6).argmax(1)


@attack("x:float32[N,T,8]", "start:int64[1]", dims="N=1:1:2 T=1:7:20",
        feeds=(lambda: {"x": _r(1, 5, 8), "start": _i(100003)}, lambda: {"x": _r(1, 20, 8), "start": _i(-5)}))  # fmt: skip
class B29RotaryFrom(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", 1.0 / 10000 ** (torch.arange(0, 8, 2).float() / 8))

    def forward(self, x, start):
        place = torch.arange(x.shape[1]) + start.clamp(-100, 200000)
        angle = torch.outer(place.float(), self.freq).repeat_interleave(2, -1)
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * angle.cos() + turned * angle.sin()


@attack("x:float32[N,T,8]", dims="N=1:1:2 T=4:40:100", feeds=(lambda: {"x": _r(1, 33, 8)}, lambda: {"x": _r(1, 97, 8)}))
class B29DynamicBase(nn.Module):
    def forward(self, x):
        t, d = x.shape[1], 8
        base = 10000.0
        if t > 32:
            base = base * ((4.0 * t / 32) - 3.0) ** (d / (d - 2))
        freq = 1.0 / base ** (torch.arange(0, d, 2).float() / d)
        angle = torch.arange(t).float()[:, None] * freq
        scale = math.log(t) / math.log(32)
        return torch.cat([x[..., :4] * angle.cos(), x[..., 4:] * angle.sin()], -1) * scale


@attack(
    "x:float32[N,T,8]", "mask:int64[N,T]", dims=SHORT,
    feeds=(lambda: {"x": _r(2, 5, 8), "mask": np.array([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]])},
           lambda: {"x": _r(2, 5, 8, scale=30), "mask": np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])}),
)  # fmt: skip
class B29TwoLowestMasks(nn.Module):
    """Causal and padding masks of finfo.min, added: -inf where both, and a row with nothing else."""

    def forward(self, x, mask):
        low = torch.finfo(x.dtype).min
        t = x.shape[1]
        causal = torch.full((t, t), low).triu(1)[None]
        padding = (1.0 - mask.bool()[:, None].to(x.dtype)) * low
        return (x @ x.mT / 3 + causal + padding).softmax(-1) @ x


@attack("x:float32[N,T,8]", dims="N=1:1:2 T=1:21:50", feeds=(lambda: {"x": _r(1, 17, 8)}, lambda: {"x": _r(1, 48, 8)}))
class B29ChunkedMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation=F.silu)

    def forward(self, x):
        t = x.shape[1]
        chunk = torch.arange(t) // 8
        ahead = chunk[None] - chunk[:, None]
        return self.layer(x, src_mask=(ahead > 0) | (ahead < -2))


@attack(
    "x:float32[N,T,8]", "m:float32[N,S,8]", "pad:bool[N,S]", dims="N=1:2:3 T=1:5:9 S=1:6:12",
    feeds=(lambda: {"x": _r(2, 9, 8), "m": _r(2, 3, 8), "pad": np.array([[0, 1, 1], [1, 0, 1]], bool)},
           lambda: {"x": _r(1, 1, 8), "m": _r(1, 1, 8), "pad": np.array([[1]], bool)}),
)  # fmt: skip
class B29DecoderLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x, m, pad):
        pad = pad & ~pad.all(1, keepdim=True)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.decoder(x, m, tgt_mask=mask, tgt_is_causal=True, memory_key_padding_mask=pad)


@attack(
    "x:float32[N,T,4]", dims=SHORT,
    feeds=(lambda: {"x": np.concatenate([_r(2, 4, 4), np.zeros((2, 3, 4), np.float32)], 1)},
           lambda: {"x": np.zeros((3, 5, 4), np.float32)}),
)  # fmt: skip
class B29LengthsFromZeros(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        used = x.abs().sum(-1) != 0
        lengths = (used * torch.arange(1, x.shape[1] + 1)).amax(1)
        y, _ = self.rnn(x)
        last = y[torch.arange(x.shape[0]), lengths - 1]
        order = lengths.argsort(descending=True, stable=True)
        return last, last[order][order.argsort()], y * used[..., None] / lengths.clamp(min=1)[:, None, None]


@attack(
    "x:float32[N,T,4]", "durations:float32[N,T]", dims=SHORT,
    feeds=(lambda: {"x": _r(2, 4, 4), "durations": np.array([[0.5, 1.5, 2.5, -1], [3.5, 0, 0, 0.49999997]], np.float32)},),
)  # fmt: skip
class B29Regulates(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, durations):
        d = durations.clamp(-10, 10).mul(1.1).round().clamp_min(0).long()
        ends = d.cumsum(1)
        frames = torch.arange(40)
        hit = (frames[None, :, None] < ends[:, None]) & (frames[None, :, None] >= (ends - d)[:, None])
        return self.rnn(hit.float() @ x)[0], ends[:, -1], (frames[None] >= ends[:, -1:])


@attack("x:float32[N,T,4]", "reset:bool[N,5]", dims="N=1:2:4 T=5:9:20",
        feeds=(lambda: {"x": _r(2, 7, 4), "reset": np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 1]], bool)},))  # fmt: skip
class B29CellsWithResets(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)
        self.h0 = nn.Parameter(torch.randn(1, 4))

    def forward(self, x, reset):
        h = self.h0.expand(x.shape[0], -1)
        c = torch.zeros_like(h)
        outs = []
        for i, frame in enumerate(x[:, -5:].unbind(1)):
            h = torch.where(reset[:, i, None], self.h0, h)
            c = c * ~reset[:, i, None]
            h, c = self.cell(frame, (h, c))
            outs.append(h)
        return torch.stack(outs, 1), c


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=3:17:60", feeds=(lambda: {"x": _r(1, 31, 4)}, lambda: {"x": _r(1, 32, 4)}, lambda: {"x": _r(1, 7, 4)}))
class B29PyramidalEncoder(nn.Module):
    """Listen, attend and spell: pairs of frames are joined between the layers, an odd one is dropped."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LSTM(4, 4, batch_first=True, bidirectional=True), nn.LSTM(16, 4, batch_first=True)

    def forward(self, x):
        y = self.a(x)[0]
        if y.shape[1] % 2:
            y = y[:, :-1]
        y = y.reshape(y.shape[0], y.shape[1] // 2, -1)
        z = self.b(y)[0]
        return z, z.repeat_interleave(2, 1)[:, : x.shape[1]]
