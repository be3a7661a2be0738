"""The whole line on a small module, as a user runs it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from trtconv.backends.cuda.driver import probe_cuda

pytest.importorskip("torch")
pytest.importorskip("tensorrt_rtx")
IMAGES = ("--input", "images:float32[N,3,H,W]")
RANGES = ("--dynamic", "N=1:1:2", "H=8:10:16", "W=8:11:18")


@pytest.fixture
def converted(trtconv, net, tmp_path):
    out = tmp_path / "out"
    code, stdout, err = trtconv(
        "convert", f"{net}:make_net", *IMAGES, *RANGES, "-o", out, "--backend", "tensorrt-rtx", "--json"
    )
    assert code == 0, err
    return out, json.loads(stdout)


def test_convert_makes_all_files_and_proves_them(converted):
    out, data = converted
    names = {p.name for p in out.iterdir()}
    assert names >= {
        "model.onnx",
        "model.onnx.json",
        "model.reference.safetensors",
        "model.trt.onnx",
        "model.rewrites.json",
        "model.engine",
        "model.engine.json",
    }
    assert data["passed"] is True
    assert data["rewrite"]["rewrites"] == {"l2norm": 1}
    assert data["build"]["profiles"][0]["images"] == [[1, 3, 8, 8], [1, 3, 10, 11], [2, 3, 16, 18]]


def test_the_epsilon_survives(converted):
    import trtconv

    out, _ = converted
    with trtconv.load(out / "model.trt.onnx") as session:
        result = session(images=np.zeros((1, 3, 8, 8), np.float32))
    assert all(np.isfinite(v).all() for v in result.values())


def test_inspect_and_check_read_what_convert_made(converted, trtconv):
    out, _ = converted
    code, text, _ = trtconv("inspect", out / "model.engine")
    assert code == 0
    assert "tensorrt-rtx" in text
    assert "N=1:1:2" in text
    code, text, _ = trtconv("inspect", out / "model.trt.onnx", "--layers")
    assert code == 0
    assert "net.py:" in text
    code, text, _ = trtconv("check", out / "model.trt.onnx")
    assert code == 0
    assert "PASSED" in text
    code, _, err = trtconv("check", out / "model.trt.onnx", "--layers")
    assert code == 2
    assert "--layers looks inside an engine" in err
    if not probe_cuda().gpus:
        code, text, err = trtconv("check", out / "model.engine", "--layers")
        assert code == 5
        assert str(out / "model.engine") in text
        assert "trtconv-layers-" not in text + err
    code, text, _ = trtconv(
        "rewrite", out / "model.onnx", "-o", out / "again.onnx", "--target", "tensorrt-rtx", "--explain"
    )
    assert code == 0
    assert "l2norm" in text


def test_check_against_the_module_itself(converted, trtconv, net):
    out, _ = converted
    assert trtconv("check", out / "model.trt.onnx", "--against", f"{net}:make_net")[0] == 0
    code, text, _ = trtconv("check", out / "model.trt.onnx", "--against", f"{net}:make_net", "--arg", "width=5")
    assert code == 3
    assert "FAILED" in text


def test_build_of_a_foreign_file_needs_names_and_ranges(converted, trtconv, tmp_path):
    import onnx

    out, _ = converted
    model = onnx.load(out / "model.onnx")
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "foreign.onnx")
    code, _, err = trtconv("build", tmp_path / "foreign.onnx", "--backend", "tensorrt-rtx")
    assert code == 2
    assert "--dynamic" in err
    code, _, err = trtconv(
        "build", tmp_path / "foreign.onnx", "--backend", "tensorrt-rtx", "-o", tmp_path / "f.engine",
        "--input", "images:float32[B,3,Y,X]", "--dynamic", "B=1:1:2", "Y=8:8:16", "X=8:8:16",
    )  # fmt: skip
    assert code == 0, err
    assert (tmp_path / "f.engine").exists()


def test_a_config_does_what_the_options_do(trtconv, net, tmp_path):
    code, out, err = trtconv("init", f"{net}:make_net", "-o", tmp_path / "trtconv.toml")
    assert code == 0, err
    assert "images" in out
    text = (tmp_path / "trtconv.toml").read_text()
    assert trtconv("init", f"{net}:make_net", "-o", tmp_path / "trtconv.toml")[0] == 2
    assert 'H = "64:96:128"\nW = "64:96:128"\n' in text
    text = text.replace('H = "64:96:128"', 'H = "8:10:16"').replace('W = "64:96:128"', 'W = "8:8:16"')
    (tmp_path / "trtconv.toml").write_text(text)
    code, out, err = trtconv(
        "convert", "--config", tmp_path / "trtconv.toml", "-o", tmp_path / "o", "--backend", "tensorrt-rtx"
    )
    assert code == 0, err
    assert "shape space  N=1:1:4 H=8:10:16 W=8:8:16" in out


@pytest.mark.sampled(1)
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_is_in_the_graph_and_judged_as_such(trtconv, net, tmp_path, precision):
    out = tmp_path / "half"
    code, text, err = trtconv(
        "convert", f"{net}:make_net", *IMAGES, *RANGES, "-o", out, "--backend", "tensorrt-rtx", "--precision", precision
    )
    assert code == 0, err
    assert f"nodes in {precision}" in text
    code, text, _ = trtconv("inspect", out / "model.engine")
    assert precision in text
    code, text, _ = trtconv("check", out / "model.trt.onnx", "--rtol", "1e-5", "--atol", "1e-5")
    assert code == 3, "half precision does not hold a tolerance of single precision"


def test_a_module_that_gives_nothing_but_nan_proves_nothing(trtconv, net, tmp_path):
    words = ("convert", f"{net}:nan_net", *IMAGES, *RANGES, "-o", tmp_path / "out", "--backend", "tensorrt-rtx")
    code, _, err = trtconv(*words)
    assert code == 3
    assert "no output holds a finite number at any point" in err
    assert "--weights" in err
    assert not (tmp_path / "out" / "model.trt.onnx").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "l2nrom"), "Did you mean 'l2norm'"),
        (("--rules", "none.py"), "there is no rule file"),
        (("--plugins", "Nope"), "there is no plugin 'Nope'"),
        (("--plugin", "none.so"), "there is no plugin library"),
        (("--option", "tf23=true"), "Did you mean 'tf32'"),
        (("--option", "tf32=maybe"), "tf32"),
        (("--compute-capability", "1.0"), "cannot build for compute capability 1.0"),
        (("--profile", "Q=1:1:1"), "no dim is called 'Q'"),
        (("--timing-cache", "cache"), "no use for a timing cache"),
        (("--keep-fp32", "node"), "the precision is auto"),
        (("--workspace", "0B"), "a workspace of 0 bytes"),
        (("--seed", "-1"), "-1 is not in the range"),
        (("--config", "pad.toml"), "unknown way to pad 'refelct'. Did you mean 'reflect'"),
        (("--config", "level.toml"), "level.toml: build.opt_level must be a finite number from 0 to 5, got 9"),
        (("--config", "precision.toml"), "unknown precision 'fp4'"),
    ],
)
def test_what_a_later_room_would_refuse_is_refused_before_the_export(
    trtconv, net, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pad.toml").write_text('[export]\npad_to_multiple = "refelct"\n')
    (tmp_path / "level.toml").write_text("[build]\nopt_level = 9\n")
    (tmp_path / "precision.toml").write_text('[build]\nprecision = "fp4"\n')
    code, _, err = trtconv(
        "convert", f"{net}:broken_net", *IMAGES, *RANGES, "-o", "out", "--backend", "tensorrt-rtx", *words
    )
    assert message in err
    assert code in (2, 4)
    assert not (tmp_path / "out").exists()


def test_the_how_to_of_rules_as_it_is_written(trtconv, tmp_path, monkeypatch):
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "write-a-rule.md").read_text()
    monkeypatch.chdir(tmp_path)
    for name, source in zip(
        ("my_rules.py", "net.py", "two_means.py"), re.findall(r"```python\n(.*?)```", text, re.DOTALL), strict=True
    ):
        (tmp_path / name).write_text(source)
    export, rewrite = (line.split()[1:] for line in text.splitlines() if line.startswith("trtconv "))
    assert trtconv(*export)[0] == 0
    code, out, err = trtconv(*rewrite, "--target", "tensorrt-rtx")
    assert code == 0, err
    assert "rewrote  my-hard-swish" in out
    wrong = (tmp_path / "my_rules.py").read_text().replace('op="HardSwish"', 'op="Relu"')
    (tmp_path / "my_rules.py").write_text(wrong)
    code, out, _ = trtconv(*rewrite, "--target", "tensorrt-rtx")
    assert code == 0
    assert "none was kept" in out
    assert out.count("the proof found a difference") == 1


def test_a_detector_with_suppression_as_the_page_says(trtconv, tmp_path, monkeypatch):
    """docs/how-to/data-dependent-sizes.md: the command converts, and the outputs are those that it describes."""
    import onnx

    from tests.rewrite.fixed_rows.test_settle import DETECTOR, parsed

    page = Path(__file__).parents[3] / "docs" / "how-to" / "data-dependent-sizes.md"
    [command] = re.findall(r"^trtconv (convert detector\.onnx .*)$", page.read_text(), re.MULTILINE)
    onnx.save(parsed(DETECTOR), tmp_path / "detector.onnx")
    monkeypatch.chdir(tmp_path)
    code, _, err = trtconv(*command.split())
    assert code == 0, err
    outputs = {o.name: o.type.tensor_type.shape.dim[0].dim_value for o in onnx.load("out/model.trt.onnx").graph.output}
    # The detector itself gives 20 boxes of each of its two classes at the most.
    assert outputs == {"kept": 40, "best": 40, "label": 40, "num_detections": 1}
    assert json.loads(Path("out/model.engine.json").read_text())["fixed_rows"]
