"""`trtconv export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trtconv.cli.files import OUTPUT_FILE
from trtconv.cli.options import (
    ListCommand,
    align_option,
    config_option,
    export_options,
    json_flag,
    module_options,
    output_options,
    pad_option,
    shape_options,
    tolerance_options,
    verbosity,
)


@click.command("export", cls=ListCommand)
@click.argument("module", required=False)
@click.option(
    "-o", "--output", type=OUTPUT_FILE, default=Path("model.onnx"), show_default=True, help="The file to write."
)
@shape_options
@module_options
@export_options
@align_option
@pad_option
@tolerance_options
@config_option
@json_flag
@output_options
def command(module: str | None, output: Path, config: Path | None, as_json: bool, **values: Any) -> None:
    """Write MODULE as an ONNX file that equals it at every sample point of the shape space.

    MODULE is path/to/file.py:factory, package.module:factory or an exported program *.pt2.

    \b
    trtconv export net.py:make_net -o net.onnx --input images:float32[N,3,H,W] \\
        --dynamic N=1:4:16 H=320:640:1280%32 W=320:640:1280%32
    """
    from trtconv.cli.assemble import export_request, load_config
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.summary import export_summary, show

    request = export_request(load_config(config), module, output, values)
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        from trtconv.export import export_model

        progress.stage("export")
        result = export_model(request, progress)
    show(export_summary(result), as_json=as_json, quiet=values["quiet"])
