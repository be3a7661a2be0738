# ruff: noqa: E501, E741 - attacks are written as users write them
"""Values that leave torch, or come back to it, by ways of their own; and decisions on rare ones."""

from __future__ import annotations

import ctypes
import heapq
import inspect
import io
import json
import pickle
import statistics

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, sprinkled
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
THREE = "x:float32[N,T]=-3:3"
D = "N=1:2:3 T=3:30:60"
IDS = "x:int64[N,T]=0:4999"


def ids(*rows, name="x", dtype=np.int64):
    """Own points of whole numbers."""
    return tuple((lambda r=r: {name: np.array(r, dtype)}) for r in rows)


@attack("x:int64[N]=0:100", dims="N=1:2:4", feeds=ids([100], [99], [3, 100], [100, 100, 0, 1]), refused="the path through the module depends on the si")
class A6736IndexErrorCaught(nn.Module):
    """A look-up whose table is one short of what is declared, with the error for a default."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(100.0) * 0.5)

    def forward(self, x):
        try:
            return self.table[x]
        except IndexError:
            return torch.full_like(x, -1, dtype=torch.float32)


@forward("x:float32[4,4]=-2:2", kinds=FINITE, feeds=(lambda: {"x": np.zeros((4, 4), np.float32)}, lambda: {"x": np.eye(4, dtype=np.float32)}, lambda: {"x": np.ones((4, 4), np.float32)}), refused="the path through the module depends on the values")
def A6737CholeskyOrJitter(self, x):
    """A factor of a covariance, with a jitter where the first try fails."""
    c = x @ x.T
    try:
        l = torch.linalg.cholesky(c)
    except torch.linalg.LinAlgError:
        l = torch.linalg.cholesky(c + 4 * torch.eye(4))
    return l


@attack(IDS, dims="N=1:1:3 T=1:10:40", feeds=ids([[4242]], [[4241, 4242, 4243]], [[0, 4999, 4242, 1]], [[4999] * 5]), refused="the exported model differs from the module")
class A6738RareRow(nn.Module):
    """Tables of five thousand rows that are alike but for one, and a rare token found by numpy."""

    def __init__(self):
        super().__init__()
        t = torch.zeros(5000, 2)
        t[4242] = torch.tensor([1.0, -1.0])
        self.register_buffer("table", t)
        self.register_buffer("kind", (torch.arange(5000) == 4242).to(torch.uint8))

    def forward(self, x):
        k = self.kind[x]
        m = torch.from_numpy(np.isin(x.numpy(), [4242, 17]))
        return self.table[x], k, m, torch.where(m, 0, x)


@forward(X4, dims="N=1:1:1 T=3:3:3", feeds=tuple((lambda a=a: {"x": np.array(a, np.float32)}) for a in ([[[0] * 4, [9] * 4, [-9] * 4]], [[[1] * 4, [0] * 4, [1] * 4]], [[[1] * 4, [0] * 4, [2] * 4]])), refused="Python reads a value in that line")
def A6739LoudestByPython(self, x):
    """The loudest of three rows by Python's max with a key; the first of equals."""
    return max(x[0].unbind(0), key=lambda r: r.abs().sum()) + x[0, 0]


@forward(X, dims=D, feeds=sprinkled(float("nan"), 1e9, sizes=((1, 9), (2, 20))), refused="the path through the module depends on the si")
def A6740PrintedNumbers(self, x):
    """What a tensor prints as decides: nan, or an exponent."""
    s = repr(x)
    return torch.nan_to_num(x) * 2 if "nan" in s else x / 1000 if "e+" in s else x + 1


@forward("x:float32[2,T]", dims="T=2:16:40", feeds=(lambda: {"x": np.ones((2, 7), np.float32)}, lambda: {"x": np.array([[1, 2], [1, 2 + 1e-6]], np.float32)}), refused="the path through the module depends on the values")
def A6741EqualChannels(self, x):
    """Stereo that is mono after all is halved, by an exact comparison of its channels."""
    if torch.equal(x[0], x[1]):
        return x[0] * 0.5
    return x.mean(0)


@forward(THREE, dims=D, kinds=FINITE, feeds=sprinkled(2.9999, 3.0, -3.0, sizes=((1, 9), (2, 20), (3, 60))), refused="the exported model differs from the module")
def A6742SharedWithNumpy(self, x):
    """A clone that numpy clips in place through the memory that they share, at a rare value."""
    y = x * 1.0
    a = y.numpy()
    a[a > 2.999] = 2.5
    np.negative(a[:, :1], out=a[:, :1])
    return y


