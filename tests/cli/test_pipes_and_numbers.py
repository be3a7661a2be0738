"""A reader that goes away ends a command in silence; a number that nobody can mean is one usage error."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from trtconv.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("words", [["rules"], ["version"], ["--help"], ["inspect", "--help"], ["rules", "--json"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away(words, unbuffered):
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "trtconv", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(write)
    assert (process.returncode, process.stderr) == (141, "")


def test_closed_streams_go_nowhere(tmp_path):
    program = f"{sys.executable} -m trtconv version --json={tmp_path / 'version.json'} <&- >&- 2>&-"
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert '"trtconv"' in (tmp_path / "version.json").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_stdout_is_told_as_such():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "trtconv", "rules"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 1
    assert "stdout, or a temporary file, cannot be written: No space left" in ended.stderr


def test_a_reader_of_the_errors_that_goes_away():
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "trtconv", "inspect", "absent.onnx"],
        stdout=subprocess.PIPE,
        stderr=write,
        check=False,
        cwd=ROOT,
    )
    os.close(write)
    assert (process.returncode, process.stdout) == (141, b"")


def test_every_number_of_the_command_line_is_bounded():
    def walk(name: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                walk(f"{name} {inner}", command.get_command(click.Context(command), inner))
        for parameter in command.params:
            kind = parameter.type
            assert kind not in (click.INT, click.FLOAT), f"{name} {parameter.name}"
            # click takes nan for a number within any range.
            assert type(kind) is not click.FloatRange, f"{name} {parameter.name}"
            if isinstance(kind, click.IntRange) and not parameter.count:
                assert kind.max is not None, f"{name} {parameter.name}"

    for name in COMMANDS:
        walk(name, cli.get_command(click.Context(cli), name))


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400", "x", "", "9" * 5000])
@pytest.mark.parametrize(
    "words",
    [("check", "m.onnx", "--rtol"), ("check", "m.onnx", "--atol"), ("bench", "m.onnx", "--seconds"),
     ("build", "m.onnx", "--workspace"), ("build", "m.onnx", "--opt-level"), ("export", "m.py:f", "--opset"),
     ("export", "m.py:f", "--seed"), ("package", "m.engine", "-o", "repository", "--instances")],
    ids=lambda w: w[-1],
)  # fmt: skip
def test_a_number_that_nobody_can_mean(trtconv, tmp_path, monkeypatch, words, value):
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "m.py", "m.engine"):
        (tmp_path / name).write_text("")
    if words[-1] == "--workspace":
        import onnx

        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Relu", ["x"], ["y"])],
            "g",
            [onnx.helper.make_tensor_value_info("x", 1, [2])],
            [onnx.helper.make_tensor_value_info("y", 1, [2])],
        )
        onnx.save(onnx.helper.make_model(graph), "m.onnx")
        if not value:
            pytest.skip("an empty size is none")
    code, _, err = trtconv(*words, value)
    assert code == 2
    assert "internal" not in err
    assert "Traceback" not in err
