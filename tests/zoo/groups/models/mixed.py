"""What people write in one line and what falls between the groups."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, TWO, Case, module, of

PAIR = "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33"


class PadToSquare(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[2:]
        side = max(h, w)
        return F.pad(x, (0, side - w, 0, side - h))


class CentreSquare(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[-2:]
        side = min(h, w)
        top, left = (h - side) // 2, (w - side) // 2
        return x[..., top : top + side, left : left + side]


class Sinusoidal2d(nn.Module):
    """DETR's sine positions from a cumulative sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ones = torch.ones_like(x[:, 0])
        y, w = ones.cumsum(1), ones.cumsum(2)
        y = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi
        w = w / (w[:, :, -1:] + 1e-6) * 2 * math.pi
        rate = 10000 ** (2 * torch.div(torch.arange(4), 2, rounding_mode="floor") / 4)
        py, pw = y[..., None] / rate, w[..., None] / rate
        py = torch.stack((py[..., 0::2].sin(), py[..., 1::2].cos()), 4).flatten(3)
        pw = torch.stack((pw[..., 0::2].sin(), pw[..., 1::2].cos()), 4).flatten(3)
        return x + torch.cat((py, pw), 3).permute(0, 3, 1, 2)


class Cells(nn.Module):
    """A GRU cell over a fixed number of steps, sizes from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.size(0), 8)
        for t in range(4):
            h = self.cell(x[:, t], h)
        return h


class MaskedSoftmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = x.sum(-1) > 0
        scores = x.mean(-1).masked_fill(~mask, torch.finfo(x.dtype).min)
        return scores.softmax(-1)


class DarkChannel(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -F.max_pool2d(-x.amin(1, keepdim=True), 5, 1, 2)


class Blur(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        k = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("kernel", (k[:, None] * k[None, :] / 16).expand(8, 1, 3, 3).clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.kernel, stride=2, groups=x.shape[1])


class RotaryComplex(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), 1.0 / 100 ** (torch.arange(8).float() / 8))
        turned = torch.view_as_complex(x.reshape(*x.shape[:-1], 8, 2)) * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(2)


class PatchMerging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reduce = nn.Linear(32, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.permute(0, 2, 3, 1)
        h, w = x.shape[1:3]
        x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduce(torch.cat(parts, -1))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.decoder(x, y, tgt_mask=mask)


class KeyPadding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ignore = x.abs().sum(-1) < 0.1
        return self.attention(x, x, x, key_padding_mask=ignore)[0]


def gaussian_map(x: torch.Tensor) -> torch.Tensor:
    h, w = x.shape[-2:]
    ys = torch.arange(h, dtype=torch.float32)[:, None] - (h - 1) / 2
    xs = torch.arange(w, dtype=torch.float32)[None, :] - (w - 1) / 2
    return x * torch.exp(-(ys * ys + xs * xs) / (2 * (h / 4) ** 2))


def soft_argmax(x: torch.Tensor) -> torch.Tensor:
    n, c, h, w = x.shape
    p = x.flatten(2).softmax(-1).view(n, c, h, w)
    ys, xs = torch.linspace(0, 1, h), torch.linspace(0, 1, w)
    return torch.stack(((p.sum(3) * ys).sum(2), (p.sum(2) * xs).sum(2)), -1)


def nms_like(x: torch.Tensor) -> torch.Tensor:
    heat = x.sigmoid()
    peaks = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
    scores, index = peaks.flatten(1).topk(10)
    width = x.shape[3]
    return torch.stack((scores, (index // width % x.shape[2]).float(), (index % width).float()), -1)


CASES: tuple[Case, ...] = (
    module("pad_to_square", PadToSquare),
    module("centre_square", CentreSquare),
    module("sine_positions_2d", Sinusoidal2d),
    module("gru_cell_steps", Cells, LINE, STEPS),
    module("masked_softmax", MaskedSoftmax, LINE, STEPS),
    module("dark_channel", DarkChannel),
    module("blur_pool", Blur),
    module("rotary_complex", RotaryComplex, LINE, STEPS),
    module("patch_merging", PatchMerging),
    module("transformer_decoder", Decoder, ("x:float32[N,T,16]", "y:float32[N,S,16]"), "N=1:2:5 T=5:16:40 S=3:12:30"),
    module("key_padding", KeyPadding, LINE, STEPS),
    of("gaussian_map", gaussian_map),
    of("soft_argmax", soft_argmax),
    of("heatmap_peaks", nms_like, "x:float32[N,8,H,W]=-3:3"),
    of("quantile", lambda x: torch.quantile(x, 0.3, dim=1), LINE, STEPS),
    of("nanmean", lambda x: torch.nanmean(torch.where(x > 2, torch.nan, x), dim=1), LINE, STEPS),
    of(
        "covariance",
        lambda x: (x - x.mean(1, True)).transpose(1, 2) @ (x - x.mean(1, True)) / (x.shape[1] - 1),
        LINE,
        STEPS,
    ),
    of("tensordot", lambda x: torch.tensordot(x, x[0], dims=([1], [0])), LINE, STEPS),
    of("outer_sum", lambda x: x[:, :, None] + x[:, None, :], LINE, STEPS),
    of("trace", lambda x: (x @ x.transpose(1, 2)).diagonal(dim1=1, dim2=2).sum(-1), LINE, STEPS),
    of("matrix_power", lambda x: torch.matrix_power(torch.tanh(x.transpose(1, 2) @ x / x.shape[1]), 3), LINE, STEPS),
    of(
        "meshgrid_default",
        lambda x: (
            x
            + torch.stack(torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="xy")).sum(0).t()
        ),
    ),
    of("flip_and_add", lambda x: x + x[:, :, torch.arange(x.shape[2] - 1, -1, -1)]),
    of("negative_index", lambda x: torch.cat([x[:, :, -3:], x[:, :, :-3]], 2)),
    of("half_by_chunk", lambda x: torch.cat(torch.chunk(x, 2, dim=3)[::-1], 3)),
    of("expand_as", lambda x, y: y.mean((2, 3), keepdim=True).expand_as(x) * x, TWO, PAIR),
    of(
        "interp_then_concat",
        lambda x, y: torch.cat([x, F.interpolate(y, x.shape[-2:], mode="bilinear", align_corners=True)], 1),
        TWO,
        PAIR,
    ),
    of(
        "resize_half_pixel_odd",
        lambda x: F.interpolate(F.interpolate(x, scale_factor=0.5, mode="bilinear"), scale_factor=2, mode="bilinear"),
    ),
    of(
        "hypercolumn",
        lambda x: torch.cat([F.interpolate(F.avg_pool2d(x, k), x.shape[2:], mode="bilinear") for k in (2, 3, 4)], 1),
    ),
    of("instance_std_by_view", lambda x: x.view(x.shape[0], x.shape[1], -1).std(-1)),
    of("group_mean", lambda x: x.view(x.size(0), 4, -1, x.size(2), x.size(3)).mean(2)),
    of("maxout", lambda x: x.view(x.size(0), 4, 2, *x.shape[2:]).amax(2)),
    of("crelu", lambda x: torch.cat([x.relu(), (-x).relu()], 1)),
    of("straight_through", lambda x: x + ((x > 0).float() - x).detach()),
    of("sum_over_halves", lambda x: x[..., : x.shape[3] // 2].sum(-1) - x[..., x.shape[3] // 2 :].sum(-1)),
    of("stack_of_shifts", lambda x: torch.stack([F.pad(x, (k, 2 - k))[..., 1:-1] for k in range(3)], 2).amax(2)),
    of("integral_image", lambda x: x.cumsum(2).cumsum(3)),
    of("box_filter", lambda x: (lambda c: c[..., 3:] - c[..., :-3])(F.pad(x.cumsum(3), (3, 0)))),
    of(
        "histogram_soft",
        lambda x: torch.exp(-((x.flatten(2)[..., None] - torch.linspace(-2, 2, 8)) ** 2)).mean(2),
        "x:float32[N,3,H,W]",
        "N=1:2:3 H=6:10:14 W=7:9:15",
    ),
    of(
        "spatial_softmax_temperature",
        lambda x: F.softmax(x.flatten(2) * math.sqrt(1.0 / x.shape[1]), -1).reshape(x.shape),
    ),
    of("arange_int32", lambda x: x + torch.arange(x.shape[1], dtype=torch.int32)[None, :, None], LINE, STEPS),
    of("cumsum_mask", lambda x: (x > 0).long().cumsum(1), LINE, STEPS),
    of("top_half", lambda x: torch.sort(x, dim=1, descending=True)[0][:, : (x.shape[1] + 1) // 2].mean(1), LINE, STEPS),
    of("argmax_onehot", lambda x: F.one_hot(x.argmax(-1), 16).float() * x, LINE, STEPS),
    of("pairwise_distance", lambda x: F.pairwise_distance(x, x.flip(1)), LINE, STEPS),
    of("windowed_mean", lambda x: x.unfold(1, 5, 1).mean(-1), LINE, STEPS),
    of("frame_signal", lambda x: x.unfold(-1, 16, 8) * torch.hann_window(16), "x:float32[N,T]", "N=1:2:5 T=40:64:200"),
    of("repeat_interleave_tokens", lambda x: x.repeat_interleave(3, 1), LINE, STEPS),
    of(
        "block_causal",
        lambda x: (torch.arange(x.shape[1])[:, None] // 4 >= torch.arange(x.shape[1])[None] // 4).float() @ x,
        LINE,
        STEPS,
    ),
    of("bilinear_form", lambda x: torch.einsum("bi,ij,bj->b", x[:, 0], torch.eye(16) * 2, x[:, 1]), LINE, STEPS),
    of(
        "pool_by_reshape",
        lambda x: x.reshape(x.shape[0], 8, x.shape[2] // 4, 4, x.shape[3] // 4, 4).mean((3, 5)),
        space="N=1:2:5 H=16:32:60%4 W=16:48:64%4",
    ),
    of("local_maxima", lambda x: (x == F.max_pool2d(x, 3, 1, 1)).float() * x),
    of("dynamic_divisor", lambda x: x / torch.tensor(float(8)) * x.shape[2] / x.shape[3]),
    of("log_polar", lambda x: torch.log(torch.linalg.vector_norm(x, dim=1) + 1e-9)),
)
