# ruff: noqa: E501 - attacks are written as users write them
"""Numbers: narrow types, bits, overflow, what is no number, special functions, sums that go on, state and modes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, sprinkled
from tests.adversary.values import values_at

X = "x:float32[N,T]"
B = "x:float32[N,T]=-4:4"
DIMS = "N=1:2:4 T=1:6:24"
INF, NAN = math.inf, math.nan
ODD = (0.0, -0.0, 0.5, 2.5, -2.5, 65504.0, 65519.9, 65520.0, 448.0, 464.0, 1e-45, -1e-45, 3e38, INF, -INF, NAN)


def row(*values: float) -> tuple:
    """One point of one row."""
    return (lambda: {"x": np.array([values], np.float32)},)


def at(*t: int, text: str = B, n: int = 2) -> tuple:
    """Points at lengths."""
    return tuple(values_at(text, N=n, T=v) for v in t)


@forward(X, dims=DIMS, feeds=row(*ODD))
def A7086Halves(self, x):
    """Through half and bfloat16: what overflows, what is subnormal, sums in half, the tie between two bfloat16."""
    h = x.half()
    b = x.bfloat16()
    return (
        h.float(),
        b.float(),
        h.isinf(),
        (h * 2).float(),
        (b + 1).float().nan_to_num(0, 1, -1),
        h.abs().amax(1).float(),
    )


@forward(
    "x:float32[N,T]=-3000000000:3000000000",
    dims=DIMS,
    kinds=("normal", "bytes", "large", "halves", "zeros"),
    feeds=row(255.9, 256.0, -0.9, 127.5, 128.0, -129.0, 65535.0, 65536.0, 2147483520.0, -2147483648.0, 16777217.0),
)
def A7087Narrowed(self, x):
    """By sixty-four bits to narrower ones that wrap, and back; products of thirty-two bits that wrap; shifts; truth."""
    i = x.long()
    n = i.int()
    return (
        i.to(torch.uint8),
        i.to(torch.int8),
        i.short(),
        n * n,
        n >> 3,
        (n << 4) // 3,
        n % -7,
        torch.fmod(n, -7),
        i.bool(),
        ~n,
        (i * i).float(),
    )


@forward(
    "x:int32[N,T]=-2147483648:2147483647",
    "y:int32[N,T]=-5:5",
    dims=DIMS,
    feeds=(
        lambda: {
            "x": np.array([[-2147483648, 2147483647, -7, 7, 0, -1]], np.int32),
            "y": np.array([[5, -5, 2, -2, 3, 4]], np.int32),
        },
    ),
)
def A7088Divided(self, x, y):
    """Divisions of whole numbers: floored and cut, by what is never zero, with the remainders; magnitudes that wrap."""
    d = torch.where(y == 0, 3, y)
    d = torch.where(d == -1, 2, d)
    return x // d, torch.div(x, d, rounding_mode="trunc"), x % d, torch.fmod(x, d), x / d, x.abs(), -x, x + x, x.sum(1)


@forward("x:float32[N,T]", dims=DIMS, feeds=row(*ODD), refused="the exporter has no form of view")
def A7089Bits(self, x):
    """Floats read as whole numbers: exponents, signs, a quick inverse root, the neighbour above, an order of keys."""
    b = x.view(torch.int32)
    e = (b >> 23) & 0xFF
    key = torch.where(b < 0, ~b, b | -2147483648)
    quick = (0x5F3759DF - (b >> 1)).view(torch.float32)
    return (
        e - 127,
        torch.signbit(x),
        key,
        torch.where(e == 0, 0.0, quick.abs().clamp(max=1e30)),
        torch.copysign(torch.ones_like(x), x),
        (b ^ b.roll(1, 1)) & 1,
    )


@forward(
    "x:float32[N,T]",
    dims=DIMS,
    kinds=("normal", "zeros", "halves", "plus-infinity", "minus-infinity", "large", "tiny"),
    feeds=(*row(*ODD), *row(NAN), *row(INF, INF), *row(-INF), *sprinkled(NAN, -INF, sizes=((2, 7), (1, 24)))),
)
def A7090Nans(self, x):
    """What is no number through maxima, clamps, signs, sorts, sums that go on, and comparisons."""
    return (
        x.clamp(-1, 1),
        x.relu(),
        x.sign(),
        x.amax(1),
        x.argmax(1),
        F.hardtanh(x),
        torch.fmin(x, x.new_ones(())),
        x.cummax(1).values,
        x.softmax(1),
        x.isfinite(),
        F.leaky_relu(x),
        F.relu6(x),
        x.sort(1).values,
        (x == x.flip(1)),
        F.threshold(x, 0.5, 7.0),
        torch.where(x > 0, x, -1.0),
        F.hardswish(x),
        x.logsumexp(1),
    )


@forward(
    B,
    dims=DIMS,
    kinds=(*FINITE,),
    feeds=(*row(-4, -3, -2, -1, 0, 0.5, 1, 2, 3, 4, 3.9999998), *row(1e-8, -1e-8, 1e-30)),
)
def A7091Special(self, x):
    """Special functions: error functions and inverses, entropies, sinc, and safe roots."""
    u = x.abs() / 4
    return (
        torch.erfinv(u * 0.999),
        torch.special.entr(u),
        torch.sinc(x),
        torch.xlogy(u, u),
        torch.special.log_ndtr(x),
        torch.logit(u, 1e-3),
        torch.special.erfcx(u),
        torch.expm1(x),
        torch.asinh(x),
    )


@forward(
    X,
    dims=DIMS,
    kinds=("normal", "zeros", "halves", "large", "tiny", "plus-infinity", "minus-infinity", "mixed-scales"),
    feeds=(*row(20, 20.001, 88, 89, 104, -88, -104, -745, 1000, -1000), *row(1e19, 2e19, -3e19), *row(1e-20, 1e-23)),
)
def A7092Overflow(self, x):
    """Softplus past its threshold, mish, roots of sums of squares, norms of large and of tiny, sums of logarithms."""
    return (
        F.softplus(x),
        F.softplus(x, 2.0, 5.0),
        F.mish(x),
        F.logsigmoid(x),
        torch.hypot(x, x),
        torch.logaddexp(x, -x),
        F.normalize(x, dim=1),
        F.gelu(x.clamp(max=1e30)),
        F.silu(x),
        F.softsign(x),
        torch.log1p(x.abs()),
        x.tanh(),
        F.celu(x, 2.0),
    )


@forward(
    B,
    dims=DIMS,
    kinds=FINITE,
    feeds=(
        *(f for t in (1, 2, 5, 24) for f in at(t)),
        halves(2, 6),
        halves(1, 24),
        halves(4, 23),
        *row(1, 1, 1, 2, 2, 2),
        *row(-1, 3),
    ),
)
def A7093Orders(self, x):
    """Medians, modes, k-th and quantiles of four kinds; running orders with indices of ties; ranks by comparisons."""
    n = x.shape[1]
    rank = (x[:, None] < x[..., None]).sum(-1) + (
        (x[:, None] == x[..., None]) & torch.ones(n, n, dtype=torch.bool).tril(-1)
    ).sum(-1)
    return (
        x.median(1).values,
        x.kthvalue((n + 1) // 2, 1).values,
        x.quantile(0.3, 1, interpolation="nearest"),
        x.quantile(0.75, 1),
        x.quantile(0.5, 1, interpolation="higher"),
        *x.cummax(1),
        *x.cummin(1),
        rank,
        x.argsort(dim=1, stable=True),
        x.argmin(1),
        x.aminmax(dim=1).max,
        x.msort(),
    )


@forward(B, dims=DIMS, kinds=FINITE, feeds=(*at(1, 2, 3, 24), *row(0, 0, 1), *row(-1, 0, -2, 4)))
def A7094Running(self, x):
    """Running products with zeros, sums of logarithms, differences with what is put before, areas, recurrences."""
    return (
        x.cumprod(1),
        x.logcumsumexp(1),
        x.diff(prepend=x[:, :1] * 0, dim=1),
        torch.cumulative_trapezoid(F.pad(x, (1, 0))),
        x.flip(1).cumsum(1).flip(1),
        x.cumsum(0, dtype=torch.float64).float(),
        (x > 0).cumsum(1),
        x.renorm(2, 0, 1.5),
    )


@attack(B, dims=DIMS, kinds=FINITE, feeds=at(1, 7, 8, 15, 16, 24))
class A7095Autocast(nn.Module):
    """Mixed precision inside: a product in bfloat16, a sum outside of it, a norm that stays wide; modes are read."""

    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(1, 8), nn.LayerNorm(8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not self.training):
            y = self.lin(x[..., None])
            z = y.float() @ y.float().mT
        wide = z.dtype == torch.get_default_dtype()
        return self.norm(y.float()), (z.float() * (2 if wide else 1)).sum(-1) / x.shape[1]


@attack(
    B, dims="N=1:2:4 T=2:6:24", kinds=FINITE, feeds=at(2, 3, 12, 13, 24), refused="must be Tensor or scalar, got SymInt"
)
class A7096Functional(nn.Module):
    """torch.func inside: a gradient, a map over rows, a product with the tangent, and weights put in from outside."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x):
        def energy(row):
            p = {k: v * 0.5 for k, v in self.net.named_parameters()}
            return torch.func.functional_call(self.net, p, (row[:, None],)).square().sum() / row.shape[0]

        g = torch.func.vmap(torch.func.grad(energy))(x)
        y, t = torch.func.jvp(lambda v: torch.sin(v) * v.amax(1, keepdim=True), (x,), (torch.ones_like(x),))
        return g, y + 0 * t


