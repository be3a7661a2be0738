"""Values that leave torch on paths that no one watches, and flags of the run that Python can ask."""

from __future__ import annotations

import collections
import functools
import math
import operator
import struct
import sys

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"


@forward(X, dims=N)
def exporting_flag(self, x):
    return x * 2 if torch.compiler.is_exporting() or torch.compiler.is_compiling() else x * 3


@forward(X, dims=N)
def onnx_flag(self, x):
    return x + 1 if torch.onnx.is_in_onnx_export() or torch.jit.is_tracing() else x - 1


@forward(X, dims=N)
def type_of_input(self, x):
    return x * 2 if type(x) is torch.Tensor else x * 3


@forward(X, dims=N)
def fake_by_name(self, x):
    return x.sin() if "Fake" in type(x).__name__ or "Functional" in repr(type(x)) else x.cos()


@forward(X, dims=N, refused="asks which code calls it")
def module_on_the_stack(self, x):
    names = set()
    frame = sys._getframe()
    while frame:
        names.add(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return x * 2 if any("export" in n for n in names) else x


@forward(X, dims=N)
def gradient_mode(self, x):
    return x * 2 if torch.is_grad_enabled() else x * 3


@forward(X, dims=N)
def dtype_of_run(self, x):
    return x * 3 if x.dtype == torch.float64 else x * 2


@forward(X, dims=N)
def version_of_tensor(self, x):
    y = x.clone()
    y.add_(1)
    return y * y._version


@forward(X, dims=N, refused="depends on the values")
def struct_packed(self, x):
    bits = struct.unpack("I", struct.pack("f", float(x[0, 0])))[0]
    return x * (1 if bits & 1 else -1)


@forward(X, dims=N, refused="depends on the values")
def float_hex_and_ratio(self, x):
    top, _ = x.sum().item().as_integer_ratio()
    return x * (top % 3) + (0.5 if math.frexp(x[0, 0].item())[1] > 0 else 0.0)


@forward(X, dims=N, refused="depends on the values")
def reduced_in_python(self, x):
    return x * functools.reduce(operator.mul, [math.copysign(1, v) for v in x.flatten().tolist()], 1.0)


@forward(X, dims=N, refused="depends on the values")
def counted_in_python(self, x):
    count = collections.Counter("p" if v > 0 else "n" for v in x[:, 0].tolist())
    return x * count["p"] - count["n"]


@forward(X, dims=N, refused="differs from the module")
def numpy_sorted(self, x):
    return torch.as_tensor(np.argsort(x.numpy(), axis=1, kind="stable")), torch.tensor(np.median(x.numpy(), 1))


@forward(X, dims=N, refused="differs from the module")
def dlpack_loop(self, x):
    return torch.from_numpy(np.from_dlpack(x.contiguous()).copy()) * 2


@forward(X, dims=N, refused="differs from the module")
def storage_read(self, x):
    return x + x.contiguous().untyped_storage()[3] % 2


@forward(X, dims=N, refused="differs from the module")
def printed_width(self, x):
    return x * len(f"{x[0, 0]:.3g}")


@forward(X, dims=N, refused="depends on the values")
def iterated_tensor(self, x):
    best = max((row for row in x), key=lambda row: row.sum())
    return best * 2


@forward(X, dims=N, refused="depends on the values")
def tensor_in_list(self, x):
    return x * 2 if x[0, 0] in [x[0, 1], x[0, 2]] else x


@forward(X, dims=N, refused="differs from the module")
def index_by_call(self, x):
    return x[:, operator.index(x[0].argmax())], [1.0, 2.0, 3.0, 4.0][x[0].argmin()] * x


@forward(X, "k:int64[]=0:3", dims=N)
def chosen_by_select(self, x, k):
    return torch.stack((x.sin(), x.cos(), x * 2, -x)).index_select(0, k.reshape(1))[0]


@forward(X, dims=N, refused="depends on the size")
def generator_of_rows(self, x):
    def rows():
        total = torch.zeros(4)
        for row in x:
            total = total * 0.5 + row
            if row[0] > 1.5:
                return
            yield total

    return torch.stack([*rows(), x[0]])


@forward(X, dims=N, refused="depends on the values")
def recursion_by_value(self, x):
    def halve(v, depth):
        return v if depth == 4 or v.abs().max() < 1 else halve(v / 2, depth + 1)

    return halve(x, 0)


@forward(X, dims=N, refused="depends on the values")
def walrus_of_any(self, x):
    return x - m if (m := x.max()) > 0.9 and not (x < -2).any() else x + m


@forward(X, dims=N)
def condition_of_torch(self, x):
    return torch.cond(x.sum() > 0.75, lambda v: v * 2, lambda v: v - 1, (x,))


@forward(X, dims=N)
def while_of_torch(self, x):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda v, i: (v.abs().max() > 1) & (i < 9), lambda v, i: (v / 2, i + 1), (x, torch.tensor(0)))


@attack(X, dims=N)
class CopyIsAnother(nn.Module):
    """A deep copy of it computes something else."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def __deepcopy__(self, memo):
        return CopyIsAnother(self.factor + 1)

    def forward(self, x):
        return x * self.factor


@attack(X, dims=N)
class AttributeByAccess(nn.Module):
    """An attribute that is another one each time that it is read within a call."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    @property
    def next(self):
        object.__setattr__(self, "turn", getattr(self, "turn", -1) + 1)
        return self.layers[self.turn % 3]

    def forward(self, x):
        object.__setattr__(self, "turn", -1)
        return self.next(x) + self.next(x).tanh() * self.next(x)
