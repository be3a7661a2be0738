# ruff: noqa: E501, B905 - attacks are written as users write them
"""Streaming code: caches shorter and longer than a chunk, offsets as inputs, filters, online statistics, hysteresis, endpoints."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

FROM_ONE = "N=1:2:3 T=1:9:24"
CACHED = "N=1:2:3 T=1:5:20 P=1:4:12"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")


def _pair(t, p, n=1, width=4, seed=0):
    r = np.random.RandomState(seed + t * 31 + p)
    return lambda: {"x": r.randn(n, t, width).astype(np.float32), "cache": r.randn(n, p, width).astype(np.float32)}


PAIRS = (_pair(1, 1), _pair(1, 12), _pair(20, 1, 3), _pair(3, 5, 2), _pair(5, 3), _pair(4, 4), _pair(2, 3), _pair(7, 8))


@attack("x:float32[N,T,4]", "cache:float32[N,6,4]", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "cache": np.arange(24, dtype=np.float32).reshape(1, 6, 4)}, lambda: {"x": np.ones((3, 7, 4), np.float32), "cache": np.zeros((3, 6, 4), np.float32)}))
class A3600CausalStack(nn.Module):
    """Two dilated causal convolutions that share one cache; the last frames of what was joined are the next cache."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(4, 4, 3, dilation=1), nn.Conv1d(4, 4, 3, dilation=2, groups=2)
        self.left = (2, 4)
    def step(self, conv, x, cache):
        joined = torch.cat([cache, x], 1)
        return conv(joined.mT).mT, joined[:, -cache.shape[1]:]
    def forward(self, x, cache):
        first, second = cache.split(self.left, 1)
        y, first = self.step(self.a, x, first)
        z, second = self.step(self.b, F.silu(y), second)
        return z + x, torch.cat([first, second], 1)
@forward("x:float32[N,T,4]", "cache:float32[N,P,4]", dims=CACHED, kinds=FINITE, feeds=PAIRS)
def A3601SlidingWindow(self, x, cache):
    """A window of eight over what was kept and what came; both the part that leaves and the one that stays."""
    joined = torch.cat([cache, x], 1)
    keep = joined[:, -8:]
    gone = joined[:, :-8]
    i = torch.arange(joined.shape[1])
    q = i[cache.shape[1]:, None]
    mask = (i[None] <= q) & (i[None] > q - 8)
    s = (x @ joined.mT).masked_fill(~mask, -math.inf).softmax(-1)
    return keep, gone.sum(1), s @ joined, mask.sum(1)
@forward("x:float32[N,T,4]", "cache:float32[N,P,4]", dims=CACHED, kinds=FINITE, feeds=PAIRS)
def A3602SinkAndRecent(self, x, cache):
    """StreamingLLM: two first and five last rows stay, by indices made of sizes; duplicates where all is short."""
    joined = torch.cat([cache, x], 1)
    n = joined.shape[1]
    if n <= 7:
        kept = joined
    else:
        kept = torch.cat([joined[:, :2], joined[:, n - 5:]], 1)
    places = torch.cat([torch.arange(min(2, n)), torch.arange(max(n - 5, 0), n)])
    return kept.cumsum(1)[:, -1], joined[:, places].mean(1), places
@forward("x:float32[N,T,4]", "start:int64[1]=0:100", dims=FROM_ONE, kinds=FINITE, feeds=tuple((lambda s=s, t=t: {"x": np.random.RandomState(t).randn(1, t, 4).astype(np.float32), "start": np.array([s])}) for s, t in ((0, 1), (15, 1), (16, 24), (12, 4), (13, 4), (100, 9))))
def A3603RingByOffset(self, x, start):
    """A ring of sixteen slots that is written at (start + i) mod 16, of a chunk that may be longer than the ring."""
    ring = x.new_zeros(x.shape[0], 16, 4)
    slots = (start + torch.arange(x.shape[1])) % 16
    ring[:, slots[-16:]] = x[:, -16:]
    age = (start + x.shape[1] - 1 - torch.arange(16)) % 16
    valid = torch.arange(16) < (start + x.shape[1]).clamp(max=16)
    return ring, age, ring.gather(1, age[None, :, None].expand(x.shape[0], -1, 4)) * valid[:, None]
