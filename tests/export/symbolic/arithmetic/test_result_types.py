"""`softmax`, `mean`, `sum` and their like with `dtype=` convert their input and compute in that type."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NET = """
class Net(nn.Module):
    def forward(self, x):
        {steps}
        return {outputs}
"""
SPACE = "N=1:2:3 T=1:9:24"
NARROW = [[2049.0, 2051, 2053, 0, 5, -3], [70000.0, -70000, 3, 0, 0, 1]]


def compare(write_module, export, load, outputs, x, steps="pass", tolerance=0.0):
    path = write_module(NET.format(steps=steps, outputs=outputs))
    result = export(f"{path}:Net", [f"x:{str(x.dtype).removeprefix('torch.')}[N,T]"], SPACE)
    expected = load(path).Net()(x)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    outputs = OnnxRuntimeRunner(result.model, rounded=True)({"x": x.numpy()}).values()
    for e, y in zip(expected, outputs, strict=True):
        assert e.numpy().dtype == y.dtype
        np.testing.assert_allclose(y.astype(np.float64), e.double().numpy(), rtol=tolerance, equal_nan=True)
    return onnx.load(result.model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "call",
    [
        "x.softmax(-1, dtype=torch.float16)", "F.softmax(x, 1, dtype=torch.float16)",
        "torch.softmax(x, 1, torch.float16)", "F.softmin(x, -1, dtype=torch.float16)",
        "x.sum(-1, dtype=torch.float16)", "x.mean(1, dtype=torch.float16)", "x.nansum(1, dtype=torch.float16)",
    ],
)  # fmt: skip
def test_what_is_narrower_is_rounded_before(write_module, export, load, call):
    compare(write_module, export, load, call, torch.tensor(NARROW), tolerance=1e-3)


def test_shares_of_halves_in_float32_are_no_halves(write_module, export, load):
    x = torch.tensor([[0.0, 20, 3, -7], [30, 0.5, -30, 2]]).half()
    outputs = (
        "F.softmax(x, 1, dtype=torch.float32).log(), F.log_softmax(x, -1, dtype=torch.float32), "
        "x.mean(1, dtype=torch.float32)"
    )
    compare(write_module, export, load, outputs, x, tolerance=3e-6)


def test_a_variance_in_double_keeps_its_digits(write_module, export, load):
    x = torch.from_numpy((np.random.default_rng(1).standard_normal((2, 24)) + 10000).astype(np.float32))
    steps = "m = x.mean(-1, dtype=torch.float64)"
    variance = "((x * x).mean(-1, dtype=torch.float64) - m * m).float()"
    compare(write_module, export, load, variance, x, steps, tolerance=1e-6)


def test_whole_numbers_are_added_up_in_the_type_that_is_asked_for(write_module, export, load):
    x = torch.tensor([[2**31 - 9, 3, 5], [-(2**31), 1, 7]], dtype=torch.int32)
    outputs = (
        "x.sum(1, dtype=torch.int32), x.sum(1), (x // 9).float().sum(1, dtype=torch.int64), "
        "(x // 7).mean(1, dtype=torch.float32)"
    )
    compare(write_module, export, load, outputs, x, tolerance=1e-6)


def test_a_type_that_the_input_has_adds_nothing(write_module, export, load):
    x = torch.randn(2, 5)
    outputs = "x.softmax(-1, dtype=torch.float32), x.mean(1, dtype=x.dtype), x.sum(1, dtype=torch.float32)"
    model = compare(write_module, export, load, outputs, x, tolerance=1e-6)
    assert not [n for n in model.graph.node if n.op_type == "Cast"]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("factory", ["Net", "make"], ids=["of ours", "of the user's"])
def test_in_a_script_with_a_loop_too(write_module, export, load, factory):
    path = write_module("""
class Net(nn.Module):
    def forward(self, x):
        out = []
        for t in range(x.shape[1]):
            h = x[:, t].half() * 16
            out.append(F.softmax(h, -1, dtype=torch.float32).log())
        return torch.stack(out, 1)


def make():
    return torch.jit.script(Net())
""")
    result = export(f"{path}:{factory}", ["x:float32[N,T,4]"], SPACE)
    x = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(3)).clamp(-1, 1)
    y = OnnxRuntimeRunner(result.model, rounded=True)({"x": x.numpy()})["output"]
    np.testing.assert_allclose(y, load(path).Net()(x).numpy(), rtol=1e-5, atol=1e-5)
    assert np.isfinite(y).all()
