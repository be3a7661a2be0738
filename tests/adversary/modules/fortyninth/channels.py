# ruff: noqa: E501, RUF034 - attacks are written as users write them
"""Ways past a trace: operators of one's own that write, modes of dispatch, other names of a tensor, copies by Python."""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import own
from tests.adversary.modules.fortysixth.pictures import X4, seq

SEVENS, LOUD = np.full((2, 5, 4), 777.0, np.float32), np.full((2, 20, 4), 3e6, np.float32)
RARE = seq(X4, own=own(SEVENS, LOUD))
LIB = torch.library.Library("r49_attacks", "DEF")
LIB.define("cap(Tensor(a!) x, float k) -> ()")
LIB.impl("cap", lambda x, k: None if x.clamp_(max=k) is None else None, "CPU")
LIB.impl("cap", lambda x, k: None, "Meta")
LIB.define("gain(Tensor(a!) x, float k) -> Tensor(a!)")
LIB.impl("gain", lambda x, k: x.clamp_(max=k), "CompositeImplicitAutograd")


@torch.library.custom_op("r49_attacks::wipe", mutates_args=("x",))
def wipe(x: torch.Tensor) -> None:
    """Marks of what is missing become zero, in place."""
    x[x == 777.0] = 0.0


@wipe.register_fake
def _wipe(x):
    return None


@torch.library.custom_op("r49_attacks::merge", mutates_args=("out",))
def merge(out: torch.Tensor, x: torch.Tensor) -> None:
    """What is loud in x is silenced in out."""
    out.copy_(torch.where(x > 1e6, 0.0, out))


@merge.register_fake
def _merge(out, x):
    return None


@torch.library.custom_op("r49_attacks::peak", mutates_args=("x",))
def peak(x: torch.Tensor) -> torch.Tensor:
    """The peak before it is cut off."""
    p = x.amax()
    x.clamp_(max=1e6)
    return p


@peak.register_fake
def _peak(x):
    return x.new_empty(())


@torch.library.custom_op("r49_attacks::soften", mutates_args=())
def soften(x: torch.Tensor, k: float) -> torch.Tensor:
    """A kernel that gives a new tensor."""
    return torch.where(x > k, k + (x - k) * 0.1, x)


@soften.register_fake
def _soften(x, k):
    return torch.empty_like(x)


@forward(X4, **RARE, refused="the module cannot be exported")
def A6261OperatorWipes(self, x):
    """An operator of one's own writes its argument and gives nothing."""
    y = x * 1.0
    wipe(y)
    return y


@forward(X4, **RARE, refused="writes what it is given in place")
def A6262OperatorWritesAView(self, x):
    """Such an operator on the first step of a tensor, at long inputs alone."""
    y = x * 2
    if x.shape[1] > 12:
        wipe(y[:, 0] if x.shape[1] > 30 else y)
        merge(y, x)
    return y


@forward(X4, **RARE, refused="the module cannot be exported")
def A6263OperatorMerges(self, x):
    """vLLM's form: the first argument is written from the second; one behind the other."""
    y = x * 2
    merge(y, x)
    return y.cumsum(1)


@forward(X4, **RARE, refused="the module cannot be exported")
def A6264OperatorGivesAndWrites(self, x):
    """One that gives the peak, which is not looked at, and cuts off in place."""
    y = x + 0.5
    peak(y)
    return y


@forward(X4, **RARE, refused="the module cannot be exported")
def A6265OldLibrary(self, x):
    """The old way to define one: a schema in a text with an alias that is written."""
    y = x * 1.0
    torch.ops.r49_attacks.cap(y, 1e6)
    return y


@forward(X4, **RARE)
def A6266CompositeOperator(self, x):
    """One that is made of torch's operators is decomposed; it gives its argument."""
    y = x * 1.0
    z = torch.ops.r49_attacks.gain(y[:, 0], 1e6)
    return y, z


@forward(X4, **RARE, refused="the exporter has no form of soften")
def A6267OperatorWithoutWrites(self, x):
    """One that gives a new tensor has no form in a file."""
    return soften(x, 1e6)


