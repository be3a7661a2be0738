# ruff: noqa: E501 - attacks are written as users write them
"""Python around tensors: arithmetic of sizes, closures, members that are functions, outputs of all kinds, writes into inputs, loops, slices, sizes of zero and one, types of inputs."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = XT) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=1, T=t) for t in sizes)


@forward(XT, dims="N=1:2:3 T=1:20:70", kinds=FEW, feeds=lengths(1, 2, 3, 7, 8, 9, 15, 16, 31, 32, 63, 64, 65, 70), refused="the path through the module depends on the size")
def A4380SizesByAllMeans(self, x):
    """divmod, rounding to even, half up by int, ceilings by minus, the lowest and highest bit, lcm, isqrt, nested minima, a size that meets values as a fraction."""
    t = x.shape[1]
    q, r = divmod(t, 7)
    low, high = t & -t, 1 << (t.bit_length() - 1)
    a = x[:, : round(t / 2) or 1]
    b = x[:, int(t * 0.3 + 0.5) :]
    c = F.pad(x, (0, -(-t // 8) * 8 - t)).view(x.shape[0], -1, 8)
    d = x[:, t - high :]
    e = x[:, :: max(1, min(t // 3, 4))]
    f = x[:, : math.isqrt(t)]
    return a.sum(1), b.sum(1), c.amax(2), d.mean(1), e, f, x * q + r, x / (t / 7) + low, x.repeat(1, math.lcm(t % 5 + 1, 2))[:, t % 3 :], x[:, : math.gcd(t, 12)].prod(1)
@attack(X4, dims=ROWS, kinds=FINITE[:4])
class A4381FunctionsAsMembers(nn.Module):
    """Lambdas and partials as members, a dictionary of functions, defaults, keyword-only arguments, starred ones, a property and a cached one, a class that is called."""
    scale = 2.0
    def __init__(self):
        super().__init__()
        self.act = lambda v, k=0.5: F.leaky_relu(v, k)
        self.pool = functools.partial(torch.amax, dim=1, keepdim=True)
        self.fns = {"sum": operator.add, "dif": lambda a, b: a - b}
        self.lin = nn.Linear(4, 4)
        self.steps = [self.act, torch.tanh, *([self.lin] * 2), functools.partial(self.mix, w=0.25)]
    @property
    def bias(self):
        return self.lin.bias * self.scale
    @functools.cached_property
    def table(self):
        return torch.linspace(-1, 1, 4).outer(torch.ones(4)) + self.lin.weight.detach()
    def mix(self, x, *more, w=0.5, **named):
        for m in (*more, *named.values()):
            x = torch.lerp(x, m, w)
        return x
    def forward(self, x):
        y = functools.reduce(lambda v, f: f(v), self.steps, x)
        z = self.mix(x, y, self.pool(x), w=0.125, last=self.fns["dif"](x, y))
        return self.fns["sum"](y, z) @ self.table + self.bias, self.mix(x)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 24, text=X4))
class A4382WrapsAnother(nn.Module):
    """A wrapper that hands on by __getattr__, counts by class, indexes and iterates over its blocks, `in`, len, getattr by names, a method bound elsewhere, super's forward."""
    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleDict({f"conv{i}": nn.Conv1d(4, 4, 2 * i + 1, padding=i) for i in range(3)})
        def forward(self, x):
            return sum(m(x) for k, m in self.inner.items() if k in self)
        def __contains__(self, k):
            return not k.endswith("1")
    class Child(Base):
        def forward(self, x):
            return super().forward(x) / len(self.inner) + self.inner["conv1"](x)
    def __init__(self):
        super().__init__()
        self.net = self.Child()
        self.heads = nn.ModuleList([nn.Linear(4, k) for k in (1, 2, 3)])
        self.norm = nn.LayerNorm(4).forward
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("net"), name)
    def forward(self, x):
        y = self.net(x.mT).mT + self.inner.conv0(x.mT).mT
        outs = [h(self.norm(y)) for h in self.heads[1:]]
        return {h.out_features: o for h, o in zip(self.heads[1:], outs, strict=True)}[3], torch.cat([*outs, self.heads[0](y)], -1)
class Pair(NamedTuple):
    first: torch.Tensor
    rest: list
