"""`trtconv version`."""

from __future__ import annotations

import platform

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine

_PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime", "onnx-graphsurgeon", "tensorrt", "tensorrt-rtx-cu13",
             "tensorrt-rtx-cu12", "pycuda", "numpy")  # fmt: skip


def installed_versions() -> dict[str, str]:
    """Version of each package that trtconv can use and that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    import trtconv

    versions = {"trtconv": trtconv.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


@click.command("version", cls=FileCommand)
@options_of(JsonOption)
def command(line: CommandLine) -> None:
    """The versions of trtconv, Python and the packages it uses; nothing is imported for it."""
    from trtconv.cli.show import write_document

    versions = installed_versions()
    if write_document(line.of(JsonOption).file, "version", {"versions": versions}):
        return
    for name, text in versions.items():
        echo(f"{name} {text}")
