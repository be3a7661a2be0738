"""The panels of the report: an engine that was not run, latency, precision, both networks, what was allowed."""

import dataclasses
import json
import re
import subprocess

import pytest

from tests.browser import CHROMIUM, needs_browser
from tests.check.models import small_net, write_pair
from tests.check.reporters.cases import GOOD, comparison, report
from tests.core.ledger.ledgers import make_entry, make_ledger, make_node, write_beside
from trtconv.check.gate.in_turn import PairedLatency
from trtconv.check.gate.measured import measurement
from trtconv.check.reporters.html.page_facts import page_facts
from trtconv.check.reporters.html.page_latency import latency_facts
from trtconv.check.reporters.html.page_precision import precision_facts
from trtconv.check.reporters.html.report import html_text
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import save_model
from trtconv.core.report import Finding

NOT_RUN = Finding("note", "environment", "the engine was not run here: it needs an NVIDIA GPU")


def with_extras(**extras):
    return dataclasses.replace(GOOD, extras=extras)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A folder with an exported and a rewritten file, and the ledger of one rewrite."""
    folder = tmp_path_factory.mktemp("pair")
    path = write_pair(folder, rewritten=small_net(norm_rule="l2norm"))
    nodes = [make_node(inputs=["a"], outputs=["b"])]
    write_beside(path, make_ledger(make_entry(before=nodes, after=nodes)))
    return path


def test_an_engine_that_was_not_run_is_amber():
    page = html_text(dataclasses.replace(GOOD, findings=(NOT_RUN,)))
    assert 'class="verdict open"' in page
    assert "<h1>Graph equal, engine not run</h1>" in page
    assert 'class="verdict good"' in html_text(GOOD)
    warned = dataclasses.replace(NOT_RUN, level="error")
    assert 'class="verdict bad"' in html_text(dataclasses.replace(GOOD, findings=(warned,)))


def test_what_was_allowed_stands_beside_what_was_measured():
    page = html_text(report(comparison(max_scaled=3e-7, max_share=0.125, allowed=2.4e-6), comparison("z")))
    assert "3.0e-07<small>12 % of 2.4e-06</small>" in page
    assert page.count("</small></td>") == 1, "an output without an allowance has no such words"


def bench_of(path, sha256, **over):
    def spread(median):
        return {"runs": 9, "median": median, "mean": median, "p90": 1.2 * median, "p99": 2 * median,
                "least": median, "most": 3 * median}  # fmt: skip

    latencies = [
        {"subject": name, "point": "opt", "batch": 1, "device": spread(t), "host": spread(t), "throughput": 1 / t}
        for name, t in (("engine", 0.001), ("torch eager", 0.0025))
    ]
    data = {"schema": 1, "kind": "bench", "subject": str(path), "subject_sha256": sha256, "latencies": latencies}
    path.with_name("model.bench.json").write_text(json.dumps(data | over))


def test_percentiles_of_the_same_file_are_shown_and_of_another_are_not(tmp_path):
    path = save_model(small_net(), tmp_path / "model.trt.onnx") or tmp_path / "model.trt.onnx"
    subject = dataclasses.replace(GOOD, subject=str(path))
    assert latency_facts(subject) == {}
    bench_of(path, sha256_file(path))
    (table,) = latency_facts(subject)["tables"]
    assert [(r["what"], r["p50"], r["p90"], r["p99"], r["ratio"]) for r in table["rows"]] == [
        ("engine", "1", "1.2", "2", "1.00"),
        ("torch eager", "2.5", "3", "5", "2.50"),
    ]
    assert "torch eager" in html_text(subject)
    bench_of(path, "0" * 64)
    assert latency_facts(subject) == {}
    bench_of(path, sha256_file(path), latencies="no list")
    assert latency_facts(subject) == {}


def test_two_engines_in_turn_are_drawn_with_what_could_be_seen():
    pair = PairedLatency("opt", measurement([2.0, 2.1, 2.2, 2.3]), measurement([1.9, 2.0, 2.0, 2.1]), 1.1)
    page = html_text(with_extras(in_turn={"baseline": "old/model.engine", "processes": 4, "points": [pair.as_dict()]}))
    assert "at opt, in turn with model.engine" in page
    assert f"The smallest slowdown that would have been seen: {pair.smallest_visible:.3g} times" in page
    assert page.count('class="dot neutral"') == 8


def test_kept_baselines_are_drawn_as_a_line():
    history = [{"when": f"2026-01-0{i}", "measured": {"latency_ms at opt": 3.0 - 0.1 * i}} for i in range(1, 4)]
    extras = {"history": history, "measured": {"latency_ms at opt": {"value": 2.5, "runs": [2.5]}}}
    (line,) = latency_facts(with_extras(**extras))["history"]
    assert (line["point"], line["count"], line["rows"][-1]) == ("opt", 3, ("now", "2.5 ms"))
    assert line["picture"].count("<circle") == 4
    other = {**extras, "history": [{"when": "2026-01-01", "measured": {"latency_ms at max": 3.0}}]}
    assert latency_facts(with_extras(**other)) == {}


def layer(name, dtype, seconds=1e-5):
    return {"name": name, "kind": "conv", "dtype": dtype, "seconds": seconds, "tactic": ""}


def test_the_map_of_precisions_is_of_the_layers_and_their_times():
    layers = [layer("a", "float32", 3e-5), layer("b", "float16"), layer("c", "float16"), layer("d", "int32", 5e-5)]
    facts = precision_facts(with_extras(layers=layers))
    assert (facts["source"], facts["timed"]) == ("engine", True)
    assert facts["shares"] == [("float32", 1, "30 %"), ("float16", 2, "20 %"), ("other", 1, "50 %")]
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="40"', facts["picture"])]
    assert widths == [300.0, 200.0, 500.0], "neighbours of one precision are one box"
    assert "Precision of the layers" in html_text(with_extras(layers=layers))


def test_all_in_fp32_needs_no_map():
    assert precision_facts(with_extras(layers=[layer("a", "float32"), layer("b", "int64")])) == {}
    assert precision_facts(GOOD) == {}


def test_without_an_engine_the_map_is_of_the_graph(tmp_path):
    from tests.check.models import half_net

    write_pair(tmp_path, rewritten=half_net())
    facts = precision_facts(dataclasses.replace(GOOD, subject=str(tmp_path / "model.trt.onnx")))
    assert facts["source"] == "graph"
    assert "float16" in facts["kinds"]
    assert facts["modules"], "the nodes know their modules"


def test_both_networks_stand_side_by_side_with_what_changed(pair):
    before, after = page_facts(dataclasses.replace(GOOD, subject=str(pair)))["networks"]
    assert (before["title"], after["title"]) == ("model.onnx", "model.trt.onnx")
    assert before["marked"] == 1, "the node that the ledger replaced"
    assert after["marked"] >= 1, "the nodes that a rule made"
    page = html_text(dataclasses.replace(GOOD, subject=str(pair)))
    assert page.count('class="network"') == 2
    assert "dagre" not in html_text(GOOD), "the layout travels only with networks"


@needs_browser
def test_both_networks_are_drawn_in_a_browser(pair, tmp_path):
    page = tmp_path / "r.html"
    page.write_text(html_text(dataclasses.replace(GOOD, subject=str(pair))))
    words = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
             "--virtual-time-budget=20000", "--dump-dom", page.as_uri()]  # fmt: skip
    dom = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    assert dom.count("data-ready=") == 2, dom[-500:]
    facts = page_facts(dataclasses.replace(GOOD, subject=str(pair)))["networks"]
    drawn = re.findall(r'<g class="node( rule)?"[^>]*tabindex="(-?\d)"', dom)
    ends = 2 * 2  # an input and an output in each
    assert len(drawn) == sum(n["nodes"] for n in facts) + ends
    assert sum(bool(rule) for rule, _ in drawn) == sum(n["marked"] for n in facts)
    assert [index for _, index in drawn].count("0") == 2, "one stop of the Tab key in each picture"
