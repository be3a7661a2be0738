"""Operators at their corners: wrap, ties, types, duplicates, views; and holders of odd kinds."""
# ruff: noqa: E501, E731 - attacks are written as users write them

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, sprinkled

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"
H = (halves(2, 5, 6), halves(3, 9, 6))


@forward("i:int64[N,T]=-9:9", dims=D)
def A8060NegativeDivisions(self, i):
    """Floor and trunc division and remainders by negative numbers and tensors, fmod, shifts of negatives, float division of ints, divmod of dims."""
    d = torch.where(i == 0, 1, i)
    return i // -4, i % -4, torch.fmod(i, -4), torch.div(i, -4, rounding_mode="trunc"), i >> 1, i << 2, i / 3, 7 // d, -7 % d, torch.remainder(i, 2.5), i.float() // -1.5, i & -2, ~i, i.to(torch.int8) * 20


@forward("i:int32[N,T]=-9:9", dims=D, refused="differs from the module")
def A8061Int32Wraps(self, i):
    """int32: a hash by odd multipliers that wraps, xor-shifts, sums to int64, cumsum to int64, prod, promotion with int64 scalars, with a float scalar, with a bool."""
    h = i * 73856093
    h = h ^ (h >> 13)
    h = h * 1274126177
    return h, h & 1023, h.sum(-1), i.cumsum(-1), h.sum(-1, dtype=torch.int32), i + 2147483647, (i + True).float() * 0.5, i.prod(-1), i.abs().pow(3), h % 97


@forward("i:int64[N,T]=-9:9", dims=D, refused="differs from the module")
def A8062Int64Hash(self, i):
    """int64: FNV, a product that wraps past 63 bits, low bits, parity by xor folds; popcount by tables."""
    h = (i ^ 1469598103934665603) * 1099511628211
    g = h ^ (h >> 32)
    return h, g & 65535, (g % 1000), torch.tensor([0, 1, 1, 2, 1, 2, 2, 3])[g & 7], h.sum(1), h < 0


@forward(X, dims=D, kinds=FINITE, feeds=H)
def A8063WritesThroughViews(self, x):
    """Writes through expand's base, transposes, strided slices with negative flips, chained index and slice, += on a repeated view, masked writes read back."""
    y = x.clone()
    y.transpose(1, 2)[:, ::2, 1:].mul_(-1)
    y[:, [0, -1, 0]] += 1
    y[y > 1.5] = y.mean()
    y[..., 0][y[..., 1] < 0] = 7
    v = y.view(-1)[3::4]
    v += v.flip(0)
    z = y.unsqueeze(0).expand(2, -1, -1, -1)
    y[:, 0] = 0
    return y, z.sum(0), v


@forward(X, "i:int64[N,4]=-2:1", dims=D, kinds=FINITE)
def A8064IndexPutDuplicates(self, x, i):
    """index_put with accumulate and negative duplicate indices, scatter of products, index_copy of the last, take with negatives, put of flat places, masked_scatter in order."""
    n = torch.arange(x.shape[0])[:, None]
    a = torch.zeros(x.shape[0], x.shape[1]).index_put((n, i), x[:, 0, :4], accumulate=True)
    b = torch.ones_like(x).scatter_reduce(1, (i % 2)[..., None].expand(-1, -1, 6)[:, : x.shape[1]], x[:, :4], "prod", include_self=False)
    c = torch.take(x, i)
    m = x > 0.3
    d = x.masked_scatter(m, -x.flatten())
    e = x.index_add(1, torch.tensor([0, 0, -1 % x.shape[1]]), x[:, [1, 0, 1]], alpha=0.5)
    f = x.index_fill(2, torch.tensor([-1, 2]), 9.0)
    return a, b, c, d, e, f


