"""Shifts by any amount, quotients and roots of -0.0 are torch's, traced and recorded."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.symbolic.arithmetic import division, shifts

KINDS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
AMOUNTS = [-3, -1, 0, 1, 5, 6, 7, 8, 9, 14, 15, 16, 30, 31, 32, 33, 62, 63, 64, 65, 127]
NETS = """
class Left(nn.Module):
    def forward(self, x, k):
        return x << k, torch.bitwise_left_shift(x, k * 2)


class Right(nn.Module):
    def forward(self, x, k):
        return x >> k, torch.bitwise_right_shift(x, k * 2)


class InPlace(nn.Module):
    def forward(self, x, k):
        y, z = x.clone(), x.clone()
        y <<= k
        z >>= k
        return y, z


class Bits(nn.Module):
    def forward(self, x, k):
        return ((x[:, None] >> torch.arange(32, dtype=torch.int32)) & 1).sum(-1), 1 << (k & 15)


class Scripted(nn.Module):
    def forward(self, x, k):
        return shifted(x, k)


@torch.jit.script
def shifted(x, k):
    return x << k, x >> k
"""
FLOATS = {
    "cut": "x.trunc()",
    "a quotient cut": "torch.div(x, 2.0, rounding_mode='trunc')",
    "a root": "x ** 0.5",
    "a root of the quotient": "torch.pow(x, -0.5)",
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_amount(kind):
    ends = torch.iinfo(kind)
    x = torch.tensor([ends.min, ends.max, ends.max // 3, 0, 1, 5], dtype=kind)
    for bits in (b for b in AMOUNTS if ends.min <= b <= ends.max):
        amount = torch.full_like(x, bits)
        assert torch.equal(shifts.shift_right(None, x, amount), x >> amount)
        assert torch.equal(shifts.shift_left(None, x, amount), x << amount)
        assert torch.equal(shifts.shift_right(None, x, bits), x >> bits)
        assert torch.equal(shifts.shift_left(None, x, bits), x << bits)
        assert torch.equal(shifts.shift_left(None, 3, amount), 3 << amount)


# torch.export takes no scripts.
CASES = [(n, e) for n in ("Left", "Right", "InPlace", "Bits") for e in ("dynamo", "torchscript")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "exporter"), [*CASES, ("Scripted", "torchscript")])
def test_a_file_shifts_by_any_amount(write_module, export, tmp_path, name, exporter):
    path = write_module(NETS)
    export(f"{path}:{name}", ["x:int32[N]", "k:int32[N]=-5:70"], "N=2:3:40", exporter=exporter)
    x = np.resize(np.array([-(2**31), 2**31 - 1, 12345, -1, 0, 5, 7], np.int32), len(AMOUNTS))
    feed = {"x": x, "k": np.array(AMOUNTS, np.int32)}
    values = ort.InferenceSession(str(tmp_path / "out" / "model.onnx")).run(None, feed)
    module = load_module(ModuleSource(f"{path}:{name}", base=path.parent))
    for value, expected in zip(values, module(*map(torch.from_numpy, feed.values())), strict=True):
        np.testing.assert_array_equal(value, expected.numpy())


def test_a_quotient_rounded_down_has_the_sign_of_a_zero():
    # Not asked of a file: ONNX Runtime's Where gives 0 for -0.0.
    x = torch.tensor([-0.0, 0.0, 0.5, -0.5, 7.0, -7.0, torch.inf, 1e30])
    for divisor in (2.0, -2.0, 1e-3):
        quotient, expected = division.floor_divide(None, x, divisor), x // divisor
        assert torch.equal(quotient.nan_to_num(3.0), expected.nan_to_num(3.0))
        assert torch.equal(torch.signbit(quotient)[:4], torch.signbit(expected)[:4])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize("name", FLOATS)
def test_a_zero_keeps_its_sign(write_module, export, tmp_path, name, exporter):
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n        return {FLOATS[name]}\n")
    export(f"{path}:Net", ["x:float32[N]=0:8"], "N=2:3:9", exporter=exporter)
    x = np.array([-0.0, 0.0, 0.5, 3.5, 7.0, -np.inf, np.inf], np.float32)
    (value,) = ort.InferenceSession(str(tmp_path / "out" / "model.onnx")).run(None, {"x": x})
    expected = load_module(ModuleSource(f"{path}:Net", base=path.parent))(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(value, expected, rtol=2e-7)
    np.testing.assert_array_equal(np.signbit(value)[:5], np.signbit(expected)[:5])
