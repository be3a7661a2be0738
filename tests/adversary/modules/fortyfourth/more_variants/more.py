# ruff: noqa: E501 - attacks are written as users write them
"""Wide unsigned types, default types, sparse weights, modules in half, dynamic quantisation, decisions by tensors of sizes, ranges in multiples."""

from __future__ import annotations

import contextlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.values import values_at

XT, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
ROWS = {"dims": "N=1:2:3 T=1:9:20", "kinds": FEW}


@forward("x:uint16[N,T]=0:65535", dims="N=1:2:3 T=1:9:20", feeds=(lambda: {"x": np.array([[0, 1, 65535, 32768, 32767, 256]], np.uint16)},))
def A4951WordsWithoutSign(self, x):
    """16 bits without a sign: as numbers, as a depth in metres, halves of the word, joined again."""
    i = x.to(torch.int32)
    return i.float() / 1000, i >> 8, (i & 255).to(torch.uint8), i.to(torch.int16), torch.where(i == 65535, 0.0, i.float()), ((i * i) >> 16)
@forward("x:uint8[N,T,4]=0:255", dims="N=1:2:3 T=1:9:20", feeds=(lambda: {"x": np.array([[[255, 255, 255, 255], [0, 0, 128, 63], [1, 0, 0, 128]]], np.uint8)},), refused="the module cannot be exported")
def A4952BytesJoinedToWords(self, x):
    """Four bytes joined to a whole number by shifts, as bits of a float, little end first."""
    i = x.int()
    w = i[..., 0] | (i[..., 1] << 8) | (i[..., 2] << 16) | (i[..., 3] << 24)
    return w, w.view(torch.float32).nan_to_num(0.0, 1.0, -1.0), w >> 31, (i[..., 3] & 0x7F) << 1 | (i[..., 2] >> 7), x.flip(-1)
@forward(XT, **ROWS, feeds=sprinkled(16777217.0, 1e-9, sizes=((1, 1), (3, 20))), refused="the exported model differs from the module")
def A4953DefaultOfDouble(self, x):
    """The default type is double within: new tensors, scalars as tensors, means of whole numbers."""
    torch.set_default_dtype(torch.float64)
    try:
        a = torch.tensor(0.1) * x
        b = torch.arange(x.shape[1]) / 3
        c = torch.ones(x.shape[1]) * 16777217
    finally:
        torch.set_default_dtype(torch.float32)
    return a, (b * 3).floor().float(), (c - 16777216).float() + x, torch.ones(1) * x
@attack(X4, **ROWS)
class A4954SparseNeighbours(nn.Module):
    """A sparse matrix as a buffer, not coalesced, in both layouts, multiplied by what comes in."""
    def __init__(self):
        super().__init__()
        i = torch.tensor([[0, 1, 1, 3, 3], [1, 0, 0, 2, 2]])
        self.register_buffer("a", torch.sparse_coo_tensor(i, torch.tensor([1.0, 2.0, 3.0, 4.0, -4.0]), (4, 4)))
    def forward(self, x):
        y = x.flatten(0, 1).T
        return torch.sparse.mm(self.a, y).T.view(x.shape), (self.a.to_dense() @ y).sum(1)
@attack("x:float16[N,T,4]", dims="N=1:2:3 T=1:9:20", kinds=FEW, feeds=(lambda: {"x": np.full((1, 3, 4), 300, np.float16)}, lambda: {"x": np.full((1, 1, 4), 6e-8, np.float16)}))
class A4955AllInHalf(nn.Module):
    """A small block in half: linear, norm, attention, gelu, a mean, squares that overflow."""
    def __init__(self):
        super().__init__()
        self.l, self.n = nn.Linear(4, 4), nn.LayerNorm(4)
        self.half()
    def forward(self, x):
        y = self.n(x)
        return self.l(y), F.gelu(y), x.square().mean(1), F.scaled_dot_product_attention(y[:, None], y[:, None], y[:, None]), x.sum((1, 2)), x > 0.3
@attack(X4, **ROWS, refused="the module cannot be exported")
class A4956QuantisedDynamically(nn.Module):
    """torch.ao's dynamic quantisation of linear layers."""
    def __init__(self):
        super().__init__()
        self.net = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), {nn.Linear}, torch.qint8)
    def forward(self, x):
        return self.net(x)
@attack(X4, **ROWS)
class A4957InParallel(nn.Module):
    """DataParallel without a device, a wrapper from swa_utils, a Sequential that is sliced."""
    def __init__(self):
        super().__init__()
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        self.a, self.b, self.c = nn.DataParallel(net), torch.optim.swa_utils.AveragedModel(net), net[:2]
    def forward(self, x):
        return self.a(x), self.b(x), self.c(x)
@forward(XT, dims="N=1:1:2 T=1:100:4000", kinds=FEW[:2], feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 96, 97, 1234, 2999, 4000)))
def A4958DecidedByATensorOfSizes(self, x):
    """A sum of places as a tensor decides, as does a count of a mask of places."""
    t = x.shape[1]
    s = torch.arange(t).sum() % 97
    return x * (2.0 if s == 5 else 1.0), x * torch.where(s == 5, 3.0, 1.0), x + (torch.arange(t) % 7 == 3).sum()
