# ruff: noqa: C417, E501 - attacks are written as users write them
"""Memory that is shared: reshapes that copy or not by a size, names of one tensor, writes through views that values decide, layouts."""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import halves, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = X4, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20))
def A4401ReshapeOfATurned(self, x):
    """Channels first, flattened and clipped in place: a copy unless there is one step, when it is the tensor itself."""
    y = (x * 2).transpose(1, 2)
    z = y.reshape(x.shape[0], -1)
    z[z > 1.5] = 0.25
    return y, z
@forward(XT, dims=ROWS, kinds=FEW, feeds=(*lengths(1, 2, 20, text=XT), *lengths(1, 5, text=XT, rows=3)), refused="the exported model differs from the module")
def A4402ReshapeOfOneColumn(self, x):
    """Columns picked by a step and made flat, where a view is possible for one row alone; what is written counts in the picture."""
    y = x + 1
    left = y[:, ::2].reshape(-1)
    left.clamp_(min=0.5)
    right = y[:, 1::2].flatten()
    right.mul_(torch.where(right > 1, 2.0, 1.0))
    return y, left, right
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20))
def A4403NamesOfOneTensor(self, x):
    """+x, positive, real, conj, type, to, expand_as, asarray, atleast_2d, ravel and view_as are the tensor itself; each is written for rare values."""
    a, b, c, d, e, f = (x * k for k in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5))
    (+a)[a > 3.9] = 0
    torch.real(b.positive()).masked_fill_(b < -2.6, 1.0)
    c.conj().resolve_conj()[c == 3.5] = -1
    torch.asarray(d.type(torch.float32)).clamp_(max=8.75)
    torch.atleast_2d(e.expand_as(e)).relu_()
    f.ravel().view_as(f).adjoint().round_()
    return a, b, c, d, e, f
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 3, 20))
def A4404BroadcastAndWritten(self, x):
    """broadcast_tensors, broadcast_to, movedim, swapaxes, unflatten, tensor_split, hsplit and dsplit: views whose writes by value reach the base."""
    y, z = x.clone(), x * 3
    a, _ = torch.broadcast_tensors(y, torch.zeros(4))
    a[a.abs() > 1.75] = 9
    y.movedim(0, 2).swapaxes(0, 1).unflatten(0, (2, 2))[1].sub_(0.5).clamp_(min=-0.75)
    for part in z.tensor_split([1, 3], dim=-1)[1:]:
        part.copy_(torch.where(part > 2.5, part * 0, part))
    z.hsplit([1])[0].abs_()
    z.dsplit(2)[1].neg_()
    return y, z, torch.broadcast_to(z, x.shape).sum(1)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:4:6 W=1:5:6", kinds=FEW, feeds=tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h, w in ((1, 1), (1, 6), (6, 1), (6, 6))))
def A4405ChannelsLastAndWritten(self, x):
    """A picture in another layout is made flat, cropped, and written; empty_like and clone keep the layout; erasing by value in a flattened view."""
    y = x.to(memory_format=torch.channels_last) + 0
    z = torch.zeros_like(y)
    z.copy_(y)
    flat = z.permute(0, 2, 3, 1).flatten(1)
    flat[flat > 1] = 1
    k = y.contiguous().view(x.shape[0], 3, -1)
    k[..., 0] = 7
    w = y.clone(memory_format=torch.contiguous_format).flatten(2)
    w[w < -1] = -1
    return z, y, w, k
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20))
def A4406SwappedInPlace(self, x):
    """Halves swapped by tuple assignment of views, shifts in place that overlap, a reversed copy into itself, an exchange of rows by indices."""
    y, z, w = x.clone(), x.clone(), x.clone()
    y[..., :2], y[..., 2:] = y[..., 2:], y[..., :2]
    z[:, 1:] = z[:, :-1].clone() * 0.5
    w.copy_(w.flip(1))
    v = x.clone()
    v[:, [0, -1]] = v[:, [-1, 0]]
    v.select(1, 0).add_(v.select(1, -1))
    u = x.clone()
    u[..., [0, 0, 1]] = torch.stack([u[..., 1], u[..., 2], u[..., 3]], -1)
    return y, z, w, v, u
