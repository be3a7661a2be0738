"""A fast part of the zoo as ordinary tests: one case or two of each group, export only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.zoo.registry import all_cases
from tests.zoo.run_case import Outcome, run_case
from tests.zoo.run_zoo import compare

FAST = (
    "norms/l2norm_1e-10", "norms/instance_norm_running", "pooling/avg_whole_height", "pooling/avg_half_both",
    "pooling/adaptive_avg_2x3", "pooling/adaptive_max_2", "resize/int_of_1.5", "resize/nearest_fixed_size",
    "skips/unet_stride", "skips/output_size", "grids/stn", "indexing/cummax", "attention/window_attention",
    "shapes/min_with_constant", "shapes/dynamic_conv", "shapes/branch_on_two_sizes", "control/branch_on_batch_one",
    "recurrent/crnn",
)  # fmt: skip
FASTEST = ("norms/l2norm_1e-10", "resize/int_of_1.5", "skips/unet_stride", "control/branch_on_batch_one")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [n if n in FASTEST else pytest.param(n, marks=pytest.mark.slow) for n in FAST])
def test_equal_at_sizes_that_export_did_not_see(name):
    outcome = run_case(name, ("export",))
    assert outcome.status == "through", outcome.message


@pytest.mark.slow
def test_a_branch_on_two_sizes_is_an_if():
    assert run_case("shapes/branch_on_aspect", ("export",)).status == "through"


def test_what_one_graph_cannot_hold_is_refused_with_the_line():
    outcome = run_case("control/branch_on_value", ("export",))
    assert outcome.status == "refused"
    assert "tests/zoo/groups/models/control.py:" in outcome.message


def test_there_are_enough_cases_in_enough_groups():
    cases = all_cases()
    assert len(cases) >= 180
    assert len({n.split("/")[0] for n in cases}) >= 8


def test_a_case_that_gets_worse_is_reported():
    before = {"stages": ["export"], "cases": [{"case": "a", "status": "through"}, {"case": "b", "status": "refused"}]}
    assert compare([Outcome("a", "through"), Outcome("b", "through"), Outcome("c", "refused")], before) == []
    assert len(compare([Outcome("a", "refused"), Outcome("b", "wrong")], before)) == 2


def test_the_committed_table_is_of_these_cases():
    table = json.loads((Path(__file__).parent / "results.json").read_text())
    assert {c["case"] for c in table["cases"]} == set(all_cases())
