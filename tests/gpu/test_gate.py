"""The gate on real engines: every fault turns it red with its exit code at the line, and nothing else does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gpu.gate_files import (
    LEAKY,
    ROOT,
    Workshop,
    baked_crop,
    baked_size,
    call,
    change,
    exported,
    line,
    slower,
    wrong_epsilon,
)

RUNS = 20


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Where models are built. 8.6 builds in this process: a process of its own takes 8 s to start each time."""
    from trtconv.backends.tensorrt.backend import TensorRTBackend

    root = tmp_path_factory.mktemp("gate")
    reports = Path(os.environ.get("TRTCONV_GATE_REPORTS") or root / "reports")
    patch = pytest.MonkeyPatch()
    patch.setattr(TensorRTBackend, "build", TensorRTBackend.build_here)
    patch.chdir(ROOT)
    yield Workshop(root, reports)
    patch.undo()


@pytest.fixture(scope="module")
def net(shop):
    return exported("net", shop.root / "exported")


@pytest.fixture(scope="module")
def good(shop, net):
    """An engine of the rewritten network."""
    folder = shop.copy_of("good", net)
    shop.rewrite(folder)
    return shop.build(folder)


@pytest.fixture(scope="module")
def baseline(shop, good):
    path = shop.root / "baseline.json"
    verdict = shop.check("baseline", good, "--baseline", path, "--update-baseline")
    assert verdict.code == 0, verdict.shown
    return path


@pytest.fixture(scope="module")
def waves(shop):
    """An engine that computes a sine of large arguments as 8.6 does by itself."""
    folder = shop.copy_of("waves", exported("waves", shop.root / "exported"))
    shop.rewrite(folder, "--skip", "sin-cos")
    return shop.build(folder)


def test_an_equal_engine_is_green(shop, good):
    verdict = shop.check("equal", good)
    assert verdict.code == 0, verdict.shown
    assert len({c["point"] for c in verdict.report["comparisons"]}) >= 10
    assert verdict.report["extras"]["layers"], "the HTML was asked for, so layers were timed"


def test_a_broken_rewrite_is_red_at_the_line_of_what_it_replaced(shop, net):
    folder = shop.copy_of("broken", net)
    (folder / "leaky.py").write_text(LEAKY)
    shop.rewrite(folder, "--rules", folder / "leaky.py", "--no-proof")
    verdict = shop.check("broken", shop.build(folder))
    assert verdict.code == 3
    assert verdict.line == line("relu")
    assert "which rule leaky made" in verdict.message
    assert "--skip leaky" in verdict.shown


def test_a_wrong_epsilon_is_red_at_its_line(shop, good):
    folder = shop.copy_of("epsilon", good.parent)
    change(folder / "model.trt.onnx", wrong_epsilon)
    verdict = shop.check("epsilon", shop.build(folder))
    assert verdict.code == 3
    assert verdict.line == line("epsilon")


def test_a_baked_crop_is_red_at_its_line(shop, good):
    folder = shop.copy_of("crop", good.parent)
    change(folder / "model.trt.onnx", baked_crop)
    verdict = shop.check("crop", shop.build(folder))
    assert verdict.code == 3
    assert verdict.line == line("flatten")
    assert any("expected [" in c["reason"] for c in verdict.report["comparisons"])


def test_a_baked_size_is_red_at_its_line(shop, good):
    folder = shop.copy_of("baked", good.parent)
    change(folder / "model.trt.onnx", baked_size)
    (folder / "model.engine").unlink()
    code, out, err = shop.try_build(folder)
    (shop.reports / "baked-build.txt").write_text(f"exit {code}\n{out}{err}")
    if code:
        # The builder may see it before anything runs: at the sizes of a profile the Reshape does not hold.
        assert code in (1, 4)
        assert f"gate_module.py:{line('flatten')}" in err
        return
    verdict = shop.check("baked", folder / "model.engine")
    assert verdict.code == 3
    assert verdict.line == line("flatten")


