"""A copy of a module computes with its own weights and state, also by functions that had the module's."""

from __future__ import annotations

import copy
import functools

import torch
from torch import nn

from trtconv.export.module.noise.closures import deep_copy
from trtconv.export.sizes.shape_caches import same_containers


def _scaler(box):
    def scale(x, again=True):
        return scale(x, again=False) * box["gain"] if again else x + len(box["names"])

    return scale


class Held(nn.Module):
    """The module in a lambda, a hook, a patched forward and a partial; a dictionary in a closure."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), 3.0))
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
        self.box = {"gain": 2.0, "names": []}
        self.scale = _scaler(self.box)
        self.gate = lambda x, weight=self.weight: x * weight * self.weight
        self.more = [functools.partial(lambda y, x: x + self.weight, None)]
        whole = self.second.forward
        self.second.forward = lambda x: whole(x) * 0.5
        self.first.register_forward_hook(lambda part, args, y: y * self.weight)

    def forward(self, x):
        self.box["gain"] = 4.0
        y = self.scale(self.more[0](self.gate(self.second(self.first(x)))))
        self.box["gain"] = 2.0
        return y


def test_functions_of_a_copy_hold_the_copy():
    torch.manual_seed(0)
    module = Held()
    copied = deep_copy(module, {})
    x = torch.ones(1, 2)
    expected = module(x)
    assert torch.equal(copied(x), expected)
    double = copied.double()
    assert torch.allclose(double(x.double()), expected.double(), rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert torch.allclose(double(x.double()), expected.double(), rtol=1e-4, atol=1e-4)
    assert torch.equal(module(x), torch.zeros(1, 2))


def test_what_holds_nothing_stays_itself():
    module = nn.Sequential(nn.Linear(2, 2))
    module.function = plain = lambda x: x + 1
    module.outside = other = _scaler({"gain": 1.0, "names": []})
    copied = deep_copy(module, {})
    assert copied.function is plain
    assert copied.outside is other


def test_dictionaries_are_the_same_after_a_trace_has_copied_them():
    module = Held()
    box = module.box
    with same_containers(module):
        module.box = copy.deepcopy(box)
        box["gain"] = torch.ones(1)
        box["names"].append("a trace")
    assert module.box is box
    assert box["gain"] == 2.0
    with same_containers(module):
        module.box = kept = None
    assert module.box is kept
