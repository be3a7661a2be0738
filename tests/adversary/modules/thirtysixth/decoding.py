# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Language: beam steps, sampling filters, penalties, blocking, alignments by dynamic programming, masks of packed texts, routing, caches."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

ROWS = "N=1:2:3 T=1:9:24"
TWO = "N=1:2:3 T=1:5:9 S=1:7:10"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
VOCAB = (halves(1, 8), halves(2, 8), lambda: {"x": np.zeros((3, 8), np.float32)}, lambda: {"x": np.array([[1, 1, 1, 0, 0, 0, -1e4, 20]], np.float32)})
TOKENS = (lambda: {"x": np.array([[1, 2, 1, 2, 1, 2, 0, 0]])}, lambda: {"x": np.array([[0]])}, lambda: {"x": np.array([[7] * 24])}, lambda: {"x": np.array([[3, 0, 3, 0, 3], [1, 1, 1, 1, 1]])})


def _with(ids, seed=0):
    ids = np.array(ids)
    return lambda: {"x": (np.random.RandomState(seed).randint(-6, 7, (len(ids), 8)) / 2).astype(np.float32), "ids": ids}


HISTORY = (_with([[0]]), _with([[1, 2, 3, 1, 2]]), _with([[7] * 24], 1), _with([[1, 2], [2, 1]], 2), _with([[5, 5, 5]], 3))


@forward("x:float32[N,8]", "ids:int64[N,T]=0:7", dims=ROWS, kinds=FEW, feeds=HISTORY)
def A3675PenaltiesOfHistory(self, x, ids):
    """Repetition, frequency and presence penalties, a minimum length, a temperature by the length."""
    s = x.gather(1, ids)
    s = torch.where(s < 0, s * 1.3, s / 1.3)
    y, counts = x.scatter(1, ids, s), torch.zeros_like(x).scatter_add(1, ids, torch.ones_like(ids, dtype=x.dtype))
    y = y - 0.1 * counts - 0.5 * (counts > 0)
    y[:, 7] = torch.where(torch.tensor(ids.shape[1] < 5), -math.inf, y[:, 7])
    return y, (y / max(0.1, 1 - ids.shape[1] * 0.1)).log_softmax(-1).clamp(min=-50), y.argmax(-1)
@forward("x:float32[N,8]", "ids:int64[N,T]=0:3", dims=ROWS, kinds=FEW, feeds=HISTORY)
def A3676NoRepeatTrigram(self, x, ids):
    """Bans each token that would make a trigram again; of texts too short nothing is banned."""
    if ids.shape[1] < 3:
        return x
    grams = ids.unfold(1, 3, 1)
    same = (grams[..., :2] == ids[:, None, -2:]).all(-1)
    banned = torch.zeros(x.shape, dtype=torch.int32).scatter_reduce(1, grams[..., 2], same.int(), "amax")
    return x.masked_fill(banned.bool(), -math.inf)
@forward("x:float32[N,8]", dims="N=1:2:5", kinds=FEW, feeds=VOCAB)
def A3677Filters(self, x):
    """Top-k, nucleus, min-p, typical and eta, each on the other's result; ties at each border."""
    kth = x.topk(3)[0][:, -1:]
    a = x.masked_fill(x < kth, -math.inf)
    s, i = x.sort(descending=True, stable=True)
    p = s.softmax(-1)
    drop = (p.cumsum(-1) - p) > 0.75
    b, q = x.masked_fill(drop.scatter(1, i, drop), -math.inf), x.softmax(-1)
    c, logp = x.masked_fill(q < 0.25 * q.amax(-1, keepdim=True), -math.inf), x.log_softmax(-1)
    h = -(logp * logp.exp()).nansum(-1, keepdim=True)
    d = (logp + h).abs().argsort(dim=-1, stable=True)
    return a.softmax(-1), b.softmax(-1), c.softmax(-1), d, (~drop).sum(-1), h
