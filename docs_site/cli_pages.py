"""The reference of the command line, made from the Click commands: a page for each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from trtconv.cli.main import COMMANDS, cli
from trtconv.core.option import GROUPS

FOLDER = "reference/cli"


def command_pages() -> Iterator[tuple[str, str]]:
    """(path in docs/, Markdown) of the overview and of every command."""
    context = click.Context(cli, info_name="trtconv")
    listed = [f"| [`trtconv {name}`]({name}.md) | {_cell(text)} |" for name, text in COMMANDS.items()]
    overview = ["# Command line", cli.help or "", "| command | what it does |\n|---|---|\n" + "\n".join(listed)]
    yield f"{FOLDER}/index.md", "\n\n".join(overview) + "\n"
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None, name
        yield f"{FOLDER}/{name}.md", command_page(f"trtconv {name}", command, context)


def command_page(title: str, command: click.Command, parent: click.Context) -> str:
    """A command's usage, its help, and a table of options for each group; of a group of commands each of them."""
    context = click.Context(command, info_name=title.rpartition(" ")[2], parent=parent)
    parts = [f"# {title}", f"```text\n{_usage(title, command, context)}\n```", _prose(command.help or "")]
    for group in GROUPS:
        rows = [
            f"| {_flags(option, context)} | {_cell((option.get_help_record(context) or ('', ''))[1])} |"
            for option in command.get_params(context)
            if isinstance(option, click.Option)
            and getattr(option, "group", GROUPS[-1]) == group
            and option.name != "help"
            and not option.hidden
        ]
        if rows:
            parts.append(f"## {group}\n\n| option | meaning |\n|---|---|\n" + "\n".join(rows))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            page = command_page(f"{title} {name}", inner, context)
            parts.append(re.sub(r"(?m)^(#+) ", r"#\1 ", page))
    return "\n\n".join(part for part in parts if part) + "\n"


def _usage(title: str, command: click.Command, context: click.Context) -> str:
    return " ".join([title, *command.collect_usage_pieces(context)])


def _flags(option: click.Option, context: click.Context) -> str:
    """`-o`, `--output FOLDER`."""
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    takes_value = not option.is_flag and not option.count
    return flags + (f" `{option.make_metavar(context)}`" if takes_value else "")


def _prose(text: str) -> str:
    """Help as Markdown: what Click does not wrap, after a line with backspace alone, is code."""
    paragraphs = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        paragraphs.append(f"```sh\n{rest.rstrip()}\n```" if head == "\b" else paragraph)
    return "\n\n".join(paragraphs)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
