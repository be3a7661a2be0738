"""Every zoo module runs in torch over its whole shape space and gives the same twice; else its case says nothing."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from tests.zoo.case import Case
from tests.zoo.registry import GROUPS, all_cases, cases_of
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor, require_ranges
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.points import SamplePoint, awkward_size, sample_inputs

# Noise differs from run to run; that export refuses it is what the case is for.
RANDOM = ("control/noise",)


@pytest.fixture(autouse=True)
def _one_thread():
    """Handing work this small to other threads costs more than the work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def points(case: Case) -> list[SamplePoint]:
    space = parse_space([case.space])
    odd: dict[str, int] = {}
    for name, r in space.dims:
        odd[name] = awkward_size(r, 0.4, odd.values())
    expected = [(w, space.pick(w)) for w in ("min", "opt", "max")] + [("odd", odd)]
    return [SamplePoint(label, tuple(sizes.items())) for label, sizes in expected]


def runner_of(case: Case) -> ModuleRunner:
    torch.manual_seed(0)
    return ModuleRunner(case.build(), [parse_tensor(t) for t in case.inputs])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("group", GROUPS)
def test_modules_run_and_are_deterministic(group):
    for case in cases_of(group):
        specs = [parse_tensor(t) for t in case.inputs]
        require_ranges(specs, parse_space([case.space]))
        first, second = runner_of(case), runner_of(case)
        for point in points(case):
            arrays = sample_inputs(specs, point)
            outputs = first(arrays)
            assert outputs, f"{group}/{case.name}"
            if point.label == "odd" and f"{group}/{case.name}" not in RANDOM:
                again = second(arrays)
                for name, value in outputs.items():
                    assert np.array_equal(value, again[name], equal_nan=value.dtype.kind == "f"), f"{group}/{case.name}"


def test_names_are_plain():
    """They become parts of file names and of fnmatch patterns."""
    for name in all_cases():
        assert name.replace("/", "").replace("_", "").replace(".", "").replace("-", "").isalnum(), name
        assert name == name.lower()
