"""`trtconv build`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from trtconv.cli.files import FILE, OUTPUT_FILE
from trtconv.cli.options import (
    ListCommand,
    align_option,
    build_options,
    config_option,
    json_flag,
    output_options,
    verbosity,
)


@click.command("build", cls=ListCommand)
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, help="The engine to write (default: MODEL with .engine).")
@click.option(
    "--dynamic",
    multiple=True,
    metavar="[NAME=MIN:OPT:MAX[%MULTIPLE]]",
    help="Dynamic shapes: alone with the ranges that export recorded, or with your own.",
)
@click.option(
    "--input", "inputs", multiple=True, metavar="NAME:DTYPE[D0,...]", help="Names dims of a foreign ONNX file."
)
@build_options
@align_option
@click.option("--no-cache", is_flag=True, help="Build although the engine cache may hold this engine.")
@config_option
@json_flag
@output_options
def command(
    model: Path, output: Path | None, dynamic: tuple[str, ...], config: Path | None, as_json: bool, no_cache: bool,
    **values: Any,
) -> None:
    """Build an engine from MODEL: static at opt, or with --dynamic for a range of shapes.

    \b
    trtconv build model.trt.onnx -o model.engine --dynamic
    trtconv build other.onnx -o other.engine --input x:float32[N,3,H,W] --dynamic N=1:4:8 H=32:64:128 W=32:64:128
    """  # fmt: skip
    from trtconv.cli.assemble import build_request, load_config, shape_space
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.summary import build_summary, show
    from trtconv.core.artifacts import beside
    from trtconv.pipeline import aligned_build

    settings = load_config(config)
    wanted = bool(dynamic) or bool(config and settings.build.dynamic)
    space = shape_space(settings, dynamic) if wanted else None
    request = build_request(settings, model, output or beside(model, ".engine"), space, values)
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        from trtconv.build.cache.lookup import build_cached
        from trtconv.build.cache.store import user_cache

        progress.stage("build")
        if values["align"]:
            request = aligned_build(request, progress)
        built = build_cached(request, progress, cache=None if no_cache else user_cache())
    summary = build_summary(built.result)
    lines = (*summary.lines, ("cache", built.reason))
    told = dataclasses.replace(summary, lines=lines, data={**summary.data, "cached": built.hit, "cache": built.reason})
    show(told, as_json=as_json, quiet=values["quiet"])
