# ruff: noqa: E501 - attacks are written as users write them
"""Values on the boundaries of decisions, masks of nothing, types that choose themselves: decoding, masks, quantisers, scans."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
KINDS = ("normal", "halves", "zeros", "tenths", "ones", "descending", "minus-infinity")
FINITE = KINDS[:-1]
XT, X4, IT, MT = "x:float32[N,T]", "x:float32[N,T,4]", "i:int64[N,T]=0:5", "m:bool[N,T]"


def fed(*inputs: str, low: int = 1, kinds: tuple[str, ...] = FINITE, own: tuple = (), **other: object) -> dict:
    """Rows, judged at all short lengths and at points of one's own."""
    feeds = tuple(values_at(*inputs, N=1 + t % 3, T=t) for t in (*range(low, 10), 16, 17, 23, 24))
    return {"dims": f"N=1:2:3 T={low}:9:24", "kinds": kinds, "feeds": (*own, *feeds), **other}


def row(*values: float) -> tuple:
    """One row of given numbers as a point."""
    return (lambda: {"x": np.array([values], np.float32)},)


def masked(text: str, value: bool, n: int = 2, t: int = 5) -> tuple:
    """A point whose mask is all one value."""
    return (lambda: {**values_at(text, N=n, T=t)(), "m": np.full((n, t), value)},)


@forward(XT, **fed(XT))
def A5026BoundsThatCross(self, x):
    """clamp with a minimum above the maximum: the maximum wins, for numbers and for tensors."""
    lo, hi = x.mean(1, keepdim=True) + 0.5, x.mean(1, keepdim=True) - 0.25
    return x.clamp(1.0, -1.0), torch.clamp(x, lo, hi), torch.clip(x, min=lo).clip(max=hi)
@forward(XT, MT, "k:bool[N,T]", **fed(XT, MT, "k:bool[N,T]", own=((lambda: {"x": np.ones((1, 3), np.float32), "m": np.zeros((1, 3), bool), "k": np.zeros((1, 3), bool)}),)))
def A5027LeastFloatsAdded(self, x, m, k):
    """Two additive masks of the least float: where both hide, their sum is minus infinity."""
    low = torch.finfo(x.dtype).min
    a, b = (1.0 - m.float()) * low, (1.0 - k.float()) * low
    return (x + a + b).softmax(-1), (x + (a + b)).clamp(min=low).softmax(-1)
@forward(XT, "m:int64[N,T]=0:1", **fed(XT, "m:int64[N,T]=0:1"))
def A5028NotOfAWholeMask(self, x, m):
    """The bits of a mask of integers are turned: one becomes minus two, and is true."""
    return x.masked_fill((~m).bool(), 0.0), (~m).sum(1), x * ~m.bool()
@forward(X4, **fed(X4, own=((lambda: {"x": np.array([[[0, 0, 0, 0], [0, 1e-40, 0, 0], [1, -1, 0, 0], [-0.0, 0, 0, 0]]], np.float32)}),)))
def A5029PaddingIsAllZeros(self, x):
    """Padding is found by rows of zeros: by sums of absolute values, by any, by a norm."""
    pad = x.abs().sum(-1) == 0
    lengths = (~pad).sum(1, keepdim=True)
    return pad, x.sum(1) / lengths.clamp(min=1), x.any(-1), x.count_nonzero(-1)
@forward(MT, dims=ROWS, feeds=(*masked(MT, False), *masked(MT, True, 1, 1)))
def A5030LengthByTheFirst(self, m):
    """The first true place by argmax, the length where there is none; the last by a flip."""
    t = m.shape[1]
    first = m.int().argmax(-1)
    last = t - 1 - m.flip(1).long().argmax(1)
    return torch.where(m.any(-1), first, t), last, (m.cumsum(1) == 0).sum(1)
