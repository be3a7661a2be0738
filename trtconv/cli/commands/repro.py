"""`trtconv repro`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_FOLDER_OR_FILE, FileCommand
from trtconv.cli.options import config_option, json_flag, output_options, tolerance_options, verbosity


@click.command("repro", cls=FileCommand)
@click.argument("subject", type=FILE)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER_OR_FILE,
    default=Path("repro"),
    show_default=True,
    help="A folder, or a .zip file.",
)
@click.option(
    "--kind", type=click.Choice(["auto", "accuracy", "run", "build", "engine"]), default="auto", show_default=True,
    help="The failure to look for; engine needs a GPU.",
)  # fmt: skip
@click.option("--reference", type=FILE, help="Reference file (default: the one beside SUBJECT).")
@click.option("--backend", type=click.Choice(["auto", "tensorrt", "tensorrt-rtx"]), default="auto", help="What builds.")
@click.option("--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32", help="Element type.")
@tolerance_options
@config_option
@json_flag
@output_options
def command(
    subject: Path, output: Path, kind: str, reference: Path | None, config: Path | None, as_json: bool, **values: Any
) -> int:
    """Cut the smallest failing part out of SUBJECT, for a bug report: ONNX, inputs, expected outputs, the command.

    Exit code 0 when a failure was found and written, 1 when nothing fails.
    """
    from trtconv.check.repro.cut import make_repro
    from trtconv.cli.assemble import load_config, tolerance
    from trtconv.cli.console import ConsoleProgress
    from trtconv.core.requests import CheckRequest
    from trtconv.core.sizes import format_bytes

    chosen = tolerance(load_config(config).check, values["rtol"], values["atol"])
    request = CheckRequest(subject=subject, reference=reference, tolerance=chosen)
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        progress.stage("repro")
        found = make_repro(
            request, output, kind=kind, backend=values["backend"], precision=values["precision"], progress=progress
        )
    if found is None:
        echo(f"nothing fails: '{subject}' runs, equals its reference and builds", err=True)
        return 1
    if as_json:
        echo(json.dumps({**vars(found), "folder": str(found.folder)}, indent=1, sort_keys=True))
    elif not values["quiet"]:
        echo(f"failure   {found.kind}: {found.reason}")
        echo(f"cut       {found.nodes} of {found.nodes_before} nodes, {format_bytes(found.bytes)} of "
                   f"{format_bytes(found.bytes_before)}")  # fmt: skip
        if found.source:
            echo(f"from      {found.source}")
        echo(f"files     {found.folder}")
    return 0
