"""Recurrent layers with inexact gates: the layers that they are, and an error that closed gates show."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.export.module.runner import ModuleRunner
from trtconv.export.recurrent import gates

LAYERS = [
    nn.GRU(4, 5, batch_first=True, bidirectional=True, num_layers=2),
    nn.GRU(4, 5, bias=False),
    nn.LSTM(4, 5, num_layers=2, batch_first=True),
    nn.LSTM(4, 6, proj_size=3, bidirectional=True),
    nn.LSTM(4, 6, bias=False),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda m: repr(m)[:24])
@pytest.mark.parametrize("shape", [(3, 7, 4), (7, 4)])
def test_without_an_error_it_is_the_layer(
    layer: nn.Module, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "GATE_ERROR", 0.0)
    runner = ModuleRunner(layer)
    exact = runner.exact()
    assert exact is not None
    [inexact] = runner.inexact(exact)
    feed = {"input": np.random.default_rng(0).normal(size=shape)}
    before, after = exact(feed), inexact(feed)
    # Both in FP64; the order of their sums differs, and no more.
    assert set(before) == set(after)
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-12, atol=1e-14)
    assert runner.has_gates


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_closed_gates_are_as_inexact_as_a_unit_at_one(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    runner = ModuleRunner(kind(4, 5))
    exact = runner.exact()
    assert exact is not None
    [inexact] = runner.inexact(exact)
    feed = {"input": np.random.default_rng(0).uniform(0, 255, (3, 2, 4))}
    before, after = next(iter(exact(feed).values())), next(iter(inexact(feed).values()))
    assert 1e-8 < np.abs(before - after).max() < 1e-5


def test_what_has_none_is_not_run_again() -> None:
    runner = ModuleRunner(nn.Linear(4, 5))
    exact = runner.exact()
    assert exact is not None
    [inexact] = runner.inexact(exact)
    inexact({"input": np.ones((2, 4))})
    assert runner.inexact(exact) == ()
