"""Recommendation, language and whole numbers: ids, hashes, masks, ranks, tables, counts."""
# ruff: noqa: E501, E741, RUF059, UP045 - attacks are written as users write them

from __future__ import annotations

import math
import typing

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"
I = "ids:int64[N,T]=0:30"


class Features(typing.NamedTuple):
    dense: torch.Tensor
    sparse: torch.Tensor
    weights: typing.Optional[torch.Tensor] = None


@attack(X, I, dims=D, kinds=FINITE)
class A7941DlrmInteraction(nn.Module):
    """DLRM: bags with per-sample weights, a quotient-remainder table, pairwise dots below the diagonal, features in a named tuple replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.r = nn.Embedding(8, 6), nn.Embedding(4, 6)
        self.bag = nn.EmbeddingBag(31, 6, mode="sum", padding_idx=0)

    def forward(self, x, ids):
        f = Features(x.mean(1), ids)._replace(weights=x[..., 0].sigmoid())
        b = self.bag(f.sparse, per_sample_weights=f.weights)
        e = self.q(ids // 4) * self.r(ids % 4)
        z = torch.cat((f.dense[:, None], b[:, None], e.amax(1, keepdim=True), e[:, -1:]), 1)
        dots = torch.bmm(z, z.mT)
        li, lj = torch.tril_indices(4, 4, -1)
        return torch.cat((f.dense, dots[:, li, lj]), 1)


@forward(I, dims=D)
def A7942IdsDedupedInOrder(self, ids):
    """First occurrences kept in order by comparisons, counts of each id so far, bloom bits, murmur-like mixes in int32 that wrap."""
    eq = ids[:, :, None] == ids[:, None]
    first = ~(eq & torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril(-1)).any(-1)
    so_far = (eq & torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()).sum(-1)
    h = ids.int() * -1640531527
    h = (h ^ (h >> 15)) * 2146121005
    h = h ^ (h >> 13)
    bits = ((h[..., None] >> torch.arange(0, 32, 4)) & 1).amax(1)
    order = torch.argsort((~first).long() * ids.shape[1] + torch.arange(ids.shape[1]), dim=1)
    return torch.where(first, ids, -1).gather(1, order), so_far, h % 97, bits


@forward(I, dims=D)
def A7943MaskedLmTargets(self, ids):
    """HuggingFace's shift of labels with -100, decoder inputs shifted right, attention from pad ids, token types by the cumulative count of separators."""
    labels = torch.where(ids == 0, -100, ids)
    dec = ids.new_zeros(ids.shape)
    dec[:, 1:] = labels[:, :-1].clone()
    dec[:, 0] = 2
    dec.masked_fill_(dec == -100, 0)
    types = (ids == 3).long().cumsum(1) - (ids == 3).long()
    pos = torch.cumsum(ids.ne(0).int(), 1).type_as(ids) * ids.ne(0) + 0
    ext = (1.0 - ids.ne(0)[:, None, None].to(torch.float32)) * torch.finfo(torch.float32).min
    return dec, types, pos, ext + 0.0, labels[..., 1:].ne(-100).sum()


@forward(X, I, dims=D, kinds=("normal", "unit", "halves", "ones"))
def A7944LossesAsScores(self, x, ids):
    """Losses in serving: cross_entropy with label smoothing, weights and ignore_index without reduction, kl_div of log targets, focal, triplet with swap, cosine embedding."""
    t = ids % 6
    a = F.cross_entropy(x.flatten(0, 1), t.flatten(), weight=torch.linspace(0.5, 2, 6), ignore_index=3, label_smoothing=0.1, reduction="none")
    b = F.kl_div(x.log_softmax(-1), x.flip(1).log_softmax(-1), reduction="none", log_target=True).sum(-1)
    p = torch.sigmoid(x)
    y = F.one_hot(t, 6).to(x)
    ce = F.binary_cross_entropy_with_logits(x, y, reduction="none", pos_weight=torch.full((6,), 2.0))
    f = ce * (1 - (p * y + (1 - p) * (1 - y))) ** 2
    return a.view_as(ids), b, f.mean(-1), F.triplet_margin_loss(x, x.roll(1, 1), x.flip(-1), swap=True, reduction="none"), F.huber_loss(x, x.flip(1), delta=0.7)