@forward("x:float32[N,T,4]", "start:int32[N]=0:70000", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.ones((2, 5, 4), np.float32), "start": np.array([65535, 2048], np.int32)}, lambda: {"x": np.ones((1, 1, 4), np.float32), "start": np.array([2049], np.int32)}, lambda: {"x": np.ones((1, 24, 4), np.float32), "start": np.array([69999], np.int32)}))
def A3604OffsetsInHalf(self, x, start):
    """Positions of a stream, in half precision at one place and in int16 at another."""
    at = start[:, None] + torch.arange(x.shape[1], dtype=torch.int32)
    angle = at.half() * 0.01
    short = at.to(torch.int16)
    even = (at % 2 == 0)
    return x * angle[..., None], short, short.float() / 32768, at.to(torch.bfloat16).float(), torch.where(even[..., None], x, -x), (at.half() > 2047.5)
@attack("x:float32[N,T,4]", "state:float32[N,2,4]", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "state": np.zeros((1, 2, 4), np.float32)}, lambda: {"x": np.full((2, 24, 4), -0.0, np.float32), "state": np.full((2, 2, 4), -0.0, np.float32)}))
class A3605Biquad(nn.Module):
    """A high-pass of second order in transposed direct form II, sample by sample, clipped in place."""
    def __init__(self, cutoff=0.2, q=0.7071):
        super().__init__()
        w = math.pi * cutoff
        alpha = math.sin(w) / (2 * q)
        a0 = 1 + alpha
        self.register_buffer("b", torch.tensor([(1 + math.cos(w)) / 2, -(1 + math.cos(w)), (1 + math.cos(w)) / 2]) / a0)
        self.register_buffer("a", torch.tensor([-2 * math.cos(w), 1 - alpha]) / a0)
    def forward(self, x, state):
        s1, s2 = state.unbind(1)
        y = torch.empty_like(x)
        for i in range(x.shape[1]):
            o = self.b[0] * x[:, i] + s1
            s1 = self.b[1] * x[:, i] - self.a[0] * o + s2
            s2 = self.b[2] * x[:, i] - self.a[1] * o
            y[:, i] = o
        return y.clamp_(-1, 1), torch.stack([s1, s2], 1)
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=("normal", "unit", "zeros", "tenths", "ones", "positive", "tiny"), feeds=(normal(1, 1, 4), normal(2, 24, 4), lambda: {"x": np.full((1, 5, 4), 1e-8, np.float32)}))
class A3606Pcen(nn.Module):
    """Per-channel energies with an initial smoother that is the first frame, and a root of a learnt power."""
    def __init__(self, s=0.025):
        super().__init__()
        self.s = s
        self.alpha, self.delta, self.r = (nn.Parameter(torch.full((4,), v)) for v in (0.98, 2.0, 0.5))
    def smooth(self, e):
        m, out = e[:, 0], []
        for frame in e.unbind(1):
            m = (1 - self.s) * m + self.s * frame
            out.append(m)
        return torch.stack(out, 1)
    def forward(self, x):
        e = x.abs()
        m = self.smooth(e)
        return (e / (1e-6 + m).pow(self.alpha.clamp(max=1)) + self.delta).pow(self.r) - self.delta.pow(self.r)
