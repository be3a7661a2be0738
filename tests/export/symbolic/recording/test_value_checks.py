"""Checks of values that only raise, which no file has."""

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError

CHECKS = {
    "assert": "assert (x < 1e30).all()",
    "assert of both": "assert x.shape[1] > 0 and x.abs().max() < 1e30",
    "raise": "if x.isnan().any():\n            raise ValueError('nan')",
    "raise unless": "if not (x < 1e30).all():\n            raise ValueError('large')",
    "torch's assert": "torch._assert((x < 1e30).all(), 'large')",
    "torch's check": "torch._check_tensor_all(x < 1e30)",
    "torch's check with": "torch._check_tensor_all_with(ValueError, x < 1e30, lambda: 'large')",
}
NET = """
class Net(nn.Module):
    def forward(self, x):
        {check}
        if x.shape[1] > 4:
            return x.cumsum(1)
        return x * 2

def make():
    return Net()
"""


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_does_not_keep_a_branch_by_size_from_the_file(write_module, export, name):
    result = export(f"{write_module(NET.format(check=CHECKS[name]))}:make", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    runner = OnnxRuntimeRunner(result.model)
    for size in (1, 4, 5, 9):
        x = np.arange(2.0 * size, dtype=np.float32).reshape(2, size)
        (out,) = runner({"x": x}).values()
        np.testing.assert_array_equal(out, x.cumsum(1) if size > 4 else x * 2)


def test_a_check_whose_error_is_caught_is_a_decision(write_module, export):
    caught = "try:\n            assert (x < 1).all()\n        except AssertionError:\n            return x * 3"
    with pytest.raises(TrtconvError, match="depends on the values"):
        export(f"{write_module(NET.format(check=caught))}:make", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")


def test_of_two_answers_in_one_line_each_has_its_own(write_module, export):
    """`a or not b` is left to torch."""
    check = "if x.isnan().any() or not (x < 1e30).all():\n            raise ValueError('no')"
    with pytest.raises(TrtconvError, match="depends on the size"):
        export(f"{write_module(NET.format(check=check))}:make", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
