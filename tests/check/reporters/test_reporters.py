import dataclasses
import json
import xml.etree.ElementTree as ET
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from trtconv.check.reporters import write_reports
from trtconv.check.reporters.github import annotation_lines, append_summary
from trtconv.check.reporters.json_report import report_dict
from trtconv.check.reporters.junit import junit_xml
from trtconv.check.reporters.markdown import markdown_text
from trtconv.check.reporters.problems import Problem, problems, split_source
from trtconv.check.reporters.sarif import sarif_dict
from trtconv.check.reporters.text import print_report
from trtconv.cli.console import make_console
from trtconv.core.report import Finding

from .cases import ALL, BAD, EMPTY, GOOD
from .cases import report as report_of

SCHEMA = json.loads(resources.files("trtconv.check.reporters").joinpath("report.schema.json").read_text())
reports = pytest.mark.parametrize("report", ALL.values(), ids=ALL)


@reports
def test_the_json_is_what_the_schema_says(report):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    text = json.dumps(report_dict(report), allow_nan=False)
    jsonschema.validate(json.loads(text), SCHEMA)


def test_the_schema_refuses_another_report():
    data = report_dict(GOOD)
    for wrong in ({"schema": 2}, {"passed": "yes"}, {"comparisons": [{"output": "y"}]}, {"unknown": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data | wrong, SCHEMA)


def test_a_report_of_a_real_check_fits_the_schema(tmp_path):
    from tests.check.models import write_pair
    from trtconv.check import check_model
    from trtconv.core.requests import CheckRequest

    report = check_model(CheckRequest(write_pair(tmp_path)))
    write_reports(report, json=tmp_path / "r.json")
    jsonschema.validate(json.loads((tmp_path / "r.json").read_text()), SCHEMA)


def test_problems_are_ordered_and_placed():
    problem = problems(BAD)
    assert [p.level for p in problem] == ["error"] * 5 + ["warning", "note"]
    assert "first differ at" in problem[0].message, "the cause stands before what it causes"
    assert (problem[1].file, problem[1].line, problem[1].module) == ("nets/ssd.py", 77, "head")
    assert "1 of 2 sample points differ" in problem[1].message
    assert problems(GOOD) == ()
    assert split_source("a/b.py:12") == ("a/b.py", 12)
    assert split_source("C:/a/b.py:12") == ("C:/a/b.py", 12)
    assert split_source("nowhere") == ("", 0)


# The form that Jenkins' junit plugin reads: attribute names, counts that agree, one failure or skip per case.
@reports
def test_junit_has_the_form_and_the_counts(report):
    root = ET.fromstring(junit_xml(report))
    assert root.tag == "testsuites"
    (suite,) = root
    order = [e.tag for e in suite]
    assert order == sorted(order, key=["properties", "testcase", "system-out"].index)
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases) > 0
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    for case in cases:
        assert set(case.keys()) == {"name", "classname", "time"}
        assert len(case) <= 1
    failed = int(suite.get("failures")) > 0
    assert failed == (bool(report.errors) or any(not c.passed for c in report.comparisons))


def test_junit_names_each_failure_once():
    failures = ET.fromstring(junit_xml(BAD)).findall(".//failure")
    assert [f.get("type") for f in failures] == ["accuracy", "accuracy", "accuracy", "accuracy", "budget"]
    assert "nets/ssd.py:42" in failures[3].text


@reports
def test_sarif_has_the_required_parts(report):
    log = json.loads(json.dumps(sarif_dict(report), allow_nan=False))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        location = result["locations"][0]["physicalLocation"]
        assert location["artifactLocation"]["uri"]
        assert location.get("region", {"startLine": 1})["startLine"] >= 1
    assert len(run["results"]) == len(problems(report))


def test_sarif_points_at_the_source_line():
    first = sarif_dict(BAD)["runs"][0]["results"][1]["locations"][0]
    assert first["physicalLocation"] == {"artifactLocation": {"uri": "nets/ssd.py"}, "region": {"startLine": 77}}
    assert first["logicalLocations"][0]["fullyQualifiedName"] == "head"