@forward(X4, "i:int64[N,3]=0:3", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "i": np.array([[3, 3, 0]])},), refused="the path through the module depends on the size")
def A4407ScattersInPlace(self, x, i):
    """scatter_ of one value, of a list with duplicates by adding, index_fill_, index_copy_, masked_scatter_ in order, put_, take, slice_scatter, select_scatter, diagonal_scatter."""
    a = x.clone()
    ii = i[:, None].expand(-1, x.shape[1], -1)
    a.scatter_(2, ii, 1.25)
    b = x.clone().scatter_add_(2, ii, x[..., :3])
    c = x.clone()
    c.masked_scatter_(x > 0.5, x.flip(1) * 10)
    d = x.clone()
    d.view(-1).put_(torch.tensor([0, 1, 0]), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    e = x.index_fill(2, torch.tensor([1, -1]), 5.0).index_copy(2, torch.tensor([0, 2]), x[..., 2:])
    f = torch.slice_scatter(x, x[..., :2] * 2, 2, 0, 4, 2)
    g = torch.select_scatter(f, x[:, 0] * 0 + 3, 1, -1)
    return a, b, c, d, e, f, g, torch.take(x, i), torch.diagonal_scatter(x, x[..., 0, :1] * 0 + 2, 0, 1, 2)[:, :1] if x.shape[1] == 1 else g[:, :1]
@forward(XT, "h:float32[N,6]", dims=ROWS, kinds=FEW, feeds=(*(lambda t=t: {"x": np.arange(t, dtype=np.float32)[None] - 3, "h": np.ones((1, 6), np.float32)} for t in (1, 5, 6, 7, 20)),))
def A4408RingInPlace(self, x, h):
    """A history of six is moved by a roll in place, what is new is written to its end by a negative slice that may be longer than the history."""
    k = min(x.shape[1], 6)
    h = torch.roll(h, -k, 1)
    h[:, -k:] = x[:, -k:]
    h[:, :-k] *= 0.9 if k < 6 else 1.0
    peak = h.amax(1, keepdim=True)
    h.div_(peak.abs().clamp_(min=1e-6))
    return h, peak
@attack(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 20))
class A4409DropPathAndBack(nn.Module):
    """Layers that give their argument back in eval mode (Dropout, Identity, DropPath, LayerDrop, a no-op Upsample), each written in place behind."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Identity(), nn.Dropout(), nn.AlphaDropout(), nn.Dropout1d(), nn.FeatureAlphaDropout())
        self.out = nn.ReLU(inplace=True)
    def forward(self, x):
        y = x * 1.25
        z = self.net(y)
        z[z > 2] -= 1
        w = nn.Unflatten(2, (2, 2))(nn.Flatten(2)(y))
        self.out(w[..., 0])
        nn.Hardtanh(-0.9, 0.9, inplace=True)(F.dropout(y[:, ::2], 0.5, self.training))
        return y, z, w
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20))
def A4410AugmentedInPlace(self, x):
    """`x += `, `x[...] =`, `x *= mask`, `x.swapdims_`, `x.t_`, `squeeze_`, `unsqueeze_`, `resize_as_`, `set_`: names that a loop binds anew, a list that shares."""
    rows = [x * (k + 1) for k in range(3)]
    both = rows + rows[:1]
    for k, r in enumerate(both):
        r += k
        r *= (r < 4).float()
    a = rows[0].unsqueeze_(1).squeeze_(1)
    b = rows[1]
    b = b + 1
    b -= a
    c = [rows[2]] * 2
    c[0][..., 0] = -c[1][..., 1]
    return a, b, *c, both[3]
@forward(X4, dims="N=1:1:2 T=1:6:12", kinds=FEW, feeds=lengths(1, 2, 12))
def A4411WrittenInAComprehension(self, x):
    """Writes in comprehensions, through map, by a helper with a default list, in a nested function over a view, by slice objects and Ellipsis."""
    y = x.clone()
    def norm(v, seen=[]):  # noqa: B006
        seen.append(v.shape[-1])
        v /= v.abs().amax(-1, keepdim=True).clamp(min=1.0)
        return v
    parts = [norm(p) for p in y.split(2, -1)]
    list(map(lambda p: p.masked_fill_(p == 1.0, 2.0), y.unbind(-1)[::2]))
    s = slice(None, None, 2)
    y[(slice(None), s, ...)] = y[:, s] + 10
    y[..., -1:][y[..., -1:] < 0] = 3
    return y, torch.cat(parts, -1)
@attack(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 20))
class A4412CopiesOfItself(nn.Module):
    """A deep copy of a layer is made in forward and changed, a shallow copy shares its weights, a state dict is read back from a clone, tied weights twice."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("table", torch.eye(4))
    def forward(self, x):
        other = copy.deepcopy(self.a)
        with torch.no_grad():
            other.weight.mul_(0.5).clamp_(-0.2, 0.2)
        table = self.table.clone()
        table[0, 1:] = x[0, 0, 1:]
        light = copy.copy(self.a)
        return other(x) + self.b(x), x @ table, light(x) - self.a(x), x @ self.table
