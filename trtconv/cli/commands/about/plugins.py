"""`trtconv plugins`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_FOLDER, FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.group("plugins")
def command() -> None:
    """Build plugin libraries for this machine, and show what there is."""


@command.command("list", cls=FileCommand)
@click.option(
    "--plugin",
    "libraries",
    cls=GroupedOption,
    group="Build",
    example="--plugin libdetections.so",
    multiple=True,
    type=FILE,
    help="A library of your own to show as well.",
)
@click.option(
    "--source",
    "sources",
    cls=GroupedOption,
    group="Build",
    example="--source my_plugin",
    multiple=True,
    type=FILE,
    help="A folder with a plugin of your own to show.",
)
@options_of(JsonOption)
def list_command(libraries: tuple[Path, ...], sources: tuple[Path, ...], line: CommandLine) -> None:
    """The plugins that trtconv describes, and the libraries that `trtconv plugins build` made here.

    Libraries of your own are shown when you name them: they are looked for nowhere.
    """
    from trtconv.cli.show import write_document
    from trtconv.plugins.described.registry import PLUGINS
    from trtconv.plugins.libraries.library import default_folder, list_libraries
    from trtconv.plugins.libraries.user_plugin import FILE_NAME, load_plugins

    own = [(p, "trtconv") for p in PLUGINS]
    described = own + [(p, str(s / FILE_NAME)) for s in sources for p in load_plugins(s / FILE_NAME)]
    built = list_libraries()
    named = [_describe_library(path) for path in libraries]
    data = {
        "plugins": [p.op_type for p, _ in own],
        "described": [{"plugin": p.op_type, "from": where} for p, where in described],
        "libraries": built,
        "named": named,
        "folder": default_folder(),
    }
    if write_document(line.of(JsonOption).file, "plugins-list", data):
        return
    for plugin, where in described:
        echo(f"{click.style(plugin.op_type, bold=True)}  {plugin.summary}  ({where})")
    for library in built:
        state = "" if library.current else "  (built from other sources; not used)"
        echo(f"{library.path}  TensorRT {library.tensorrt}, architectures {library.architectures}{state}")
    for entry in named:
        echo(f"{entry['path']}  {_facts(entry)}")
    if not built:
        echo(f"no library in {default_folder()}; make one with `trtconv plugins build --include DIR`")


def _describe_library(path: Path) -> dict[str, Any]:
    from trtconv.core.artifacts import require_file
    from trtconv.core.files.digest import sha256_file
    from trtconv.plugins.libraries.user_library import read_record

    record = read_record(require_file(path, "plugin library"))
    if record is None:
        return {"path": str(path), "sha256": sha256_file(path), "record": False}
    return {**asdict(record), "path": str(path), "record": True}


def _facts(entry: dict[str, Any]) -> str:
    if not entry["record"]:
        return f"sha256 {entry['sha256'][:16]}, not built by `trtconv plugins build --source`"
    names = ", ".join(entry["plugins"])
    return f"{names}; TensorRT {entry['tensorrt']}, architectures {entry['architectures']}"


@command.command("build", cls=FileCommand)
@click.option(
    "--include",
    cls=GroupedOption,
    group="Build",
    example="--include TensorRT/include",
    type=FILE,
    required=True,
    help="Folder with NvInfer.h of the TensorRT that will load it.",
)
@click.option(
    "--source",
    cls=GroupedOption,
    group="Build",
    example="--source my_plugin",
    type=FILE,
    help="Folder with plugin.py and sources of your own plugins, to build those.",
)
@click.option(
    "-o",
    "--output",
    cls=GroupedOption,
    group="Output",
    type=OUTPUT_FOLDER,
    help="Where to put it (default: where build and check look; with --source, a folder inside of it).",
)
@click.option(
    "--architectures",
    cls=GroupedOption,
    group="Build",
    metavar="80;90",
    help="CUDA architectures (default: this machine's GPUs, else all).",
)
@options_of(JsonOption)
def build_command(
    include: Path, source: Path | None, output: Path | None, architectures: str | None, line: CommandLine
) -> None:
    """Compile trtconv's plugins, or with --source your own, with CMake and nvcc.

    The headers are in the `include` folder of a TensorRT download, or of the NVIDIA/TensorRT repository at the tag of
    your version.
    """
    from trtconv.cli.show import write_document

    json = line.of(JsonOption).file
    if source is not None:
        from trtconv.plugins.libraries.user_library import build_user_library

        built = build_user_library(source, include, output, architectures)
        if write_document(json, "plugins-build", vars(built)):
            return
        echo(f"{built.path}  TensorRT {built.tensorrt}, {', '.join(built.plugins)}; name it with --plugin")
        return
    from trtconv.plugins.libraries.library import build_library

    library = build_library(include, output, architectures)
    if write_document(json, "plugins-build", vars(library)):
        return
    echo(f"{library.path}  TensorRT {library.tensorrt}, {len(library.plugins)} plugins")
