"""Print those options of `trtconv check` that `trtconv repro` takes too, each ended by NUL; values stay with them.

The action calls it: `python ci/repro_options.py OPTIONS...`. What each command takes is read from the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from trtconv.cli.commands.check import command as check
from trtconv.cli.commands.repro import command as repro
from trtconv.cli.help_groups import join_json
from trtconv.cli.options import spread_lists

# A repro goes to an archive of its own.
REPORTS = {"--json"}


def repro_options(words: list[str]) -> Iterator[str]:
    """The shared options in the form `--name=value`. Raises click.UsageError for an option that `check` lacks."""
    taken = {p.opts[-1] for p in repro.params if isinstance(p, click.Option)} - REPORTS
    values, _, _ = check.make_parser(click.Context(check)).parse_args(spread_lists(join_json(words)))
    for option in (p for p in check.params if isinstance(p, click.Option) and p.name in values):
        if option.opts[-1] not in taken:
            continue
        if option.is_flag or option.count:
            yield option.opts[-1]
            continue
        value = values[option.name]
        yield from (f"{option.opts[-1]}={v}" for v in (value if option.multiple else [value]))


if __name__ == "__main__":
    sys.stdout.write("".join(f"{word}\0" for word in repro_options(sys.argv[1:])))
