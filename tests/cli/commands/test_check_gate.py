"""`trtconv check` and the limits of `trtconv convert` from the command line: exit codes, places, files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.models import small_net, write_engine, write_pair
from tests.cli.processes import run_trtconv

ROOT = Path(__file__).parents[3]


def test_a_failure_ends_at_the_line_with_code_3(tmp_path):
    write_pair(tmp_path, rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    process = run_trtconv(tmp_path, "check", "model.trt.onnx", "--json", "-")
    assert process.returncode == 3
    assert json.loads(process.stdout)["findings"][0]["source"] == "net.py:13"
    text = run_trtconv(tmp_path, "check", "model.trt.onnx").stdout
    assert "at net.py:13 in norm, node /norm/Add" in text
    assert "-> leave the rule out: --skip l2norm" in text


def test_a_report_on_stdout_is_all_that_is_there(tmp_path):
    write_pair(tmp_path)
    ended = run_trtconv(tmp_path, "check", "model.trt.onnx", "--markdown", "-")
    assert (ended.returncode, ended.stdout.count("equals the module")) == (0, 1)
    assert ended.stdout.startswith("### ✅")
    assert "PASSED" not in ended.stdout


def test_ranges_beside_recorded_points_are_told_and_mistyped_ones_refused(tmp_path):
    write_pair(tmp_path)
    ended = run_trtconv(tmp_path, "check", "model.trt.onnx", "--dynamic", "N=1:2:4")
    assert ended.returncode == 0, ended.stderr
    assert "note  --dynamic changes nothing: the sample points are those that" in ended.stdout
    ended = run_trtconv(tmp_path, "check", "model.trt.onnx", "--dynamic", "M=1:2:4")
    assert ended.returncode == 2
    assert "no input of 'model.trt.onnx' has a dim called 'M'" in ended.stderr


def test_layers_are_an_engine_s(tmp_path):
    write_pair(tmp_path)
    ended = run_trtconv(tmp_path, "check", "model.trt.onnx", "--layers")
    assert ended.returncode == 2
    assert "--layers looks inside an engine, and 'model.trt.onnx' is an ONNX file" in ended.stderr


def test_over_budget_is_code_6_and_within_is_0(tmp_path):
    write_pair(tmp_path)
    config = tmp_path / "trtconv.toml"
    config.write_text("[check.budgets]\nlatency_ms = 1e6\nplugin_nodes = 0\n")
    good = run_trtconv(tmp_path, "check", "model.trt.onnx", "--config", config)
    assert good.returncode == 0, good.stderr
    assert "within  latency_ms at opt" in good.stdout
    config.write_text("[check.budgets]\nlatency_ms = 1e-6\n")
    bad = run_trtconv(tmp_path, "check", "model.trt.onnx", "--config", config)
    assert bad.returncode == 6
    assert "equals the module at 15 sample points, but 1 other error was found" in bad.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--update-baseline"], "needs --baseline"),
        (["--baseline", "missing.json"], "there is no baseline 'missing.json'"),
        (["--config", "bad.toml"], "no budget 'latency'"),
    ],
)
def test_a_wrong_request_is_code_2(tmp_path, options, words):
    write_pair(tmp_path)
    (tmp_path / "bad.toml").write_text("[check.budgets]\nlatency = 1\n")
    process = run_trtconv(tmp_path, "check", "model.trt.onnx", *options)
    assert process.returncode == 2
    assert words in process.stderr


def test_a_stale_engine_is_code_2_without_a_gpu(tmp_path):
    write_pair(tmp_path)
    write_engine(tmp_path, model_files={"model.trt.onnx": "0" * 64})
    process = run_trtconv(tmp_path, "check", "model.engine")
    assert process.returncode == 2
    assert "is stale" in process.stdout


def test_quiet_says_in_one_line_what_failed_and_nothing_else(tmp_path):
    write_pair(tmp_path, rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    bad = run_trtconv(tmp_path, "check", "model.trt.onnx", "-q")
    assert (bad.returncode, bad.stdout) == (3, "")
    assert bad.stderr.count("\n") == 1
    assert bad.stderr.startswith("FAILED  model.trt.onnx: ")
    assert "net.py:13" in bad.stderr
    write_pair(tmp_path)
    good = run_trtconv(tmp_path, "check", "model.trt.onnx", "-q")
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "")


def test_sarif_has_the_exit_code_of_the_process(tmp_path):
    write_pair(tmp_path, rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    process = run_trtconv(tmp_path, "check", "model.trt.onnx", "--sarif", "out.sarif", "-q")
    [invocation] = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["invocations"]
    assert invocation["exitCode"] == process.returncode == 3


@pytest.mark.parametrize(("backend", "target"), [("auto", "tensorrt==11"), ("tensorrt-rtx", "tensorrt-rtx")])
def test_without_tensorrt_a_rewrite_has_a_default_target_and_names_it(tmp_path, backend, target):
    """As in a base install: neither TensorRT can be found."""
    write_pair(tmp_path)
    (tmp_path / "t.toml").write_text(f'[build]\nbackend = "{backend}"\n')
    code = (
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n in ('tensorrt', 'tensorrt_rtx') else find(n, *a)\n"
        "import sys\nsys.modules |= {'tensorrt': None, 'tensorrt_rtx': None}\n"
        "from trtconv.cli.main import run\nrun()"
    )
    words = ["rewrite", "model.onnx", "-o", "new.onnx", "--config", "t.toml"]
    process = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert f"the target is {target}; --target chooses another one: tensorrt==8.6" in process.stderr
    assert (tmp_path / "new.onnx").exists()
