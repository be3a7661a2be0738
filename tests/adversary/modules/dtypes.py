"""Integers that wrap, divisions with signs, promotions, special values and roundings."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward

X = "x:float32[3,4]"
I64, I32, U8, I8 = (
    f"x:{t}[3,4]={r}" for t, r in (("int64", "-9:9"), ("int32", "-9:9"), ("uint8", "0:255"), ("int8", "-128:127"))
)
WIDE = "x:int64[3,4]=-3000000000:3000000000"


@forward(WIDE)
def int64_over_int32(self, x):
    return x * 3 // 2


@forward(WIDE)
def int64_to_int32(self, x):
    return x.to(torch.int32)


@forward(WIDE)
def int64_as_float(self, x):
    return x.float() / 7


@forward(U8)
def uint8_sum_promotes(self, x):
    return x.sum(1), x + x


@forward(U8)
def uint8_minus(self, x):
    return x - 200, 3 - x


@forward(U8)
def uint8_over_float(self, x):
    return x / 255, x * 0.5


@forward(U8)
def uint8_shift(self, x):
    return x << 2, x >> 3, ~x


@forward(U8)
def uint8_compare_negative(self, x):
    return x > -1, x.to(torch.int16) - 300


@forward(I8)
def int8_abs_of_least(self, x):
    return x.abs(), -x


@forward(I8)
def int8_product(self, x):
    return x * x, x // 3


@forward(I64)
def floor_and_trunc(self, x):
    return torch.div(x, 4, rounding_mode="floor"), torch.div(x, 4, rounding_mode="trunc"), x / 4


@forward(I64)
def remainder_and_fmod(self, x):
    return x % 4, x % -4, torch.fmod(x, 4), torch.remainder(x, -3)


@forward(I32)
def int32_pow(self, x):
    return x**2, x**3, 2 ** x.clamp(0, 5)


@forward(I64)
def bit_operations(self, x):
    return x & 5, x | 8, x ^ -1, x << 2, x >> 1


@forward(I64)
def bool_arithmetic(self, x):
    positive = x > 0
    return positive + positive, positive * 3, positive.sum(1), positive.float().mean()


@forward(I64)
def bool_cumulative(self, x):
    return (x > 0).cumsum(1), (x > 0).cumprod(0), (x != 0).any(1), (x != 0).all(0)


@forward(I64)
def integer_mean_of_float(self, x):
    return x.float().mean(1), x.sum() / x.numel(), x.float().std(0)


@forward(I64)
def integer_clamp_float(self, x):
    return x.clamp(-2.5, 3.5), x.clamp(min=-2), torch.clamp(x, 5, -5)


@forward(X)
def float_to_integer(self, x):
    y = x.clamp(-100, 100)
    return y.int(), y.long(), y.to(torch.int16), y.trunc()


@forward(X)
def float_to_uint8(self, x):
    return x.clamp(0, 255.9).to(torch.uint8)


@forward(X)
def float_to_bool(self, x):
    return x.bool(), ~x.bool(), x.to(torch.bool).float()


@forward(X)
def scalar_promotion(self, x):
    return x + 1, x.int().clamp(-9, 9) + 1.5, torch.tensor(2) * x, torch.tensor(2.0, dtype=torch.float64) * x


@forward(X)
def half_and_back(self, x):
    return x.clamp(-1e4, 1e4).half().float(), x.bfloat16().float()


@forward(X)
def double_inside(self, x):
    return (x.double() * 3).float()


@forward(X)
def result_type_of_where(self, x):
    return torch.where(x > 0, 1, 0), torch.where(x > 0, x, 0), torch.where(x > 0, 2.5, 1)


@forward(X)
def sign_and_copysign(self, x):
    return x.sign(), torch.copysign(torch.ones_like(x), x), torch.signbit(x), x.sgn()


@forward(X)
def heaviside_and_relu6(self, x):
    return torch.heaviside(x, torch.tensor(0.5)), F.relu6(x), F.hardtanh(x, -0.5, 0.5)


@forward(X)
def rounding_family(self, x):
    return x.round(), x.floor(), x.ceil(), x.frac(), torch.round(x, decimals=1)


@forward(X)
def floor_divide_floats(self, x):
    return x // 0.3, x % 0.3, torch.fmod(x, 0.7), torch.remainder(x, -0.7)


@forward(X)
def logarithms_of_small(self, x):
    y = x.abs()
    return torch.log1p(y), torch.expm1(-y), torch.log2(y + 1), torch.log10(y + 1)


@forward(X)
def softplus_threshold(self, x):
    return F.softplus(x, beta=2, threshold=3), F.logsigmoid(x), F.softsign(x)


@forward(X)
def bounds_of_one_side(self, x):
    return x.clamp(max=0.5), x.clamp(min=-0.5), torch.clamp_max(x, 2.0), 1 / x.abs().clamp_min(1e-3)


@forward(X)
def logsumexp_family(self, x):
    return x.logsumexp(1), torch.logaddexp(x, x.flip(1)), x.log_softmax(0), x.softmax(1)


@forward(X)
def cumulative_family(self, x):
    return x.cumsum(1), x.clamp(-2, 2).cumprod(1), x.cummax(1).values, x.cummin(0).indices


@forward(X)
def ties_of_extremes(self, x):
    return x.argmax(1), x.argmin(0), x.max(1).indices, x.min(0).values, x.amax((0, 1))


@forward(X, refused="raises")
def stable_sort(self, x):
    return x.sort(1, stable=True), torch.argsort(x, 0, descending=True, stable=True)


@forward(X)
def values_of_topk(self, x):
    return x.topk(2, 1).values, x.topk(3, 1, largest=False).values, x.kthvalue(2, 1).values