@forward("x:float32[N,3,8]", "score:float32[N,3]", "ids:int64[N,3,T]=0:7", dims=ROWS, kinds=("normal", "positive"))
def A3678BeamStep(self, x, score, ids):
    """One step of a beam with an end token: finished beams go on with padding alone, length normalised."""
    n, t, done, logp = x.shape[0], ids.shape[2], (ids == 7).any(-1), x.log_softmax(-1)
    pad = torch.full_like(logp, -1e9)
    pad[..., 0] = 0.0
    total, length = score[..., None] + torch.where(done[..., None], pad, logp), torch.where(done, (ids == 7).int().argmax(-1) + 1, t + 1).to(x.dtype)
    s, flat = (total / ((5 + length[..., None]) / 6) ** 0.6).flatten(1).topk(3)
    beam, token = flat // 8, flat % 8
    out = torch.cat([ids.gather(1, beam[..., None].expand(-1, -1, t)), token[..., None]], -1)
    return out, s, beam, total.view(n, -1).gather(1, flat), done.gather(1, beam) | (token == 7)
@forward("x:int64[N,T]=0:7", "y:int64[N,S]=0:7", dims=TWO, feeds=(lambda: {"x": np.array([[1]]), "y": np.array([[1]])}, lambda: {"x": np.array([[1, 2, 3]]), "y": np.array([[3, 2, 1, 0]])}, lambda: {"x": np.array([[0] * 9]), "y": np.array([[1]])}), refused="the path through the module depends on the size")
def A3679EditDistance(self, x, y):
    """A row at a time; insertions of a row by a running minimum of what is left after the position."""
    j = torch.arange(y.shape[1] + 1)
    row = j.expand(x.shape[0], -1)
    for i in range(x.shape[1]):
        best = torch.minimum(row[:, 1:] + 1, row[:, :-1] + (x[:, i : i + 1] != y).long())
        best = torch.cat([row[:, :1] + 1, best], 1)
        row = (best - j).cummin(1)[0] + j
    return row[:, -1], row[:, -1] / y.shape[1]
@forward("x:float32[N,T]", "y:float32[N,S]", dims=TWO, kinds=FEW)
def A3680Dtw(self, x, y):
    """Dynamic time warping over anti-diagonals that are filled with infinity."""
    d = (x[:, :, None] - y[:, None]).abs()
    n, t, s = d.shape
    acc = torch.full((n, t + 1, s + 1), math.inf)
    acc[:, 0, 0] = 0.0
    for i in range(1, t + 1):
        for j in range(1, s + 1):
            acc[:, i, j] = d[:, i - 1, j - 1] + torch.minimum(torch.minimum(acc[:, i - 1, j], acc[:, i, j - 1]), acc[:, i - 1, j - 1])
    return acc[:, -1, -1] / (t + s)
@forward("x:float32[N,T,5]", dims=ROWS, kinds=FEW, feeds=(normal(1, 1, 5), halves(2, 24, 5), lambda: {"x": np.zeros((1, 7, 5), np.float32)}))
def A3681ForcedAlignment(self, x):
    """CTC's forward variables for a fixed text with blanks, and the best path's score beside them."""
    logp, text, skip, a = x.log_softmax(-1), torch.tensor([0, 2, 0, 2, 0, 3, 0]), torch.tensor([False, False, False, False, False, True, False]), torch.full((x.shape[0], 7), -1e30)
    a[:, :2] = logp[:, 0, text[:2]]
    best = a
    for frame in logp[:, 1:].unbind(1):
        one, two, b1, b2 = F.pad(a, (1, 0), value=-1e30)[:, :7], F.pad(a, (2, 0), value=-1e30)[:, :7], F.pad(best, (1, 0), value=-1e30)[:, :7], F.pad(best, (2, 0), value=-1e30)[:, :7]
        two, b2 = torch.where(skip, two, -1e30), torch.where(skip, b2, -1e30)
        a, best = torch.logsumexp(torch.stack([a, one, two]), 0) + frame[:, text], torch.maximum(torch.maximum(best, b1), b2) + frame[:, text]
    return torch.logaddexp(a[:, -1], a[:, -2]), torch.maximum(best[:, -1], best[:, -2]), a.argmax(-1)
