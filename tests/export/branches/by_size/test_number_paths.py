"""What code asks of a size besides its value leads a run with symbols astray; a run with numbers shows it."""

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.core.requests import ModuleSource
from trtconv.export.branches.by_size.instructions import steps_taken
from trtconv.export.module.source import load_module

NETS = """
import functools

@functools.singledispatch
def half(size):
    return size // 2

@half.register
def _(size: int):
    return size // 2 + (size == 13)

class ByType(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        return -x if type(h) is int and (h, w) == (13, 17) else x

class ByDispatch(nn.Module):
    def forward(self, x):
        return x * half(x.shape[2])

class BySwallowed(nn.Module):
    def forward(self, x):
        try:
            key = x.shape[2].to_bytes(1, "big")
        except AttributeError:
            return x
        return x.exp() if key == b"\\r" else x

class Harmless(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        assert not isinstance(h, int) or h > 0
        return x * h + w
"""
SPACE = "H=4:8:20 W=5:9:21"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "says"), [("ByType", "depends on the size"), ("BySwallowed", "depends on the size")])
def test_a_branch_behind_a_question_of_type_is_found(export, write_module, name, says):
    write_module(NETS)
    with pytest.raises(AccuracyError, match=says) as failure:
        export(f"net.py:{name}", ["x:float32[1,2,H,W]"], SPACE)
    assert "H=13" in failure.value.message


def test_what_is_dispatched_by_type_is_in_the_file(export, write_module):
    """A size is an int while it is traced, too: the file has both ways of the function for ints."""
    path = write_module(NETS)
    result = export(f"{path}:ByDispatch", ["x:float32[1,2,H,W]"], SPACE)
    module = load_module(ModuleSource(f"{path}:ByDispatch"))
    runner = OnnxRuntimeRunner(result.model)
    for h in (4, 12, 13, 14, 20):
        x = torch.randn(1, 2, h, 7)
        [output] = runner({"x": x.numpy()}).values()
        np.testing.assert_allclose(output, module(x).detach().numpy(), rtol=1e-5)


def test_a_harmless_question_is_said_and_converts(export, write_module):
    write_module(NETS)
    result = export("net.py:Harmless", ["x:float32[1,2,H,W]"], SPACE)
    assert "is asked at net.py:" in result.sizes.obstacle
    assert result.sizes.tried > 20


def test_steps_are_those_of_the_users_code(write_module):
    names = {}
    path = write_module("def choose(flag):\n    return 1 if flag else 2\n")
    exec(compile(path.read_text(), str(path), "exec"), names)
    with steps_taken() as first:
        names["choose"](True)
    with steps_taken() as second:
        names["choose"](False)
    assert {file for file, _, _ in first} == {str(path)}
    assert set(first) ^ set(second)
    assert set(first.values()) == {6}
