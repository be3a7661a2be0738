"""Which globals a run with symbols changes: those of the files that are loaded now, under whatever name."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.export.symbolic.builtins import SymbolicInt, replacements, symbolic_builtins

TEXT = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.fixture
def load(tmp_path):
    def run(name):
        path = tmp_path / "net_of_globals.py"
        path.write_text(TEXT)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    yield run
    for name in [n for n in sys.modules if n.startswith("net_of_globals")]:
        del sys.modules[name]


def seen_by(loaded):
    with symbolic_builtins(loaded.Net()):
        return vars(loaded).get("int")


def test_a_file_that_is_loaded_anew_under_its_name_is_read_anew(load):
    assert seen_by(load("net_of_globals")) is SymbolicInt
    second = load("net_of_globals")
    assert seen_by(second) is SymbolicInt
    assert "int" not in vars(second)


def test_a_file_in_the_place_of_another_is_read(load):
    assert seen_by(load("net_of_globals_one")) is SymbolicInt
    del sys.modules["net_of_globals_one"]
    assert seen_by(load("net_of_globals_two")) is SymbolicInt


def test_a_global_that_came_later_is_read(load):
    import math

    loaded = load("net_of_globals")
    assert seen_by(loaded) is SymbolicInt
    loaded.helper, loaded.torch_again = math, torch
    with symbolic_builtins(loaded.Net()):
        assert loaded.helper is not math
    assert loaded.helper is math
    assert isinstance(loaded.Net(), nn.Module)


def test_the_class_that_stands_for_int_is_int_to_numpy_and_in_a_dictionary():
    for name, plain in (("int", int), ("float", float)):
        symbolic = replacements()[name]
        assert np.array([1.7]).astype(symbolic).dtype == np.dtype(plain)
        assert np.zeros(2, dtype=symbolic).dtype == np.dtype(plain)
        assert {symbolic: 5.0}[plain] == {plain: 5.0}[symbolic] == 5.0
        assert {plain: 1, str: 2}.get(symbolic) == 1
