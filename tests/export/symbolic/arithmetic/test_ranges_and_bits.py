"""Counts of a `range` and the bits of a size: numbers of the size, and not those of the one that was traced."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.symbolic.arithmetic.size_bits import bits_of_sizes
from trtconv.export.symbolic.ranges import SymbolicRange

MODULE = """
class Net(nn.Module):
    def forward(self, x):
        t = x.shape[-1]
        return x.sum(1) * ({formula})
"""
FORMULAS = [
    "len(range(0, max(t - 16, 0) + 1, 12))",
    "len(range(3, t, 4)) + len(range(t, 0, -7))",
    "(1 if 64 & t else 2)",
    "(t & 40) + (t ^ 5)",
    "(t | 40) + (t & ~5)",
    "sum(1 for i in range(4)) + t",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_number_is_that_of_the_size(write_module, export, formula):
    path = write_module(MODULE.format(formula=formula))
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:40:150")
    run = OnnxRuntimeRunner(result.model)
    for t in range(3, 151):
        x = np.ones((1, t), np.float32)
        [own] = run({"x": x}).values()
        assert own[0] == t * eval(formula, {"t": t}), t


def test_a_range_of_plain_numbers_is_pythons():
    assert type(SymbolicRange(3, 9, 2)) is range
    assert isinstance(range(3), SymbolicRange)
    assert not isinstance([0, 1, 2], SymbolicRange)


def test_a_range_of_recorded_sizes_is_looped_over():
    lengths = []

    class Net(torch.nn.Module):
        def forward(self, x):
            steps = SymbolicRange(1, x.shape[0], 2)
            lengths.append(steps.length())
            assert list(steps) == [1, 3]
            assert steps[0] == 1
            assert len(steps) == 2
            assert steps.stop == 5
            return x + steps.length()

    torch.jit.trace(Net(), torch.zeros(5), check_trace=False)
    assert isinstance(lengths[0], torch.Tensor)


def test_masks_that_are_no_plain_numbers_are_left_to_torch():
    with bits_of_sizes():
        assert torch.SymInt.__and__(object.__new__(torch.SymInt), "mask") is NotImplemented
