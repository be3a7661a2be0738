"""Types, promotions, wraps and rare values."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"
I64, I32, I8 = "a:int64[N,4]=-1000:1000", "a:int32[N,4]=-2147483648:2147483647", "a:int8[N,4]=-128:127"


@forward(I32, "b:int32[N,4]=-9:9", dims=N)
def wraps_of_int32(self, a, b):
    return a * b, a + a, a - b * 715827883, -a, a.abs(), a << 3, a >> 2


@forward(I32.replace("-2147483648", "-2147483647"), "b:int32[N,4]=1:9", dims=N)
def quotients_of_int32(self, a, b):
    return a // b, a % b, a // -b, a % -b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), a / b


@forward(I8, dims=N)
def wraps_of_int8(self, a):
    return a + a, a * 3, a // 7, a % 7, a.sum(1), a.prod(1), a.cumsum(1), a >> 1, ~a


@forward("a:uint8[N,4]=0:255", "b:uint8[N,4]=1:255", dims=N)
def arithmetic_of_bytes(self, a, b):
    return (
        a + b,
        a * b,
        a // b,
        a % b,
        (a + 1) // 2,
        (a.int() - b).abs().to(torch.uint8),
        a ^ b,
        a.float().mean(1).to(torch.uint8),
    )


@forward("a:int16[N,4]=-32768:32767", dims=N)
def samples_of_int16(self, a):
    return a / 32768, a + a, a.abs(), (a.float() / 32768 * 127).round().to(torch.int8), a.max(1).values, a.sum(1)


@forward(I64, dims=N, refused="differs from the module")
def large_integers_as_floats(self, a):
    big = a * 9007199254740993
    return big, big.float(), big // 3, big % 1000, (a * 16777217).float() / 16777216, big.sum(1)


@forward(I64, dims=N)
def means_and_roots_of_integers(self, a):
    return a.float().mean(1), a.square().sum(1).sqrt(), a / 7, a * 0.1, a.clamp(min=-3.5), torch.clamp(a, max=2), a**3


@forward(X, "m:bool[N,4]", dims=N)
def booleans_as_numbers(self, x, m):
    return (
        m.sum(),
        m.sum(1),
        x * m,
        m + m,
        m * 2.5,
        m.float().mean(),
        m.cumsum(1),
        m & (x > 0),
        m ^ m.flip(1),
        x[:, :1] + m,
    )


@forward(X, dims=N)
def half_precision_sums(self, x):
    h = x.half()
    return (h * h).sum(1), h.float() - x, (h + 2048).float() - 2048, h.softmax(-1).float()


@forward(X, dims=N)
def bfloat_and_back(self, x):
    b = x.to(torch.bfloat16)
    return b.float(), (b * 3).float(), (b @ b.T).float()


@forward(X, dims=N, refused="computes in FP64")
def double_promoted(self, x):
    d = x.double()
    return (d + 1e-9) - d, torch.tensor(0.1, dtype=torch.float64) * x, torch.tensor([0.1], dtype=torch.float64) * x


@forward(X, "k:int64[]=0:9", dims=N)
def promoted_by_zero_dims(self, x, k):
    i = x.long()
    return (
        x * k,
        i * torch.tensor(2.5),
        i + k,
        i / k.clamp_min(1),
        x.half() * torch.tensor(3.0),
        torch.where(x > 0, k, i),
    )


@forward(X, dims=N, noted="infinity")
def negative_zeros(self, x):
    z = -(x * 0)
    return (
        1 / z,
        torch.atan2(z, x),
        z.sign(),
        torch.signbit(z),
        torch.copysign(x, z),
        z.sqrt(),
        torch.maximum(z, -z),
        z.round(),
    )


@forward(X, dims=N)
def zeros_that_keep_sign(self, x):
    return 1 / (x * 0.25).round(), 1 / x.clamp(max=0).relu(), 1 / x.trunc(), 1 / torch.fmod(x, 1.0), 1 / x.ceil()


@forward(X, dims=N)
def half_ways(self, x):
    y = (x * 2).round() / 2 + 0.0
    return y.round(), (y * 10).round(decimals=-1), torch.round(x, decimals=2), (y + 0.5).floor(), y.frac(), y.int()


@forward(X, dims=N)
def subnormals(self, x):
    tiny = x * 1e-20 * 1e-20
    return tiny, tiny * 1e20 * 1e20, (x * 1e-25).square().sum(1), tiny.sign(), (tiny != 0)


@forward(X, dims=N)
def overflowing_exponents(self, x):
    y = x * 60
    return (
        y.exp(),
        torch.sigmoid(-y),
        y.exp() / (1 + y.exp()),
        F.softplus(y),
        F.softplus(x, beta=5, threshold=2),
        y.cosh().log(),
    )


@forward(X, dims=N)
def rows_without_spread(self, x):
    y = x[:, :1].expand(-1, 4)
    return y.var(1), y.softmax(1), F.layer_norm(y, (4,)), y.argmax(1), y.std(1, correction=0), F.normalize(y - y, dim=1)


@forward(X, dims=N)
def empty_choices(self, x):
    m = x > 1e9
    return (
        x[m].sum(),
        x[m].numel() + x.sum(),
        torch.where(m, x, -torch.inf).amax(1),
        torch.where(m, x, -torch.inf).softmax(1),
        m.any(0),
        m.all(1),
    )


@forward(X, dims=N)
def logsums_of_nothing(self, x):
    y = torch.full_like(x, -torch.inf)
    return (
        torch.logsumexp(y, 1),
        torch.logaddexp(y, y),
        torch.logaddexp(x, y),
        torch.logaddexp2(x, x * 100),
        y.cumsum(1),
    )


@forward(X, dims=N)
def nans_inside(self, x):
    y = torch.where(x > 0.5, torch.nan, x)
    return (
        y.nan_to_num(7.0, 8.0, 9.0),
        torch.fmax(y, x),
        y.nansum(1),
        torch.maximum(y, x),
        y.clamp(-1, 1),
        y == y,
        y.isnan().sum(),
    )


@forward(X, dims=N, refused="differs from the module")
def nans_compared(self, x):
    y = torch.where(x > 0.5, torch.nan, x)
    return y.amax(1), y.argmax(1), y.max(1).values, y.relu(), y.sign(), y.cummax(1).values, F.hardtanh(y), y.min()


@forward(X, dims=N, refused="cannot be exported")
def special_functions(self, x):
    p = x.sigmoid()
    return (
        torch.logit(p, 1e-3),
        torch.erfinv(p * 1.8 - 0.9),
        torch.special.xlog1py(x.abs(), p),
        torch.sinc(x),
        torch.special.entr(p),
        torch.lgamma(x.abs() + 0.5),
        torch.digamma(x.abs() + 0.5),
        torch.special.i0(x.clamp(-4, 4)),
    )


@forward(X, dims=N)
def activations_at_bends(self, x):
    return (
        F.hardshrink(x, 0.5),
        F.softshrink(x, 0.5),
        F.threshold(x, 0.5, -7.0),
        F.celu(x, 0.3),
        F.hardsigmoid(x * 3),
        F.hardswish(x * 3),
        F.rrelu(x),
        F.glu(x),
        F.mish(x),
        F.selu(x),
        F.logsigmoid(x),
        F.tanhshrink(x),
    )


@forward(X, dims=N)
def powers_of_negatives(self, x):
    e = torch.tensor([2.0, 3.0, 0.5, -1.0])
    return (
        x**e,
        (-2.0) ** x.round(),
        x.abs() ** 0.0,
        torch.float_power(x, 2),
        2**x,
        x**-2,
        torch.pow(torch.tensor(0.0), x.abs()),
    )


@forward(X, "y:float32[N,4]", dims=N)
def remainders_of_floats(self, x, y):
    d = torch.where(y.abs() < 0.05, 0.3, y)
    return (
        torch.remainder(x, d),
        torch.fmod(x, d),
        x // d,
        torch.remainder(x, -0.1),
        torch.div(x, 0.1, rounding_mode="floor"),
        x % 1,
    )


@forward(X, dims=N)
def angles_and_steps(self, x):
    return (
        torch.heaviside(x, torch.tensor(0.3)),
        torch.deg2rad(x),
        torch.atan2(x, x.flip(1)),
        torch.hypot(x, x.roll(1, 1)),
        torch.ldexp(x, torch.tensor([1, -2, 3, 0])),
        x.sgn(),
        torch.frexp(x).mantissa,
    )


@forward(X, dims=N)
def casts_to_narrow(self, x):
    y = x.clamp(-100, 100)
    return (
        y.to(torch.int8),
        (y * 2).to(torch.int16),
        y.bool(),
        y.to(torch.int64).to(torch.int8),
        (y.abs() + 0.999).to(torch.uint8),
    )


@attack(X, dims=N)
class HalfInside(nn.Module):
    """One layer runs in half precision, its weights are half."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 4).half()

    def forward(self, x):
        return self.b(self.a(x).half()).float() + x


@attack(X, dims=N, refused="differs from the module")
class AutocastBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            y = self.a(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = torch.mm(y, y.T)
        return y, z


@forward("z:float32[N,4,2]", dims=N)
def complex_rotary(self, z):
    c = torch.view_as_complex(z)
    turn = torch.polar(torch.ones(4), torch.arange(4.0) * 0.3)
    return torch.view_as_real(c * turn).flatten(1), (c * c.conj()).real, c.abs(), torch.view_as_real(c / (c.abs() + 1))
