# ruff: noqa: E501 - one case a line reads best as a table
"""What sample points rarely show: single sizes, several sizes at once, masks all true or false, state, noise, FP64, ties."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, PIXELS, STEPS, Case, module, of

MASKED = (LINE, "mask:bool[N,T]")
TOKENS = "x:int64[N,T]=0:29"
SCALED = "N=1:2:5 H=6:16:30 W=7:20:60"


class SeededNoise(nn.Module):
    """The same noise at every call, which a file draws anew."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return x + torch.randn_like(x)


class WarmUp(nn.Module):
    """What it returns depends on how often it was called, from the thousandth call on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * torch.where(self.calls > 1000, 0.5, 1.0)


class BranchOnArea(nn.Module):
    """A condition on two dims, one side of which is the input as it is."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] * x.shape[3] <= 1200:
            return x
        return x - x.mean((2, 3), keepdim=True)


class BranchAtOneArea(nn.Module):
    """Few pairs of sizes go the other way, none of which a sample point has."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 if x.shape[2] * x.shape[3] == 1440 else x * 3.0


class BranchIfSquare(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x.transpose(2, 3) if x.shape[2] == x.shape[3] else x


class BranchOnMultiples(nn.Module):
    """The size from the values keeps torch.export away; only both dims together show the branch."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        y = x[:, :, : int(lengths.max())]
        if x.shape[2] % 8 == 0 and x.shape[3] % 8 == 0:
            y = y + 1.0
        return y.sum((2, 3))


class BranchOnFullMask(nn.Module):
    """A fast path that gives something else, for masks that no random one is."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if mask.all():
            return x.mean(1)
        return (x * mask[..., None]).sum(1)


class GuardAgainstNan(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.isnan(x).any():
            x = torch.nan_to_num(x)
        return x.softmax(-1)


class GuardHalfOverflow(nn.Module):
    """What encoders do after each layer: never true in FP32."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        if y.dtype == torch.float16 and torch.isinf(y).any():
            y = y.clamp(-6e4, 6e4)
        return y


class MaskedRows(nn.Module):
    """Padding masks some rows whole: zeros in torch, NaN in what the exporters write by default."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        heads = x.unflatten(-1, (4, 4)).transpose(1, 2)
        y = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask[:, None, None, :])
        return y.transpose(1, 2).flatten(2)


class CachedWindow(nn.Module):
    """New keys behind cached ones, a causal mask with an offset, and the last thirty handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.qkv(x).chunk(3, -1)
        keys = torch.cat([past, k], 1)
        causal_mask = torch.ones(x.shape[1], keys.shape[1], dtype=torch.bool).tril(keys.shape[1] - x.shape[1])
        return F.scaled_dot_product_attention(q, keys, torch.cat([past, v], 1), attn_mask=causal_mask), keys[:, -30:]


class RelativeShift(nn.Module):
    """The conformer's attention: scores of 2T - 1 distances, shifted by a pad and a view."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.p = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, c = x.shape
        positions = torch.arange(t - 1, -t, -1.0)[:, None] * torch.exp(torch.arange(0, c, 2.0) * (-math.log(1e4) / c))
        table = torch.stack([positions.sin(), positions.cos()], -1).flatten(1)
        q, k, v = (f(x).unflatten(-1, (4, 4)).transpose(1, 2) for f in (self.q, self.k, self.v))
        far = q @ self.p(table).unflatten(-1, (4, 4)).permute(1, 2, 0)
        far = F.pad(far, (1, 0)).view(n, 4, 2 * t, t)[:, :, 1:].view(n, 4, t, 2 * t - 1)[..., :t]
        return (((q @ k.transpose(-2, -1) + far) / 2).softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)


class CtcForward(nn.Module):
    """The first steps of a sum over paths, most of which do not exist: logarithms of zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x.log_softmax(-1)
        paths = torch.cat([scores[:, 0, :2], torch.full((x.shape[0], 3), float("-inf"))], 1)
        for step in range(1, 4):
            paths = torch.logaddexp(paths, F.pad(paths, (1, 0), value=float("-inf"))[:, :5]) + scores[:, step, :5]
        return paths


