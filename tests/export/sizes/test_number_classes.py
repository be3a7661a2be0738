"""Sizes that are compared with numbers of other classes than int and float."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.core.errors import AccuracyError
from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.sizes.number_classes import plain_number

HEAD = """
import enum
from decimal import Decimal
from fractions import Fraction


class Channels(enum.IntEnum):
    MONO = 1
    SURROUND = 23


class Layout(enum.IntFlag):
    FRONT = 16
    ALL = 23


class Whole(int):
    pass


class Backwards(int):
    def __eq__(self, other):
        return int(self) == int(other) + 1

    __hash__ = int.__hash__


class Net(nn.Module):
    def forward(self, x):
        t = x.shape[1]
"""
LINES = {
    "an enumeration": "if t == Channels.SURROUND:",
    "the other way round": "if not Channels.SURROUND != t:",
    "among several": "if t in (Channels.MONO, Channels.SURROUND):",
    "within a shape": "if x.shape[1:] == (Channels.SURROUND,):",
    "above": "if t >= Channels.SURROUND:",
    "flags": "if t == Layout.ALL:",
    "a subclass": "if t == Whole(23):",
    "a subclass that compares otherwise": "if Backwards(24) == t:",
    "a fraction": "if t == Fraction(46, 2):",
    "a fraction between": "if t == Fraction(47, 2):",
    "half a size": "if t / 2 == Fraction(23, 2):",
    "a decimal": "if t == Decimal(23):",
    "infinitely many": "if t == Decimal('inf'):",
    "a complex number": "if t == 23 + 0j:",
    "one that is not real": "if t == 23 + 1j:",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_both_sides_are_in_the_file(write_module, export, tmp_path, line):
    path = write_module(f"{HEAD}        {line}\n            return x.flip(1)\n        return x * 2\n")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=1:9:40")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    for t in (1, 9, 22, 23, 24, 40):
        x = torch.randn(2, t)
        np.testing.assert_array_equal(session.run(None, {"x": x.numpy()})[0], module(x).numpy())


class _Added(int):
    def __add__(self, other):
        return 7


@pytest.mark.parametrize(("number", "kind"), [(True, bool), (3, int), (_Added(3), _Added), ("3", str)])
def test_what_computes_otherwise_stays_as_it_is(number, kind):
    assert plain_number(number) is number
    assert type(number) is kind


WITHIN = {
    "the text of a float": "if str(t / 2) == '18.5':",
    "the text of a float in a list": "if str([t / 2]) == '[18.5]':",
    "the text of a range": "if str(range(t)) == 'range(0, 37)':",
    "a range": "if range(t) == range(37):",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("line", WITHIN.values(), ids=WITHIN)
def test_a_size_within_another_object_is_a_decision_by_size(write_module, export, line):
    path = write_module(f"{HEAD}        {line}\n            return x.flip(1)\n        return x * 2\n")
    with pytest.raises(AccuracyError, match="depends on the size: `if"):
        export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:9:40")
