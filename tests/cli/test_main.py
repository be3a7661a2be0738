import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from trtconv import __version__
from trtconv.cli.main import COMMANDS, run
from trtconv.cli.options import spread_lists

ROOT = Path(__file__).parents[2]


def trtconv(*words: str, capsys) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command run in this process."""
    with pytest.raises(SystemExit) as caught:
        run(list(words))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name, capsys):
    code, out, _ = trtconv(name, "--help", capsys=capsys)
    assert code == 0
    assert "Usage:" in out


def test_an_unknown_command_has_a_suggestion(capsys):
    code, _, err = trtconv("bild", capsys=capsys)
    assert code == 2
    assert "Did you mean 'build'?" in err


def test_an_unknown_option_is_a_usage_error(capsys):
    assert trtconv("version", "--jsno", capsys=capsys)[0] == 2


def test_version_as_json(capsys):
    code, out, _ = trtconv("version", "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out)["versions"]["python"].startswith("3.")


def test_nothing_reports_to_anybody(tmp_path):
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", 1, ["N"])],
            [helper.make_tensor_value_info("y", 1, ["N"])],
        ),
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 20)],
    )
    onnx.save(model, tmp_path / "m.onnx")
    code = (
        "import sys\nfrom trtconv.cli.main import run\ntry:\n    run(['--version'])\nexcept SystemExit:\n    pass\n"
        "import onnxruntime\nonnxruntime.InferenceSession(sys.argv[1])\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    env = {k: v for k, v in os.environ.items() if k not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.onnx")],
        check=True,
        cwd=ROOT,
        env={**env, "HOME": str(home)},
    )
    assert not list(home.rglob("*"))


def test_python_dash_m():
    process = subprocess.run(
        [sys.executable, "-m", "trtconv", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert "convert" in process.stdout


@pytest.mark.parametrize(
    ("words", "spread"),
    [
        (["--dynamic", "N=1:2:3", "H=4"], ["--dynamic=N=1:2:3", "--dynamic=H=4"]),
        (["--dynamic", "model.onnx"], ["--dynamic=", "model.onnx"]),
        (["m.onnx", "--dynamic"], ["m.onnx", "--dynamic="]),
        (["--dynamic", "N=a", "=1", "o/m=1.onnx"], ["--dynamic=N=a", "--dynamic==1", "o/m=1.onnx"]),
        (["--dynamic", "N=1:2:3 H=4", "m=1.onnx"], ["--dynamic=N=1:2:3 H=4", "m=1.onnx"]),
        (["--dynamic", "-o", "x"], ["--dynamic=", "-o", "x"]),
        (["--input", "a:float32[N]", "b[2]=0:1", "m.py:f"], ["--input=a:float32[N]", "--input=b[2]=0:1", "m.py:f"]),
        (["--input", "wrong", "m"], ["--input", "wrong", "m"]),
        (["--arg", "a=1", "b=x y", "m.py:f"], ["--arg=a=1", "--arg=b=x y", "m.py:f"]),
    ],
)
def test_lists_after_one_option(words, spread):
    assert spread_lists(words) == spread


def test_version_as_an_option(capsys):
    assert trtconv("--version", capsys=capsys) == (0, f"trtconv {__version__}\n", "")


@pytest.mark.parametrize(
    "words", [("package", "-o", "pkg"), ("bench",), ("check",), ("inspect",), ("check", "--layers")], ids=" ".join
)
def test_a_missing_engine_is_one_error(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = trtconv(*words, "none.engine", capsys=capsys)
    assert code == 2
    assert "there is no" in err
    assert not list(tmp_path.iterdir())


def test_an_onnx_file_is_no_engine(capsys, tmp_path):
    (tmp_path / "m.onnx").write_text("")
    code, _, err = trtconv("package", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "p"), capsys=capsys)
    assert code == 2
    assert "is an ONNX model, not an engine" in err


@pytest.mark.parametrize("name", ["m.onnx.json", "m.textproto", "m.onnxtxt"])
def test_files_that_onnx_reads_as_text(name, capsys, tmp_path):
    (tmp_path / name).write_text('{"advisory": []}')
    code, _, err = trtconv("inspect", str(tmp_path / name), capsys=capsys)
    assert code == 2
    assert "is truncated or not an ONNX model" in err


@pytest.mark.parametrize(
    ("words", "code"),
    [(("rewrite", "--precision", "fp16"), 0), (("rewrite", "--precision", "bf16"), 0), (("inspect",), 0)],
)
def test_a_node_of_a_foreign_domain(words, code, capsys, tmp_path):
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.foo" : 1]> g (float[2,4] x) => (float[2,4] y)'
        " { a = Relu(x) b = com.foo.Bar(a) y = Neg(b) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    target = ("--target", "tensorrt==10") if words[0] == "rewrite" else ()
    assert trtconv(*words, str(tmp_path / "m.onnx"), *target, capsys=capsys)[0] == code


@pytest.mark.parametrize("content", [None, b"short"])
@pytest.mark.parametrize("words", [("rewrite", "--target", "tensorrt==10", "--precision", "fp16"), ("check",)], ids=str)
def test_external_weights_that_are_not_whole(content, words, capsys, tmp_path):
    weights = np.zeros((4, 4), np.float32)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (float[2,4] y) { y = MatMul(x, w) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    if content is not None:
        (tmp_path / "w.bin").write_bytes(content)
    code, _, err = trtconv(*words, str(tmp_path / "m.onnx"), capsys=capsys)
    assert code in (1, 2)
    assert err.startswith("error: ")
    assert "w.bin" in err or "external" in err.lower() or "'w'" in err


def test_a_weight_with_too_few_bytes_is_named(capsys, tmp_path):
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (float[2,4] y) { y = Add(x, w) }'
    )
    model.graph.initializer.append(onnx.TensorProto(name="w", data_type=1, dims=[4], raw_data=b"123"))
    onnx.save(model, tmp_path / "m.onnx")
    code, _, err = trtconv("inspect", str(tmp_path / "m.onnx"), "--html", str(tmp_path / "p.html"), capsys=capsys)
    assert (code, "'w' holds 3 bytes, its dims [4] need 16" in err) == (2, True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("no 5 TiB"), "too little memory: no 5 TiB"),
        (OSError(28, "No space left on device", "/tmp/x"), "'/tmp/x' cannot be used: No space left on device"),
    ],
)
def test_what_the_machine_lacks_is_no_bug_of_trtconv(error, words, monkeypatch, capsys):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("trtconv.cli.main.cli.main", fail)
    code, _, err = trtconv("version", capsys=capsys)
    assert code == 1
    assert words in err
    assert "bug" not in err


@pytest.mark.parametrize("command", ["rewrite", "build", "check", "inspect"])
def test_a_missing_file_is_one_error(command, capsys, tmp_path):
    code, out, err = trtconv(command, str(tmp_path / "none.onnx"), capsys=capsys)
    assert code == 2
    assert "none.onnx" in err
    assert "Traceback" not in err
    assert not out


@pytest.mark.parametrize("command", ["rewrite", "build", "check", "inspect"])
def test_a_file_that_is_no_onnx_is_one_error(command, capsys, tmp_path):
    path = tmp_path / "text.onnx"
    path.write_text("not a model, but a text that somebody saved under this name")
    code, _, err = trtconv(command, str(path), capsys=capsys)
    assert code == 2
    assert "is truncated or not an ONNX model" in err


def test_convert_without_a_module_says_what_to_name(capsys):
    code, _, err = trtconv("convert", "-o", "x", capsys=capsys)
    assert code == 2
    assert "--config" in err


def test_an_internal_error_is_a_message_and_debug_shows_the_traceback(monkeypatch, capsys):
    import trtconv.cli.commands.about.version as version

    def broken() -> dict[str, str]:
        raise KeyError("x")

    monkeypatch.setattr(version, "installed_versions", broken)
    code, _, err = trtconv("version", capsys=capsys)
    assert code == 1
    assert "bug of trtconv" in err
    with pytest.raises(KeyError):
        run(["version", "--debug"])


def test_ctrl_c_ends_with_130(monkeypatch, capsys):
    import trtconv.cli.commands.about.version as version

    def interrupted() -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(version, "installed_versions", interrupted)
    code, _, err = trtconv("version", capsys=capsys)
    assert code == 130
    assert "interrupted" in err


def test_overflow_in_trtconv_is_no_warning(tmp_path):
    """It is what comparisons feed on purpose."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18, "my.lib" : 1]>
        agraph (float[N,6] x, float mn, float mx) => (float[a,b] y, float[c,d] w, float[e,f] u)
        { y = my.lib.cl(x, mn, mx) w = my.lib.cl(x, "", mx) u = my.lib.cl(x, mn) }
        <domain: "my.lib", opset_import: ["" : 18]> cl (a1, lo, hi) => (r)
        { t = Clip(a1, lo, hi) one = Constant<value_float = 1.0>() x = Add(t, one) r = Relu(x) }"""
    )
    onnx.save(model, tmp_path / "m.onnx")
    command = [sys.executable, "-m", "trtconv", "rewrite", str(tmp_path / "m.onnx"), "--target", "tensorrt==8.6"]
    run = subprocess.run([*command, "-o", str(tmp_path / "o.onnx")], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "RuntimeWarning" not in run.stderr