@attack(B, dims="N=1:1:2 T=1:6:24", kinds=FINITE, feeds=at(1, 6, 7, 24))
class A7097Parametrised(nn.Module):
    """Weights under spectral, weight and orthogonal parametrisations, one of them pruned; a flag of determinism is read."""

    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.weight_norm(nn.Linear(1, 4))
        self.b = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))
        self.c = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))
        self.d = nn.Linear(4, 2)
        nn.utils.prune.l1_unstructured(self.d, "weight", 0.5) if hasattr(nn.utils, "prune") else None
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        with nn.utils.parametrize.cached():
            y = self.c(self.b(self.a(x[..., None]).tanh())) + self.c.bias
        return self.d(y) * (1 if torch.are_deterministic_algorithms_enabled() else 2)


@forward(
    X,
    dims=DIMS,
    feeds=(*row(INF, 1, INF), *row(-INF, INF, -INF, 2), *row(0.0, -0.0, -1), *row(-0.0, 3, -0.0)),
    noted="with an infinity in an input the file differs",
)
def A7098Angles(self, x):
    """Angles of pairs, both of which may be infinite or zeros with a sign."""
    return torch.atan2(x, x.flip(1)), torch.atan2(x, -x)


@attack(
    "x:float16[N,T]=-300:300",
    dims="N=1:2:4 T=1:8:40",
    kinds=("normal", "zeros", "halves", "bytes"),
    feeds=(
        lambda: {"x": np.full((1, 40), 300, np.float16)},
        lambda: {"x": np.array([[300, -300, 255.9, 256, 0.0001, 6e-8]], np.float16)},
        lambda: {"x": np.full((2, 3), -181, np.float16)},
    ),
)
class A7099HalfInput(nn.Module):
    """An input in half: squares past its largest are infinite and cut; sums are wide; counts of what was lost."""

    def forward(self, x):
        s = x * x
        lost = s.isinf()
        y = s.clamp(max=torch.finfo(torch.float16).max)
        return (
            y,
            lost.sum(1),
            x.float().square().sum(1),
            (x.to(torch.int16) // 7).to(torch.int8),
            (y.float() / 3).half(),
        )