@attack(X4, **RARE, refused="the module cannot be exported")
class A6268OperatorWritesABuffer(nn.Module):
    """A workspace in a buffer that is filled, written by an operator of one's own, and read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("work", torch.zeros(4))

    def forward(self, x):
        self.work.copy_(x[0, 0])
        wipe(self.work)
        return x + self.work


@forward(X4, **RARE, refused="the module cannot be exported")
def A6269OperatorUnderCompile(self, x):
    """The same under torch.compile."""

    def f(v):
        y = v * 2
        merge(y, v)
        return y

    return torch.compile(f, backend="eager")(x)


class Saturated(TorchDispatchMode):
    """Products saturate as on an accelerator (an emulation of a number format)."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out.clamp(-65504.0, 65504.0) if func in (torch.ops.aten.mul.Tensor, torch.ops.aten.mm.default) else out


@forward(X4, **RARE, refused="forward computes under the __torch_dispatch__")
def A6270ModeOfDispatch(self, x):
    """A mode of dispatch that saturates products, for a block."""
    with Saturated():
        y = x * 2
    return y, x * 3


@attack(X4, **RARE, refused="forward computes under the __torch_dispatch__")
class A6271ModeKept(nn.Module):
    """The mode is a member; a layer under it, and a branch by the length behind."""

    def __init__(self):
        super().__init__()
        self.mode, self.lin = Saturated(), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        with self.mode:
            y = self.lin(x.flatten(0, 1)).view_as(x)
        return y.flip(1) if x.shape[1] > 12 else y


class Counted(TorchDispatchMode):
    """How many operators ran."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


@forward(X4, **RARE, refused="forward computes under the __torch_dispatch__")
def A6272ModeThatCounts(self, x):
    """A mode that only counts what runs, as profilers do."""
    with Counted():
        return (x * 2).relu()


class Named(torch.Tensor):
    """A tensor with a name of its own kind."""


@forward(X4, **RARE)
def A6273SubclassIsWritten(self, x):
    """as_subclass is another name of the same memory."""
    y = x.clone()
    z = y.as_subclass(Named)
    z[z == 777.0] = 0.0
    return y


@forward(X4, **RARE)
def A6274ShallowCopyIsWritten(self, x):
    """copy.copy of a tensor shares its memory."""
    y = x * 1.0
    z = copy.copy(y)
    z[z == 777.0] = 0.0
    return y


@forward(X4, **RARE)
def A6275DeepCopyIsNot(self, x):
    """copy.deepcopy of a tensor does not."""
    y = x * 1.0
    z = copy.deepcopy(y)
    z.clamp_(max=1e6)
    return y, z


@forward(X4, **RARE)
def A6276ClassOfItself(self, x):
    """x.__class__(y) and torch.Tensor(y) are y's memory again."""
    y = x * 1.0
    y.__class__(y).clamp_(max=1e6)
    return y


@forward(X4, **RARE)
def A6277ParameterOfATensor(self, x):
    """nn.Parameter(y) is y's memory, in a module that looks its length up in a set."""
    k = len({x.shape[1]})
    y = x * k
    nn.Parameter(y, requires_grad=False).clamp_(max=1e6)
    return y


@forward(X4, **RARE)
def A6278LastStepByNarrow(self, x):
    """narrow with a negative start, written, in a module that looks its length up in a set."""
    k = len({x.shape[1]})
    y = x * k
    y.narrow(1, -1, 1).clamp_(max=1e6)
    y.narrow(2, -3, 2)[y.narrow(2, 0, 2) == 777.0 * k] = 0.0
    return y


@forward(X4, **RARE)
def A6279ManyOtherNames(self, x):
    """Other names that are followed: dropouts, conj, identity, unflatten, an einsum that permutes, packed data, a vmap of nothing."""
    y = x * 1.0
    names = (lambda v: F.feature_alpha_dropout(v, 0.5, False), torch.conj, nn.Identity(), lambda v: v.unflatten(2, (2, 2)), lambda v: torch.einsum("abc->cab", v), lambda v: torch.vmap(lambda r: r)(v), lambda v: torch.broadcast_tensors(v, v[:1])[0], lambda v: v.sum_to_size(v.shape), torch.atleast_3d, lambda v: v.data)
    for k, f in enumerate(names):
        f(y).clamp_(max=1e6 + k)
    return y


@forward(X4, **RARE)
def A6280GradientsAreClipped(self, x):
    """Hooks on gradients within forward: a tensor's, a node's, a module's, clipped where they are loud."""
    with torch.enable_grad():
        z = x.detach().requires_grad_(True)
        y = z * 2
        y.register_hook(lambda g: torch.where(g > 1e6, 0.0, g))
        return torch.autograd.grad((y * y).sum(), z)[0]
