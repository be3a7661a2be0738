"""What the sixty-second round and its networks showed, each class once more."""
# ruff: noqa: E501, PT018 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("x:float32[N,8,H,W]=-2:2", dims="N=1:1:2 H=1:8:24 W=1:8:24", kinds=FINITE)
class A7605WindowsOrAll(nn.Module):
    """Attention in windows of 4 where both sizes divide, over the whole map else; the branch is asked twice."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.q = nn.Linear(8, 24)

    def forward(self, x):
        n, c, h, w = x.shape
        if h % 4 == 0 and w % 4 == 0:
            y = x.view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
        else:
            y = x.flatten(2).transpose(1, 2)
        q, k, v = self.q(y).chunk(3, -1)
        o = F.scaled_dot_product_attention(q, k, v)
        if h % 4 == 0 and w % 4 == 0:
            return o.view(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)
        return o.transpose(1, 2).reshape(n, c, h, w)


@forward("x:float32[N,T,4]=-2:2", dims="N=1:1:2 T=1:5:64", kinds=FINITE)
def A7606ChunksOfSixteen(self, x):
    """Means of chunks of sixteen where the length divides and is more than one chunk, deviations from the mean else."""
    t = x.shape[1]
    if t % 16 == 0 and t > 16:
        return x.view(x.shape[0], t // 16, 16, 4).mean(2).repeat_interleave(16, 1)
    return x - x.mean(1, keepdim=True)


@forward("x:float32[N,2,H,W]=-2:2", dims="N=1:1:2 H=6:9:18 W=6:8:18", kinds=FINITE)
def A7607BlocksByEitherSide(self, x):
    """Blocks along the side that divides by three, along the other where that does, and none else."""
    n, c, h, w = x.shape
    if h % 3 == 0:
        return x.view(n, c, h // 3, 3, w).amax(3).sum(2)
    if w % 3 == 0:
        return x.view(n, c, h, w // 3, 3).amin(4).sum(2).repeat_interleave(3, -1)
    return x.mean(2) * w


@forward("x:float32[N,T]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7608ChecksOfValues(self, x):
    """Asserts, raises and torch's own checks of values, before a branch by size that only torch.export can follow."""
    if not (x < 1e30).all():
        raise ValueError("too large")
    assert x.shape[1] > 0 and x.abs().max() < 1e30
    torch._assert(torch.isfinite(x).all(), "finite")
    torch._check_tensor_all(x > -1e30)
    if x.shape[1] > 4:
        return x.cumsum(1)
    return x * 2


@forward("x:float32[N,T]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="the path through the module depends on the values")
def A7609AnAssertThatIsCaught(self, x):
    """A check whose error is caught is a decision by value."""
    try:
        assert (x < 1).all()
    except AssertionError:
        return x * 2
    return x * 3


@forward("x:float32[N,T]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7610EyeOfBools(self, x):
    """An identity of booleans of a moving size, by a recording: ONNX Runtime has no EyeLike of bool."""
    m = torch.eye(x.shape[1], dtype=torch.bool).unsqueeze(0).repeat(x.shape[0], 1, 1) | (x[:, :, None] > x[:, None])
    return x[:, None].masked_fill(~m, 0.0).sum(2)
