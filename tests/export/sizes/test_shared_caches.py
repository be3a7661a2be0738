"""What the user's files keep for all modules: masks and tables that are made once for each size."""

import functools
import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from trtconv.export.sizes.shared_caches import shared_caches

NETS = """
import functools

@functools.lru_cache(maxsize=4)
def mask(t):
    return torch.triu(torch.full((t, t), float("-inf")), 1)

TABLES = {}

def table(t):
    if t not in TABLES:
        TABLES[t] = torch.arange(t) * 0.1
    return TABLES[t]

class Function(nn.Module):
    def forward(self, x):
        return (x @ x.transpose(1, 2) + mask(x.shape[1])).softmax(-1) @ x

class Method(nn.Module):
    @functools.cache
    def table(self, t):
        return torch.arange(t) * 0.1

    def forward(self, x):
        return x + self.table(x.shape[1])[:, None]

# As transformers caches its tables of positions.
def cached_but_compiled(function):
    cached = functools.lru_cache(maxsize=32)(function)

    @functools.wraps(function)
    def call(*args, **named):
        return function(*args, **named) if torch.compiler.is_dynamo_compiling() else cached(*args, **named)

    return call

class Decorated(nn.Module):
    @staticmethod
    @cached_but_compiled
    def table(t):
        return torch.arange(t) * 0.1

    def forward(self, x):
        return x + self.table(x.shape[1])[:, None]

class Dictionary(nn.Module):
    def forward(self, x):
        return x @ torch.eye(4) + table(x.shape[1])[:, None]
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["Function", "Method", "Decorated", "Dictionary"])
def test_what_is_made_once_for_each_size_is_exported(name, export, write_module):
    write_module(NETS)
    result = export(f"net.py:{name}", ["x:float32[N,T,4]"], "N=1:2:3 T=1:5:16")
    assert result.exporter == "dynamo"
    assert result.sizes.tried == result.sizes.total == 48


class Part(nn.Identity):
    """A part of a user's network."""


@pytest.fixture
def file(monkeypatch):
    module = ModuleType("net_of_shared_caches")
    module.__file__ = "/home/somebody/net.py"
    sys.modules[module.__name__] = module
    # A class of a user's file beside it.
    monkeypatch.setattr(sys.modules[Part.__module__], "__file__", "/home/somebody/part.py")
    yield module
    del sys.modules[module.__name__]


def test_caches_are_as_before_the_first_run_for_a_block_and_then_as_they_were(file):
    file.grown, file.table, file.order = {}, {3: "three"}, [1]
    file.remember = functools.lru_cache(lambda v: object())
    caches = shared_caches(Part())
    assert (file, "grown") in caches.dictionaries
    file.grown[3], inner = "of FP32", file.remember(3)
    file.order.append(2)
    remember, grown = file.remember, file.grown
    with caches.emptied():
        assert (grown, file.grown, file.order, file.table) == ({}, {}, [1], {3: "three"})
        # Nothing is remembered here, and a table of the author's stays one.
        assert file.remember(3) is not file.remember(3)
        assert type(file.table) is dict
        file.grown[3] = grown[4] = "of FP64"
    assert (file.grown, file.order) == ({3: "of FP32"}, [1, 2])
    assert file.grown is grown
    assert file.remember is remember
    assert file.remember(3) is inner


def test_an_error_in_the_block_puts_them_back(file):
    file.grown = {}
    caches = shared_caches(Part())
    file.grown[1] = 1
    with pytest.raises(ValueError, match="out"), caches.emptied():
        raise ValueError("out")
    assert file.grown == {1: 1}


class Missing:
    """Stands for an optional package that is not there: whatever it is asked for raises."""

    def __getattribute__(self, name):
        raise ImportError(f"no {name} without the package")


def test_what_stands_for_a_package_that_is_not_there_is_left_alone(file):
    file.missing, file.remember = Missing(), functools.lru_cache(lambda v: object())
    file.Owner = type("Owner", (), {"missing": Missing(), "__module__": file.__name__})
    assert [f.name for f in shared_caches(Part()).functions if f.space is file] == ["remember"]


def test_a_file_with_a_package_that_is_not_there_is_exported(export, write_module):
    write_module("""
class Missing:
    def __getattr__(self, name):
        raise ImportError(f"no {name} without the package")

missing = Missing()

class Net(nn.Module):
    def forward(self, x):
        return x.relu() * x.shape[1]
""")
    assert export("net.py:Net", ["x:float32[N,4]"], "N=1:2:3").exporter == "dynamo"


def test_libraries_are_left_alone():
    caches = shared_caches(nn.Sequential(nn.Linear(2, 2)))
    assert all(f.space is not torch and f.space.__name__.partition(".")[0] != "torch" for f in caches.functions)
    assert all(file.__name__ != "torch" for file, _ in caches.dictionaries)
