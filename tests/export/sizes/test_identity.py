"""Truth values of sizes that a module asks for by identity."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.module.user_code import parse_file
from trtconv.export.sizes import identity
from trtconv.export.sizes.identity import ASKED, ASKED_OF_TWO, numbers_by_identity

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n        t = x.shape[1]\n"
LINES = {
    "compared": "return x * 2 if (t == 23) is True else -x",
    "not false": "return x * 2 if (t != 23) is not False else -x",
    "beside others": "return x * 2 if (t % 8 == 7) is True and t > 20 else -x",
    "of three": "k = None if t < 5 else t == 23\n        return x * (2.0 if k is True else 3.0 if k is None else 4.0)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_both_sides_are_in_the_file(write_module, export, tmp_path, lines):
    path = write_module(f"{HEAD}        {lines}\n")
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:40")
    assert result.sizes.complete
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    for t in range(3, 41):
        x = torch.randn(1, t)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], module(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(("text", "asks"), [("x is True", True), ("x is not False", True), ("this is Truely", False)])
def test_a_file_that_asks(text, asks):
    assert bool(ASKED.search(text)) == asks


NAMED = """
import enum
import operator

LONG, KINDS = 20, ()


class Limits:
    longest = 20


class Kind(enum.IntEnum):
    LONG = 20


def other(x, short=5):
    return x


"""
BY_IDENTITY = {
    "a number": ("return x * 2 if t is 20 else -x", True),
    "a size and arithmetic": ("return x * 2 if (t - 3) is x.shape[0] else -x", True),
    "a negative number": ("return x * 2 if t is not -1 else -x", True),
    "a number of the file": ("return x * 2 if t is LONG else -x", True),
    "a number of a class": ("return x * 2 if t is Limits.longest else -x", True),
    "a number of the function's own": ("long = 20; return x * 2 if t is long else -x", True),
    "a function of Python's": ("return x * 2 if operator.is_(t, LONG) else -x", True),
    "addresses": ("return x * 2 if id(t) == id(LONG) else -x", True),
    "a member of an enumeration": ("return x * 2 if self.kind is Kind.LONG else -x", False),
    "a number of another function": ("return x * 2 if x is short else -x", False),
    "nothing": ("return x * 2 if t is not None else -x", False),
    "an option": ("return x * 2 if (t > 5) is True else -x", False),
    "one object of two names": ("return x * 2 if x is x else -x", False),
}


@pytest.mark.filterwarnings("ignore:.is. with .int. literal:SyntaxWarning")
@pytest.mark.filterwarnings("ignore:.is not. with .int. literal:SyntaxWarning")
@pytest.mark.parametrize(("lines", "noted"), BY_IDENTITY.values(), ids=BY_IDENTITY)
def test_numbers_by_identity_are_told_by_their_line(write_module, tmp_path, lines, noted):
    path = write_module(f"{NAMED}{HEAD}        {lines}\n")
    notes = numbers_by_identity([str(path)], path.parent)
    assert bool(notes) == noted
    assert not noted or f"`{lines}` at {path.name}:" in notes[0]


@pytest.mark.filterwarnings("ignore:.is. with .int. literal:SyntaxWarning")
def test_the_note_is_in_the_result(write_module, export):
    path = write_module(f"{HEAD}        return x * 2 if t is 20 else -x\n")
    notes = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:40").notes
    assert any("one object" in note for note in notes)


@pytest.mark.filterwarnings("ignore:.is. with .int. literal:SyntaxWarning")
def test_a_class_that_the_module_does_not_run_is_not_told(write_module, export):
    other = "class Other(nn.Module):\n    def forward(self, x):\n        return x * 2 if x.shape[1] is 20 else -x\n\n\n"
    path = write_module(f"{other}{HEAD}        return x * 2 if t == 20 else -x\n")
    notes = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:40").notes
    assert not any("one object" in note for note in notes)


def test_a_large_application_is_not_parsed(tmp_path, monkeypatch):
    for number in range(50):
        text = f'"""What is a part?"""\n\n\ndef f(x):\n    return x is None  # x is y\n\n\nN = {number}\n'
        (tmp_path / f"part{number}.py").write_text(text)
    (tmp_path / "asking.py").write_text("from limits import LONG\n\n\ndef f(x):\n    return x is LONG\n")
    (tmp_path / "limits.py").write_text("SHORT, LONG = 5, 300\n")
    parsed = []
    monkeypatch.setattr(identity, "parse_file", lambda file: parsed.append(Path(file).name) or parse_file(file))
    (note,) = numbers_by_identity([str(f) for f in tmp_path.iterdir()], tmp_path)
    assert "`return x is LONG` at asking.py:5" in note
    assert set(parsed) == {"asking.py", "limits.py"}


def test_an_operand_of_another_file_that_the_module_does_not_run_is_not_told(tmp_path):
    asking, limits = tmp_path / "asking.py", tmp_path / "limits.py"
    asking.write_text("def f(x):\n    return x is LONG\n")
    limits.write_text("LONG = 300\n")
    files = [str(asking), str(limits)]
    assert numbers_by_identity(files, tmp_path, lambda: [(str(asking), 1)])
    assert not numbers_by_identity(files, tmp_path, lambda: [(str(limits), 1)])


OF_TWO = ("a is b", "a is (b)", "a is not b.c", "operator.is_(a, b)", "id(a) == id(b)", "a is \\\n  b", "a is 9")
OF_CONSTANTS = ("a is None", "a is not None", "a is  not  None", "a is True", "this", "a is \\\n  None")


@pytest.mark.parametrize("asked", OF_TWO)
def test_code_that_asks_of_two_objects(asked):
    assert ASKED_OF_TWO.search(asked)


@pytest.mark.parametrize("asked", OF_CONSTANTS)
def test_code_that_asks_of_constants(asked):
    assert not ASKED_OF_TWO.search(asked)
