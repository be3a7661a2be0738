"""Every command that the pages show is one: each is parsed by the real command line, and whole pages are run."""

import click
import pytest

from tests.docs.pages import block_commands, inline_commands, words_of
from trtconv.cli.main import cli

BLOCKS, INLINE = block_commands(), inline_commands()


def name_of(shown):
    return f"{shown.page}: {' '.join(shown.words)[:60]}"


def parse(words):
    """Parse as the shell's call would be, without running. Raises click.ClickException for what is not an option."""
    context, command, rest = click.Context(cli, info_name="trtconv"), cli, list(words)
    while isinstance(command, click.Group):
        if not rest:  # `_TRTCONV_COMPLETE=bash_source trtconv`
            return context
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, words
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=name, parent=context)
    return command.make_context(name, rest, parent=context)


def test_the_pages_show_commands():
    assert len(BLOCKS) > 40
    assert len({shown.page for shown in BLOCKS}) > 10
    assert words_of("check m.onnx --json=x.json > log  # comment") == ("check", "m.onnx", "--json=x.json")


@pytest.mark.parametrize("shown", BLOCKS, ids=name_of)
def test_a_command_in_a_block_parses(shown):
    assert parse(shown.words) is not None


@pytest.mark.parametrize("words", [("check", "m.onnx", "--tolerence", "1"), ("chek",), ("cache", "clear"), ("bench",)])
def test_a_wrong_command_would_not_parse(words):
    with pytest.raises(click.ClickException):
        parse(words)


def test_every_option_in_running_text_belongs_to_its_command():
    for shown in INLINE:
        if shown.words[0].startswith("-"):
            continue
        command, rest = cli.get_command(click.Context(cli), shown.words[0]), shown.words[1:]
        assert command is not None, shown
        while isinstance(command, click.Group) and rest:
            command, rest = command.get_command(click.Context(command), rest[0]), rest[1:]
            assert command is not None, shown
        flags = {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)} | {"--help", "--debug"}
        for word in rest:
            if word.startswith("-"):
                assert word.partition("=")[0].rstrip(".,") in flags, shown
