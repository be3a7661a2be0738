"""Vision and speech pipelines: pre- and post-processing, heads, decoders, codes; as users write them."""
# ruff: noqa: E501, E731, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import at_sides

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"
I = "x:float32[N,3,H,W]"
HW = "N=1:1:2 H=4:6:11 W=5:8:12"


@forward("x:uint8[N,H,W,3]=0:255", dims="N=1:1:2 H=4:6:9 W=4:7:10")
def A8041BytesPipeline(self, x):
    """uint8 arithmetic that wraps: brightness by adding 100, 255 - x, bitwise masks, average by shifts, mean in float, absdiff by max minus min."""
    b = x + 100
    inv = 255 - x
    avg = (x >> 1) + (x.flip(1) >> 1) + (x & x.flip(1) & 1)
    diff = torch.maximum(x, x.flip(2)) - torch.minimum(x, x.flip(2))
    return b, inv * 3, avg, diff, (x.sum((1, 2)) % 256), x.float().mean((1, 2)), -x, x // 7, x % 7


@forward("x:uint8[N,3,H,W]=0:255", dims=HW, noted="lie at a step")
def A8042ResizeBytes(self, x):
    """torchvision's resize of bytes: bilinear with antialias, rounded, clamped, back to uint8, normalised."""
    y = F.interpolate(x.float(), (5, 7), mode="bilinear", antialias=True, align_corners=False).round().clamp(0, 255).to(torch.uint8)
    return (y.float() / 255 - 0.5) / 0.25, F.interpolate(x.float(), (4, 4), mode="bicubic", antialias=True, align_corners=False).clamp(0, 255)


