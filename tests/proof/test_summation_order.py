"""The order in which a mean or a variance is added up shows in what is normalised, and counts as the module's noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import helper
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


class Spreads(nn.Module):
    """Variances and deviations of [N, C, T], which torch sums in pairs."""

    def __init__(self, take: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.take = take

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / self.take(x)


SPREADS = {
    "variance": lambda x: x.var(2, keepdim=True),
    "deviation": lambda x: x.std(2, keepdim=True, unbiased=False),
    "both": lambda x: torch.std_mean(x, 2, keepdim=True)[0],
    "all": lambda x: x.var(),
    "instance": lambda x: x / nn.functional.instance_norm(x),
}


@pytest.mark.parametrize("name", SPREADS)
def test_the_variance_of_few_values_is_off_by_what_sums_in_a_row_lose(name: str) -> None:
    """Of many equal squares each sum is rounded to the same side: the variance of a volume is off by 1e-5 of itself."""
    runner = ModuleRunner(Spreads(SPREADS[name]).eval())
    exact = runner.exact()
    assert exact is not None
    x = np.random.default_rng(0).choice(np.float32([0.1, 0.3, 1.1]), size=(2, 4, 40_000))
    outputs = runner({"x": x})
    (output,) = outputs.values()
    (own,) = rounding_errors(exact, {"x": x}, outputs).values()
    (moved,) = rounding_errors(runner.resummed(exact), {"x": x}, outputs).values()
    assert 10 * (own / output).max() < (moved / output).max() < 1e-4


def test_onnx_runtime_normalises_a_volume_of_few_values_as_measured() -> None:
    norm = nn.InstanceNorm1d(4).eval()
    runner = ModuleRunner(norm)
    exact = runner.exact()
    assert exact is not None
    x = np.random.default_rng(0).choice(np.float32([0.1, 0.3, 1.1]), size=(2, 4, 40_000))
    outputs = runner({"input": x})
    ones = [helper.make_tensor(n, 1, [4], [v] * 4) for n, v in (("scale", 1.0), ("bias", 0.0))]
    node = helper.make_node("InstanceNormalization", ["x", "scale", "bias"], ["y"])
    ends = [[helper.make_tensor_value_info(n, 1, [2, 4, 40_000])] for n in "xy"]
    graph = helper.make_graph([node], "norm", *ends, ones)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    off = np.abs(session.run(None, {"x": x})[0] - outputs["output"])
    (own,) = rounding_errors(exact, {"input": x}, outputs).values()
    (moved,) = rounding_errors(runner.resummed(exact), {"input": x}, outputs).values()
    assert off.max() > 10 * own.max()
    assert off.max() < 3 * moved.max()
