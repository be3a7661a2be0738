"""What all commands have in common: `--help` with the options under headings, and `--json[=FILE]`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from trtconv.core.option import GROUPS

JSON = "--json"
# Examples in the heading of a group: more would not be read.
MOST_EXAMPLES = 2


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
        """Give `--json` its value, then parse as usual. Raises click.UsageError with the command to ask for help."""
        try:
            return super().parse_args(ctx, join_json(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per group that has options."""
        for group, options in self.grouped_options(ctx).items():
            records = [record for option in options if (record := option.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(f"{group}, e.g. {group_example(options)}"):
                    formatter.write_dl(records)

    def grouped_options(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """The options by group, in the order of `GROUPS`; groups without options are left out."""
        groups: dict[str, list[click.Option]] = {group: [] for group in GROUPS}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                groups[getattr(parameter, "group", GROUPS[-1])].append(parameter)
        return {group: options for group, options in groups.items() if options}


def group_example(options: Iterable[click.Option]) -> str:
    """What a person may type of a group: the examples of its first options that have one."""
    examples = [example for option in options if (example := getattr(option, "example", ""))]
    return " ".join(examples[:MOST_EXAMPLES])