@dataclasses.dataclass
class Found:
    pairs: Pair
    extra: dict
    nothing: torch.Tensor | None = None
@attack(X4, "unused:int32[N]", dims=ROWS, kinds=FINITE[:4])
class A4383OutputsOfAllKinds(nn.Module):
    """A dataclass of a NamedTuple of lists, an OrderedDict moved to its end, the same output twice, views of each other, a weight, a constant, an input through a no-op."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.drop = nn.Dropout(0.5)
    def forward(self, x, unused):
        y = x * 2
        extra = collections.OrderedDict(b=y[:, :1], a=y, c=self.w)
        extra.move_to_end("b")
        extra["d"] = self.drop(x)
        y += 1
        return Found(Pair(y, [y.mT, x.view_as(x), (y.sum(), torch.tensor(3.5))]), extra)
@forward(X4, dims=ROWS, kinds=FINITE[:4])
def A4384WritesIntoItsInput(self, x):
    """The input is normalised in place, masked by value in place through a view, and given back beside what was read before."""
    before = x.sum(-1)
    x.sub_(x.mean(1, keepdim=True))
    head = x[..., :2]
    head[head < 0] = 0
    head.clamp_(max=2.0).mul_(head.detach() + 1)
    x[:, -1] += before[:, -1:]
    return x, before, x.flatten(1).amax(1)
@forward("x:float32[N,T]", "like:int32[N,S]", "y:float32[N,T]", dims="N=1:1:2 T=1:5:8 S=1:6:9", kinds=FEW)
def A4385OnlyTheShapeIsUsed(self, x, like, y):
    """One input gives only its size and type, tensors are made in its image, one is asked for its device, stride and element count."""
    n, s = like.shape
    a = torch.zeros_like(like, dtype=x.dtype) + x.mean(1, keepdim=True)
    b = like.new_full((n, s), 7).to(y) * y.numel()
    c = torch.ones(s, x.shape[1], device=like.device).cumsum(0) * y.stride(0)
    return a, b, c, torch.full((like.nelement(),), x.dim() + like.element_size()), x.new_tensor([s, n]), y.expand_as(x)
@forward("h:float16[N,T]", "d:float64[N,T]", "b:bool[N,T]", "c:uint8[N,T]=0:255", "i:int8[N,T]=-128:127", dims=ROWS, kinds=("normal", "zeros", "halves", "ones"), refused="which tensorrt-rtx reads as FP32 silently")
def A4386ManyTypesAtOnce(self, h, d, b, c, i):
    """Sums of five types, a mean of halves, doubles compared with what floats round, where between types, bytes times booleans, int8 beside uint8, a divide of booleans."""
    return h + i, (d * 0.1 == d.float() * 0.1), torch.where(b, h, c), c * b, i + c, b / 2, h.mean(1), d + 1e-9, (i * b).sum(1), torch.maximum(i, b.to(i)), torch.stack([h.double(), d]).amax(0), c.half() - 200 + h, (d > h).sum(1), i // 2 * b, torch.result_type(h, c) == torch.float16 and h * c
@forward("x:float32[A,B,C]", dims="A=1:2:4 B=1:3:5 C=1:4:6", kinds=FEW, feeds=tuple(values_at("x:float32[A,B,C]", A=a, B=b, C=c) for a, b, c in itertools.product((1, 4), (1, 4), (1, 4, 6))), refused="the path through the module depends on the size")
def A4387FunctionsOverSizes(self, x):
    """reduce over a shape, a product of a generator, sorted sizes as a shape, the index of a size, any and all over sizes, sums of zipped sizes and strides."""
    s = x.shape
    n = functools.reduce(operator.mul, s, 1)
    flat = x.reshape(n)
    total = sum(d * k for d, k in zip(s, x.stride(), strict=True))
    ones = sum(1 for d in s if d == 1)
    return flat.view(sorted(s)), x.permute(*reversed(range(3))), flat * math.prod(s[:-1]), x * total, x + ones, x.reshape(-1, *s[2:]).sum(0), torch.full(tuple(d + 1 for d in s), 2.0), x.mean(tuple(range(1, x.ndim))), flat.view([max(s), -1])
@forward("x:float32[H,W]", "y:float32[W,H]", dims="H=1:4:7 W=1:5:7", kinds=FEW, feeds=tuple(values_at("x:float32[H,W]", "y:float32[W,H]", H=h, W=w) for h, w in ((1, 1), (4, 4), (7, 7), (1, 7), (7, 1), (3, 4))))
def A4388EqualByChance(self, x, y):
    """Where both sides are alike an addition is plain, else one is turned or padded; a bias for rows that would fit columns as well; mm, outer, kron, diag of either."""
    h, w = x.shape
    a = x + y.T
    m = max(h, w)
    sq = F.pad(x, (0, m - w, 0, m - h)) + F.pad(y, (0, m - h, 0, m - w))
    r = torch.arange(h, dtype=x.dtype)
    c = torch.arange(w, dtype=x.dtype)
    return a, sq, x * r[:, None] + c, (x @ y).diag(), torch.diag(y, -1).sum(), torch.outer(r, c) - x, sq.tril() + sq.triu(1).T, y.matmul(r), torch.addmv(c, y, r, beta=2), torch.kron(x, y).sum(0)
@forward(X4, dims="N=1:1:2 T=1:7:16", kinds=FINITE[:4], feeds=lengths(1, 2, 3, 4, 15, 16, text=X4), refused="the path through the module depends on the size")
def A4389ListsThatAreWorkedOn(self, x):
    """insert at the front, pop, extend, a deque of three, slices of a list of results, star unpacking, sorting by a key, enumerate from one, zip of a list with its tail."""
    rows = list(x.unbind(1))
    first, *rest = rows
    rest.insert(0, first * 2)
    rest.extend([first, rest.pop()])
    recent, out = collections.deque(maxlen=3), []
    for i, r in enumerate(rest, 1):
        recent.append(r)
        out.append(sum(recent) / min(i, 3))
    pairs = [b - a for a, b in itertools.pairwise(out)]
    chosen = out[::2] + out[-1:] + pairs[:2]
    return torch.stack(out[::-1], 1), torch.cat(chosen, -1), torch.stack(sorted(out, key=lambda v: v.shape[0])[-2:], 1), len(pairs) * first
@forward("x:float32[N,2,T]", dims="N=1:1:2 T=3:20:70", kinds=FEW, feeds=lengths(3, 4, 5, 8, 9, 16, 17, 33, 65, 70, text="x:float32[N,2,T]"), refused="the path through the module depends on the size")
def A4390HalvedUntilSmall(self, x):
    """Padded to even and halved until four are left, the number of rounds and all sizes on the way count; back up through a stack with the surplus cut."""
    skips, y, k = [], x, 0
    while y.shape[-1] > 4:
        if y.shape[-1] % 2:
            y = F.pad(y, (0, 1), mode="replicate")
        skips.append(y)
        y = F.avg_pool1d(y, 2)
        k += 1
    low = y
    while skips:
        s = skips.pop()
        y = F.interpolate(y, scale_factor=2.0)[..., : s.shape[-1]] + s / (len(skips) + 1)
    return y[..., : x.shape[-1]], low, x[..., 0] * k
@forward(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 3, 24, text=X4))
def A4391ModernPython(self, x):
    """A match over a tuple of sizes, the walrus, nested comprehensions, a conditional chain, try and finally, a generator that yields from another, nonlocal counters, any() over tensors' sizes."""
    count = 0
    def halves(v):
        nonlocal count
        for part in v.tensor_split(2, dim=-1):
            count += 1
            yield from (part, part.flip(-1))
    if (t := x.shape[1]) and (rest := t % 3) < 3:
        x = x + rest
    parts = [p * i for i, p in enumerate(halves(x))]
    try:
        y = torch.stack(parts, -1)
    finally:
        z = count * x
    match x.shape:
        case (_, _, 4):
            y = y.sum(-1)
        case _:
            y = y.mean(-1)
    grid = [[x[..., i] * x[..., j] for j in range(i + 1)] for i in range(3)]
    w = {f"{i}{j}": g for i, row in enumerate(grid) for j, g in enumerate(row) if i != j}
    return y, z, torch.stack([w[k] for k in sorted(w, reverse=True)], -1), x if 0 < count <= 4 else -x
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:20:37 W=8:21:37", kinds=FINITE[:3], feeds=tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h, w in ((8, 8), (9, 15), (37, 36), (31, 33))))
class A4392UnetOfOddSizes(nn.Module):
    """Three levels with strides, up by a factor in a loop over a reversed list, cropped from the middle or padded to each skip, deep outputs resized back."""
    def __init__(self):
        super().__init__()
        self.enc = nn.ModuleList([nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)])
        self.dec = nn.ModuleList([nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(7, 2, 3, padding=1)])
    def forward(self, x):
        skips, y, deep = [], x, []
        for e in self.enc:
            skips.append(y)
            y = F.relu(e(y))
        for s, d in zip(skips[::-1], self.dec, strict=True):
            y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
            dh, dw = s.size(2) - y.size(2), s.size(3) - y.size(3)
            y = F.pad(y, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2])
            y = d(torch.cat([y, s], 1))
            deep.append(F.interpolate(y.mean(1, keepdim=True), size=x.shape[2:], mode="nearest"))
        return y, torch.cat(deep, 1)