@forward(XT, **fed(XT, own=row(0.0, -math.inf, 1.0, -math.inf, 1.0, 0.0)))
def A5031TypicalDecoding(self, x):
    """Tokens whose surprise is nearest to the entropy, until a mass is reached; banned tokens are minus infinity."""
    p = F.log_softmax(x, -1)
    entropy = -(p * p.exp()).nansum(-1, keepdim=True)
    shifted = (-p - entropy).abs()
    _, order = shifted.sort(descending=False, stable=True)
    mass = x.gather(-1, order).softmax(-1).cumsum(-1)
    last = (mass < 0.9).sum(1).clamp_(max=mass.shape[-1] - 1)
    remove = shifted.gather(1, order) > shifted.gather(1, order).gather(1, last.view(-1, 1))
    return x.masked_fill(remove.scatter(1, order, remove), -math.inf)
@forward(XT, **fed(XT))
def A5032EtaCutoff(self, x):
    """A cutoff by the entropy of torch's distribution; the best is kept whatever it is."""
    p = x.softmax(-1)
    entropy = torch.distributions.Categorical(logits=x).entropy()
    eta = torch.min(torch.tensor(0.09), torch.tensor(0.3) * torch.exp(-entropy))[..., None]
    remove = (p < eta) & (x < torch.topk(x, min(2, x.size(-1)))[0][..., -1, None])
    return x.masked_fill(remove, -50.0)
@forward(IT, "x:float32[N,6]", **fed(IT, "x:float32[N,6]", low=3))
def A5033NoTrigramTwice(self, i, x):
    """The tokens that would end a trigram a second time are banned."""
    grams = i.unfold(1, 3, 1)
    same = (grams[..., :2] == i[:, None, -2:]).all(-1)
    banned = (F.one_hot(grams[..., 2], 6) * same[..., None]).amax(1).bool()
    return x.masked_fill(banned, -math.inf), banned.sum(1)
@forward(IT, "x:float32[N,6]", **fed(IT, "x:float32[N,6]"))
def A5034EndAtTheLastLength(self, i, x):
    """Hugging Face's forced end: at the last length all but one token is minus infinity; too short has none."""
    cur = i.shape[-1]
    scores = x
    if cur < 4:
        scores = scores.clone()
        scores[:, 5] = -float("inf")
    if cur == 23:
        scores = torch.full_like(x, -math.inf)
        scores[:, 5] = 0
    return scores
@forward(IT, "x:float32[N,8]", **fed(IT, "x:float32[N,8]"))
def A5035TimestampsOfWhisper(self, i, x):
    """After a pair of times no time, after one no text; times do not go back; times when their mass is larger than any text's."""
    begin, cols = 3, torch.arange(8)
    last = i[:, -1] >= begin
    before = (i[:, -2] >= begin) if i.shape[1] >= 2 else torch.ones_like(last)
    x = x.masked_fill((last & before)[:, None] & (cols >= begin), -math.inf)
    x = x.masked_fill((last & ~before)[:, None] & (cols < begin - 1), -math.inf)
    latest = torch.where(i >= begin, i, 0).amax(1, keepdim=True)
    x = x.masked_fill((cols >= begin) & (cols < latest), -math.inf)
    p = F.log_softmax(x, -1)
    mass, text = p[:, begin:].logsumexp(-1), p[:, :begin].amax(-1)
    return torch.where((mass > text)[:, None] & (cols < begin), -math.inf, x)
@forward(XT, **fed(XT, own=row(1.0, -1.0, 0.7, 0.3, 0.0)))
def A5036TernaryByTheMean(self, x):
    """Three values by seven tenths of the mean size, scaled by the mean of those that are left; rows without any."""
    size = x.abs()
    keep = (size > 0.7 * size.mean(1, keepdim=True)).float()
    alpha = (size * keep).sum(1, keepdim=True) / keep.sum(1, keepdim=True)
    return alpha * x.sign() * keep
