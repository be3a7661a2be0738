"""`trtconv convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trtconv.cli.options import (
    FILE,
    ListCommand,
    build_options,
    config_option,
    export_options,
    json_flag,
    module_options,
    output_options,
    rewrite_options,
    shape_options,
    tolerance_options,
    verbosity,
)


@click.command("convert", cls=ListCommand)
@click.argument("module", required=False)
@click.option("-o", "--output", type=FILE, default=Path("out"), show_default=True, help="The directory to write into.")
@shape_options
@module_options
@export_options
@rewrite_options
@build_options
@click.option("--static", is_flag=True, help="Build at the opt sizes only.")
@tolerance_options
@config_option
@json_flag
@output_options
def command(module: str | None, output: Path, config: Path | None, static: bool, as_json: bool, **values: Any) -> None:
    """Export, rewrite, build and check MODULE; write all files and manifests into a directory.

    \b
    trtconv convert net.py:make_net -o out --input images:float32[N,3,H,W] \\
        --dynamic N=1:4:16 H=320:640:1280%32 W=320:640:1280%32
    trtconv convert --config examples/refinedet.toml -o out
    """
    from trtconv.cli.assemble import convert_request, load_config
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.summary import convert_summary, show
    from trtconv.pipeline import convert

    request = convert_request(load_config(config), module, output, static, values)
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        result = convert(request, progress)
    show(convert_summary(result), as_json=as_json, quiet=values["quiet"])
