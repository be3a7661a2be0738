# ruff: noqa: E501 - command lines stand on one line
"""Every option that writes: no device, FIFO or directory is replaced, no input overwritten, no file written twice."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.backends.onnx_models import conv_net
from trtconv.cli.files import FileCommand, FilePath
from trtconv.cli.main import COMMANDS, cli

IMAGES = ("--input", "images:float32[N,3,H,W]", "--dynamic", "N=1:1:2", "H=8:10:16", "W=8:10:16")
TARGET = ("--target", "tensorrt==10")
# Each row: a command line, and its output option; {m} is a model, {net} a module's file.
WRITERS = [
    (("export", "{net}:make_net", *IMAGES), "-o", "file"),
    (("rewrite", "{m}", *TARGET), "-o", "file"),
    (("build", "{m}"), "-o", "file"),
    (("build", "{m}", "-o", "{dir}/new.engine"), "--timing-cache", "file"),
    (("init", "{net}:make_net", "--force"), "-o", "file"),
    (("check", "{m}", *TARGET), "--json", "report"),
    (("check", "{m}", *TARGET), "--junit", "report"),
    (("check", "{m}", *TARGET), "--sarif", "report"),
    (("check", "{m}", *TARGET), "--gl-code-quality", "report"),
    (("check", "{m}", *TARGET), "--html", "report"),
    (("check", "{m}", *TARGET), "--markdown", "report"),
    (("check", "{m}"), "--dump", "folder"),
    (("check", "{m}"), "--heal", "folder"),
    (("bench", "{m}"), "--json", "report"),
    (("inspect", "{m}"), "--html", "report"),
    (("repro", "{m}"), "-o", "folder or file"),
    (("convert", "{net}:make_net", *IMAGES), "-o", "folder"),
    (("package", "{m}"), "-o", "folder"),
    (("plugins", "build", "--include", "{dir}"), "-o", "folder"),
    (("sign", "{m}", "--key", "{key}"), "-o", "file"),
    (("tune", "{net}:make_net", *IMAGES, "--data", "{dir}", "--metric", "psnr"), "-o", "folder"),
    (("refit", "{m}", "{net}:make_net"), "-o", "folder"),
    (("sweep", "{sweep}"), "-o", "folder"),
    (("sweep", "{sweep}"), "--junit", "report"),
]
NAMES = [f"{' '.join(w[: 1 + (w[0] == 'plugins')])} {o}" for w, o, _ in WRITERS]
FILES = [(w, o) for w, o, role in WRITERS if role in ("file", "report")]
FILE_NAMES = [n for n, (_, _, role) in zip(NAMES, WRITERS, strict=True) if role in ("file", "report")]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with its weights in `w.bin`."""
    weight = numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, [2, 3])],
        [weight],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


@pytest.fixture
def line(model, net, tmp_path):
    key, sweep = tmp_path / "key.pem", tmp_path / "sweep.toml"
    key.write_text("no key")
    sweep.write_text("")

    def fill(words):
        return [w.format(m=model, net=net, dir=tmp_path, key=key, sweep=sweep) for w in words]

    return fill


@pytest.fixture
def trtconv(trtconv):
    """`--json FILE` takes a name that ends with .json; any other one is `--json=FILE`."""

    def call(*words):
        joined = []
        for word in map(str, words):
            if joined[-1:] == ["--json"]:
                joined[-1] = f"--json={word}"
            else:
                joined.append(word)
        return trtconv(*joined)

    return call


def snapshot(folder: Path) -> dict[str, object]:
    files = [p for p in folder.rglob("*") if "__pycache__" not in p.parts]
    return {str(p): (stat.S_IFMT(p.lstat().st_mode), p.read_bytes() if p.is_file() else None) for p in files}


