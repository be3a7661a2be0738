"""Options that a command line and a Python call give alike, and that are not fields of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.option import option

OUTPUT_FOLDER = option(
    "-o",
    "--output",
    help="The directory to write into.",
    group="Output",
    example="-o out",
    form="path",
    role="folder",
    shows_default=True,
)


@dataclass(frozen=True)
class ToleranceOptions:
    """A tolerance for all outputs; None leaves it to the config or the default."""

    rtol: float | None = field(
        default=None,
        metadata=option(
            "--rtol",
            help="Relative tolerance (default: the noise floor).",
            group="Check",
            example="--rtol 1e-3",
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
            example="--baseline baseline.json",
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

    baseline_engine: Path | None = field(
        default=None,
        metadata=option(
            "--baseline-engine",
            help="Fail when SUBJECT is slower than this earlier file, measured in turn.",
            group="Check",
            form="path",
        ),
    )
    processes: int = field(
        default=7,
        metadata=option(
            "--processes",
            help="With --baseline-engine: how many processes each of both gets.",
            group="Check",
            form="integer",
            bounds=(4, 100),
            shows_default=True,
        ),
    )


@dataclass(frozen=True)
class ConfigOption:
    """The config of a command; `Config()` where none is named."""

    config: Path | None = field(
        default=None,
        metadata=option(
            "--config",
            help="A trtconv.toml; options given here win over it.",
            group="Model",
            example="--config trtconv.toml",
            form="path",
        ),
    )


@dataclass(frozen=True)
class ConversionOptions:
    """What a conversion takes besides the requests of its rooms."""

    output: Path = field(default=Path("out"), metadata=OUTPUT_FOLDER)
    static: bool = field(
        default=False, metadata=option("--static", help="Build at the opt sizes only.", group="Shapes", form="flag")
    )
    force: bool = field(
        default=False,
        metadata=option(
            "--force",
            help="Convert although nothing changed; build although the engine is cached.",
            group="Output",
            form="flag",
        ),
    )


@dataclass(frozen=True)
class TuneOptions:
    """Where `trtconv tune` writes, and whether it repeats an earlier choice."""

    output: Path = field(default=Path("out"), metadata=OUTPUT_FOLDER)
    repeat: Path | None = field(
        default=None,
        metadata=option(
            "--repeat",
            help="Take the choice of this model.tune.json, judge it again and search nothing.",
            group="Build",
            form="path",
        ),
    )
