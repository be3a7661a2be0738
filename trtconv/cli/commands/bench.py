"""`trtconv bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_REPORT
from trtconv.cli.options import ListCommand, Number, config_option, module_options, output_options, verbosity

if TYPE_CHECKING:
    from trtconv.check.gate.bench import BenchReport


@click.command("bench", cls=ListCommand)
@click.argument("subject", type=FILE)
@click.option("--reference", type=FILE, help="Reference file with the inputs (default: the one beside SUBJECT).")
@click.option("--point", "points", multiple=True, metavar="LABEL", help="A sample point (default min opt max).")
@click.option("--seconds", type=Number(0.05, 60.0), default=1.0, show_default=True, help="Time for each loop.")
@click.option("--against", metavar="MODULE", help="Measure this module in torch too: eager, compiled, CUDA graph.")
@click.option("--plugin", "plugin_libraries", multiple=True, type=FILE, help="A plugin library that the engine needs.")
@click.option("--json", "json_file", type=OUTPUT_REPORT, help="Write all percentiles as JSON (- for stdout).")
@module_options
@config_option
@output_options
def command(
    subject: Path,
    reference: Path | None,
    points: tuple[str, ...],
    seconds: float,
    against: str | None,
    json_file: Path | None,
    config: Path | None,
    **values: Any,
) -> None:
    """Measure latency and throughput of SUBJECT (an engine or an ONNX file) at sample points, as ratios."""
    from trtconv.cli.assemble import load_config, module_source
    from trtconv.cli.console import ConsoleProgress, make_console
    from trtconv.core.artifacts import write_report_json
    from trtconv.pipeline import bench

    settings = load_config(config)
    source = module_source(settings, against, values) if against or (config and settings.model.module) else None
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        progress.stage("bench")
        report = bench(
            subject, source, progress, reference=reference, seconds=seconds,
            plugins=tuple(values["plugin_libraries"]), **({"points": points} if points else {}),
        )  # fmt: skip
    if json_file is not None and str(json_file) == "-":
        echo(json.dumps(report.as_dict(), indent=1))
        return
    if json_file is not None:
        write_report_json(json_file, report.as_dict())
    if not values["quiet"]:
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
            entry.point, entry.subject, f"{entry.device.median * 1e3:.3f}", f"{entry.host.median * 1e3:.3f}",
            f"{entry.host.p99 * 1e3:.3f}", f"{entry.throughput:.0f}", f"{entry.host.median / first:.2f}",
        )  # fmt: skip
    return table
