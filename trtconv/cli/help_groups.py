"""`--help` with the options under headings, in the order in which a model walks through the rooms."""

from __future__ import annotations

import click

from trtconv.core.option import GROUPS


class GroupedCommand(click.Command):
    """A command whose help lists its options under the headings of `GROUPS`; what has none stands with the output."""

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
