"""The smallest forms of what was refused."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,4]"
D = "N=1:2:3 T=2:5:9"


@attack("x:float32[N,3,S,S]", dims="N=1:1:2 S=28:40:72", kinds=("normal", "unit", "halves"))
class A7835ResizeLargeOnesAndAverage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, 2, 1)

    def forward(self, x):
        if x.shape[-1] > 32:
            x = F.interpolate(x, size=(32, 32), mode="bilinear", align_corners=False)
        return self.c(x).mean((2, 3))


@attack(X, dims=D, kinds=FINITE)
class A7836FunctionalCallScaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

    def forward(self, x):
        return torch.func.functional_call(self.net, {k: v * 0.5 for k, v in self.net.named_parameters()}, (x,))


@attack(X, dims=D, kinds=FINITE)
class A7837EnsembleByVmap(nn.Module):
    """The ensemble of torch's own tutorial."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)) for _ in range(3))

    def forward(self, x):
        params, buffers = torch.func.stack_module_state(list(self.nets))
        return torch.func.vmap(lambda p, b, x: torch.func.functional_call(self.nets[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x).mean(0)


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:6:12", kinds=FINITE)
def A7838DiagonalCopied(self, x):
    n, t = x.shape
    sq = torch.zeros(n, t, t)
    sq.diagonal(dim1=1, dim2=2).copy_(x)
    return sq


@attack(X, dims=D, kinds=FINITE)
class A7839ViewOfAWeightKept(nn.Module):
    """A slice of a parameter kept as a plain attribute in __init__."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(6, 4)
        self.first = self.e.weight[:4]

    def forward(self, x):
        return self.e(x.argmax(-1)) @ self.first


@attack(X, dims=D, kinds=FINITE)
class A7858DataScaledAndPutBack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 4)

    def forward(self, x):
        y = self.f(x)
        self.f.weight.data.mul_(2)
        z = self.f(y)
        self.f.weight.data.div_(2)
        return z


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:6:9", kinds=("normal", "unit", "halves", "positive"))
class A7859FourierLayerOfBuffers(nn.Module):
    """FNO's SpectralConv1d as in the repository: weights are a complex parameter, two modes, out_ft by zeros of cfloat."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3, 2, dtype=torch.cfloat))

    def forward(self, x):
        n, t, c = x.shape
        ft = torch.fft.rfft(x.transpose(1, 2))
        out = torch.zeros(n, 3, t // 2 + 1, dtype=torch.cfloat)
        out[:, :, :2] = torch.einsum("bix,iox->box", ft[:, :, :2], self.w)
        return torch.fft.irfft(out, n=t), torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
