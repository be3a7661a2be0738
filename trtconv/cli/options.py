"""Options that several commands share, and lists of values after one option."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from trtconv.cli.files import FileCommand
from trtconv.cli.help_groups import JSON
from trtconv.core.option import option
from trtconv.core.requests.check import BARE_POWER, POWER_FLAG
from trtconv.core.requests.export import PAD_FLAG as PAD
from trtconv.core.shape_space.padding import MODES
from trtconv.frontend.options import ConfigOption as ConfigOption
from trtconv.frontend.options import GateOptions as GateOptions
from trtconv.frontend.options import ToleranceOptions as ToleranceOptions

# Where a command keeps its words for the completion of lists.
_WORDS = "trtconv.words"
_SWALLOWED = {
    # Wider than a range, so that a wrong one is named; but no path, which may be the model.
    "--dynamic": re.compile(r"(?!-)[^/\\=]*=[^/\\]*(?<!\.onnx)(?<!\.pt2)\Z"),
    "--input": re.compile(r"(?:[^-:\[\]=][^:\[\]=]*=)?[^-\[\]=][^\[\]=]*\[[^\]]*\](=\S+)?\Z"),
    "--arg": re.compile(r"[A-Za-z_]\w*=.*\Z"),
}


class ListCommand(FileCommand):
    """A command in which `--dynamic A=1:2:4 B=8` means `--dynamic A=1:2:4 --dynamic B=8`.

    A bare `--dynamic` (as `build` takes it) becomes an empty value. Words that do not look like a value of the
    option end the list, so that a path after it stays an argument.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spread the lists, then parse as usual."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, spread_lists(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Further values of a list, after its first: `--dynamic N=1:1:8 H<TAB>`."""
        for word in reversed(ctx.meta.get(_WORDS, ())):
            pattern = _SWALLOWED.get(word)
            if pattern is not None:
                return self._listed(ctx, word, incomplete) or super().shell_complete(ctx, incomplete)
            if word.startswith("-") or not any(p.match(word) for p in _SWALLOWED.values()):
                break
        return super().shell_complete(ctx, incomplete)

    def _listed(self, ctx: click.Context, flag: str, incomplete: str) -> list[CompletionItem]:
        option = next((p for p in self.params if flag in p.opts), None)
        return [] if option is None else option.shell_complete(ctx, incomplete)


class StrangersListCommand(ListCommand):
    """A command with lists that reads what a stranger may have written."""

    reads_strangers = True


def spread_lists(args: list[str]) -> list[str]:
    """Give every value its own option."""
    result: list[str] = []
    index = 0
    while index < len(args):
        word = args[index]
        index += 1
        pattern = _SWALLOWED.get(word)
        if word == PAD and (index == len(args) or args[index] not in MODES):
            result.append(f"{PAD}=auto")
            continue
        if word == POWER_FLAG and not (index < len(args) and args[index].isdecimal()):
            result.append(f"{POWER_FLAG}={BARE_POWER}")
            continue
        if pattern is None:
            result.append(word)
            continue
        start = index
        while index < len(args) and pattern.match(args[index]):
            result += [f"{word}={args[index]}"]
            index += 1
        if index == start:
            if word == "--dynamic":
                result.append("--dynamic=")
            elif index < len(args):
                result += [word, args[index]]
                index += 1
            else:
                result.append(word)
    return result


@dataclass(frozen=True)
class JsonOption:
    """Where the result goes for a machine: a file, `-` for stdout, or nowhere."""

    file: Path | None = field(
        default=None,
        metadata=option(
            JSON,
            help="The result as JSON, on stdout or into FILE.",
            group="Output",
            example="--json=result.json",
            form="path",
            role="report",
            metavar="[=FILE]",
        ),
    )


@dataclass(frozen=True)
class OutputOptions:
    """How much a command says on stderr."""

    verbose: int = field(
        default=0,
        metadata=option(
            "-v", "--verbose", help="Show notes and the tools' own messages.", group="Output", form="count"
        ),
    )
    quiet: bool = field(
        default=False, metadata=option("-q", "--quiet", help="Print errors only.", group="Output", form="flag")
    )

    @property
    def verbosity(self) -> int:
        """-1 quiet, 0 normal, 1 and more verbose."""
        return -1 if self.quiet else self.verbose
