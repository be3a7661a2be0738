# ruff: noqa: E501 - attacks are written as users write them
"""Types of buffers one by one, outputs that are no tensors, signatures, errors that are no exceptions."""

from __future__ import annotations

import enum
import warnings
from collections import UserDict, deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

X4 = "x:float32[N,T,4]"
ROWS = {"dims": "N=1:2:3 T=1:9:20", "kinds": ("normal", "halves", "zeros")}


def holder(name: str, make: object, use: object) -> type:
    """A module that holds one buffer."""
    def init(self: nn.Module) -> None:
        nn.Module.__init__(self)
        self.register_buffer("a", make())
    def run(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return use(x, self.a)
    members = {"__init__": init, "forward": run, "__module__": __name__, "__doc__": f"A buffer {name}."}
    return attack(X4, **ROWS)(type(name, (nn.Module,), members))


A45B01 = holder("A45B01ComplexBuffer", lambda: torch.tensor([1j, 2.0, 1 + 1j, -1]), lambda x, a: x * a.abs() + a.real)
A45B02 = holder("A45B02Float8Buffer", lambda: torch.tensor([0.5, 1.0, 448.0, -2.0]).to(torch.float8_e4m3fn), lambda x, a: x * a.float())
A45B03 = holder("A45B03Float8OtherBuffer", lambda: torch.tensor([0.5, 1.0, 448.0, -2.0]).to(torch.float8_e5m2), lambda x, a: x * a.float())
A45B04 = holder("A45B04Uint16Buffer", lambda: torch.tensor([1, 2, 3, 65535], dtype=torch.uint16), lambda x, a: x * a.int())
A45B05 = holder("A45B05Uint32Buffer", lambda: torch.tensor([1, 2, 3, 65535], dtype=torch.uint32), lambda x, a: x * a.long())
A45B06 = holder("A45B06QuantisedBuffer", lambda: torch.quantize_per_tensor(torch.ones(4), 0.5, 3, torch.quint8), lambda x, a: x * a.dequantize())
A45B07 = holder("A45B07QuantisedByChannel", lambda: torch.quantize_per_channel(torch.ones(4, 4), torch.ones(4) / 3, torch.zeros(4).long(), 0, torch.qint8), lambda x, a: x @ a.dequantize())
A45B08 = holder("A45B08HalfComplexBuffer", lambda: torch.ones(4, dtype=torch.complex64).to(torch.complex32), lambda x, a: x * torch.view_as_real(a)[..., 0].float())
A45B09 = holder("A45B09BlocksOfRows", lambda: torch.eye(4).to_sparse_bsr((2, 2)), lambda x, a: x @ a.to_dense())
A45B10 = holder("A45B10NestedBuffer", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), lambda x, a: x + a.to_padded_tensor(0.0).sum())
A45B11 = holder("A45B11EmptyBuffer", lambda: torch.empty(0, 4), lambda x, a: torch.cat([x, a.expand(x.shape[0], 0, 4)], 1))
A45B12 = holder("A45B12InfiniteBuffer", lambda: torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0]), lambda x, a: torch.where(a.isfinite(), x, 0.0) + a.nan_to_num(1.0, 2.0, 3.0))
A45B13 = holder("A45B13Bfloat16Buffer", lambda: torch.tensor([1.0, 0.1, 257.0, -3.0], dtype=torch.bfloat16), lambda x, a: x * a)
A45B14 = holder("A45B14ConjugateBuffer", lambda: torch.tensor([1j, 2.0, 1 + 1j, -1]).conj(), lambda x, a: x * a.imag)
A45B15 = holder("A45B15NegatedView", lambda: torch.tensor([1j, 2.0, 1 + 1j, -1]).conj().imag, lambda x, a: x * a)
A45B16 = holder("A45B16Mkldnn", lambda: torch.eye(4).to_mkldnn(), lambda x, a: x @ a.to_dense())
A45B17 = holder("A45B17Uint64Buffer", lambda: torch.tensor([1, 2, 3, 2**63 + 5], dtype=torch.uint64), lambda x, a: x * (a & 7).long())


class A45Mode(enum.Enum):
    ON = 1


@forward(X4, **ROWS, refused="the module")
def A45O01TextAmongOutputs(self, x):
    """A text beside a tensor."""
    return {"y": x * 2, "name": "out"}
@forward(X4, **ROWS, refused="the module")
def A45O02ArrayAmongOutputs(self, x):
    """A NumPy array of a constant beside a tensor."""
    return x * 2, np.ones(3, np.float32)
@forward(X4, **ROWS, refused="the module returns no tensor")
def A45O03NothingAtAll(self, x):
    """An empty tuple."""
    return ()
@forward(X4, **ROWS, refused="the module")
def A45O04GeneratorOfOutputs(self, x):
    """A generator of tensors."""
    return (x * k for k in range(2))
@forward(X4, **ROWS, refused="the exported model differs from the module")
def A45O05ComplexOutput(self, x):
    """A complex output."""
    return torch.complex(x, -x)
@forward(X4, **ROWS, refused="the module cannot be exported")
def A45O06SparseOutput(self, x):
    """A sparse output."""
    return x[0].to_sparse()
@forward(X4, **ROWS)
def A45O07Float8Output(self, x):
    """An output in float8 and one in words without a sign."""
    return x.clamp(-8, 8).to(torch.float8_e4m3fn), x.abs().to(torch.uint16)
@forward(X4, **ROWS, refused="the module")
def A45O08Containers(self, x):
    """A deque, a UserDict, an enumeration as a key, a set of one."""
    return deque([x, x + 1]), UserDict({A45Mode.ON: x * 3})
@dataclass(frozen=True, slots=True)
class A45Slots:
    """Frozen, with slots."""
    a: torch.Tensor
    b: float = 0.5
@forward(X4, **ROWS, refused="the module")
def A45O09FrozenWithSlots(self, x):
    """A frozen dataclass with slots and a number."""
    return A45Slots(x * 2)
@attack(X4, **ROWS)
class A45O10AnyArguments(nn.Module):
    """Positional-only, starred and keyword arguments with defaults."""
    def forward(self, x, /, *more, scale=2.0, **others):
        return x * scale + len(more) + len(others)
@attack(X4, **{**ROWS, "feeds": (values_at(X4, N=1, T=14),)})
class A45O12ErrorOfItsOwn(nn.Module):
    """An error that is no Exception, at one size, which is caught."""
    class Stop(BaseException):
        pass
    def forward(self, x):
        try:
            if x.shape[1] == 14:
                raise self.Stop
        except self.Stop:
            return x - 1
        return x * 2
@forward(X4, **ROWS)
def A45O13WarningsAreErrors(self, x):
    """Warnings are errors within, and prints go out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return F.interpolate(x.mT, scale_factor=2.0, mode="linear", align_corners=False)
@attack(X4, **ROWS, refused="the path through the module depends on the size")
class A45O14DeepRecursion(nn.Module):
    """A recursion as deep as the sequence is long, over halves."""
    def go(self, x):
        n = x.shape[1]
        return x.sum(1) if n < 3 else torch.tanh(self.go(x[:, : n // 2]) - self.go(x[:, n // 2:]))
    def forward(self, x):
        return self.go(x)
@attack(X4, **ROWS)
class A45O15StopIteration(nn.Module):
    """next of an iterator over a list of layers, with a default."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    def forward(self, x):
        it = iter(self.layers)
        while (layer := next(it, None)) is not None:
            x = layer(x)
        return x
