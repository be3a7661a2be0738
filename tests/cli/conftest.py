"""Running the command line in this process, and a small module to run it on."""

import json
from pathlib import Path

import pytest

from tests.cli.documents import validated
from trtconv.cli.main import run

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1)

    def forward(self, images):
        x = self.conv(images)
        norm = x.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-10
        return torch.nn.functional.max_pool2d(x / norm, 2)


def make_net(width=4):
    torch.manual_seed(0)
    return Net(width)


def broken_net():
    raise RuntimeError("no checkpoint here")


def exiting_net():
    import sys

    sys.exit(0)


def nan_net():
    class Nan(nn.Module):
        def forward(self, images):
            return images * float("nan")

    return Nan()


def slow_net():
    import pathlib
    import time

    pathlib.Path(__file__).with_name("started").touch()
    time.sleep(60)


not_callable = 3
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


@pytest.fixture
def trtconv(capsys):
    """Exit code, stdout and stderr of a command. A document that `--json` prints is held to its schema each time."""

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            run([str(w) for w in words])
        out, err = capsys.readouterr()
        if out.startswith("{") and any(str(w).startswith("--json") for w in words):
            validated(out, json.loads(out)["kind"])
        return int(caught.value.code or 0), out, err

    return call