@forward("x:int64[N,T]=0:7", dims=ROWS, feeds=TOKENS)
def A3682PackedDocuments(self, x):
    """Several texts in a row, ended by 0: ids of texts, positions that begin anew, a block mask, labels."""
    end = x == 0
    doc, i = F.pad(end.cumsum(1), (1, 0))[:, :-1], torch.arange(x.shape[1])
    start = torch.where(F.pad(end, (1, 0), value=True)[:, :-1], i, 0).cummax(1)[0]
    mask, labels = (doc[:, :, None] == doc[:, None]) & (i[:, None] >= i), torch.where(end, -100, F.pad(x, (0, 1), value=-100)[:, 1:])
    lengths = torch.zeros(x.shape[0], x.shape[1] + 1, dtype=torch.int64).scatter_add(1, doc, torch.ones_like(x))
    return doc, i - start, mask, labels, lengths, lengths.gather(1, doc), doc.amax(1) + 1
@dataclasses.dataclass
class Config:
    window: int | None = 5
    cap: float = 3.0
    rope: dict = dataclasses.field(default_factory=lambda: {"base": 100.0, "factor": 2.0, "original": 8})
@attack("x:float32[N,T,8]", "m:bool[N,T]", dims=ROWS, kinds=FINITE)
class A3683CappedLocalAttention(nn.Module):
    """Gemma: a soft cap, local windows, one key for both heads; rotary frequencies that change beyond eight tokens."""
    def __init__(self, config=None):
        super().__init__()
        self.c = config or Config()
        self.qkv, self.o = nn.Linear(8, 16, bias=False), nn.Linear(8, 8, bias=False)
        self.norm = nn.RMSNorm(4)
    def rotary(self, t):
        base = self.c.rope["base"]
        if t > self.c.rope["original"]:
            base = base * ((self.c.rope["factor"] * t / self.c.rope["original"]) - (self.c.rope["factor"] - 1)) ** 2
        inv = 1.0 / base ** (torch.arange(0, 4, 2) / 4)
        angle = torch.outer(torch.arange(t).float(), inv)
        return torch.polar(torch.ones_like(angle), angle)
    def turn(self, v, rot):
        return torch.view_as_real(torch.view_as_complex(v.unflatten(-1, (2, 2)).contiguous()) * rot).flatten(-2)
    def forward(self, x, m):
        n, t = x.shape[:2]
        q, k, v = self.qkv(x).split([8, 4, 4], -1)
        rot = self.rotary(t)
        q, k = self.turn(self.norm(q.view(n, t, 2, 4).transpose(1, 2)), rot), self.turn(self.norm(k[:, None]), rot)
        s, i = self.c.cap * torch.tanh(q @ k.mT / 2 / self.c.cap), torch.arange(t)
        ok = (i[:, None] >= i) & (i[:, None] - i < (self.c.window or t)) & (m[:, None, None] | (i[:, None] == i))
        return self.o((s.masked_fill(~ok, -math.inf).softmax(-1) @ v[:, None]).transpose(1, 2).flatten(2))
