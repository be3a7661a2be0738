"""Attention in its many forms, positions, windows, masks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, Case, module, of

PAIR = ("x:float32[N,T,16]", "y:float32[N,S,16]")
PAIR_STEPS = "N=1:2:5 T=5:16:40 S=3:12:30"


class MultiHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class MultiHeadWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.attention(x, y, y)


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(c // 4)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inverse", 1.0 / (100.0 ** (torch.arange(0, 16, 2).float() / 16)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), self.inverse)
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Sinusoidal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], dtype=torch.float32)[:, None]
        rate = torch.exp(torch.arange(0, 16, 2, dtype=torch.float32) * (-math.log(10000.0) / 16))
        table = torch.zeros(x.shape[1], 16)
        table[:, 0::2] = torch.sin(positions * rate)
        table[:, 1::2] = torch.cos(positions * rate)
        return x + table


class InterpolatedPositions(nn.Module):
    """ViT's position table resized to the input's grid."""

    def __init__(self, antialias: bool = False) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 8, 7, 7))
        self.antialias = antialias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.interpolate(
            self.table, size=x.shape[2:], mode="bicubic" if not self.antialias else "bilinear", antialias=self.antialias
        )


class WindowAttention(nn.Module):
    """Swin: pad to the window, shift, partition, attend, and back."""

    def __init__(self, window: int = 4, shift: int = 2) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.window, self.shift = window, shift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k = self.window
        x = x.permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, (k - w % k) % k, 0, (k - h % k) % k))
        _, hp, wp, _ = x.shape
        x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        t = x.view(n, hp // k, k, wp // k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, k * k, c)
        q, key, v = self.qkv(t).chunk(3, -1)
        t = F.scaled_dot_product_attention(q, key, v)
        x = t.view(n, hp // k, wp // k, k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(n, hp, wp, c)
        x = torch.roll(x, (self.shift, self.shift), (1, 2))
        return x[:, :h, :w].permute(0, 3, 1, 2)


class RelativeBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(33, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = x.shape[1]
        positions = torch.arange(t)
        distance = (positions[None, :] - positions[:, None]).clamp(-16, 16) + 16
        return F.softmax(x @ x.transpose(1, 2) + self.table(distance)[..., 0], -1) @ x


class NonLocal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.theta, self.phi, self.g = (nn.Conv2d(8, 4, 1) for _ in range(3))
        self.back = nn.Conv2d(4, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, _, h, w = x.shape
        q = self.theta(x).view(n, 4, h * w).permute(0, 2, 1)
        k = F.max_pool2d(self.phi(x), 2).view(n, 4, -1)
        v = F.max_pool2d(self.g(x), 2).view(n, 4, -1).permute(0, 2, 1)
        y = (F.softmax(q @ k, -1) @ v).permute(0, 2, 1).contiguous().view(n, 4, h, w)
        return x + self.back(y)


class ClassToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.patch = nn.Conv2d(8, 8, 4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = self.patch(x).flatten(2).transpose(1, 2)
        t = torch.cat([self.token.expand(x.shape[0], -1, -1), t], 1)
        return F.scaled_dot_product_attention(t, t, t)[:, 0]


def encoder(norm_first: bool = False, activation: str = "relu") -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def split_heads(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (4, 4)).transpose(1, 2)


CASES: tuple[Case, ...] = (
    of("sdpa", lambda x: F.scaled_dot_product_attention(split_heads(x), split_heads(x), split_heads(x)), LINE, STEPS),
    of(
        "sdpa_causal",
        lambda x: F.scaled_dot_product_attention(split_heads(x), split_heads(x), split_heads(x), is_causal=True),
        LINE,
        STEPS,
    ),
    of(
        "sdpa_cross",
        lambda x, y: F.scaled_dot_product_attention(split_heads(x), split_heads(y), split_heads(y)),
        PAIR,
        PAIR_STEPS,
    ),
    of(
        "sdpa_mask",
        lambda x: F.scaled_dot_product_attention(
            x, x, x, attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(2)
        ),
        LINE,
        STEPS,
    ),
    module("multi_head", MultiHead, LINE, STEPS),
    module("multi_head_weights", MultiHeadWeights, PAIR, PAIR_STEPS),
    module("self_attention", SelfAttention, LINE, STEPS),
    module("encoder_layer", lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), LINE, STEPS),
    module("encoder", encoder, LINE, STEPS),
    module("encoder_norm_first_gelu", lambda: encoder(True, "gelu"), LINE, STEPS),
    module("rotary", Rotary, LINE, STEPS),
    module("sinusoidal", Sinusoidal, LINE, STEPS),
    module("interpolated_positions", InterpolatedPositions),
    module("interpolated_positions_antialias", lambda: InterpolatedPositions(True)),
    module("window_attention", WindowAttention),
    module("relative_bias", RelativeBias, LINE, STEPS),
    module("non_local", NonLocal),
    module("class_token", ClassToken),
    of("linear_attention", lambda x: F.elu(x).add(1) @ (F.elu(x).add(1).transpose(1, 2) @ x) / 16, LINE, STEPS),
    of(
        "alibi",
        lambda x: (
            F.softmax(
                x @ x.transpose(1, 2)
                - (torch.arange(x.shape[1])[None] - torch.arange(x.shape[1])[:, None]).abs() * 0.5,
                -1,
            )
            @ x
        ),
        LINE,
        STEPS,
    ),
)
