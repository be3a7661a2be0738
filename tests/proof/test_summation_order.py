"""Normalising what hardly varies: the order in which a mean is added up shows, and counts as the module's own noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise.rounding import rounding_errors
from trtconv.proof.original import Summing

COUNT = 3000


class MeanOnly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean((1, 2), keepdim=True)) * 1e3


# All have factors of 2 where they have factors.
NORMS = {
    "layer": lambda: nn.LayerNorm([4, COUNT]),
    "group": lambda: nn.GroupNorm(2, 4),
    "instance": lambda: nn.InstanceNorm1d(4, affine=True),
    "mean": MeanOnly,
}


def runner_of(name: str) -> tuple[ModuleRunner, ModuleRunner]:
    module = NORMS[name]().eval()
    for parameter in module.parameters():
        nn.init.constant_(parameter, 2.0)
    runner = ModuleRunner(module)
    exact = runner.exact()
    assert exact is not None
    assert isinstance(runner, Summing)
    return runner, exact


@pytest.mark.parametrize("name", NORMS)
def test_the_mean_of_a_row_is_off_by_its_roundings_over_the_deviation(name: str) -> None:
    runner, exact = runner_of(name)
    x = (3.1 + 1e-3 * np.random.default_rng(0).normal(size=(2, 4, COUNT))).astype(np.float32)
    key = next(iter(runner.names), "input" if name != "mean" else "x")
    inputs = {key: x}
    outputs = runner(inputs)
    (own,) = rounding_errors(exact, inputs, outputs).values()
    (moved,) = rounding_errors(runner.resummed(exact), inputs, outputs).values()
    # Each of 1,500 sums in a lane is off by half a unit of up to 3.1 * 1500; over the deviation, times the factor.
    most = 1500 * 2.0**-24 * 3.1 / 1e-3 * 2
    assert 2 * own.max() < moved.max() < most


def test_running_statistics_are_nobodys_sums() -> None:
    module = nn.BatchNorm1d(4).eval()
    runner = ModuleRunner(module)
    exact = runner.exact()
    assert exact is not None
    x = np.full((2, 4, 99), 3.1)
    inputs = {"input": x}
    (one,), (other,) = exact(inputs).values(), runner.resummed(exact)(inputs).values()
    np.testing.assert_array_equal(one, other)
