"""`trtconv bench`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE
from trtconv.cli.options import ConfigOption, JsonOption, OutputOptions, StrangersListCommand
from trtconv.core.option import option
from trtconv.core.requests import CheckRequest, ModuleSource
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    from trtconv.check.gate.bench import BenchReport


@dataclass(frozen=True)
class BenchOptions:
    """What only this command asks."""

    points: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--point",
            help="A sample point (default min opt max).",
            group="Check",
            example="--point opt",
            metavar="LABEL",
            many=True,
        ),
    )
    seconds: float = field(
        default=1.0,
        metadata=option(
            "--seconds",
            help="Time for each loop.",
            group="Check",
            example="--seconds 5",
            form="number",
            bounds=(0.05, 60.0),
            shows_default=True,
        ),
    )
    against: str | None = field(
        default=None,
        metadata=option(
            "--against",
            help="Measure this module in torch too: eager, compiled, CUDA graph.",
            group="Model",
            example="--against net.py:make_net",
            metavar="MODULE",
            completes="factory",
        ),
    )


@click.command("bench", cls=StrangersListCommand)
@click.argument("subject", type=FILE)
@options_of(
    CheckRequest,
    BenchOptions,
    ModuleSource,
    ConfigOption,
    JsonOption,
    OutputOptions,
    without=("--foreign-engine", "--no-source-check", "--power"),
)
def command(subject: Path, line: CommandLine) -> None:
    """Measure latency and throughput of SUBJECT (an engine or an ONNX file) at sample points, as ratios."""
    from trtconv.cli.console import ConsoleProgress, make_console
    from trtconv.cli.show import write_document
    from trtconv.frontend.assemble import load_config, module_source
    from trtconv.pipeline import bench
    from trtconv.pipeline.foreign import FileInterface

    options, output = line.of(BenchOptions), line.of(OutputOptions)
    config = load_config(line.of(ConfigOption).config)
    has_module = options.against or (config.path and config.model.module)
    source = module_source(config, options.against, line) if has_module else None
    files = line.request(CheckRequest, config, subject=subject)
    with ConsoleProgress(output.verbosity) as progress:
        progress.stage("bench")
        report = bench(
            subject,
            source,
            progress,
            interface=FileInterface(files.inputs, files.space),
            reference=files.reference,
            seconds=options.seconds,
            plugins=files.plugins,
            code=files.code,
            **({"points": options.points} if options.points else {}),
        )
    if not write_document(line.of(JsonOption).file, "bench", report.as_dict()) and not output.quiet:
        make_console().print(_table(report))
        for name, reason in report.failed.items():
            echo(f"not measured: {name}: {reason}")


def _table(report: BenchReport) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("point", "what", "device ms", "host ms", "p99 ms", "samples/s", "ratio"):
        table.add_column(heading, justify="left" if heading in ("point", "what") else "right")
    base: dict[str, float] = {}
    for entry in report.latencies:
        first = base.setdefault(entry.point, entry.host.median)
        table.add_row(
            entry.point,
            entry.subject,
            f"{entry.device.median * 1e3:.3f}",
            f"{entry.host.median * 1e3:.3f}",
            f"{entry.host.p99 * 1e3:.3f}",
            f"{entry.throughput:.0f}",
            f"{entry.host.median / first:.2f}",
        )
    return table
