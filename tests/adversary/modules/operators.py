"""Layouts, indexing, scatters, padding, sampling and whole operators."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward

X = "x:float32[3,4]"


@forward(X)
def as_strided_windows(self, x):
    return x.as_strided((3, 3), (4, 1), 1), x.unfold(1, 2, 1).sum(-1)


@forward(X)
def transposed_view(self, x):
    return x.t().reshape(-1), x.t().contiguous().view(2, 6), x.permute(1, 0).flatten()


@forward(X)
def strange_indexing(self, x):
    rows = torch.tensor([2, 0, -1])
    return x[rows], x[rows, [0, 1, -1]], x[:, None, ::2], x[..., -1:], x[x > 0].sum()


@forward(X)
def roll_and_flip(self, x):
    return x.roll(1, 1), x.roll((1, -2), (0, 1)), x.roll(5), x.flip((0, 1)), torch.rot90(x)


@forward(X)
def diagonals(self, x):
    return x.diagonal(1), x.tril(-1), x.triu(1), torch.diag_embed(x[0]), x[:, :3].trace()


@forward(X)
def repeats(self, x):
    chosen = x.repeat_interleave(torch.tensor([1, 0, 2]), 0)
    return x.repeat(2, 1), x.repeat_interleave(2, 1), chosen, x.expand(2, 3, 4)


@forward(X)
def scatters(self, x):
    index = torch.tensor([[0, 1, 1, 0], [2, 2, 2, 2], [1, 0, 1, 0]])
    return (
        torch.zeros(3, 4).scatter_add(0, index, x),
        torch.full((3, 4), -torch.inf).scatter_reduce(0, index, x, "amax"),
        torch.ones(3, 4).scatter_reduce(0, index, x, "mean", include_self=False),
    )


@forward(X)
def gathers(self, x):
    return (
        x.gather(1, x.argsort(1, stable=True)),
        torch.take(x, torch.tensor([0, 5, -1])),
        x.index_select(1, torch.tensor([3, 0])),
    )


@forward(X)
def padding_modes(self, x):
    y = x[None]
    return F.pad(y, (1, 2), mode="reflect"), F.pad(y, (1, 2), mode="replicate"), F.pad(y, (3, 1), mode="circular")


@forward(X)
def negative_padding(self, x):
    return F.pad(x, (-1, 2)), F.pad(x, (1, -1, -1, 0), value=7.0)


@forward(X)
def pooling_of_padding(self, x):
    y = x[None, None]
    return F.max_pool2d(y, 2, 1, 1), F.avg_pool2d(y, 2, 1, 1), F.avg_pool2d(y, 3, 2, 1, True, False)


@forward(X)
def lp_pooling_of_signs(self, x):
    return F.lp_pool2d(x[None, None].abs(), 2.0, 2), F.adaptive_max_pool2d(x[None, None], (2, 3))


@forward(X)
def interpolations(self, x):
    y = x[None, None]
    return (
        F.interpolate(y, scale_factor=1.7),
        F.interpolate(y, (5, 3), mode="bilinear"),
        F.interpolate(y, (5, 7), mode="area"),
    )


@forward(X)
def sampling_on_edges(self, x):
    grid = torch.stack([x.clamp(-1.3, 1.3), x.flip(0).clamp(-1.3, 1.3)], -1)[None]
    image = torch.arange(20.0).reshape(1, 1, 4, 5)
    return F.grid_sample(image, grid, align_corners=False), F.grid_sample(image, grid, "nearest", "border", True)


@forward(X)
def one_hot_of_rounded(self, x):
    return F.one_hot(x.clamp(0, 4).long(), 5), F.embedding(x.clamp(0, 4).long(), torch.arange(10.0).reshape(5, 2))


@forward(X)
def matrix_functions(self, x):
    square = x[:, :3].clamp(-3, 3) + 10 * torch.eye(3)
    return torch.linalg.det(square), torch.linalg.inv(square), torch.linalg.matrix_norm(square)


@forward(X)
def attention_with_empty_rows(self, x):
    mask = x > 0
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask[:, :3] | torch.eye(3, dtype=torch.bool))


@forward(X)
def masked_softmax_all_false(self, x):
    return x.masked_fill(x < 0.5, -torch.inf).softmax(1).nan_to_num()


@forward(X)
def losses(self, x):
    target = x.flip(0)
    return F.smooth_l1_loss(x, target), F.huber_loss(x, target), F.kl_div(x.log_softmax(1), target.softmax(1))


@forward(X)
def trigonometry_quadrants(self, x):
    return torch.atan2(x, x.flip(1)), torch.hypot(x, x.flip(0)), torch.sinc(x), torch.deg2rad(x)


@forward(X)
def fourier(self, x):
    spectrum = torch.fft.rfft(x)
    return spectrum.abs(), torch.fft.irfft(spectrum, n=4), torch.fft.fftshift(x)
