"""SARIF 2.1.0 (OASIS, 2020): what code-scanning pages show at a line of the PyTorch source."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from trtconv.check.reporters.problems import Problem, problems, relative_path
from trtconv.check.reporters.reporter import Reporter
from trtconv.core.artifacts import write_report_json
from trtconv.core.report import CheckReport

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RULES: dict[str, str] = {
    "accuracy": "The subject does not compute what its original computes, within the tolerance.",
    "unsupported": "The target does not support a node, or silently computes it wrongly.",
    "budget": "A limit on latency, size, memory or time is exceeded.",
    "environment": "The machine lacks what the check needs.",
    "usage": "The files that were given do not belong together.",
    "power": "Wrong outputs could have passed the comparison.",
    "failed": "The check itself failed.",
}


def sarif_dict(report: CheckReport) -> dict[str, Any]:
    """The log as plain data, one result per problem. Where no line is known, the subject's file is the place."""
    import trtconv

    sorted_problems = problems(report)
    kinds = list(dict.fromkeys([*RULES, *(p.kind for p in sorted_problems)]))
    rules = [
        {
            "id": f"trtconv/{kind}",
            "name": kind.title().replace("_", "") + "Check",
            "shortDescription": {"text": RULES.get(kind, kind)},
        }
        for kind in kinds
    ]
    driver = {"name": "trtconv", "version": trtconv.__version__, "semanticVersion": trtconv.__version__, "rules": rules}
    results = [_result(p, kinds.index(p.kind), report) for p in sorted_problems]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "exitCode": report.exit_code}],
        "results": results,
        "properties": {
            "passed": report.passed,
            "subject": report.subject,
            "runner": report.runner,
            **({"sources": report.extras["sources"]} if "sources" in report.extras else {}),
        },
    }
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _result(problem: Problem, index: int, report: CheckReport) -> dict[str, Any]:
    text = problem.message + (f"\n{problem.hint}" if problem.hint else "")
    result: dict[str, Any] = {
        "ruleId": f"trtconv/{problem.kind}",
        "ruleIndex": index,
        "level": problem.level,
        "message": {"text": text},
        "locations": [_location(problem, report)],
        # Equal problems of two runs are one alert; numbers in the message change from run to run.
        "partialFingerprints": {"trtconv/v1": f"{problem.kind}:{problem.file}:{problem.module}:{problem.node}"},
    }
    return result


def _location(problem: Problem, report: CheckReport) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.file or report.subject)}}
    if problem.line:
        physical["region"] = {"startLine": problem.line}
    logical = [
        {"fullyQualifiedName": name, "kind": kind}
        for name, kind in ((problem.module, "module"), (problem.node, "member"))
        if name
    ]
    return {"physicalLocation": physical} | ({"logicalLocations": logical} if logical else {})


def _uri(path: str) -> str:
    pure = PurePath(relative_path(path))
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())


def write_sarif(report: CheckReport, path: Path) -> None:
    """Write the report as SARIF."""
    write_report_json(path, sarif_dict(report))


REPORTER = Reporter("sarif", "Write SARIF 2.1.0.", ".sarif", write_sarif)
