"""Guards, tables and caches by size."""

from __future__ import annotations

import functools
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, HW = "x:float32[N,2,H,W]", "N=1:1:2 H=5:8:17 W=6:9:20"
LINE, T = "x:float32[N,T,4]", "N=1:2:3 T=2:9:33"


@forward(IMAGE, dims=HW, refused="depends on the size")
def sum_of_sizes(self, x):
    return x * 2 if x.shape[2] + x.shape[3] == 31 else x


@forward(IMAGE, dims=HW, refused="depends on the size")
def xor_of_sizes(self, x):
    return -x if (x.shape[2] ^ x.shape[3]) == 3 else x


@forward(IMAGE, dims=HW)
def gcd_of_sizes(self, x):
    return x * math.gcd(x.shape[2], x.shape[3])


@forward(IMAGE, dims=HW)
def aspect_ratio(self, x):
    return x * (x.shape[3] / x.shape[2])


@forward(IMAGE, dims=HW)
def aspect_string(self, x):
    kind = f"{x.shape[3] / x.shape[2]:.1f}"
    return x * {"1.0": 1.0, "1.3": 2.0, "1.8": 3.0}.get(kind, 0.5)


@forward(IMAGE, dims=HW, refused="depends on the size")
def size_in_set(self, x):
    return x + 1 if x.shape[2] in {7, 13, 29} else x


@forward(IMAGE, dims=HW, refused="depends on the size")
def match_statement(self, x):
    match tuple(x.shape[2:]):
        case (h, w) if h == w:
            return x.transpose(2, 3).transpose(2, 3) * 2
        case (11, _):
            return x * 3
    return x


@forward(IMAGE, dims=HW)
def triple_of_dims(self, x):
    n, _, h, w = x.shape
    return x * 5 if (n, h, w) == (2, 13, 19) else x


@forward(IMAGE, dims=HW)
def product_prime(self, x):
    return x.flip(2) if x.shape[2] * x.shape[3] == 13 * 17 else x


@forward(IMAGE, dims=HW)
def bit_length_of_size(self, x):
    return x * x.shape[2].bit_length()


@forward(IMAGE, dims=HW)
def log2_of_size(self, x):
    return x * math.log2(x.shape[2])


@forward(IMAGE, dims=HW)
def floor_log2(self, x):
    return x * math.floor(math.log2(x.shape[3]))


@forward(IMAGE, dims=HW)
def sqrt_of_area(self, x):
    return x * math.isqrt(x.shape[2] * x.shape[3])


@forward(IMAGE, dims=HW, refused="depends on the size")
def power_of_two(self, x):
    h = x.shape[2]
    return x.sum(2) if h & (h - 1) == 0 else x.mean(2)


@forward(IMAGE, dims=HW)
def round_half_even(self, x):
    return x[:, :, : round(x.shape[2] / 2)]


@forward(IMAGE, dims=HW)
def round_to_tens(self, x):
    return x * round(x.shape[3], -1)