def test_absolute_paths_of_the_checkout_are_seen_from_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside = Finding("error", "accuracy", "m", source=f"{tmp_path}/nets/a b.py:3")
    outside = Finding("error", "accuracy", "m", source="/somewhere/else.py:4")
    full_report = report_of(findings=(inside, outside))
    assert [line.split("::")[1].split(",title")[0] for line in annotation_lines(full_report)] == [
        "error file=nets/a b.py,line=3",
        "error file=/somewhere/else.py,line=4",
    ]
    uris = [
        r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for r in sarif_dict(full_report)["runs"][0]["results"]
    ]
    assert uris == ["nets/a%20b.py", "file:///somewhere/else.py"]


def test_annotations_are_one_line_each_and_escaped():
    lines = annotation_lines(BAD)
    assert lines[1].startswith("::error file=nets/ssd.py,line=77,title=trtconv%3A accuracy::output 'y'")
    assert all("\n" not in line for line in lines)
    warning = next(line for line in lines if line.startswith("::warning"))
    assert warning.endswith("a `tick`%0Aand a line")
    assert annotation_lines(GOOD) == ()


def test_the_step_summary_is_appended_to(tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    append_summary(GOOD, {"GITHUB_STEP_SUMMARY": str(path)})
    text = path.read_text()
    assert text.startswith("before\n### ✅")
    assert append_summary(GOOD, {}) is None


def test_markdown_shows_verdict_numbers_and_place():
    text = markdown_text(BAD)
    assert "❌ `out/model.trt.onnx` differs from the module at 3 of 4 sample points" in text
    assert "at `nets/ssd.py:42 in backbone.norm, node Mul_3`" in text
    assert "| engine_bytes | 12 MiB | 10 MiB | ❌ |" in text
    assert "a \\| pipe, a &lt;tag> &amp; a" in text
    for line in [li for li in text.splitlines() if li.startswith("|")]:
        assert line.replace("\\|", "").count("|") in (5, 7)
    assert "was not compared" in markdown_text(EMPTY)


def test_a_report_on_the_graph_alone_is_no_comparison():
    assert (
        "✅ `out/model.trt.onnx` has no node that is refused, judged by the tables, for tensorrt==8.6; nothing was run"
        in markdown_text(ALL["static"])
    )
    assert "❌ `out/model.trt.onnx` has 1 error" in markdown_text(ALL["refused"])
    assert ET.fromstring(junit_xml(ALL["static"]))[0].get("skipped") == "0"
    assert ET.fromstring(junit_xml(ALL["refused"]))[0].get("failures") == "1"
    assert annotation_lines(ALL["refused"])[0].startswith("::error file=net.py,line=7,title=trtconv%3A unsupported")


def test_every_report_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    paths = {n: tmp_path / "deep" / n for n in ("json", "junit", "sarif", "markdown")}
    write_reports(BAD, **paths, github=Path("-"))
    assert all(p.stat().st_size > 100 for p in paths.values())
    assert capsys.readouterr().out.count("::error") == 5


@pytest.mark.parametrize(
    ("parts", "location"),
    [
        ({"node": "/Conv"}, "node /Conv"),
        ({"file": "net.py", "line": 3, "node": "/Conv"}, "net.py:3, node /Conv"),
        ({"module": "head", "node": "/Conv"}, "in head, node /Conv"),
        ({}, ""),
    ],
)
def test_the_place_of_a_problem_has_the_parts_that_are_known(parts, location):
    assert Problem("error", "accuracy", "off", **parts).location == location


def test_the_terminal_takes_any_path_and_tells_what_could_not_be_judged(capsys):
    budgets = [
        {"name": "engine_bytes", "measured": "2 B", "limit": "at most 1 B", "passed": False, "value": 2, "bound": 1},
        {"name": "latency_ms at opt", "measured": "not measured", "limit": "at most 1 ms", "passed": False,
         "value": None, "bound": 1},
    ]  # fmt: skip
    result = dataclasses.replace(GOOD, subject="a[red]b[/x]/m.onnx", extras={"budgets": budgets})
    result = dataclasses.replace(result, comparisons=(dataclasses.replace(result.comparisons[0], output="y[/z]"),))
    print_report(result, make_console())
    out = capsys.readouterr().out
    assert "a[red]b[/x]/m.onnx equals the module" in out
    assert "y[/z]" in out
    assert "over    engine_bytes 2 B" in out
    assert "open    latency_ms at opt not measured" in out
