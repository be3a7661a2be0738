"""Options that a command line and a Python call give alike, and that are no fields of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.option import option


@dataclass(frozen=True)
class ToleranceOptions:
    """A tolerance for all outputs; None leaves it to the config or the default."""

    rtol: float | None = field(
        default=None,
        metadata=option(
            "--rtol",
            help="Relative tolerance (default: the noise floor).",
            group="Check",
            form="number",
            bounds=(0.0, 1e30),
        ),
    )
    atol: float | None = field(
        default=None,
        metadata=option(
            "--atol",
            help="Absolute tolerance (default: the noise floor).",
            group="Check",
            form="number",
            bounds=(0.0, 1e30),
        ),
    )


@dataclass(frozen=True)
class GateOptions:
    """An earlier report as a limit; the budgets stand in the config."""

    baseline: Path | None = field(
        default=None,
        metadata=option(
            "--baseline",
            help="Fail when errors, latency or sizes grew against this earlier report.",
            group="Check",
            form="path",
            role="update",
        ),
    )
    update_baseline: bool = field(
        default=False,
        metadata=option(
            "--update-baseline",
            help="Write the report to --baseline instead of comparing.",
            group="Check",
            form="flag",
        ),
    )
