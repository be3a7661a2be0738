"""Masks of every form: padding, causal, rows without any place, and what is computed from them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, M, DIM = "x:float32[2,T,8]", "m:bool[2,T]", "T=2:5:9"
FREE = "m:bool[T,T]"


@attack(X, M, dims=DIM, noted="infinity")
class PaddedAttention(nn.Module):
    """A row that is padded throughout is NaN in torch."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, m):
        return self.attention(x, x, x, key_padding_mask=m, need_weights=True)


@forward(X, FREE, dims=DIM)
def rows_without_keys(self, x, m):
    return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=m)


@forward("x:float32[N,2,T,8]", "m:bool[N,1,T,T]", dims="N=1:2:3 T=6:8:16")
def rows_with_one_infinity(self, x, m):
    return F.scaled_dot_product_attention(x, x * 0.5, x + 1, attn_mask=m)


@forward(X, FREE, dims=DIM, refused="the inputs are all zeros there")
def float_mask_of_infinities(self, x, m):
    bias = torch.zeros_like(m, dtype=x.dtype).masked_fill(~m, float("-inf"))
    return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=bias)


@forward(X, "y:float32[2,S,8]", dims=DIM + " S=2:6:9")
def causal_of_unequal_lengths(self, x, y):
    return F.scaled_dot_product_attention(x[:, None], y[:, None], y[:, None], is_causal=True)


@forward(X, M, dims=DIM)
def masked_mean(self, x, m):
    return (x * m[..., None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1)


@forward(X, M, dims=DIM)
def masked_maximum(self, x, m):
    return x.masked_fill(~m[..., None], float("-inf")).amax(1)


@forward(X, M, dims=DIM)
def positions_of_mask(self, x, m):
    return m.cumsum(1) - 1, m.int().argmax(1), (~m).int().argmin(1), m.flip(1).float().argmax(1)


@forward(X, M, dims=DIM)
def softmax_then_cleaned(self, x, m):
    return x.masked_fill(~m[..., None], float("-inf")).softmax(1).nan_to_num(0.0)


@forward(X, M, dims=DIM)
def written_through_mask(self, x, m):
    y = x.clone()
    y[m] = 0.5
    y[~m] *= 2
    return y


@forward(X, M, dims=DIM)
def last_unmasked(self, x, m):
    last = (m.shape[1] - 1 - m.flip(1).int().argmax(1)).clamp(min=0)
    return x.gather(1, last[:, None, None].expand(-1, 1, 8)).squeeze(1), x[torch.arange(2), m.sum(1) - 1]
