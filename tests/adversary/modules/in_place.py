"""Writes through views, hooks that are out of sight, tensor subclasses and modes."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import prune
from torch.overrides import TorchFunctionMode

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,6]", "N=1:2:5"


@forward(X, dims=N)
def every_other_written(self, x):
    y = x.clone()
    y.view(-1)[::2] += 1
    y[:, 1:] = y[:, :-1].clone()
    return y


@forward(X, dims=N)
def unbound_and_written(self, x):
    y = x.t().contiguous()
    rows = y.unbind(0)
    rows[2].add_(rows[3])
    rows[3].mul_(rows[2])
    return y, rows[3]


@forward(X, "i:int64[7]=0:5", dims=N)
def put_with_duplicates(self, x, i):
    y = x.clone().t()
    return y.index_put((i,), torch.ones(7, 1), accumulate=True), torch.zeros(6).index_add_(0, i, i.float())


@forward(X, dims=N)
def out_argument(self, x):
    y = torch.empty_like(x)
    torch.exp(x.clamp(max=5), out=y)
    return torch.add(y, x, out=y), y


@forward(X, dims=N)
def input_overwritten(self, x):
    y = x * 2
    x.zero_()
    return y + x, x


@attack(X, dims=N)
def pruned_layer():
    layer = nn.Linear(6, 6)
    prune.l1_unstructured(layer, "weight", 0.5)
    return nn.Sequential(layer, nn.ReLU())


@attack(X, dims=N)
def hook_by_size():
    layer = nn.Linear(6, 6)
    layer.register_forward_hook(lambda _, inputs, output: output * 3 if len(inputs[0]) == 4 else None)
    return nn.Sequential(layer)


@attack(X, dims=N, refused="depends on the values")
def hook_by_value():
    layer = nn.Linear(6, 6)
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0].clamp(-50, 50),) if inputs[0].max() > 77 else None)
    return nn.Sequential(layer)


class _Doubled(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        return result * 2 if function is torch.tanh else result


@forward(X, dims=N)
def function_mode(self, x):
    with _Doubled():
        return torch.tanh(x)


@attack(X, dims=N)
class OwnCall(nn.Module):
    """Overrides __call__, so that forward is not all."""

    def __call__(self, x):
        return super().__call__(x) + 1

    def forward(self, x):
        return x * 2
