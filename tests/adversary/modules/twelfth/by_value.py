"""Integer arithmetic, types, special values."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,5]", "N=1:3:6"
WIDE = "x:int64[N,5]=-3000000000:3000000000"
IDS = "x:int64[N,T]=0:9"
STEPS = "N=1:2:3 T=3:6:11"


@forward("x:int32[N,5]=-2000000000:2000000000", dims=N)
def mixed_hash(self, x):
    """A hash of 32 bits, as feature stores do: shifts, xor, product that wraps."""
    h = x ^ (x >> 15)
    h = h * 0x2C1B3C6D
    h = h ^ (h >> 12)
    return h, h % 1000


@forward("x:int64[N,5]=0:4000000000", dims=N)
def packed_colours(self, x):
    return torch.stack([(x >> s) & 255 for s in (24, 16, 8, 0)], -1), (x & 0xFF00FF) | ((x >> 8) & 0xFF)


@forward("x:uint8[N,5]=0:255", dims=N)
def alpha_blended_bytes(self, x):
    a = x.to(torch.int32)
    return ((a * 77 + 255 * (255 - a) + 127) // 255).to(torch.uint8), (x // 2 + x // 3), x * 3 >> 1, x.float().div_(255)


@forward("x:int32[N,5]=-100000:100000", dims=N)
def fixed_point(self, x):
    """Q15 with rounding."""
    product = x.long() * 19661
    return ((product + (1 << 14)) >> 15).to(torch.int32), torch.div(product, 32768, rounding_mode="floor")


@forward("x:int64[N,5]=-9:9", dims=N)
def powers_of_integers(self, x):
    return x**3, x.abs() ** torch.arange(5), 2 ** x.abs(), torch.pow(x, 0), x.float() ** x


@forward("x:int64[N,5]=0:100000000", dims=N)
def averages_of_integers(self, x):
    return (x + x.flip(1)) // 2, x.sum(1) // 5, x.float().mean(1), x.median(1).values, x.cumsum(1) % 1009


@forward("x:int64[N,5]=16777200:16777240", dims=N)
def beyond_exact_floats(self, x):
    return x.float(), (x.float() + 1).long(), x / 3, torch.where(x > 16777217, x, -x), x.argmax(1)


@forward("t:int64[N]=0:2000000000", dims=N)
def time_of_seconds(self, t):
    day = torch.div(t, 86400, rounding_mode="floor")
    phase = (t % 86400).float() / 86400
    return day % 7, torch.stack(((2 * math.pi * phase).sin(), (2 * math.pi * phase).cos()), 1), t.float() / 86400.0


@forward("x:int8[N,5]=-128:127", "y:int8[N,5]=-128:127", dims=N)
def product_of_bytes_in_int32(self, x, y):
    return (x.int() * y.int()).sum(1), (x.int() - 3) @ (y.int() + 5).T


@forward("x:float32[N,5]=-400:400", dims=N)
def saturating_cast(self, x):
    return x.round().clamp(0, 255).to(torch.uint8), x.clamp(-128, 127).to(torch.int8).float(), x.to(torch.int16)


@forward("x:float32[N,5]=-3e9:3e9", dims=N, kinds=("normal", "large", "halves"))
def float_to_long(self, x):
    return x.long() % 97, x.round().long() // 10


@forward(X, dims=N)
def roots_poison_sums(self, x):
    """NaN at ordinary values beside numbers: sums over groups keep to their groups."""
    y = x.sqrt()
    groups = torch.tensor([0, 1, 0, 2, 1])
    return torch.zeros(x.shape[0], 3).index_add(1, groups, y), torch.zeros(x.shape[0], 3).scatter_add(
        1, groups.expand_as(x), y
    )


@forward("x:float32[N,2,T]", dims="N=1:2:3 T=4:7:12", refused="got nan")
def logarithms_resampled(self, x):
    y = x.log()
    return (
        F.adaptive_avg_pool1d(y, 3),
        F.interpolate(y, scale_factor=2.0, mode="linear"),
        F.avg_pool1d(y, 2, 1),
        y.cumsum(2),
    )


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=5:8:11 W=5:7:9", refused="got nan")
def roots_antialiased(self, x):
    return F.interpolate(x.sqrt(), (4, 3), mode="bilinear", antialias=True)


@forward(X, dims=N)
def roots_in_products(self, x):
    y = x.sqrt()
    keep = ~y.isnan()
    mixed = torch.einsum("ni,i->n", torch.where(keep, y, 0.0), torch.arange(5.0))
    return mixed, torch.nansum(y, 1), y.nan_to_num(-1.0), torch.nanmean(y, 1)


@forward(X, dims=N)
def comparisons_of_nan(self, x):
    y = x.log()
    return ~(y > 0), y <= 0, y.ne(y), torch.maximum(y, x), torch.fmin(y, x), y.clamp(-1, 1), y.relu()


@forward(X, dims=N, refused="got nan")
def sign_of_nan(self, x):
    return x.log().sign()


@forward(X, dims=N, refused="got nan")
def middle_of_numbers(self, x):
    return x.sqrt().nanquantile(0.5, 1)


@forward(X, dims=N)
def indicator_times_value(self, x):
    """Expert gates by one-hot, where an unused expert overflows."""
    experts = torch.stack((x.exp().exp(), x * 2, -x), 0)
    gate = F.one_hot(x.argmax(1) % 3, 3).T.float()
    return torch.where(gate[..., None] > 0, experts, 0.0).sum(0)


@forward(X, dims=N)
def stable_or_not(self, x):
    a = x * 3e3
    return (
        torch.log1p(a.neg().abs().exp().reciprocal()),
        a.logsumexp(1) - a.amax(1),
        F.softplus(a, beta=0.5, threshold=3),
        torch.expm1(-a.abs()),
        a.tanh().atan(),
    )


@forward("x:float32[N,5]=-50:50", dims=N, refused="differs from the module")
def tails_of_losses(self, x):
    return (
        F.huber_loss(x, x.flip(1), reduction="none", delta=0.7),
        F.smooth_l1_loss(x, x * 0, beta=2.5, reduction="none"),
        F.soft_margin_loss(x, x.sign(), reduction="none"),
        F.kl_div(F.log_softmax(x, 1), F.softmax(-x, 1), reduction="none"),
    )


@forward(X, dims=N)
def likelihood_of_gaussian(self, x):
    return F.gaussian_nll_loss(x, x.flip(1), x.abs(), reduction="none", full=True)


@forward(X, dims=N)
def odd_numbers(self, x):
    return (
        torch.ldexp(x, torch.arange(5)),
        torch.copysign(torch.ones(5), x),
        torch.hypot(x, x.flip(1)),
        torch.special.entr(x),
        torch.special.xlog1py(x, x.abs()),
        torch.sinc(x),
    )


@forward("x:float32[N,5]=-4:4", dims=N, refused="lgamma")
def polynomial_kinds(self, x):
    return (
        torch.lgamma(x.abs() + 0.5),
        torch.digamma(x.abs() + 1),
        torch.special.multigammaln(x.abs() + 2, 2),
    )


@forward(X, dims=N)
def rounding_to_grid(self, x):
    step = 0.05
    return (
        (x / step).round() * step,
        torch.round(x, decimals=1),
        (x * 20).floor() / 20,
        x.frac(),
        x.trunc() + x.fmod(0.3),
    )


@attack(X, dims=N)
class MomentsInDouble(nn.Module):
    """Variance by E[x2] - E[x]2 in FP64, stored back in FP32."""

    def forward(self, x):
        y = x.double()
        mean = y.mean(1, keepdim=True)
        return ((x - mean) / (y.square().mean(1, keepdim=True) - mean.square() + 1e-5).sqrt()).float()


@forward(X, dims=N)
def promotions(self, x):
    i = torch.arange(5)
    half = torch.tensor(0.1, dtype=torch.float64)
    return x * half, i * half, i / 3, (x > 0) + i, (x > 0) * 2.5, torch.tensor(2) ** x, i.to(torch.uint8) - 1
