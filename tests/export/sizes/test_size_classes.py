"""Sizes are ints for a module that asks for their class, as they are in each of its calls."""

import numbers

import pytest
import torch

from trtconv.export.symbolic.recording.size_classes import sizes_as_numbers

HEAD = """import functools
import numbers


def pair(value):
    return (value, value) if isinstance(value, int) else value


@functools.singledispatch
def scale(value):
    return 7.0


@scale.register
def _(value: int):
    return 2.0


class Net(nn.Module):
    def forward(self, x):
        t = x.shape[1]
"""
BODIES = {
    "isinstance": "return x * 2 if isinstance(t, int) else x * 3",
    "pair": "return torch.ones(pair(t)) @ x",
    "abstract": "return x * 2 if isinstance(t, numbers.Integral) else x * 3",
    "float_and_bool": "return x * 2 if isinstance(t / 2, float) and isinstance(t > 3, bool) else x * 3",
    "no_float": "return x * 2 if isinstance(t, float) else x * 3",
    "dispatched": "return x * scale(t)",
    "pattern": "match t:\n            case int():\n                return x * 2\n        return x",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_classes_of_sizes_lead_as_in_a_call(write_module, export, body):
    path = write_module(f"{HEAD}        {body}\n")
    result = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=1:6:9")
    assert result.exporter == "dynamo"


def test_torch_still_tells_its_own(write_module):
    """Only code outside of torch and of this package sees a number; afterwards nobody does."""

    class Asks(torch.nn.Module):
        def forward(self, x):
            answers.append(isinstance(x.shape[0], numbers.Integral))
            return x + 1

    answers = []
    with sizes_as_numbers():
        program = torch.export.export(
            Asks(), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim("N")},), strict=False
        )
    torch.export.export(Asks(), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim("N")},), strict=False)
    assert answers == [True, False]
    assert isinstance(next(iter(program.graph.nodes)).meta["val"].shape[0], torch.SymInt)