@forward(XT, IT, **fed(XT, IT, kinds=("normal", "halves", "large", "tenths", "zeros")))
def A5037PowersBecomeDoubles(self, x, i):
    """float_power is of FP64, whatever comes in; numpy-like means of it stay so."""
    y = torch.float_power(x, 2)
    return y, y.mean(1), torch.float_power(i, 0.5), torch.float_power(2, i) / 3
@forward("i:int64[N,T]=-40000:40000", **fed("i:int64[N,T]=-40000:40000"), refused="the exported model differs from the module")
def A5038SumsInNarrowTypes(self, i):
    """Sums and products that are asked for in a narrow type wrap."""
    return i.sum(1, dtype=torch.int16), i.prod(1, dtype=torch.int32), i.cumsum(1, dtype=torch.int8), i.sum(dtype=torch.uint8), i.sum(1, dtype=torch.bool)
@forward(XT, **fed(XT, own=(*row(1e-40, -1e-45, 0.0, -0.0, 3e-39), *row(1e-39, 1e-45))))
def A5039DenormalsAreTrue(self, x):
    """What is denormal is not zero: its truth, its sign, its count, a threshold at zero, a quotient of two."""
    return x.bool(), x.sign(), x.count_nonzero(1), F.threshold(x, 0.0, 7.0), (x > 0) & (x * 0.5 >= 0), torch.where(x == 0, 1.0, x / x.where(x != 0, 1.0))
@forward(X4, **fed(X4, kinds=KINDS))
def A5040ViterbiWithForbidden(self, x):
    """Transitions of minus infinity, back pointers in a list, the path read backwards."""
    hop = torch.tensor([[0.0, 0.5, -math.inf, 0.0], [0.0, 0.0, 0.5, -math.inf], [-math.inf, 0.0, 0.0, 0.5], [0.5, -math.inf, 0.0, 0.0]])
    score, back = x[:, 0] + torch.tensor([0.0, -math.inf, -math.inf, 0.25]), []
    for t in range(1, x.shape[1]):
        best, place = (score[:, :, None] + hop).max(1)
        back.append(place)
        score = best + x[:, t]
    path = [score.argmax(1)]
    for place in reversed(back):
        path.append(place.gather(1, path[-1][:, None])[:, 0])
    return torch.stack(path[::-1], 1), score
@forward(XT, "v:float32[N,3]", **fed(XT, "v:float32[N,3]", own=((lambda: {"x": np.array([[2, 1, 1, 0, 2]], np.float32), "v": np.array([[1, 2, 0]], np.float32)}),)), refused="the module cannot be exported")
def A5041SearchWithASorter(self, x, v):
    """searchsorted through the order of a sort, from both sides."""
    order = x.argsort(dim=1, stable=True)
    return torch.searchsorted(x, v, sorter=order), torch.searchsorted(x, v, sorter=order, side="right"), torch.searchsorted(x.sort(1).values, v, out_int32=True)
@forward("i:int64[T]=0:5", "w:float32[T]", dims="T=1:9:24", kinds=FINITE, feeds=tuple(values_at("i:int64[T]=0:5", "w:float32[T]", T=t) for t in range(1, 25)), refused="the module cannot be exported")
def A5042BinsWithWeights(self, i, w):
    """bincount with weights and a least length above every id."""
    return torch.bincount(i, w, minlength=8), torch.bincount(i, minlength=6)
@forward(XT, **fed(XT, kinds=("normal", "large", "halves", "tenths", "zeros"), own=row(math.pi, -math.pi, 3 * math.pi, np.float32(math.pi), 6.2831855, -1e-8)))
def A5043AnglesWrapped(self, x):
    """Angles of boxes brought into a period: by remainders, by floors with an offset, half turns of direction."""
    period = 2 * math.pi
    return torch.remainder(x + math.pi, period) - math.pi, x - torch.floor(x / period + 0.5) * period, (x % math.pi) > math.pi / 2
