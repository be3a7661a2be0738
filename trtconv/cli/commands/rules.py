"""`trtconv rules`."""

from __future__ import annotations

import json

import click

from trtconv.cli.completion import completer
from trtconv.cli.echo import echo


@click.command("rules")
@click.option(
    "--target", metavar="TARGET", shell_complete=completer("target"), help="Only the rules that this target needs."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(target: str | None, as_json: bool) -> None:
    """List the rewrite rules: name, targets, and why each exists."""
    from trtconv.core.targets import KNOWN_TARGETS, parse_target
    from trtconv.rewrite import list_rules

    targets = [parse_target(t) for t in ([target] if target else KNOWN_TARGETS)]
    rows = []
    for rule in list_rules():
        needed = [str(t) for t in targets if rule.needed(t)]
        if needed:
            rows.append({"name": rule.name, "why": rule.why, "targets": needed})
    if as_json:
        echo(json.dumps(rows, indent=1))
        return
    width = max((len(str(r["name"])) for r in rows), default=0)
    for row in rows:
        where = "all targets" if len(row["targets"]) == len(KNOWN_TARGETS) else ", ".join(row["targets"])
        echo(f"{click.style(str(row['name']).ljust(width), bold=True)}  {row['why']} ({where})")
