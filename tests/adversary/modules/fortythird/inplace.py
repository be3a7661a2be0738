
"""Variants of the forty-third round's writes in place into what is a view, or the tensor itself, at some sizes only."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import sprinkled

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
SIZES = ((1, 1), (1, 2), (1, 9), (3, 1), (3, 3), (1, 16), (2, 20))
X4 = "x:float32[N,T,4]"


some = partial(sprinkled, sizes=SIZES)


BIG = {"dims": ROWS, "kinds": FEW, "feeds": some(7e4)}
BIG4 = {"dims": ROWS, "kinds": FEW, "feeds": some(7e4, more=(4,))}


@forward(XT, **BIG)
def A4620SumToSizeDoubled(self, x):
    """An alias of one row is doubled in place."""
    y = x + 0
    z = y.sum_to_size(1, x.shape[1])
    z.mul_(2)
    return y, z
@forward(XT, **BIG)
def A4621SumToSizeOfSteps(self, x):
    """An alias of one step, limited."""
    y = x + 0
    y.sum_to_size(x.shape[0], 1).clamp_(max=6e4)
    return y
@forward(XT, **BIG)
def A4622SumToSizeOfAll(self, x):
    """An alias of one element alone."""
    y = x + 0
    y.sum_to_size(1, 1).clamp_(max=6e4)
    return y
@forward(XT, **BIG)
def A4623ReduceBySize(self, x):
    """A mean where there are several rows, the rows themselves where there is one."""
    y = x + 0
    z = y.mean(0, keepdim=True) if x.shape[0] > 1 else y
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4624CatOfWhatIsThere(self, x):
    """A list that is joined where it has two parts, its part itself where it has one."""
    y = x + 0
    parts = y.split(16, 1)
    z = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4625PaddedWhereNeeded(self, x):
    """A pad to a multiple of four where one is missing, else the tensor itself."""
    y = x + 0
    k = -x.shape[1] % 4
    z = F.pad(y, (0, k)) if k else y
    z.clamp_(max=6e4)
    return y, z[:, : x.shape[1]]
@forward(XT, **BIG)
def A4626ResizedWhereNeeded(self, x):
    """A resize to sixteen, the tensor itself where it has sixteen, and large values replaced."""
    y = x + 0
    z = y if x.shape[1] == 16 else F.interpolate(y[:, None], 16)[:, 0]
    z[z > 6e4] = 0
    return y, z
@forward(X4, **BIG4)
def A4627HeadsInPlace(self, x):
    """A reshape of heads, a view at one step, limited by a mask."""
    y = x + 0
    f = y.view(x.shape[0], -1, 2, 2).transpose(1, 2).reshape(-1, x.shape[1], 2)
    f[f > 6e4] = -1
    return y, f
@forward(X4, **BIG4)
def A4628HeadsClamped(self, x):
    """A reshape of heads, a view at one step, limited by clamp_."""
    y = x + 0
    f = y.view(x.shape[0], -1, 2, 2).transpose(1, 2).reshape(-1, x.shape[1], 2)
    f.clamp_(max=6e4)
    return y, f
@forward(X4, **BIG4)
def A4629MaskOfTurned(self, x):
    """A turned tensor's rows, a view at one step, by a mask in one place."""
    y = x + 0
    f = y.transpose(1, 2).reshape(x.shape[0], -1)
    f[f > 6e4] = -1
    return y, f
@forward(X4, **BIG4)
def A4630TwoReshapes(self, x):
    """Two reshapes of one tensor, either a view at another size."""
    y = x + 0
    y.transpose(1, 2).reshape(x.shape[0], -1).clamp_(max=6e4)
    y.transpose(0, 1).reshape(-1, 4).clamp_(max=5e4)
    return y
@forward(X4, **BIG4)
def A4631ReshapeAsAndFlatten(self, x):
    """reshape_as, flatten, ravel, unflatten of what is turned."""
    y, u, v = x + 0, x + 1, x + 2
    y.mT.reshape_as(x).clamp_(max=6e4)
    u.transpose(0, 1).flatten().clamp_(max=6e4)
    v.transpose(0, 1).ravel().masked_fill_(v.transpose(0, 1).ravel() > 6e4, 0)
    return y, u, v
@forward(X4, **BIG4)
def A4632ToLayout(self, x):
    """clone and to with a memory format, empty_like, view(dtype) and back."""
    y = x + 0
    z = y.mT.to(memory_format=torch.contiguous_format)
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4633SameTwice(self, x):
    """One tensor under two names is returned twice."""
    y = x + 0
    z = y.float()
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4634CpuOfIt(self, x):
    """cpu() of a tensor is the tensor."""
    y = x + 0
    y.cpu().clamp_(max=6e4)
    return y * 1
@forward(XT, **BIG)
def A4635RealOfIt(self, x):
    """The real part of a real tensor is the tensor, positive and conj too."""
    y = x + 0
    torch.real(y).clamp_(max=6e4)
    (+y).sub_(1)
    y.conj().mul_(2)
    return y * 1
@forward(XT, **BIG)
def A4654RealAttribute(self, x):
    """The attribute real, filled in place."""
    y = x + 0
    z = y.real
    z.masked_fill_(z > 6e4, 1.0)
    return y, z
@forward(XT, **BIG)
def A4655TypeAsAndContiguous(self, x):
    """type_as and contiguous, filled in place."""
    y = x + 0
    z = y.to(torch.float32).type_as(x).contiguous()
    z.masked_fill_(z > 6e4, 1.0)
    return y, z
@forward(XT, **BIG)
def A4656CpuReturned(self, x):
    """cpu() written in place and returned beside its base."""
    y = x + 0
    z = y.cpu()
    z.clamp_(max=6e4)
    return y, z
@forward(X4, **BIG4)
def A4657ReshapeAsOnly(self, x):
    """reshape_as of what is turned."""
    y = x + 0
    y.mT.reshape_as(x).clamp_(max=6e4)
    return y
@forward(X4, **BIG4)
def A4658FlattenOfTurned(self, x):
    """flatten of turned rows."""
    u = x + 1
    u.transpose(0, 1).flatten().clamp_(max=6e4)
    return u
@forward(X4, **BIG4)
def A4659TwoOfThem(self, x):
    """reshape_as of one tensor and flatten of another."""
    y, u = x + 0, x + 1
    y.mT.reshape_as(x).clamp_(max=6e4)
    u.transpose(0, 1).flatten().clamp_(max=6e4)
    return y, u
@forward(X4, **BIG4)
def A4660RavelAndReshape(self, x):
    """reshape_as of one tensor and a mask of another's ravel."""
    y, v = x + 0, x + 2
    y.mT.reshape_as(x).clamp_(max=6e4)
    v.transpose(0, 1).ravel().masked_fill_(v.transpose(0, 1).ravel() > 6e4, 0)
    return y, v
