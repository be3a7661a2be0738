"""Two engines measured in turn: a slowdown is seen through the noise between processes, and no noise is one."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

from tests.check.models import small_net, write_engine, write_pair
from tests.check.reporters.cases import GOOD
from trtconv.check.gate.in_turn import InTurn, PairedLatency, alternating, compare_in_turn, smallest_visible
from trtconv.check.gate.judge import Gate, apply_gate
from trtconv.check.gate.measured import measurement
from trtconv.check.gate.one_process import answer_question, process_medians
from trtconv.check.gate.rank_test import most_pairs_below, p_value_of_larger
from trtconv.core.artifacts import read_json
from trtconv.core.errors import InvalidRequestError, MissingDependencyError
from trtconv.core.model.file import save_model
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest

MODES = (1.0, 1.0, 1.06)
"""Where memory was laid out luckily and where not: what a process draws and keeps."""


class Machine:
    """Medians of processes in milliseconds: a base for each file, a mode for each process, a drift over time."""

    def __init__(self, seed, drift=0.0, modes=MODES, **bases):
        self.random, self.drift, self.modes, self.bases = np.random.default_rng(seed), drift, modes, bases
        self.asked = []

    def __call__(self, request, points):
        name = request.subject.stem
        factor = self.random.choice(self.modes) * (1.0 + self.drift * len(self.asked)) * self.random.normal(1.0, 0.003)
        self.asked.append((name, request.reference))
        return {point: self.bases[name] * factor * (1 + index) for index, point in enumerate(points)}


@pytest.fixture
def request_of_a_pair(tmp_path):
    path = write_pair(tmp_path)
    save_model(small_net(), tmp_path / "old.onnx")
    return CheckRequest(path.rename(tmp_path / "new.onnx"), reference=tmp_path / "model.reference.safetensors")


def compared(request, machine, points=("opt",), processes=7, limit=1.1):
    order = InTurn(request.subject.with_name("old.onnx"), processes)
    return compare_in_turn(GOOD, request, order, points, limit, SilentProgress(), machine)


def test_processes_alternate_and_each_is_first_as_often():
    assert "".join(which[0] for which in alternating(4)) == "onnoonno"


@pytest.mark.parametrize("seed", range(8))
def test_a_slowdown_is_red_and_modes_of_processes_are_not(request_of_a_pair, seed):
    slow = compared(request_of_a_pair, Machine(seed, new=1.25, old=1.0))
    assert [f.kind for f in slow.errors] == ["budget"]
    assert slow.exit_code == 6
    assert "times that of 'old.onnx' (medians of 7 processes each, in turn); allowed is 1.1" in slow.errors[0].message
    same = compared(request_of_a_pair, Machine(seed, new=1.0, old=1.0))
    assert same.passed
    (note,) = same.findings
    assert "the smallest slowdown that would have been seen is" in note.message


def test_a_drift_of_the_machine_meets_both_alike(request_of_a_pair):
    report = compared(request_of_a_pair, Machine(0, drift=0.02, modes=(1.0,), new=1.0, old=1.0))
    assert report.passed, "the last process is 1.26 times as slow as the first"


def test_rows_and_medians_of_every_point_are_in_the_report(request_of_a_pair):
    report = compared(request_of_a_pair, Machine(1, new=1.3, old=1.0), ("opt", "max"), processes=5)
    rows = report.extras["budgets"]
    assert [r["name"] for r in rows] == [f"latency_ms at {p} against 'old.onnx', in turn" for p in ("opt", "max")]
    assert not any(r["passed"] for r in rows)
    facts = report.extras["in_turn"]
    assert (facts["processes"], [p["point"] for p in facts["points"]]) == (5, ["opt", "max"])
    assert all(len(p["new"]) == len(p["old"]) == 5 and p["p_value"] < 0.01 for p in facts["points"])
    json.dumps(facts, allow_nan=False)


def test_both_are_measured_at_the_inputs_of_the_new_one(request_of_a_pair):
    machine = Machine(0, new=1.0, old=1.0)
    compared(request_of_a_pair, machine, processes=4)
    assert len(machine.asked) == 8
    assert {reference for _, reference in machine.asked} == {request_of_a_pair.reference}


def test_a_machine_that_sees_nothing_is_a_warning(request_of_a_pair):
    report = compared(request_of_a_pair, Machine(3, modes=(1.0, 2.5), new=1.0, old=1.0))
    (finding,) = report.findings
    assert (finding.level, report.passed) == ("warning", True)
    assert "--processes" in finding.hint


@pytest.mark.parametrize("allow", [False, True])
def test_what_cannot_be_measured_is_told(request_of_a_pair, allow):
    def refuse(request, points):
        raise MissingDependencyError("no GPU", hint="get one")

    report = compared(dataclasses.replace(request_of_a_pair, allow_unrunnable=allow), refuse)
    (finding,) = report.findings
    assert (finding.level, finding.kind, finding.hint) == ("note" if allow else "error", "environment", "get one")
    missing = compare_in_turn(
        GOOD,
        request_of_a_pair,
        InTurn(request_of_a_pair.subject.with_name("no.engine"), 4),
        ("opt",),
        1.1,
        SilentProgress(),
        refuse,
    )
    assert missing.errors[0].kind == "usage"


@pytest.mark.parametrize("noise", [0.002, 0.02])
@pytest.mark.parametrize("processes", [5, 7, 12])
def test_the_smallest_visible_slowdown_is_seen_four_times_of_five(noise, processes):
    """Its own prediction, against new draws from the distribution that it never saw."""
    draw = np.random.default_rng(processes)
    shares, predictions = [], []
    for _ in range(30):
        new, old = draw.normal(1.0, noise, (2, processes))
        visible = smallest_visible(new.tolist(), old.tolist(), 1.1)
        predictions.append(visible)
        for _ in range(10):
            again = [measurement(list(runs)) for runs in draw.normal(1.0, noise, (2, processes))]
            slower = dataclasses.replace(
                again[0], value=again[0].value * visible, runs=tuple(r * visible for r in again[0].runs)
            )
            shares.append(PairedLatency("opt", slower, again[1], 1.1).is_slower)
    assert 0.65 < np.mean(shares) < 0.95
    assert 1.1 <= np.mean(predictions) < 1.1 + 6 * noise


def test_more_processes_see_more():
    noise = np.random.default_rng(5).normal(1.0, 0.05, (2, 24)).tolist()
    seen_by = [smallest_visible(noise[0][:n], noise[1][:n], 1.1) for n in (4, 24)]
    assert seen_by[1] < seen_by[0]


@pytest.mark.parametrize(("high", "low"), [(4, 4), (5, 7), (7, 7), (9, 9)])
def test_the_most_pairs_below_are_those_of_the_test(high, low):
    pairs = most_pairs_below(high, low, 1e-3)
    values = {p: p_value_of_larger(*runs) for p, runs in with_pairs_below(high, low)}
    assert pairs == max([p for p, value in values.items() if value <= 1e-3], default=0)


def with_pairs_below(high, low):
    """Runs without ties by the number of their pairs in which the run of `high` is the smaller one."""
    for pairs in range(min(high * low, 25)):
        full, rest = divmod(pairs, low)
        places = [-1.0] * full + [low - rest - 0.5] * (rest > 0) + [low + 1.0] * (high - full - (rest > 0))
        yield pairs, ([p + i * 1e-6 for i, p in enumerate(places)], [float(i) for i in range(low)])


def test_the_gate_measures_at_the_points_of_its_budgets(request_of_a_pair, monkeypatch):
    asked = []

    def measure_in_turn(request, order, points, limit, progress, measure):
        asked.append((points, limit))
        return ()

    monkeypatch.setattr("trtconv.check.gate.in_turn.measure_in_turn", measure_in_turn)
    order = InTurn(request_of_a_pair.subject, 4)
    apply_gate(GOOD, request_of_a_pair, Gate(in_turn=order, ratios={"latency_ms": 1.2}), SilentProgress())
    assert asked == [(("opt",), 1.2)]


def test_a_real_process_measures_and_its_errors_come_through(request_of_a_pair):
    medians = process_medians(request_of_a_pair, ("min", "opt"))
    assert set(medians) == {"min", "opt"}
    assert all(value > 0 for value in medians.values())
    question = {"subject": str(request_of_a_pair.subject), "plugins": [], "foreign": False, "code": ["host"],
                "reference": str(request_of_a_pair.reference), "points": ["optt"]}  # fmt: skip
    answer = answer_question(question)
    assert (answer["error"], "Did you mean 'opt'" in answer["message"]) == (InvalidRequestError.__name__, True)


def test_kept_baselines_are_a_history(tmp_path):
    request, path = CheckRequest(write_pair(tmp_path)), tmp_path / "baseline.json"
    for _ in range(3):
        apply_gate(GOOD, request, Gate(baseline=path, update=True), SilentProgress())
    history = read_json(path)["extras"]["history"]
    assert len(history) == 3
    assert all(set(entry) == {"when", "environment", "measured"} for entry in history)
    report = apply_gate(GOOD, request, Gate(baseline=path), SilentProgress())
    assert [e["measured"]["plugin_nodes"] for e in report.extras["history"]] == [0.0] * 3
    path.write_text("{}")
    apply_gate(GOOD, request, Gate(baseline=path, update=True), SilentProgress())
    assert len(read_json(path)["extras"]["history"]) == 1, "a damaged one is replaced"


def test_an_engine_that_does_not_run_here_is_told(tmp_path):
    write_pair(tmp_path)
    engine = write_engine(tmp_path)
    order = InTurn(engine, 4)
    report = compare_in_turn(GOOD, CheckRequest(engine), order, ("opt",), 1.1, SilentProgress())
    assert [f.kind for f in report.errors] == ["environment"]
    assert next(itertools.chain(report.errors)).message.startswith("the latency was not compared")
