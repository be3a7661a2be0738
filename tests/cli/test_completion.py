"""Shell completion: what TAB prints, as a process and in this one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def tab(trtconv, monkeypatch, tmp_path: Path):
    """The values that bash is offered at the end of a line."""
    monkeypatch.chdir(tmp_path)

    def complete(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_TRTCONV_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        code, out, err = trtconv()
        assert (code, err) == (0, "")
        return [entry.partition(",")[2] for entry in out.splitlines() if entry]

    return complete


def test_commands_and_options(tab):
    assert tab("trtconv c") == ["convert", "check", "cache"]
    assert "--precision" in tab("trtconv convert --pre")
    assert tab("trtconv nosuch --x") == []


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("trtconv rewrite m.onnx --target tensorrt-", ["tensorrt-rtx"]),
        ("trtconv check m.onnx --target tensorrt==1", ["tensorrt==10", "tensorrt==11"]),
        ("trtconv rules --target tensorrt==8", ["tensorrt==8.6"]),
        ("trtconv build m.onnx --backend ", ["auto", "tensorrt", "tensorrt-rtx"]),
        ("trtconv build m.onnx --precision f", ["fp32", "fp16", "fp8"]),
        ("trtconv export net.py:f --input x:float32[N,3,Hgt] --dynamic H", ["Hgt="]),
        ("trtconv export net.py:f --input x:float32[N,H] --dynamic N=1:2:3 ", ["N=", "H="]),
    ],
)
def test_values(tab, line: str, values: list[str]):
    assert tab(line) == values


def test_rules_are_those_of_the_registry(tab):
    from trtconv.rewrite import list_rules

    assert set(tab("trtconv rewrite m.onnx --skip ")) == {rule.name for rule in list_rules()}


def test_dims_and_inputs_of_the_config(tab, tmp_path: Path):
    (tmp_path / "t.toml").write_text('[[input]]\nname="x"\ndims=["N",3]\n[dynamic]\nN="1:2:4"\nH=7\n')
    assert tab("trtconv convert --config t.toml --dynamic ") == ["N=", "H="]
    assert tab("trtconv convert --config t.toml --dynamic N=") == ["N=1:2:4"]
    assert tab("trtconv convert --config t.toml --input ") == ["x:float32[N,3]"]
    (tmp_path / "t.toml").write_text("not toml")
    assert tab("trtconv convert --config t.toml --dynamic ") == []


def test_dims_of_an_exported_model(tab, tmp_path: Path):
    (tmp_path / "m.onnx.json").write_text('{"inputs": ["x:float32[N,3,W]"], "space": "N=1:2:4 W=8:8:16"}')
    assert tab("trtconv build m.onnx --dynamic ") == ["N=", "W="]
    assert tab("trtconv rewrite m.onnx --dynamic W=") == ["W=8:8:16"]


def test_factories_of_a_file_without_running_it(tab, tmp_path: Path):
    (tmp_path / "net.py").write_text("raise SystemExit\ndef make_net(): ...\nclass Net: ...\nnet = 3\n")
    assert tab("trtconv convert net.py:") == ["net.py:make_net", "net.py:Net", "net.py:net"]
    assert tab("trtconv check m.onnx --against net.py:m") == ["net.py:make_net"]


def test_no_torch_and_no_onnx_are_imported():
    code = (
        "import sys\nfrom trtconv.cli.main import run\ntry:\n run()\nexcept SystemExit:\n"
        " print(*sorted({'torch', 'onnx', 'onnxruntime'} & set(sys.modules)), 'end')"
    )
    line = "trtconv convert net.py:f --skip "
    variables = {"_TRTCONV_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "4"}
    result = subprocess.run([sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.splitlines()[-1] == "end"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells(trtconv, monkeypatch, shell: str):
    monkeypatch.setenv("_TRTCONV_COMPLETE", f"{shell}_source")
    code, out, err = trtconv()
    assert (code, err) == (0, "")
    assert "_TRTCONV_COMPLETE" in out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "line", "reply"),
    [
        ("trtconv rewrite m.onnx --target tensorrt == 1", "trtconv rewrite m.onnx --target tensorrt==1", "10 11"),
        ("trtconv rewrite m.onnx --target tensorrt-", "trtconv rewrite m.onnx --target tensorrt-", "tensorrt-rtx"),
    ],
)
def test_the_function_in_bash(tmp_path: Path, words: str, line: str, reply: str):
    """As bash calls it: it has split the line at `=` before, and replaces only the last piece."""
    program = tmp_path / "trtconv"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m trtconv "$@"\n')
    program.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = f"""eval "$(_TRTCONV_COMPLETE=bash_source trtconv)"
    COMP_WORDS=({words}) COMP_LINE='{line}' COMP_POINT={len(line)} COMP_CWORD={len(words.split()) - 1}
    _trtconv_completion trtconv; echo "${{COMPREPLY[@]}}" """
    result = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
    assert result.stdout.strip() == reply, result.stderr
