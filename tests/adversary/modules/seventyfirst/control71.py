"""Branches by sizes of two inputs, by strides, dtypes, None and values; loops on convergence; comprehension, sorted, unique."""
# ruff: noqa: E501, C416 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
XZ = (X, "z:float32[N,S]")
DZ = "N=1:2:3 T=1:4:8 S=1:4:8"


@forward(*XZ, dims=DZ, kinds=FINITE)
def A8257LongerFirst(self, x, z):
    """The longer of two goes first, a tie keeps the order; then a bilinear form."""
    a, b = sorted((x, z), key=lambda v: -v.shape[1])
    return torch.cat((a, b), 1), a.sum(1) - 2 * b.sum(1)


@forward(*XZ, dims=DZ, kinds=FINITE)
def A8258DivisibleSizes(self, x, z):
    """Where one size divides the other it is repeated, otherwise both are interpolated to the larger."""
    t, s = x.shape[1], z.shape[1]
    if t % s == 0:
        return x + z.repeat(1, t // s)
    if s % t == 0:
        return x.repeat_interleave(s // t, 1) + z
    m = max(t, s)
    return F.interpolate(x[:, None], m, mode="linear")[:, 0] + F.interpolate(z[:, None], m, mode="nearest")[:, 0]


@forward(*XZ, dims=DZ, kinds=FINITE)
def A8259RatioOfSizes(self, x, z):
    """A scale by the ratio of sizes in python, another path when the ratio is over two, a square when both are equal."""
    r = x.shape[1] / z.shape[1]
    if r > 2:
        return x[:, ::2].sum(1) * r
    if r == 1:
        return (x * z).sum(1)
    return (x.mean(1) + z.mean(1)) * round(r, 1)


@forward("x:float32[N,H,W]", dims="N=1:2:4 H=1:4:8 W=1:4:8", kinds=FINITE)
def A8260NumelBranch(self, x):
    """Chunked when numel is over 40, whole otherwise; the chunked path forgets the rest."""
    if x.numel() > 40:
        k = x.shape[1] // 2 * 2
        return x[:, :k].reshape(x.shape[0], -1).sum(1)
    return x.reshape(x.shape[0], -1).sum(1)


@forward("x:float32[N,H,W]", dims="N=1:2:3 H=1:4:6 W=1:4:6", kinds=FINITE, refused="the path through the module depends on the size:")
def A8261Contiguity(self, x):
    """A transposed view is contiguous when a side is 1: another branch; strides used as numbers."""
    y = x.transpose(1, 2)
    if y.is_contiguous():
        return y * 2
    return y + y.stride(1) * 0.1 + x.stride(0)


@forward(X, dims=D, kinds=FINITE)
def A8262DtypeAndGrad(self, x):
    """Branches by dtype, requires_grad, is_leaf, is_floating_point and grad mode."""
    y = x * 3 if x.requires_grad else x * 2
    y = y + (1.0 if x.dtype == torch.float32 else 0.5)
    if torch.is_grad_enabled():
        y = y - 0.25
    return y if y.is_floating_point() else y.float()


@forward("x:float32[N,T]", dims=D, kinds=FINITE)
def A8263NoneInputs(self, x, mask=None, z=None):
    """Optional inputs that stay None; a default that is filled in by the first size."""
    z = x.new_ones(x.shape[1]) if z is None else z
    return x * z if mask is None else x.masked_fill(mask, 0)


@forward(X, dims=D, kinds=FINITE, refused="the path through the module depends on the values of the inp")
def A8264AnyNegative(self, x):
    """if (x < 0).any(): another formula."""
    if (x < 0).any():
        return x.abs().sqrt()
    return x * x


@forward(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size:")
def A8265ItemScale(self, x):
    """x.max().item() as a python number in a clamp, a power and a condition."""
    m = x.max().item()
    return x / m if m > 1 else x - m


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 5),), refused="the path through the module depends on the values of the inp")
def A8266ConvergingLoop(self, x):
    """Newton's square root until the step is small, at most 50 steps."""
    a = x.abs() + 0.5
    y = a.clone()
    for _ in range(50):
        n = 0.5 * (y + a / y)
        if (n - y).abs().max() < 1e-6:
            break
        y = n
    return y


