"""`trtconv export third.onnx`: the first step of a conversion alone."""

import json

import onnx
import pytest
from onnx import parser

from trtconv.cli.main import run

BODY = "(float[batch,8] x) => (float[batch,8] y) { a = Relu(x) y = Tanh(a) }"


@pytest.fixture
def third(tmp_path):
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {BODY}'), tmp_path / "third.onnx")
    return tmp_path / "third.onnx"


@pytest.fixture
def export(third, tmp_path, capsys):
    def call(*options):
        words = ("export", third, "-o", tmp_path / "out" / "model.onnx", "--dynamic", "batch=1:2:4", *options)
        with pytest.raises(SystemExit) as ending:
            run([str(w) for w in words])
        return ending.value.code or 0, *capsys.readouterr()

    return call


def test_a_file_gets_a_reference_and_named_dims(export, tmp_path):
    code, out, err = export("--json")
    assert code == 0, err
    data = json.loads(out)
    assert (data["kind"], data["original"]) == ("export", str(tmp_path / "third.onnx"))
    assert data["space"]["batch"] == {"min": 1, "opt": 2, "max": 4, "multiple": 1}
    assert (tmp_path / "out" / "model.reference.safetensors").is_file()


def test_options_of_modules_are_refused(export, tmp_path):
    code, _, err = export("--opset", "17")
    assert code == 2
    assert "--opset is for modules, and" in err
    assert not (tmp_path / "out" / "model.onnx").exists()


def test_names_of_the_config_and_the_command_line(third, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trtconv.toml").write_text(
        '[model]\nmodule = "third.onnx"\n\n[[input]]\nname = "x"\nrename = "images"\ndtype = "float32"\n'
        'dims = ["N", 8]\n\n[dynamic]\nN = "1:1:2"\n'
    )
    words = ("--config", "trtconv.toml", "--output-names", "scores", "-o", "out/model.onnx")
    for command in (("export", *words), ("check", "out/model.onnx", "--against", "third.onnx")):
        with pytest.raises(SystemExit) as ending:
            run(list(command))
        assert not ending.value.code, capsys.readouterr().err
    assert "scores" in capsys.readouterr().out
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    assert [v.name for v in (*graph.input, *graph.output)] == ["images", "scores"]