def test_a_stale_engine_is_red(shop, good):
    folder = shop.copy_of("stale", good.parent)
    change(folder / "model.trt.onnx", wrong_epsilon)
    verdict = shop.check("stale", folder / "model.engine")
    assert verdict.code == 2
    assert "is stale: it was built from another 'model.trt.onnx'" in verdict.message


def test_an_engine_of_another_model_is_red(shop, good, waves):
    folder = shop.copy_of("other", good.parent)
    for name in ("model.engine", "model.engine.json"):
        shutil.copy(waves.with_name(name), folder / name)
    verdict = shop.check("other", folder / "model.engine")
    assert verdict.code == 2
    assert "built from another 'model.trt.onnx'" in verdict.message
    (folder / "model.engine.json").unlink()
    without = shop.check("other-without-manifest", folder / "model.engine")
    assert without.code == 3
    assert "expected [" in without.message


def test_fp16_is_green_within_its_tolerance_and_red_outside_of_the_asked_one(shop, net):
    folder = shop.copy_of("half", net)
    shop.rewrite(folder, "--precision", "fp16")
    engine = shop.build(folder, "--precision", "fp16")
    verdict = shop.check("half", engine)
    assert verdict.code == 0, verdict.shown
    tight = shop.check("half-outside", engine, "--rtol", "1e-5", "--atol", "1e-5")
    assert tight.code == 3
    assert tight.line
    config = folder / "share.toml"
    config.write_text("[check.budgets]\nprecision_share = 1.0\n")
    share = shop.check("half-share", engine, "--config", config)
    assert share.code == 6
    assert "precision_share is" in share.message


def test_twice_as_slow_is_red_against_the_baseline(shop, good, baseline):
    folder = shop.copy_of("slow", good.parent)
    change(folder / "model.trt.onnx", slower)
    verdict = shop.check("slow", shop.build(folder), "--baseline", baseline)
    assert verdict.code == 6
    assert all(c["passed"] for c in verdict.report["comparisons"])
    assert any("latency_ms at opt" in m for m in verdict.errors)
    measured = verdict.report["extras"]["measured"]["latency_ms at opt"]["value"]
    before = json.loads(baseline.read_text())["extras"]["measured"]["latency_ms at opt"]["value"]
    assert measured > 2 * before


def test_two_engines_in_turn(shop, good):
    """Each process of its own: the same engine is as fast as itself, one with more layers is not."""
    same = shop.check("in-turn-same", good, "--baseline-engine", good, "--processes", 5)
    assert same.code == 0, same.errors
    (point,) = same.report["extras"]["in_turn"]["points"]
    assert len(point["new"]) == len(point["old"]) == 5
    assert point["smallest_visible"] >= point["limit"]
    folder = shop.copy_of("slow-in-turn", good.parent)
    change(folder / "model.trt.onnx", slower)
    verdict = shop.check("in-turn-slow", shop.build(folder), "--baseline-engine", good, "--processes", 5)
    assert verdict.code == 6
    assert any("medians of 5 processes each, in turn" in message for message in verdict.errors)
    assert verdict.report["extras"]["in_turn"]["points"][0]["ratio"] > 1.5


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("latency_ms = 1e-4", "latency_ms at opt is"),
        ("latency_ms = { max = 1e-4 }", "latency_ms at max is"),
        ('engine_bytes = "1KiB"', "engine_bytes is"),
        ('device_memory_bytes = "1KiB"', "device_memory_bytes is"),
        ("build_seconds = 0.01", "build_seconds is"),
    ],
)
def test_each_budget_is_red_when_it_is_exceeded(shop, good, tmp_path, budget, words):
    config = tmp_path / "trtconv.toml"
    config.write_text(f"[check.budgets]\n{budget}\n")
    verdict = shop.check("budget-" + words.split(" is")[0].replace(" ", "-"), good, "--config", config)
    assert verdict.code == 6
    assert words in verdict.message


