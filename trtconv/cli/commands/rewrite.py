"""`trtconv rewrite`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_FILE
from trtconv.cli.options import (
    ListCommand,
    align_option,
    config_option,
    json_flag,
    output_options,
    pad_option,
    rewrite_options,
    verbosity,
)


@click.command("rewrite", cls=ListCommand)
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, help="The ONNX file to write (default: MODEL with .trt.onnx).")
@rewrite_options
@click.option("--precision", type=click.Choice(["fp32", "fp16", "bf16"]), help="Type the graph (default: as it is).")
@click.option("--dynamic", multiple=True, metavar="NAME=MIN:OPT:MAX[%MULTIPLE]", help="Ranges of the dims.")
@align_option
@pad_option
@click.option(
    "--plugin", "plugin_libraries", multiple=True, type=FILE,
    help="A library that build will load, for --plugins auto; rewrite loads nothing.",
)  # fmt: skip
@click.option("--explain", is_flag=True, help="Show what fired, what was skipped and why.")
@click.option("--diff", is_flag=True, help="Show the nodes before and after each rewrite.")
@config_option
@json_flag
@output_options
def command(
    model: Path, output: Path | None, config: Path | None, explain: bool, diff: bool, as_json: bool, **values: Any
) -> None:
    """Rewrite MODEL into patterns that the target has and does well; every rewrite is proved by running it."""
    import dataclasses

    from trtconv.cli.assemble import load_config, rewrite_request
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.summary import rewrite_summary, show
    from trtconv.core.artifacts import beside, require_file
    from trtconv.core.shape_space.space import parse_space
    from trtconv.pipeline import default_target

    require_file(model, "ONNX model")
    settings = load_config(config)
    target = values.get("target") or settings.rewrite.target or default_target(settings.build.backend)
    request = rewrite_request(settings, model, output or beside(model, ".trt.onnx"), target, values)
    request = dataclasses.replace(
        request,
        precision=values["precision"] or settings.build.precision,
        space=parse_space(t for t in values["dynamic"] if t),
        align=values["align"],
        pad_to_multiple=values["pad_to_multiple"] or "",
    )
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        from trtconv.rewrite import rewrite_model

        progress.stage("rewrite")
        result = rewrite_model(request, progress)
    summary = rewrite_summary(result)
    if explain:  # which tells them with their places
        told = tuple(line for line in summary.lines if line[0] not in ("rejected", "note"))
        summary = dataclasses.replace(summary, lines=told)
    show(summary, as_json=as_json, quiet=values["quiet"] and not explain and not diff)
    if explain or diff:
        from trtconv.rewrite.engine.explain import diff_lines, explain_lines

        for line in (explain_lines(result) if explain else []) + (diff_lines(result) if diff else []):
            echo(line)
