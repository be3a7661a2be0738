"""`trtconv package`."""

from __future__ import annotations

from pathlib import Path

import click

from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_FOLDER, StrangersFileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.command("package", cls=StrangersFileCommand)
@click.argument("engine", type=FILE)
@click.option(
    "-o",
    "--output",
    cls=GroupedOption,
    group="Output",
    example="-o repository",
    type=OUTPUT_FOLDER,
    required=True,
    help="The model repository (a folder).",
)
@click.option(
    "--name",
    cls=GroupedOption,
    group="Serving",
    example="--name detector",
    default="",
    help="The model's name (default: the engine's).",
)
@click.option(
    "--model-version",
    cls=GroupedOption,
    group="Serving",
    type=click.IntRange(1, 2**31 - 1),
    default=1,
    show_default=True,
    help="Its version.",
)
@click.option(
    "--instances",
    cls=GroupedOption,
    group="Serving",
    example="--instances 2",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Contexts per GPU.",
)
@click.option(
    "--plugin",
    "plugins",
    cls=GroupedOption,
    group="Serving",
    multiple=True,
    type=FILE,
    help="A plugin library that the engine needs.",
)
@options_of(JsonOption)
def command(
    engine: Path,
    output: Path,
    name: str,
    model_version: int,
    instances: int,
    plugins: tuple[Path, ...],
    line: CommandLine,
) -> None:
    """Write a model repository of the Triton Inference Server that serves ENGINE."""
    from trtconv.build.package.triton_repository import PackageRequest, package_engine
    from trtconv.cli.show import write_document

    result = package_engine(PackageRequest(engine, output, name, model_version, instances, plugins))
    if write_document(line.of(JsonOption).file, "package", vars(result)):
        return
    echo(f"model      {result.model}")
    echo(f"config     {result.config}")
    echo(f"batching   {'up to ' + str(result.max_batch) if result.max_batch else 'none: no leading dim in common'}")
    echo(f"serve it   {result.command}")
