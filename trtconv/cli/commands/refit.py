"""`trtconv refit`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.files import FILE
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions, ToleranceOptions
from trtconv.core.option import option
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.requests.check import ALLOW_CODE
from trtconv.core.text.listing import list_first
from trtconv.core.trust.trust import NO_CODE, EngineCode
from trtconv.frontend.command_line import CommandLine
from trtconv.frontend.options import OUTPUT_FOLDER

if TYPE_CHECKING:
    from trtconv.frontend.summary import Summary
    from trtconv.pipeline.refit import RefittedSet


@dataclass(frozen=True)
class RefitOptions:
    """What only this command asks."""

    output: Path = field(default=Path("refitted"), metadata=OUTPUT_FOLDER)
    plugins: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "--plugin",
            help="A plugin library to load.",
            group="Build",
            example="--plugin libdetections.so",
            form="path",
            many=True,
        ),
    )
    code: EngineCode = field(default=NO_CODE, metadata=ALLOW_CODE)


@click.command("refit", cls=ListCommand)
@click.argument("engine", type=FILE)
@click.argument("module", required=False, shell_complete=completer("factory"))
@options_of(
    ModuleSource,
    ExportRequest,
    RefitOptions,
    ToleranceOptions,
    ConfigOption,
    JsonOption,
    OutputOptions,
    without=("--align", "--pad-to-multiple"),
)
def command(engine: Path, module: str | None, line: CommandLine) -> None:
    """Give ENGINE the weights of MODULE, or of an ONNX file, and prove it again; write it with its set, or nothing.

    \b
    trtconv convert net.py:make --input x:float32[N,1,8,8] --dynamic N=1:8:32 --option refit=true -o out
    trtconv refit out/model.engine net.py:make --weights new.safetensors -o refitted
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import show
    from trtconv.frontend.assemble import load_config, refit_request
    from trtconv.pipeline.refit import refit

    options, output = line.of(RefitOptions), line.of(OutputOptions)
    config = load_config(line.of(ConfigOption).config)
    with ConsoleProgress(output.verbosity) as progress:
        request = refit_request(config, engine, module, options.output, line)
        result = refit(replace(request, plugins=options.plugins, code=options.code), progress)
    show(_summary(engine, result), line.of(JsonOption), quiet=output.quiet)


def _summary(engine: Path, result: RefittedSet) -> Summary:
    from trtconv.frontend.summary import Summary, worst_error

    changed = result.refit.weights
    lines = (
        ("weights", f"{len(changed)} of '{engine}' replaced: {list_first(changed)}" if changed else "none differ"),
        ("checked", worst_error(result.report.comparisons)),
        ("files", f"{result.files[0].parent}/: " + ", ".join(p.name for p in result.files)),
    )
    data = {"engine": str(engine), "weights": list(changed), "files": list(result.files)}
    return Summary("refit", lines, data)