@forward("x:float32[N,T]", "on:bool[N]", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.array([[0.6, 0.5, 0.3, 0.3000001, 0.29999998, 0.6]], np.float32), "on": np.array([True])}, lambda: {"x": np.array([[0.5]], np.float32), "on": np.array([False])}))
def A3607Hysteresis(self, x, on):
    """Voiced above 0.6, unvoiced below 0.3, else as before; the hangover keeps three frames."""
    out, hang = [], torch.zeros(x.shape[0], dtype=torch.int64)
    for frame in x.unbind(1):
        on = torch.where(frame > 0.6, torch.ones_like(on), torch.where(frame < 0.3, torch.zeros_like(on), on))
        hang = torch.where(on, torch.full_like(hang, 3), (hang - 1).clamp(min=0))
        out.append(on | (hang > 0))
    voiced = torch.stack(out, 1)
    return voiced, hang, (voiced[:, 1:] & ~voiced[:, :-1]).sum(1), voiced.float().mean(1)
@forward("x:float32[N,T,4]", "mean:float32[4]", "count:int64[1]=0:1000", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "mean": np.zeros(4, np.float32), "count": np.array([0])}, lambda: {"x": np.ones((3, 24, 4), np.float32) * 7, "mean": np.ones(4, np.float32), "count": np.array([16777217])}))
def A3608WelfordChunk(self, x, mean, count):
    """Chan's merge of a chunk into a running mean, with a count of frames that goes on."""
    n = x.shape[0] * x.shape[1]
    own = x.mean((0, 1))
    total = count + n
    delta = own - mean
    merged = mean + delta * n / total
    m2 = ((x - own) ** 2).sum((0, 1)) + delta**2 * count * n / total
    return merged, (m2 / (total - 1).clamp(min=1)).sqrt(), total, (n / total).floor(), total // n, total % n
@forward("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 10, 4), normal(2, 11, 4), normal(1, 24, 4)))
def A3609WeightedOverlapAdd(self, x):
    """Frames of four with a hop of three, windowed, moved back and divided by the windows' sum."""
    w = torch.hann_window(4, periodic=False) + 0.1
    y = F.pad(x.mT, (0, (-(x.shape[1] - 4)) % 3 if x.shape[1] > 4 else 4 - x.shape[1]))
    frames = y.unfold(-1, 4, 3) * w
    n = frames.shape[2]
    length = (n - 1) * 3 + 4
    out = F.fold(frames.permute(0, 1, 3, 2).reshape(x.shape[0], 16, n), (1, length), (1, 4), stride=(1, 3))
    norm = F.fold((w[None, :, None] ** 2).expand(1, 4, n), (1, length), (1, 4), stride=(1, 3))
    return (out / norm)[:, :, 0, : x.shape[1]].mT
@forward("x:float32[N,T,4]", "cache:float32[N,P,4]", dims=CACHED, kinds=FINITE, feeds=PAIRS)
def A3610CacheWrittenBehindAView(self, x, cache):
    """The cache is shifted in place as deques are: what is read is copied first."""
    joined = torch.cat([cache, x], 1)
    window = joined[:, -4:]
    old = window.clone()
    window[:, :-1] = old[:, 1:]
    window[:, -1].mul_(0.5).add_(old[:, 0])
    return joined, old - window, joined[:, : cache.shape[1]].amax(1)
@forward("x:float32[N,T]", dims="N=1:2:3 T=4:9:40", kinds=FINITE, feeds=(halves(1, 4), halves(1, 7), halves(2, 8), halves(1, 9), halves(1, 40), halves(3, 39)))
def A3611Decimator(self, x):
    """Half-band twice; the rest of an odd chunk is given back for the next call."""
    taps = torch.tensor([0.25, 0.5, 0.25])
    rest = x[:, x.shape[1] // 4 * 4:]
    y = x[:, : x.shape[1] - x.shape[1] % 4]
    for _ in range(2):
        y = F.conv1d(F.pad(y[:, None], (2, 0)), taps[None, None], stride=2)[:, 0]
    return y, rest, rest.sum(1), torch.tensor(y.shape[1] + rest.shape[1])
@attack("x:float32[N,T,4]", "h:float32[1,N,5]", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "h": np.zeros((1, 1, 5), np.float32)},))
class A3612SkipsSilence(nn.Module):
    """A GRU whose state moves on only in frames that are not silent; silent frames repeat what came out."""
    def __init__(self, floor=0.25):
        super().__init__()
        self.cell, self.out, self.floor = nn.GRUCell(4, 5), nn.Linear(5, 3), floor
    def forward(self, x, h):
        state, ys = h[0], []
        loud = x.abs().amax(-1) >= self.floor
        for frame, go in zip(x.unbind(1), loud.unbind(1)):
            state = torch.where(go[:, None], self.cell(frame, state), state)
            ys.append(self.out(state))
        y = torch.stack(ys, 1)
        return y, state[None], loud.int().sum(1, dtype=torch.int32), y[:, -1].argmax(-1)
