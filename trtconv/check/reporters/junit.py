"""JUnit XML, in the form that Jenkins, GitLab and the GitHub reporters read: a test case per output and point."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

from trtconv.check.reporters.caveats import power_line
from trtconv.check.reporters.problems import Problem, problems
from trtconv.check.reporters.reporter import Reporter
from trtconv.core.artifacts import write_report_text
from trtconv.core.report import CheckReport, OutputComparison
from trtconv.core.text.display import display_text
from trtconv.proof.comparison import describe_failure


def junit_xml(report: CheckReport) -> str:
    """The document as text. A finding of level error is a failed case of its own; notes go to `system-out`."""
    root = ET.Element("testsuites", name="trtconv check")
    suite = ET.SubElement(root, "testsuite", name=_clean(f"trtconv check {report.subject}"))
    findings = [p for p in problems(report) if p.kind != "accuracy" or p.node]
    extra = [p for p in findings if p.level == "error" and not _is_output(p, report)]
    cases = [_case(suite, report, c) for c in report.comparisons]
    cases += [_advisory(suite, report, c) for c in report.advisory]
    cases += [_finding(suite, report, p) for p in extra]
    if not cases:
        cases.append(_case_element(suite, report, "verdict"))
    _totals(suite, report, cases)
    properties = ET.Element("properties")
    facts = {"runner": report.runner, "reference": report.reference, **_proof_facts(report)}
    for name, value in {**report.environment, **facts}.items():
        ET.SubElement(properties, "property", name=name, value=_clean(str(value)))
    suite.insert(0, properties)
    text = "\n".join(f"{p.level}: {p.message}" for p in problems(report) if p.level != "error")
    ET.SubElement(suite, "system-out").text = _clean(text)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _proof_facts(report: CheckReport) -> dict[str, str]:
    status = report.extras.get("sources", {}).get("status")
    facts = {"sources": str(status or ""), "power": power_line(report)}
    return {name: text for name, text in facts.items() if text}


def _is_output(problem: Problem, report: CheckReport) -> bool:
    """True for what already is a failed comparison's own case."""
    return problem.kind == "accuracy" and problem.message not in {f.message for f in report.findings}


def _case_element(suite: ET.Element, report: CheckReport, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", name=_clean(name), classname=_clean(report.subject), time="0")


def _case(suite: ET.Element, report: CheckReport, result: OutputComparison) -> ET.Element:
    case = _case_element(suite, report, f"{result.output} at {result.point}")
    if not result.passed:
        failure = ET.SubElement(case, "failure", type="accuracy", message=_clean(result.reason))
        failure.text = _clean(describe_failure(result))
    return case


def _advisory(suite: ET.Element, report: CheckReport, result: OutputComparison) -> ET.Element:
    case = _case_element(suite, report, f"{result.output} at {result.point}")
    verdict = "equal" if result.passed else describe_failure(result)
    ET.SubElement(case, "skipped", message=_clean(f"advisory, never fails a check: {verdict}"))
    return case


def _finding(suite: ET.Element, report: CheckReport, problem: Problem) -> ET.Element:
    case = _case_element(suite, report, f"{problem.kind}: {problem.message}"[:200])
    failure = ET.SubElement(case, "failure", type=problem.kind, message=_clean(problem.message))
    failure.text = _clean("\n".join(t for t in (problem.location, problem.message, problem.hint) if t))
    return case


def _totals(suite: ET.Element, report: CheckReport, cases: Iterable[ET.Element]) -> None:
    listed = list(cases)
    failed = any(c.find("failure") is not None for c in listed)
    if not (report.comparisons or failed or report.static):
        ET.SubElement(listed[-1], "skipped", message="nothing was compared")
    counts = {kind: sum(c.find(kind) is not None for c in listed) for kind in ("failure", "skipped")}
    suite.set("tests", str(len(listed)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", "0")
    suite.set("skipped", str(counts["skipped"]))
    suite.set("time", f"{report.seconds:.3f}")


def _clean(text: str) -> str:
    """XML 1.0 has neither control characters nor U+FFFE, not even escaped."""
    return display_text(text)


def write_junit(report: CheckReport, path: Path) -> None:
    """Write the report as JUnit XML."""
    write_report_text(path, junit_xml(report))


REPORTER = Reporter("junit", "Write JUnit XML.", ".junit.xml", write_junit)
