"""The verdict of a check as plain data, from which every reporter prints. JSON schema version in `SCHEMA`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trtconv.core.errors import AccuracyError
from trtconv.core.tolerance import Tolerance

SCHEMA = 1
# How the finding begins that a check leaves where an engine cannot run.
ENGINE_NOT_RUN = "the engine was not run here"


@dataclass(frozen=True)
class OutputComparison:
    """The errors of one output at one point. Errors are None when shapes differ (nothing could be compared).

    `max_scaled` is the largest error in units of `scale + |expected|`, where `scale` is the magnitude of the element's
    column; `max_share` is the largest share that an error has of what is allowed there, and `allowed` the median of
    that. `expected_range` holds the lowest and the highest finite value.
    """

    output: str
    point: str
    passed: bool
    reason: str
    expected_shape: tuple[int, ...]
    actual_shape: tuple[int, ...]
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    mismatched: float | None = None
    at: tuple[int, ...] = ()
    expected_at: float | None = None
    actual_at: float | None = None
    max_scaled: float | None = None
    max_share: float | None = None
    allowed: float | None = None
    expected_range: tuple[float, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; non-finite numbers become strings, since JSON has none."""
        return {k: _plain(v) for k, v in asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value - value != 0.0:
        return str(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Finding:
    """Something that a check found besides numbers: kind is an error `kind`, level is error, warning or note."""

    level: str
    kind: str
    message: str
    hint: str = ""
    node: str = ""
    module: str = ""
    source: str = ""


@dataclass(frozen=True)
class CheckReport:
    """All comparisons of one subject against one reference, with the environment in which they were made.

    `original` is what the reference is of, in words: the module, the ONNX file.
    """

    subject: str
    subject_kind: str
    reference: str
    runner: str
    tolerance: Tolerance
    comparisons: tuple[OutputComparison, ...]
    advisory: tuple[OutputComparison, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    environment: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)
    static: bool = False
    original: str = "the original"

    def __repr__(self) -> str:
        """The subject, how many comparisons passed, and what was found; `comparisons` has each."""
        verdict = "passed" if self.passed else "failed"
        equal = sum(c.passed for c in self.comparisons)
        counts = f"{equal} of {len(self.comparisons)} comparisons with {self.original} passed"
        levels = Counter(f.level for f in self.findings)
        counted = "".join(f", {count} {level}{'s' * (count != 1)}" for level, count in levels.items())
        return f"<CheckReport {self.subject}: {verdict}, {counts}{counted}>"

    @property
    def passed(self) -> bool:
        """True when something was compared, nothing differs and no finding is an error.

        A `static` report is about the graph alone and compares nothing.
        """
        compared = bool(self.comparisons) or self.static
        return compared and all(c.passed for c in self.comparisons) and not self.errors

    @property
    def exit_code(self) -> int:
        """0 when it passed, else that of what is worst: environment 5, unsupported 4, usage 2, accuracy 3, budget 6."""
        if self.passed:
            return 0
        kinds = {f.kind for f in self.errors}
        for kind, code in (("environment", 5), ("unsupported", 4), ("usage", 2)):
            if kind in kinds:
                return code
        if any(not c.passed for c in self.comparisons) or "accuracy" in kinds:
            return AccuracyError.exit_code
        return 6 if "budget" in kinds else 1

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of level error."""
        return tuple(f for f in self.findings if f.level == "error")

    @property
    def worst(self) -> OutputComparison | None:
        """The comparison with the largest absolute error; one without numbers (a shape differs) comes first."""
        order = sorted(self.comparisons, key=lambda c: -1.0 if c.max_abs is None else 1.0 / (1e-300 + c.max_abs))
        return order[0] if order else None
