"""`trtconv convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trtconv.cli.files import OUTPUT_FOLDER
from trtconv.cli.options import (
    ListCommand,
    align_option,
    build_options,
    config_option,
    export_options,
    json_flag,
    module_options,
    output_options,
    pad_option,
    rewrite_options,
    shape_options,
    tolerance_options,
    verbosity,
)


@click.command("convert", cls=ListCommand)
@click.argument("module", required=False)
@click.option(
    "-o", "--output", type=OUTPUT_FOLDER, default=Path("out"), show_default=True, help="The directory to write into."
)
@shape_options
@module_options
@export_options
@align_option
@pad_option
@rewrite_options
@build_options
@click.option("--static", is_flag=True, help="Build at the opt sizes only.")
@click.option("--force", is_flag=True, help="Convert although nothing changed; build although the engine is cached.")
@tolerance_options
@config_option
@json_flag
@output_options
def command(
    module: str | None, output: Path, config: Path | None, static: bool, as_json: bool, force: bool, **values: Any
) -> None:
    """Export, rewrite, build and check MODULE; write all files and manifests into a directory.

    \b
    trtconv convert net.py:make_net -o out --input images:float32[N,3,H,W] \\
        --dynamic N=1:4:16 H=320:640:1280%32 W=320:640:1280%32
    trtconv convert --config examples/refinedet.toml -o out
    """
    from trtconv.cli.summary import Summary, show
    from trtconv.core.conversion_stamp import FilesRead, read_stamp, write_stamp

    quiet = values["quiet"]
    spoken = {"verbose": 0, "quiet": 0}
    asked = {**values, "module": module, "config": config, "static": static, "folder": Path.cwd(), **spoken}
    before, _ = (None, "") if force else read_stamp(output, asked)
    if before is not None:
        lines = (*before.lines, ("unchanged", "nothing changed since; --force converts again"))
        show(Summary(lines, {**before.data, "unchanged": True}), as_json=as_json, quiet=quiet)
        return
    from trtconv.build.cache.store import user_cache
    from trtconv.cli.assemble import convert_request, load_config
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.summary import convert_summary
    from trtconv.pipeline import convert

    with FilesRead() as seen, ConsoleProgress(verbosity(values["verbose"], quiet)) as progress:
        request = convert_request(load_config(config), module, output, static, values)
        result = convert(request, progress, cache=None if force else user_cache())
    summary = convert_summary(result)
    if result.passed:
        source = request.export.source
        files = [str(f) for f in (source.weights, source.base / source.spec, *request.build.plugins) if f]
        write_stamp(output, asked, {*seen.paths, *files}, summary.lines, summary.data, config=config)
    show(summary, as_json=as_json, quiet=quiet)
