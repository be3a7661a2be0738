"""Comparisons of sizes, and numbers read from tensors, where Python wants a number, a key or a text."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.sizes.comparisons import comparisons_as_numbers, divisions_that_raise, values_in_text
from trtconv.export.symbolic.mode import symbolic_functions

USES = {
    "index": lambda t: ("a", "b")[t == 9],
    "count": lambda t: [1] * (t > 9),
    "range": lambda t: list(range(t != 9)),
    "key": lambda t: {True: "a", False: "b"}[t == 9],
    "inverted": lambda t: ~(t == 9),
    "negative": lambda t: -(t == 9),
}


ANSWERS: list = []


class Answers(nn.Module):
    """A module that does something with a comparison of its length."""

    def __init__(self, use):
        super().__init__()
        self.use = use

    def forward(self, x):
        ANSWERS.append(self.use(x.shape[0]))
        return x + 1


@pytest.mark.parametrize("name", USES)
def test_a_comparison_is_a_question_about_the_size(name):
    ANSWERS.clear()
    shapes = {"x": {0: torch.export.Dim("T", min=2, max=99)}}
    with pytest.raises(Exception, match=r"Constraints violated|Not all values"), comparisons_as_numbers():
        torch.export.export(Answers(USES[name]), (torch.ones(9),), dynamic_shapes=shapes, strict=False)
    assert [USES[name](9)] == ANSWERS
    assert isinstance(ANSWERS[0], type(USES[name](9)))
    assert not hasattr(torch.SymBool, "__index__")


class Coded(nn.Module):
    """A table by the text of a number that a tensor holds."""

    def forward(self, x, code):
        return x * {"7": 0.5}.get(f"{code.item()}", 1.0)


def test_a_number_of_a_tensor_is_no_text():
    inputs = torch.ones(3), torch.tensor([7])
    with pytest.raises(Exception, match="data-dependent"), values_in_text():
        torch.export.export(Coded(), inputs, strict=False)
    with pytest.raises(Exception, match="data-dependent"), symbolic_functions():
        torch.export.export(Coded(), inputs, strict=False)


def test_a_size_in_a_text_stays_a_size():
    class Tells(nn.Module):
        def forward(self, x):
            assert f"{x.shape[0]}" + str(x.shape) + repr(x.shape[0] > 3)
            return x + 1

    shapes = {"x": {0: torch.export.Dim("T", min=2, max=99)}}
    with values_in_text():
        torch.export.export(Tells(), (torch.ones(9),), dynamic_shapes=shapes, strict=False)


@pytest.mark.slow
def test_distributions_check_their_arguments_as_before():
    """In a process of its own: here another test may have had a function compiled."""
    code = (
        "from trtconv.export.module.runner import load_dynamo\nload_dynamo()\n"
        "import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(1))\n"
        "torch.distributions.Normal(torch.zeros(1), torch.zeros(1))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ValueError: Expected parameter scale" in run.stderr


DIVISIONS = {
    "quotient": lambda t: 40.0 / (t - 9),
    "floor": lambda t: 40 // (t - 9),
    "rest": lambda t: 40 % (t - 9),
    "by a size": lambda t: (t + 1) / (t - 9),
}


class Catches(nn.Module):
    """A division that a size may end."""

    def __init__(self, divide):
        super().__init__()
        self.divide = divide

    def forward(self, x):
        try:
            ANSWERS.append(float(self.divide(x.shape[0]) * 0))
        except ZeroDivisionError:
            ANSWERS.append(7.0)
        return x + 1


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_division_by_a_size_that_is_zero_raises(name):
    ANSWERS.clear()
    shapes = {"x": {0: torch.export.Dim("T", min=2, max=99)}}
    with pytest.raises(Exception, match=r"Constraints violated|Not all values"), divisions_that_raise():
        torch.export.export(Catches(DIVISIONS[name]), (torch.ones(9),), dynamic_shapes=shapes, strict=False)
    assert ANSWERS == [7.0]


def test_a_division_by_a_size_that_is_never_zero_leaves_no_condition():
    class Mean(nn.Module):
        def forward(self, x):
            return x.sum() / x.shape[0] * (100 // x.shape[0])

    shapes = {"x": {0: torch.export.Dim("T", min=2, max=99)}}
    with divisions_that_raise():
        program = torch.export.export(Mean(), (torch.ones(9),), dynamic_shapes=shapes, strict=False)
    assert str(next(iter(program.range_constraints.values()))) == "VR[2, 99]"


CAUGHT = """
class Net(nn.Module):
    def forward(self, x):
        try:
            q, r = {division}
        except ZeroDivisionError:
            q, r = 7, 0
        return x * q + r
"""


@pytest.mark.parametrize(
    "division", ["50 // (x.shape[1] - 13), 50 % (x.shape[1] - 13)", "divmod(50, x.shape[1] - 13)"]
)
def test_both_sides_of_a_caught_division(division, write_module, export):
    path = write_module(CAUGHT.format(division=division))
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=2:5:20")
    run = OnnxRuntimeRunner(result.model)
    for length in range(2, 21):
        q, r = (7, 0) if length == 13 else divmod(50, length - 13)
        [y] = run({"x": np.ones((1, length), np.float32)}).values()
        np.testing.assert_array_equal(y, np.full((1, length), q + r, np.float32))


def test_a_size_rounded_to_tens(write_module, export):
    head = "class Net(nn.Module):\n    def forward(self, x):\n"
    source = f"{head}        return x.repeat(1, 5)[:, : round(x.shape[1], -1)]\n"
    result = export(f"{write_module(source)}:Net", ["x:float32[N,T]"], "N=1:1:2 T=6:17:60")
    run = OnnxRuntimeRunner(result.model)
    for length in (6, 14, 15, 25, 26, 60):
        [y] = run({"x": np.ones((1, length), np.float32)}).values()
        assert y.shape == (1, round(length, -1))
