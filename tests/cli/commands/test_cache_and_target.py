"""What spares work (the engine cache, an unchanged conversion) and the static check, as a user runs them."""

import json
import subprocess
import sys
import time

import pytest
from onnx import TensorProto, helper

from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import SOURCE_KEY, SPACE_KEY


def model(op="Relu", opset=17, **attributes):
    node = helper.make_node(op, ["x"], ["y"], "the_node", **attributes)
    node.metadata_props.add(key=SOURCE_KEY, value="net.py:7")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.FLOAT, ["N", 8])], [value("y", TensorProto.FLOAT, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    set_metadata(model, SPACE_KEY, "N=1:2:4")
    return model


@pytest.fixture
def cached(monkeypatch, tmp_path):
    monkeypatch.setenv("TRTCONV_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_check_target_passes_and_says_who_judged(trtconv, tmp_path):
    save_model(model(), tmp_path / "m.onnx")
    code, out, _ = trtconv("check", tmp_path / "m.onnx", "--target", "tensorrt==8.6")
    assert code == 0
    assert "1 node: 1 supported" in out
    assert "PASSED" in out


def test_check_target_fails_with_4_at_the_line_in_every_report(trtconv, tmp_path):
    save_model(model("Bernoulli", dtype=1), tmp_path / "m.onnx")
    reports = {n: tmp_path / f"r.{n}" for n in ("sarif", "junit", "markdown", "html", "json")}
    words = [w for n, p in reports.items() for w in (f"--{n}", p)]
    code, out, _ = trtconv("check", tmp_path / "m.onnx", "--target", "tensorrt==11", *words)
    assert code == 4
    assert "net.py:7" in out
    results = json.loads(reports["sarif"].read_text())["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert "Bernoulli" in reports["junit"].read_text()
    assert "❌" in reports["markdown"].read_text()
    assert json.loads(reports["json"].read_text())["counts"] == {"refused": 1}
    assert reports["html"].stat().st_size > 0


def test_an_unknown_target_is_named(trtconv, tmp_path):
    save_model(model(), tmp_path / "m.onnx")
    code, _, err = trtconv("check", tmp_path / "m.onnx", "--target", "tensort==10")
    assert code == 2
    assert "unknown target 'tensort==10'" in err


def test_the_second_build_is_answered_from_the_cache_and_says_so(trtconv, tmp_path, cached):
    pytest.importorskip("tensorrt_rtx")
    save_model(model(), tmp_path / "m.onnx")
    words = ("build", tmp_path / "m.onnx", "--dynamic", "--backend", "tensorrt-rtx", "--json")
    code, out, err = trtconv(*words)
    assert code == 0, err
    assert json.loads(out)["cached"] is False
    code, out, _ = trtconv(*words)
    assert json.loads(out)["cached"] is True
    assert "from the engine cache" in json.loads(out)["cache"]
    code, out, _ = trtconv(*words, "--opt-level", "1")
    assert "changed since the nearest engine: opt_level nothing -> 1" in json.loads(out)["cache"]
    assert json.loads(trtconv(*words, "--no-cache")[1])["cached"] is False


def test_cache_commands(trtconv, tmp_path, cached):
    pytest.importorskip("tensorrt_rtx")
    save_model(model(), tmp_path / "m.onnx")
    trtconv("build", tmp_path / "m.onnx", "--backend", "tensorrt-rtx")
    (entry,) = json.loads(trtconv("cache", "ls", "--json")[1])["entries"]
    assert "1 engines" in trtconv("cache", "ls")[1]
    assert trtconv("cache", "verify")[0] == 0
    (cached / entry["key"] / "engine").write_bytes(b"x")
    code, out, _ = trtconv("cache", "verify")
    assert code == 1
    assert "damaged, removed" in out
    assert trtconv("cache", "rm", "abc")[0] == 2
    assert trtconv("cache", "rm", "--all")[1] == "removed 0 engines\n"


def test_a_cache_that_is_off_says_how_to_turn_it_on(trtconv):
    code, _, err = trtconv("cache", "ls")
    assert code == 2
    assert "TRTCONV_CACHE" in err


def test_an_unchanged_conversion_is_answered_at_once(trtconv, net, tmp_path, cached):
    pytest.importorskip("torch")
    pytest.importorskip("tensorrt_rtx")
    words = ("convert", f"{net}:make_net", "--input", "images:float32[N,3,H,W]", "--dynamic", "N=1:1:2", "H=8:10:16",
             "W=8:11:18", "-o", tmp_path / "out", "--backend", "tensorrt-rtx")  # fmt: skip
    code, first, err = trtconv(*words)
    assert code == 0, err
    # What a killed command left beside it, which has nothing to write either.
    (tmp_path / "out" / ".model.trtconv-lock").touch()
    code, second, _ = trtconv(*words)
    assert code == 0
    assert not (tmp_path / "out" / ".model.trtconv-lock").exists()
    assert second.startswith(first.rstrip("\n").split("\n")[0][:6])
    assert "nothing changed since" in second

    def seconds(*command):
        best = 99.0
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True)
            best = min(best, time.perf_counter() - start)
        return best

    # The command of another process has to be the same one: options, folder, environment.
    subprocess.run([sys.executable, "-m", "trtconv", *map(str, words)], check=True, capture_output=True)
    assert seconds("-m", "trtconv", *words) < 2 * seconds("-c", "import trtconv, onnx")

    net.write_text(net.read_text() + "\n# a comment\n")
    code, third, _ = trtconv(*words)
    assert code == 0
    assert "nothing changed since" not in third
    (tmp_path / "out" / "model.engine").unlink()
    assert "nothing changed since" not in trtconv(*words)[1]
    assert (tmp_path / "out" / "model.engine").exists()
