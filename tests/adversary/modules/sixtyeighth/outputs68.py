"""What forward returns: names that meet when nests are flattened, containers of odd kinds."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import collections
import enum
from collections import OrderedDict, UserDict, deque
from dataclasses import dataclass, field

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,4]"
D = "N=1:2:4"


@forward(X, dims=D, kinds=FINITE)
def A8099ListBesideItsName(self, x):
    """{"z_0": ..., "z": [...]}: the list's first is called as the other is."""
    return {"z_0": x + 1, "z": [x + 2, x + 3]}


@dataclass
class Feats:
    feats: list[torch.Tensor]
    feats_0: torch.Tensor
    rest: dict[str, torch.Tensor] = field(default_factory=dict)


@forward(X, dims=D, kinds=FINITE)
def A8100DataclassBesideItsList(self, x):
    """A dataclass with a list and a field that is called as the list's first."""
    return Feats([x + 1, x + 2], x * 3)


@forward(X, dims=D, kinds=FINITE)
def A8101NumberAndTextKeys(self, x):
    """1 and "1", None and "None" as keys."""
    return {1: x + 1, "1": x + 2, None: x * 3, "None": x * 4}


@forward(X, dims=D, kinds=FINITE)
def A8102DottedKeys(self, x):
    """A state-dict-like key beside a nest."""
    return OrderedDict([("head.cls", x + 1), ("head", {"cls": x * 2, "box": x - 1})])


class Own(UserDict):
    pass


@forward(X, dims=D, kinds=FINITE, refused="")
def A8103UserDictOut(self, x):
    """A UserDict, which is no dict."""
    return Own(a=x + 1, b=x * 2)


@forward(X, dims=D, kinds=FINITE, refused="of type deque")
def A8104DequeAndViews(self, x):
    """A deque, the values of a dictionary, a generator's tuple, an empty list between."""
    return deque([x + 1, x * 2]), tuple(v for v in {"a": x - 1, "b": x * 5}.values()), [], {}


class Key(str, enum.Enum):
    A = "a"
    B = "b"


@forward(X, dims=D, kinds=FINITE)
def A8105EnumKeys(self, x):
    """Keys that are members of an Enum of texts, a defaultdict, an empty dictionary inside."""
    d = collections.defaultdict(list)
    d["l"].append(x * 2)
    d["l"].append(x * 3)
    return {Key.B: x + 1, Key.A: d}


class Box:
    def __init__(self, t):
        self.t = t


@forward(X, dims=D, kinds=FINITE, refused="Box")
def A8106PlainObject(self, x):
    """An object of an own class."""
    return Box(x * 2), x


@forward(X, dims=D, kinds=FINITE, refused="cannot be exported")
def A8107SparseOut(self, x):
    """A sparse tensor beside a dense one."""
    return x.to_sparse(), x * 2


@attack(X, dims=D, kinds=FINITE)
class A8108OutputsThatShareMemory(nn.Module):
    """An output that is written in place after it was put into the result, a list that grows after it was returned from a child."""

    def forward(self, x):
        y = x.clone()
        out = {"first": y, "half": y[:, :2]}
        y.mul_(2)
        out["last"] = y + 1
        y[:, 0] = 9
        return out


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:4:6", kinds=FINITE, refused="the module returns")
def A8109KeysInAnotherOrder(self, x):
    """A dictionary that is filled in another order at odd lengths: by name it is the same."""
    a, b = x.sum(1), x.amax(1)
    return {"a": a, "b": b} if x.shape[1] % 2 else {"b": b, "a": a}


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:4:6", kinds=FINITE, refused="the module returns")
def A8110KeysBySize(self, x):
    """A key that names the length."""
    return {f"t{x.shape[1]}": x.sum(1)}


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:4:6", kinds=FINITE, refused="the module returns")
def A8111NoneAtSomeSizes(self, x):
    """An Optional output that is None at short lengths, in the middle."""
    return x.sum(1), (x[:, 3:].sum(1) if x.shape[1] > 3 else None), x.amax(1)
