"""`trtconv export`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions, ToleranceOptions
from trtconv.core.option import option
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.frontend.command_line import CommandLine

ALONE = "the file equals the original at these points in ONNX Runtime; nothing was rewritten, built or run for a target"


@dataclass(frozen=True)
class ExportOptions:
    """What only this command asks."""

    output: Path = field(
        default=Path("model.onnx"),
        metadata=option(
            "-o",
            "--output",
            help="The file to write.",
            group="Output",
            example="-o model.onnx",
            form="path",
            role="file",
            shows_default=True,
        ),
    )


@click.command("export", cls=ListCommand)
@click.argument("module", required=False, shell_complete=completer("factory"))
@options_of(ModuleSource, ExportRequest, ToleranceOptions, ExportOptions, ConfigOption, JsonOption, OutputOptions)
def command(module: str | None, line: CommandLine) -> None:
    """Write MODULE as an ONNX file that equals it at every sample point of the shape space.

    MODULE is path/to/file.py:factory, package.module:factory, an exported program *.pt2, or somebody's *.onnx, which is
    taken over with named dims and a reference of its own.

    \b
    trtconv export net.py:make_net -o net.onnx --input images:float32[N,3,H,W] \\
        --dynamic N=1:4:16 H=320:640:1280%32 W=320:640:1280%32
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import show
    from trtconv.frontend.assemble import load_config, original_request
    from trtconv.frontend.summary import original_summary

    output = line.of(OutputOptions)
    config = load_config(line.of(ConfigOption).config)
    request = original_request(config, module, line.of(ExportOptions).output, line)
    with ConsoleProgress(output.verbosity) as progress:
        from trtconv.originals import make_model

        progress.stage("export")
        result = make_model(request, progress)
    summary = original_summary(result)
    alone = replace(summary, lines=(*summary.lines, ("verdict", ALONE)))
    show(alone, line.of(JsonOption), quiet=output.quiet)