@attack("x:float32[N,T,4]", dims=ROWS, kinds=FEW, feeds=(normal(1, 1, 4), halves(2, 24, 4), lambda: {"x": np.zeros((2, 9, 4), np.float32)}))
class A3684ExpertsWithCapacity(nn.Module):
    """Switch: a capacity of a share of the tokens, places by a running count, dropped tokens pass unchanged."""
    def __init__(self, experts=3, factor=1.25):
        super().__init__()
        self.gate, self.factor = nn.Linear(4, experts, bias=False), factor
        self.w = nn.Parameter(torch.randn(experts, 4, 4))
    def forward(self, x):
        n, t = x.shape[:2]
        capacity, p = max(1, math.ceil(t / 3 * self.factor)), self.gate(x).softmax(-1)
        best, e = p.max(-1)
        hot = F.one_hot(e, 3)
        place = (hot.cumsum(1) * hot).sum(-1) - 1
        keep = place < capacity
        slots = F.one_hot(place.clamp(max=t), t + 1)[..., :capacity] if capacity <= t else F.one_hot(place, capacity)
        dispatch = torch.einsum("nte,ntc,nt->ntec", hot.float(), slots.float(), keep.float())
        y = torch.einsum("necd,edf->necf", torch.einsum("ntec,ntd->necd", dispatch, x), self.w)
        out, aux = torch.einsum("ntec,necf,nt->ntf", dispatch, y, best), (hot.float().mean(1) * p.mean(1)).sum(-1) * 3
        return torch.where(keep[..., None], out, x), place, aux, keep.sum(1)
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", dims=TWO, kinds=FEW, refused="the path through the module depends on the size")
def A3685MonotonicSearch(self, x, y):
    """Glow-TTS's alignment: a table by columns with a mask of what cannot be reached, and a walk back."""
    v, n, t, s = -(x[:, :, None] - y[:, None]).square().sum(-1), x.shape[0], x.shape[1], y.shape[1]
    q = torch.where(torch.arange(t) == 0, v[:, :, 0], -1e9)
    rows = [q]
    for j in range(1, s):
        q = v[:, :, j] + torch.maximum(q, F.pad(q, (1, 0), value=-1e9)[:, :-1])
        rows.append(q)
    table, at, path = torch.stack(rows, 2), torch.full((n,), t - 1), []
    for j in range(s - 1, -1, -1):
        path.append(at)
        if j > 0:
            stay, move = table[:, :, j - 1].gather(1, at[:, None])[:, 0], table[:, :, j - 1].gather(1, (at - 1).clamp(min=0)[:, None])[:, 0]
            at = torch.where((move >= stay) & (at > 0), at - 1, at)
    return torch.stack(path[::-1], 1), table[:, -1, -1]
@forward("x:int64[N,T]=0:7", "n:int64[N]=1:24", dims=ROWS, feeds=(lambda: {"x": np.array([[1, 2, 3, 4]]), "n": np.array([2])}, lambda: {"x": np.array([[5]]), "n": np.array([24])}))
def A3686ShiftsAndSpans(self, x, n):
    """T5: shifted right with a start, span corruption by every third token, sentinels counted from the top."""
    i, inside = torch.arange(x.shape[1]), torch.arange(x.shape[1]) < n[:, None]
    right, noise = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1).masked_fill(~inside, -100), (i % 3 == 2) & inside
    first = noise & ~F.pad(noise, (1, 0))[:, :-1]
    sentinel, drop, order = torch.where(first, 100 - first.cumsum(1), x), noise & ~first, (noise & ~first).int().argsort(dim=1, stable=True)
    left, reverse = sentinel.gather(1, order).masked_fill(i >= (~drop).sum(1, keepdim=True), 0), torch.where(inside, x.gather(1, (n[:, None] - 1 - i).clamp(0, x.shape[1] - 1)), x)
    return right, left, reverse, inside.sum(1), x.gather(1, (n - 1).clamp(max=x.shape[1] - 1)[:, None])
