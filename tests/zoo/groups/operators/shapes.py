"""Branches on shapes, integer arithmetic, ranges, reshapes, fold and unfold, shuffles, splits, einsum."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, TWO, Case, module, of


class BranchOnSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] > 40:
            return F.relu(x)
        return torch.tanh(x)


class BranchOnAspect(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] > x.shape[3]:
            return x.mean(2)
        return x.mean(3).repeat(1, 1, 1)


class BranchAtOneSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] == 44:
            return x * 3
        return x * 2


class BranchOnTwoSizes(nn.Module):
    """Two cuts of one range, and a weight that both sides share."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        if x.shape[3] < 30:
            y = y + 1
        if x.shape[3] >= 50:
            y = torch.relu(y)
        return y


class BranchOnParity(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[2] % 2 == 0 else x + 1


class BranchNeverTaken(nn.Module):
    """The range excludes the other branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] < 8:
            raise ValueError("too small")
        return x * 2


class LoopOverRows(nn.Module):
    """A Python loop over a dynamic dim cannot be one graph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            total = total * 0.5 + x[:, t]
        return total


class BatchOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.squeeze()


class ShuffleChannels(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.size()
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, -1, h, w)


class Focus(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)


class Involution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Conv2d(8, 9, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        patches = F.unfold(x, 3, padding=1).view(n, c, 9, h, w)
        return (patches * self.kernel(x)[:, None]).sum(2)


class DynamicConv(nn.Module):
    """One kernel per sample, by groups equal to the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.make = nn.Linear(8, 4 * 8 * 9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        kernels = self.make(x.mean((2, 3))).view(n * 4, c, 3, 3)
        return F.conv2d(x.reshape(1, n * c, h, w), kernels, padding=1, groups=n).view(n, 4, h, w)


class OddEven(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = (x.shape[1] + 1) // 2
        return torch.cat([x[:, :half].mean(1), x[:, half:].sum(1)], -1)


EVEN = "N=1:2:5 H=16:32:60%4 W=16:48:64%4"
PAIR = "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33"

CASES: tuple[Case, ...] = (
    module("branch_on_size", BranchOnSize),
    module("branch_on_aspect", BranchOnAspect),
    module("branch_at_one_size", BranchAtOneSize),
    module("branch_on_two_sizes", BranchOnTwoSizes),
    module("branch_on_parity", BranchOnParity),
    module("branch_never_taken", BranchNeverTaken),
    module("loop_over_steps", LoopOverRows, LINE, STEPS),
    module("squeeze_batch", BatchOne, "x:float32[N,1,8]", "N=2:3:5"),
    of("squeeze_dim", lambda x: x.mean(2, keepdim=True).squeeze(2)),
    of("min_with_constant", lambda x: x[:, :, : min(20, x.shape[2])]),
    of("max_of_sizes", lambda x: x.mean((2, 3)) * max(x.shape[2], x.shape[3])),
    of("scale_by_area", lambda x: x.sum((2, 3)) / (x.shape[2] * x.shape[3])),
    of("scale_by_sqrt_size", lambda x: x / (x.shape[3] ** 0.5)),
    of("size_as_tensor", lambda x: x.mean((2, 3)) * torch.tensor([x.shape[2], x.shape[3]], dtype=torch.float32).sum()),
    of("numel", lambda x: x.sum() / x.numel()),
    of("floor_div_negative", lambda x: F.pad(x, [(7 - x.shape[3]) // 2, 0, 0, 0])),
    of("modulo", lambda x: x[:, :, x.shape[2] % 4 :]),
    of("odd_even", OddEven().forward, LINE, STEPS),
    of("int_tensor_div", lambda x: torch.div(x - 15, 4, rounding_mode="floor"), "x:int64[N,T]=0:29", STEPS),
    of("int_tensor_floordiv", lambda x: (x - 15) // 4, "x:int64[N,T]=0:29", STEPS),
    of("int_tensor_trunc", lambda x: torch.div(x - 15, 4, rounding_mode="trunc"), "x:int64[N,T]=0:29", STEPS),
    of("int_remainder", lambda x: (x - 15) % 4, "x:int64[N,T]=0:29", STEPS),
    of("int_fmod", lambda x: torch.fmod(x - 15, 4), "x:int64[N,T]=0:29", STEPS),
    of("int32_arithmetic", lambda x: (x * 3 + 1) // 2 - x % 5, "x:int32[N,T]=0:29", STEPS),
    of("float_remainder", lambda x: torch.remainder(x, 0.7)),
    of("float_floor_divide", lambda x: torch.floor_divide(x, 0.7)),
    of("bitwise_and", lambda x: x & 7, "x:int64[N,T]=0:29", STEPS),
    of("shift_right", lambda x: x >> 2, "x:int64[N,T]=0:29", STEPS),
    of("shift_left", lambda x: x << 2, "x:int64[N,T]=0:29", STEPS),
    of("logical", lambda x: torch.logical_xor(x > 0, x < 1) & ~(x > 2)),
    of("arange", lambda x: x + torch.arange(x.shape[1])[None, :, None], LINE, STEPS),
    of("arange_step", lambda x: x[:, 1::2] * torch.arange(1, x.shape[1], 2)[None, :, None], LINE, STEPS),
    of(
        "arange_float", lambda x: x + torch.arange(0, x.shape[1], dtype=torch.float32)[None, :, None] * 0.1, LINE, STEPS
    ),
    of("linspace", lambda x: x * torch.linspace(0.0, 1.0, x.shape[1])[None, :, None], LINE, STEPS),
    of("full_like_size", lambda x: torch.cat([x, torch.full((x.shape[0], 1, 16), 0.5)], 1), LINE, STEPS),
    of("zeros_new", lambda x: torch.cat([x, x.new_zeros(x.shape[0], x.shape[1], 2)], 2), LINE, STEPS),
    of("eye", lambda x: x.transpose(1, 2) @ (torch.eye(x.shape[1]) * 2), LINE, STEPS),
    of("flatten_linear", lambda x: x.flatten(1).sum(1, keepdim=True)),
    of("view_minus_one", lambda x: x.view(x.shape[0], -1, 4).mean(1)),
    of(
        "view_halves",
        lambda x: x.view(x.shape[0], 8, x.shape[2] // 2, 2, x.shape[3]).amax(3),
        space="N=1:2:5 H=16:32:60%2 W=19:48:67",
    ),
    of("permute_reshape", lambda x: x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 8)),
    of("rows_to_batch", lambda x: x.permute(0, 2, 1, 3).reshape(-1, 8, x.shape[3])),
    of("expand", lambda x: x.mean(2, keepdim=True).expand(-1, -1, x.shape[2], -1)),
    of("repeat", lambda x: x.mean((2, 3))[..., None, None].repeat(1, 1, x.shape[2], x.shape[3])),
    of("tile", lambda x: x.tile(1, 1, 2, 2)),
    of("stack_unbind", lambda x: torch.stack([a * (i + 1) for i, a in enumerate(x.unbind(1))], 1)),
    of("chunk_channels", lambda x: torch.cat([c * (i + 1) for i, c in enumerate(x.chunk(4, 1))], 1)),
    of("chunk_height", lambda x: torch.cat([c.mean(2) for c in x.chunk(2, 2)], 1)),
    of("split_height", lambda x: torch.cat([c.mean(2) for c in x.split([5, x.shape[2] - 5], 2)], 1)),
    of("movedim", lambda x: x.movedim(1, -1).softmax(-1)),
    of("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2)),
    of("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), space=EVEN),
    module("channel_shuffle", ShuffleChannels),
    of("channel_shuffle_op", lambda x: F.channel_shuffle(x, 4)),
    module("focus", Focus, space=EVEN),
    of(
        "space_to_depth",
        lambda x: x.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 1, 4, 5, 2, 3).flatten(1, 3),
        space=EVEN,
    ),
    of("unfold", lambda x: F.unfold(x, 3, padding=1)),
    of("unfold_strided", lambda x: F.unfold(x, (2, 3), stride=2)),
    of("fold", lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1)),
    of("fold_strided", lambda x: F.fold(F.unfold(x, 4, stride=4), x.shape[2:], 4, stride=4), space=EVEN),
    of(
        "fold_overlap",
        lambda x: F.fold(F.unfold(x, 4, stride=2, padding=1), x.shape[2:], 4, stride=2, padding=1),
        space=EVEN,
    ),
    of("tensor_unfold", lambda x: x.unfold(1, 4, 2).mean(-1), LINE, STEPS),
    module("involution", Involution),
    module("dynamic_conv", DynamicConv),
    of("einsum_pair", lambda x: torch.einsum("ntc,nsc->nts", x, x), LINE, STEPS),
    of("einsum_ellipsis", lambda x: torch.einsum("...tc,...sc->...ts", x, x), LINE, STEPS),
    of("einsum_three", lambda x: torch.einsum("ntc,nsc,nsd->ntd", x, x, x), LINE, STEPS),
    of("einsum_diagonal", lambda x: torch.einsum("ntt->nt", x @ x.transpose(1, 2)), LINE, STEPS),
    of("einsum_outer", lambda x: torch.einsum("nc,nd->ncd", x.mean(1), x.amax(1)), LINE, STEPS),
    of("bilinear_pooling", lambda x: torch.einsum("nchw,ndhw->ncd", x, x) / (x.shape[2] * x.shape[3])),
    of("broadcast_shapes", lambda x, y: x.mean((2, 3), keepdim=True) * y, TWO, PAIR),
    of("cdist", lambda x: torch.cdist(x, x), LINE, STEPS),
    of(
        "correlation",
        lambda x: torch.stack([(x * torch.roll(x, (i, j), (2, 3))).mean(1) for i in (-1, 0, 1) for j in (-1, 0, 1)], 1),
    ),
    of("tuple_and_dict_out", lambda x: {"a": x * 2, "rest": (x.mean(1), [x.sum()])}),
    of("same_tensor_twice", lambda x: (x, x)),
)
