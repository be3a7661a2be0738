"""`trtconv sweep` on the command line."""

import json
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from tests.sweep.conftest import Bench
from tests.sweep.fork_pool import ForkPool
from trtconv.cli.sweep_view import LiveView, PlainView, bar_parts, describe_event
from trtconv.sweep import SweepRequest, plan_sweep
from trtconv.sweep.engine.schedule import Schedule
from trtconv.sweep.workers.outcome import JobResult


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr("trtconv.sweep.sweep._ray_pool", lambda request: ForkPool())
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    bench = Bench(tmp_path)
    bench.write(["good", "wrong"], targets=("tensorrt==10",))
    return bench


def test_a_sweep_tells_what_it_does_and_ends_with_the_worst_code(bench, trtconv, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step"))
    junit = tmp_path / "junit.xml"
    code, out, err = trtconv("sweep", tmp_path / "sweep.toml", "-o", bench.atlas, "--junit", junit)
    assert code == 3
    lines = err.splitlines()
    assert any(line.startswith("ok      export/good/own  ") for line in lines)
    assert "failed  check/wrong/own/tensorrt==10/fp32  accuracy: y at opt: 2 of 4 differ" in lines
    assert "red      wrong/own/tensorrt==10/fp32/none  check: accuracy: y at opt: 2 of 4 differ" in out
    assert out.splitlines()[-1] == f"1 amber, 1 red  {bench.atlas / 'index.html'}"
    assert ET.parse(junit).getroot()[0].get("failures") == "1"
    assert "❌ quick" in (tmp_path / "step").read_text()
    code, out, err = trtconv("sweep", tmp_path / "sweep.toml", "-o", bench.atlas, "--only", "good", "-q", "--json", "-")
    assert (code, err) == (0, "")
    assert json.loads(out)["counts"]["amber"] == 1


def test_the_plan_runs_nothing(bench, trtconv, tmp_path):
    code, out, _ = trtconv("sweep", tmp_path / "sweep.toml", "-o", bench.atlas, "--plan")
    assert code == 0
    assert out.splitlines()[0] == "2 cells of 2 models, 6 jobs"
    assert "export   cpu              2    unknown" in out
    assert not bench.atlas.exists()
    code, out, _ = trtconv("sweep", tmp_path / "sweep.toml", "-o", bench.atlas, "--plan", "--json", "-")
    assert len(json.loads(out)["jobs"]) == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--retry", "failed"], "there is no sweep in"), (["--only", "nothing"], "matches no cell")],
)
def test_bad_requests_are_one_error(bench, trtconv, tmp_path, words, message):
    code, _, err = trtconv("sweep", tmp_path / "sweep.toml", "-o", bench.atlas, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_the_live_table_shows_every_state(bench, tmp_path, monkeypatch):
    from rich.console import Console

    plan = plan_sweep(SweepRequest(tmp_path / "sweep.toml", bench.atlas))
    schedule = Schedule(plan.graph, 0)
    view = LiveView(plan.graph)
    first = schedule.take("cpu")
    schedule.settle(JobResult(first, "failed", message="no \x1b[31mcheckpoint"), 0.0)
    schedule.take("cpu")
    view.event(JobResult(first, "failed", message="no \x1b[31mcheckpoint"), final=True)
    view.tick(schedule)
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(view._draw())
    text = console.export_text()
    assert "export" in text
    assert r"no \x1b[31mcheckpoint" in text
    rows = {line.split()[0]: line.split()[2:] for line in text.splitlines() if "━" in line}
    assert rows["export"] == ["1", "1"]


def test_bars_add_up():
    counts = Counter(ok=3, failed=1, running=1, waiting=95)
    assert sum(length for length, _ in bar_parts(counts, 28)) == 28
    assert bar_parts(Counter(ok=4), 28) == [(28, "ok")]
    assert bar_parts(Counter(), 28) == []


def test_lines_of_events():
    assert describe_event(JobResult("a", "ok", seconds=3.21), final=True) == "ok      a  3.2 s"
    assert describe_event(JobResult("a", "ok", cached=True), final=True) == "cached  a"
    assert describe_event(JobResult("a", "died", message="x\ny"), final=False) == "again   a  died: x"
    with PlainView(quiet=True) as view:
        view.event(JobResult("a", "ok"), final=True)
