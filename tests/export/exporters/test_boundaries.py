"""A file is compared where it decides, and at the values that users feed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.export.symbolic.arithmetic import division
from trtconv.proof.points import BOUNDARY
from trtconv.proof.reference import read_samples

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
SPACE = "N=1:2:3 H=20:24:31"


def test_floors_of_a_quotient_are_those_of_torch_on_a_grid(write_module, export):
    path = write_module(HEAD + "        return x // 0.1, torch.div(x, 0.3, rounding_mode='floor'), 5.0 // x\n")
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], SPACE)
    x = (np.arange(2 * 3 * 24) * 0.1 - 7).astype(np.float32).reshape(2, 3, 24)
    outputs = list(OnnxRuntimeRunner(result.model)({"x": x}).values())
    tensor = torch.from_numpy(x)
    floors = tensor // 0.1, torch.div(tensor, 0.3, rounding_mode="floor"), 5.0 // tensor
    for output, expected in zip(outputs, floors, strict=True):
        assert np.array_equal(output, expected.numpy())
    points = [s.point for s in read_samples(result.reference)]
    assert [p.label for p in points if p.values == BOUNDARY][:1] == ["boundary-1"]


def test_a_floor_that_is_a_step_off_on_its_boundary_is_refused(write_module, export, monkeypatch):
    """In this range no probe by type lies on the grid: only what is made from the graph does."""
    monkeypatch.setattr(division, "_of_floats", lambda *_: False)
    path = write_module(HEAD + "        return x // 0.1\n")
    with pytest.raises(AccuracyError, match="boundary-1"):
        export(f"{path}:Net", ["x:float32[N,3,H]=0.031:0.977"], SPACE, exporter="dynamo")


def test_a_decision_that_no_input_reaches_is_noted_with_its_line(write_module, export):
    path = write_module(HEAD + "        return torch.where(torch.sigmoid(x).mean() > 1.5, x + 1, x)\n")
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], SPACE)
    (note,) = [n for n in result.notes if "decisions probed: 0 of 1" in n]
    assert "net.py:7" in note


def test_small_numbers_keep_their_digits(write_module, export):
    path = write_module(HEAD + "        return torch.log1p(x.abs()), torch.expm1(x), F.logsigmoid(x)\n")
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], SPACE)
    x = np.geomspace(1e-8, 30, 2 * 3 * 24).astype(np.float32).reshape(2, 3, 24)
    tensor = torch.from_numpy(x).double()
    outputs = list(OnnxRuntimeRunner(result.model)({"x": x}).values())
    exacts = torch.log1p(tensor), torch.expm1(tensor), torch.nn.functional.logsigmoid(tensor)
    for output, exact in zip(outputs, exacts, strict=True):
        error = np.abs(output - exact.numpy()) / np.abs(exact.numpy())
        assert error.max() < 1e-6
    assert "Log" in {n.op_type for n in onnx.load(result.model).graph.node}


def test_what_an_infinity_does_to_a_product_of_windows_is_told(write_module, export):
    path = write_module(HEAD + "        return F.adaptive_avg_pool1d(x, 5)\n")
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], SPACE)
    (note,) = [n for n in result.notes if "with an infinity in an input the file differs" in n]
    assert "minus-infinity" in note


def test_a_maximum_over_windows_keeps_an_infinity(write_module, export):
    path = write_module(HEAD + "        return F.adaptive_max_pool1d(x, 5)\n")
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], SPACE)
    assert not [n for n in result.notes if "infinity" in n]


def test_a_number_that_a_half_is_compared_with_unrounded_is_refused(write_module, export, monkeypatch):
    """0.3 as a half is over 0.3: torch rounds the number first, and so did no file before numbers were handled."""
    monkeypatch.setattr("trtconv.export.symbolic.mode.with_numbers_of_torch", lambda *_: NotImplemented)
    path = write_module(HEAD + "        return torch.where(x > 0.3, x, -x)\n")
    with pytest.raises(AccuracyError, match="boundary-1"):
        export(f"{path}:Net", ["x:float16[N,3,H]"], SPACE)


def test_an_integer_that_a_size_chooses_is_met_on_each_path(write_module, export):
    """Of a million ids one is the number: a file with the other path's number shows where ids are led to it."""
    text = HEAD.replace("x)", "x, ids)") + (
        "        n = x.shape[2]\n"
        "        m = n * 7919 % 9973 if n < 25 else n\n"
        "        return torch.where((ids == m)[:, None, None], -1.0, x)\n"
    )
    path = write_module(text)
    result = export(f"{path}:Net", ["x:float32[N,3,H]", "ids:int64[N]=0:1000000"], SPACE)
    for n in range(20, 32):
        m = n * 7919 % 9973 if n < 25 else n
        feed = {"x": np.zeros((2, 3, n), np.float32), "ids": np.asarray([m, m + 1])}
        (y,) = OnnxRuntimeRunner(result.model)(feed).values()
        assert [y[0].max(), y[1].min()] == [-1, 0], n