@forward("x:float32[N,T,4]", "done:int64[N]=0:30", dims=FROM_ONE, kinds=FINITE, feeds=(lambda: {"x": np.ones((2, 6, 4), np.float32), "done": np.array([0, 6])}, lambda: {"x": np.ones((1, 1, 4), np.float32), "done": np.array([1])}))
def A3613LookaheadBudget(self, x, done):
    """Chunks of eight frames with two of look-ahead: how many can be sent, and which are masked."""
    ready = torch.div(done + x.shape[1] - 2, 8, rounding_mode="floor").clamp(min=0)
    sent = ready * 8
    at = done[:, None] + torch.arange(x.shape[1])
    chunk = at // 8
    mask = chunk[:, :, None] >= chunk[:, None]
    a = (x @ x.mT / 2).masked_fill(~mask, torch.finfo(x.dtype).min).softmax(-1) @ x
    return a * (at < sent[:, None])[..., None], ready, (at[:, -1] + 1) % 8, (sent - done).clamp(min=0, max=x.shape[1])
@forward("x:float32[N,T]", "phase:float32[N]", dims="N=1:2:3 T=1:9:64", kinds=FEW, feeds=(lambda: {"x": np.full((1, 64), 440.0, np.float32), "phase": np.zeros(1, np.float32)}, lambda: {"x": np.full((2, 1), 0.5, np.float32), "phase": np.array([0.5, 0.999], np.float32)}))
def A3614OscillatorPhase(self, x, phase):
    """A saw by the phase in turns that goes on from chunk to chunk, and a pulse at each wrap."""
    turns = phase[:, None] + torch.cumsum(x / 16, 1)
    inside = turns - turns.floor()
    wraps = torch.diff(turns.floor(), dim=1, prepend=phase[:, None].floor())
    return inside * 2 - 1, wraps.clamp(0, 1), inside[:, -1], torch.frac(turns), torch.sign(inside - 0.5)
@forward("x:int16[N,T]=-32768:32767", dims="N=1:2:3 T=1:9:64", feeds=(lambda: {"x": np.full((1, 64), -32768, np.int16)}, lambda: {"x": np.array([[-32768, 32767, -1, 0, 1]], np.int16)}, lambda: {"x": np.array([[-32768]], np.int16)}))
def A3615PcmMeters(self, x):
    """Peaks, power, zero crossings and clipping of 16-bit samples."""
    peak = x.abs().amax(1)
    wide = x.to(torch.int32)
    power = (wide * wide).sum(1)
    crossings = ((x[:, 1:] ^ x[:, :-1]) < 0).sum(1)
    clipped = ((x == 32767) | (x == -32768)).float().mean(1)
    db = 10 * torch.log10(power.float() / x.shape[1] / 32768**2 + 1e-10)
    return peak, power, crossings, clipped, db, (x >> 15), -x, (x.float() / 32768).half(), wide.abs().amax(1)
