"""Noise and changing state are refused: measured as rounding they would let any file pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.errors import AccuracyError
from trtconv.core.reference import ReferenceSample
from trtconv.core.sampling import SamplePoint
from trtconv.export.module_runner import ModuleRunner
from trtconv.export.repeatable import require_repeatable


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x):
        self.mean += 0.5
        return x - self.mean


class Counted(nn.Module):
    """The state changes, what it returns does not depend on it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x.sqrt()


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)


def sample(module):
    runner = ModuleRunner(module)
    inputs = {"x": np.linspace(-1, 3, 12, dtype=np.float32).reshape(3, 4)}
    return runner, ReferenceSample(SamplePoint("traced", (("N", 3),)), inputs, runner(inputs), {})


@pytest.mark.parametrize("module", [Noise(), State()])
def test_what_differs_from_run_to_run_is_refused(module):
    with pytest.raises(AccuracyError, match="run again on the same inputs"):
        require_repeatable(*sample(module))


@pytest.mark.parametrize("module", [Counted(), Dropped()])
def test_what_repeats_is_taken(module):
    require_repeatable(*sample(module))
