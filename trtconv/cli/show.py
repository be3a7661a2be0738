"""What a command prints in the end: lines for people, or one JSON document for machines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.cli.options import JsonOption

if TYPE_CHECKING:
    from trtconv.frontend.summary import Summary


def show(summary: Summary, json: JsonOption, *, quiet: bool) -> None:
    """Print the lines on stdout, and write the document where `json` says; on stdout it stands alone."""
    import click

    from trtconv.cli.echo import echo

    if write_document(json.file, summary.kind, summary.data) or quiet:
        return
    width = max((len(label) for label, _ in summary.lines), default=0)
    for label, text in summary.lines:
        echo(f"{click.style(label.ljust(width), bold=True)}  {text}")


def write_document(file: Path | None, kind: str, data: Mapping[str, Any]) -> bool:
    """Write the document of this kind; True where stdout belongs to it now."""
    if file is None:
        return False
    from trtconv.core.artifacts import write_report_json
    from trtconv.frontend.documents import document

    write_report_json(file, document(kind, data))
    return str(file) == "-"