@forward(X, dims=D, kinds=FINITE, feeds=H)
def A8065SearchAndBuckets(self, x):
    """searchsorted of both sides with a sorter, bucketize right, int32 out, histc over fixed bins, histogram by one-hot, quantiles in every mode, nanquantile, unique_consecutive-free runs."""
    s, o = torch.sort(x, dim=-1, stable=True)
    q = torch.tensor([0.1, 0.5, 0.9])
    r = x.round()
    e = torch.tensor([-1.0, 0.0, 1.0])
    return (
        torch.searchsorted(x.contiguous(), r, sorter=o), torch.searchsorted(s, r, right=True, out_int32=True), torch.bucketize(r, e), torch.bucketize(r, e, right=True),
        torch.stack([torch.quantile(x, q, dim=-1, interpolation=m) for m in ("linear", "lower", "higher", "nearest", "midpoint")]),
        torch.histc(r.clamp(-3, 3), 6, -3, 3), x.nanquantile(0.25, 1, keepdim=True),
    )  # fmt: skip


@forward(X, dims=D, kinds=FINITE, feeds=sprinkled(math.inf, -math.inf, 1e-40, sizes=((2, 5), (3, 9)), more=(6,)))
def A8066Infinities(self, x):
    """clamp with infinite bounds, nan_to_num with its own numbers, isfinite masks, softmax with -inf, logsumexp of all -inf, logcumsumexp, max of infinities, 0 times, sign, fmin of NaN."""
    n = torch.where(x == x.amax(-1, keepdim=True), math.nan, x)
    return (
        x.clamp(min=-math.inf, max=2), torch.nan_to_num(n, nan=-1.0, posinf=5.0, neginf=-5.0), x.isfinite().sum(-1), torch.logsumexp(x.clamp(max=3), 1), torch.fmin(n, x.new_zeros(())),
        torch.fmax(n, x), n.nansum(1).clamp(-1e6, 1e6), n.isnan().any(-1), x.masked_fill(x < 0, -math.inf).softmax(-1).nan_to_num(0), x.sign() * 2, x.cummin(1).values,
    )  # fmt: skip


@forward("z:float32[N,T,6]", dims=D, kinds=FINITE)
def A8067ComplexNumbers(self, z):
    """A complex rotation by polar, products, conj transposes, abs, angle of zero, fft over a moving length, fftshift, roots of unity indexed by a product of ints."""
    c = torch.view_as_complex(z.reshape(*z.shape[:2], 3, 2))
    t = z.shape[1]
    r = torch.polar(torch.ones(t), torch.arange(t) * 0.3)
    y = c * r[:, None]
    f = torch.fft.fft(y, dim=1, norm="ortho")
    s = torch.fft.fftshift(f, 1)
    k = (torch.arange(t)[:, None] * torch.arange(t)) % t
    w = torch.polar(torch.ones(t), -2 * math.pi / t * torch.arange(t).float())[k]
    d = torch.einsum("kt,ntc->nkc", w, c)
    return torch.view_as_real(y), s.abs(), torch.view_as_real(d), (y.conj().transpose(1, 2) @ y).real, torch.fft.irfft(torch.fft.rfft(z, dim=1), n=t, dim=1)


@dataclass
class Out:
    logits: torch.Tensor
    extra: Any = None
    loss: torch.Tensor | None = None


@forward(X, dims=D, kinds=FINITE)
def A8068NestedOutputs(self, x):
    """Dictionaries in tuples in lists, the same tensor twice, an input given back, a number of elements, a slice of another output."""
    y = x * 2
    return {"b": [y, (x, {"z": y[:, 0], "a": y})], "a": y.sum(), "n": torch.tensor(x.shape[1])}, y[..., ::2]


@forward(X, dims=D, kinds=FINITE)
def A8069DataclassOut(self, x):
    """A dataclass of an own kind as an output, with None."""
    return Out(x.softmax(-1), [x.argmax(-1)])


