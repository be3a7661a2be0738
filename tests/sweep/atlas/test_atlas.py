"""What a person sees of a sweep."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.sweep import SweepRequest, plan_sweep
from trtconv.sweep.atlas.atlas import costs
from trtconv.sweep.atlas.badge import badge_svg
from trtconv.sweep.atlas.changes import find_changes
from trtconv.sweep.atlas.junit import junit_xml
from trtconv.sweep.atlas.plots import latency_bars, pareto_points
from trtconv.sweep.atlas.summary import append_summary, markdown_text
from trtconv.sweep.engine.verdicts import CellVerdict
from trtconv.sweep.ledger.ledger import Ledger
from trtconv.sweep.plan.cells import Cell

HOSTILE = "<script>alert(1)</script>|`\x1b[31m"


def verdict(state="green", reason="equal", *, model="net", precision="fp32", **facts):
    return CellVerdict(Cell(model, "own", "tensorrt==10", precision, "H100"), state, reason, **facts)


def proved(precision, milliseconds, error, **facts):
    return verdict(
        precision=precision, latency_s={"opt": milliseconds / 1e3}, facts={"engine": {"error": error}}, **facts
    )


RED = verdict("red", "check: accuracy", kind="accuracy", message=f"y differs {HOSTILE}", seconds=2.0)


class Page(HTMLParser):
    """The links, tags and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.tags, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [v for k, v in attributes if k in ("href", "src")]

    def handle_data(self, data):
        self.texts.append(data)


def test_the_atlas_of_two_sweeps(bench):
    """The page is offline, its links lead to files, and the second sweep tells first what turned red."""
    bench.write(["a", "b"], targets=("tensorrt-rtx",), gpus=("H100",))
    bench.run()
    first = Page((bench.atlas / "index.html").read_text())
    assert "new red" not in first.texts
    file = bench.folder / "sweep.toml"
    file.write_text(file.read_text().replace('"net.py:b"', '"net.py:wrong"\nname = "b"'))
    result = bench.run()
    assert [(c.kind, c.cell) for c in result.atlas.changes] == [("new red", "b/own/tensorrt-rtx/fp32/H100")]
    text = result.atlas.index.read_text()
    page = Page(text)
    assert "Content-Security-Policy" in text
    assert "script" not in page.tags
    assert not re.search(r"https?://", text)
    files = [link for link in page.links if not link.startswith("data:")]
    assert all((bench.atlas / link).is_file() for link in files)
    assert {link.rpartition("-")[2] for link in files} >= {"report.html", "repro.zip"}
    data = json.loads(result.atlas.data.read_text())
    assert data["counts"] == {"green": 1, "amber": 0, "red": 1, "open": 0}
    assert {c["id"]: c["state"] for c in data["cells"]}["b/own/tensorrt-rtx/fp32/H100"] == "red"
    assert "1 green, 1 red" in result.atlas.badge.read_text()


def test_names_and_messages_steer_nothing(bench):
    from trtconv.sweep.atlas.atlas import page_text, tables

    bad = (verdict("red", HOSTILE, model=HOSTILE, message=HOSTILE),)
    text = {
        "name": HOSTILE, "number": 1, "written": "", "version": "", "changes": (),
        "counts": dict.fromkeys(("green", "amber", "red", "open"), 1), "bars": {}, "plots": {},
        "tables": tables(bad, {bad[0].cell.id: {"report": 'reports/x"><b>'}}),
        "jobs_run": 0, "faults": [(HOSTILE, 2)], "costs": [],
    }  # fmt: skip
    page = Page(page_text(text))
    assert "script" not in page.tags
    assert 'reports/x"><b>' in page.links
    assert "\x1b" not in "".join(page.texts)
    assert ET.fromstring(junit_xml(HOSTILE, bad)).find(".//failure") is not None
    assert "<script" not in markdown_text(HOSTILE, bad, ())


def test_what_changed():
    before = {
        verdict(model=m).cell.id: state
        for m, state in {
            "a": ("green", {}),
            "b": ("amber", {}),
            "c": ("red", {}),
            "d": ("green", {"opt": 0.010}),
            "e": ("green", {"opt": 0.010}),
            "f": ("open", {}),
            "g": ("green", {"opt": 0.010}),
        }.items()
    }
    now = [
        verdict("amber", "weak", model="a"),
        verdict("red", "check: accuracy", model="b"),
        verdict(model="c"),
        verdict(model="d", latency_s={"opt": 0.012}),
        verdict(model="e", latency_s={"opt": 0.0105}),
        verdict("red", "x", model="f"),
        verdict(model="g", latency_s={"opt": 0.005}),
        verdict("red", "x", model="new"),
    ]
    changes = find_changes(now, before)
    assert [(c.kind, c.cell[0]) for c in changes] == [
        ("new red", "b"),
        ("worse", "a"),
        ("slower", "d"),
        ("mended", "c"),
        ("faster", "g"),
    ]
    assert changes[2].text == "10.000 ms to 12.000 ms at opt"


