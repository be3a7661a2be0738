"""Everything a user can get wrong ends in one message with the remedy, its exit code, and no partial file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import helper

from trtconv.cli.main import show_error

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
IMAGES = ("--input", "images:float32[N,3,H,W]")
RANGES = ("--dynamic", "N=1:1:2", "H=8:10:16", "W=8:10:16")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("{net}:make_nett", *IMAGES, *RANGES), 2, "Did you mean 'make_net'"),
        (("{net}:not_callable", *IMAGES, *RANGES), 2, "not_callable"),
        (("{net}:broken_net", *IMAGES, *RANGES), 1, "no checkpoint here"),
        (("{net}:exiting_net", *IMAGES, *RANGES), 1, "sys.exit(0)"),
        (("{net}.py:make_net", *IMAGES, *RANGES), 2, "net.py.py"),
        (("no_such_package_x:make", *IMAGES, *RANGES), 2, "no_such_package_x"),
        (("{net}:make_net", "--arg", "widht=4", *IMAGES, *RANGES), 2, "widht"),
        (("{net}:make_net", *IMAGES, "--dynamic", "N=1:1:2", "H=8:10:16"), 2, "a dim 'W' without a range"),
        (("{net}:make_net", *IMAGES, *RANGES, "Q=1:2:3"), 2, "no input has a dim called 'Q'"),
        (("{net}:make_net", *IMAGES, "--dynamic", "N=1:1:2", "H=16:10:8", "W=8:8:8"), 2, "not ordered"),
        (
            ("{net}:make_net", *IMAGES, "--dynamic", "N=1:1:2", "H=8:10:16%4", "W=8:8:8"),
            2,
            "opt 10 is not a multiple of 4",
        ),
        (("{net}:make_net", *IMAGES, "--input", "imagse:float32[N,3,H,W]", *RANGES), 2, "Did you mean 'images'"),
        (("{net}:make_net", "--input", "images:float23[N,3,H,W]", *RANGES), 2, "unknown dtype 'float23'"),
        (("{net}:make_net", *IMAGES, *RANGES, "--weights", "{dir}/none.safetensors"), 2, "none.safetensors"),
        (("{net}:make_net", *IMAGES, *RANGES, "--opset", "5"), 2, "opset 5"),
        (("{net}:make_net",), 2, "no inputs are given"),
        (("{net}:make_net", "--input", "images:float32[N,4,H,W]", *RANGES), 1, "the module itself raises"),
    ],
)
def test_export_of_something_wrong(trtconv, net, tmp_path, words, code, message):
    arguments = [w.format(net=net, dir=tmp_path) for w in words]
    actual, out, err = trtconv("export", *arguments, "-o", tmp_path / "out" / "model.onnx")
    assert message in err
    assert actual == code
    assert "Traceback" not in err
    assert not out
    left = [p for p in tmp_path.rglob("*") if p.name != "__pycache__" and p.suffix not in (".py", ".pyc")]
    assert not left


def test_an_output_that_cannot_be_written(trtconv, net, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = trtconv("export", f"{net}:make_net", *IMAGES, *RANGES, "-o", tmp_path / "file" / "m.onnx")
    assert code == 2
    assert "cannot be written" in err


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(trtconv, net, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = trtconv("convert", f"{net}:make_net", *IMAGES, *RANGES, "-o", tmp_path / "file" / "out")
    assert code == 2
    assert f"'{tmp_path / 'file' / 'out'}' cannot be written" in err
    assert list(tmp_path.glob("file*")) == [tmp_path / "file"]


def test_a_pickle_is_never_run(trtconv, net, tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "owned"),))

    (tmp_path / "w.pt").write_bytes(pickle.dumps({"conv.weight": Evil()}))
    code, _, err = trtconv(
        "export", f"{net}:make_net", *IMAGES, *RANGES, "--weights", tmp_path / "w.pt", "-o", tmp_path / "m.onnx"
    )
    assert code == 2
    assert "w.pt" in err
    assert not (tmp_path / "owned").exists()


def test_missing_and_extra_weights_are_listed(trtconv, net, tmp_path):
    import torch
    from safetensors.torch import save_file

    save_file({"conv.weight": torch.zeros(4, 3, 3, 3), "head.bias": torch.zeros(1)}, tmp_path / "w.safetensors")
    code, _, err = trtconv("export", f"{net}:make_net", *IMAGES, *RANGES, "--weights", tmp_path / "w.safetensors", "-o",
                           tmp_path / "m.onnx")  # fmt: skip
    assert code == 2
    assert "conv.bias" in err
    assert "head.bias" in err


def test_a_conversion_that_is_killed_leaves_the_old_files(net, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "model.onnx").write_bytes(b"old")
    command = [sys.executable, "-m", "trtconv", "convert", f"{net}:make_net", *IMAGES, *RANGES, "-o", str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    content = (out / "model.onnx").read_bytes()
    assert content == b"old" or len(content) > 500
    if content != b"old":
        import onnx

        onnx.checker.check_model(str(out / "model.onnx"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_leave_no_partial_file(net, tmp_path, number, code):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "trtconv", "convert", f"{net}:slow_net", *IMAGES, *RANGES, "-o", str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if (tmp_path / "started").exists():
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=50)
    assert process.returncode == code
    assert "interrupted" in err
    assert "Traceback" not in err
    assert not out.exists()


@pytest.mark.parametrize("content", [b"", b"\0", b"PK\x03\x04", b"\x80\x02.", b"x" * 100])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_that_are_no_file_of_weights(trtconv, net, tmp_path, content, suffix):
    path = tmp_path / f"w{suffix}"
    path.write_bytes(content)
    code, _, err = trtconv("export", f"{net}:make_net", *IMAGES, *RANGES, "--weights", path, "-o", tmp_path / "m.onnx")
    assert code == 2
    assert path.name in err
    assert "internal error" not in err


@pytest.mark.parametrize("words", [("inspect", "loop"), ("check", "loop"), ("inspect", "loop/model.onnx")])
def test_links_in_a_circle(tmp_path, words):
    (tmp_path / "loop").symlink_to("loop")
    # In a process of its own, where a command that reads strangers' files gives up rights.
    command = [sys.executable, "-m", "trtconv", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "error: " in ended.stderr
    assert "internal error" not in ended.stderr


def test_stdout_on_a_full_disk_is_told_and_the_files_are_there(tmp_path):
    """`> /dev/full` showed a traceback, and then blamed the module for an os._exit."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, [2])],
            [helper.make_tensor_value_info("y", 1, [2])],
        ), opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    onnx.save(model, str(tmp_path / "foreign.onnx"))
    command = [sys.executable, "-m", "trtconv", "export", "foreign.onnx", "-o", "out/m.onnx", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 1
    assert "error: what was printed cannot be written: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "os._exit" not in ended.stderr
    assert (tmp_path / "out/m.onnx.json").exists()


def test_the_encoding_of_a_locale_is_named(capsys):
    encoding = sys.getfilesystemencoding()
    assert show_error(UnicodeEncodeError(encoding, "m\udcffdel", 1, 2, "not there")) == 2
    assert "PYTHONUTF8=1" in capsys.readouterr().err


def test_links_in_a_circle_wherever_they_are_met(tmp_path, capsys):
    (tmp_path / "loop").symlink_to("loop")
    error = RuntimeError(f"Symlink loop from '{tmp_path / 'loop'}'")
    assert show_error(error) == 2
    assert "links lead in a circle" in capsys.readouterr().err
    assert show_error(RuntimeError("another")) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("convert", "{net}:make_net", "-o", ""), "the path is empty"),
        (("rewrite", "", "-o", "x.onnx"), "the path is empty"),
        (("check", "m.onnx", "--html="), "the path is empty"),
        (("convert", "{net}:make_net", "--output-names", ","), "write --output-names scores,boxes"),
        (("build", "m.onnx", "--compute-capability", "ampere"), "write --compute-capability 8.6,8.9"),
        (("convert", "{net}:make_net", "--static=1"), "Try 'trtconv convert"),
        (("convert", "{net}:make_net", "--input"), "Try 'trtconv convert"),
        (("convert", "{net}:make_net", "-o", "-"), "'-' is no file here; only reports are printed"),
        (("export", "{net}:make_net", "-o", "new/"), "'new/' is a folder; name a file inside it"),
    ],
)
def test_words_that_say_nothing(trtconv, net, tmp_path, monkeypatch, words, message):
    """`-o "$OUT"` with OUT unset wrote its files into the working directory."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = trtconv(*[w.format(net=net) for w in words])
    assert code == 2, err
    assert message in err
    assert not out
    assert sorted(tmp_path.iterdir()) == before
