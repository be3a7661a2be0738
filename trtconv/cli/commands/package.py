"""`trtconv package`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_FOLDER, FileCommand


@click.command("package", cls=FileCommand)
@click.argument("engine", type=FILE)
@click.option("-o", "--output", type=OUTPUT_FOLDER, required=True, help="The model repository (a folder).")
@click.option("--name", default="", help="The model's name (default: the engine's).")
@click.option("--model-version", type=click.IntRange(1, 2**31 - 1), default=1, show_default=True, help="Its version.")
@click.option("--instances", type=click.IntRange(1, 1024), default=1, show_default=True, help="Contexts per GPU.")
@click.option("--plugin", "plugins", multiple=True, type=FILE, help="A plugin library that the engine needs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    engine: Path, output: Path, name: str, model_version: int, instances: int, plugins: tuple[Path, ...], as_json: bool
) -> None:
    """Write a model repository of the Triton Inference Server that serves ENGINE."""
    from trtconv.build.package.triton_repository import PackageRequest, package_engine

    result = package_engine(PackageRequest(engine, output, name, model_version, instances, plugins))
    if as_json:
        echo(json.dumps({k: str(v) for k, v in vars(result).items()}, indent=1))
        return
    echo(f"model      {result.model}")
    echo(f"config     {result.config}")
    echo(f"batching   {'up to ' + str(result.max_batch) if result.max_batch else 'none: no leading dim in common'}")
    echo(f"serve it   {result.command}")