@attack(X, dims=D, kinds=FINITE)
class A8070DescriptorsAndSlots(nn.Module):
    """A descriptor that scales by a stored parameter, a property that stacks, __getattr__ behind nn.Module's, __iter__ over layers, __call__ patched on a child."""

    class Scaled:
        def __get__(self, obj, owner=None):
            return obj.w * 3 if obj is not None else self

    gain = Scaled()

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.w = nn.Parameter(torch.randn(6))
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
        self.b.forward = lambda v: F.linear(v, self.a.weight.T, self.b.bias)

    def __iter__(self) -> Iterator[nn.Module]:
        yield self.a
        yield self.b

    def __getattr__(self, name):
        if name.startswith("lazy_"):
            return super().__getattr__(name[5:])
        return super().__getattr__(name)

    @property
    def stacked(self):
        return torch.stack([m.bias for m in self])

    def forward(self, x):
        for m in self:
            x = torch.tanh(m(x)) * self.gain
        return x + self.stacked.sum(0), self.lazy_a(x)


class Rank1(nn.Module):
    def forward(self, w):
        return w + torch.outer(w[:, 0], w[0])


@attack(X, dims=D, kinds=FINITE)
class A8071NormedWeights(nn.Module):
    """weight_norm of a conv along dim 1, spectral_norm in eval, orthogonal by householder, a parametrization of its own over another, removed in __init__ for one."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.c = parametrizations.weight_norm(nn.Conv1d(6, 4, 3, padding=1), dim=1)
        self.s = parametrizations.spectral_norm(nn.Linear(4, 6))
        self.o = parametrizations.orthogonal(nn.Linear(6, 6), orthogonal_map="householder")
        self.l = nn.Linear(6, 6)
        parametrize.register_parametrization(self.l, "weight", Rank1())
        parametrize.register_parametrization(self.l, "weight", Rank1())

    def forward(self, x):
        y = self.c(x.transpose(1, 2)).transpose(1, 2)
        return self.o(self.s(y)), self.l(x)


@attack(X, dims=D, kinds=FINITE)
class A8072TrainingNorms(nn.Module):
    """Batch norm functional with training=True and no buffers, a BatchNorm kept in train by an overridden train(), dropout with training=False, a group of instance norms."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(6, track_running_stats=False, momentum=None)

    def forward(self, x):
        y = self.bn(x.transpose(1, 2))
        z = F.batch_norm(x.transpose(1, 2), None, None, training=True, eps=0.1)
        return y, z, F.dropout(x, 0.9, training=False), F.instance_norm(x.transpose(1, 2), eps=1e-2), F.local_response_norm(x.transpose(1, 2), 3)


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.levels = levels
        return (x.clamp(-1, 1) * levels).round() / levels

    @staticmethod
    def backward(ctx, g):
        return g, None


@forward(X, dims=D, kinds=FINITE, feeds=H)
def A8073QuantisedByFunctions(self, x):
    """A straight-through estimator, fake_quantize by tensor and by channel, rounding half to even of halves, a per-token scale to int8 and back, finite scalar quantisation codes."""
    a = StraightThrough.apply(x, x.shape[1])
    b = torch.fake_quantize_per_tensor_affine(x, 0.5, 3, 0, 15)
    s = x.abs().amax(-1, keepdim=True).clamp(min=1e-3) / 127
    q = (x / s).round().clamp(-128, 127).to(torch.int8)
    c = ((torch.tanh(x) * 2).round() + 2).long()
    return a, b, q.float() * s, (c * torch.tensor([1, 5, 25, 125, 625, 3125])).sum(-1)


@forward(X, dims=D, kinds=FINITE, refused="depends on the size")
def A8074FuncTransforms(self, x):
    """torch.func: jvp-free vmap of a function over two axes with in_dims and out_dims, vmap with an index, nested vmaps, chunked."""
    f = lambda a, b: (a * b).sum() + a.amax()
    g = torch.func.vmap(torch.func.vmap(f, in_dims=(0, None)), in_dims=(0, 0))
    w = x.mean(1)
    return g(x, w), torch.func.vmap(lambda r, i: r.roll(1) * i, in_dims=(1, 0), out_dims=1)(x, torch.arange(x.shape[1])), torch.vmap(lambda a: a @ a.T, chunk_size=2)(x)


@forward(X, dims=D, kinds=FINITE, refused="cannot be exported")
def A8075GradientInForward(self, x):
    """A gradient within forward: torch.func.grad of an energy, one step of descent."""
    e = lambda v: (torch.tanh(v) ** 2).sum() + (v[:, 1:] - v[:, :-1]).pow(2).sum()
    return x - 0.1 * torch.func.grad(e)(x)


