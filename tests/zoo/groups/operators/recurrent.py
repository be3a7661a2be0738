"""Recurrent layers, 1-D and 3-D convolutions, and small whole networks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, Case, module, of

VOLUME = "x:float32[N,4,D,H,W]"
VOXELS = "N=1:2:3 D=4:6:9 H=8:10:15 W=9:12:17"
WAVE = "x:float32[N,8,T]"
TICKS = "N=1:2:5 T=20:40:90"


class Last(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


class FinalState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(16, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, h = self.layer(x)
        return h[-1]


class InitialState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(16, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(1, x.shape[0], 8)
        y, _ = self.layer(x, (h, h + 0.1))
        return y


class CRNN(nn.Module):
    """A text recogniser: convolutions, the whole height pooled, a recurrent layer over the width."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, (2, 1), 1)
        self.rnn = nn.LSTM(16, 8, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        f = F.relu(self.conv(x))
        f = F.avg_pool2d(f, [f.shape[2], 1]).squeeze(2).permute(0, 2, 1)
        return self.rnn(f)[0].log_softmax(-1)


class Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 3, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(F.pad(x, (4, 0)))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 8, 3, 2, 1, bias=False), nn.Conv2d(8, 8, 3, 1, 1, bias=False)
        self.n1, self.n2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.short = nn.Conv2d(8, 8, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.n2(self.b(F.relu(self.n1(self.a(x))))) + self.short(x))


CASES: tuple[Case, ...] = (
    module("lstm", lambda: Last(nn.LSTM(16, 8, batch_first=True)), LINE, STEPS),
    module(
        "lstm_two_layers_both_ways", lambda: Last(nn.LSTM(16, 8, 2, batch_first=True, bidirectional=True)), LINE, STEPS
    ),
    module("lstm_time_first", lambda: Last(nn.LSTM(16, 8)), "x:float32[T,N,16]", STEPS),
    module("lstm_initial_state", InitialState, LINE, STEPS),
    module("gru", lambda: Last(nn.GRU(16, 8, batch_first=True)), LINE, STEPS),
    module("gru_both_ways", lambda: Last(nn.GRU(16, 8, batch_first=True, bidirectional=True)), LINE, STEPS),
    module("gru_final_state", FinalState, LINE, STEPS),
    module("rnn_tanh", lambda: Last(nn.RNN(16, 8, batch_first=True)), LINE, STEPS),
    module("crnn", CRNN),
    module("conv1d", lambda: nn.Conv1d(8, 4, 5, 2, 2), WAVE, TICKS),
    module("conv1d_causal", Causal, WAVE, TICKS),
    module("conv1d_transpose", lambda: nn.ConvTranspose1d(8, 4, 4, 2, 1), WAVE, TICKS),
    module("conv3d", lambda: nn.Conv3d(4, 4, 3, padding=1), VOLUME, VOXELS),
    module("conv3d_transpose", lambda: nn.ConvTranspose3d(4, 4, 2, 2), VOLUME, VOXELS),
    module("max_pool3d", lambda: nn.MaxPool3d(2), VOLUME, VOXELS),
    of(
        "temporal_shift",
        lambda x: torch.cat([x[:, 1:, :2], x[:, :-1, 2:4], x[:, :-1, 4:]], 2),
        "x:float32[N,T,8,H,W]",
        "N=1:2:3 T=3:4:6 H=7:8:12 W=7:9:12",
    ),
    of(
        "frames_to_batch",
        lambda x: F.avg_pool2d(x.flatten(0, 1), 2).unflatten(0, (x.shape[0], x.shape[1])),
        "x:float32[N,T,8,H,W]",
        "N=1:2:3 T=3:4:6 H=7:8:12 W=7:9:12",
    ),
    module("residual_block", Residual),
)
