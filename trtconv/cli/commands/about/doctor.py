"""`trtconv doctor`."""

from __future__ import annotations

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.command("doctor", cls=FileCommand)
@options_of(JsonOption)
def command(line: CommandLine) -> None:
    """What this machine can do, why it cannot do the rest, and the command that changes that."""
    from trtconv.backends.probe import probe_machine
    from trtconv.cli.show import write_document

    report = probe_machine()
    if write_document(line.of(JsonOption).file, "doctor", report.as_dict()):
        return
    gpus = ", ".join(f"{g.name} ({g.compute_capability})" for g in report.cuda.gpus) or f"none: {report.cuda.reason}"
    echo(f"{report.system}, Python {report.python}; GPU {gpus}")
    echo("packages: " + ", ".join(f"{name} {version or 'absent'}" for name, version, _, _ in report.packages))
    echo(f"GPU memory, streams and events: {report.memory.library or 'none'} ({report.memory.reason})")
    width = max(len(a.name) for a in report.abilities)
    for ability in report.abilities:
        mark = click.style("yes", fg="green") if ability.possible else click.style("no ", fg="yellow")
        echo(f"  {mark} {ability.name.ljust(width)}  {ability.detail}".rstrip())
        if not ability.possible and ability.remedy:
            echo(f"      {''.ljust(width)}  -> {ability.remedy}")
