"""`trtconv inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_REPORT, StrangersFileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.command("inspect", cls=StrangersFileCommand)
@click.argument("file", type=FILE)
@click.option(
    "--layers",
    cls=GroupedOption,
    group="Output",
    is_flag=True,
    help="List every node or layer with its place in the PyTorch code.",
)
@click.option(
    "--html",
    cls=GroupedOption,
    group="Output",
    example="--html network.html",
    type=OUTPUT_REPORT,
    help="Draw the network into one offline HTML file.",
)
@click.option(
    "--allow-code",
    cls=GroupedOption,
    group="Trust",
    example="--allow-code host",
    multiple=True,
    type=click.Choice(["host", "plugins"]),
    help="Let this code in an engine run, to read its layers.",
)
@options_of(JsonOption)
def command(file: Path, layers: bool, html: Path | None, allow_code: tuple[str, ...], line: CommandLine) -> None:
    """Show an ONNX file or an engine: inputs, outputs, shape space, profiles, layers, sizes."""
    from trtconv.cli.show import write_document
    from trtconv.core.artifacts import require_file
    from trtconv.core.trust.trust import named_code

    require_file(file, "file")
    json = line.of(JsonOption).file
    if file.suffix in (".engine", ".plan"):
        from trtconv.build.inspection import engine_facts, raw_engine_facts

        facts: dict[str, Any] = engine_facts(file, layers=layers, code=named_code(allow_code))
        raw = raw_engine_facts(file, layers=layers, code=named_code(allow_code)) if json else {}
    else:
        from trtconv.core.model.facts import onnx_facts, raw_onnx_facts

        facts = onnx_facts(file, layers=layers)
        raw = raw_onnx_facts(file, layers=layers) if json else {}
    if html:
        from trtconv.check.reporters.html.network.page import write_graph_page

        write_graph_page(file, html, named_code(allow_code))
        facts["picture"] = str(html)
    if write_document(json, "inspect", {**raw, "picture": html}):
        return
    _print(facts)


def _print(facts: dict[str, Any], indent: str = "") -> None:
    width = max((len(k) for k in facts), default=0)
    for key, value in facts.items():
        label = indent + click.style(key.ljust(width), bold=not indent)
        if isinstance(value, dict):
            echo(label)
            _print(value, indent + "  ")
        elif isinstance(value, list):
            echo(f"{label}  {len(value)}" if key in ("layers", "nodes") else label)
            for item in value:
                echo(f"{indent}  {item}")
        else:
            echo(f"{label}  {value}")
