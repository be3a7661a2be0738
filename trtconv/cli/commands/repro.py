"""`trtconv repro`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE
from trtconv.cli.options import ConfigOption, JsonOption, OutputOptions, StrangersListCommand, ToleranceOptions
from trtconv.core.option import option
from trtconv.core.precision import FP32, TYPED_NAMES
from trtconv.core.requests import CheckRequest
from trtconv.frontend.command_line import CommandLine


@dataclass(frozen=True)
class ReproOptions:
    """What only this command asks."""

    output: Path = field(
        default=Path("repro"),
        metadata=option(
            "-o",
            "--output",
            help="A folder, or a .zip file.",
            group="Output",
            example="-o repro",
            form="path",
            role="folder or file",
            shows_default=True,
        ),
    )
    kind: str = field(
        default="auto",
        metadata=option(
            "--kind",
            help="The failure to look for; engine needs a GPU.",
            group="Check",
            example="--kind accuracy",
            form="choice",
            choices=("auto", "accuracy", "run", "build", "engine"),
            shows_default=True,
        ),
    )
    backend: str = field(
        default="auto",
        metadata=option(
            "--backend", help="What builds.", group="Build", form="choice", choices=("auto", "tensorrt", "tensorrt-rtx")
        ),
    )
    precision: str = field(
        default=FP32.name,
        metadata=option(
            "--precision",
            help="Element type (default: fp32).",
            group="Build",
            example="--precision fp16",
            form="choice",
            choices=TYPED_NAMES,
        ),
    )


@click.command("repro", cls=StrangersListCommand)
@click.argument("subject", type=FILE)
@options_of(
    CheckRequest,
    ReproOptions,
    ToleranceOptions,
    ConfigOption,
    JsonOption,
    OutputOptions,
    without=("--plugin", "--foreign-engine", "--no-source-check", "--power"),
)
def command(subject: Path, line: CommandLine) -> int:
    """Cut the smallest failing part out of SUBJECT, for a bug report: ONNX, inputs, expected outputs, the command.

    Exit code 0 when a failure was found and written, 1 when nothing fails.
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import write_document
    from trtconv.core.sizes import format_bytes
    from trtconv.frontend.assemble import load_config, tolerance_of
    from trtconv.pipeline import repro as find_repro

    options, output = line.of(ReproOptions), line.of(OutputOptions)
    config = load_config(line.of(ConfigOption).config)
    request = line.request(CheckRequest, config, subject=subject, tolerance=tolerance_of(config, line))
    with ConsoleProgress(output.verbosity) as progress:
        progress.stage("repro")
        repro = find_repro(
            request,
            options.output,
            kind=options.kind,
            backend=options.backend,
            precision=options.precision,
            progress=progress,
        )
    if repro is None:
        echo(f"nothing fails: '{subject}' runs, equals its original and builds", err=True)
        return 1
    # `kind` is the document's.
    facts = {"failure" if name == "kind" else name: value for name, value in vars(repro).items()}
    if not write_document(line.of(JsonOption).file, "repro", facts) and not output.quiet:
        sizes = f"{format_bytes(repro.bytes)} of {format_bytes(repro.bytes_before)}"
        echo(f"failure   {repro.kind}: {repro.reason}")
        echo(f"cut       {repro.nodes} of {repro.nodes_before} nodes, {sizes}")
        if repro.source:
            echo(f"from      {repro.source}")
        echo(f"files     {repro.folder}")
    return 0
