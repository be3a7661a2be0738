"""`trtconv sweep`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, FileCommand
from trtconv.cli.options import JsonOption, OutputOptions
from trtconv.core.option import option
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    from trtconv.sweep import Plan, SweepRequest, SweepResult

# What is printed of the red cells.
MOST_RED = 10


@dataclass(frozen=True)
class SweepOptions:
    """What this command asks."""

    output: Path = field(
        default=Path("atlas"),
        metadata=option(
            "-o",
            "--output",
            help="The atlas: ledger, store and pages.",
            group="Output",
            example="-o atlas",
            form="path",
            role="folder",
            shows_default=True,
        ),
    )
    plan: bool = field(
        default=False,
        metadata=option("--plan", help="Show jobs, resources and hours; run nothing.", group="Output", form="flag"),
    )
    only: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--only",
            help="These cells alone: model=PATTERN,precision=fp16 or a pattern of the whole id.",
            group="Cells",
            example="--only model=resnet*,precision=fp16",
            metavar="PATTERN",
            many=True,
        ),
    )
    resume: bool = field(
        default=False,
        metadata=option(
            "--resume",
            help="Go on with the last sweep into this atlas.",
            group="Cells",
            example="--resume",
            form="flag",
        ),
    )
    retry: str = field(
        default="",
        metadata=option(
            "--retry",
            help="Run again in the last sweep: all that failed, or what the machines spoilt.",
            group="Cells",
            form="choice",
            choices=("failed", "faults"),
        ),
    )
    address: str | None = field(
        default=None,
        metadata=option(
            "--address",
            help="A Ray cluster (default: start Ray on this machine).",
            group="Machines",
            example="--address 10.0.0.5:6379",
            metavar="HOST:PORT",
        ),
    )
    workers: int | None = field(
        default=None,
        metadata=option(
            "--workers",
            help="CPUs that a Ray of our own may use (default: all).",
            group="Machines",
            form="integer",
            bounds=(1, 100_000),
        ),
    )
    junit: Path | None = field(
        default=None,
        metadata=option(
            "--junit", help="Write JUnit XML, a case per cell.", group="Output", form="path", role="report"
        ),
    )


@click.command("sweep", cls=FileCommand)
@click.argument("file", type=FILE)
@options_of(SweepOptions, JsonOption, OutputOptions)
def command(file: Path, line: CommandLine) -> int:
    """Build and check the matrix that FILE (a sweep.toml) describes; write an atlas of what holds.

    Exit code 0 when no cell is red, else that of the worst: 3 accuracy, 4 unsupported, 6 over budget, 5 environment,
    2 usage, 1 failed or not run.

    \b
    trtconv sweep sweep.toml --plan
    trtconv sweep sweep.toml -o atlas --junit sweep.xml
    trtconv sweep sweep.toml -o atlas --resume
    """
    from trtconv.sweep import SweepRequest, plan_sweep

    options, output = line.of(SweepOptions), line.of(OutputOptions)
    request = SweepRequest(
        file, options.output, options.only, options.resume, options.retry, options.address, options.workers
    )
    if options.plan:
        _show_plan(plan_sweep(request), line.of(JsonOption).file)
        return 0
    return _run(request, options, line.of(JsonOption).file, output)


def _run(request: SweepRequest, options: SweepOptions, json_file: Path | None, output: OutputOptions) -> int:
    import sys

    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import write_document
    from trtconv.cli.sweep_view import LiveView, PlainView
    from trtconv.core.artifacts import read_json, write_report_text
    from trtconv.sweep import plan_sweep, run_sweep
    from trtconv.sweep.atlas.junit import junit_xml
    from trtconv.sweep.atlas.summary import append_summary, markdown_text
    from trtconv.sweep.engine.verdicts import exit_code

    plan = plan_sweep(request)
    live = sys.stderr.isatty() and not output.quiet
    progress = ConsoleProgress(min(0, output.verbosity))
    with LiveView(plan.graph) if live else PlainView(quiet=output.quiet) as view:
        result = run_sweep(request, view, progress)
    name = plan.sweep.sweep.name
    if options.junit is not None:
        write_report_text(options.junit, junit_xml(name, result.verdicts))
    facts = {n: v for n, v in read_json(result.atlas.data).items() if n not in ("schema", "kind")}
    on_stdout = write_document(json_file, "sweep", facts)
    append_summary(markdown_text(name, result.verdicts, result.atlas.changes))
    if not output.quiet and not on_stdout:
        _show_result(result)
    if result.interrupted:
        raise KeyboardInterrupt
    return exit_code(result.verdicts)


def _show_result(result: SweepResult) -> None:
    from trtconv.sweep.atlas.badge import count_states

    counts = count_states(result.verdicts)
    for change in result.atlas.changes[:MOST_RED]:
        echo(f"{change.kind:<8} {change.cell}  {change.text}")
    red = [v for v in result.verdicts if v.state == "red"]
    for verdict in red[:MOST_RED]:
        first = verdict.message.split("\n", 1)[0]
        echo(f"red      {verdict.cell.id}  {verdict.reason}" + (f": {first}" if first else ""))
    if len(red) > MOST_RED:
        echo(f"         and {len(red) - MOST_RED} more")
    echo(", ".join(f"{n} {state}" for state, n in counts.items() if n) + f"  {result.atlas.index}")


def _show_plan(plan: Plan, destination: Path | None) -> None:
    from trtconv.cli.show import write_document

    if write_document(destination, "sweep-plan", _plan_data(plan)):
        return
    for note in plan.matrix.notes:
        echo(f"note: {note}", err=True)
    echo(f"{len(plan.matrix.cells)} cells of {len(plan.matrix.models)} models, {len(plan.graph.jobs)} jobs")
    echo(f"{'job':<9}{'where':<12}{'jobs':>6}  {'hours':>9}  {'price':>9}")
    for e in plan.estimates:
        hours = "unknown" if e.hours is None else f"{e.hours:.2f}"
        price = "" if e.price is None else f"{e.price:.2f}"
        echo(f"{e.kind:<9}{e.resource_class:<12}{e.jobs:>6}  {hours:>9}  {price:>9}".rstrip())
    timed = [e.hours for e in plan.estimates if e.hours is not None]
    unknown = "" if len(timed) == len(plan.estimates) else " and what is unknown"
    echo(f"in all {sum(timed):.2f} hours{unknown}" if timed else "no job was timed yet: run the sweep once")


def _plan_data(plan: Plan) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "cells": [c.id for c in plan.matrix.cells],
        "notes": list(plan.matrix.notes),
        "estimates": [asdict(e) for e in plan.estimates],
        "jobs": [
            {
                "id": j.id,
                "kind": j.kind,
                "needs": list(j.needs),
                "cpus": j.cpus,
                "accelerator": j.accelerator,
                "seconds": j.seconds,
            }
            for j in plan.graph.jobs.values()
        ],
    }