@forward(XT, dims="N=1:1:2 T=1:20:60", kinds=("normal", "ones"), feeds=lengths(1, 2, 3, 10, 29, 30, 31, 59, 60), refused="the path through the module depends on the size")
def A4393StepsAndSpaces(self, x):
    """arange by 0.25 and from minus a half, downward, of whole numbers by three; linspace of whole numbers, of doubles, logspace; by sizes, with the length of each."""
    t = x.shape[1]
    a, b, c = torch.arange(0, t, 0.25), torch.arange(-0.5, t / 2, 1.5), torch.arange(t, -t, -3)
    d = torch.linspace(0, t - 1, 2 * t + 1)
    e = torch.linspace(0, 1, t, dtype=torch.float64)
    f = torch.logspace(0, 2, t)
    g = torch.linspace(-1, 1, t) if t > 1 else torch.zeros(1)
    return a, b, c, d, e, f, g, x * f, x[:, d[::2].round().long().clamp(max=t - 1)], x[:, torch.arange(t - 1, -1, -1)], torch.arange(5, 5 + t, dtype=torch.float32) / t
@forward(X4, dims="N=1:1:2 T=4:9:24", kinds=FEW, feeds=lengths(4, 5, 24, text=X4))
def A4394OverlappingWindows(self, x):
    """Windows by as_strided and unfold, written into a copy of them, writes chained on views, a window's write that shows in the next, expand made whole and written."""
    n, t, d = x.shape
    y = x.clone()
    w = y.unfold(1, 3, 2)
    m = w.mean(-1)
    k = w.clone()
    k[..., 1] *= -1
    y[:, 1:].sub_(y[:, :-1].clone()).div_(2)[:, ::2].add_(1)
    y[..., 0].copy_(m[:, :1, 0].expand(-1, t))
    e = y[:, :1].expand(n, t, d).contiguous()
    e[:, 1:, 1] = 9
    s = y.as_strided((n, t - 1, d), (t * d, d, 1), d)
    s.abs_().sqrt_()
    for i in range(1, 4):
        y[:, i] += y[:, i - 1] * 0.5
    return y, k, e, s, w.sum(-1)
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 3, 4, 5, 23, 24, text=X4), refused="the path through the module depends on the size")
def A4395SlicesBySizes(self, x):
    """Ends below zero that a size makes, None ends, ellipses and new axes beside index tensors, tensor_split at sizes, narrow, select from the end, chunks that are fewer, roll of a slice."""
    n, t, d = x.shape
    k = t // 4
    a = x[:, -k:] if k else x[:, :0]
    b = x[:, k : t - k, None, ..., ::2]
    c = x[:, [0, -1, t // 2]][..., None]
    p = torch.tensor_split(x, (k, t - 1), dim=1)
    e = x.narrow(1, k, t - k).select(2, -1)
    f = x[:, torch.arange(t - 1, -1, -2), 1:3]
    g = torch.zeros(n, t + 1, d)
    g[:, 1 : t + 1 : 2] = x[:, ::2]
    g[:, -1, None] += 1
    return a.sum(1), b, c, p[0].sum(1), p[1].amax(2), p[2], e, f, g, x.swapaxes(0, 1)[t // 3], x[-1, :, 1], x[..., : -(t % 3) or None, 0]
@forward("x:float32[N,T]", "y:float32[N,S,3]", dims="N=0:2:3 T=1:5:8 S=0:4:6", kinds=("normal", "zeros", "ones"), feeds=tuple(values_at("x:float32[N,T]", "y:float32[N,S,3]", N=n, T=t, S=s) for n, t, s in itertools.product((0, 1, 3), (1, 8), (0, 1, 6))))
def A4396NothingThere(self, x, y):
    """Batches and sequences of none: sums, products, any, all, running sums, softmaxes, joins, products of matrices, a mean that is NaN, norms, flattening by sizes."""
    s = y.size(1)
    z = torch.cat([y, x[:, :1, None].expand(-1, 1, 3)], 1)
    return y.sum(1), y.prod(1), (y > 0).any(1), (y > 0).all(1), y.cumsum(1), y.softmax(1), z.amax(1), y.mT @ y, y.mean(1).nan_to_num(-1.0), y.flatten(1), y.norm(dim=1), x.sum(0), torch.logsumexp(z, 1), y.sum() / max(y.numel(), 1), F.pad(y, (0, 0, 1, 1)), y.new_ones(s).sum(), torch.bmm(y, y.mT), F.linear(y, x.new_ones(2, 3))
@attack(X4, dims="N=1:2:3 T=1:5:9", kinds=FINITE[:4], refused="forward takes a derivative")
class A4397Derivatives(nn.Module):
    """A gradient by torch.func, a Jacobian of a small map, vmap over rows with an extra argument, a divergence, a product with a vector forward."""
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4))
    def forward(self, x):
        e = lambda v: self.f(v).pow(2).sum()  # noqa: E731
        g = torch.func.grad(e)(x)
        j = torch.func.vmap(torch.func.jacrev(self.f))(x.flatten(0, 1))
        d = torch.func.vmap(lambda r, k: (r * k).softmax(-1), in_dims=(0, None))(x, torch.tensor(2.0))
        _, p = torch.func.jvp(self.f, (x,), (torch.ones_like(x),))
        return g, j.diagonal(dim1=1, dim2=2).sum(1), d, p
@attack(XT, dims=ROWS, kinds=FEW)
class A4398LooksUpItself(nn.Module):
    """Named buffers and parameters in order, sums of squares of all weights, a state_dict's keys, children counted, a type asked for, extra state, a weight by its path."""
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
        self.register_buffer("offset", torch.tensor(0.5))
    def forward(self, x):
        y = self.body(x[..., None])[..., 0]
        reg = sum(p.square().sum() for n, p in self.named_parameters() if n.endswith("weight"))
        depth = sum(isinstance(m, nn.Linear) for m in self.modules())
        w = self.get_parameter("body.0.weight")
        b = dict(self.named_buffers())["offset"]
        return y * depth + b, reg, w.flatten() * len(self.state_dict()), torch.nn.utils.parameters_to_vector(self.body.parameters())[::3]
class Box:
    """Corners with operators of its own, that returns itself."""
    def __init__(self, xyxy):
        self.xyxy = xyxy
    def __and__(self, other):
        lt, rb = torch.max(self.xyxy[..., :2], other.xyxy[..., :2]), torch.min(self.xyxy[..., 2:], other.xyxy[..., 2:])
        return Box(torch.cat([lt, torch.maximum(lt, rb)], -1))
    def __len__(self):
        return self.xyxy.shape[-2]
    def __getitem__(self, i):
        return Box(self.xyxy[..., i, :])
    def __iter__(self):
        return (self[i] for i in range(2))
    @property
    def area(self):
        return (self.xyxy[..., 2:] - self.xyxy[..., :2]).prod(-1)
    def scale_(self, k):
        self.xyxy *= k
        return self
@forward("a:float32[N,T,4]", "b:float32[N,T,4]", dims="N=1:2:3 T=2:6:12", kinds=FEW)
def A4399BoxesAsObjects(self, a, b):
    """Objects with operators, lengths, iteration and a method that scales in place what another one still holds."""
    p, q = Box(a.clone()), Box(b)
    both = p & q
    before = p.area
    p.scale_(2.0)[0].scale_(0.5)
    u, v = q
    return both.area, both.xyxy, before, p.area, (u & v).area * len(q), p[1].xyxy
