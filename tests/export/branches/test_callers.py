"""A module that asks who calls it is refused with its line; what libraries ask for themselves is not its doing."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from trtconv.core.errors import AccuracyError
from trtconv.core.requests import ModuleSource
from trtconv.export.branches.callers import require_no_use_of_callers
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.source import load_module

HEAD = "import inspect, logging, sys, traceback, warnings\nclass Net(nn.Module):\n    def forward(self, x):\n"
INPUTS = {"x": np.ones((2, 3), np.float32)}


def runner_of(path):
    return ModuleRunner(load_module(ModuleSource(f"{path}:Net", base=path.parent)), None, path.parent)


@pytest.mark.parametrize(
    "line",
    [
        "name = sys._getframe(1).f_code.co_name",
        "name = inspect.currentframe().f_back.f_code.co_name",
        "name = inspect.stack()[1].function",
        "name = traceback.extract_stack()[-2].name",
    ],
)
def test_asking_for_frames_is_refused(write_module, line):
    path = write_module(HEAD + f"        {line}\n        return x * 2\n")
    with pytest.raises(AccuracyError, match="asks which code calls it") as caught:
        require_no_use_of_callers(runner_of(path), INPUTS)
    assert str(caught.value.where).endswith("net.py:8")


@pytest.mark.parametrize("line", ["logging.getLogger('a').debug('b')", "warnings.warn('c', stacklevel=1)", "pass"])
def test_what_libraries_ask_is_allowed(write_module, line):
    path = write_module(HEAD + f"        {line}\n        return x * 2\n")
    with pytest.warns() if "warn" in line else nullcontext():
        require_no_use_of_callers(runner_of(path), INPUTS)
