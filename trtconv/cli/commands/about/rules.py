"""`trtconv rules`."""

from __future__ import annotations

import click

from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.completion import completer
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.command("rules", cls=FileCommand)
@click.option(
    "--target",
    cls=GroupedOption,
    group="Rewrite",
    example="--target tensorrt==10",
    metavar="TARGET",
    shell_complete=completer("target"),
    help="Only the rules that this target needs.",
)
@options_of(JsonOption)
def command(target: str | None, line: CommandLine) -> None:
    """List the rewrite rules: name, targets, and why each exists."""
    from trtconv.cli.show import write_document
    from trtconv.core.targets import KNOWN_TARGETS, parse_target
    from trtconv.rewrite import list_rules

    targets = [parse_target(t) for t in ([target] if target else KNOWN_TARGETS)]
    rows = []
    for rule in list_rules():
        needed = [str(t) for t in targets if rule.needed(t)]
        if needed:
            rows.append({"name": rule.name, "why": rule.why, "targets": needed, "precisions": list(rule.precisions)})
    if write_document(line.of(JsonOption).file, "rules", {"rules": rows}):
        return
    width = max((len(str(r["name"])) for r in rows), default=0)
    for row in rows:
        where = "all targets" if len(row["targets"]) == len(KNOWN_TARGETS) else ", ".join(row["targets"])
        where += f", {' and '.join(row['precisions'])} alone" if row["precisions"] else ""
        echo(f"{click.style(str(row['name']).ljust(width), bold=True)}  {row['why']} ({where})")
