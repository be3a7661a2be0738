"""What a module gives when denormals count as zero is allowed for at denormal inputs, and only there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from trtconv.export.module.runner import ModuleRunner  # noqa: E402
from trtconv.proof.allowance import allow  # noqa: E402
from trtconv.proof.comparison import compare_output  # noqa: E402
from trtconv.proof.noise.noise_floor import profile  # noqa: E402
from trtconv.proof.noise.rounding import flush_errors  # noqa: E402


class Decisions(torch.nn.Module):
    def forward(self, x):
        return x.argmax(dim=1), torch.floor(x), x * 3.0


def inputs(scale):
    x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32) * np.float32(scale)
    return {"x": x}


def flushed(scale):
    runner = ModuleRunner(Decisions())
    feed = inputs(scale)
    return runner(feed), flush_errors(runner, feed, runner(feed))


def test_decisions_between_denormals_are_allowed_to_fall_to_the_other_side():
    outputs, errors = flushed(1e-39)
    picked, floored, tripled = (float(e.max()) for e in errors.values())
    assert (picked, floored) == (2.0, 1.0)
    assert tripled < 1e-37
    zeros = {n: np.zeros_like(a) for n, a in outputs.items()}
    for name, want in outputs.items():
        floor = profile([want], [errors[name]]).floor(want, errors[name], random=False)
        assert compare_output(name, "denormal", want, zeros[name], allow(want, floor)).passed, name


def test_normal_numbers_are_not_loosened():
    _, errors = flushed(1.0)
    assert [float(e.max()) for e in errors.values()] == [0.0, 0.0, 0.0]


def test_the_machine_takes_denormals_as_before_afterwards():
    flushed(1e-39)
    assert float(torch.tensor(1e-39) * 1.0) != 0.0
