"""What a run of a module computes is counted: of products of matrices exactly, of the rest about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.export.module.runner import ModuleRunner
from trtconv.export.sizes.work import PER_ELEMENT


class Resized(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(input, scale_factor=2.0, mode="bilinear")


def work_of(module: nn.Module, *shape: int) -> tuple[ModuleRunner, float]:
    """A module's runner, and what a run takes beside writing its output."""
    runner = ModuleRunner(module)
    inputs: dict[str, Any] = {"input": np.ones(shape, np.float32)}
    outputs, work = runner.counted(inputs)
    plain = runner(inputs)
    assert all(np.array_equal(outputs[n], plain[n]) for n in plain)
    return runner, work - PER_ELEMENT * sum(v.size for v in outputs.values())


@pytest.mark.parametrize(
    ("module", "shape", "products"),
    [
        (nn.Linear(8, 16), (4, 8), 4 * 8 * 16),
        (nn.Conv2d(3, 5, 3, padding=1), (2, 3, 8, 6), 2 * 5 * 8 * 6 * 3 * 9),
        (nn.Conv2d(6, 6, 3, groups=6, padding=1), (1, 6, 4, 4), 6 * 16 * 9),
    ],
)
def test_products_are_counted(module: nn.Module, shape: tuple[int, ...], products: int) -> None:
    _, work = work_of(module, *shape)
    assert work == 2 * products


def test_an_lstm_is_counted_by_its_matrices() -> None:
    lstm = nn.LSTM(4, 5)
    matrices = sum(p.numel() for p in lstm.parameters() if p.dim() == 2)
    runner = ModuleRunner(lstm)
    _, work = runner.counted({"input": np.ones((7, 2, 4), np.float32)})
    assert work >= 2 * 14 * matrices


def test_interpolation_is_no_product() -> None:
    _, work = work_of(Resized(), 1, 2, 4, 4)
    assert work == 0


class ResizedWhereLarge(nn.Module):
    """One size takes another path than the one before."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] > 4:
            return nn.functional.interpolate(x, size=(4, 4), mode="bilinear")
        return x.relu()


def test_interpolation_is_noticed_where_it_is() -> None:
    runner = ModuleRunner(ResizedWhereLarge())
    exact = runner.exact()
    assert exact is not None
    for size, sides in ((4, 0), (6, 4), (3, 0), (7, 4)):
        exact({"x": np.ones((1, 2, size, size))})
        assert len(runner.resampled(exact)) == sides


class Autocast(nn.Module):
    """A layer of torch's encoder, which runs as one fused operator, in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layer(input).float()


def test_what_is_counted_under_autocast_is_what_a_plain_run_gives() -> None:
    """Under a mode that watches, the products inside the fused operator were in float32."""
    _, work = work_of(Autocast().eval(), 2, 9, 32)
    assert work > 0