@forward(X, dims=D, feeds=(values_at(X, N=1, T=3), values_at(X, N=3, T=60)), refused="the exported model differs from the module")
def A6743MovedByPointer(self, x):
    """Bytes moved by pointers to an empty tensor, and then doubled."""
    x = x.contiguous()
    y = torch.zeros(x.shape)
    ctypes.memmove(y.data_ptr(), x.data_ptr(), x.numel() * 4)
    return y * 2


@forward(X, dims=D, feeds=(values_at(X, N=1, T=3), values_at(X, N=3, T=60)), refused="Python reads a value in that line")
def A6744PickledAndBack(self, x):
    """A tensor through pickle, torch's own files and JSON."""
    a = pickle.loads(pickle.dumps(x.clone()))
    torch.save({"a": a}, f := io.BytesIO())
    f.seek(0)
    b = torch.load(f)["a"]
    return torch.tensor(json.loads(json.dumps(b.tolist()))) + x


@forward(X, dims="N=1:2:3 T=3:20:40", kinds=("normal", "zeros", "ones", "halves"), feeds=sprinkled(0.0, sizes=((1, 9), (2, 20))), refused="_to_sparse")
def A6745SparseCount(self, x):
    """The mean of what is not zero, by a sparse tensor, zero where there is nothing."""
    s = x.to_sparse()
    return s.values().mean()[None] if s._nnz() else torch.zeros(1)


@attack("x:float32[N,8]", "y:int64[N]=0:19", dims="N=1:3:6", feeds=tuple((lambda v=v: {"x": np.ones((len(v), 8), np.float32), "y": np.array(v)}) for v in ([19], [18], [4, 5, 17], [19, 0, 18], [0, 1])), refused="the exported model differs from the module")
class A6746AdaptiveSoftmax(nn.Module):
    """An adaptive softmax's log-probabilities of targets, the last cluster with two rare ones."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.out = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 18], div_value=2.0)

    def forward(self, x, y):
        return self.out(x, y).output, self.out.predict(x)


@forward(THREE, dims=D, kinds=FINITE, feeds=sprinkled(3.0, 2.95, sizes=((1, 9), (2, 20))), refused="forward asks which code calls it")
def A6747CallersDecide(self, x):
    """A limit that is left out where the caller is an exporter: by flags, by the type and by the stack of frames."""
    exporting = torch.jit.is_tracing() or torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling() or type(x) is not torch.Tensor
    names = {f.function for f in inspect.stack()}
    if exporting or names & {"export", "trace", "_trace", "dynamo_export"}:
        return x * 2
    return x.clamp(max=2.9) * 2


@forward("x:int64[N]=0:10", dims="N=1:2:4", feeds=ids([10], [9], [0, 10], [3, 10, 10, 10]), refused="the path through the module depends on the values")
def A6748OneHotOrNothing(self, x):
    """A one-hot of ten classes; a rare eleventh raises, and all is unknown."""
    try:
        return F.one_hot(x, 10).float()
    except RuntimeError:
        return torch.full((x.shape[0], 10), 0.1)


@forward("x:float32[5]=-4:4", kinds=FINITE, feeds=tuple((lambda a=a: {"x": np.array(a, np.float32)}) for a in ([0] * 5, [4, 3, 2, 1, 0], [-4, 4, 0, 4, -4], [0.5, 0.5, 1, 1, 1])), refused="Python reads a value in that line")
def A6749StatisticsOfList(self, x):
    """Python's median, the largest of a heap and an index in a list, back as tensors."""
    v = x.tolist()
    return torch.tensor([statistics.median(v), sum(heapq.nlargest(2, v)), float(v.index(max(v)))]) + x[0]


COUNTS = {}


@forward("x:int64[N,6]=0:299", dims="N=1:2:3", feeds=ids([[0] * 6], [[299] * 6], [[255, 256, 257, 1, 2, 3]]))
def A6750CountsInBytes(self, x):
    """Whole numbers as bytes that wrap, as text of digits, and found again in a sorted list."""
    b = x.to(torch.uint8)
    s = torch.searchsorted(torch.tensor([10, 100, 255, 256]), x) + 1
    digits = torch.stack([x // 10**k % 10 for k in (2, 1, 0)], -1)
    return b, s, digits, torch.bincount(b[0], minlength=256)[:256], x.to(torch.int8) >> 1
