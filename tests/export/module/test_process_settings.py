"""What user code sets in a process is for its own runs."""

import asyncio
import os
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import trtconv
from trtconv.core.errors import TrtconvError
from trtconv.core.requests import ModuleSource
from trtconv.export.lasting.process_settings import own_settings, settings_of_user
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.source import load_module

NET = """
import os
import numpy as np
import torch
from torch import nn

np.seterr(all="raise")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        os.chdir(os.path.dirname(os.path.abspath(__file__)))

    def forward(self, x):
        assert np.geterr()["under"] == "raise"
        return x * float(open("scale.txt").read())
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A current folder beside that of the net."""
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "net.py").write_text(textwrap.dedent(NET))
    (tmp_path / "repository" / "scale.txt").write_text("3")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def test_a_factory_that_changes_folder_and_numpy(outside):
    before = np.geterr()
    module = load_module(ModuleSource("../repository/net.py:Net", base=Path()))
    assert (Path.cwd(), np.geterr()) == (outside / "here", before)
    runner = ModuleRunner(module, base=Path())
    assert runner({"x": np.float32([1, 2])})["output"].tolist() == [3, 6]
    assert (Path.cwd(), np.geterr()) == (outside / "here", before)
    load_module(ModuleSource("torch.nn:ReLU", base=Path()))
    with settings_of_user():
        assert Path.cwd() == outside / "here"


def test_new_tensors_lie_on_the_cpu(outside):
    text = "import torch\ntorch.set_default_device('meta')\nNet = torch.nn.ReLU\n"
    (outside / "repository" / "away.py").write_text(text)
    load_module(ModuleSource("../repository/away.py:Net", base=Path()))
    assert torch.zeros(1).device.type == "cpu"
    torch.set_default_device("meta")
    try:
        with own_settings():
            assert torch.zeros(1).device.type == "cpu"
        assert torch.zeros(1).device.type == "meta"
    finally:
        torch.set_default_device(None)


def test_settings_of_a_caller_are_for_the_module_alone():
    with np.errstate(under="raise"), own_settings():
        assert np.geterr()["under"] == "ignore"
        with settings_of_user():
            assert np.geterr()["under"] == "raise"
        assert np.geterr()["under"] == "ignore"
    assert np.geterr()["under"] == "ignore"


@pytest.mark.parametrize("seed", [1, 2])
def test_autocast_of_the_caller_is_no_part_of_the_module(tmp_path, seed):
    torch.manual_seed(seed)
    module = torch.nn.Linear(8, 4)
    with torch.autocast("cpu"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = trtconv.convert(module, inputs={"input": "float32[N,8]"}, dynamic={"N": "1:2:4"}, output=tmp_path)
        assert torch.is_autocast_enabled("cpu")
    assert any("torch.autocast is on around this call" in str(w.message) for w in caught)
    x = torch.randn(4, 8)
    outputs = trtconv.load(result.rewritten)(input=x)
    np.testing.assert_allclose(outputs["output"], module(x).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("raised", [asyncio.CancelledError("late"), GeneratorExit(), pytest.skip.Exception("no GPU")])
def test_what_is_no_exception_is_the_modules_error_too(raised):
    class Raising(torch.nn.Module):
        def forward(self, x):
            raise raised

    with pytest.raises(TrtconvError, match=f"the module itself raises {type(raised).__name__}"):
        ModuleRunner(Raising())({"x": np.zeros(2, np.float32)})


def test_an_exception_that_says_nothing():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    class Raising(torch.nn.Module):
        def forward(self, x):
            raise Mute

    with pytest.raises(TrtconvError, match="the module itself raises Mute"):
        ModuleRunner(Raising())({"x": np.zeros(2, np.float32)})


def test_ctrl_c_passes():
    class Raising(torch.nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ModuleRunner(Raising())({"x": np.zeros(2, np.float32)})
    assert os.getcwd()
