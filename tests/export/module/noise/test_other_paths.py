"""A module that is another function for doubles: its distance from that is no rounding."""

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.errors import AccuracyError
from trtconv.core.tensors import parse_tensor
from trtconv.export.module.noise.other_paths import takes_another_path
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise.rounding import measured_errors

INPUT = parse_tensor("x:float32[N,T]")


class DividesDoubles(nn.Module):
    def forward(self, x):
        return torch.tanh(x / 255 if x.dtype == torch.float64 else x)


class AnotherEpsilon(nn.Module):
    def forward(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True).add(1e-2 if x.dtype == torch.float64 else 1e-6)).sqrt()


class CastsAndDraws(nn.Module):
    """What trtconv widens itself is no other path."""

    def forward(self, x):
        torch.manual_seed(0)
        drawn = x.float() * torch.rand(x.shape[1])
        return drawn + nn.functional.interpolate(x[:, None], scale_factor=2.0)[:, 0, ::2]


@pytest.mark.parametrize(
    ("module", "differs"),
    [(DividesDoubles(), True), (AnotherEpsilon(), True), (CastsAndDraws(), False), (nn.GELU(), False)],
)
def test_another_path_shows_in_operators_and_their_numbers(module, differs):
    runner = ModuleRunner(module, [INPUT])
    inputs = {"x": np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)}
    assert takes_another_path(runner, inputs) is differs


def test_the_noise_is_that_of_moved_inputs_then():
    runner = ModuleRunner(DividesDoubles(), [INPUT])
    inputs = {"x": np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)}
    errors = measured_errors(runner, runner.exact(), inputs, runner(inputs))
    assert float(next(iter(errors.values())).max()) < 1e-6
    assert runner.exact() is None


def test_a_baked_number_does_not_pass_for_noise(export, write_module):
    write_module(
        "class Net(nn.Module):\n    def forward(self, x):\n        if x.dtype == torch.float64:\n"
        "            x = x / 255\n        return x + 0.02 * x[0].tolist()[0]\n"
    )
    with pytest.raises(AccuracyError):
        export("net.py:Net", ["x:float32[N,T]"], "N=1:2:4 T=1:5:9")