def test_budgets_that_hold_are_green(shop, good, tmp_path):
    config = tmp_path / "trtconv.toml"
    config.write_text(
        "[check.budgets]\nlatency_ms = 100\nengine_bytes = '64MiB'\ndevice_memory_bytes = '1GiB'\n"
        "build_seconds = 600\nprecision_share = 1.0\nunsupported_nodes = 0\nplugin_nodes = 0\n"
    )
    verdict = shop.check("budgets", good, "--config", config)
    assert verdict.code == 0, verdict.shown
    assert len(verdict.report["extras"]["budgets"]) == 7


def test_what_only_the_engine_does_wrong_is_told_apart_and_found_by_layers(shop, waves):
    verdict = shop.check("waves", waves)
    assert verdict.code == 3
    assert any("the engine is to blame" in f["message"] for f in verdict.report["findings"])
    layers = shop.check("waves-layers", waves, "--layers")
    assert layers.code == 3
    assert layers.line == line("sine")
    assert "Sin" in layers.message


def test_denormals_that_the_gpu_takes_for_zero_are_no_alarm(shop):
    folder = shop.copy_of("pick", exported("pick", shop.root / "exported"))
    shop.rewrite(folder)
    verdict = shop.check("pick", shop.build(folder))
    assert verdict.code == 0, verdict.shown
    assert any("denormal" in c["point"] for c in verdict.report["comparisons"])


def test_inspect_shows_layers_with_times_tactics_and_types(shop, good):
    code, out, err = call("inspect", good, "--layers")
    (shop.reports / "inspect.txt").write_text(out + err)
    assert code == 0
    assert " us" in out
    assert "float32" in out
    page = shop.reports / "engine.html"
    assert call("inspect", good, "--html", page)[0] == 0
    assert page.stat().st_size < 3 << 20


def test_a_second_build_comes_from_the_cache_in_under_a_second(shop, good, tmp_path, monkeypatch):
    monkeypatch.setenv("TRTCONV_CACHE", str(tmp_path / "cache"))
    words = ["build", good.with_name("model.trt.onnx"), "-o", tmp_path / "m.engine", "--dynamic", "--json",
             "--backend", "tensorrt", "--timing-cache", shop.root / "timing.cache"]  # fmt: skip
    code, out, err = call(*words)
    assert code == 0, err
    assert json.loads(out)["cached"] is False
    start = time.perf_counter()
    _, out, _ = call(*words)
    here = time.perf_counter() - start
    assert json.loads(out)["cached"] is True
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "trtconv", *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    command = time.perf_counter() - start
    (shop.reports / "cache.json").write_text(json.dumps({"call_s": here, "command_s": command}))
    assert json.loads(process.stdout)["cached"] is True
    assert here < 1.0
    assert command < 1.5, "the interpreter's start and its imports included"


def test_an_unchanged_engine_stays_green_over_twenty_runs(shop, good, baseline):
    shop.reports.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(RUNS):
        start = time.monotonic()
        verdict = shop.check("unchanged", good, "--baseline", baseline)
        measured = verdict.report["extras"]["measured"]["latency_ms at opt"]
        rows.append({"run": number, "code": verdict.code, **measured, "seconds": time.monotonic() - start})
        (shop.reports / "unchanged.json").write_text(json.dumps(rows, indent=1))
    assert [r["code"] for r in rows] == [0] * RUNS


def test_repro_cuts_what_only_the_engine_does_wrong(shop, waves, tmp_path):
    folder = shop.reports / "repro"
    code, out, err = call("repro", waves, "-o", folder, "--kind", "engine", "--backend", "tensorrt", "--json")
    (shop.reports / "repro.txt").write_text(out + err)
    assert code == 0, err
    report = json.loads(out)
    assert report["nodes"] <= 2
    assert report["source"].endswith(f"gate_module.py:{line('sine')}")
    assert "trtconv check repro.engine" in (folder / "README.md").read_text()
