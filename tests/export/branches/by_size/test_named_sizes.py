"""Sizes of sizes under names: guards stay short, and say of every joint size what the module would."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.effort import Effort
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.by_size.named_sizes import MOST_TERMS, NamedSizes, _terms
from trtconv.export.branches.by_size.size_guards import guard_of
from trtconv.export.branches.by_size.size_masks import SizeMask, joined, listed
from trtconv.export.branches.by_size.size_paths import explore_sizes
from trtconv.export.branches.by_size.size_run import run_symbolic
from trtconv.export.module.runner import ModuleRunner

SPECS = (parse_tensor("x:float32[N,1,H,W]"),)
SPACE = parse_space(["N=1:1:3", "H=65:80:400", "W=64:96:320%32"])


class Pyramid(nn.Module):
    """Floors of floors of floors; the joint size of the last level decides."""

    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList(nn.Conv2d(1, 1, 3, stride=2, padding=1) for _ in range(5))

    def forward(self, x):
        y = x
        for level in self.levels:
            y = level(y)
            y = (y.flatten(2).transpose(1, 2) + 1).transpose(1, 2).reshape(y.shape)
        return y * 2 if y.shape[2] + 3 == y.shape[3] else y


@pytest.fixture(scope="module")
def runner():
    return ModuleRunner(Pyramid().eval(), SPECS)


def test_expressions_stay_short(runner):
    names = NamedSizes()
    run = run_symbolic(Pyramid, runner, SPECS, SPACE, {"N": 2, "H": 333, "W": 160}, names, Effort(60.0, 10_000))
    assert run.answers
    assert not run.obstacle
    assert max(_terms(meaning, 1000) for meaning in names.definitions.values()) <= 5 * MOST_TERMS


def test_each_guard_says_what_numbers_say(runner):
    names = NamedSizes()
    sizes = {"N": 2, "H": 333, "W": 160}
    run = run_symbolic(Pyramid, runner, SPECS, SPACE, sizes, names, Effort(60.0, 10_000))
    here = {name: np.asarray(size) for name, size in sizes.items()}
    for expression, value, _line in run.answers:
        guard = guard_of(expression, value, run.symbols, names.definitions)
        assert guard.is_of_dims
        assert guard.holds(here).all()
        mask = listed(guard, SPACE)
        assert mask is not None
        assert mask.holds(here).all()


def test_both_paths_over_all_joint_sizes(runner):
    paths = explore_sizes(runner, SPECS, SPACE, [SPACE.pick("opt")], Path.cwd(), seconds=60.0)
    assert (paths.followed, paths.total, paths.obstacle) == (3 * 336 * 9, 3 * 336 * 9, "")
    level = lambda size: -(-size // 32)  # noqa: E731
    turned = {level(p["H"]) + 3 == level(p["W"]) for p in paths.points}
    assert turned == {True, False}


def test_names_are_the_same_in_each_run(runner):
    names = NamedSizes()
    expressions = []
    for height in (333, 77):
        run = run_symbolic(Pyramid, runner, SPECS, SPACE, {"N": 1, "H": height, "W": 64}, names, Effort(60.0, 10_000))
        expressions.append({e for e, _, _ in run.answers})
    assert expressions[0] == expressions[1]


def test_masks_of_the_same_dims_are_joined():
    even, high = np.arange(8) % 2 == 0, np.arange(8) > 3
    (mask,) = joined([SizeMask(("H",), (range(8),), even), SizeMask(("H",), (range(8),), high)])
    assert mask.holds({"H": np.array([3, 4, 5, 6])}).tolist() == [False, True, False, True]


def test_a_size_of_values_is_told(tmp_path):
    class Chosen(nn.Module):
        def forward(self, x):
            rows = x.flatten()[x.flatten() > 0]
            return x * 2 if rows.shape[0] > 3 else torch.relu(x)

    runner = ModuleRunner(Chosen().eval(), SPECS)
    paths = explore_sizes(runner, SPECS, SPACE, [SPACE.pick("opt")], tmp_path)
    assert paths.obstacle