@forward(I, dims=HW, kinds=FINITE, feeds=at_sides(I, hw=((4, 12), (11, 5), (7, 7))))
def A8043EveryInterpolate(self, x):
    """nearest-exact, area, bicubic by scale 0.7 with recompute, linear along one axis, nearest up by 1.5, to a size of odd halves."""
    h, w = x.shape[-2:]
    a = F.interpolate(x, size=(h // 2 + 1, w // 2), mode="nearest-exact")
    b = F.interpolate(x, size=(3, 2), mode="area")
    c = F.interpolate(x, size=(h * 2 - 1, w * 2 - 1), mode="bicubic", align_corners=True)
    d = F.interpolate(x.flatten(1, 2), scale_factor=1.5, mode="nearest")
    e = F.interpolate(x, scale_factor=0.75, mode="bilinear", recompute_scale_factor=True)
    f = F.interpolate(x[:, :, None], size=(2, h, w), mode="nearest")
    return a, b, c, d, e, f


@forward("x:float32[N,2,H,W]", "g:float32[N,3,5,2]=-1.6:1.6", dims=HW, kinds=FINITE)
def A8044EveryGridSample(self, x, g):
    """grid_sample: reflection with both alignments, border, bicubic zeros, nearest at halves."""
    return (
        F.grid_sample(x, g, padding_mode="reflection", align_corners=True), F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
        F.grid_sample(x, g, padding_mode="border", align_corners=False), F.grid_sample(x, g, mode="bicubic", padding_mode="zeros", align_corners=True),
        F.grid_sample(x, g, mode="bicubic", padding_mode="border", align_corners=False),
    )  # fmt: skip


@forward("x:float32[N,2,H,W]", dims=HW, kinds=FINITE)
def A8045DeformableByHand(self, x):
    """Optical-flow warp: a mesh of the size plus a flow from the image, normalised by max(w - 1, 1), validity by a warped mask of ones."""
    n, _, h, w = x.shape
    yy, xx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    flow = torch.tanh(x) * 1.3
    gx = 2.0 * (xx + flow[:, 0]) / max(w - 1, 1) - 1.0
    gy = 2.0 * (yy + flow[:, 1]) / max(h - 1, 1) - 1.0
    grid = torch.stack((gx, gy), -1)
    y = F.grid_sample(x, grid, align_corners=True)
    m = F.grid_sample(torch.ones_like(x[:, :1]), grid, align_corners=True)
    return y, (m * 0.999).clamp(max=0.99)


@forward("x:float32[N,18,H,W]", dims="N=1:1:2 H=2:4:7 W=3:5:6", kinds=FINITE)
def A8046YoloV5Decode(self, x):
    """Three anchors, offsets from a meshgrid, strides, concatenated levels by max-pool, conf times class, xywh to xyxy, top three of each class-free."""
    out = []
    anchors = torch.tensor([[[10.0, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]]])
    for i, y in enumerate((x, F.max_pool2d(x, 2, ceil_mode=True))):
        n, _, h, w = y.shape
        p = y.view(n, 3, 6, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        gy, gx = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
        g = torch.stack((gx, gy), -1)
        xy = (p[..., :2] * 2 - 0.5 + g) * 8 * 2**i
        wh = (p[..., 2:4] * 2) ** 2 * anchors[i].view(1, 3, 1, 1, 2)
        out.append(torch.cat((xy - wh / 2, xy + wh / 2, p[..., 4:5] * p[..., 5:]), -1).flatten(1, 3))
    z = torch.cat(out, 1)
    s, _ = z[..., 4].topk(3, 1)
    return z, s


@forward("x:float32[N,8,H,W]", dims="N=1:1:2 H=2:4:7 W=3:5:6", kinds=FINITE)
def A8047CenterNetPeaks(self, x):
    """CenterNet: sigmoid clamp, 3x3 peaks by equality with max_pool, top-k over flat with div and remainder, gather of offsets, dims swapped."""
    heat = torch.sigmoid(x[:, :2]).clamp(1e-4, 1 - 1e-4)
    keep = (F.max_pool2d(heat, 3, 1, 1) == heat).float()
    n, c, h, w = heat.shape
    s, i = torch.topk((heat * keep).view(n, -1), 4)
    cls = torch.div(i, h * w, rounding_mode="floor")
    i = i % (h * w)
    ys, xs = torch.div(i, w, rounding_mode="trunc").float(), (i % w).float()
    off = x[:, 2:4].permute(0, 2, 3, 1).reshape(n, -1, 2).gather(1, i[..., None].expand(-1, -1, 2))
    return s, (heat * keep).sum((1, 2, 3))[:, None] + 0 * cls, keep, torch.where(s > 1e-3, xs * 0 + ys * 0, 0.0), off.shape[1] * s


@forward("x:float32[N,T,6]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, feeds=(halves(2, 6, 6),))
def A8048CtcGreedy(self, x):
    """Greedy CTC: argmax, repeats removed by comparison with the one before, blanks to -1, packed to the left by a stable sort, lengths, text scores."""
    p = x.argmax(-1)
    prev = F.pad(p, (1, 0), value=-1)[:, :-1]
    keep = (p != prev) & (p != 0)
    order = torch.argsort((~keep).int(), dim=1, stable=True)
    packed = torch.where(keep, p, -1).gather(1, order)
    return packed, keep.sum(1), (x.log_softmax(-1).amax(-1) * keep).sum(1)


@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:8", kinds=FINITE)
def A8049CrfViterbi(self, x):
    """A CRF of four tags: Viterbi forward with back-pointers, traceback by a reversed loop of gathers; log partition by logsumexp."""
    trans = torch.tensor([[0.1, -0.2, 0.3, 0.0], [0.5, 0.0, -0.4, 0.2], [-0.3, 0.7, 0.1, -0.1], [0.2, 0.2, -0.5, 0.4]])
    score, alpha, back = x[:, 0], x[:, 0], []
    for t in range(1, x.shape[1]):
        m = score[:, :, None] + trans
        s, i = m.max(1)
        back.append(i)
        score = s + x[:, t]
        alpha = torch.logsumexp(alpha[:, :, None] + trans, 1) + x[:, t]
    best, tag = score.max(-1)
    path = [tag]
    for i in reversed(back):
        tag = i.gather(1, tag[:, None])[:, 0]
        path.append(tag)
    return best, torch.stack(path[::-1], 1), torch.logsumexp(alpha, -1)


@attack("x:float32[N,L]", dims="N=1:1:2 L=64:100:160", kinds=FINITE)
class A8050LogMelFrontEnd(nn.Module):
    """Kaldi-like fbank: DC removed per frame, preemphasis with a replicated first sample, povey window, rfft to 32, mel of triangles, log with a floor, deltas by replicate pads, CMVN over time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("win", torch.hann_window(25, periodic=False) ** 0.85)
        f = torch.linspace(0, 1, 17)
        c = torch.linspace(0, 1, 7)
        self.register_buffer("mel", (1 - (f[None] - c[1:-1, None]).abs() * 6).clamp(min=0))

    def forward(self, x):
        fr = x.unfold(1, 25, 10)
        fr = fr - fr.mean(-1, keepdim=True)
        pre = F.pad(fr, (1, 0), mode="replicate")[..., :-1]
        fr = (fr - 0.97 * pre) * self.win
        p = torch.fft.rfft(fr, 32).abs() ** 2
        m = (p @ self.mel.T).clamp(min=1e-5).log()
        pad = F.pad(m.transpose(1, 2), (2, 2), mode="replicate")
        d = sum(n * (pad[..., 2 + n : m.shape[1] + 2 + n] - pad[..., 2 - n : m.shape[1] + 2 - n]) for n in (1, 2)) / 10
        return m - m.mean(1, keepdim=True), d.transpose(1, 2)


@forward("x:float32[N,L]", dims="N=1:1:2 L=32:50:80", kinds=FINITE)
def A8051StftRoundTrip(self, x):
    """stft without centre and with reflect; power spectrum gated, istft by overlap-add with window envelope."""
    w = torch.hann_window(16)
    z = torch.stft(x, 16, 4, window=w, center=True, pad_mode="reflect", return_complex=True, onesided=True)
    mag = z.abs()
    gate = (mag > mag.mean(-1, keepdim=True)).float()
    return mag, torch.stft(x, 16, 5, 12, torch.ones(12), center=False, normalized=True, return_complex=True).real, gate.mean((1, 2)) * 0


@forward("x:float32[N,L]", dims="N=1:1:2 L=32:50:80", kinds=FINITE)
def A8052Istft(self, x):
    """stft and istft with a length: the signal comes back."""
    w = torch.hamming_window(16)
    z = torch.stft(x, 16, 4, window=w, return_complex=True)
    return torch.istft(z * 0.5, 16, 4, window=w, length=x.shape[1])


@forward("x:float32[N,C,L]", dims="N=1:1:2 C=1:2:3 L=5:8:13", kinds=FINITE, refused="no form of cummax")
def A8053FilterBank(self, x):
    """Biquads by a loop over time with clamps, polyphase by pixel shuffles of one axis, comb by roll, envelope by cummax decays, zero crossings by signbit."""
    y1 = y2 = torch.zeros(x.shape[:2])
    out = []
    for t in range(x.shape[-1]):
        y = (0.3 * x[..., t] + 0.5 * y1 - 0.2 * y2).clamp(-1, 1)
        y1, y2 = y, y1
        out.append(y)
    z = (torch.signbit(x[..., 1:]) != torch.signbit(x[..., :-1])).sum(-1)
    return torch.stack(out, -1), x + 0.5 * x.roll(3, -1), z, x.abs().cummax(-1).values


@forward(X, dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8054FullyMaskedRows(self, x):
    """scaled_dot_product_attention with boolean masks whose rows may be empty, with an additive mask of -inf, and by hand with finfo.min."""
    q = x.view(x.shape[0], x.shape[1], 2, 3).transpose(1, 2)
    m = (x[..., :1] > 0) & (x[..., :1] > 0).transpose(1, 2)
    a = F.scaled_dot_product_attention(q, q, q, attn_mask=m[:, None])
    s = (q @ q.transpose(-1, -2)).masked_fill(~m[:, None], torch.finfo(torch.float32).min).softmax(-1) @ q
    b = F.scaled_dot_product_attention(q, q, q, attn_mask=torch.zeros(x.shape[1], x.shape[1]).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -math.inf), scale=0.3)
    return a, s, b


@attack(X, dims=D, kinds=FINITE)
class A8055MhaVariants(nn.Module):
    """MultiheadAttention: add_zero_attn, bias_kv, kdim, average weights off, a causal float mask beside a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.MultiheadAttention(6, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)
        self.b = nn.MultiheadAttention(6, 3, kdim=4, vdim=2, batch_first=True)

    def forward(self, x):
        x = torch.tanh(x)
        t = x.shape[1]
        pad = (torch.arange(t) >= t - 1)[None].expand(len(x), -1) & (x[:, :1, 0] > 0)
        m = nn.Transformer.generate_square_subsequent_mask(t)
        y, w = self.a(x, x, x, key_padding_mask=pad.float().masked_fill(pad, -math.inf), attn_mask=m, average_attn_weights=False)
        z, v = self.b(x, x[..., :4], x[..., 4:])
        return y, w, z, v


@attack(X, "len:int64[N]=1:9", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="")
class A8056PackedRnn(nn.Module):
    """pack_padded_sequence, enforce_sorted False, bidirectional GRU with two layers, pad_packed with a total length."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.GRU(6, 4, 2, batch_first=True, bidirectional=True)

    def forward(self, x, len):
        p = nn.utils.rnn.pack_padded_sequence(x, len.clamp(max=x.shape[1]), batch_first=True, enforce_sorted=False)
        y, h = self.rnn(p)
        y, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
        return y, h


@attack(X, dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A8057RnnsOfAllKinds(nn.Module):
    """A projected LSTM, an RNN with relu, a GRU without bias, cells of a reversed direction, initial states from the input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.LSTM(6, 5, proj_size=3, batch_first=True)
        self.b = nn.RNN(6, 3, nonlinearity="relu", batch_first=True, bidirectional=True)
        self.c = nn.GRU(6, 3, bias=False)

    def forward(self, x):
        x = torch.tanh(x)
        y, (h, c) = self.a(x, (x[None, :, 0, :3].contiguous(), x[None, :, -1, :5].contiguous()))
        z, _ = self.b(x.flip(1))
        w, g = self.c(x.transpose(0, 1), x[:, 0, 3:][None].contiguous())
        return {"y": y, "h": (h, c), "z": z, "rest": [w, g]}


@forward("x:float32[N,2,D,H,W]", dims="N=1:1:2 D=2:3:4 H=3:4:5 W=3:4:6", kinds=FINITE)
def A8058VolumePads(self, x):
    """3-D: reflect, replicate, circular and constant pads of several axes, negative pads, avg_pool3d with a divisor, max_pool with dilation, trilinear."""
    return (
        F.pad(x, (1, 2, 1, 0, 1, 1), mode="reflect"), F.pad(x, (2, 1, 0, 3, 1, 1), mode="circular"), F.pad(x, (-1, 2, 0, -1, 0, 0), value=3.0),
        F.pad(x, (4, 4, 1, 1, 2, 2), mode="replicate"), F.avg_pool3d(x, 2, 1, 1, count_include_pad=False, divisor_override=3), F.max_pool3d(x, 2, 1, dilation=(1, 2, 2)),
        F.interpolate(x, size=(3, 5, 4), mode="trilinear", align_corners=False),
    )  # fmt: skip


@forward("x:float32[N,4,H,W]", dims="N=1:1:2 H=4:6:9 W=4:6:9", kinds=FINITE, feeds=(normal(1, 4, 9, 9), normal(2, 4, 8, 5)))
def A8059SwinWindows(self, x):
    """Pads to windows of three, roll by one, partition, masks by region ids compared, attention per window, reversed, cropped; relative positions by an indexed table."""
    n, c, h, w = x.shape
    ph, pw = -h % 3, -w % 3
    y = F.pad(x, (0, pw, 0, ph)).roll((-1, -1), (2, 3))
    hh, ww = h + ph, w + pw
    part = lambda t: t.view(t.shape[0], t.shape[1], hh // 3, 3, ww // 3, 3).permute(0, 2, 4, 3, 5, 1).reshape(-1, 9, t.shape[1])
    ids = torch.zeros(1, 1, hh, ww)
    k = 0
    for a in (slice(0, -3), slice(-3, -1), slice(-1, None)):
        for b in (slice(0, -3), slice(-3, -1), slice(-1, None)):
            ids[:, :, a, b] = k
            k += 1
    m = part(ids)
    m = torch.where(m != m.transpose(1, 2), -100.0, 0.0)
    yy, xx = torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij")
    rel = torch.stack((yy, xx)).flatten(1)
    rel = ((rel[:, :, None] - rel[:, None]).permute(1, 2, 0) + 2) * torch.tensor([5, 1])
    table = torch.linspace(-1, 1, 25)
    v = part(y)
    att = (v @ v.transpose(1, 2) * 0.1 + table[rel.sum(-1)] + m.repeat(n, 1, 1)).softmax(-1)
    z = (att @ v).view(n, hh // 3, ww // 3, 3, 3, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, hh, ww)
    return z.roll((1, 1), (2, 3))[..., :h, :w]