@forward(IMAGE, dims=HW)
def negative_floor_division(self, x):
    return x[:, :, : -(-x.shape[2] // 3)]


@forward(IMAGE, dims=HW)
def negative_modulo(self, x):
    return F.pad(x, (0, -x.shape[3] % 8, 0, -x.shape[2] % 8))


@forward(IMAGE, dims=HW)
def divmod_of_size(self, x):
    quotient, rest = divmod(x.shape[3], 5)
    return x * quotient + rest


@forward(IMAGE, dims=HW)
def int_of_negative(self, x):
    return x + int((x.shape[2] - 20) / 3)


@forward(IMAGE, dims=HW)
def sizes_as_tensor(self, x):
    size = torch.tensor(x.shape[2:])
    return x * (size.float() / size.max())[0]


@forward(IMAGE, dims=HW, refused="depends on the size")
def size_by_string(self, x):
    return x if str(x.shape[2])[-1] in "02468" else -x


@forward(IMAGE, dims=HW, refused="differs from the module")
def size_formatted_key(self, x):
    return x * {"8x9": 3.0, "16x19": 7.0}.get(f"{x.shape[2]}x{x.shape[3]}", 1.0)


@forward(IMAGE, dims=HW)
def list_indexed_by_size(self, x):
    return x * [1.0, 2.0, 4.0, 8.0, 16.0][x.shape[2] % 5]


@functools.cache
def cached_grid(h):
    return torch.linspace(-1, 1, h)


@forward(IMAGE, dims=HW)
def lru_cache_of_size(self, x):
    return x + cached_grid(x.shape[2])[:, None]


@attack(IMAGE, dims=HW, refused="forward keeps")
class FirstSizeWins(nn.Module):
    """A lazy buffer that is made once, whatever comes later."""

    def __init__(self):
        super().__init__()
        self.grid = None

    def forward(self, x):
        if self.grid is None:
            self.grid = torch.linspace(0, 1, x.shape[3])
        return x * F.interpolate(self.grid[None, None], size=x.shape[3], mode="nearest")[0, 0]


@attack(IMAGE, dims=HW, refused="run again")
class GrowingBuffer(nn.Module):
    """Grows to the largest size so far; its values depend on that size."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ramp", torch.linspace(0, 1, 8), persistent=False)

    def forward(self, x):
        if self.ramp.numel() < x.shape[3]:
            self.ramp = torch.linspace(0, 1, x.shape[3])
        return x * self.ramp[: x.shape[3]]


@attack(IMAGE, dims=HW, refused="differs from the module")
class DictCacheSharedKey(nn.Module):
    """The cache's key forgets the width."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        if x.shape[2] not in self.cache:
            self.cache[x.shape[2]] = float(x.shape[3])
        return x * self.cache[x.shape[2]]


@forward(LINE, dims=T)
def last_of_odd(self, x):
    return x[:, -1] if x.shape[1] % 2 else x[:, -2]


@forward(LINE, dims=T)
def middle_element(self, x):
    return x[:, x.shape[1] // 2]


@forward(LINE, dims=T)
def every_third(self, x):
    return x[:, x.shape[1] % 3 :: 3]


@forward(LINE, dims=T)
def fold_pairs(self, x):
    even = x.shape[1] // 2 * 2
    return x[:, :even].reshape(x.shape[0], -1, 2, 4).mean(2)


@forward(LINE, dims=T)
def chunks_of_size(self, x):
    return torch.cat([c.flip(1) for c in x.split(4, 1)], 1)


@forward(LINE, dims=T, refused="differs from the module")
def chunk_five(self, x):
    return torch.cat(x.chunk(5, 1)[::-1], 1)


@forward(LINE, dims=T)
def tensor_split_three(self, x):
    return torch.cat(torch.tensor_split(x, 3, 1)[::-1], 1)


@forward(LINE, dims=T)
def scan_over_time(self, x):
    state = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        state = 0.5 * state + x[:, t]
    return state


@forward(LINE, dims=T)
def unbind_and_zip(self, x):
    rows = x.unbind(1)
    return sum(a * b for a, b in itertools.pairwise(rows))


@forward(LINE, dims=T)
def log_steps(self, x):
    shift = 1
    while shift < x.shape[1]:
        x = x + F.pad(x, (0, 0, shift, 0))[:, :-shift]
        shift *= 2
    return x


@forward(LINE, dims=T)
def pad_to_power_of_two(self, x):
    size = 1 << (x.shape[1] - 1).bit_length()
    return F.pad(x, (0, 0, 0, size - x.shape[1]))


@forward(LINE, dims=T)
def batch_one_squeezed(self, x):
    y = x.squeeze(0)
    return y.mean(-2)


@forward(LINE, dims=T)
def numel_guard(self, x):
    return x * 2 if x.numel() > 250 else x


@forward(LINE, dims=T)
def shape_equality(self, x):
    return x * 2 if x.shape == (2, 9, 4) else x


@forward(LINE, dims=T)
def is_contiguous_guard(self, x):
    return x * 2 if x.transpose(0, 1).is_contiguous() else x