@forward(X, dims=D, kinds=FINITE, feeds=H, refused="cannot be exported")
def A8076FoldAndShuffle(self, x):
    """Unfold and fold with overlaps divided by counts, pixel shuffle and unshuffle where the length is made even, channel shuffle, as_strided windows, block diagonal, kron, tensordot, vander."""
    y = F.pad(x, (0, 0, 0, x.shape[1] % 2))[:, None]
    u = F.unfold(y, (2, 3), stride=(1, 2), padding=(0, 1))
    c = F.fold(F.unfold(torch.ones_like(y), (2, 3), stride=(1, 2), padding=(0, 1)), y.shape[-2:], (2, 3), stride=(1, 2), padding=(0, 1))
    f = F.fold(u, y.shape[-2:], (2, 3), stride=(1, 2), padding=(0, 1)) / c.clamp(min=1)
    p = F.pixel_unshuffle(y, 2)
    return f, F.pixel_shuffle(p.flip(1), 2), F.channel_shuffle(p, 2), torch.kron(torch.eye(2), x[0]), torch.tensordot(x, x[0], ([1, 2], [0, 1])), torch.vander(x[0, 0], 3), torch.block_diag(x[0], x[0, :1])


@attack(X, dims=D, kinds=FINITE)
class A8077ScriptedBranches(nn.Module):
    """A scripted function with an early return by size, one with a while over a value's sign of sizes, an Enum-free string argument; used three times."""

    def __init__(self) -> None:
        super().__init__()
        self.f = torch.jit.script(pick)

    def forward(self, x):
        return self.f(x, "sum"), self.f(x[:, 1:], "max"), self.f(x.flip(1), "other")


def pick(x: torch.Tensor, how: str) -> torch.Tensor:
    """By name and by size."""
    if how == "sum":
        return x.sum(1)
    n, k = x.size(1), 0
    while n > 1:
        n = n // 2
        k += 1
    if how == "max" and x.size(1) > 4:
        return x.amax(1) * k
    return x.mean(1) - k


class Marked(torch.Tensor):
    """A subclass without a meaning of its own."""


@forward(X, dims=D, kinds=FINITE)
def A8078SubclassTensors(self, x):
    """as_subclass and back, a Parameter made in forward, detach and requires_grad_, deepcopy of an activation, .data written."""
    y = x.as_subclass(Marked) * 2
    p = nn.Parameter(torch.ones(6)) * 3
    z = y.as_subclass(torch.Tensor).detach().clone()
    z.data[:, 0] = 4
    return z * p, y.as_subclass(torch.Tensor)


@forward("a:float32[N,1,P]", "b:float32[1,M,P]", dims="N=1:2:3 M=1:3:4 P=1:2:5", kinds=FINITE, refused="one axis less")
def A8079BroadcastOfOnes(self, a, b):
    """Axes that are one at some sizes: cdist of norms 1, 2 and inf, cosine with eps, cross-free outer sums, squeeze(1), expand_as, einsum with a repeated letter, matmul of ranks."""
    d = (a - b).abs()
    return torch.cdist(a.expand(-1, 2, -1), b.expand(a.shape[0], -1, -1), p=1), d.amax(-1), F.cosine_similarity(a, b, dim=-1), torch.einsum("nip,jmp->nmp", a, b), a.squeeze(1) @ b[0].T, (a.mT @ a).diagonal(dim1=1, dim2=2), a.squeeze() .sum() + b.squeeze(0).sum(0)


@forward("x:float16[N,T,6]", "y:float16[N,T,6]", dims=D, kinds=("unit", "halves", "zeros", "ones", "positive"))
def A8080HalfTypes(self, x, y):
    """float16 with bfloat16 gives float32; python scalars do not widen; sums in fp32 by dtype, softmax to float32, comparisons across."""
    y = y.bfloat16()
    return x + y, x * 0.1, y.sum(1, dtype=torch.float32), x.softmax(-1, dtype=torch.float32), (x > y), x.mean((1, 2))
