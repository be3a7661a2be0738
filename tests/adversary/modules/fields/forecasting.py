"""Forecasting and recommendation: scaling by the window, seasons, bags, crossings and buckets."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SERIES, T = "x:float32[N,T,3]", "N=1:2:3 T=4:9:23"
IDS, B = "ids:int64[N,K]=0:19", "N=1:2:4 K=1:3:6"


@attack(SERIES, dims=T)
class ReversibleNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(3, 3)

    def forward(self, x):
        mean, deviation = x.mean(1, keepdim=True).detach(), x.std(1, keepdim=True, unbiased=False).detach()
        y = self.mix((x - mean) / (deviation + 1e-5))
        return y * (deviation + 1e-5) + mean


@forward(SERIES, dims=T)
def scaled_by_mean_of_nonzero(self, x):
    observed = (x != 0).sum(1, keepdim=True)
    scale = x.abs().sum(1, keepdim=True) / observed.clamp_min(1)
    return x / torch.where(scale > 0, scale, torch.ones_like(scale)), scale.squeeze(1).log1p()


@forward(SERIES, dims=T)
def trend_and_season(self, x):
    padded = torch.cat((x[:, :1].repeat(1, 2, 1), x, x[:, -1:].repeat(1, 2, 1)), 1)
    trend = F.avg_pool1d(padded.transpose(1, 2), 5, 1).transpose(1, 2)
    return trend, x - trend


@forward(SERIES, dims=T, noted="infinity")
def auto_correlation(self, x):
    spectrum = torch.fft.rfft(x, dim=1)
    correlation = torch.fft.irfft(spectrum * spectrum.conj(), n=x.shape[1], dim=1)
    return correlation.mean(-1)


@forward(SERIES, dims=T)
def differences_and_growth(self, x):
    return x.diff(dim=1), x.diff(n=2, dim=1, prepend=x[:, :1]), torch.gradient(x, dim=1)[0]


@forward(SERIES, dims=T)
def exponential_smoothing(self, x):
    weights = 0.7 ** torch.arange(x.shape[1] - 1, -1, -1.0)
    return (x * weights[:, None]).cumsum(1) / weights.cumsum(0)[:, None]


@forward(SERIES, dims=T)
def quantiles_of_window(self, x):
    q = torch.tensor([0.0, 0.1, 0.5, 0.77, 1.0])
    return (
        x.quantile(q, dim=1),
        x.quantile(0.3, dim=1, interpolation="lower"),
        x.quantile(0.5, dim=1, interpolation="nearest"),
    )


@forward(SERIES, dims=T)
def medians(self, x):
    return x.median(1).values, x.nanmedian(1).values, x.kthvalue(2, 1).values, x.flatten(1).median(1).values


@forward(SERIES, dims=T)
def season_by_remainder(self, x):
    phase = torch.arange(x.shape[1]) % 7
    table = torch.linspace(-1, 1, 21).view(7, 3)
    weekend = ((phase == 5) | (phase == 6)).float()
    return x + table[phase] * (1 + weekend[:, None])


@forward(SERIES, dims=T)
def patches_of_end(self, x):
    x = F.pad(x.transpose(1, 2), (0, 3), mode="replicate")
    return x.unfold(-1, 4, 3).flatten(2)


@forward("t:int64[N,T]=-4000000000:4000000000", dims="N=1:2:3 T=1:4:9")
def calendar_of_seconds(self, t):
    days = torch.div(t, 86400, rounding_mode="floor")
    return days, t % 86400 // 3600, (days + 4) % 7, torch.div(t, 86400, rounding_mode="trunc"), torch.fmod(t, 60)


@forward("x:float32[N,4]", dims="N=1:2:5")
def buckets_of_price(self, x):
    edges = torch.tensor([-1.0, -0.5, 0.0, 0.5, 0.5, 3.0])
    return torch.bucketize(x, edges), torch.bucketize(x, edges, right=True), torch.searchsorted(edges, x, side="right")


@forward("x:float32[N,6]", "v:float32[N,3]", dims="N=1:2:5")
def searched_rows(self, x, v):
    ordered = x.sort(1).values
    return torch.searchsorted(ordered, v), torch.searchsorted(ordered, v, right=True, out_int32=True)


@forward("x:float32[N,4]", dims="N=1:2:5", kinds=("normal", "unit", "halves", "zeros"))
def histogram(self, x):
    return torch.histc(x, bins=5, min=-1, max=1), torch.bincount(
        (x.flatten() * 2).abs().long().clamp(max=6), minlength=7
    )


@attack(IDS, dims=B)
class BagsOfMax(nn.Module):
    def __init__(self):
        super().__init__()
        self.highest = nn.EmbeddingBag(20, 4, mode="max", padding_idx=0)
        self.mean = nn.EmbeddingBag(20, 4, mode="mean", padding_idx=3)

    def forward(self, ids):
        return self.highest(ids), self.mean(ids)


@attack("ids:int64[12]=0:19", "w:float32[12]", dims="", noted="with an infinity")
class WeightedBagByOffsets(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 4, mode="sum", include_last_offset=True)

    def forward(self, ids, w):
        return self.bag(ids, torch.tensor([0, 3, 3, 12]), per_sample_weights=w)


@attack(IDS, dims=B, kinds=("normal",))
class RenormedEmbedding(nn.Module):
    """max_norm writes the rows that are looked up, in forward."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4, max_norm=1.0)

    def forward(self, ids):
        return self.table(ids), self.table(ids[:, :1] // 2)


@forward(IDS, dims=B)
def hashed_crossings(self, ids):
    a = (ids * 2654435761 + 12345) % 1000003
    crossed = (a[:, :, None] * 31 + a[:, None, :]) % 97
    return crossed, (ids - 10) % -7, (ids - 10) // 3, -(ids // -3), torch.remainder(ids - 10, 4)


@forward(IDS, dims=B)
def hash_that_overflows(self, ids):
    h = ids * 6364136223846793005 + 1442695040888963407
    h = h ^ (h >> 33)
    return (h * -49064778989728563) & 1023, (h >> 40) % 50


@forward(IDS, dims=B)
def first_of_each(self, ids):
    same = ids[:, :, None] == ids[:, None, :]
    earlier = same.tril(-1).any(-1)
    return ~earlier, (~earlier).sum(1), same.float().sum(-1).reciprocal().sum(1).round()


@attack("x:float32[N,6,4]", dims="N=1:2:5")
class FactorisedCrossings(nn.Module):
    def forward(self, x):
        square, squares = x.sum(1).square(), x.square().sum(1)
        i, j = torch.triu_indices(6, 6, 1)
        pairs = torch.einsum("nfd,ngd->nfg", x, x)[:, i, j]
        return 0.5 * (square - squares).sum(-1), pairs, torch.combinations(torch.arange(4), 2)


@forward("x:float32[N,5]", dims="N=1:3:7")
def normalised_over_batch(self, x):
    return (
        (x - x.mean(0)) / (x.std(0, correction=0) + 1e-3),
        x.softmax(0),
        x.var(0, correction=0),
        F.normalize(x, p=1, dim=0),
    )


@forward("x:float32[N,5]", dims="N=2:3:7")
def correlation_of_features(self, x):
    return torch.cov(x.T), x.cummax(0).values, x.logcumsumexp(0), x.cumprod(1)


@forward("u:float32[N,4]", "v:float32[M,4]", dims="N=1:3:7 M=3:4:9", noted="infinity")
def nearest_items(self, u, v):
    distance = torch.cdist(u, v)
    near = distance.topk(3, largest=False)
    return (
        near.values,
        v[near.indices].mean(1),
        F.cosine_similarity(u[:, None], v[None], dim=-1),
        torch.cdist(u, v, p=1),
    )