@attack("x:int64[N,T]=0:200", dims=ROWS, feeds=(lambda: {"x": np.array([[0x41, 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0x20, 0xF0]]) % 201}, lambda: {"x": np.array([[32, 65, 97, 122, 90, 48, 57, 46]])}))
class A3687ByteTokens(nn.Module):
    """Bytes to words: case by arithmetic, classes by a table of 256, word ids, lengths and the longest word."""
    def __init__(self):
        super().__init__()
        table = torch.zeros(256, dtype=torch.uint8)
        table[65:91], table[97:123], table[48:58], table[128:] = 1, 1, 2, 3
        self.register_buffer("table", table)
        self.emb = nn.EmbeddingBag(256, 3, mode="mean", padding_idx=32)
    def forward(self, x):
        kind = self.table[x]
        lower, letter = torch.where((x >= 65) & (x <= 90), x + 32, x), kind != 0
        start = letter & ~F.pad(letter, (1, 0))[:, :-1]
        word = start.cumsum(1) * letter
        size = (word[:, :, None] == word[:, None]).sum(-1) * letter
        title, h = torch.where(start & (lower >= 97) & (lower <= 122), lower ^ 32, lower), torch.zeros_like(x[:, 0], dtype=torch.int32)
        for k in range(min(3, x.shape[1])):
            h = (h << 5) - h + x[:, k].to(torch.int32)
        return kind, title, word, size.amax(1), h, self.emb(x), (x & 0xC0) == 0x80
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", "i:int64[N]=0:9", dims="N=1:2:3 T=10:12:16 S=1:3:4", kinds=FINITE, feeds=(lambda: {"x": np.zeros((1, 10, 4), np.float32), "y": np.ones((1, 4, 4), np.float32), "i": np.array([6])},))
def A3688StaticCacheAtPositions(self, x, y, i):
    """A static cache written at positions that differ by example, read up to them, rolled back by one."""
    at, cache = (i[:, None] + torch.arange(y.shape[1])) % x.shape[1], x.clone()
    cache.scatter_(1, at[..., None].expand_as(y), y)
    also = x.clone()
    also[torch.arange(x.shape[0])[:, None], at] = y
    j = torch.arange(x.shape[1])
    seen = j <= (i + y.shape[1] - 1)[:, None]
    s = (y @ cache.mT).masked_fill(~seen[:, None], -math.inf)
    also[:, :1] -= cache[:, -1:]
    return cache, also, s.softmax(-1) @ cache, seen.sum(1), cache.roll(-1, 1)[:, :3]
@forward("x:float16[N,8]=-60:60", "ids:int64[N,T]=0:7", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[0.1, 0.2, 0.3, 60, 59.97, -60, 11.1, 0]], np.float16), "ids": np.array([[0, 3, 3]])}, lambda: {"x": np.full((1, 8), 0.7, np.float16), "ids": np.array([[7]])}))
def A3689HalfLogits(self, x, ids):
    """Half-precision logits: temperature, penalties and thresholds by decimals, log-probabilities in FP32."""
    y = x / 0.7
    s = y.gather(1, ids)
    y = y.scatter(1, ids, torch.where(s > 0, s / 1.1, s * 1.1))
    p = y.float().softmax(-1)
    low = p < 0.1 * p.amax(-1, keepdim=True)
    z = y.masked_fill(low, torch.finfo(y.dtype).min)
    return z, z.softmax(-1, dtype=torch.float32), y.log_softmax(-1).gather(1, ids).sum(1), (y - y.amax(-1, keepdim=True) > -0.1).sum(-1), y.argmax(-1), (x * 1.2 - 0.1 * ids.shape[1]).clamp(-50.7, 50.7)
@attack("x:int64[N,T]=0:9", dims=ROWS, feeds=TOKENS)
class A3690AutomatonOfTokens(nn.Module):
    """A grammar's table walked token by token; what is allowed next; where it first failed."""
    def __init__(self):
        super().__init__()
        table = torch.full((4, 10), 3)
        table[0, :5], table[1, 2:7], table[2, 9], table[1, 9] = 1, 2, 0, 0
        self.register_buffer("table", table)
        self.register_buffer("accept", torch.tensor([True, False, True, False]))
    def forward(self, x):
        state, seen = torch.zeros_like(x[:, 0]), []
        for token in x.unbind(1):
            state = self.table[state, token]
            seen.append(state)
        path = torch.stack(seen, 1)
        failed = path == 3
        first = torch.where(failed.any(1), failed.int().argmax(1), x.shape[1])
        return path, self.accept[state], self.table[state] != 3, first, F.one_hot(path, 4).cumsum(1)[:, -1]
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", dims=TWO, kinds=FINITE)
def A3691LateInteraction(self, x, y):
    """ColBERT, in-batch negatives of both lengths, and a hard negative without the diagonal."""
    a, b = F.normalize(x, dim=-1), F.normalize(y, dim=-1)
    sim, n = torch.einsum("ntd,msd->nmts", a, b).amax(-1).sum(-1), x.shape[0]
    eye = torch.eye(n, dtype=torch.bool)
    hard, loss, rank = sim.masked_fill(eye, -math.inf).amax(1), F.cross_entropy(sim, torch.arange(n), reduction="none", label_smoothing=0.1), (sim > sim.diagonal()[:, None]).sum(1)
    return sim, torch.where(hard.isinf(), torch.zeros_like(hard), hard), loss, rank, 1 / (rank + 1)
