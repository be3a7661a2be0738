"""The campaign: every attack ends as it is written down, and none in a file that is silently wrong.

A share of them runs in `make test`; `make adversary` and the slow tests run all.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from zlib import crc32

import numpy as np
import onnx
import pytest

pytest.importorskip("torch")

from tests.adversary.attack import NOTED
from tests.adversary.catalogue import load_graphs, load_modules
from tests.adversary.convert import WRONG, run
from tests.adversary.judge import difference
from tests.adversary.rewriting import judge_graph, open_graph, parse, run_graph

GRAPHS, MODULES = load_graphs(), load_modules()
# One of so many graphs, by name, so that new ones do not bring in others.
EVERY = 12
# What was once silently wrong, of each class the cheapest.
MENDED_GRAPHS = ("function_with_attribute", "overridable_condition")
MENDED_MODULES = ("format_decides", "CopyInIf", "FirstSizeWins", "module_on_the_stack")
QUICK_GRAPHS = [n for n in GRAPHS if crc32(n.encode()) % EVERY == 0 or n in MENDED_GRAPHS]


def judged(outcome, entry):
    assert outcome.result != WRONG, outcome.says
    assert outcome.result == entry.outcome, outcome.says
    assert entry.says in outcome.says


@pytest.mark.parametrize("name", QUICK_GRAPHS)
def test_graphs(name, tmp_path):
    judged(run_graph(GRAPHS[name], tmp_path), GRAPHS[name])


@pytest.mark.parametrize("name", MENDED_MODULES)
def test_modules(name, tmp_path):
    warnings.simplefilter("ignore")
    judged(run(MODULES[name], tmp_path), MODULES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in GRAPHS if n not in QUICK_GRAPHS])
def test_all_graphs(name, tmp_path):
    judged(run_graph(GRAPHS[name], tmp_path), GRAPHS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in MODULES if n not in MENDED_MODULES])
def test_all_modules(name, tmp_path):
    warnings.simplefilter("ignore")
    judged(run(MODULES[name], tmp_path), MODULES[name])


def test_the_judge_sees_what_is_wrong():
    attack = GRAPHS["clip_only_max"]
    model = parse(attack)
    before = open_graph(model)
    assert judge_graph(before, model, attack, ())[0] == "equal"
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    next(a for n in changed.graph.node for a in n.attribute if a.name == "value_float").f = 0.4999
    assert judge_graph(before, changed, attack, ())[0] == WRONG


def test_a_note_counts_where_it_speaks_of_it():
    attack = GRAPHS["where_with_inf"]
    model = parse(attack)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.node[-1].op_type = "Where"
    assert judge_graph(open_graph(model), changed, attack, ("with an infinity it differs",))[0] != NOTED


@pytest.mark.parametrize(
    ("expected", "actual", "wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, 2.001], True),
        ([np.nan, np.inf], [np.nan, np.inf], False),
        ([np.nan, np.inf], [np.nan, 3.4e38], True),
        ([1e-6, 1e-6], [1.01e-6, 1e-6], True),
    ],
)
def test_what_counts_as_equal(expected, actual, wrong):
    a, b = np.array(expected, np.float32), np.array(actual, np.float32)
    assert bool(difference(a, a, b)) is wrong


def test_there_are_attacks_enough():
    assert len(GRAPHS) + len(MODULES) >= 300
    assert Path(__file__).with_name("graphs").is_dir()
