"""Python over shapes: branches, loops, comprehensions, integer arithmetic on sizes, ranges and reshapes from them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, SMALL, STEPS, TWO, Case, module, of

PAIR = "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33"
TOKENS = "x:int64[N,T]=0:29"


class LevelsLoop(nn.Module):
    """A loop over as many halvings as the module has layers, sizes kept on a stack."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sizes = []
        for conv in self.convs:
            sizes.append(x.shape[2:])
            x = F.max_pool2d(F.relu(conv(x)), 2)
        for size in reversed(sizes):
            x = F.interpolate(x, size=size, mode="bilinear", align_corners=True)
        return x


class GridLevels(nn.Module):
    """Anchor centres of three levels, by a comprehension over strides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        levels = []
        for stride in (1, 2, 4):
            h, w = math.ceil(x.shape[2] / stride), math.ceil(x.shape[3] / stride)
            ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            levels.append(((torch.stack([xs, ys], -1) + 0.5) * stride).reshape(-1, 2))
        return torch.cat(levels) + x.mean() * 0


class BranchSame(nn.Module):
    """Both branches compute the same kind of thing: the longer axis first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] >= x.shape[3]:
            return x
        return x.transpose(2, 3)


class WhileHalving(nn.Module):
    """How often it halves depends on the size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.shape[2] > 20:
            x = F.avg_pool2d(x, 2)
        return x


class EarlyReturn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] == 1:
            return x * 2.0
        return x * 2.0 + x.mean(1, keepdim=True)


class BatchBranch(nn.Module):
    """A fast path for a batch of one that gives another result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 1:
            return x + 1.0
        return x - x.mean(0, keepdim=True)


class OddBranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] % 2 == 0:
            return x[:, ::2] + x[:, 1::2]
        return x[:, :-1:2] + x[:, 1::2]


class RaisesOutside(nn.Module):
    """A check that holds over the whole range."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[2] >= 4, "too small"
        if x.shape[1] != 8:
            raise ValueError("eight channels, please")
        return x.flip(3)


class RowsComprehension(nn.Module):
    """A list with one entry a batch item."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[i] / (i + 1) for i in range(x.shape[0])])


class UntilConverged(nn.Module):
    """The number of steps depends on the values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = 0
        while x.abs().max() > 1.0 and steps < 30:
            x, steps = x * 0.5, steps + 1
        return x


class ValueBranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.mean() > 0:
            return x
        return -x


class CondBranch(nn.Module):
    """A branch on a value written the way torch asks for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y * 2.0, lambda y: y - 1.0, (x,))


class CachedTable(nn.Module):
    """A table is made again when the size grows, and kept on the module."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.zeros(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table.shape[0] < x.shape[1]:
            self.table = torch.arange(x.shape[1], dtype=torch.float32) * 0.1
        return x + self.table[: x.shape[1], None]


class Counter(nn.Module):
    """A buffer that forward changes; what it returns does not depend on it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(x)


