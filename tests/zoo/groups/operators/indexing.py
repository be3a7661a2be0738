"""Masks, gathers, scatters, sorting, top-k, non-zero, unique, cumulative sums."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, Case, module, of

TOKENS = "x:int64[N,T]=0:29"


def set_where(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y < 0] = 0.25
    return y


def set_slice(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 2:5, 1:-1] = 0.0
    return y


def set_last_row(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, :, -1, :] = x[:, :, 0, :]
    return y


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))[None]


class ScatterMeans(nn.Module):
    """Mean of the rows of each of five groups, by index_add."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        flat, index = x.reshape(-1, 16), y.reshape(-1)
        sums = torch.zeros(5, 16, dtype=x.dtype).index_add(0, index, flat)
        counts = torch.zeros(5, dtype=x.dtype).index_add(0, index, torch.ones_like(index, dtype=x.dtype))
        return sums / counts.clamp(min=1.0)[:, None]


class TopKGather(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x.mean(-1)
        _, index = scores.topk(4, dim=1)
        return torch.gather(x, 1, index[..., None].expand(-1, -1, x.shape[2]))


class LengthMask(nn.Module):
    def forward(self, x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(x.shape[1])[None, :] < k[:, None]
        x = x.masked_fill(~mask[..., None], 0.0)
        return x.sum(1) / k[:, None].clamp(min=1)


def causal(x: torch.Tensor) -> torch.Tensor:
    t = x.shape[1]
    mask = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
    scores = (x @ x.transpose(1, 2)).masked_fill(mask, float("-inf"))
    return F.softmax(scores, -1) @ x


INDEXED = (LINE, "y:int64[N,T]=0:4")

CASES: tuple[Case, ...] = (
    of("masked_fill", lambda x: x.masked_fill(x < 0, -2.0)),
    of("where", lambda x: torch.where(x > 0.5, x, x * 0.1)),
    of("set_where", set_where),
    of("set_slice", set_slice),
    of("set_last_row", set_last_row),
    of("masked_scatter_scalar", lambda x: x.masked_fill(x.abs() > 1.0, float("-inf")).clamp(min=-3.0)),
    of("causal_mask", causal, LINE, STEPS),
    module("length_mask", LengthMask, (LINE, "k:int64[N]=1:5"), STEPS),
    of("tril", lambda x: x.tril()),
    of("triu_diagonal", lambda x: x.triu(2)),
    of("diagonal", lambda x: x.diagonal(dim1=1, dim2=2)[..., :5] * 2.0, LINE, "N=1:2:5 T=16:20:40"),
    module("embedding", Embedding, TOKENS, STEPS),
    of("one_hot", lambda x: F.one_hot(x, 30).float(), TOKENS, STEPS),
    of("gather", lambda x, y: torch.gather(x, 1, y[..., None].expand(-1, -1, 16)), INDEXED, STEPS),
    of("take_along_dim", lambda x, y: torch.take_along_dim(x, y[..., None], dim=1), INDEXED, STEPS),
    of("index_select", lambda x: x.index_select(1, torch.tensor([3, 0, 2]))),
    of("index_two_axes", lambda x, y: x[torch.arange(x.shape[0])[:, None], y], INDEXED, STEPS),
    of("flip", lambda x: x.flip(2, 3)),
    of("roll", lambda x: x.roll((2, -3), (2, 3))),
    of("roll_half", lambda x: x.roll(x.shape[2] // 2, 2)),
    of("every_second", lambda x: torch.cat([x[:, :, ::2, ::2].mean((2, 3)), x[:, :, 1::2, 1::2].mean((2, 3))], 1)),
    of("last_step", lambda x: x[:, -1], LINE, STEPS),
    of("middle_step", lambda x: x[:, x.shape[1] // 2], LINE, STEPS),
    of("narrow_from_shape", lambda x: x.narrow(1, 1, x.shape[1] - 2), LINE, STEPS),
    of("scatter", lambda x, y: torch.zeros(x.shape[0], 5).scatter(1, y, x[..., 0] * 0 + 1.0), INDEXED, STEPS),
    of("scatter_add", lambda x, y: torch.zeros(x.shape[0], 5).scatter_add(1, y, x[..., 0]), INDEXED, STEPS),
    of(
        "scatter_reduce_max",
        lambda x, y: torch.zeros(x.shape[0], 5).scatter_reduce(1, y, x[..., 0], "amax"),
        INDEXED,
        STEPS,
    ),
    module("index_add", ScatterMeans, INDEXED, STEPS),
    of(
        "index_add_rows", lambda x, y: torch.zeros(5, 16).index_add(0, y.reshape(-1), x.reshape(-1, 16)), INDEXED, STEPS
    ),
    of(
        "index_put_accumulate",
        lambda x, y: torch.zeros(5, 16).index_put((y.reshape(-1),), x.reshape(-1, 16), accumulate=True),
        INDEXED,
        STEPS,
    ),
    of("bincount", lambda x: F.one_hot(x.reshape(-1), 30).sum(0), TOKENS, STEPS),
    module("bag_with_padding", lambda: nn.EmbeddingBag(30, 8, padding_idx=0), TOKENS, STEPS),
    of("topk", lambda x: x.topk(3, dim=-1)[0]),
    of("topk_of_shape", lambda x: x.mean(-1).topk(x.shape[1] // 2, dim=1)[0], LINE, STEPS),
    module("topk_gather", TopKGather, LINE, STEPS),
    of("sort", lambda x: x.sort(-1)[0]),
    of("argsort", lambda x: x.argsort(-1, descending=True), LINE, STEPS),
    of("median", lambda x: x.median(-1)[0], "x:float32[N,T,15]", STEPS),
    of("kthvalue", lambda x: x.kthvalue(3, dim=-1)[0], LINE, STEPS),
    of("argmax", lambda x: x.argmax(1)),
    of("max_with_index", lambda x: x.max(dim=1)),
    of("cumsum", lambda x: x.cumsum(1), LINE, STEPS),
    of("cumprod", lambda x: (x * 0.1 + 1.0).cumprod(1), LINE, STEPS),
    of("cummax", lambda x: x.cummax(1)[0], LINE, STEPS),
    of("logcumsumexp", lambda x: x.logcumsumexp(1), LINE, STEPS),
    of("nonzero", lambda x: (x > 1.0).nonzero(), "x:float32[T]", "T=5:20:50"),
    of("masked_select", lambda x: x[x > 0.0], "x:float32[T]", "T=5:20:50"),
    of("unique", lambda x: torch.unique(x), "x:int64[T]=0:9", "T=5:20:50"),
    of("searchsorted", lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5, 1.0]), x), LINE, STEPS),
    of("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 1.0])), LINE, STEPS),
    of("isin", lambda x: torch.isin(x, torch.tensor([1, 4, 7])), TOKENS, STEPS),
    of("nan_to_num", lambda x: torch.nan_to_num(x / (x.abs() - x.abs()), 0.5, 2.0, -2.0)),
)
