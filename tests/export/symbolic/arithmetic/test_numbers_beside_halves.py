"""Numbers beside half-precision tensors are rounded where torch rounds them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NET = "class Net(nn.Module):\n    def forward(self, x):\n        y = x.clone()\n        return {outputs}\n"
SPACE = "N=1:2:3 T=2:9:24"
FED = [0.1, 0.3, 0.6, 0.7, 2048, 2049, 3, 30, 90, 300, 617, -870.5, -793, 380, 909.5, 1e-5, -0.01]


def compare(write_module, export, load, outputs, most=0):
    path = write_module(NET.format(outputs=outputs))
    result = export(f"{path}:Net", ["x:float16[N,T]"], SPACE)
    random = np.random.default_rng(0).standard_normal((2, 500)) * 300
    x = torch.from_numpy(np.concatenate([np.asarray([FED] * 2), random], 1)).half()
    expected = load(path).Net()(x)
    # ONNX Runtime takes casts to a half and back for nothing, unless it is told to round.
    outputs = OnnxRuntimeRunner(result.model, rounded=True)({"x": x.numpy()}).values()
    for index, (a, b) in enumerate(zip(expected, outputs, strict=True)):
        assert int((a.numpy() != b).sum()) <= most, index


@pytest.mark.slow
def test_comparisons_are_with_the_rounded_number(write_module, export, load):
    compare(
        write_module, export, load,
        "x > 0.3, x == 0.1, x <= 0.7, x == 2049, (x == 0.1).sum(1), x.masked_fill(x != 0.6, 0.0), "
        "torch.tensor(0.3) < x, x.gt(torch.tensor(0.1)), torch.ne(x, 0.7), 0.3 >= x",
    )  # fmt: skip


@pytest.mark.slow
def test_products_and_quotients_are_with_the_number_itself(write_module, export, load):
    compare(
        write_module, export, load,
        "x * 0.7, x * 0.01 > 0.3, (x * 0.4).floor(), x / 0.1, x - 0.3 * x, x * torch.tensor(0.7), x // 0.1, 1.1 / x, "
        "torch.mul(x, 1e-6), x * 2049, x.div(torch.tensor(0.3)), y.mul_(0.7), y.div_(0.1), x * x.shape[1]",
    )  # fmt: skip


@pytest.mark.slow
def test_functions_with_a_number(write_module, export, load):
    compare(
        write_module, export, load,
        "torch.lerp(x, -x, 0.3), F.leaky_relu(x, 0.1), F.softshrink(x, 0.3), F.hardshrink(x, 0.3), "
        "torch.addcmul(x, x / 300, x / 300, value=0.3), x.clamp(-0.3, 0.7)",
    )  # fmt: skip


def test_sums_are_with_the_rounded_number(write_module, export, load):
    sums = "x + 0.1, x - 0.7, 0.3 - x, torch.tensor(0.1) + x, x.sub(x / 3, alpha=0.3)"
    compare(write_module, export, load, sums, most=2)


def test_numbers_that_a_half_holds_add_nothing(write_module, export):
    import onnx

    path = write_module(NET.format(outputs="x * 0.125, x > 0.5, x / 2, x + x"))
    result = export(f"{path}:Net", ["x:float16[N,T]"], SPACE)
    assert sum(n.op_type == "Cast" for n in onnx.load(result.model).graph.node) <= 1


@pytest.mark.parametrize("formula", ["x * 0.7", "x > 0.3", "1.1 / x", "x == 0.1"])
def test_bfloat16(formula):
    from trtconv.export.symbolic.mode import symbolic_functions

    x = torch.cat([torch.tensor([0.1, 0.3, 30.0, 617.0]), torch.randn(300) * 300]).bfloat16()
    expected = eval(formula, {"x": x})
    with symbolic_functions():
        assert torch.equal(eval(formula, {"x": x}), expected)


@pytest.mark.slow
def test_whole_numbers_are_rounded_to_halves_first(write_module, export, load):
    """2049 is 2048 in half precision: torch promotes both, its definitions of the operators take both to FP32."""
    net = (
        "class Net(nn.Module):\n    def forward(self, x, n):\n        k = n[:, None]\n"
        "        return (x >= k, k == x, x.lt(n.max()), torch.where(x != k.int(), x, -x),"
        " x >= x.shape[1], x > x.shape[1] * 0.3, torch.maximum(x, k), torch.fmod(k, x.abs() + 1), torch.atan2(x, k),"
        " x * k, k - x, x / (k + 1))\n"
    )
    path = write_module(net)
    result = export(f"{path}:Net", ["x:float16[N,T]", "n:int64[N]=0:4000"], "N=1:2:3 T=2:9:2100")
    x = np.tile(np.asarray([2048, 2050, 2052, 3.3, 614.7, 7], np.float16), 350)[:2049]
    x, n = np.stack([x, x[::-1]]), np.asarray([2049, 2051])
    expected = load(path).Net()(torch.from_numpy(x.copy()), torch.from_numpy(n))
    outputs = OnnxRuntimeRunner(result.model, rounded=True)({"x": x, "n": n}).values()
    for index, (a, b) in enumerate(zip(expected, outputs, strict=True)):
        assert int((a.numpy() != b).sum()) == 0, index
