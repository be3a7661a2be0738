"""Checks of values that only raise, which no file has."""

import ast

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.export.symbolic.recording.value_checks import _going_on

CHECKS = """
        assert (x < 1e30).all()
        assert x.shape[1] > 0 and x.abs().max() < 1e30
        if x.isnan().any():
            raise ValueError('nan')
        if not (x < 1e30).all():
            raise ValueError('large')
        torch._assert((x < 1e30).all(), 'large')
        torch._check_tensor_all(x < 1e30)
        torch._check_tensor_all_with(ValueError, x < 1e30, lambda: 'large')
"""
CAUGHT = """
        try:
            assert (x < 1).all()
        except AssertionError:
            return x * 3
"""
NET = """
class Net(nn.Module):
    def forward(self, x):{checks}
        if x.shape[1] > 4:
            return x.cumsum(1)
        return x * 2

def make():
    return Net()
"""


@pytest.mark.slow
def test_checks_do_not_keep_a_branch_by_size_from_the_file(write_module, export):
    result = export(f"{write_module(NET.format(checks=CHECKS))}:make", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    runner = OnnxRuntimeRunner(result.model)
    for size in (1, 4, 5, 9):
        x = np.arange(2.0 * size, dtype=np.float32).reshape(2, size)
        (out,) = runner({"x": x}).values()
        np.testing.assert_array_equal(out, x.cumsum(1) if size > 4 else x * 2)


def test_a_check_whose_error_is_caught_is_a_decision(write_module, export):
    with pytest.raises(TrtconvError, match="depends on the values"):
        export(f"{write_module(NET.format(checks=CAUGHT))}:make", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")


@pytest.mark.parametrize(
    ("code", "answers"),
    [
        ("assert a", {1: True}),
        ("assert not a", {1: False}),
        ("assert a.all() and b.all()", {1: True}),
        ("if a:\n    raise E", {1: False}),
        ("if not a:\n    m = 1\n    raise E", {1: True}),
        ("if (\n    a.all()\n):\n    raise E", {2: False}),
        ("if a or not b:\n    raise E", {}),
        ("if a:\n    raise E\nelse:\n    y = 1", {}),
        ("if a:\n    y = 1", {}),
        ("while a:\n    raise E", {}),
    ],
)
def test_what_each_truth_has_to_be_for_forward_to_go_on(code, answers):
    """Of `a or not b` each has its own, and it is left to torch."""
    assert _going_on(ast.parse(code)) == answers
