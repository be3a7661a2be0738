"""Comparisons of a narrow whole type with a wider number without axes, in recorded files: torch wraps the number."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack


def _feed(value, dtype, t=40):
    values = np.zeros((1, t), dtype)
    values[0, 0] = value
    return lambda: {"x": np.zeros((1, t, 3), np.float32), "i": values}


class BesideAGru(nn.Module):
    """A recurrence, for which a module is recorded."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)


@attack("x:float32[N,T,3]", "i:int16[N,T]=-32768:32767", dims="N=1:1:2 T=4:40:60", feeds=(_feed(-25536, np.int16),))
class ShortEqualsSize(BesideAGru):
    """torch takes 40000 in int16, where it is -25536; the file compares in int64."""

    def forward(self, x, i):
        return self.gru(x)[0], i == x.shape[1] * 1000


@attack(
    "x:float32[N,T,3]",
    "i:int16[N,T]=-32768:32767",
    "lengths:int64[N]=0:70000",
    dims="N=1:1:2 T=4:40:60",
    feeds=(lambda: {**_feed(-25536, np.int16)(), "lengths": np.array([40000])},),
)
class ShortEqualsLongest(BesideAGru):
    """The same with the largest of int64 lengths, a tensor without axes."""

    def forward(self, x, i, lengths):
        return self.gru(x)[0], i == lengths.max()


@attack("x:float32[N,T,3]", "i:uint8[N,T]=0:255", dims="N=1:1:2 T=4:40:60", feeds=(_feed(240, np.uint8, 4),))
class ByteEqualsSizeLess(BesideAGru):
    """4 - 20 is 240 in bytes."""

    def forward(self, x, i):
        return self.gru(x)[0], i[:, 0] == x.shape[1] - 20


@attack(
    "x:float32[N,T,3]",
    "i:int32[N,T]=-2147483647:2147483647",
    "lengths:int64[N]=0:9000000000000000",
    dims="N=1:1:2 T=4:40:60",
    feeds=(lambda: {**_feed(7, np.int32)(), "lengths": np.array([2**32 + 7])},),
)
class IntEqualsLongest(BesideAGru):
    def forward(self, x, i, lengths):
        return self.gru(x)[0], i == lengths.amax()


@attack(
    "x:float32[N,T,3]",
    "i:int32[N,T]=-2147483647:2147483647",
    "lengths:int64[N]=0:4200000000",
    dims="N=1:1:2 T=4:40:60",
    feeds=(lambda: {**_feed(7, np.int32)(), "lengths": np.array([2**32 - 1])},),
)
class MaximumWithLongest(BesideAGru):
    """Maximum, where and masked_fill with the same."""

    def forward(self, x, i, lengths):
        m = lengths.amax()
        return self.gru(x)[0], torch.maximum(i, m), torch.where(i > 0, i, m), torch.minimum(m, i)


@attack(
    "x:float32[N,T,3]",
    "i:int32[N,T]=-2147483647:2147483647",
    "lengths:int64[N]=0:3000000000",
    dims="N=1:1:2 T=4:40:60",
    feeds=(lambda: {**_feed(7, np.int32)(), "lengths": np.array([2999999999])},),
)
class MoreThanLongest(BesideAGru):
    """An order: torch wraps, so most are larger than 2999999999."""

    def forward(self, x, i, lengths):
        return self.gru(x)[0], i > lengths.amax() + 7


@attack("x:float32[N,T,3]", "lengths:int64[N]=0:200", dims="N=1:1:2 T=4:40:60", feeds=())
class BytesOfMaskEqualLongest(BesideAGru):
    """A count in bytes that is made within."""

    def forward(self, x, lengths):
        c = (x * 50).to(torch.int8)
        return self.gru(x)[0], c == lengths.max(), c != x.shape[1] * 5


@attack("x:float32[N,T,3]", "i:int16[N,T]=-32768:32767", dims="N=1:1:2 T=4:40:60", feeds=(_feed(-25536, np.int16),))
class SumWithEqualsSize(BesideAGru):
    """The comparison flows on into an output that varies."""

    def forward(self, x, i):
        t = x.shape[1]
        return self.gru(x)[0] + (i == t * 1000)[..., None], torch.where(i != t * 1000, x[..., 0], 7.0)


@attack(
    "x:float32[N,T,3]",
    "i:int32[N,T]=-2147483647:2147483647",
    "lengths:int64[N]=0:9000000000000000",
    dims="N=1:1:2 T=4:40:60",
    feeds=(lambda: {**_feed(7, np.int32)(), "lengths": np.array([2**32 + 7])},),
)
class MaskWhereEqualToLongest(BesideAGru):
    def forward(self, x, i, lengths):
        return self.gru(x)[0].masked_fill((i == lengths.amax())[..., None], 9.0)