@forward(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size:")
def A8267AssertPositive(self, x):
    """assert on values, try/except around an op, then a fallback."""
    try:
        assert x.sum() > -1e6, "never"
        return x.reshape(x.shape[0], 2, -1).sum(2)
    except RuntimeError:
        return torch.stack((x.sum(1), x.amax(1)), 1)


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:5:9", kinds=("normal", "halves", "zeros"), refused="the exported model differs from the module: output")
def A8268TolistWeights(self, x):
    """x[0].tolist() as python floats, sorted in python, a rank as a weight."""
    v = x[0].tolist()
    order = sorted(range(len(v)), key=v.__getitem__)
    return x[:, order]


@forward(X, dims=D, kinds=("normal", "halves", "zeros"))
def A8269MaskedSelectMean(self, x):
    """masked_select of positives, its mean with a fallback for none, a scatter back."""
    m = x > 0.5
    v = x.masked_select(m)
    out = torch.zeros_like(x)
    out[m] = v * 2
    return out, v.sum() / max(v.numel(), 1)


@forward("x:int64[N,T]=0:5", dims="N=1:2:4 T=1:5:9")
def A8270UniqueCounts(self, x):
    """unique with inverse and counts used to weight each element by the inverse of its count."""
    u, inv, c = torch.unique(x, return_inverse=True, return_counts=True)
    return (1.0 / c.float())[inv], u.numel() * torch.ones(1)


@forward("x:float32[N,T,3]", dims="N=1:2:4 T=1:5:9", kinds=FINITE)
def A8271IterateTensor(self, x):
    """for row in x, zip with enumerate, a dict by index, `in` on a size tuple, a list of stacks."""
    rows = [r.mean(0) * (i + 1) for i, r in enumerate(x)]
    d = {i: r for i, r in enumerate(rows)}
    s = torch.stack([d[k] for k in sorted(d, reverse=True)])
    return s * 2 if 4 in x.shape else s


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:5:9", kinds=FINITE)
def A8272BoolTensorIf(self, x):
    """if t: on a 0-d tensor that is a size comparison; bool(t) of a shape tensor; while on a tensor of a size."""
    n = torch.tensor(x.shape[1])
    y = x
    if n % 2 == 0:
        y = y[:, ::2]
    k = torch.tensor(x.shape[1])
    while k > 2:
        y = y * 0.5
        k = k // 2
    return y


@forward("x:float32[N,T,4]", "n:int64[N]=0:9", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "zeros"))
def A8273BoolRowsOfLengths(self, x, n):
    """A padded batch flattened by a boolean index, a layer on the flat, and back by index assignment with zeros elsewhere."""
    t = x.shape[1]
    m = torch.arange(t, device=x.device)[None] < n[:, None]
    flat = x[m].cumsum(0)
    out = x.new_zeros(x.shape)
    out[m] = flat
    return out


@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8274SliceKinds(self, x):
    """Ellipsis, None, negative starts beyond the size, empty slices summed, steps over the size, mixed int and list indices around a slice."""
    return (
        x[..., -3:, None, 1:],
        x[:, 7:].sum(1),
        x[:, ::11],
        x[0, :, [0, 2, 3]],
        x[:, [0, -1], 1],
        x[:, -1:-100:][..., 0],
        x[:, None, -2:, ..., [3, 0]],
    )


@forward("x:float32[N,T,4]", "i:int64[N]=-1:0", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8275AdvancedMixed(self, x, i):
    """Advanced indices with a slice between them, negative from an input, index_put accumulate with duplicates, scatter amax with and without self."""
    a = x[i, :, i]
    y = x.clone()
    y.index_put_((i, i), x[:, 0] * 0 + 1, accumulate=True)
    j = (i + 1)[:, None, None].expand(-1, 1, 4)
    s = x.scatter_reduce(1, j * 0, x[:, :1] * 3, "amax", include_self=True)
    p = x.scatter_reduce(1, j * 0, x[:, -1:], "mean", include_self=False)
    return a, y, s, p


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:5:9", kinds=FINITE, refused="the path through the module depends on the size:")
def A8276InplaceViews(self, x):
    """In-place: column adds, t_(), chunk writes, out= arguments, swaps by tuple assignment through views."""
    y = x.clone()
    y[:, 0] += y[:, 1]
    a, b = y[:, 0], y[:, -1]
    y[:, 0], y[:, -1] = b, a
    z = y.clone().t_()
    for i, c in enumerate(z.chunk(3)):
        c.mul_(i + 1)
    o = torch.empty_like(x)
    torch.add(x, y, alpha=2, out=o)
    return y, z, o.clamp_(min=-1)


@forward(X, dims=D, kinds=FINITE)
def A8277InputMutated(self, x):
    """The input is mutated through a view after a part of it was kept as a view, and given back."""
    k = x[:, :1]
    x.relu_()
    x[:, -1:] -= 1
    return k, x, x.view(-1)[: x.shape[0]]


@attack(*XZ, dims=DZ, kinds=FINITE)
class A8278LayerBySizes(nn.Module):
    """A ModuleDict keyed by the comparison of two sizes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.d = nn.ModuleDict({k: nn.Linear(1, 2) for k in ("lt", "eq", "gt")})

    def forward(self, x, z):
        k = "eq" if x.size(1) == z.size(1) else "lt" if x.size(1) < z.size(1) else "gt"
        return self.d[k](x[..., None]).sum(1) * z.sum(1, keepdim=True)