@forward(X, dims=D, kinds=FINITE)
def A7945RelativeBucketsAndAlibi(self, x):
    """Disentangled attention of DeBERTa: log buckets with sign, c2p and p2c by gather with clamped indices, scale by three."""
    n, t, c = x.shape
    rel = torch.arange(t)[:, None] - torch.arange(t)
    mid = 4
    ab = torch.where((rel < mid) & (rel > -mid), mid - 1, rel.abs())
    lp = torch.ceil(torch.log(ab / mid) / math.log(15 / mid) * (mid - 1)) + mid
    b = torch.where(ab <= mid, rel, (lp * rel.sign()).long())
    idx = (b + 8).clamp(0, 15)
    pe = torch.sin(torch.arange(16)[:, None] / (1.0 + torch.arange(c)))
    c2p = (x @ pe.T).gather(-1, idx.expand(n, -1, -1))
    p2c = (x @ pe.T).gather(-1, (-b + 8).clamp(0, 15).expand(n, -1, -1)).mT
    return ((x @ x.mT + c2p + p2c) / math.sqrt(3 * c)).softmax(-1) @ x, b


@forward(X, dims=D, kinds=FINITE)
def A7946EinopsByHand(self, x):
    """rearrange b t (h d) -> (b h) d t written by unflatten, swapaxes, movedim, ravel, vsplit, tile, tensordot, kron."""
    n, t, _ = x.shape
    y = x.unflatten(-1, (2, -1)).movedim(2, 1).flatten(0, 1).swapaxes(1, 2)
    k = torch.kron(torch.eye(2), torch.ones(1, t) / t)
    z = torch.tensordot(x, torch.arange(12.0).view(6, 2), dims=([2], [0]))
    return y, k @ x.repeat(1, 2, 1), z.ravel(), torch.hstack([*x.tensor_split(3, dim=1)]).rot90(1, (1, 2)), torch.tile(x, (2, 1))


@forward("x:int32[N,T]=-100:100", dims=D)
def A7947FixedPointDsp(self, x):
    """Q7.8 arithmetic: multiply, shift with rounding of negatives, saturation, leading zeros by float exponents, CRC by shifts, gray codes."""
    q = x * 256
    p = (q.long() * 181 + 128) >> 8
    sat = p.clamp(-32768, 32767).to(torch.int16)
    u = x & 0xFF
    crc = u
    for _ in range(8):
        crc = torch.where((crc & 1) == 1, (crc >> 1) ^ 0xB8, crc >> 1)
    lz = torch.floor(torch.log2(u.float() + 0.5)).int()
    return sat.int(), crc, u ^ (u >> 1), lz, torch.bitwise_not(x) // 7, torch.fmod(x, 7), x.remainder(-7)


@forward(X, dims=D, kinds=FINITE)
def A7948RanksQuantilesBins(self, x):
    """Ranks by double argsort stable, quantiles with linear and nearest, bucketize both sides, cummax with reset, histogram by bins of the range, tie-averaged ranks."""
    v = x.flatten(1)
    rank = v.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    lo, hi = v.amin(1, keepdim=True), v.amax(1, keepdim=True)
    b = torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 2.0]), right=True)
    w = ((v - lo) / (hi - lo).clamp(min=1e-6) * 5).floor().clamp(max=4).long()
    avg = (v[:, :, None] > v[:, None]).sum(-1) + ((v[:, :, None] == v[:, None]).sum(-1) - 1) / 2
    return rank, torch.quantile(v, torch.tensor([0.1, 0.5, 0.9]), dim=1), b, F.one_hot(w, 5).sum(1), avg, torch.nanquantile(v, 0.3, dim=1, interpolation="nearest")


@attack(X, dims=D, kinds=FINITE)
class A7949SpeculativeAcceptance(nn.Module):
    """Speculative acceptance with drafts: the prefix by cumprod of agreement, medusa's tree mask from parents, next token after the accepted."""

    def __init__(self) -> None:
        super().__init__()
        parents = [-1, 0, 0, 1, 1, 2]
        m = torch.eye(6, dtype=torch.bool)
        for i, p in enumerate(parents):
            if p >= 0:
                m[i] |= m[p]
        self.register_buffer("tree", m, persistent=False)

    def forward(self, x):
        draft, target = x.argmax(-1), x.roll(1, 1).softmax(-1).argmax(-1)
        ok = (draft[:, 1:] == target[:, :-1]).long().cumprod(1)
        n = ok.sum(1)
        nxt = target.gather(1, n[:, None])
        keep = torch.arange(x.shape[1]) <= n[:, None]
        return torch.where(keep, draft, -1), nxt, (x @ self.tree.float()).masked_fill(~keep[..., None], 0)
