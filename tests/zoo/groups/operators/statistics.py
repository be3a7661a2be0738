"""Means, spreads, orders, distances; cumulative sums; scatters and gathers in their less usual forms."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, SMALL, STEPS, Case, module, of

INDEXED = (LINE, "y:int64[N,T]=0:4")
TOKENS = "x:int64[N,T]=0:29"


class Histogram(nn.Module):
    """A soft histogram over all pixels, sixteen bins."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(-2, 2, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(1)[:, :, None]
        return torch.exp(-((flat - self.centres) ** 2) * 8.0).mean(1)


class VectorQuantise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Parameter(torch.randn(12, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        flat = x.permute(0, 2, 3, 1)
        distance = flat.pow(2).sum(-1, keepdim=True) - 2 * flat @ self.codes.t() + self.codes.pow(2).sum(-1)
        index = distance.argmin(-1)
        return self.codes[index].permute(0, 3, 1, 2), index


class MixtureOfExperts(nn.Module):
    """Top-2 gates, every expert computed, a weighted sum."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.Parameter(torch.randn(4, 16, 16) * 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, index = self.gate(x).topk(2, -1)
        gates = torch.zeros_like(self.gate(x)).scatter(-1, index, value.softmax(-1))
        return torch.einsum("nte,eij,nti->ntj", gates, self.experts, x)


class GraphMean(nn.Module):
    """Message passing: source rows added to their targets, divided by the degree."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges[0], edges[1]
        total = torch.zeros_like(x).index_add(0, target, x[source])
        degree = torch.zeros(x.shape[0]).index_add(0, target, torch.ones(edges.shape[1]))
        return total / degree.clamp(min=1.0)[:, None]


CASES: tuple[Case, ...] = (
    of("var_unbiased", lambda x: x.var((2, 3))),
    of("var_one_dim_keep", lambda x: x.var(1, keepdim=True, unbiased=False)),
    of("std_all", lambda x: x.std()),
    of("var_mean", lambda x: torch.var_mean(x, dim=(1, 2, 3))),
    of("var_correction", lambda x: torch.var(x, dim=2, correction=0)),
    of("mean_of_dim_from_end", lambda x: x.mean((-1, -3))),
    of("rms", lambda x: x.square().mean((2, 3)).sqrt()),
    of("median_last", lambda x: x.median(-1)[0], LINE, STEPS),
    of("median_over_height", lambda x: x.median(2)[0], space=SMALL),
    of("quantile_half", lambda x: torch.quantile(x, 0.5, dim=-1), LINE, STEPS),
    of("quantile_90", lambda x: torch.quantile(x.flatten(1), 0.9, dim=1), space=SMALL),
    of("quantile_of_steps", lambda x: torch.quantile(x, torch.tensor([0.25, 0.75]), dim=1), LINE, STEPS),
    of("softmax_joined", lambda x: x.flatten(1).softmax(1).view(x.shape)),
    of("softmin_height", lambda x: F.softmin(x, 2)),
    of("logsumexp_keep", lambda x: x.logsumexp(1, keepdim=True)),
    of("logaddexp", lambda x: torch.logaddexp(x, x.flip(1))),
    of("log_softmax_temperature", lambda x: F.log_softmax(x / 0.07, -1), LINE, STEPS),
    of("norm_1", lambda x: torch.norm(x, p=1, dim=1)),
    of("norm_3", lambda x: torch.norm(x, p=3, dim=1)),
    of("norm_inf", lambda x: x.norm(float("inf"), dim=(2, 3))),
    of("norm_0", lambda x: torch.linalg.vector_norm(F.relu(x), ord=0, dim=1)),
    of("norm_minus_inf", lambda x: torch.linalg.vector_norm(x, ord=-float("inf"), dim=1)),
    of("matrix_norm_1", lambda x: torch.linalg.matrix_norm(x, ord=1), LINE, STEPS),
    of(
        "covariance",
        lambda x: (x - x.mean(1, True)).transpose(1, 2) @ (x - x.mean(1, True)) / (x.shape[1] - 1),
        LINE,
        STEPS,
    ),
    of("torch_cov", lambda x: torch.cov(x.flatten(1)), "x:float32[D,T]", "D=2:4:6 T=5:16:40"),
    of("corrcoef", lambda x: torch.corrcoef(x), "x:float32[D,T]", "D=2:4:6 T=5:16:40"),
    of("cdist_2", lambda x, y: torch.cdist(x, y), (LINE, "y:float32[N,S,16]"), "N=1:2:5 T=5:16:40 S=3:12:30"),
    of("cdist_1", lambda x, y: torch.cdist(x, y, p=1.0), (LINE, "y:float32[N,S,16]"), "N=1:2:5 T=5:16:40 S=3:12:30"),
    of("pairwise_distance", lambda x, y: F.pairwise_distance(x, y), (LINE, "y:float32[N,T,16]"), STEPS),
    of("entropy", lambda x: -(x.softmax(1) * x.log_softmax(1)).sum(1)),
    of(
        "min_max_scale",
        lambda x: (x - x.amin((1, 2, 3), True)) / (x.amax((1, 2, 3), True) - x.amin((1, 2, 3), True) + 1e-5),
    ),
    of("aminmax", lambda x: torch.aminmax(x, dim=1)),
    of("nansum", lambda x: torch.nansum(x.masked_fill(x > 1, float("nan")), 1)),
    of("count_nonzero", lambda x: (x > 0).sum((2, 3))),
    module("soft_histogram", Histogram, space=SMALL),
    module("vector_quantise", VectorQuantise, space=SMALL),
    of("cumsum_width", lambda x: x.cumsum(3)),
    of("cumsum_reverse", lambda x: x.flip(1).cumsum(1).flip(1), LINE, STEPS),
    of("cumsum_exclusive", lambda x: x.cumsum(1) - x, LINE, STEPS),
    of("cumsum_of_mask", lambda x: (x > 3).long().cumsum(1), TOKENS, STEPS),
    of("cumsum_int32", lambda x: x.cumsum(1, dtype=torch.int32), "x:int32[N,T]=0:29", STEPS),
    of("cummin", lambda x: x.cummin(1)[0], LINE, STEPS),
    of("cumprod_last", lambda x: torch.cumprod(1.0 - torch.sigmoid(x) + 1e-10, -1), LINE, STEPS),
    of("integral_image", lambda x: x.cumsum(2).cumsum(3)[:, :, 3:, 3:] - x.cumsum(2).cumsum(3)[:, :, :-3, 3:]),
    of("topk_smallest", lambda x: x.topk(2, dim=1, largest=False), LINE, STEPS),
    of("topk_min_of_shape", lambda x: x.mean(-1).topk(min(4, x.shape[1]), dim=1)[0], LINE, STEPS),
    of("topk_channels_mask", lambda x: (x >= x.topk(3, dim=1)[0][:, -1:]).float() * x),
    of("sort_descending_index", lambda x: x.mean(-1).sort(1, descending=True)[1], LINE, STEPS),
    of("sort_height", lambda x: x.sort(2)[0], space=SMALL),
    of("sort_stable_int", lambda x: x.sort(dim=1, stable=True)[0], TOKENS, STEPS),
    of("argmin_flat", lambda x: x.flatten(1).argmin(1)),
    of("argmax_keep", lambda x: x.argmax(2, keepdim=True)),
    of(
        "argmax_2d",
        lambda x: torch.stack([x.flatten(2).argmax(2) // x.shape[3], x.flatten(2).argmax(2) % x.shape[3]], -1),
    ),
    of("soft_argmax", lambda x: (x.flatten(2).softmax(2) * torch.arange(x.shape[2] * x.shape[3])).sum(2) / x.shape[3]),
    module("mixture_of_experts", MixtureOfExperts, LINE, STEPS),
    module("graph_mean", GraphMean, ("x:float32[V,8]", "edges:int64[2,E]=0:4"), "V=5:9:20 E=3:12:40"),
    of(
        "scatter_value",
        lambda x, y: torch.zeros(x.shape[0], x.shape[1], 5).scatter(2, y[..., None], 1.0),
        INDEXED,
        STEPS,
    ),
    of(
        "scatter_add_last",
        lambda x, y: torch.zeros(x.shape[0], x.shape[1], 5).scatter_add(2, y[..., None].expand(-1, -1, 16), x),
        INDEXED,
        STEPS,
    ),
    of(
        "scatter_reduce_mean",
        lambda x, y: torch.zeros(x.shape[0], 5).scatter_reduce(1, y, x[..., 0], "mean", include_self=False),
        INDEXED,
        STEPS,
    ),
    of(
        "scatter_reduce_sum",
        lambda x, y: torch.ones(x.shape[0], 5).scatter_reduce(1, y, x[..., 0], "sum"),
        INDEXED,
        STEPS,
    ),
    of(
        "scatter_reduce_min",
        lambda x, y: torch.full((x.shape[0], 5), 9.0).scatter_reduce(1, y, x[..., 0], "amin"),
        INDEXED,
        STEPS,
    ),
    of(
        "scatter_reduce_prod",
        lambda x, y: torch.ones(x.shape[0], 5).scatter_reduce(1, y, x[..., 0], "prod"),
        INDEXED,
        STEPS,
    ),
    of(
        "index_add_rows",
        lambda x, y: torch.zeros(x.shape[0], 5, 16).index_add(1, torch.tensor([0, 4, 0]), x[:, :3]) + y.sum(),
        INDEXED,
        STEPS,
    ),
    of("index_copy", lambda x: x.index_copy(1, torch.tensor([0, 3]), x[:, 1:3] * 2.0), LINE, STEPS),
    of("index_fill", lambda x: x.index_fill(1, torch.tensor([0, 3]), -1.0), LINE, STEPS),
    of(
        "index_put_pairs",
        lambda x, y: torch.zeros(x.shape[0], 5, 16).index_put(
            (torch.arange(x.shape[0])[:, None], y[:, :2].sort(1)[0] * 0 + torch.tensor([1, 3])), x[:, :2]
        ),
        INDEXED,
        STEPS,
    ),
    of(
        "put_along_mask",
        lambda x: torch.where(torch.arange(x.shape[1])[None, :, None] == x.shape[1] - 1, 0.0, x),
        LINE,
        STEPS,
    ),
    of("gather_last_valid", lambda x, y: x[torch.arange(x.shape[0]), y.amax(1)], INDEXED, STEPS),
    of(
        "gather_negative_index",
        lambda x, y: torch.take_along_dim(x, (x.shape[1] - 1 - y)[..., None], 1),
        INDEXED,
        STEPS,
    ),
    of("index_by_tensor_of_shape", lambda x: x[:, torch.arange(x.shape[1] - 1, -1, -1)], LINE, STEPS),
    of("index_with_none", lambda x: x[:, None, :, ..., ::3] * 1.5),
    of("index_negative", lambda x: x[:, -3:, :-2, -1]),
    of("index_list", lambda x: x[:, [0, 2, 5, 2]]),
    of(
        "masked_mean",
        lambda x, y: (x * (y > 1)[..., None]).sum(1) / (y > 1).sum(1, keepdim=True).clamp(min=1),
        INDEXED,
        STEPS,
    ),
    of("masked_softmax", lambda x, y: x.masked_fill((y == 0)[..., None], -1e9).softmax(1), INDEXED, STEPS),
    of("unique_counts", lambda x: torch.unique(x, return_counts=True)[1], "x:int64[T]=0:9", "T=5:20:50"),
    of("argwhere", lambda x: torch.argwhere(x > 0.5), "x:float32[T,4]", "T=5:20:50"),
    of("where_one_argument", lambda x: torch.where(x > 0.5)[0], "x:float32[T]", "T=5:20:50"),
    of("compress_rows", lambda x: x[x[:, 0] > 0], "x:float32[T,4]", "T=5:20:50"),
)
