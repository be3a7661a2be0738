"""Running sums in FP32 that are rounded once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.symbolic.arithmetic.running_sums import cumsum
from trtconv.export.symbolic.indexing.in_place import written

ROWS = {
    "alike": torch.full((2, 500), 1234.567),
    "long": torch.full((1, 24000), 0.0514375),
    "random": torch.randn(3, 5000, generator=torch.Generator().manual_seed(1)) * 500,
    "cancelling": torch.tensor([[1e8, 1, 1, 1, -1e8]]),
    "overflowing in between": torch.tensor([[2e38, 2e38, -2e38, 1.0]]),
    "tiny": torch.randn(2, 300, generator=torch.Generator().manual_seed(2)) * 1e-30,
    "zeros": torch.zeros(2, 7),
}


@pytest.mark.parametrize("rows", ROWS)
def test_sums_are_those_of_torch_to_the_last_place(rows: str) -> None:
    x = ROWS[rows]
    expected, actual = x.cumsum(1), cumsum(torch.cumsum, x, 1)
    assert torch.equal(expected.isinf(), actual.isinf())
    finite = expected.isfinite()
    # Of a sum that is smaller than the elements, of the last place of these.
    sizes = torch.maximum(expected.abs(), x.abs().amax()).clamp(max=3e38)
    places = torch.nextafter(sizes, torch.tensor(math.inf)) - sizes
    assert bool(((actual - expected).abs() <= places)[finite].all())


def test_a_plain_sum_is_further_off() -> None:
    x = ROWS["long"]
    plain = np.cumsum(x.numpy(), 1, dtype=np.float32)
    exact = x.double().cumsum(1).numpy()
    assert np.abs(plain - exact).max() > 100 * np.abs(cumsum(torch.cumsum, x, 1).numpy() - exact).max()


def test_infinities_and_nan_stay_where_they_are() -> None:
    x = torch.tensor([[1.0, math.inf, 2.0, -math.inf, 3.0], [1.0, math.nan, 2.0, 3, 4], [1.0, 2.0, -math.inf, 3, 4]])
    torch.testing.assert_close(cumsum(torch.cumsum, x, 1), x.cumsum(1), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_fp32(dtype: torch.dtype) -> None:
    x = torch.full((2, 3000), 10.0, dtype=dtype)
    assert torch.equal(cumsum(torch.cumsum, x, -1), x.cumsum(-1))


def test_in_place() -> None:
    x = ROWS["random"].clone()
    y = x.t()
    result = written("cumsum", cumsum)(torch.Tensor.cumsum_, y, 0)
    assert result is y
    torch.testing.assert_close(x, ROWS["random"].cumsum(1), rtol=2e-7, atol=2e-4)


SOURCE = """
class Net(nn.Module):
    def forward(self, x):
        return x.cumsum(1), x.transpose(0, 1).cumsum_(0)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_in_a_file(write_module, export, exporter: str) -> None:
    path = write_module(SOURCE)
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=4:40:500", exporter=exporter)
    x = np.full((2, 500), 1234.567, np.float32)
    expected = torch.from_numpy(x).cumsum(1).numpy()
    first, second = OnnxRuntimeRunner(result.model)({"x": x}).values()
    np.testing.assert_allclose(first, expected, rtol=1.2e-7)
    np.testing.assert_allclose(second, expected.T, rtol=1.2e-7)


@pytest.mark.slow
def test_a_phase_is_unwrapped_from_one_step_on(write_module, export, tmp_path):
    body = (
        "        d = torch.diff(x, dim=1)\n"
        "        d = (d + torch.pi) % (2 * torch.pi) - torch.pi\n"
        "        return torch.cat([x[:, :1], x[:, :1] + d.cumsum(1)], 1)\n"
    )
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n{body}")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:4 T=1:5:9")
    run = OnnxRuntimeRunner(tmp_path / "out" / "model.onnx")
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    for steps in (1, 2, 7):
        x = torch.randn(2, steps) * 3
        np.testing.assert_allclose(run({"x": x.numpy()})["output"], module(x).numpy(), atol=3e-6)
