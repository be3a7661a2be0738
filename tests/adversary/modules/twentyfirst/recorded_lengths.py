"""`//` and `>>` of lengths, times and sizes beside a recurrence, as models of speech have them."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack


class BesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=2:9:40")
class CeilOfALength(BesideAGru):
    """-(-t // 4) blocks."""

    def forward(self, x):
        y = self.gru(x)[0]
        blocks = -(-x.shape[1] // 4)
        return F.pad(y, (0, 0, 0, blocks * 4 - x.shape[1])).reshape(y.shape[0], blocks, 12)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=2:9:40")
class PadToFourBesideAGru(BesideAGru):
    def forward(self, x):
        y = self.gru(F.pad(x, (0, 0, 0, -x.shape[1] % 4)))[0]
        return y.reshape(y.shape[0], -1, 12), y[:, : x.shape[1]]


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=2:9:40")
class RelativeBesideAGru(BesideAGru):
    """Relative positions in steps of two."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(41, 1)

    def forward(self, x):
        y = self.gru(x)[0]
        i = torch.arange(x.shape[1])
        rel = (i[None] - i[:, None]) // 2 + 20
        return (y @ y.transpose(1, 2)) + self.bias(rel)[..., 0]


@attack("x:float32[N,T,3]", "lengths:int64[N]=0:40", dims="N=1:1:2 T=2:9:40")
class LengthsOfConvolutions(BesideAGru):
    """(lengths + 2 - 3) // 2 + 1: an empty row has -1 // 2."""

    def forward(self, x, lengths):
        n = (lengths + 2 - 3) // 2 + 1
        return self.gru(x)[0] * (torch.arange(x.shape[1])[None] < n[:, None])[..., None], n


@attack("x:float32[N,T,3]", "lengths:int64[N]=1:40", dims="N=1:1:2 T=2:9:40")
class LengthsOfTwoConvolutions(BesideAGru):
    """The lengths of valid convolutions, (n - 3) // 2 + 1 twice: rows of one or two frames."""

    def forward(self, x, lengths):
        n = lengths
        for _ in range(2):
            n = (n - 3) // 2 + 1
        n = n.clamp(min=0)
        return self.gru(x)[0], n


@attack(
    "x:float32[N,T,3]",
    "lengths:int64[N]=1:4000",
    dims="N=1:1:2 T=2:9:40",
    feeds=tuple(
        (lambda v=v: {"x": np.zeros((1, 9, 3), np.float32), "lengths": np.array([v])}) for v in (1, 2, 3, 5, 400)
    ),
)
class FramesOfSamples(BesideAGru):
    """(samples - 400) // 160 + 1 frames of a wave that may be shorter than one window."""

    def forward(self, x, lengths):
        return self.gru(x)[0], (lengths - 400) // 160 + 1


@attack(
    "x:float32[N,T,3]",
    "lengths:int64[N]=300:480000",
    dims="N=1:1:2 T=2:9:40",
    feeds=tuple(
        (lambda v=v: {"x": np.zeros((1, 9, 3), np.float32), "lengths": np.array([v])})
        for v in (300, 320, 399, 400, 560)
    ),
)
class FramesOfLongSamples(BesideAGru):
    """The same up to thirty seconds, from three hundred samples on."""

    def forward(self, x, lengths):
        return self.gru(x)[0], (lengths - 400) // 160 + 1


@attack(
    "x:float32[N,T,3]",
    "lengths:int64[N]=80:480000",
    dims="N=1:1:2 T=2:9:40",
    feeds=tuple(
        (lambda v=v: {"x": np.zeros((1, 9, 3), np.float32), "lengths": np.array([v])})
        for v in (80, 81, 239, 240, 300, 399)
    ),
)
class FramesFromEighty(BesideAGru):
    """From 80 samples on, where (80 - 400) // 160 is whole: only 81 to 399 but 240 are wrong."""

    def forward(self, x, lengths):
        n = (lengths - 400) // 160 + 1
        return self.gru(x)[0] * (torch.arange(x.shape[1])[None] < n[:, None])[..., None], n


def ids(*values: int, dtype=np.int64):
    return tuple((lambda v=v: {"x": np.zeros((1, 8, 3), np.float32), "ids": np.full((1, 8), v, dtype)}) for v in values)


def rows(*scales: float):
    return tuple(
        (lambda s=s: {"x": (np.arange(1, 61, dtype=np.float32).reshape(1, 20, 3) % 7 * s).astype(np.float32)})
        for s in scales
    )


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=2:9:40", feeds=rows(1e-2, 1e-4, 1e-5, 1e-6, 1e-8))
class CosineOfSmall(BesideAGru):
    """cosine_similarity of short vectors: torch clamps each norm at 1e-8, a recorded file the product."""

    def forward(self, x):
        return self.gru(x)[0], F.cosine_similarity(x[:, 1:], x[:, :-1], dim=-1)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=2:9:40", feeds=rows(1e-2, 1e-4, 1e-5, 1e-6, 1e-8))
class SpeakerChange(BesideAGru):
    """A change of speaker by the cosine of neighbouring states, whose scale is learnt to be small."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 6, bias=False)

    def forward(self, x):
        y = self.proj(self.gru(x)[0] * 0.01)
        return F.cosine_similarity(y[:, 1:], y[:, :-1], dim=-1) < 0.5, F.cosine_similarity(y, x.repeat(1, 1, 2), dim=-1)


@attack("x:float32[N,T,3]", "ids:uint8[N,T]=0:255", dims="N=1:1:2 T=8:8:20", feeds=ids(0, 44, 45, 255, dtype=np.uint8))
class IgnoreIndexOfBytes(BesideAGru):
    def forward(self, x, ids):
        return self.gru(x)[0] * (ids != -1)[..., None], ids == 256


@attack("x:float32[N,T,3]", "ids:int32[N,T]=-50:99999", dims="N=1:1:2 T=8:8:20", feeds=ids(-3, -1, -7, dtype=np.int32))
class NegativeTimesOfEmbeddings(BesideAGru):
    """Milliseconds in buckets of twenty, of which a few are before the start: another row of the table."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5100, 3)

    def forward(self, x, ids):
        return self.gru(x + self.emb(ids.long() // 20 + 3))[0]


@attack("x:float32[N,T,3]", "ids:int64[N,T]=-48:99996", dims="N=1:1:2 T=8:8:20", feeds=ids(-3, -1, -7))
class FewShifted(BesideAGru):
    def forward(self, x, ids):
        return self.gru(x)[0], ids >> 2, torch.bitwise_right_shift(ids, 1)


@attack("x:float32[N,T,3]", "ids:int64[N,T]=-50:99999", dims="N=1:1:2 T=8:8:20", feeds=ids(-3, -1, -7))
class FewByDecimals(BesideAGru):
    def forward(self, x, ids):
        return self.gru(x)[0], ids // 2.5


@attack("x:float32[N,T,3]", "ids:int64[N,T]=-50:99999", dims="N=1:1:2 T=8:8:20", feeds=ids(-3, -1, -7))
class FewByFunctions(BesideAGru):
    """torch.floor_divide of two tensors."""

    def forward(self, x, ids):
        return self.gru(x)[0], torch.floor_divide(ids, torch.full_like(ids, 10))


@attack("x:float32[N,T,3]", "ids:int64[N,T]=-50:99999", dims="N=1:1:2 T=8:8:20", feeds=ids(-3, -1, -7))
class FewByRoundingMode(BesideAGru):
    """rounding_mode="floor", which the exporter writes otherwise."""

    def forward(self, x, ids):
        return self.gru(x)[0], torch.div(ids, 10, rounding_mode="floor"), ids % 10


@attack("ids:int64[N,T]=-50:99999", "x:float32[N,T,3]", dims="N=1:1:2 T=8:8:20", feeds=ids(-3, -1, -7))
class FewBesideAnLstmInAScript(nn.Module):
    """The same in a part that torch.jit.script made."""

    def __init__(self):
        super().__init__()

        class Part(nn.Module):
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                return ids // 10

        self.part = torch.jit.script(Part())

    def forward(self, ids, x):
        return self.part(ids), x * 2