def test_every_written_path_of_every_command_is_in_the_table():
    written = set()

    def walk(name: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                walk(f"{name} {inner}", command.get_command(click.Context(command), inner))
            return
        for parameter in command.params:
            assert type(parameter.type) is not click.Path, f"{name} {parameter.name}: say whether it is read or written"
            if isinstance(parameter.type, FilePath) and parameter.type.written:
                assert isinstance(command, FileCommand), name
                written.add(f"{name} {'-o' if '-o' in parameter.opts else parameter.opts[0]}")

    for name in COMMANDS:
        walk(name, cli.get_command(click.Context(cli), name))
    # Shared options are tried with one command each; a baseline is read as well.
    shared = {n for n in written if n.endswith((" --json", " --timing-cache"))} | {"check --baseline"}
    assert written - shared == set(NAMES) - shared


@pytest.mark.parametrize(("words", "option"), FILES, ids=FILE_NAMES)
def test_a_directory_and_a_socket_stay(trtconv, line, tmp_path, words, option):
    import socket

    os.mkdir(tmp_path / "folder")
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.path.relpath(tmp_path / "s")
        server.bind(folder if len(folder) < 100 else str(tmp_path / "s"))
        before = snapshot(tmp_path)
        for name in ("folder", "s"):
            code, _, err = trtconv(*line(words), option, tmp_path / name)
            assert (code, "the output" in err) == (2, True), err
        assert snapshot(tmp_path) == before


@pytest.mark.parametrize(("words", "option"), [(w, o) for w, o, role in WRITERS if role in ("file", "folder")])
def test_a_device_and_a_fifo_are_no_place_for_a_model(trtconv, line, tmp_path, words, option):
    os.mkfifo(tmp_path / "fifo")
    os.symlink("/dev/null", tmp_path / "null")
    filled = line(words)
    before = snapshot(tmp_path)
    for folder in ("/dev/null", tmp_path / "null", tmp_path / "fifo", "/dev/stdout"):
        code, _, err = trtconv(*filled, option, folder)
        assert (code, "the output" in err) == (2, True), err
    assert snapshot(tmp_path) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize(("words", "option"), FILES, ids=FILE_NAMES)
@pytest.mark.parametrize("form", ["itself", "symlink", "hardlink", "weights"])
def test_an_input_is_never_an_output(trtconv, line, model, net, tmp_path, words, option, form):
    filled = line(words)
    source = next((p for p in (model, tmp_path / "sweep.toml") if str(p) in filled), net)
    # External data is a thing of ONNX files; the other inputs have no second file that could be overwritten.
    if form == "weights" and source is not model:
        pytest.skip("modules and sweeps have no external data")
    folder = tmp_path / "other"
    if form == "symlink":
        os.symlink(source, folder)
    elif form == "hardlink":
        os.link(source, folder)
    else:
        folder = tmp_path / "w.bin" if form == "weights" else source
    before = snapshot(tmp_path)
    code, _, err = trtconv(*filled, option, folder)
    assert (code, "is the input" in err) == (2, True), err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(("words", "option"), [(w, o) for w, o, role in WRITERS if role == "file" and o == "-o"][:3])
def test_a_model_never_replaces_a_text(trtconv, line, tmp_path, words, option):
    filled, mine = line(words), tmp_path / "mine.py"
    mine.write_text("# Größe\nprint(1)\n")
    before = snapshot(tmp_path)
    code, _, err = trtconv(*filled, option, mine)
    assert (code, "is a text file" in err) == (2, True), err
    assert snapshot(tmp_path) == before


def test_weights_of_a_model_in_another_folder_are_its_own(trtconv, model, tmp_path):
    """Even where an earlier release left a second name of the file."""
    (tmp_path / "out").mkdir()
    os.link(tmp_path / "w.bin", tmp_path / "out" / "w.bin")
    for words in (("export", model, "-o", tmp_path / "out" / "e.onnx"), ("rewrite", model, *TARGET, "-o", tmp_path / "out" / "r.onnx")):
        code, _, err = trtconv(*words)
        assert code == 0, err
    weights = (tmp_path / "out" / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(bytes(len(weights)))
    assert (tmp_path / "out" / "w.bin").read_bytes() == weights
    assert [(tmp_path / name).stat().st_nlink for name in ("w.bin", "out/w.bin")] == [1, 1]
    onnx.load(tmp_path / "out" / "r.onnx")


@pytest.mark.parametrize("command", [("export",), ("rewrite", *TARGET)])
@pytest.mark.parametrize("left", [None, 7])
def test_missing_and_truncated_weights(trtconv, model, tmp_path, command, left):
    weights = tmp_path / "w.bin"
    weights.unlink() if left is None else os.truncate(weights, left)
    before = snapshot(tmp_path)
    code, _, err = trtconv(command[0], model, *command[1:], "-o", tmp_path / "out" / "o.onnx")
    assert (code, "w.bin" in err) == (2, True), err
    assert snapshot(tmp_path) == before


def test_other_weights_in_the_way_leave_no_reference_behind(trtconv, model, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "w.bin").write_bytes(b"others")
    before = snapshot(tmp_path)
    code, _, err = trtconv("export", model, "-o", tmp_path / "out" / "e.onnx")
    assert (code, "holds other weights" in err) == (2, True), err
    assert snapshot(tmp_path) == before


def test_a_default_output_that_is_the_input(trtconv, model, tmp_path):
    renamed = model.rename(tmp_path / "m.trt.onnx")
    before = snapshot(tmp_path)
    code, _, err = trtconv("rewrite", renamed, *TARGET)
    assert (code, "is the input" in err) == (2, True), err
    assert snapshot(tmp_path) == before


def test_two_reports_are_never_one_file(trtconv, model, tmp_path):
    os.symlink(tmp_path / "a", tmp_path / "b")
    for second in ("a", "b", "../" + tmp_path.name + "/a"):
        code, _, err = trtconv("check", model, *TARGET, "--json", tmp_path / "a", "--html", tmp_path / second)
        assert (code, "are one file" in err) == (2, True), err
    assert not (tmp_path / "a").exists()


def test_a_report_goes_through_a_device_a_fifo_and_stdout(trtconv, model, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    # Pipes hold 64 KiB; the report of one node is far smaller.
    code, _, err = trtconv("check", model, *TARGET, "-q", "--junit", tmp_path / "fifo", "--sarif", "/dev/null")
    assert code == 0, err
    assert b"<testsuite" in os.read(reader, 1 << 16)
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    code, out, _ = trtconv("check", model, *TARGET, "-q", "--junit", "-")
    assert out.startswith("<?xml")
    code, _, err = trtconv("check", model, *TARGET, "-q", "--junit", tmp_path / "fifo")
    assert (code, "cannot be written" in err) == (2, True)  # nobody reads it


def test_a_link_is_written_through(trtconv, model, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "report.json").write_text('{"kind": "check", "schema": 1}')
    os.symlink(tmp_path / "real" / "report.json", tmp_path / "link.json")
    assert trtconv("check", model, *TARGET, "-q", "--json", tmp_path / "link.json")[0] == 0
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real" / "report.json").read_text().startswith("{")
    assert os.listdir(tmp_path / "real") == ["report.json"]


@pytest.mark.parametrize(("option", "name", "content"), [
    ("--json", "net.py", "import torch\n"),
    ("--json", "model.onnx.json", '{"content_sha256": "0", "kind": "onnx", "schema": 1}'),
    ("--json", "package.json", '{"name": "mine"}'),
    ("--html", "index.html", "<!DOCTYPE html><title>mine</title>"),
    ("--markdown", "README.md", "# Mine\n"),
    ("--junit", "other.onnx", "\x08\x07\x12"),
])  # fmt: skip
def test_a_report_replaces_reports_alone(trtconv, model, tmp_path, option, name, content):
    (tmp_path / name).write_text(content)
    before = snapshot(tmp_path)
    code, _, err = trtconv("check", model, *TARGET, "-q", option, tmp_path / name)
    assert (code, "would replace a file that is no report" in err) == (2, True), err
    assert snapshot(tmp_path) == before


def test_every_report_replaces_an_earlier_one(trtconv, model, tmp_path):
    options = ("json", "html", "junit", "markdown", "sarif", "gl-code-quality")
    files = [word for o in options for word in (f"--{o}", tmp_path / f"report.{o}")]
    for _ in range(2):
        code, _, err = trtconv("check", model, *TARGET, "-q", *files)
        assert code == 0, err


def test_a_repro_replaces_neither_its_input_nor_a_foreign_readme(trtconv, model, tmp_path):
    (tmp_path / "repro").mkdir()
    inside = tmp_path / "repro" / "repro.onnx"
    inside.write_bytes(model.read_bytes())
    (tmp_path / "repro" / "w.bin").write_bytes((tmp_path / "w.bin").read_bytes())
    (tmp_path / "README.md").write_text("mine")
    before = snapshot(tmp_path)
    code, _, err = trtconv("repro", inside, "-o", tmp_path / "repro")
    assert (code, "is the input" in err) == (2, True), err
    code, _, err = trtconv("repro", model, "-o", tmp_path)
    assert (code, "is not part of a repro" in err) == (2, True), err
    assert snapshot(tmp_path) == before


def test_weights_of_another_model_are_not_replaced(trtconv, model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "w.bin").write_bytes(b"another model's weights")
    code, _, err = trtconv("rewrite", model, *TARGET, "-o", out / "n.onnx")
    assert (code, "holds other weights" in err) == (2, True), err
    assert (out / "w.bin").read_bytes() == b"another model's weights"
    (out / "w.bin").unlink()
    os.chmod(tmp_path / "w.bin", 0o440)
    assert trtconv("rewrite", model, *TARGET, "-o", out / "n.onnx")[0] == 0
    assert stat.S_IMODE((tmp_path / "w.bin").stat().st_mode) == 0o440
    # The same weights changed: they belong to the file that is replaced.
    (tmp_path / "w.bin").unlink()
    (tmp_path / "w.bin").write_bytes(np.full((3, 3), 2, np.float32).tobytes())
    assert trtconv("rewrite", model, *TARGET, "-o", out / "n.onnx")[0] == 0
    assert (out / "w.bin").read_bytes() == (tmp_path / "w.bin").read_bytes()


@pytest.mark.parametrize("command", ["convert", "export", "rewrite", "build"])
def test_a_set_that_another_process_writes_is_left_alone(trtconv, net, tmp_path, command):
    """Each command that writes a set asks for its lock before it works, and names who has it."""
    out, model = tmp_path / "out", tmp_path / "other.onnx"
    out.mkdir()
    conv_net(model)
    (out / "model.onnx").write_bytes(b"\0old")
    script = (
        "import sys; from pathlib import Path; from trtconv.core.files.set_lock import locked_set\n"
        "with locked_set(Path(sys.argv[1])): print(1, flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, out / "model.onnx"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    words = {
        "convert": ("convert", f"{net}:make_net", "--input", "images:float32[1,3,8,8]", "-o", out,
                    "--backend", "tensorrt-rtx"),
        "export": ("export", f"{net}:make_net", "--input", "images:float32[1,3,8,8]", "-o", out / "model.onnx"),
        "rewrite": ("rewrite", model, "-o", out / "model.trt.onnx", "--target", "tensorrt==11"),
        "build": ("build", model, "-o", out / "model.engine", "--backend", "tensorrt-rtx"),
    }[command]  # fmt: skip
    code, _, err = trtconv(*words)
    holder.communicate()
    assert code == 1
    assert f"another trtconv (process {holder.pid}) writes '{out}/model.*'" in err
    assert [p.name for p in out.iterdir()] == ["model.onnx"]
    assert (out / "model.onnx").read_bytes() == b"\0old"
