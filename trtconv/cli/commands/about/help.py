"""`trtconv help`."""

from __future__ import annotations

import sys

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.command("help", cls=FileCommand)
@click.argument("topic", required=False, shell_complete=completer("topic"))
@options_of(JsonOption)
@click.pass_context
def command(ctx: click.Context, topic: str | None, line: CommandLine) -> None:
    """Print the page on TOPIC, or the list of all topics; needs no network.

    The name of a command that has no page prints its --help.
    """
    from trtconv.cli.pages import find_page, list_pages
    from trtconv.cli.show import write_document

    json = line.of(JsonOption).file
    pages = list_pages()
    if topic is None:
        topics = [{"topic": page.topic, "title": page.title} for page in pages]
        if not write_document(json, "help", {"topics": topics}):
            width = max(len(page.topic) for page in pages)
            for page in pages:
                echo(f"{click.style(page.topic.ljust(width), bold=True)}  {page.title}")
        return
    group = ctx.parent.command if ctx.parent is not None else None
    other = group.get_command(ctx, topic) if isinstance(group, click.Group) else None
    if other is not None and topic not in {page.topic for page in pages}:
        text = other.get_help(click.Context(other, info_name=topic, parent=ctx.parent))
        if not write_document(json, "help", {"topic": topic, "title": f"trtconv {topic}", "text": text}):
            echo(text)
        return
    page = find_page(topic)
    if write_document(json, "help", {"topic": topic, "title": page.title, "text": page.text}):
        return
    if not sys.stdout.isatty():
        echo(page.text.rstrip())
        return
    from rich.markdown import Markdown

    from trtconv.cli.console import make_console

    make_console().print(Markdown(page.text, hyperlinks=False))