class Random(nn.Module):
    """Noise cannot be compared, so it cannot be shown to be right."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 1.0
        y[:, 0] += 1.0
        y[:, :, 1:-1, x.shape[3] // 2 :].mul_(0.5)
        y[:, -1].copy_(x[:, 0])
        return y.add_(0.1)


class InPlaceRows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0], x.shape[1] + 2, 16)
        out[:, 1:-1] = x
        out[:, -1] = x[:, 0]
        return out


class NumpyConstant(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        import numpy as np

        return x * float(np.sqrt(2.0)) + torch.from_numpy(np.arange(8, dtype=np.float32))[None, :, None, None]


CASES: tuple[Case, ...] = (
    module("levels_loop", LevelsLoop),
    module("grid_levels", GridLevels),
    module("branch_same_kind", BranchSame),
    module("while_halving", WhileHalving),
    module("early_return_of_one", EarlyReturn, LINE, "N=1:2:5 T=1:16:40"),
    module("branch_on_batch_one", BatchBranch),
    module("branch_on_odd", OddBranch, LINE, STEPS),
    module("asserts_and_raises", RaisesOutside),
    module("rows_comprehension", RowsComprehension),
    module("until_converged", UntilConverged, LINE, STEPS),
    module("branch_on_value", ValueBranch, LINE, STEPS),
    module("cond_on_value", CondBranch, LINE, STEPS),
    module("cached_table", CachedTable, LINE, STEPS),
    module("counting_buffer", Counter),
    module("noise", Random),
    module("in_place", InPlace),
    module("in_place_rows", InPlaceRows, LINE, STEPS),
    module("numpy_constant", NumpyConstant),
    of("negative_floor_of_shape", lambda x: F.pad(x, (-(x.shape[3] // -4) - x.shape[3] // 4, 0))),
    of("negative_floor_crop", lambda x: x[:, :, -(-x.shape[2] // 3) :]),
    of("negative_modulo_of_shape", lambda x: F.pad(x, (0, -x.shape[3] % 8, 0, -x.shape[2] % 8))),
    of("shifted_negative_modulo", lambda x: F.pad(x, (0, (5 - x.shape[3]) % 7))),
    of("divmod", lambda x: F.pad(x, divmod(x.shape[3], 5))),
    of("round_of_shape", lambda x: F.interpolate(x, size=(round(x.shape[2] * 0.75), round(x.shape[3] * 0.75)))),
    of(
        "math_ceil",
        lambda x: F.interpolate(x, size=(math.ceil(x.shape[2] / 3), math.ceil(x.shape[3] / 3)), mode="nearest"),
    ),
    of("math_floor", lambda x: F.interpolate(x, size=(math.floor(x.shape[2] * 1.25), x.shape[3]), mode="bilinear")),
    of("int_of_sqrt", lambda x: x[:, :, : int(math.sqrt(x.shape[2]))]),
    of("int_of_true_division", lambda x: x[..., : int(x.shape[3] / 3)]),
    of("bit_length_free_power", lambda x: x[:, :, : x.shape[2] ** 2 // 80]),
    of("abs_difference", lambda x, y: F.pad(x, (0, abs(x.shape[3] - y.shape[3]))), TWO, PAIR),
    of("max_of_two_shapes", lambda x, y: F.pad(x, (0, max(x.shape[3], y.shape[3]) - x.shape[3])), TWO, PAIR),
    of("min_of_two_shapes", lambda x, y: x[..., : min(x.shape[3], y.shape[3])] * 2, TWO, PAIR),
    of("clip_of_shape", lambda x: x[:, :, : max(18, min(x.shape[2], 30))]),
    of("shape_product_scale", lambda x: x * (x.shape[2] * x.shape[3]) ** -0.5),
    of("log_of_shape", lambda x: x * math.log(x.shape[2])),
    of(
        "shape_tensor_arithmetic",
        lambda x: x / torch.tensor([x.shape[3], x.shape[2]] * 4, dtype=torch.float32)[None, :, None, None],
    ),
    of("size_as_float_tensor", lambda x: x.sum((2, 3)) / torch.tensor(float(x.shape[2]))),
    of("shape_as_output", lambda x: (x * 2, torch.tensor(x.shape))),
    of("int_floor_div_tensor", lambda x: (x - 15) // (x % 3 + 2), TOKENS, STEPS),
    of("int_mod_negative_tensor", lambda x: (x - 15) % -(x % 3 + 2), TOKENS, STEPS),
    of("int_true_division", lambda x: x / 7, TOKENS, STEPS),
    of("int_power", lambda x: x**2 - (x % 4) ** 3, TOKENS, STEPS),
    of("int_clamp_abs_sign", lambda x: (x - 15).clamp(-5, 9).abs() * (x - 15).sign(), TOKENS, STEPS),
    of("int_bitwise_or_xor", lambda x: (x | 4) + (x ^ 3), TOKENS, STEPS),
    of("int_bitwise_not", lambda x: ~x, TOKENS, STEPS),
    of("int_shift_negative", lambda x: (x - 15) >> 1, TOKENS, STEPS),
    of("int_bit_planes", lambda x: (x[..., None] >> torch.arange(5)) & 1, TOKENS, STEPS),
    of("int_gcd_free_lookup", lambda x: torch.arange(0, 300, 10)[x], TOKENS, STEPS),
    of("float_to_int_negative", lambda x: (x * 3).to(torch.int32) + (x * 3).floor().to(torch.int32)),
    of("float_fmod", lambda x: torch.fmod(x, 0.75), LINE, STEPS),
    of("float_floordiv_operator", lambda x: x // 0.5, LINE, STEPS),
    of("float_floordiv_tenths", lambda x: x // 0.1 + torch.div(x, 0.3, rounding_mode="floor"), LINE, STEPS),
    of("number_floordiv_tensor", lambda x: 5.0 // x, LINE, STEPS),
    of("round_half_even", lambda x: (x * 2).round() / 2 + torch.round(x, decimals=1)),
    of("arange_between_shapes", lambda x: x[:, 2:] * torch.arange(2, x.shape[1])[None, :, None], LINE, STEPS),
    of("arange_down", lambda x: x * torch.arange(x.shape[1] - 1, -1, -1)[None, :, None], LINE, STEPS),
    of("arange_fraction_step", lambda x: x * torch.arange(0.5, x.shape[1], 1.0)[None, :, None], LINE, STEPS),
    of("linspace_shape_ends", lambda x: x * torch.linspace(0, x.shape[1] - 1, x.shape[1])[None, :, None], LINE, STEPS),
    of(
        "meshgrid_xy",
        lambda x: (
            torch.stack(torch.meshgrid(torch.arange(x.shape[3]), torch.arange(x.shape[2]), indexing="xy"))
            + x[:1, :1, :, :].long() * 0
        ),
    ),
    of("ones_tril_of_shape", lambda x: torch.ones(x.shape[1], x.shape[1]).tril() @ x, LINE, STEPS),
    of("eye_times_shape", lambda x: x @ x.transpose(1, 2) * (1 - torch.eye(x.shape[1])), LINE, STEPS),
    of(
        "fill_diagonal",
        lambda x: (x @ x.transpose(1, 2)).masked_fill(torch.eye(x.shape[1], dtype=torch.bool), 0.0),
        LINE,
        STEPS,
    ),
    of("full_with_value", lambda x: x + torch.full((x.shape[2], 1), x.shape[3] * 0.5)),
    of("one_hot_of_argmax", lambda x: F.one_hot(x.argmax(1), 8).permute(0, 3, 1, 2).float() * x),
    of("view_product_of_shapes", lambda x: x.view(x.shape[0] * x.shape[1], x.shape[2] * x.shape[3]).mean(1)),
    of("view_half_of_product", lambda x: x.reshape(x.shape[0], 2, x.shape[2] * x.shape[3] * 4).amax(1)),
    of("unflatten_dynamic", lambda x: x.flatten(2).unflatten(2, (x.shape[2], x.shape[3])) * 2),
    of("reshape_as", lambda x: x.flatten(1).cumsum(1).reshape_as(x), space=SMALL),
    of("squeeze_all_dynamic", lambda x: x.mean(1, keepdim=True).squeeze(), space="N=2:3:5 H=6:16:30 W=7:20:33"),
    of("expand_as_other", lambda x, y: x.mean((2, 3), True).expand_as(y[:, :8]), TWO, PAIR),
    of("repeat_by_shape", lambda x: x.mean(1, True).repeat(1, x.shape[1], 1), LINE, STEPS),
    of("repeat_interleave_heads", lambda x: x.unflatten(2, (4, 4)).repeat_interleave(2, dim=2).flatten(2), LINE, STEPS),
    of("broadcast_to_outer", lambda x: x.unsqueeze(1).expand(-1, x.shape[1], -1, -1).sum(2), LINE, STEPS),
    of("split_by_third", lambda x: torch.stack([p.mean((2, 3)) for p in x.split(x.shape[2] // 2, dim=2)][:2], 1)),
    of("tensor_split", lambda x: torch.cat([p.amax(1) for p in x.tensor_split(3, dim=1)], 1), LINE, STEPS),
    of("chunk_of_dynamic", lambda x: torch.cat([p.mean(1) for p in x.chunk(2, 1)], 1), LINE, STEPS),
    of("slice_half_and_half", lambda x: torch.cat([x[:, x.shape[1] // 2 :], x[:, : x.shape[1] // 2]], 1), LINE, STEPS),
    of("slice_step_three", lambda x: x[:, x.shape[1] % 3 :: 3], LINE, STEPS),
    of("slice_negative_from_shape", lambda x: x[:, -(x.shape[1] // 2) :], LINE, STEPS),
    of("roll_by_third", lambda x: torch.roll(x, -(x.shape[1] // 3), 1), LINE, STEPS),
    of("unfold_window_of_shape", lambda x: x.unfold(1, 5, 3).amax(-1), LINE, STEPS),
    of(
        "stack_shifts",
        lambda x: torch.stack([F.pad(x, (0, 0, k, 0))[:, : x.shape[1]] for k in range(3)], 2),
        LINE,
        STEPS,
    ),
    of(
        "pixel_shuffle_by_hand",
        lambda x: (
            x.view(x.shape[0], 2, 2, 2, *x.shape[2:])
            .permute(0, 1, 4, 2, 5, 3)
            .reshape(x.shape[0], 2, x.shape[2] * 2, x.shape[3] * 2)
        ),
    ),
)
