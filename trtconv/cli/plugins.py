"""`trtconv plugins`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from trtconv.cli.options import FILE


@click.group("plugins")
def command() -> None:
    """Build trtconv's plugin library for this machine, and show what there is."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """The plugins, and the libraries that `trtconv plugins build` made here."""
    from trtconv.plugins.library import default_folder, list_libraries
    from trtconv.plugins.registry import PLUGINS

    libraries = list_libraries()
    if as_json:
        data = {"plugins": [p.op_type for p in PLUGINS], "libraries": [asdict(entry) for entry in libraries]}
        click.echo(json.dumps(data, indent=1, default=str))
        return
    for plugin in PLUGINS:
        click.echo(f"{click.style(plugin.op_type, bold=True)}  {plugin.summary}")
    for library in libraries:
        state = "" if library.current else "  (built from other sources; not used)"
        click.echo(f"{library.path}  TensorRT {library.tensorrt}, architectures {library.architectures}{state}")
    if not libraries:
        click.echo(f"no library in {default_folder()}; make one with `trtconv plugins build --include DIR`")


@command.command("build")
@click.option("--include", type=FILE, required=True, help="Folder with NvInfer.h of the TensorRT that will load it.")
@click.option("-o", "--output", type=FILE, help="Where to put it (default: where build and check look).")
@click.option("--architectures", metavar="80;90", help="CUDA architectures (default: this machine's GPUs, else all).")
def build_command(include: Path, output: Path | None, architectures: str | None) -> None:
    """Compile the plugins with CMake and nvcc.

    The headers are in the `include` folder of a TensorRT download, or of the NVIDIA/TensorRT repository at the tag of
    your version.
    """
    from trtconv.plugins.library import build_library

    library = build_library(include, output, architectures)
    click.echo(f"{library.path}  TensorRT {library.tensorrt}, {len(library.plugins)} plugins")
