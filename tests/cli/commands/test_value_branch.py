"""A branch by a value is called one, also where random inputs happen to part only at another size."""

from pathlib import Path

import pytest

NET = """
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        if {condition}:
            return x * 2
        return x - 1
"""


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("x.sum() > 0", "the path through the module depends on the values of the inputs"),
    ],
)
def test_the_message_says_what_decides(trtconv, tmp_path: Path, condition: str, words: str):
    (tmp_path / "net.py").write_text(NET.format(condition=condition))
    code, _, err = trtconv(
        "export",
        f"{tmp_path}/net.py:Net",
        "-o",
        tmp_path / "n.onnx",
        "--input",
        "x:float32[N,4]",
        "--dynamic",
        "N=1:2:4",
    )
    assert code == 3
    assert words in err
    assert "net.py:7" in err


def test_an_export_says_what_it_does_not_prove(trtconv, tmp_path: Path):
    (tmp_path / "net.py").write_text(NET.format(condition="False"))
    words = ("export", f"{tmp_path}/net.py:Net", "-o", tmp_path / "n.onnx", "--input", "x:float32[2,4]")
    code, out, err = trtconv(*words)
    assert code == 0, err
    assert "in ONNX Runtime; nothing was rewritten, built or run for a target" in out