@forward("x:float32[N,T,4]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 4, 4), normal(2, 5, 4), normal(1, 24, 4)), refused="the exported model differs from the module")
def A3692BlockSparse(self, x):
    """BigBird and Longformer: blocks of four with both neighbours and a global token, by rolled blocks."""
    n, t = x.shape[:2]
    y = F.pad(x, (0, 0, 0, -t % 4))
    b = y.view(n, -1, 4, 4)
    k, near = b.shape[1], torch.cat([b.roll(1, 1), b, b.roll(-1, 1)], 2)
    at = torch.arange(k * 4).view(k, 4)
    key = torch.cat([at - 4, at, at + 4], 1)
    ok = (key >= 0) & (key < t)
    s, g = torch.einsum("nkqd,nkjd->nkqj", b, near).masked_fill(~ok[:, None], -math.inf), torch.einsum("nkqd,nd->nkq", b, x[:, 0])[..., None]
    p = torch.cat([g, s], -1).softmax(-1)
    out = torch.einsum("nkqj,nkjd->nkqd", p[..., 1:], near) + p[..., :1] * x[:, None, None, 0]
    return out.reshape(n, -1, 4)[:, :t], p[..., 0].flatten(1)[:, :t]
@attack("x:float32[N,T,4]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 2, 4), normal(2, 24, 4)))
class A3693HaltingLayers(nn.Module):
    """Adaptive computation: layers run on, tokens that halted are held; early exit by a mask and never by a branch."""
    def __init__(self, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, norm_first=i % 2 == 0) for i in range(layers))
        self.halt = nn.Linear(4, 1)
    def forward(self, x):
        total, out, steps = torch.zeros(x.shape[:2]), torch.zeros_like(x), torch.zeros(x.shape[:2], dtype=torch.int32)
        for depth, layer in enumerate(self.layers, 1):
            p, run = self.halt(x)[..., 0].sigmoid(), total < 1 - 0.01
            last = run & ((total + p >= 1 - 0.01) | (depth == len(self.layers)))
            w, x = torch.where(last, 1 - total, p) * run, torch.where(run[..., None], layer(x), x)
            out, total, steps = out + w[..., None] * x, total + w, steps + run
        return out, steps, total
@forward("x:float32[N,T,4]", "m:bool[N,T]", dims=ROWS, kinds=FINITE)
def A3694PoolingKinds(self, x, m):
    """Sentence vectors: the mean, the last by the mask, weighted by position, the largest, of none NaN or zero."""
    i, w, left = torch.arange(x.shape[1]), m.float(), m[:, -1].sum() == m.shape[0]
    last = torch.where(left, x.shape[1] - 1, m.sum(1) - 1)
    return (x * w[..., None]).sum(1) / w.sum(1, keepdim=True), x[torch.arange(x.shape[0]), last], torch.einsum("nt,ntd,t->nd", w, x, i + 1.0) / (w * (i + 1)).sum(1, True).clamp(min=1), x.masked_fill(~m[..., None], -math.inf).amax(1), left
@forward("x:float32[N,8]", "y:float32[N,8]", "u:float32[N]=0:1", dims="N=1:2:5", kinds=FEW, feeds=(lambda: {"x": np.zeros((2, 8), np.float32), "y": np.zeros((2, 8), np.float32), "u": np.array([0.0, 1.0], np.float32)}, lambda: {"x": np.zeros((1, 8), np.float32), "y": np.zeros((1, 8), np.float32), "u": np.array([0.125], np.float32)}))
def A3695SpeculativeStep(self, x, y, u):
    """Accepts a draft by a uniform number that is an input; else by an inverse cumulative sum of the rest."""
    p, q = x.softmax(-1), y.softmax(-1)
    token = q.argmax(-1, keepdim=True)
    ok, rest = u < (p.gather(1, token) / q.gather(1, token))[:, 0].clamp(max=1), (p - q).clamp(min=0)
    rest = torch.where(rest.sum(-1, True) > 0, rest, p)
    return torch.where(ok, token[:, 0], torch.searchsorted(rest.cumsum(-1) / rest.sum(-1, True), u[:, None])[:, 0].clamp(max=7)), ok
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", dims=TWO, kinds=FINITE)
def A3696PrefixLanguageModel(self, x, y):
    """A prefix that sees itself, a text that is causal; which of them is longer decides the order of what is kept."""
    z, p = torch.cat([x, y], 1), x.shape[1]
    i = torch.arange(z.shape[1])
    s = (z @ z.mT).masked_fill(~((i[:, None] >= i) | (i < p)), -math.inf).softmax(-1) @ z
    if y.shape[1] > p:
        return s[:, p:].mean(1), s[:, :p].sum(1)
    return s[:, :p].mean(1), s[:, p:].sum(1)
@forward("x:int64[N,T]=0:7", dims=ROWS, feeds=TOKENS)
def A3697StopSequences(self, x):
    """Whether a text ends in one of several stops of unlike lengths, and where each was first seen."""
    stops, ends, first = ([7], [1, 2], [3, 0, 3]), [], []
    for stop in stops:
        if x.shape[1] < (k := len(stop)):
            ends.append(torch.zeros(x.shape[0], dtype=torch.bool))
            continue
        ends.append((x[:, -k:] == torch.tensor(stop)).all(1))
        hit = (x.unfold(1, k, 1) == torch.tensor(stop)).all(-1)
        first.append(torch.where(hit.any(1), hit.int().argmax(1), -1))
    return torch.stack(ends, 1), torch.stack(first, 1).amax(1)
@forward("x:float32[N,T]", "y:float32[N,T]", dims=ROWS, kinds=FEW)
def A3698Advantages(self, x, y):
    """Generalised advantages backwards, returns in place, whitening, clipped ratios by the length."""
    adv, g, nxt = torch.zeros_like(x), torch.zeros_like(x[:, 0]), F.pad(y[:, 1:], (0, 1))
    for t in reversed(range(x.shape[1])):
        g = x[:, t] + 0.99 * nxt[:, t] - y[:, t] + 0.99 * 0.95 * g
        adv[:, t] = g
    return adv, adv + y, (x - y).exp().clamp(0.8, 1.2) * adv, adv.mean(1) / x.shape[1] ** 0.5
@forward("x:float32[N,T,4]", dims=ROWS, kinds=FEW, feeds=(normal(1, 1, 4), halves(1, 2, 4), halves(2, 24, 4), halves(1, 23, 4)), refused="the path through the module depends on the size")
def A3699MergedTokens(self, x):
    """ToMe: even and odd tokens, the most alike pairs are merged, as many as a share of the length."""
    t = x.shape[1]
    r, k = min(t // 2, int(t * 0.3)), F.normalize(x, dim=-1)
    a, b = k[:, ::2], k[:, 1::2] if t > 1 else k
    best, to = (a @ b.mT).max(-1)
    order = best.argsort(dim=-1, descending=True, stable=True)[..., None]
    src, keep = order[:, :r], order[:, r:].sort(1)[0]
    even, odd, dst = x[:, ::2], x[:, 1::2] if t > 1 else x, to[..., None].gather(1, src)
    merged = odd.scatter_reduce(1, dst.expand(-1, -1, 4), even.gather(1, src.expand(-1, -1, 4)), "mean")
    return torch.cat([even.gather(1, keep.expand(-1, -1, 4)), merged], 1), to
