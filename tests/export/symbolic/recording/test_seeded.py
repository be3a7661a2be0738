"""Numbers that forward draws from a seed are constants of the file; others, which differ by call, are refused."""

from __future__ import annotations

import pytest
import torch

from trtconv.core.errors import TrtconvError
from trtconv.export.module.noise.twins import wide_floats

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.outliving = torch.Generator().manual_seed(3)

    def forward(self, x):
        {body}
"""
SEEDED = {
    "a generator": """
        g = torch.Generator().manual_seed(3)
        random = torch.empty(4, 2).uniform_(-1, 1, generator=g)
        order = torch.randperm(4, generator=g)
        return x @ random, x[:, order] * torch.randint(0, 3, (4,), generator=g), x + torch.randn(4, generator=g)""",
    "torch's own generator": """
        torch.manual_seed(1)
        return x @ torch.randn(4, 8) + torch.empty(8).normal_()""",
}
REFUSED = {
    "a generator that outlives forward": (
        "return x + torch.randn(4, generator=self.outliving)",
        "a different 'output'",
    ),
    "a draw by the values": (
        "g = torch.Generator().manual_seed(3)\n        return torch.bernoulli(x.sigmoid(), generator=g)",
        "'bernoulli' draws from a generator, which a file cannot hold",
    ),
}


@pytest.mark.parametrize("body", SEEDED.values(), ids=list(SEEDED))
def test_what_is_drawn_from_a_seed_is_a_constant(body, write_module, export):
    result = export(f"{write_module(NET.format(body=body))}:Net", ["x:float32[N,4]"], "N=1:2:5")
    assert result.exporter == "dynamo"
    assert not [n for n in result.notes if "ill conditioned" in n]


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_no_file_can_draw_is_refused(body, message, write_module, export):
    with pytest.raises(TrtconvError) as caught:
        export(f"{write_module(NET.format(body=body))}:Net", ["x:float32[N,4]"], "N=1:2:5")
    assert message in caught.value.message
    assert caught.value.hint


def test_a_run_in_fp64_draws_the_numbers_of_one_in_fp32():
    def draw() -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(7)
        torch.manual_seed(7)
        uniform = torch.empty(5).uniform_(generator=generator)
        half = torch.rand(3, generator=generator, dtype=torch.float16)
        return [torch.randn(4), uniform, torch.randint(9, (6,), generator=generator), half, torch.randperm(5)]

    single = draw()
    with wide_floats():
        double = draw()
    assert [d.dtype for d in double] == [torch.float64, torch.float64, torch.int64, torch.float16, torch.int64]
    for one, other in zip(single, double, strict=True):
        assert torch.equal(one.to(other.dtype), other)


def test_what_is_computed_beside_a_draw_stays_in_fp64():
    layers = [torch.nn.GRU(3, 4), torch.nn.LSTM(3, 4, num_layers=2, dropout=0.1)]
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    with wide_floats(), torch.no_grad():
        for layer in layers:
            assert layer.double().eval()(x)[0].dtype == torch.float64
        attended = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    # In FP32 it would be off by 1e-7.
    expected = (x @ x.mT / 3**0.5).softmax(-1) @ x
    torch.testing.assert_close(attended, expected, rtol=1e-12, atol=1e-14)