@attack("x:float32[N,T,4]", "mem:float32[N,P,4]", "m:bool[N,P]", dims=CACHED, kinds=FINITE)
class A3616MemoryAttention(nn.Module):
    """Emformer: keys of a memory with padding, of the left context and of the chunk; a summary per four frames."""
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 4, bias=False), nn.Linear(4, 8)
    def forward(self, x, mem, m):
        summary = F.avg_pool1d(x.mT, 4, ceil_mode=True).mT
        k, v = self.kv(torch.cat([mem, x], 1)).chunk(2, -1)
        q = self.q(torch.cat([x, summary], 1))
        hidden = torch.cat([m, m.new_zeros(x.shape[:2])], 1)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden[:, None])
        y, s = a.split([x.shape[1], summary.shape[1]], 1)
        return y, torch.cat([mem, s.clamp(-1, 1)], 1)[:, -4:]
@forward("x:float32[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(halves(1, 1), halves(2, 24), halves(1, 3), lambda: {"x": np.zeros((2, 4), np.float32)}))
def A3617Agc(self, x):
    """Attack at once and release slowly; the gain of the next sample is by the envelope before it."""
    env, out = torch.full_like(x[:, 0], 0.1), []
    for i, sample in enumerate(x.unbind(1)):
        level = sample.abs()
        out.append((sample * (0.5 / env.clamp_min(1e-3))).clamp(-1, 1) if i % 2 == 0 else sample / (1 + env))
        env = torch.maximum(level, env * 0.7)
    return torch.stack(out, 1), env, (torch.stack(out, -1) >= 1).any(-1)
@forward("x:float32[N,T,4]", "skip:int64[1]=0:5", dims="N=1:2:3 T=6:9:24", kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 6, 4), np.float32), "skip": np.array([5])}, lambda: {"x": np.ones((1, 6, 4), np.float32), "skip": np.array([0])}))
def A3618DelayByAnInput(self, x, skip):
    """A delay of a number of frames that is an input: rolled and masked, and gathered with clamps."""
    i = torch.arange(x.shape[1])
    src = i - skip
    a = torch.where((src >= 0)[:, None], x[:, src.clamp(min=0)], 0.0)
    b = x.index_select(1, (i + skip) % x.shape[1])
    c = torch.where(i[:, None] < skip, b.flip(1), a)
    return a, b, c, x.take_along_dim(src.remainder(x.shape[1])[None, :, None], 1)
