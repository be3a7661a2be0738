"""`trtconv build`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.files import FILE
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions
from trtconv.core.option import described_fields, option
from trtconv.core.requests import BuildRequest
from trtconv.core.requests.export import ALIGN_FLAG, ALIGN_HELP
from trtconv.frontend.command_line import CommandLine


@dataclass(frozen=True)
class BuildOptions:
    """What only this command asks."""

    output: Path | None = field(
        default=None,
        metadata=option(
            "-o",
            "--output",
            help="The engine to write (default: MODEL with .engine).",
            group="Output",
            example="-o model.engine",
            form="path",
            role="file",
        ),
    )
    align: bool = field(default=False, metadata=option(ALIGN_FLAG, help=ALIGN_HELP, group="Shapes", form="flag"))
    static: bool = field(
        default=False, metadata=option("--static", help="Build at the opt sizes only.", group="Shapes", form="flag")
    )
    no_cache: bool = field(
        default=False,
        metadata=option(
            "--no-cache",
            help="Build although the engine cache may hold this engine.",
            group="Build",
            form="flag",
        ),
    )


@click.command("build", cls=ListCommand)
@click.argument("model", type=FILE)
@options_of(BuildRequest, BuildOptions, ConfigOption, JsonOption, OutputOptions)
def command(model: Path, line: CommandLine) -> None:
    """Build an engine from MODEL: with --dynamic (or a config) for a range of shapes, else or with --static at opt.

    \b
    trtconv build model.trt.onnx -o model.engine --dynamic
    trtconv build other.onnx -o other.engine --input x:float32[N,3,H,W] --dynamic N=1:4:8 H=32:64:128 W=32:64:128
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import show
    from trtconv.core.artifacts import beside
    from trtconv.core.errors import InvalidRequestError
    from trtconv.frontend.assemble import build_request, load_config
    from trtconv.frontend.summary import build_summary
    from trtconv.pipeline import aligned_build

    options, output = line.of(BuildOptions), line.of(OutputOptions)
    config = load_config(line.of(ConfigOption).config)
    has_ranges = line.has(described_fields(BuildRequest)["dynamic"])
    if options.static and has_ranges:
        raise InvalidRequestError("--static and --dynamic exclude each other", hint="leave out one of them")
    is_dynamic = not options.static and (has_ranges or bool(config.path and config.build.dynamic))
    dynamic = line.field_value(BuildRequest, "dynamic", config) if is_dynamic else None
    request = build_request(config, model, options.output or beside(model, ".engine"), dynamic, line)
    with ConsoleProgress(output.verbosity) as progress:
        from trtconv.build.cache.lookup import build_cached
        from trtconv.build.cache.store import user_cache

        progress.stage("build")
        if options.align:
            request = aligned_build(request, progress)
        built = build_cached(request, progress, cache=None if options.no_cache else user_cache())
    summary = build_summary(built.result)
    lines = (*summary.lines, ("cache", built.reason))
    data = {**summary.data, "cached": built.hit, "cache": built.reason}
    show(replace(summary, lines=lines, data=data), line.of(JsonOption), quiet=output.quiet)
