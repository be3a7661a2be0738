"""Activations and losses whose numbers are made of a size; a tensor without axes stands for such a number."""

import math

import pytest
import torch
import torch.nn.functional as F

from trtconv.export.symbolic.arithmetic.activations import HANDLERS

VALUES = torch.tensor([-math.inf, -90.0, -3.0, -0.5, -1e-4, -0.0, 0.0, 1e-4, 0.3, 0.5, 2.0, 60.0, math.inf, math.nan])
CALLS = [
    (F.leaky_relu, (0.3,)), (F.elu, (1.7,)), (F.celu, (0.4,)), (F.hardtanh, (-0.4, 0.6)), (F.threshold, (0.3, -7.0)),
    (F.softplus, (1.3, 4.0)), (F.softplus, (0.2, 20.0)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "numbers"), CALLS)
def test_it_is_what_torch_computes(function, numbers):
    handler = HANDLERS[function.__name__.removeprefix("_")]
    computed = handler(function, VALUES, *map(torch.tensor, numbers))
    torch.testing.assert_close(computed, function(VALUES, *numbers), equal_nan=True)
    assert handler(function, VALUES, *numbers) is NotImplemented


@pytest.mark.parametrize("function", [F.leaky_relu, F.elu, F.celu])
def test_in_place(function):
    values = VALUES.clone()
    result = HANDLERS[function.__name__](function, values, torch.tensor(0.3), True)
    assert result is values
    torch.testing.assert_close(values, function(VALUES, 0.3), equal_nan=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("function", "name"), [(F.huber_loss, "delta"), (F.smooth_l1_loss, "beta")])
def test_losses(function, name, reduction):
    x, y = VALUES[1:-2], VALUES[1:-2].flip(0)
    computed = HANDLERS[function.__name__](function, x, y, reduction=reduction, **{name: torch.tensor(0.7)})
    torch.testing.assert_close(computed, function(x, y, reduction=reduction, **{name: 0.7}))
    assert HANDLERS[function.__name__](function, x, y, reduction=reduction, **{name: 0.7}) is NotImplemented


@pytest.mark.slow
def test_they_follow_the_size(write_module, export):
    write_module(
        """
class Slopes(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.LeakyReLU()

    def forward(self, x):
        t = x.shape[1]
        self.act.negative_slope = 1 / t
        return self.act(x), F.elu(x * 2, t / 10), F.softplus(x, t / 20, 10.0), F.huber_loss(x, -x, delta=t / 30)
"""
    )
    result = export("net.py:Slopes", ["x:float32[N,T]"], "N=1:2:3 T=1:20:60")
    assert not [n for n in result.notes if "stands in the file" in n]
