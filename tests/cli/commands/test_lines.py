"""What is said of a module's code ends at a line of the user's, never in torch or trtconv."""

import json
import re

import pytest

from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import origin_of

NETS = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)     # line 9

    def forward(self, x):
        return self.pool(x).flatten(1) * 2      # line 12


def make_layers():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),                     # line 17
        nn.Sequential(nn.Hardswish()),          # line 18
        Head(),
    )


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)          # line 25


def make_noise():
    return nn.Sequential(nn.Linear(4, 4), Noise())


class Values(nn.Module):
    def forward(self, x):
        y = x + 1
        return torch.linalg.svd(y)[1]           # line 35
"""
IMAGES = ("--input", "x:float32[N,3,8,W]", "--dynamic", "N=1:2:4", "W=6:8:12")
NUMBERS = ("--input", "x:float32[N,4]", "--dynamic", "N=1:2:4")


@pytest.fixture
def nets(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_layers_of_torch_come_from_the_line_that_created_them(nets, trtconv, exporter):
    code, _, err = trtconv("export", "nets.py:make_layers", "-o", "m.onnx", "--exporter", exporter, *IMAGES)
    assert code == 0, err
    origins = {n.op_type: origin_of(n) for n in load_model(nets / "m.onnx").graph.node}
    assert (origins["Conv"].module, origins["Conv"].source) == ("0", "nets.py:17")
    assert origins["HardSwish"].source == "nets.py:18"
    assert origins["Mul"].source == "nets.py:12"
    assert all(re.fullmatch(r"nets\.py:\d+", o.source) for o in origins.values())


def test_a_finding_about_such_a_layer_has_its_line(nets, trtconv):
    assert trtconv("export", "nets.py:make_layers", "-o", "m.onnx", *IMAGES, "-q")[0] == 0
    code, out, err = trtconv("check", "m.onnx", "--target", "tensorrt==8.6", "--json", "-")
    assert code in (0, 4), err
    sources = {n["origin"]["source"] for n in json.loads(out)["nodes"] if n["origin"]["source"]}
    assert sources
    assert all(s.startswith("nets.py:") for s in sources)


def test_a_layer_that_fails_was_created_at_a_line(nets, trtconv):
    wrong = (IMAGES[0], "x:float32[N,4,8,W]", *IMAGES[2:])
    code, _, err = trtconv("export", "nets.py:make_layers", "-o", "m.onnx", *wrong)
    assert code == 1
    assert "\n  at nets.py:17\n" in err


def test_random_numbers_are_drawn_at_a_line(nets, trtconv):
    code, _, err = trtconv("export", "nets.py:make_noise", "-o", "m.onnx", *NUMBERS)
    assert code == 3
    assert "\n  at nets.py:25\n" in err


def test_an_operator_that_no_exporter_knows_is_called_at_a_line(nets, trtconv):
    code, _, err = trtconv("export", "nets.py:Values", "-o", "m.onnx", *NUMBERS)
    assert code != 0
    assert "\n  at nets.py:35\n" in err
