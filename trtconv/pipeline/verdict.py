"""What a report means for a file: it stays under its name, or an error is raised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trtconv.core.errors import AccuracyError, MissingDependencyError, TrtconvError
from trtconv.core.report import CheckReport
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.original import MODULE

_ERRORS: dict[str, type[TrtconvError]] = {"environment": MissingDependencyError, "accuracy": AccuracyError}


def keep_if_equal(
    report: CheckReport,
    artifact: Path,
    page: Path,
    original: str = MODULE,
    blame: Callable[[], str] = str,
) -> None:
    """Raise as `require_equal` does, after the wrong file was moved away from the name under which it would be used.

    `page` is the HTML report, to which the error refers. `blame` is called when an output differs and no rule is known
    to have made the first tensor that does; it names the rule without which nothing differs, or is empty.
    """
    rejected = artifact.with_name(artifact.name + ".rejected")
    try:
        require_equal(report, original, f"{page} has all outputs and points; the file is {rejected.name} now", blame)
    except TrtconvError:
        artifact.replace(rejected)
        raise


def require_equal(
    report: CheckReport, original: str = MODULE, otherwise: str = "", blame: Callable[[], str] = str
) -> None:
    """Raise AccuracyError for the first comparison that failed, or the error of the first finding.

    `otherwise` is the hint where no finding has one; `blame` as in `keep_if_equal`.
    """
    otherwise = otherwise or f"see `trtconv check {report.subject}` for all outputs and points"
    failure = first_failure(report.comparisons)
    if failure is not None:
        inner = next((f for f in report.errors if f.kind == "accuracy" and f.source), None)
        source_line = report.extras.get("origins", {}).get(failure.output, {}).get("source")
        hint, details = inner.hint if inner else "", [inner.message] if inner else []
        rule = "" if hint else blame()
        if rule:
            hint = f"leave the rule out: --skip {rule}; {otherwise}"
            details.append(f"without the rule {rule} the rewritten graph computes what {original} computes")
        raise AccuracyError(
            f"{report.subject} does not compute what {original} computes: {describe_failure(failure)}",
            hint=hint or otherwise,
            details=details,
            where=(inner.source if inner else source_line) or None,
        )
    for finding in report.errors:
        kind = _ERRORS.get(finding.kind, TrtconvError)
        raise kind(finding.message, hint=finding.hint, where=finding.source or None)
