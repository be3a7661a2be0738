"""Inputs and outputs get the user's names, and a check against the module maps them back."""

from pathlib import Path

import pytest

NET = """
from torch import nn


class Net(nn.Module):
    def forward(self, x, y):
        return x * 2 + y, x - y
"""


@pytest.fixture
def net(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(NET)
    return f"{tmp_path / 'net.py'}:Net"


def names_of(path: Path) -> tuple[list[str], list[str]]:
    import onnx

    graph = onnx.load(path).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def test_renamed_by_the_command_line_and_checked_against_the_module(trtconv, net, tmp_path):
    out = tmp_path / "n.onnx"
    code, _, err = trtconv(
        "export", net, "-o", out, "--output-names", "scores,boxes",
        "--input", "x=images:float32[2,3]", "y=other:float32[2,3]=0:1",
    )  # fmt: skip
    assert code == 0, err
    assert names_of(out) == (["images", "other"], ["scores", "boxes"])
    code, text, err = trtconv("check", out, "--against", net)
    assert code == 0, text + err
    wrong = tmp_path / "wrong.py"
    wrong.write_text(NET.replace("x - y", "y - x"))
    assert trtconv("check", out, "--against", f"{wrong}:Net")[0] == 3


def test_renamed_by_the_config(trtconv, net, tmp_path):
    (tmp_path / "t.toml").write_text(
        '[export]\noutput_names = ["a", "b"]\n[[input]]\nname = "y"\nrename = "second"\ndims = [2]\n'
        '[[input]]\nname = "x"\ndims = [2]\n'
    )
    code, _, err = trtconv("export", net, "--config", tmp_path / "t.toml", "-o", tmp_path / "n.onnx")
    assert code == 0, err
    assert names_of(tmp_path / "n.onnx") == (["second", "x"], ["a", "b"])


def test_too_few_names(trtconv, net, tmp_path):
    code, _, err = trtconv(
        "export", net, "-o", tmp_path / "n.onnx", "--output-names", "a", "--input", "x:float32[2]", "y:float32[2]"
    )
    assert code == 2
    assert "2 output(s)" in err
    assert "output_0, output_1" in err
