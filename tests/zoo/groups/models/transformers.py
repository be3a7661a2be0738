# ruff: noqa: E501 - one case a line reads best as a table
"""Attention over windows, axes and neighbours, relative positions, caches, masks from lengths, decoders with queries."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import IMAGE, LINE, SMALL, STEPS, Case, module


class AxialAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Conv2d(8, 24, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        q, k, v = self.qkv(x).permute(0, 3, 1, 2).reshape(n * w, 24, h).split(8, 1)
        out = torch.einsum("bij,bcj->bci", torch.einsum("bci,bcj->bij", q, k).softmax(-1), v)
        return out.reshape(n, w, c, h).permute(0, 2, 3, 1)


class NeighbourAttention(nn.Module):
    """Each pixel attends to its 3 x 3 neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Conv2d(8, 8, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        k = F.unfold(self.k(x), 3, padding=1).view(n, c, 9, h, w)
        v = F.unfold(self.v(x), 3, padding=1).view(n, c, 9, h, w)
        return ((self.q(x)[:, :, None] * k).sum(1, keepdim=True).softmax(2) * v).sum(2)


class DecomposedBias(nn.Module):
    """SAM: relative tables resized to the grid, indexed by coordinates, added per axis."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.cols = nn.Parameter(torch.randn(15, 8)), nn.Parameter(torch.randn(15, 8))

    def table(self, weight: torch.Tensor, size: int) -> torch.Tensor:
        resized = F.interpolate(weight.t()[None], size=2 * size - 1, mode="linear")[0].t()
        positions = torch.arange(size)
        return resized[positions[:, None] - positions[None, :] + size - 1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        q = x.permute(0, 2, 3, 1)
        rows = torch.einsum("nhwc,hkc->nhwk", q, self.table(self.rows, h))
        cols = torch.einsum("nhwc,wkc->nhwk", q, self.table(self.cols, w))
        flat = q.reshape(n, h * w, c)
        scores = (
            (flat @ flat.transpose(1, 2)).view(n, h * w, h, w)
            + rows.reshape(n, h * w, h, 1)
            + cols.reshape(n, h * w, 1, w)
        )
        return (scores.view(n, h * w, h * w).softmax(-1) @ flat).transpose(1, 2).reshape(n, c, h, w)


class SwinBias(nn.Module):
    """Fixed windows with a relative bias and the mask of shifted windows, made from the padded size."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.randn(49, 1))
        positions = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        delta = positions[:, :, None] - positions[:, None, :] + 3
        self.register_buffer("index", delta[0] * 7 + delta[1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h0, w0 = x.shape
        x = F.pad(x, (0, (4 - w0 % 4) % 4, 0, (4 - h0 % 4) % 4)).permute(0, 2, 3, 1)
        h, w = x.shape[1:3]
        x = torch.roll(x, (-2, -2), (1, 2))
        zone_h = (torch.arange(h) >= h - 4).long() + (torch.arange(h) >= h - 2).long()
        zone_w = (torch.arange(w) >= w - 4).long() + (torch.arange(w) >= w - 2).long()
        zones = (zone_h[:, None] * 3 + zone_w[None, :]).view(h // 4, 4, w // 4, 4).transpose(1, 2).reshape(-1, 16)
        mask = (zones[:, None] != zones[:, :, None]).float() * -100.0
        t = x.view(n, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(n, -1, 16, c)
        q, k, v = self.qkv(t).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(8) + self.bias[self.index][..., 0] + mask
        t = (scores.softmax(-1) @ v).view(n, h // 4, w // 4, 4, 4, c).transpose(2, 3).reshape(n, h, w, c)
        return torch.roll(t, (2, 2), (1, 2))[:, :h0, :w0].permute(0, 3, 1, 2)


class GroupedQuery(nn.Module):
    """Four query heads over two key heads, causal, with rotary positions (half-split)."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.o = (
            nn.Linear(16, 16, bias=False),
            nn.Linear(16, 16, bias=False),
            nn.Linear(16, 16, bias=False),
        )
        self.register_buffer("rate", 1.0 / 100 ** (torch.arange(0, 4, 2) / 4))

    def rotate(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return x * torch.cat([angles.cos()] * 2, -1) + torch.cat([-b, a], -1) * torch.cat([angles.sin()] * 2, -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, _ = x.shape
        angles = torch.arange(t)[:, None] * self.rate
        q = self.rotate(self.q(x).view(n, t, 4, 4).transpose(1, 2), angles)
        k, v = self.kv(x).view(n, t, 2, 2, 4).permute(2, 0, 3, 1, 4)
        k, v = self.rotate(k, angles).repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, 16))


class KeyValueCache(nn.Module):
    """One decoding step: the past goes in, the longer past comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.qkv(x).chunk(3, -1)
        present = torch.cat([past, torch.stack([k, v])], 2)
        scores = q @ present[0].transpose(1, 2) / 4.0
        return scores.softmax(-1) @ present[1], present


class PaddedEncoder(nn.Module):
    """A key padding mask made from lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(x.shape[1])[None] >= lengths[:, None]
        return self.attention(x, x, x, key_padding_mask=mask, need_weights=False)[0]


class Queries(nn.Module):
    """DETR's decoder: learned queries attend to the flattened image with sine positions."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(5, 8))
        self.layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, _, h, w = x.shape
        rate = 10.0 ** (2 * torch.arange(2) / 4)
        rows = (torch.arange(1, h + 1)[:, None] / h * 2 * math.pi / rate).expand(h, 2)
        cols = (torch.arange(1, w + 1)[:, None] / w * 2 * math.pi / rate).expand(w, 2)
        rows, cols = torch.cat([rows.sin(), rows.cos()], -1), torch.cat([cols.sin(), cols.cos()], -1)
        positions = torch.cat([rows[:, None].expand(h, w, 4), cols[None].expand(h, w, 4)], -1).view(h * w, 8)
        memory = x.flatten(2).transpose(1, 2) + positions
        return self.layer(self.queries.expand(n, -1, -1), memory)


class PatchMerging(nn.Module):
    """Swin: 2 x 2 neighbours joined, odd sizes padded."""

    def __init__(self) -> None:
        super().__init__()
        self.reduce = nn.Linear(32, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x.permute(0, 2, 3, 1), (0, 0, 0, x.shape[3] % 2, 0, x.shape[2] % 2))
        return self.reduce(torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1))


class TimeEmbedding(nn.Module):
    """A diffusion model's step embedding added to its image."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(16, 8), nn.SiLU(), nn.Linear(8, 8))

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        rate = torch.exp(-math.log(10000) * torch.arange(8, dtype=torch.float32) / 8)
        angles = t[:, None].float() * rate[None]
        return x + self.mlp(torch.cat([angles.cos(), angles.sin()], -1))[:, :, None, None]


class SlidingWindow(nn.Module):
    """Attention limited to a band, its mask made from the length."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1])
        mask = (positions[:, None] - positions[None]).abs() <= 3
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


class Performer(nn.Module):
    """Causal linear attention by a cumulative sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k = F.elu(x[..., :4]) + 1, F.elu(x[..., 4:8]) + 1
        state = torch.einsum("nti,ntj->ntij", k, x[..., 8:]).cumsum(1)
        return torch.einsum("nti,ntij->ntj", q, state) / torch.einsum("nti,nti->nt", q, k.cumsum(1))[..., None]


CASES: tuple[Case, ...] = (
    module("axial_attention", AxialAttention, space=SMALL),
    module("neighbour_attention", NeighbourAttention, space=SMALL),
    module("decomposed_bias", DecomposedBias, space=SMALL),
    module("swin_bias_and_mask", SwinBias, space=SMALL),
    module("grouped_query_rotary", GroupedQuery, LINE, STEPS),
    module(
        "key_value_cache", KeyValueCache, ("x:float32[N,S,16]", "past:float32[2,N,T,16]"), "N=1:2:5 S=1:1:4 T=5:16:40"
    ),
    module("lengths_to_padding_mask", PaddedEncoder, (LINE, "lengths:int64[N]=1:5"), STEPS),
    module("detr_queries", Queries, space=SMALL),
    module("patch_merging", PatchMerging),
    module("time_embedding", TimeEmbedding, (IMAGE, "t:int64[N]=0:999"), SMALL),
    module("sliding_window", SlidingWindow, LINE, STEPS),
    module("causal_linear_attention", Performer, LINE, STEPS),
)