@forward(XT, dims="N=1:1:2 T=8:96:4000%8", kinds=FEW[:2], feeds=tuple(values_at(XT, N=1, T=t) for t in (8, 16, 1232, 2000, 3000, 4000)))
def A4959MultiplesOfEight(self, x):
    """Lengths in multiples of eight: a rest by sixteen is one of two, folded by eight, by sixteen behind a pad, quotients by three."""
    t = x.shape[1]
    y = F.pad(x, (0, t % 16)).view(x.shape[0], -1, 16)
    return x.view(x.shape[0], 8, t // 8).mean(1), y.amax(-1), x[:, : t // 3], x * (t % 24), F.avg_pool1d(x[:, None], 3, 5)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=32:64:640%32 W=32:64:640%32", kinds=FEW[:2], feeds=tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h, w in ((32, 640), (640, 32), (96, 160), (608, 32))))
def A4960StridesOf32(self, x):
    """Maps at strides eight to 32, their sizes by division, up again to the first, anchors by place, a flat order."""
    out = []
    for s in (8, 16, 32):
        f = F.avg_pool2d(x, s)
        h, w = f.shape[2:]
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        out.append(torch.cat([f.flatten(2).mT, (torch.stack([gx, gy], -1).view(1, -1, 2) + 0.5).expand(x.shape[0], -1, 2) * s], -1))
    up = F.interpolate(F.avg_pool2d(x, 32), size=(x.shape[2] // 8, x.shape[3] // 8), mode="nearest")
    return torch.cat(out, 1), up, torch.tensor([v.shape[1] for v in out]).cumsum(0)
@forward(XT, **ROWS, feeds=sprinkled(7e4, sizes=((1, 1), (3, 20), (1, 2))))
def A4961PartsOfComplex(self, x):
    """Real and imaginary parts are written in place, through view_as_real, and by an index."""
    z = torch.complex(x, x.flip(1)).clone()
    z.real.clamp_(max=6e4)
    torch.view_as_real(z)[..., 1] *= 2
    w = z.clone()
    w[:, 0] = 1j
    w.imag[:, -1:] = 5.0
    return torch.view_as_real(z), w.real, w.imag, z.abs()
@attack(X4, **ROWS)
class A4962AutocastWithin(nn.Module):
    """bfloat16 by autocast with a part in FP32 by a nested one, norms between, a cache that is off, an ExitStack."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = nn.Linear(4, 8), nn.Linear(8, 4), nn.LayerNorm(8)
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.autocast("cpu", torch.bfloat16, cache_enabled=False))
            y = self.a(x)
            z = self.n(y)
            with torch.autocast("cpu", enabled=False):
                s = z.float().softmax(-1)
            w = self.b(s)
        return y.float(), s, w.float(), (w + x).dtype.itemsize * x
@torch.library.custom_op("r44::gate", mutates_args=())
def r44_gate(x: torch.Tensor) -> torch.Tensor:
    """Relu but for one length."""
    return x.relu() if x.shape[1] != 13 else x.abs()
@r44_gate.register_fake
def _(x):
    return torch.empty_like(x)
@forward(XT, **ROWS, refused="the module cannot be exported")
def A4963OperatorOfOnesOwn(self, x):
    """A custom operator with a fake form."""
    return r44_gate(x) + 1
@forward(XT, **ROWS, refused="the module itself raises")
def A4964NamesOfAxes(self, x):
    """Named axes: a sum by name, and away with them."""
    y = (x + 0).refine_names("N", "T")
    return y.sum("T").rename(None), y.align_to("T", "N").rename(None)
@forward(XT, "k:int64[]=0:5", **ROWS)
def A4965NumbersAsInputs(self, x, k):
    """An input without dims is a factor, a place modulo the size, an exponent, a choice, a shift by gather."""
    t = x.shape[1]
    i = (torch.arange(t) - k) % t
    return x * k, x[:, i], x.abs() ** k, torch.where(k > 2, x, -x), x.index_select(1, (k % t).view(1)), torch.stack([x, -x, x * 2])[k % 3]
@forward("x:float64[N,T]", dims="N=1:2:3 T=1:9:20", kinds=FEW, feeds=(lambda: {"x": np.array([[1e300, 16777217.0, 1e-300, 0.1]])},))
def A4966DoublesComeIn(self, x):
    """FP64 comes in and goes out as FP32 and whole numbers."""
    return x.float(), x.clamp(-1e9, 1e9).long(), (x > 16777216).int(), x.clamp(-1e3, 1e3).sum(1).float()
@forward(XT, "m:bool[N,T]", **ROWS)
def A4967FlagsAsNumbers(self, x, m):
    """Booleans summed, cumulated, compared, inverted by a minus of one, as an index, as an exponent, their product, cat with floats."""
    return m.sum(1), m.cumsum(1), m > ~m, 1 - m.int(), x * m, (m.roll(1, 1) ^ m).int().cumsum(1), m.prod(1), torch.cat([m, x], 1), m.float().argmax(1), m.max(1).values, m + m, m * 2, torch.where(m, x, 0).cummax(1).values, m.int() @ m.int().mT, m.any(1, keepdim=True) & m.logical_not()
