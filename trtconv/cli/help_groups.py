"""What all commands have in common: `--help` with the options under headings, and `--json[=FILE]`."""

from __future__ import annotations

import click

from trtconv.core.option import GROUPS

JSON = "--json"


def join_json(args: list[str]) -> list[str]:
    """A bare `--json` means stdout. A word after it is its file where nothing else could be meant by that word.

    That is `-`, a device, or a name that ends with `.json`, which no command reads.
    """
    joined: list[str] = []
    for index, word in enumerate(args):
        if word == "--":
            return [*joined, *args[index:]]
        names_a_file = word == "-" or word.endswith(".json") or word.startswith("/dev/")
        if index and args[index - 1] == JSON and names_a_file:
            joined[-1] = f"{JSON}={word}"
        else:
            joined.append(f"{JSON}=-" if word == JSON else word)
    return joined


class GroupedCommand(click.Command):
    """A command whose help lists its options under the headings of `GROUPS`; what has none stands with the output."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give `--json` its value, then parse as usual."""
        return super().parse_args(ctx, join_json(args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per group that has options."""
        sections: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections[getattr(parameter, "group", GROUPS[-1])].append(record)
        for group, records in sections.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)