def test_only_proved_engines_are_in_the_pareto_plot():
    entries = [
        proved("fp32", 4.0, 1e-6),
        proved("fp16", 2.0, 1e-3),
        proved("bf16", 3.0, 1e-2),
        CellVerdict(**{**vars(proved("tf32", 1.0, 1e-9)), "state": "amber"}),
    ]
    ((title, points),) = pareto_points(entries).items()
    assert title == "net on H100"
    assert [(p.label, p.best) for p in points] == [
        ("tensorrt==10 fp16", True),
        ("tensorrt==10 bf16", False),
        ("tensorrt==10 fp32", True),
    ]
    bars = latency_bars(entries)["net"]
    assert [(b.milliseconds, b.proved, b.width) for b in bars] == [
        (1.0, False, 25.0),
        (2.0, True, 50.0),
        (3.0, True, 75.0),
        (4.0, True, 100.0),
    ]
    assert pareto_points([proved("fp32", 1.0, 1e-6)]) == {}


def test_junit():
    verdicts = [
        verdict(model="good"),
        RED,
        verdict("red", "build: the process died", model="x", kind="died"),
        verdict("open", "not run", model="y"),
        verdict("amber", "graph only", model="z"),
    ]
    suite = ET.fromstring(junit_xml("night", verdicts)).find("testsuite")
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    failure = suite.find(".//failure")
    assert failure.get("type") == "accuracy"
    assert "y differs" in failure.text


def test_the_step_summary(tmp_path):
    changes = find_changes([RED], {RED.cell.id: ("green", {})})
    text = markdown_text("night", [RED, verdict(model="b")], changes)
    assert text.startswith("### ❌ night: 1 green, 1 red\n")
    assert "| new red | net/own/tensorrt==10/fp32/H100 | green to red: check: accuracy |" in text
    many = markdown_text("night", [verdict("red", "x", model=f"m{i}") for i in range(50)], ())
    assert "and 20 more" in many
    assert append_summary(text, {}) is None
    target = tmp_path / "summary"
    target.write_text("before\n")
    append_summary(text, {"GITHUB_STEP_SUMMARY": str(target)})
    assert target.read_text().startswith("before\n### ❌")
    with pytest.raises(InvalidRequestError, match="cannot be written"):
        append_summary(text, {"GITHUB_STEP_SUMMARY": str(tmp_path)})


@pytest.mark.parametrize(
    ("states", "text", "colour"),
    [
        (["green", "green"], "2 green", "#17794a"),
        (["green", "amber"], "1 green, 1 amber", "#8a5a00"),
        (["red", "amber"], "1 amber, 1 red", "#b3261e"),
        ([], "no cells", "#17794a"),
    ],
)
def test_the_badge(states, text, colour):
    svg = badge_svg([verdict(s) for s in states])
    assert ET.fromstring(svg).get("aria-label") == f"trtconv: {text}"
    assert colour in svg


def test_shared_work_costs_once_and_only_faults_are_told(bench):
    bench.write(["a", "flaky", "refused"], targets=("tensorrt-rtx",), precisions=("fp32", "fp16"), gpus=("none", "T4"))
    bench.run()
    bench.run(retry="failed")
    with Ledger(bench.atlas) as ledger:
        attempts = ledger.attempts(1)
    page = Page(bench.run(resume=True).atlas.index.read_text())
    text = " ".join(" ".join(page.texts).split())
    assert "Faults of the machines" in text
    assert "rewrite/flaky/own/tensorrt-rtx/fp32 1 time" in text
    assert "rewrite/refused/own" not in text.partition("Faults of the machines")[2], "a verdict that was tried again"
    jobs = plan_sweep(SweepRequest(bench.folder / "sweep.toml", bench.atlas)).graph.jobs
    hours = {name: h for name, h, _ in costs(jobs, attempts, {})}
    assert set(hours) == {"cpu", "T4"}
    assert sum(hours.values()) * 3600 == pytest.approx(sum(s for tries in attempts.values() for _, s, *_ in tries))
    assert costs(jobs, {}, {"T4": 2.0}) == [("cpu", 0.0, None), ("T4", 0.0, 0.0)]
