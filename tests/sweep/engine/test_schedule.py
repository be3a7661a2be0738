"""Which job is next, and what a result means for the others."""

import pytest

from trtconv.sweep.engine.schedule import FIRST_PAUSE_S, Schedule
from trtconv.sweep.engine.verdicts import exit_code, judge_cells
from trtconv.sweep.plan.cells import Cell
from trtconv.sweep.plan.jobs import Job, JobGraph
from trtconv.sweep.workers.outcome import JobResult


def graph(models=("a", "b")):
    jobs, of_cell = {}, {}
    for model in models:
        cell, chain = Cell(model, "own", "tensorrt-rtx", "fp32", "none"), []
        for kind in ("export", "rewrite", "check", "build"):
            id = f"{kind}/{model}"
            jobs[id] = Job(id, kind, cell, tuple(chain), (), 1.0, 0, 60.0)
            chain.append(id)
        of_cell[cell] = tuple(chain)
    return JobGraph(jobs, of_cell)


def test_a_cell_is_finished_before_the_next_is_begun():
    schedule = Schedule(graph(), 0)
    order = []
    while (job := schedule.take("cpu")) is not None:
        order.append(job)
        assert schedule.running == {job}
        schedule.settle(JobResult(job, "ok"), 0.0)
    assert order == [f"{k}/{m}" for m in "ab" for k in ("export", "rewrite", "check", "build")]
    assert schedule.finished
    assert schedule.take("cpu") is None


def test_a_verdict_blocks_what_needs_it_and_is_final():
    g = graph()
    schedule = Schedule(g, 5)
    assert schedule.take("cpu") == "export/a"
    schedule.settle(JobResult("export/a", "ok"), 0.0)
    assert schedule.take("cpu") == "rewrite/a"
    assert schedule.settle(JobResult("rewrite/a", "unsupported", message="no"), 0.0)
    assert schedule.blocked == {"check/a": "rewrite/a", "build/a": "rewrite/a"}
    assert dict(schedule.counts()) == {"ok": 1, "failed": 1, "blocked": 2, "running": 0, "waiting": 4}
    while (job := schedule.take("cpu")) is not None:
        schedule.settle(JobResult(job, "ok"), 0.0)
    assert schedule.finished
    verdicts = judge_cells(g, schedule.results)
    assert [(v.state, v.kind, v.job) for v in verdicts] == [
        ("red", "unsupported", "rewrite/a"),
        ("amber", "ok", "check/b"),
    ]
    assert exit_code(verdicts) == 4


def test_a_fault_is_tried_again_after_a_pause_that_grows():
    schedule = Schedule(graph(("a",)), 2)
    now = 100.0
    for pause in (FIRST_PAUSE_S, 2 * FIRST_PAUSE_S):
        job = schedule.take("cpu")
        assert not schedule.settle(JobResult(job, "died"), now)
        assert schedule.next_wake() == now + pause
        schedule.wake(now + pause - 0.1)
        assert schedule.take("cpu") is None
        now += pause
        schedule.wake(now)
    assert schedule.settle(JobResult(schedule.take("cpu"), "died"), now)
    assert schedule.finished
    assert len(schedule.blocked) == 3


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["ok"], 0), (["accuracy", "unsupported"], 3), (["unsupported", "budget"], 4), (["died"], 1), (["usage"], 2),
     (["environment", "failed"], 5), ([], 1)],
)  # fmt: skip
def test_exit_codes(outcomes, code):
    models = [f"m{i}" for i in range(max(1, len(outcomes)))]
    g = graph(models)
    results = {}
    for model, outcome in zip(models, outcomes, strict=False):
        results[f"export/{model}"] = JobResult(f"export/{model}", outcome)
        if outcome == "ok":
            results |= {f"{k}/{model}": JobResult(f"{k}/{model}", "ok") for k in ("rewrite", "check", "build")}
    assert exit_code(judge_cells(g, results)) == code
