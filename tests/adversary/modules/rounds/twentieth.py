"""Round twenty: the types of doubles in a recorded file, and positions of nearest resizes at rare sizes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import Feed, attack, forward


def _ramp(length: int, width: int = 4) -> Feed:
    return {"x": np.arange(length * width, dtype=np.float32).reshape(1, length, width) / 64}


@attack("x:float32[N,T]=-50:50", dims="N=1:2:3 T=1:5:9")
class MaskTimesADouble(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gain", torch.tensor(1.5, dtype=torch.float64))

    def forward(self, x):
        return (x > 0) * self.gain


@attack("x:float32[N,T]=-50:50", dims="N=1:2:3 T=1:5:9", refused="float64")
class MaskTimesADoubleBesideAMean(MaskTimesADouble):
    """dynamo takes the mean in half, after which TorchScript's file held the product as float32."""

    def forward(self, x):
        return super().forward(x), x.half().mean(1, dtype=torch.float32)


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=1:20:100", feeds=(lambda: _ramp(75), lambda: _ramp(87)))
class FramesBroughtBack(nn.Module):
    """A recurrence makes a recording of the file, in which a Resize picked another frame at 75 and 87."""

    def __init__(self):
        super().__init__()
        self.states = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        states = self.states(x)[0].transpose(1, 2)
        return F.interpolate(states, size=4 * x.shape[1] - 3, mode="nearest")


@forward("x:float32[N,1,T]", dims="N=1:1:1 T=2:100:3300")
def one_frame_less(self, x):
    return F.interpolate(x, size=x.shape[-1] - 1, mode="nearest")


@forward("x:float32[N,4,T]", "y:float32[N,4,P]", dims="N=1:1:2 T=1:20:120 P=1:60:300")
def frames_of_another_signal(self, x, y):
    return F.interpolate(x, size=y.shape[-1], mode="nearest-exact") + y
