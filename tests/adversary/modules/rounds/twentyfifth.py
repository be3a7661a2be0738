"""What torch has exactly and a decomposition loses: deviations of one value, whole means, halves outside an image."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

WHOLE = ("bytes", "halves", "ones", "zeros", "normal")
HALVES = ("normal", "unit", "halves")


def _constant(*values, shape=(2, 9, 4)):
    return tuple((lambda v=v: {"x": np.full(shape, v, np.float32)}) for v in values)


ROWS = (
    _constant(0.1, 0.3, 0.7, 3.3, -100.1)
    + _constant(0.1, 1e3 / 3, shape=(1, 7, 4))
    + _constant(0.1, 0.7, 250.3, shape=(1, 13, 4))
)
MASKED = tuple((lambda f=f: {"x": f()["x"], "mask": np.ones(f()["x"].shape[:2], bool)}) for f in ROWS)
STUCK = tuple((lambda v=v: {"x": np.full((1, 401), v, np.float32)}) for v in (0.1, 250.3))


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=2:9:20", feeds=ROWS)
def standardised_unless_constant(self, x):
    """A scaler as scikit-learn has it: a deviation of zero counts as one."""
    std = x.std(1, keepdim=True)
    std = torch.where(std == 0, torch.ones_like(std), std)
    return (x - x.mean(1, keepdim=True)) / std


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=2:9:20", feeds=ROWS)
def variances_over_zero(self, x):
    return x.var(1) > 0, x.std((1, 2)) == 0, torch.var_mean(x, 1)[0] > 0, x.var(1, correction=0) == 0


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=2:9:20", feeds=ROWS)
def standardised_by_std_mean(self, x):
    s, m = torch.std_mean(x, 1, keepdim=True)
    return (x - m) / (s + 1e-8)


@forward("x:float32[N,T]", dims="N=1:2:4 T=16:400:2000", feeds=STUCK)
def waveforms_to_unit_variance(self, x):
    """Wav2Vec2's feature extractor of a line that is stuck."""
    v, m = torch.var_mean(x, 1, keepdim=True, correction=0)
    return (x - m) / torch.sqrt(v + 1e-7)


@forward("x:float32[N,T,4]", "mask:bool[N,T]", dims="N=1:2:4 T=2:9:20", feeds=MASKED)
def masked_deviations_of_one_value(self, x, mask):
    return x[mask].std() > 0, x[mask].mean()


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=4:9:20", feeds=ROWS, kinds=WHOLE)
class StandardisedAndPooledBesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        std = x.std(1, keepdim=True)
        std = std.masked_fill(std == 0, 1.0)
        means = F.adaptive_avg_pool1d(x.mT, 4).floor()
        return self.gru(x / 100)[0], (x - x.mean(1, keepdim=True)) / std, x.var(1) > 0, means


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=3:7:13 W=3:6:13", kinds=WHOLE)
def whole_means_cut(self, x):
    return (
        F.adaptive_avg_pool2d(x, (3, 2)).floor(),
        F.interpolate(x, (3, 2), mode="area").floor(),
        F.avg_pool2d(x, (2, 3)).floor(),
        F.avg_pool2d(x, (x.shape[2] // 2, 2)).floor(),
        F.adaptive_avg_pool2d(x, 1).round(),
    )


@forward("x:float32[N,2,H,W]", "g:float32[N,4,5,2]", dims="N=1:1:2 H=2:5:12 W=2:6:12", kinds=HALVES)
def nearest_grid_reflected(self, x, g):
    """torch reflects and then rounds; ONNX rounds first, and halves outside fall to the other side."""
    return F.grid_sample(x, g, "nearest", "reflection", False)


@forward("x:float32[N,1,4,H,W]", "g:float32[N,2,2,3,3]", dims="N=1:1:2 H=2:5:8 W=2:6:8", kinds=HALVES)
def nearest_volumes_reflected(self, x, g):
    return F.grid_sample(x, g, "nearest", "reflection", False)