@forward(IT, XT, **fed(IT, XT, kinds=(*KINDS, "plus-infinity"), own=((lambda: {"i": np.array([[1, 4, 5]]), "x": np.array([[np.nan, np.inf, 0.5]], np.float32)}),)))
def A5044IsinAndClose(self, i, x):
    """Special ids by isin, inverted; closeness with NaN equal and between infinities."""
    special = torch.tensor([1, 4])
    return torch.isin(i, special), torch.isin(i, special, invert=True), torch.isin(x, torch.tensor([0.5, math.nan])), torch.isclose(x, x.flip(1), equal_nan=True), torch.isin(i, 4), torch.isclose(x, torch.tensor(math.inf))
@forward(XT, **fed(XT, kinds=KINDS, own=row(-math.inf, -math.inf, 0.0, 2.0, -math.inf)), refused="the path through the module depends on the size")
def A5045LogSumsThatRun(self, x):
    """logcumsumexp that begins with minus infinities, and a scan by logaddexp."""
    run, out = torch.full_like(x[:, 0], -math.inf), []
    for t in range(x.shape[1]):
        run = torch.logaddexp(run, x[:, t])
        out.append(run)
    return torch.logcumsumexp(x, 1), torch.stack(out, 1), torch.logsumexp(x, 1, keepdim=True)
@forward(X4, IT, "v:float32[72,4]", dims=ROWS, kinds=FINITE, feeds=tuple(values_at(X4, IT, "v:float32[72,4]", N=1 + t % 3, T=t) for t in range(1, 25)))
def A5046ImagesMergedIntoText(self, x, i, v):
    """LLaVA: embeddings of the image take the places of its token, in their order."""
    mask = (i == 5).unsqueeze(-1).expand_as(x)
    return x.masked_scatter(mask, v.to(x.dtype)), mask.sum()
@forward("i:int64[N,T]=-9:9", **fed("i:int64[N,T]=-9:9"))
def A5047BitsCounted(self, i):
    """Bits of bytes counted by shifts, parity by xor, powers of negatives, a remainder beside fmod."""
    b = i & 0xFF
    c = sum((b >> k) & 1 for k in range(8))
    p = b ^ (b >> 4)
    p = p ^ (p >> 2)
    return c, (p ^ (p >> 1)) & 1, i**3, i.remainder(4), torch.fmod(i, 4), i >> 1, (-1) ** (i & 1)
@forward(XT, **fed(XT, low=3, own=row(1.0, np.nan, 2.0, 0.0, 5.0, 3.0)), noted="a NaN among its inputs")
def A5048MedianOfEvenWindows(self, x):
    """Medians of windows of four: the lower of the two in the middle, their places, NaN among them."""
    w = F.pad(x, (2, 1), value=0.5).unfold(1, 4, 1)
    return w.median(-1).values, w.nanmedian(-1).values, w.kthvalue(3, -1).values
@forward("b:uint8[N,T]=0:255", "c:int8[N,T]=-128:127", **fed("b:uint8[N,T]=0:255", "c:int8[N,T]=-128:127"))
def A5049ExtremesOfBytes(self, b, c):
    """Extremes, their places and ranges in bytes: differences wrap, a mean of two overflows, ties go to the first."""
    return b.argmax(1), c.argmin(1), b.amax(1) - b.amin(1), c.amax(1) - c.amin(1), (b + b.flip(1)) // 2, torch.abs(c), c.max(1).values.neg()
@forward(XT, IT, MT, **fed(XT, IT, MT))
def A5050ChoicesOfNumbers(self, x, i, m):
    """where of two numbers, of a number beside integers, of a boolean beside a float; what they are multiplied into."""
    a = torch.where(m, 1, 0)
    return a, a / 2, torch.where(m, 0.5, i), torch.where(x > 0, i, m), torch.where(m, 1.0, 0.0) * i, torch.where(m, i, 2) // 3
