"""The gate in pytest: the fixture `trtconv_gate`, and the options of `trtconv check` for a whole test run.

    def test_engine(trtconv_gate):
        trtconv_gate("out/model.engine", against=make_net())

Loaded by pytest itself where trtconv is installed; `-p no:trtconv` leaves it out. Importing this imports no torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trtconv.core.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trtconv.api.calls import Module
    from trtconv.api.keywords import CheckKeywords
    from trtconv.api.results import Conversion, Verdict

# Option of pytest -> argument of trtconv.check.
_ARGUMENTS = ("config", "reference", "rtol", "atol", "baseline", "update_baseline")
_LONGEST_NAME = 120


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the gate."""
    group = parser.getgroup("trtconv", "trtconv: engines that equal their modules")
    group.addoption("--trtconv-config", metavar="FILE", help="A trtconv.toml: limits for outputs, and budgets.")
    group.addoption("--trtconv-reference", metavar="FILE", help="Reference file (default: beside each artifact).")
    group.addoption(
        "--trtconv-against", metavar="MODULE", help="Run this module (net.py:factory) instead of reading references."
    )
    group.addoption("--trtconv-rtol", metavar="NUMBER", help="Relative tolerance (default: the noise floor).")
    group.addoption("--trtconv-atol", metavar="NUMBER", help="Absolute tolerance (default: the noise floor).")
    group.addoption("--trtconv-baseline", metavar="FILE", help="Fail when something got worse against this report.")
    group.addoption(
        "--trtconv-update-baseline", action="store_true", default=None, help="Write the baseline instead of comparing."
    )
    group.addoption("--trtconv-reports", metavar="DIR", help="Write the reports of every check into this folder.")
    group.addoption(
        "--trtconv-formats", metavar="NAME,...", default="json,html", help="Of the reports (default: json,html)."
    )
    group.addoption(
        "--trtconv-unrunnable",
        choices=("fail", "skip"),
        default="fail",
        help="An engine that this machine cannot run (no GPU) fails its test, or skips it (default: fail).",
    )


@dataclass(frozen=True)
class EngineGate:
    """A call that checks an artifact and fails the test when it does not pass; what a call names wins over options."""

    defaults: Mapping[str, Any]
    against: str | None
    reports: Path | None
    formats: tuple[str, ...]
    skips: bool
    test: str
    _names: list[str] = field(default_factory=list, repr=False)

    def __call__(
        self,
        artifact: str | PathLike[str] | Conversion,
        against: Module | None = None,
        **options: Unpack[CheckKeywords],
    ) -> Verdict:
        """Check as `trtconv.check` does, and write the reports.

        Raises DifferenceError (an AssertionError) where outputs differ, OverBudgetError over a limit, and
        MissingDependencyError for an engine that this machine cannot run, unless those are skipped.
        """
        __tracebackhide__ = True
        from trtconv.api import check

        chosen: Any = {**self.defaults, **options}
        verdict = check(artifact, against=self.against if against is None else against, **chosen)
        if self.reports is not None:
            verdict.save(**{name: self._file(name) for name in self.formats})
        try:
            verdict.raise_if_failed()
        except MissingDependencyError as error:
            if not self.skips:
                raise
            pytest.skip(error.message)
        return verdict

    def _file(self, name: str) -> Path:
        """`reports/test_net.py_test_engine.report.html`; a second check of one test gets `-2`."""
        from trtconv.check.reporters.registry import REPORTERS

        suffixes = {r.name: r.suffix for r in REPORTERS if r.suffix}
        if name not in suffixes:
            raise InvalidRequestError(
                f"--trtconv-formats names no format '{name}'", hint="it takes: " + ", ".join(suffixes)
            )
        self._names.append(name)
        count = self._names.count(name)
        stem = re.sub(r"[^\w.-]+", "_", self.test)[-_LONGEST_NAME:].strip("_")
        return Path(self.reports or "") / f"{stem}{'' if count == 1 else f'-{count}'}{suffixes[name]}"


@pytest.fixture
def trtconv_gate(request: pytest.FixtureRequest) -> EngineGate:
    """Check an artifact with the options of this test run; see `EngineGate`."""
    config = request.config

    def value(name: str) -> Any:
        return config.getoption(f"trtconv_{name}")

    reports = value("reports")
    return EngineGate(
        {name: value(name) for name in _ARGUMENTS if value(name) is not None},
        value("against"),
        Path(reports) if reports else None,
        tuple(w.strip() for w in value("formats").split(",") if w.strip()),
        value("unrunnable") == "skip",
        request.node.nodeid,
    )
