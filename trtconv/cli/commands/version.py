"""`trtconv version`."""

from __future__ import annotations

import json
import platform

import click

from trtconv.cli.echo import echo

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


@click.command("version")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """The versions of trtconv, Python and the packages it uses; nothing is imported for it."""
    versions = installed_versions()
    if as_json:
        echo(json.dumps(versions, indent=1))
        return
    for name, text in versions.items():
        echo(f"{name} {text}")
