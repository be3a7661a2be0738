"""`trtconv rewrite`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo, note_teller
from trtconv.cli.files import FILE
from trtconv.cli.options import ConfigOption, JsonOption, OutputOptions, StrangersListCommand
from trtconv.core.option import option
from trtconv.core.requests import RewriteRequest
from trtconv.frontend.command_line import CommandLine


@dataclass(frozen=True)
class RewriteOptions:
    """What only this command asks."""

    output: Path | None = field(
        default=None,
        metadata=option(
            "-o",
            "--output",
            help="The ONNX file to write (default: MODEL with .trt.onnx).",
            group="Output",
            example="-o model.trt.onnx",
            form="path",
            role="file",
        ),
    )
    explain: bool = field(
        default=False,
        metadata=option("--explain", help="Show what fired, what was skipped and why.", group="Output", form="flag"),
    )
    diff: bool = field(
        default=False,
        metadata=option("--diff", help="Show the nodes before and after each rewrite.", group="Output", form="flag"),
    )
    rewritten: Path | None = field(
        default=None,
        metadata=option(
            "--rewritten",
            help="An FP32 rewrite of MODEL: take its rules and proofs over, apply --precision alone.",
            group="Rewrite",
            form="path",
        ),
    )


@click.command("rewrite", cls=StrangersListCommand)
@click.argument("model", type=FILE)
@options_of(RewriteRequest, RewriteOptions, ConfigOption, JsonOption, OutputOptions)
def command(model: Path, line: CommandLine) -> None:
    """Rewrite MODEL into patterns that the target has and does well; every rewrite is proved by running it."""
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import show
    from trtconv.core.artifacts import beside, require_file
    from trtconv.frontend.assemble import load_config, rewrite_request
    from trtconv.frontend.summary import rewrite_summary

    require_file(model, "ONNX model")
    options, output = line.of(RewriteOptions), line.of(OutputOptions)
    config = load_config(line.of(ConfigOption).config)

    note = note_teller(quiet=output.quiet)
    request = rewrite_request(config, model, options.output or beside(model, ".trt.onnx"), line, note)
    request = replace(request, rewritten=options.rewritten)
    with ConsoleProgress(output.verbosity) as progress:
        from trtconv.rewrite import rewrite_model

        progress.stage("rewrite")
        result = rewrite_model(request, progress)
    summary = rewrite_summary(result)
    if options.explain:  # which tells them with their places
        lines = tuple(entry for entry in summary.lines if entry[0] not in ("rejected", "note"))
        summary = replace(summary, lines=lines)
    shows_nodes = options.explain or options.diff
    show(summary, line.of(JsonOption), quiet=output.quiet and not shows_nodes)
    if shows_nodes:
        from trtconv.rewrite.engine.explain import diff_lines, explain_lines

        for text in (explain_lines(result) if options.explain else []) + (diff_lines(result) if options.diff else []):
            echo(text)
