"""Decisions by joint sizes in whole exports: found, refused with their line or exported, and told in the verdict."""

import json

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.check.room import check_model
from trtconv.core.errors import AccuracyError
from trtconv.core.requests import CheckRequest

MODULES = """
TABLE = {(20, 20): 0.5, (24, 40): 1.5}


class Lookup(nn.Module):
    def forward(self, x):
        return x * TABLE.get(tuple(x.shape[-2:]), 1.0)


class OnePair(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[2] * x.shape[3] == 61 * 67 else x


class ThreeDims(nn.Module):
    def forward(self, x):
        n, _, h, w = x.shape
        if n == 3 and h % 5 == 2 and w > 60:
            return x * 2
        return x


class Recorded(nn.Module):
    # A length that follows from the values cannot be traced by torch.export, so that TorchScript records one run.
    def forward(self, x, lengths):
        y = x[:, :, : int(lengths.max())]
        if x.shape[2] > 60 and x.shape[3] == 19:
            y = y + 1.0
        return y.sum((2, 3))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(2, 3, 3, 2, 1)

    def forward(self, x):
        return self.layer(x).relu()
"""
IMAGE = ["x:float32[N,2,H,W]"]
SPACE = "N=1:1:3 H=16:24:72 W=16:24:72"
TOTAL = 3 * 57 * 57


def test_a_table_by_two_sizes_is_refused_with_its_line(write_module, export):
    path = write_module(MODULES)
    with pytest.raises(AccuracyError, match="looks its size up in a table") as caught:
        export(f"{path}:Lookup", IMAGE, SPACE)
    assert caught.value.where == "net.py:11"


@pytest.mark.slow
def test_three_conditions_on_three_dims_are_three_cuts(write_module, export):
    result = export(f"{write_module(MODULES)}:ThreeDims", IMAGE, SPACE)
    graph, runner = onnx.load(result.model).graph, OnnxRuntimeRunner(result.model)
    assert [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim] == [0, 2, 0, 0]
    for n, h, w in ((3, 17, 61), (3, 72, 72), (2, 17, 61), (3, 18, 61), (3, 17, 60), (1, 16, 16)):
        expected = 2.0 if n == 3 and h % 5 == 2 and w > 60 else 1.0
        assert (runner({"x": np.ones((n, 2, h, w), np.float32)})["output"] == expected).all()


@pytest.mark.parametrize("name", ["Recorded"])
def test_a_rare_joint_size_ends_the_export_at_its_line(name, write_module, export):
    path = write_module(MODULES)
    inputs = [*IMAGE, "lengths:int64[N]=1:16"] if name == "Recorded" else IMAGE
    with pytest.raises(AccuracyError, match="depends on the size") as caught:
        export(f"{path}:{name}", inputs, SPACE)
    text = path.read_text().splitlines()
    line = int(str(caught.value.where).partition(":")[2])
    assert text[line - 1].strip().startswith("if ")


@pytest.mark.parametrize(("name", "paths"), [("OnePair", True), ("Plain", False)])
def test_what_was_tried_stands_in_manifest_and_report(name, paths, write_module, export):
    result = export(f"{write_module(MODULES)}:{name}", IMAGE, SPACE)
    assert result.sizes is not None
    assert result.sizes.complete
    assert result.sizes.total == result.sizes.followed == TOTAL
    assert (result.sizes.paths > 1 and result.sizes.lines == ("net.py:16",)) is paths
    assert json.loads(result.manifest.read_text())["sizes"]["text"] == str(result.sizes)
    report = check_model(CheckRequest(subject=result.model, reference=result.reference))
    assert report.passed
    assert [(f.level, f.message) for f in report.findings if f.kind == "sizes"] == [("note", str(result.sizes))]
