# ruff: noqa: E501, RUF012, RUF100 - attacks are written as users write them
"""How others structure code: outputs, modes, sequences of layers, dispatch, generators, views."""

from __future__ import annotations

import collections
import functools
import types
import typing

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.modules.fortysixth.pictures import X4, seq


@attack(X4, **seq(X4))
class A5752RunsUntilItSettles(nn.Module):
    """A fixed count of rounds with a running best kept by a method that writes members of a namespace."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        best = types.SimpleNamespace(loss=None, x=None, at=0)
        for i in range(4):
            y = torch.tanh(self.lin(x))
            loss = (y - x).square().mean((1, 2))
            if best.loss is None:
                best.loss, best.x = loss, y
            else:
                better = loss < best.loss
                best.loss = torch.where(better, loss, best.loss)
                best.x = torch.where(better[:, None, None], y, best.x)
                best.at = torch.where(better, i, best.at)
            x = y
        return best.x, best.loss, best.at


class Outputs(collections.OrderedDict):
    """Hugging Face's ModelOutput in short: attributes are keys; what is None is left out."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)

    def to_tuple(self):
        return tuple(v for v in self.values() if v is not None)


@attack(X4, **seq(X4))
class A5753OutputsOfModels(nn.Module):
    """Outputs as an OrderedDict with attributes, turned into a tuple by a flag, hidden states if there are few."""

    def encode(self, x, output_hidden_states=False, return_dict=True):
        h = (x,)
        for _ in range(2):
            h += (h[-1].cumsum(1) / x.shape[1],)
        out = Outputs(last_hidden_state=h[-1], hidden_states=h if output_hidden_states else None)
        return out if return_dict else out.to_tuple()

    def forward(self, x):
        o = self.encode(x, output_hidden_states=x.shape[-1] == 4)
        last = self.encode(x, return_dict=False)[0]
        return o.last_hidden_state, o.hidden_states[1] - last


@attack(X4, **seq(X4))
class A5754DropsByItsOwnMode(nn.Module):
    """train is overridden so that the norm stays frozen; drop-path by self.training; a property over a buffer."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)
        self.bn.running_mean.add_(0.3)
        self.register_buffer("_keep", torch.tensor([1.0, 0.0, 1.0, 0.5]))

    def train(self, mode=True):
        super().train(mode)
        self.bn.eval()
        return self

    @property
    def keep(self):
        return self._keep if self.training else self._keep.clamp(min=0.25)

    def forward(self, x):
        return self.bn(x.transpose(1, 2)).transpose(1, 2) * self.keep


@attack(X4, **seq(X4))
class A5755SubclassOfSequential(nn.Sequential):
    """A Sequential that slices itself by the length and repeats its last part."""

    def __init__(self, *layers):
        super().__init__(*(layers or (nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4), nn.Softsign())))

    def forward(self, x):
        depth = min(len(self), 2 + x.shape[1] // 8)
        for layer in self[:depth]:
            x = layer(x)
        return self[-1](x) if depth < len(self) else x


@attack(X4, **seq(X4))
class A5756SortedByPythonKey(nn.Module):
    """Pieces are sorted by their lengths in Python, joined, and put back by the inverse."""

    def forward(self, x):
        pieces = list(torch.tensor_split(x, (x.shape[1] // 5, x.shape[1] // 2), 1))
        order = sorted(range(len(pieces)), key=lambda i: (-pieces[i].shape[1], i))
        y = torch.cat([pieces[i] * (rank + 1) for rank, i in enumerate(order)], 1)
        sizes = [pieces[i].shape[1] for i in order]
        parts = dict(zip(order, y.split(sizes, 1), strict=True))
        return y, torch.cat([parts[i] for i in range(3)], 1), torch.tensor(max(sizes) - min(sizes))


@attack(X4, **seq(X4))
class A5757OverloadsBySingledispatch(nn.Module):
    """singledispatch over tensors, tuples and dicts, with a recursion over a nested structure."""

    def forward(self, x):
        @functools.singledispatch
        def walk(v):
            raise TypeError(type(v))

        @walk.register
        def _(v: torch.Tensor):
            return v.flip(1) * v.shape[1]

        @walk.register(tuple)
        def _(v):
            return tuple(map(walk, v))

        @walk.register(dict)
        def _(v):
            return {k: walk(w) for k, w in v.items()}

        a, d = walk((x, {"half": x[:, ::2], "rest": (x[:, 1::2],)}))
        return a, d["half"], d["rest"][0]


class Config(typing.TypedDict, total=False):
    """Typed options."""

    heads: int
    window: int


@attack(X4, **seq(X4))
class A5758LocalWindowsOfConfig(nn.Module):
    """lucidrains' local attention: padded to windows, looks one back with -1 as padding, masked by -finfo.max."""

    cfg: Config = {"window": 4}

    def forward(self, x):
        w = self.cfg["window"]
        n, t, d = x.shape
        y = F.pad(x, (0, 0, 0, (w - t % w) % w), value=0.0)
        pos = torch.arange(y.shape[1]).view(1, -1, w)
        b = y.view(n, -1, w, d)
        back = F.pad(b, (0, 0, 0, 0, 1, 0), value=-1.0)
        k = torch.cat([back[:, :-1], back[:, 1:]], 2)
        pb = F.pad(pos, (0, 0, 1, 0), value=-1)
        pk = torch.cat([pb[:, :-1], pb[:, 1:]], 2)
        s = torch.einsum("bhie,bhje->bhij", b, k) * d**-0.5
        s = s.masked_fill(pos[..., None] < pk[..., None, :], -torch.finfo(s.dtype).max)
        s = s.masked_fill(pk[..., None, :] == -1, -torch.finfo(s.dtype).max)
        return torch.einsum("bhij,bhje->bhie", s.softmax(-1), k).reshape(n, -1, d)[:, :t]