@forward("x:float32[B,T]", "m:bool[B,T]", dims="B=1:2:3 T=1:7:12", kinds=FEW)
def A4413MasksThatAreViews(self, x, m):
    """A mask that is a view of another is written before and after it is used, negated in place, joined by |= and ^=, read as numbers."""
    k = m.clone()
    first = k[:, :1]
    y = x.masked_fill(k, 0.0)
    first |= x[:, :1] > 0
    z = x.masked_fill(k, 0.0)
    k[:, ::2].logical_not_()
    k ^= m
    k[:, -1] &= ~first[:, 0]
    w = torch.where(k, x, y)
    w[~k.any(1)] = -1
    return y, z, w, k, k.cumsum(1), first.byte()
@forward(X4, dims=ROWS, kinds=FEW, feeds=(normal(1, 1, 4), halves(2, 5, 4), halves(1, 20, 4)), refused="the module cannot be exported")
def A4414OutArguments(self, x):
    """out= a slice, a transposed view, an expanded buffer's row, a tensor that is also an input, a tuple of two, and what is read of it later."""
    y = torch.zeros(x.shape[0], x.shape[1], 8)
    torch.mul(x, 2, out=y[..., :4])
    torch.exp(x.clamp(max=1), out=y[..., 4:])
    z = x.clone()
    torch.add(z, z.flip(-1), out=z)
    v, i = torch.empty(x.shape[0], 4), torch.empty(x.shape[0], 4, dtype=torch.long)
    torch.max(x, 1, out=(v, i))
    t = torch.empty(4, x.shape[0])
    torch.sum(x, 1, out=t.T)
    return y, z, v, i, t
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20))
def A4415ViewsOfTypes(self, x):
    """view_as_complex written, its real part written, view_as_real of a product, chunks as re and im, a polar form turned in place by value."""
    y = x.clone()
    c = torch.view_as_complex(y.unflatten(-1, (2, 2)))
    c.mul_(1j)
    c.real[c.real > 1] = 1
    c.imag.clamp_(min=-1)
    d = torch.complex(y[..., 0], y[..., 1])
    e = torch.view_as_real(d * d.conj())
    e[..., 1] += 1
    return y, e, torch.view_as_real(c), d.angle()
@forward("x:float32[N,T,T]", dims="N=1:1:2 T=1:5:8", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,T]", N=1, T=t) for t in (1, 2, 8)), refused="the path through the module depends on the size")
def A4416DiagonalsAndTriangles(self, x):
    """A diagonal is written through a view by value, fill_diagonal_ of a row, triu_ in place, off diagonals by strides, a symmetric copy from below."""
    y = x.clone()
    d = y.diagonal(dim1=1, dim2=2)
    d[d < 0] = 0
    d += 1
    z = y.tril().clone()
    z.mT.add_(y.tril(-1))
    w = x.clone().triu_(1)
    w[:, range(x.shape[1]), range(x.shape[1])] = -1
    f = x.flatten(1).clone()
    f[:, :: x.shape[1] + 1] = 3
    for m in w:
        m.fill_diagonal_(2.5)
    return y, z, w, f.view_as(x), d
@forward(X4, dims=ROWS, kinds=FEW, feeds=lengths(1, 2, 20, rows=1) + lengths(1, 5, rows=3))
def A4417ContiguousOfTheMiddle(self, x):
    """reshape of a middle slice, of an expanded row, of one channel, of a permuted picture with an axis of one: each is clipped in place."""
    n, t, d = x.shape
    y, z, w = x + 1, x + 2, x + 3
    a = y[:, :, 1:2].reshape(n, t)
    a.clamp_(max=1.25)
    b = z.permute(1, 0, 2).reshape(n * t, d)
    b[b > 2.5] = 0
    c = w.unsqueeze(0).permute(3, 1, 2, 0).reshape(d, n, t)
    c.clamp_(min=3)
    return y, z, w, a, b, c
