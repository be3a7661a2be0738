"""`trtconv convert`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.command_line import CommandLine
from trtconv.cli.completion import completer
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions, ToleranceOptions
from trtconv.core.option import option
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest


@dataclass(frozen=True)
class ConvertOptions:
    """What only this command asks."""

    output: Path = field(
        default=Path("out"),
        metadata=option(
            "-o",
            "--output",
            help="The directory to write into.",
            group="Output",
            form="path",
            role="folder",
            shows_default=True,
        ),
    )
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


@click.command("convert", cls=ListCommand)
@click.argument("module", required=False, shell_complete=completer("factory"))
@options_of(
    ModuleSource, ExportRequest, BuildRequest, RewriteRequest, ToleranceOptions, ConvertOptions, ConfigOption,
    JsonOption, OutputOptions,
)  # fmt: skip
def command(module: str | None, line: CommandLine) -> None:
    """Export, rewrite, build and check MODULE, or an ONNX file; write all files and manifests into a directory.

    \b
    trtconv convert net.py:make_net -o out --input images:float32[N,3,H,W] \\
        --dynamic N=1:4:16 H=320:640:1280%32 W=320:640:1280%32
    trtconv convert third.onnx -o out --dynamic N=1:1:4
    trtconv convert --config examples/refinedet.toml -o out
    """
    from trtconv.cli.summary import Summary, show
    from trtconv.core.files.conversion_stamp import FilesRead, read_stamp, write_stamp
    from trtconv.core.files.set_lock import locked_set

    options, output, as_json = line.of(ConvertOptions), line.of(OutputOptions), line.of(JsonOption).as_json
    # Everything that decides the files, not how much is said about them.
    silent = {"verbose": 0, "quiet": 0, "json": 0, "force": 0, "output": 0}
    request_key = {**line.values, "module": module, "folder": Path.cwd(), **silent}
    stamp, _ = (None, "") if options.force else read_stamp(options.output, request_key)
    if stamp is not None:
        lines = (*stamp.lines, ("unchanged", "nothing changed since; --force converts again"))
        show(Summary(lines, {**stamp.data, "unchanged": True}), as_json=as_json, quiet=output.quiet)
        return
    from trtconv.build.cache.store import user_cache
    from trtconv.cli.assemble import convert_request, load_config
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.summary import convert_summary
    from trtconv.pipeline import convert
    from trtconv.pipeline.originals import original_files

    with FilesRead() as files_read, ConsoleProgress(output.verbosity) as progress:
        config = load_config(line.of(ConfigOption).config)
        request = convert_request(config, module, options.output, options.static, line)
        # Until the stamp is written: it says which files belong together.
        with locked_set(request.build.output):
            result = convert(request, progress, cache=None if options.force else user_cache())
            summary = convert_summary(result)
            if result.passed:
                files = [str(f) for f in (*original_files(request.export), *request.build.plugins)]
                read = {*files_read.paths, *files}
                write_stamp(options.output, request_key, read, summary.lines, summary.data, config=config.path)
    show(summary, as_json=as_json, quiet=output.quiet)