@forward("x:float32[N,T,3]", dims=FROM_ONE, kinds=FEW, feeds=(normal(1, 1, 3), normal(2, 24, 3)))
def A3619Kalman(self, x):
    """A constant-velocity filter for each channel; the gain does not see the data, the gate does."""
    p, v = x[:, 0], torch.zeros_like(x[:, 0])
    cov = torch.eye(2).mul(10.0)
    f, h = torch.tensor([[1.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    out = []
    for z in x.unbind(1):
        p = p + v
        cov = f @ cov @ f.T + 0.01 * torch.eye(2)
        s = (h @ cov @ h.T).squeeze() + 1
        k = cov @ h.T / s
        r = z - p
        r = torch.where(r.abs() > 3 * s.sqrt(), torch.zeros_like(r), r)
        p, v = p + k[0] * r, v + k[1] * r
        cov = (torch.eye(2) - k @ h) @ cov
        out.append(p)
    return torch.stack(out, 1), v, cov
@forward("x:float16[N,T]=-100:100", dims=FROM_ONE, kinds=FEW, feeds=(lambda: {"x": np.array([[0.1, 0.2, 0.3, 0.7, 1000, 2049, 65504]], np.float16)}, lambda: {"x": np.full((1, 24), 0.1, np.float16)}), refused="the path through the module depends on the size")
def A3620HalfSmoother(self, x):
    """Half precision in every step: each product and sum is rounded before the next."""
    y, out = x[:, 0], []
    for v in x.unbind(1):
        y = y + 0.1 * (v - y)
        out.append(y)
    z = torch.stack(out, 1)
    return z, torch.lerp(x, z, 0.3), torch.add(x, z, alpha=0.7), (x - z).abs() > 0.05, torch.addcmul(x, z, z, value=0.1), x.clamp(-0.3, 0.7), z.div(3).mul(3) == z
@forward("x:float16[N,T]=-100:100", dims=FROM_ONE, kinds=FEW, feeds=(lambda: {"x": np.array([[0.1, 0.2, 0.3, 0.7, 0.0999, 0.1001, 60000]], np.float16)}, lambda: {"x": np.full((1, 24), 0.1, np.float16)}, lambda: {"x": np.array([[0.3]], np.float16)}))
def A3621HalfBySizes(self, x):
    """Numbers of the size beside halves: thresholds, scales and fills."""
    t = x.shape[1]
    m = torch.tensor(0.1 * t)
    return x > 0.1 * t, x * (0.1 * t), x >= m, x + 1 / t, torch.where(x > 0, x, 0.1 * t), x.masked_fill(x < 0.3, 1 / (t + 2)), torch.full_like(x, 0.3 * t), x.new_tensor(0.1) * t == x, torch.eq(x, 0.1), x / t, x ** (1 / t)
@forward("x:float32[N,T,4]", "start:int64[1]=0:1000", dims=FROM_ONE, kinds=FINITE, feeds=tuple((lambda s=s, t=t: {"x": np.random.RandomState(t).randn(1, t, 4).astype(np.float32), "start": np.array([s])}) for s, t in ((0, 1), (999, 24), (1000, 7), (7, 1), (8, 3))))
def A3622MelodyOfSchedules(self, x, start):
    """Cosine warm restarts, warm-up and a stair over steps that go on: whole numbers with decimals."""
    step = start + torch.arange(x.shape[1])
    warm = torch.clamp((step + 1) / 8, max=1.0)
    cosine = 0.5 * (1 + torch.cos(math.pi * (step % 10) / 10))
    stair = 0.9 ** torch.div(step, 100, rounding_mode="floor")
    inverse = (step + 1) ** -0.5
    hit = (step * 0.1).floor() == step // 10
    return x * (warm * cosine * stair * inverse)[:, None], hit, (step / 0.1).round().long(), step % 0.3 < 0.1
@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:9:40", kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 16, 4), normal(1, 17, 4), normal(2, 40, 4)))
def A3623ChunksWithContext(self, x):
    """Chunks of eight, each with two frames of either side, all of them as one batch and put back together."""
    n, t = x.shape[:2]
    c = -(-t // 8)
    y = F.pad(x, (0, 0, 2, c * 8 - t + 2))
    w = y.unfold(1, 12, 8)
    z = w.permute(0, 1, 3, 2).reshape(n * c, 12, 4)
    z = z - z.mean(1, keepdim=True)
    z = (z.softmax(1) * z)[:, 2:-2]
    return z.reshape(n, c * 8, 4)[:, :t], w.amax(-1), z.view(n, c, -1).sum(-1)
@attack("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 2, 4), normal(2, 24, 4)), refused="the path through the module depends on the size")
class A3624DeltaModulator(nn.Module):
    """Sends a difference where it is large enough; the decoder's state is what the encoder knows of it."""
    def __init__(self, step=0.25, config=None):
        super().__init__()
        self.step, self.config = step, config or {"leak": 0.9, "adaptive": True}
        self.register_buffer("gain", torch.tensor([1.0, 0.5, 2.0, 1.0]))
    def forward(self, x):
        known, step, codes = torch.zeros_like(x[:, 0]), torch.full_like(x[:, 0], self.step), []
        for frame in (x * self.gain).unbind(1):
            code = torch.round((frame - known) / step).clamp(-8, 7)
            known = known * self.config["leak"] + code * step
            if self.config["adaptive"]:
                step = torch.where(code.abs() >= 4, step * 2, step * 0.5).clamp(2**-4, 4.0)
            codes.append(code.to(torch.int8))
        c = torch.stack(codes, 1)
        packed = (c[..., ::2].to(torch.uint8) << 4) | (c[..., 1::2].to(torch.uint8) & 15)
        return c, known, packed, step
