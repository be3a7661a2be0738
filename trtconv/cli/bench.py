"""`trtconv bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtconv.cli.options import FILE, ListCommand, config_option, module_options, output_options, verbosity

if TYPE_CHECKING:
    from trtconv.check.bench import BenchReport


@click.command("bench", cls=ListCommand)
@click.argument("engine", type=FILE)
@click.option("--against", metavar="MODULE", help="Measure this module in torch too: eager, compiled, CUDA graph.")
@click.option("--model", type=FILE, help="Measure this ONNX file in ONNX Runtime's CUDA provider too.")
@click.option("--point", "points", multiple=True, type=click.Choice(["min", "opt", "max"]), help="Default opt.")
@click.option("--seconds", type=float, default=1.0, show_default=True, help="Length of each timing loop.")
@click.option("--no-cuda-graph", is_flag=True, help="Leave the runs with CUDA graphs out.")
@click.option("--plugin", "plugin_libraries", multiple=True, type=FILE, help="A plugin library that the engine needs.")
@click.option("--json", "json_file", type=FILE, help="Write JSON (- for stdout).")
@module_options
@config_option
@output_options
def command(engine: Path, against: str | None, config: Path | None, json_file: Path | None, **values: Any) -> None:
    """Latency percentiles and throughput of ENGINE, at the points of its profiles, beside torch's.

    Device time is between two CUDA events around a launch, host time from the call to the result. Inputs are on the
    GPU before the clock starts.
    """
    from trtconv.check.bench import BenchRequest, bench_engine
    from trtconv.cli.assemble import load_config, module_source
    from trtconv.cli.console import ConsoleProgress
    from trtconv.core.artifacts import write_json

    settings = load_config(config)
    wanted = against or settings.model.module
    request = BenchRequest(
        engine=engine,
        plugins=tuple(values["plugin_libraries"]),
        points=tuple(values["points"]) or ("opt",),
        cuda_graph=(False,) if values["no_cuda_graph"] else (False, True),
        seconds=values["seconds"],
        model=values["model"],
    )
    source = module_source(settings, against, values) if wanted else None
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        progress.stage("bench")
        report = bench_engine(request, progress, torch_measure=_torch(source, request.seconds) if source else None)
    if json_file is not None and str(json_file) != "-":
        write_json(json_file, report.as_dict())
    if str(json_file) == "-":
        click.echo(json.dumps(report.as_dict(), indent=1))
    elif not values["quiet"]:
        _print(report)


def _torch(source: Any, seconds: float) -> Any:
    from trtconv.backends.torch_latency import measure_torch
    from trtconv.export.module_source import load_module

    module = load_module(source)

    def run(inputs: Any, point: str, batch: int, tf32: bool) -> Any:
        return measure_torch(module, inputs, point=point, batch=batch, tf32=tf32, seconds=seconds)

    return run


def _print(report: BenchReport) -> None:
    head = f"{'':24} {'point':14} {'device ms':>10} {'p99':>8} {'host ms':>8} {'p99':>8} {'samples/s':>10} {'ratio':>6}"
    click.echo(head)
    for row in report.rows:
        times = (row.device.median, row.device.p99, row.host.median, row.host.p99)
        cells = "{:10.4f} {:8.4f} {:8.4f} {:8.4f}".format(*(t * 1e3 for t in times))
        click.echo(f"{row.subject:24} {row.point:14} {cells} {row.throughput:10.0f} {report.ratio(row):6.2f}")
    for what, why in report.failures.items():
        click.echo(f"not measured: {what}: {why}")
    if report.clocks and report.clocks[-1]:
        state = report.clocks[-1]
        click.echo(f"clocks after: SM {state.get('clocks.sm')} of {state.get('clocks.max.sm')}, {state.get('pstate')}")
    click.echo(f"{report.runner}; TF32 {'on' if report.tf32 else 'off'}; ratio is device time over the engine's")
