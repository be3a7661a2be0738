"""`trtconv check` and the limits of `trtconv convert` from the command line: exit codes, places, files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.models import small_net, write_engine, write_pair

ROOT = Path(__file__).parents[2]


def trtconv(place, *words):
    return subprocess.run(
        [sys.executable, "-m", "trtconv", *map(str, words)], cwd=place, capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip


def test_a_failure_ends_at_the_line_with_code_3(tmp_path):
    write_pair(tmp_path, rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    done = trtconv(tmp_path, "check", "model.trt.onnx", "--json", "-")
    assert done.returncode == 3
    assert json.loads(done.stdout)["findings"][0]["source"] == "net.py:13"
    shown = trtconv(tmp_path, "check", "model.trt.onnx").stdout
    assert "at net.py:13 in norm, node /norm/Add" in shown
    assert "-> leave the rule out: --skip l2norm" in shown


def test_over_budget_is_code_6_and_within_is_0(tmp_path):
    write_pair(tmp_path)
    config = tmp_path / "trtconv.toml"
    config.write_text("[check.budgets]\nlatency_ms = 1e6\nplugin_nodes = 0\n")
    good = trtconv(tmp_path, "check", "model.trt.onnx", "--config", config)
    assert good.returncode == 0, good.stderr
    assert "within  latency_ms at opt" in good.stdout
    config.write_text("[check.budgets]\nlatency_ms = 1e-6\n")
    bad = trtconv(tmp_path, "check", "model.trt.onnx", "--config", config)
    assert bad.returncode == 6
    assert "equals the reference" in bad.stdout


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
    done = trtconv(tmp_path, "check", "model.trt.onnx", *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_stale_engine_is_code_2_without_a_gpu(tmp_path):
    write_pair(tmp_path)
    write_engine(tmp_path, model_files={"model.trt.onnx": "0" * 64})
    done = trtconv(tmp_path, "check", "model.engine")
    assert done.returncode == 2
    assert "is stale" in done.stdout
