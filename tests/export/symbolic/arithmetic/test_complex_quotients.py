"""Quotients and lengths of complex numbers whose squares are no numbers of FP32."""

import pytest
import torch

from trtconv.export.symbolic.mode import symbolic_functions


def complex_tensor(scale: float, other: float) -> torch.Tensor:
    chance = torch.Generator().manual_seed(0)
    real, imaginary = torch.randn(2, 200, generator=chance).unbind(0)
    return torch.complex(real * scale, imaginary * other)


LARGE, SMALL, REAL = complex_tensor(1e20, 1e12), complex_tensor(1e-24, 1e-22), torch.linspace(-3, 3, 200)
CALLS = {
    "complex by complex": lambda: LARGE / complex_tensor(1e22, 1e19),
    "small by large": lambda: SMALL / LARGE,
    "complex by real": lambda: LARGE / REAL,
    "real by complex": lambda: REAL / LARGE,
    "number by complex": lambda: 2.5 / SMALL,
    "complex number by complex": lambda: (1 + 2j) / LARGE,
    "by a complex number": lambda: LARGE / (3 - 4j),
    "by a number": lambda: LARGE / 7,
    "reciprocal": lambda: SMALL.reciprocal(),
    "by zero": lambda: LARGE / torch.zeros(200, dtype=torch.complex64),
    "length": lambda: LARGE.abs(),
    "small length": lambda: torch.abs(SMALL),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_trace_gives_what_torch_gives(name: str) -> None:
    expected = CALLS[name]()
    with symbolic_functions():
        actual = CALLS[name]()
    torch.testing.assert_close(actual, expected, rtol=2e-6, atol=0, equal_nan=True)


def test_real_tensors_are_left_to_torch() -> None:
    with symbolic_functions():
        assert torch.equal(REAL / 7, REAL.div(7))
        assert torch.equal(abs(REAL), REAL.abs())
