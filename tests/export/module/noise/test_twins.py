"""The FP64 twin of a module computes in FP64 throughout, also where the module itself names FP32."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise.rounding import measured_errors, rounding_errors

CASTS = {
    "float": lambda x: x.float() / 255,
    "to": lambda x: x.to(torch.float32) / 255,
    "to-by-keyword": lambda x: x.to(dtype=torch.float32) / 255,
    "division-of-integers": lambda x: x / 255,
    "mean": lambda x: x.mean(dtype=torch.float32) + x / 255,
}


def module_of(function):
    return type("Net", (nn.Module,), {"forward": lambda self, x: function(x)})()


@pytest.mark.parametrize("cast", CASTS)
def test_casts_of_bytes(cast):
    x = {"x": np.arange(200, dtype=np.uint8)}
    runner = ModuleRunner(module_of(CASTS[cast]))
    plain, exact = (next(iter(r(x).values())) for r in (runner, runner.exact()))
    assert (plain.dtype, exact.dtype) == (np.float32, np.float64)
    assert 0 < np.abs(plain - exact).max() < 1e-7 * np.abs(plain).max()
    assert torch.get_default_dtype() is torch.float32


def test_what_is_rounded_to_half_stays_rounded():
    x = {"x": np.linspace(-3, 3, 50, dtype=np.float32)}
    runner = ModuleRunner(module_of(lambda x: (x.half() + 2048).float() - 2048))
    plain, exact = (next(iter(r(x).values())) for r in (runner, runner.exact()))
    np.testing.assert_array_equal(plain, exact)


def test_a_counted_run_leaves_conditions_of_torch_as_they_were():
    """What torch compiles for torch.cond under a mode is not used at the next size."""
    runner = ModuleRunner(module_of(lambda x: torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))))
    ones = {n: {"x": np.ones((n, 4), np.float32)} for n in (3, 1)}
    assert next(iter(runner.counted(ones[3])[0].values())).shape == (3, 4)
    np.testing.assert_array_equal(next(iter(runner(ones[1]).values())), 2 * ones[1]["x"])


def written_cast(x):
    w = x.clone()
    f = w.to(dtype=torch.float32)
    f[f < -2] += 100.0
    return w - f + 1000


def written_source(x):
    w = x.clone()
    f = w.float().view(-1)
    w.mul_(2)
    return f.sum() + w.sum()


def written_copy(x):
    w = x.float() / 2
    w += 1
    return w.float() * x


@pytest.mark.parametrize("write", [written_cast, written_source])
def test_a_cast_that_is_none_in_float32_is_not_written_in_the_twin(write):
    """The twin has a copy there, and would differ from the module by what is written."""
    x = {"x": np.linspace(-3, 3, 60, dtype=np.float32).reshape(3, 20)}
    runner = ModuleRunner(module_of(write))
    exact = runner.exact()
    assert rounding_errors(exact, x, runner(x)) == {}
    errors = measured_errors(runner, exact, x, runner(x))
    assert all(e.max() < 1e-3 for e in errors.values())


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_outputs_without_a_number_are_measured_without_a_run(rows):
    """All differences to NaN and to infinities are none: what a run gives, and no run."""
    x = {"x": np.full((rows, 3), np.nan, np.float32)}
    runner = ModuleRunner(module_of(lambda x: (x * 2, torch.full_like(x, torch.inf))))
    outputs, exact = runner(x), runner.exact()

    def never(inputs):
        raise AssertionError

    expected, actual = rounding_errors(exact, x, outputs), measured_errors(runner, never, x, outputs)
    assert all(np.array_equal(actual[n], e) and actual[n].dtype == e.dtype for n, e in expected.items())
    assert actual.keys() == expected.keys() == outputs.keys()


def test_one_number_or_an_index_among_outputs_is_measured():
    x = {"x": np.full((2, 3), np.nan, np.float32)}
    for also in (lambda x: torch.ones(2), lambda x: x.argmax(1)):
        runner = ModuleRunner(module_of(lambda x, also=also: (x * 2, also(x))))
        runs = []
        exact = runner.exact()
        measured_errors(runner, lambda inputs, exact=exact, runs=runs: runs.append(1) or exact(inputs), x, runner(x))
        assert runs


def test_what_is_new_after_a_cast_may_be_written():
    x = {"x": np.linspace(-3, 3, 60, dtype=np.float32).reshape(3, 20)}
    runner = ModuleRunner(module_of(written_copy))
    assert rounding_errors(runner.exact(), x, runner(x))


def test_limits_of_the_type_are_those_of_float32_in_the_twin():
    def limited(x):
        limits = torch.finfo(x.dtype)
        return x / limits.eps * 1e-7, torch.full_like(x, limits.min)

    runner = ModuleRunner(module_of(limited))
    feed = {"x": np.full((2, 3), 1.5, np.float32)}
    own, exact = runner(feed), runner.exact()(feed)
    for name, values in own.items():
        np.testing.assert_allclose(exact[name], values, rtol=1e-6)
    assert torch.finfo(torch.float64).eps < 1e-15


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("sizes", [(75, 297), (2, 83), (2, 61)])
def test_a_nearest_resize_picks_the_same_elements_in_the_twin(mode, sizes):
    length, out = sizes
    resize = nn.functional.interpolate
    runner = ModuleRunner(
        module_of(lambda x: (resize(x, size=out, mode=mode), resize(x[:, :, None], (2, out), mode=mode)))
    )
    feed = {"x": np.arange(2 * length, dtype=np.float32).reshape(2, 1, length)}
    own, exact = runner(feed), runner.exact()(feed)
    for name, values in own.items():
        np.testing.assert_array_equal(exact[name], values)