class CtcGreedy(nn.Module):
    """Repeats and blanks go; what is kept moves to the front by a scatter, the rest to a place that is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(16, 7)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        best = self.out(x).argmax(-1)
        mask = (best != F.pad(best, (1, 0), value=-1)[:, :-1]) & (best != 0)
        positions = torch.where(mask, mask.long().cumsum(1) - 1, x.shape[1])
        front = torch.full((x.shape[0], x.shape[1] + 1), -1, dtype=torch.int64)
        front = front.scatter(1, positions, torch.where(mask, best, -1))
        return front[:, :-1], mask.sum(1)


class WrittenTwice(nn.Module):
    """Which of several values stays is defined on a CPU only."""

    def forward(self, x: torch.Tensor, folder: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape[0], 12, 16).scatter(1, folder[..., None].expand(-1, -1, 16), x)


def phase(x: torch.Tensor) -> torch.Tensor:
    """An oscillator: FP64 holds a sum of many turns to a small part of one."""
    turns = (x.double() * 0.37).cumsum(1)
    return torch.sin(2 * math.pi * (turns - turns.floor())).float()


def by_variance(x: torch.Tensor) -> torch.Tensor:
    """FP64 where FP32 suffices."""
    wide = x.double()
    return ((wide - wide.mean(1, keepdim=True)) ** 2).mean(1).float()


class TableByPair(nn.Module):
    """A dictionary compares nothing that a trace could record."""

    TABLE = {(20, 20): 0.5, (24, 40): 1.5, (40, 40): 2.5, (28, 52): 3.0}  # noqa: RUF012

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.TABLE.get((x.shape[2], x.shape[3]), 1.0)


class BranchOnRegion(nn.Module):
    """A corner of the space that neither dim alone shows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] > 40 and x.shape[3] < 20:
            return x * 2.0
        return x * 3.0


class BranchOnThreeDims(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 3 and x.shape[2] % 5 == 2 and x.shape[3] > 50:
            return x * 2.0
        return x * 3.0


CASES: tuple[Case, ...] = (
    module("table_by_pair", TableByPair),
    module("branch_on_region", BranchOnRegion),
    module("branch_on_three_dims", BranchOnThreeDims),
    of("product_of_sizes_in_floats", lambda x: x[:, :, : int(x.shape[2] * x.shape[3] * 0.7) % 5 + 1]),
    of(
        "index_add_of_infinities",
        lambda x: torch.zeros(x.shape[0], 10, 16).index_add(
            1, torch.arange(10), x[:, :10].masked_fill(x[:, :10] < -1.0, float("-inf"))
        ),
        LINE,
        "N=1:2:4 T=12:16:40",
    ),
    module("noise_of_one_seed", SeededNoise, LINE, STEPS),
    module("warm_up_counter", WarmUp, LINE, STEPS),
    module("branch_on_area", BranchOnArea),
    module("branch_at_one_area", BranchAtOneArea),
    module("branch_if_square", BranchIfSquare),
    module("branch_on_multiples_of_both", BranchOnMultiples, ("x:float32[N,8,H,W]", "lengths:int64[N]=1:5"), PIXELS),
    module("branch_on_full_mask", BranchOnFullMask, (LINE, "mask:bool[N,T]"), "N=2:2:5 T=12:16:40"),
    module("guard_against_nan", GuardAgainstNan, LINE, STEPS),
    module("guard_half_overflow", GuardHalfOverflow, LINE, STEPS),
    of(
        "ceil_of_tenths",
        lambda x: F.interpolate(x, size=(x.shape[2], math.ceil(x.shape[3] * 1.1)), mode="bilinear"),
        space=SCALED,
    ),
    of(
        "tenths_in_whole_numbers",
        lambda x: F.interpolate(x, size=(x.shape[2], -(-x.shape[3] * 11 // 10)), mode="bilinear"),
        space=SCALED,
    ),
    of(
        "batch_of_one_or_two",
        lambda x: x.flatten(2).softmax(-1).view_as(x) * x.shape[2],
        space="N=1:1:2 H=6:16:30 W=7:20:33",
    ),
    module("rows_masked_whole", MaskedRows, MASKED, STEPS),
    module("cached_window", CachedWindow, (LINE, "past:float32[N,P,16]"), "N=1:2:4 T=1:8:20 P=1:16:40"),
    module("relative_shift", RelativeShift, LINE, STEPS),
    module("ctc_forward", CtcForward, LINE, STEPS),
    module("ctc_greedy", CtcGreedy, LINE, STEPS),
    module("written_twice", WrittenTwice, (LINE, "place:int64[N,T]=0:11"), STEPS),
    of("phase_in_float64", phase, "x:float32[N,T]=50:400", "N=1:2:4 T=50:100:300"),
    of("variance_in_float64", by_variance, LINE, STEPS),
    of("angle_on_the_axes", lambda x: torch.atan2((x % 5 - 2).float(), (x // 5 - 3).float()), TOKENS, STEPS),
    of("argsort_stable_of_ties", lambda x: (x // 7).argsort(dim=1, stable=True), TOKENS, STEPS),
    of(
        "logsumexp_of_masked_rows",
        lambda x, y: x.masked_fill(y[..., None], float("-inf")).logsumexp(1),
        (LINE, "y:bool[N,T]"),
        STEPS,
    ),
    of(
        "mean_without_masked",
        lambda x, y: torch.where(y[..., None], x, float("nan")).nanmean(1).nan_to_num(7.0),
        (LINE, "y:bool[N,T]"),
        STEPS,
    ),
    of("negative_bits", lambda x: ((x - 2**20) & 0xFF0) | ((x - 15) ^ 0x55), TOKENS, STEPS),
    of("nearest_1.9", lambda x: F.interpolate(x, scale_factor=1.9, mode="nearest"), space="N=1:2:3 H=5:14:30 W=5:8:10"),
)
