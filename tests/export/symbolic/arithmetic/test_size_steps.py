"""Logarithms, bit lengths and common divisors of sizes, and steps in decimals, are Python's at every size."""

from __future__ import annotations

import math

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.symbolic.arithmetic.size_steps import gcd, steps_of

HEAD = "import math\nimport numpy as np\nclass Net(nn.Module):\n    def forward(self, x):\n        t = x.shape[-1]\n"
NUMBERS = {
    "the next power of two": "2 ** math.ceil(math.log2(t))",
    "by numpy": "int(2 ** np.ceil(np.log2(t + 4)))",
    "rounded each way": "math.floor(math.log2(t)) + 9 * int(math.log10(t)) + 99 * round(math.log(t))",
    "a logarithm by a quotient": "math.ceil(math.log(t, 3))",
    "bits": "1 << (t - 1).bit_length()",
    "a common divisor": "math.gcd(t, 12) + 100 * math.gcd(30, t + 2)",
}
TENSORS = {
    "steps of a tenth": "torch.arange(0, 0.1 * t, 0.1)",
    "down": "torch.arange(t / 10, 0, -0.1, device=x.device)",
    "a step that is a size": "torch.arange(0, 1, 1 / t)",
    "half steps": "torch.arange(0.5, t, 0.5)",
}


def _at_each_size(write_module, export, tmp_path, lines, exporter):
    path = write_module(HEAD + lines)
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:70", exporter=exporter)
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    for size in range(3, 71):
        x = torch.rand(1, size)
        yield size, module(x).numpy(), session.run(None, {"x": x.numpy()})[0]


BRANCHES = {
    "equal to a logarithm": "math.log10(t) == 1",
    "unequal, by numpy": "np.log2(t) != 5",
    "a power of two": "math.log2(t).is_integer()",
    "by the remainder": "math.log2(t) % 1 == 0",
    "decibels": "20 * math.log10(t) - 3 > 30",
    "between": "1 < math.log(t, 3) / 2 + 0.1 <= 1.75",
    "as a factor": "t * (math.log2(t) > 4) > 0",
    "falling": "int(10 - 2 * math.log2(t)) < 0",
}


def _require_equal_at_each_size(write_module, export, tmp_path, lines, exporter):
    for size, expected, values in _at_each_size(write_module, export, tmp_path, lines, exporter):
        np.testing.assert_array_equal(values, expected, err_msg=str(size))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_is_python_s(write_module, export, tmp_path, name):
    lines = f"        if {BRANCHES[name]}:\n            return x.sum(-1) * 0 + 1\n        return x.sum(-1) * 0 + 2\n"
    _require_equal_at_each_size(write_module, export, tmp_path, lines, "auto")


def test_a_logarithm_that_is_written_into_is_the_new_number(write_module, export, tmp_path):
    lines = "        k = math.log2(t)\n        k += 1\n        return x.sum(-1) * 0 + int(k) + 10 * int(-k + 9)\n"
    _require_equal_at_each_size(write_module, export, tmp_path, lines, "dynamo")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_python_s(write_module, export, tmp_path, name):
    lines = f"        return x.sum(-1) * 0 + ({NUMBERS[name]})\n"
    _require_equal_at_each_size(write_module, export, tmp_path, lines, "dynamo")


@pytest.mark.slow
def test_a_recorded_size_is_padded_to_a_power_of_two(write_module, export, tmp_path):
    lines = "        return F.pad(x, (0, (1 << (t - 1).bit_length()) - t)).flip(-1)\n"
    _require_equal_at_each_size(write_module, export, tmp_path, lines, "torchscript")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TENSORS)
def test_as_many_steps_as_torch_takes(write_module, export, tmp_path, name):
    lines = f"        return x[:, :1] + {TENSORS[name]}\n"
    for size, expected, values in _at_each_size(write_module, export, tmp_path, lines, "dynamo"):
        assert values.shape == expected.shape, size
        np.testing.assert_allclose(values, expected, atol=3e-7 * expected.max())


@pytest.mark.slow
def test_a_convolution_by_fourier_transforms(write_module, export, tmp_path):
    lines = (
        "        n = 2 ** math.ceil(math.log2(t + 4))\n"
        "        k = torch.tensor([0.5, -1.0, 2.0, 0.25, 1.5])\n"
        "        return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(k, n), n)[..., : t + 4]\n"
    )
    for _, expected, values in _at_each_size(write_module, export, tmp_path, lines, "dynamo"):
        np.testing.assert_allclose(values, expected, atol=2e-5)


@pytest.mark.parametrize("divisor", [1, 7, 12, 360])
def test_common_divisors_of_recorded_sizes(divisor):
    for size in range(1, 400):
        assert int(gcd(torch.tensor(size), divisor)) == math.gcd(size, divisor)


def test_a_function_with_too_many_steps_is_none():
    assert steps_of(torch.tensor(5), lambda n: n // 7) is None
    assert int(steps_of(torch.tensor(1023), lambda n: math.isqrt(n) // 1000)) == 0


@pytest.mark.parametrize("line", ["i << (i.abs() % 5).long()", "i >> (i.abs() % 7).long()", "i.long() >> i.abs() % 7"])
def test_a_shift_has_the_type_of_both(write_module, export, tmp_path, line):
    path = write_module(f"class Net(nn.Module):\n    def forward(self, i):\n        return {line}\n")
    export(f"{path}:Net", ["i:int32[N,8]"], "N=1:2:4")
    i = np.random.default_rng(0).integers(-(2**20), 2**20, (3, 8)).astype(np.int32)
    (values,) = ort.InferenceSession(str(tmp_path / "out" / "model.onnx")).run(None, {"i": i})
    expected = load_module(ModuleSource(f"{path}:Net", base=path.parent))(torch.from_numpy(i)).numpy()
    assert values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)


def test_a_quotient_of_sizes_that_is_rounded_to_a_decimal(write_module, export, tmp_path):
    lines = "        return x * round(t / 7, 1) + round(t / 3, 2)\n"
    for size, expected, values in _at_each_size(write_module, export, tmp_path, lines, "dynamo"):
        np.testing.assert_allclose(values, expected, rtol=2e-7, err_msg=str(size))
