"""Decoders with masks and padding, and values written through masks beside other indices."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward

TWO = "N=1:2:3 T=3:9:20 S=1:5:8"
ROOM = "N=1:2:3 H=4:9:12 W=4:8:12"
FINITE = ("normal", "ones", "descending")


def _random(*shape, **more):
    return lambda: {"x": np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32), **more}


@attack("x:float32[N,T,8]", "y:float32[N,S,8]", dims=TWO, kinds=FINITE)
class DecoderUnderMasks(nn.Module):
    """Torch looks whether a mask is causal, which is a decision by value only for its choice of a kernel."""

    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, batch_first=True), 2)

    def forward(self, x, y):
        s, t = y.shape[1], x.shape[1]
        band = (torch.arange(t)[None] * s - torch.arange(s)[:, None] * t).abs() <= max(s, t)
        causal = torch.ones(s, s, dtype=torch.bool).triu(1)
        return self.decoder(y, x, tgt_mask=causal, memory_mask=~band)


@attack("x:float32[N,T,8]", "y:float32[N,S,8]", "hidden:bool[N,T]", dims=TWO, kinds=(*FINITE, "true", "one-false"))
class DecoderWithPaddedMemory(nn.Module):
    """A memory that is hidden altogether counts for nothing, and makes no NaN."""

    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, batch_first=True), 2)

    def forward(self, x, y, hidden):
        causal = nn.Transformer.generate_square_subsequent_mask(y.shape[1])
        return self.decoder(y, x, tgt_mask=causal, memory_key_padding_mask=hidden)


@forward("x:float32[N,4,H,W]", "m:bool[H,W]", dims=ROOM, kinds=FINITE, feeds=(
    _random(1, 4, 4, 4, m=np.eye(4, dtype=bool)), _random(2, 4, 5, 12, m=np.zeros((5, 12), bool)),
))  # fmt: skip
def WritesThroughMasks(self, x, m):
    y = x.clone()
    y[..., m] = y[..., m] * 2 - 1
    y.permute(0, 2, 3, 1)[:, m, :2] += 0.5
    y[:, 1::2, m] = 7.0
    rows = m.any(1)
    y[:, :, rows, -1] = y[:, :, rows, 0]
    return y, y[[0, -1], :, :, [1, 2]]
