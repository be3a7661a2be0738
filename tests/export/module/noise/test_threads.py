"""FP64 runs get one thread until all of them have shown to be faster; runs in FP32 keep the number they have."""

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.tensors import parse_tensor
from trtconv.export.module.noise.threads import TRIALS, FasterThreads, one_thread
from trtconv.export.module.runner import ModuleRunner

X = {"x": np.ones((4, 8), np.float32)}


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def counts(seconds, runs=12, inputs=X):
    """The threads of so many runs, which take the `seconds` of that number of threads."""
    now = [0.0]
    threads, used = FasterThreads(clock=lambda: now[0]), []
    for _ in range(runs):
        with threads.chosen(inputs):
            used.append(torch.get_num_threads())
            now[0] += seconds[used[-1]]
        assert torch.get_num_threads() == 2
    return used


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({1: 0.09, 2: 0.01}, [1] * 12),
        ({1: 1.0, 2: 0.6}, [1, 1, *[2] * 10]),
        ({1: 1.0, 2: 1.1}, [1, 1, 2, 2, *[1] * 8]),
        ({1: 1.0, 2: 16.0}, [1, 1, 2, *[1] * 9]),
    ],
    ids=["short", "faster", "slower", "hopeless"],
)
def test_the_faster_number_is_taken(two_threads, seconds, expected):
    assert counts(seconds) == expected


def test_a_run_that_raises_leaves_the_number_as_it_was(two_threads):
    threads = FasterThreads()
    with pytest.raises(ValueError, match="own"), threads.chosen(X):
        raise ValueError("own")
    assert torch.get_num_threads() == 2
    assert threads.alone == []


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.threads = []

    def forward(self, x):
        self.threads.append((x.dtype, torch.get_num_threads()))
        return x * 2


def test_runs_in_single_precision_are_left_alone(two_threads):
    module = Counted()
    runner = ModuleRunner(module, [parse_tensor("x:float32[N,8]")])
    runner(X)
    exact = runner.exact()
    for _ in range(TRIALS):
        exact({"x": X["x"].astype(np.float64)})
    assert module.threads == [(torch.float32, 2)]
    assert exact.module.threads[1:] == [(torch.float64, 1)] * TRIALS
    assert runner.exact().threads is runner.threads


def test_one_thread_ends_with_its_block():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
