"""What the calls return: frozen, typed, a verdict as text, and the report in a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.api.error_notes import with_notes
from trtconv.core.errors import (
    AccuracyError,
    DifferenceError,
    InvalidRequestError,
    MissingDependencyError,
    OverBudgetError,
    TrtconvError,
    UnsupportedError,
    did_you_mean,
)
from trtconv.core.files.output_paths import require_distinct
from trtconv.core.report import CheckReport, Finding, OutputComparison

if TYPE_CHECKING:
    from trtconv.core.shape_space.space import ShapeSpace
    from trtconv.frontend.summary import Summary
    from trtconv.pipeline import ConvertResult

_ERRORS: tuple[type[TrtconvError], ...] = (
    InvalidRequestError,
    AccuracyError,
    UnsupportedError,
    MissingDependencyError,
    OverBudgetError,
)
# A page with styles and scripts of its own has to stay apart from the notebook's.
_FRAME = (
    '<iframe title="{title}" srcdoc="{page}" sandbox="allow-scripts" loading="lazy"'
    ' style="width:100%;height:36em;border:0"></iframe>'
)


@dataclass(frozen=True)
class Verdict:
    """What a check says. It is true when all is equal, so `assert trtconv.check(...)` means what it reads.

    `report` has every comparison and every finding.
    """

    report: CheckReport = field(repr=False)

    @property
    def passed(self) -> bool:
        """True when something was compared, nothing differs and no finding is an error."""
        return self.report.passed

    @property
    def exit_code(self) -> int:
        """What `trtconv check` would end with."""
        return self.report.exit_code

    @property
    def subject(self) -> Path:
        """The file that was checked."""
        return Path(self.report.subject)

    @property
    def comparisons(self) -> tuple[OutputComparison, ...]:
        """One per output and sample point."""
        return self.report.comparisons

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to say besides numbers: errors, warnings, notes."""
        return self.report.findings

    @property
    def worst(self) -> OutputComparison | None:
        """The comparison with the largest absolute error."""
        return self.report.worst

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        """The verdict in a line, and under it what is wrong."""
        from trtconv.check.reporters.problems import problems
        from trtconv.check.reporters.text import verdict
        from trtconv.core.text.display import displayable

        report = displayable(self.report)
        _, word, text = verdict(report)
        lines = [f"{word}  {text}"]
        for problem in problems(report):
            if problem.level != "note" and not report.passed:
                location = f" [{problem.location}]" if problem.location else ""
                lines.append(f"  {problem.level}: {problem.message}{location}")
                lines += [f"    -> {problem.hint}"] if problem.hint else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<trtconv.Verdict {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        from trtconv.check.reporters.html.report import html_text
        from trtconv.core.text.display import displayable

        return framed(f"trtconv: {self.report.subject}", html_text(displayable(self.report)))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data; `trtconv check --json` writes the same."""
        from trtconv.check.reporters.json_report import report_dict

        return report_dict(self.report)

    def save(self, **files: str | Path) -> None:
        """Write reports: `verdict.save(html="report.html", junit="junit.xml")`.

        The formats are those of `trtconv check`: html, json, junit, markdown, sarif. Raises InvalidRequestError for
        another one, and for a file that cannot be written.
        """
        from trtconv.check.reporters import write_reports
        from trtconv.check.reporters.registry import REPORTERS

        formats = [r.name for r in REPORTERS if r.suffix]
        unknown = next((name for name in files if name not in formats), None)
        if unknown is not None:
            raise InvalidRequestError(
                f"no report format is called '{unknown}'{did_you_mean(unknown, formats)}",
                hint="one of " + ", ".join(formats),
            )
        require_distinct(map(Path, files.values()), ())
        write_reports(self.report, **{name: Path(path) for name, path in files.items()})

    @with_notes(())
    def raise_if_failed(self) -> None:
        """Raise DifferenceError where outputs differ, else the TrtconvError of what is wrong; nothing when passed."""
        if self.passed:
            return
        kinds = {e.exit_code: e for e in _ERRORS} | {AccuracyError.exit_code: DifferenceError}
        first = self.report.errors[0] if self.report.errors else None
        kind = kinds.get(self.exit_code, TrtconvError)
        if kind is DifferenceError or first is None:
            raise kind(str(self), hint=f"trtconv check {self.report.subject} --html report.html shows each output")
        raise kind(first.message, hint=first.hint or None, where=first.source or None)


@dataclass(frozen=True)
class Conversion:
    """The files of a conversion, and what was shown of them. Failing conversions raise, so this one passed.

    `graph` is the verdict of the rewritten ONNX file. `verdict` is that of the engine, or of the graph where this
    machine cannot run the engine; `engine_ran` tells which.
    """

    model: Path
    rewritten: Path
    engine: Path
    reference: Path
    report: Path
    space: ShapeSpace
    graph: Verdict
    verdict: Verdict
    engine_ran: bool
    seconds: Mapping[str, float]
    _summary: Summary = field(repr=False)

    @property
    def directory(self) -> Path:
        """The folder with all files."""
        return self.engine.parent

    def __str__(self) -> str:
        """The summary that `trtconv convert` prints; its verdict is one of the lines."""
        return str(self._summary)

    def __repr__(self) -> str:
        line = dict(self._summary.lines)["verdict"]
        return f"<trtconv.Conversion {self.directory}: {line}>"

    def _repr_html_(self) -> str:
        try:
            page = self.report.read_text(encoding="utf-8")
        except OSError:
            return self.verdict._repr_html_()
        return framed(f"trtconv: {self.directory}", page)

    def as_dict(self) -> dict[str, Any]:
        """The document that `trtconv convert --json` writes."""
        from trtconv.frontend.documents import document

        return document(self._summary.kind, self._summary.data)


def conversion(result: ConvertResult, summary: Summary) -> Conversion:
    """A conversion out of what the rooms returned."""
    ran = bool(result.engine.comparisons)
    graph = Verdict(result.rewritten)
    return Conversion(
        result.export.model,
        result.rewrite.model,
        result.build.engine,
        result.export.reference,
        result.report,
        result.export.space,
        graph,
        Verdict(result.engine) if ran else graph,
        ran,
        dict(result.seconds),
        summary,
    )


def framed(title: str, page: str) -> str:
    """A whole page in a frame of its own, for a notebook."""
    return _FRAME.format(title=html.escape(title, quote=True), page=html.escape(page, quote=True))
