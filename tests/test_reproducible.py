"""The same inputs give the same bytes: two processes that differ in folder, home, hash seed, locale, zone and umask."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[1]
NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        return nn.functional.normalize(y, dim=1), y.mean((2, 3))


def make():
    torch.manual_seed(0)
    return Net()
"""
# What a process is started with; none of it may reach a file.
SURROUNDINGS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC", "USER": "root", "COLUMNS": "80"},
    {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Pacific/Chatham", "USER": "somebody", "COLUMNS": "200"},
)
UMASKS = (0o022, 0o077)
STEPS = """
import locale, os, sys
os.umask(int(sys.argv[1]))
locale.setlocale(locale.LC_ALL, "")
from trtconv.cli.main import _run
words = ["--input", "x:float32[N,3,H,8]", "--dynamic", "N=1:1:2", "H=8:8:12", "-q"]
assert _run(["export", "net.py:make", "-o", "out/model.onnx", *words]) == 0
assert _run(["rewrite", "out/model.onnx", "--target", "tensorrt==10", "-q"]) == 0
"""
FILES = ("model.onnx", "model.onnx.json", "model.reference.safetensors", "model.trt.onnx", "model.rewrites.json")


def test_onnx_ledger_reference_and_manifest_are_reproducible(tmp_path):
    children = []
    for number in (1, 2):
        folder = tmp_path / f"folder{number}" / ("deep" * number)
        folder.mkdir(parents=True)
        (folder / "net.py").write_text(NET)
        home, temporary = (tmp_path / f"{name}{number}" for name in ("home", "tmp"))
        home.mkdir()
        temporary.mkdir(mode=0o700)
        environment = {
            **os.environ,
            **SURROUNDINGS[number - 1],
            "PYTHONPATH": str(ROOT),
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "XDG_CACHE_HOME": str(home / ".cache"),
        }
        words = [sys.executable, "-c", STEPS, str(UMASKS[number - 1])]
        children.append((folder, subprocess.Popen(words, cwd=folder, env=environment)))
    assert [child.wait(timeout=300) for _, child in children] == [0, 0]
    first, second = (folder / "out" for folder, _ in children)
    assert {p.name for p in first.iterdir()} == set(FILES)
    assert [n for n in FILES if (first / n).read_bytes() != (second / n).read_bytes()] == []
    # The umask says who may read an output, and nothing else does.
    for folder, umask in zip((first, second), UMASKS, strict=True):
        assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o666 & ~umask}
    assert str(tmp_path) not in "".join((first / n).read_bytes().decode("latin-1") for n in FILES)
