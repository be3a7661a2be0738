"""More of how code bases are organised: modules by getattr, parameter dicts, state dicts with prefixes, early returns by size."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


def rearrange_patches(x, p=2):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).flatten(3)


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=4:6:8%2 W=4:8:8%2", kinds=FINITE)
class A7466BuffersAndDicts(nn.Module):
    """Patches by hand, a ParameterDict and BufferList-like names by setattr, getattr by f-strings, a lambda module, nested Sequentials sliced and unpacked, modules called by index -1, an output dict with integer-like keys."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        for i in range(3):
            self.register_buffer(f"anchor_{i}", torch.full((4,), float(i)))
            setattr(self, f"layer{i}", nn.Linear(12 if i == 0 else 4, 4))
        self.ps = nn.ParameterDict({"a.b".replace(".", "_"): nn.Parameter(torch.ones(4)), "z": nn.Parameter(torch.zeros(4))})
        self.seq = nn.Sequential(OrderedDict(one=nn.ReLU(), two=nn.Sequential(nn.Linear(4, 4), nn.Tanh()), three=nn.Identity()))
        self.fn = lambda t: t * 2

    def forward(self, x):
        y = rearrange_patches(x)
        outs = {}
        for i in range(3):
            y = getattr(self, f"layer{i}")(y) + getattr(self, f"anchor_{i}")
            outs[str(i)] = y.mean((1, 2))
        y = self.seq[:2](y) + self.seq[-1](y) + self.seq.two[0](y)
        for k, v in sorted(self.ps.items(), reverse=True):
            y = y * v if k == "a_b" else y + v
        return {"y": self.fn(y), **outs, "n": (y > 0).sum()}


@attack("x:float32[N,3,H,W]=0:1", "flag:bool[]", dims="N=1:1:2 H=4:6:8 W=4:7:8", kinds=("normal", "unit", "halves", "ones"))
class A7467FlagsAndExits(nn.Module):
    """An early return by size, a where by a scalar flag, weights loaded by a state dict with a prefix, loops over a list of sizes, an optional branch by is None, torch.cond with a flag."""

    sizes = ((2, 3), (4, 4), (7, 5))

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.c = nn.ModuleDict({k: nn.Conv2d(3, 3, 1) for k in ("k", "kind", "keys_")})
        sd = {f"module.{k}": v * 0.5 for k, v in self.state_dict().items()}
        self.load_state_dict({k.removeprefix("module."): v for k, v in sd.items()}, strict=True)
        self.proj = None

    def forward(self, x, flag):
        y = x
        for k in self.c:
            y = self.c[k](y) + (0 if self.proj is None else self.proj(y))
        y = torch.cond(flag, lambda a: a * 2, lambda a: a.flip(-1), (y,))
        y = y + torch.where(flag, x, -x)
        out = [F.adaptive_avg_pool2d(y, s) for s in self.sizes]
        out = [F.interpolate(o, size=(4, 4), mode="bilinear", align_corners=True) for o in out]
        if x.shape[-1] <= 5:
            return torch.cat(out, 1)
        return torch.cat(out, 1).flip(1)
