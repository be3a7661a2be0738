"""Numbers at their edges: integer division, bytes that overflow, signs of zero, ties, far integers, casts, buckets, scatters."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE, halves, sprinkled

X = "x:float32[N,T]"
D = "N=1:2:3 T=2:5:9"


@forward("a:int32[N,T]=-9:9", "b:int32[N,T]=1:5", dims=D)
def A8195IntegerQuotients(self, a, b):
    """Floor and trunc division, remainder and fmod by negative integers and by a negative scalar, true division to float, a power of negatives."""
    b = torch.where(b > 3, -b, b)
    return (
        a // b,
        torch.div(a, b, rounding_mode="trunc"),
        a % b,
        torch.fmod(a, b),
        a % -4,
        -7 // b,
        a / b,
        a**3,
        torch.fmod(a, -4),
    )


@forward("a:float32[N,T]=-9:9", "b:float32[N,T]=0.5:3", dims=D, kinds=FINITE)
def A8196FloatQuotients(self, a, b):
    """Floor division and remainder of floats with signs, fmod, trunc and frac, by a tenth that divides nothing exactly."""
    b = torch.where(a > 1, -b, b)
    a = torch.round(a * 4) / 4
    return (
        torch.fmod(a, b),
        torch.frac(a),
        torch.div(a, 0.25, rounding_mode="floor"),
        torch.remainder(a, 1.5),
        torch.remainder(a, -1.5),
        torch.fmod(a, -1.5),
    )


@forward("a:uint8[N,T]=0:255", "b:uint8[N,T]=0:255", "c:int8[N,T]=-128:127", dims=D)
def A8197BytesOverflow(self, a, b, c):
    """Sums, differences, products and negatives of bytes that wrap, an abs of -128, a shift left, a mean in integers by sum, uint8 against a Python int and a float."""
    return (
        a + b,
        a - b,
        a * b,
        -c,
        c.abs(),
        (a << 3),
        (a.sum(1) // a.shape[1]),
        a + 0.5,
        (c * 2).float(),
        torch.where(a > b, a - b, b - a),
        ~a,
    )


@forward("x:float32[N,T]=-4:4", "m:bool[N,T]", dims=D, kinds=FINITE)
def A8198BoolArithmetic(self, x, m):
    """Sums of bools, bool times float, xor, comparisons of bools, a bool as an index, max of bools, cumsum of a mask, mean of a cast, not of a comparison with NaN made by sqrt."""
    k = x > 0
    bad = ~(torch.sqrt(x) >= 0)
    return (
        k + m,
        (k * x),
        k ^ m,
        (k > m),
        m.sum(1),
        m.cumsum(1),
        m.any(1) & k.all(1),
        bad,
        torch.stack((x, -x), -1).gather(2, m[..., None].long())[..., 0],
        m.float().mean(1),
        k.int() - m.int(),
    )


@forward(X, dims=D, kinds=("zeros", "normal", "halves"), feeds=sprinkled(-0.0, 0.0, sizes=((2, 5), (1, 4))))
def A8199SignedZeros(self, x):
    """1/x at both zeros through copysign, signbit, atan2 of zeros, sign, maximum with 0, x + 0.0, sqrt(-0)."""
    z = x * 0
    one = torch.ones_like(x)
    return (
        torch.copysign(one, x),
        torch.signbit(x),
        torch.atan2(x, one),
        torch.atan2(z, -one),
        torch.sign(x),
        torch.clamp(x, min=0),
        torch.atan2(torch.zeros_like(x), x),
    )


@forward(
    X,
    dims=D,
    kinds=("normal", "zeros", "halves", "minus-infinity", "plus-infinity"),
    feeds=sprinkled(math.inf, -math.inf, 0.0, sizes=((2, 5), (3, 9))),
)
def A8200Infinities(self, x):
    """logaddexp by hand with a max, log of 0, softmax with one infinity, xlogy, exp of -inf, nan_to_num with its own bounds, isfinite masks, amax of masked rows, logsumexp of an empty mask."""
    m = torch.isfinite(x)
    y = torch.where(m, x, 0.0)
    lo = y.masked_fill(~m, -math.inf)
    lse = torch.logsumexp(lo, 1)
    return (
        torch.log(y.abs()),
        torch.nan_to_num(x, nan=1.0, posinf=7.0, neginf=-8.0),
        lse,
        lo.amax(1),
        torch.xlogy(y.abs(), y.abs()),
        torch.isinf(x) & (x > 0),
        torch.exp(-x.abs()),
        m.sum(1),
    )


@forward("x:float32[N,T]=-3:3", "y:float32[N,T]=-3:3", dims=D, kinds=FINITE)
def A8201Quadrants(self, x, y):
    """atan2 in all quadrants and on the axes, hypot, wrapped angle differences by remainder and by floor, degrees, sincs at 0, round half to even with decimals."""
    a = torch.atan2(y, x)
    d = a - torch.atan2(x, y)
    on = (x.abs() + y.abs()) > 0
    a = torch.where(on & ~((y == 0) & (x < 0)), a, 0.0)
    return (
        torch.cos(a),
        torch.hypot(x, y),
        torch.cos((d + math.pi) % (2 * math.pi)),
        torch.rad2deg(a),
        torch.sinc(x),
        torch.round(x * 2 + 0.5),
        torch.round(x, decimals=1),
    )


@forward("i:int32[N,T]=16777210:33554450", "j:int64[N,T]=4611686018427387000:4611686018427387903", dims=D, refused="the value range")
def A8202FarIntegers(self, i, j):
    """Sums and means of integers beyond 2**24, comparisons of neighbours there, int to float and back, products that need 64 bits, min and max and argmax of them."""
    k = i.long()
    return (
        i.sum(1),
        (i - i[:, :1]),
        (i > i[:, :1]),
        i.float(),
        k * 64 + 1,
        i.amax(1),
        i.argmin(1),
        i.cumsum(1),
        (k * k) % 1000003,
        i // 3,
        j - 4611686018427387000,
        j % 1000,
    )


@forward("x:float32[N,T]=-3:3", dims=D, kinds=FINITE, feeds=(halves(2, 9), halves(3, 4)))
def A8203TiesOfOrder(self, x):
    """argmax and argmin of rounded values, min with indices, stable sorts up and down, topk of negatives, unique ranks by two argsorts, mode-like counts by comparisons, cummax of values."""
    q = torch.round(x)
    s, i = torch.sort(q, dim=1, stable=True)
    d, k = torch.sort(q, dim=1, descending=True, stable=True)
    r = i.argsort(1)
    return (
        q.argmax(1),
        q.argmin(0),
        q.min(1).indices,
        s,
        i,
        d,
        k,
        r,
        (q[:, :, None] == q[:, None]).sum(2),
        torch.cummax(q, 1).values,
        q.median(1).values,
    )


@forward("x:float32[N,T]=-3:3", "e:float32[4]=-2:2", dims=D, kinds=FINITE, feeds=())
def A8204Buckets(self, x, e):
    """bucketize with right both ways at its own boundaries and duplicates, searchsorted of sorted rows, interpolation in a table (np.interp), digitised places of edges made by sort."""
    b = torch.tensor([-1.0, 0.0, 0.0, 0.5, 2.0], device=x.device)
    q = torch.round(x * 2) / 2
    e = e.sort().values
    rows = q.sort(1).values.contiguous()
    i = torch.searchsorted(e, q).clamp(1, 3)
    lo, hi = e[i - 1], e[i]
    t = ((q - lo) / (hi - lo + 1)).clamp(0, 1)
    return (
        torch.bucketize(q, b),
        torch.bucketize(q, b, right=True),
        torch.searchsorted(rows, q.contiguous()),
        torch.searchsorted(rows, q.contiguous(), right=True),
        t,
        torch.searchsorted(b, q, side="right", out_int32=True),
    )


@forward("x:float32[N,T]", "i:int64[N,T]=0:3", dims=D, kinds=FINITE)
def A8205ScatterReduces(self, x, i):
    """scatter_reduce of sum, prod, mean, amax, amin with and without self, scatter with reduce by add, at duplicates and places that none hits."""
    z = torch.ones(x.shape[0], 4, device=x.device) * 0.5
    return (
        z.scatter_reduce(1, i, x, "sum"), z.scatter_reduce(1, i, x, "mean"), z.scatter_reduce(1, i, x, "amax", include_self=False),
        z.scatter_reduce(1, i, x, "amin"), z.scatter_reduce(1, i, x, "mean", include_self=False), z.scatter_reduce(1, i, x.clamp(-2, 2), "prod"),
        z.scatter_add(1, i, x),
    )  # fmt: skip


@forward("x:float32[T,4]", "i:int64[T]=0:2", "j:int64[T]=-3:2", dims="T=1:5:9", kinds=FINITE)
def A8206IndexAdds(self, x, i, j):
    """index_add with alpha at duplicates, index_put with accumulate by negative places, index_select, take_along_dim, index_fill, index_reduce by amax, put through a flat view."""
    z = torch.zeros(3, 4, device=x.device)
    a = z.index_add(0, i, x, alpha=-2)
    b = z.index_put((j,), x, accumulate=True)
    c = z.index_reduce(0, i, x, "amax", include_self=True)
    return (
        a,
        b,
        c,
        x.index_fill(1, torch.tensor([1, 3], device=x.device), 9.0),
        torch.take_along_dim(x, (i[:, None] + 1), 1),
    )


@forward("x:float32[N,T]=-300:300", dims=D, kinds=("normal", "halves", "zeros", "tenths", "ones", "negative"))
def A8207CastsThatCut(self, x):
    """Float to int64 by truncation of negatives, to int32, to bool, to half and back, to double and back, int64 to int8 and uint8 that wrap, long division of a cast, trunc against floor."""
    i = x.to(torch.int64)
    return (
        i,
        x.int(),
        x.bool(),
        x.half().float(),
        (x.double() / 3).float(),
        i.to(torch.int8),
        i.to(torch.uint8),
        i.to(torch.uint8).to(torch.int8),
        x.floor().long() - i,
        x.to(torch.bfloat16).float(),
    )


@forward(X, dims=D, kinds=FINITE, feeds=(halves(3, 9),), refused="from tests/adversary/modules/seventieth/numerics")
def A8208DoubleConstants(self, x):
    """A float64 constant vector among floats (result double), a 0-d double tensor (stays float), a numpy scalar, an int tensor over a float, a sum in double of floats, a comparison at 0.1 in double."""
    v = torch.tensor([0.1, 0.2], dtype=torch.float64, device=x.device)
    s = torch.tensor(0.1, dtype=torch.float64, device=x.device)
    y = x[:, :2] * v
    return (
        y,
        x * s,
        (x > s),
        (x.double() > 0.1),
        x.sum(1, dtype=torch.float64).float(),
        torch.tensor(3, device=x.device) / (x.abs() + 1),
        (y.float() == x[:, :2] * 0.1).any(1) | True,
    )


@forward(X, dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="the path through the module depends on the size:")
def A8209SizesInArithmetic(self, x):
    """Window ends by ceil, floor, isqrt, log2 and bit_length of sizes, a loop with break and continue, min and max of sizes and Python's negative floor, tuples reversed."""
    n, t = x.shape
    k = math.isqrt(t)
    p = 1 << (t - 1).bit_length()
    y = F.pad(x, (0, p - t))
    acc = y[:, :1] * 0
    for i in range(t):
        if i * i > t:
            break
        if i % 2:
            continue
        acc = acc + y[:, i : i + 1] * (i + 1)
    return (
        y,
        x[:, : max(1, -(-t // 3))],
        x[:, -k:],
        acc / math.log2(t + 1),
        x[:, (-t // 2) % t :],
        x.reshape(-1)[:: min(n, t)],
    )


@forward("x:float32[N,T,T]", "v:float32[N,T+1]", dims="N=1:2:3 T=1:3:6", kinds=FINITE)
def A8210TiedSizes(self, x, v):
    """Two dims tied and a third one larger by one: triangles by offsets, diagonals both ways, antidiagonal sums by flips, a Vandermonde, reshape by -1 of odd halves."""
    t = x.shape[-1]
    a = torch.triu(x, 1) + torch.tril(x, -1).mT
    d = torch.diagonal(x, 0, 1, 2) + v[:, :-1] - v[:, 1:]
    e = torch.diag_embed(d, offset=1)
    w = v[:, 1:, None].clamp(-1, 1) ** torch.arange(t, device=x.device)
    return (
        a,
        e,
        x.flip(-1).diagonal(dim1=1, dim2=2),
        w,
        torch.cat((x.flatten(1), v), 1)[:, : (t * t + t + 1) // 2 * 2].view(x.shape[0], 2, -1),
        x.tril().sum(-1),
    )