@attack(X4, **seq(X4), refused="the path through the module depends on the size")
class A5759StateOfGeneratorObject(nn.Module):
    """A generator that keeps a running state between sends; the last value by its return."""

    @staticmethod
    def smoother(alpha):
        state = yield
        count = 1
        while True:
            value = yield state
            if value is None:
                return state * count
            state, count = torch.lerp(value, state, alpha), count + 1

    def forward(self, x):
        g = self.smoother(0.75)
        next(g)
        out = [g.send(x[:, i]) for i in range(x.shape[1])]
        try:
            g.send(None)
        except StopIteration as stop:
            return torch.stack(out, 1), stop.value
        return x, x


@attack(X4, **seq(X4))
class A5760LazilyMadeLayer(nn.Module):
    """A layer is made at the first call by the width of its input, and asked for by hasattr afterwards."""

    def forward(self, x):
        if not hasattr(self, "proj"):
            torch.manual_seed(0)
            self.proj = nn.Linear(x.shape[-1], 3)
        return self.proj(x), torch.zeros(x.shape[1] % 4, 2)


@attack(X4, **seq(X4))
class A5761VersionsOfTensors(nn.Module):
    """Swaps rows through aliases: tuple assignment of views, then of clones, with the right-hand side seen first."""

    def forward(self, x):
        y = x.clone()
        y[:, 0], y[:, -1] = y[:, -1], y[:, 0]
        z = x.clone()
        z[:, 0], z[:, -1] = z[:, -1].clone(), z[:, 0].clone()
        a = x.clone()
        b = a
        a += 1
        c = a
        a = a + 1
        b[:, ::2] = c[:, ::2] * 2
        v = b.view(-1)
        v[: x.shape[1]] = 0
        return y, z, a, b, c


@attack(X4, **seq(X4))
class A5762EnumeratesParameters(nn.Module):
    """A penalty over named_parameters by patterns, weights standardised once at each call, and numel as a share."""

    def __init__(self):
        super().__init__()
        self.net = nn.ModuleDict({"body": nn.Linear(4, 4), "head": nn.Linear(4, 2, bias=False)})

    def forward(self, x):
        reg = x.new_zeros(())
        for name, p in self.net.named_parameters():
            if name.endswith("weight"):
                reg = reg + p.square().sum() / p.numel()
            elif p.ndim == 1:
                reg = reg + p.abs().sum() * 0.1
        w = self.net["head"].weight
        w = (w - w.mean(1, keepdim=True)) / (w.std(1, keepdim=True) + 1e-5)
        y = F.linear(self.net["body"](x), w)
        return y, reg + y.square().mean()
