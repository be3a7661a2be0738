"""What an outsider found in round 73: histories and padding masks."""

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T,8]=-2:2", "l:int64[N]=0:12", dims="N=1:2:3 T=1:6:12", kinds=FINITE)
class A8417EncoderWithPadding(nn.Module):
    """Two layers of a transformer, told by lengths where there is nothing."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x, l):  # noqa: E741 - as the user calls it
        is_padding = torch.arange(x.shape[1])[None] >= l.clamp(min=1)[:, None]
        return self.encoder(x, src_key_padding_mask=is_padding).masked_fill(is_padding[..., None], 0)


@attack("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:6:12", refused="forward keeps")
class A8418HistoryOfMaxima(nn.Module):
    """Twice as much where the last three calls were all loud."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.full((3,), 5.0))

    def forward(self, x):
        self.last = torch.cat([self.last[1:], x.max()[None]])
        return x * (1 + (self.last.min() > 2.99))


@attack("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:6:12", refused="forward keeps")
class A8419HistoryOfWholeNumbers(A8418HistoryOfMaxima):
    """The same in an output of whole numbers."""

    def forward(self, x):
        self.last = torch.cat([self.last[1:], x.max()[None]])
        return x, (self.last.min() > 2.99).long() + x.argmax(1)


@forward("t:int64[T]=0:9", dims="T=3:5:9", refused="the exported model differs")
def A8420AsManyClassesAsThereAre(self, t):
    """One-hot without a number of classes, which is a size that values make."""
    return torch.nn.functional.one_hot(t).float()
