"""What means the same is called the same on every command, in trtconv.toml and in Python."""

import click
import pytest

from tests.cli.test_json import commands
from trtconv.cli.click_options import GroupedOption
from trtconv.cli.files import FilePath
from trtconv.cli.help_groups import group_example, join_json
from trtconv.cli.options import ListCommand, spread_lists
from trtconv.core.precision import TYPED_NAMES


def long_names(option: click.Option) -> list[str]:
    return [name for name in option.opts if name.startswith("--")]


def test_shapes_and_precision_have_one_name_each():
    for name, command in commands().items():
        for option in (p for p in command.params if isinstance(p, click.Option)):
            metavar = option.metavar or ""
            if isinstance(option.type, click.Choice) and tuple(option.type.choices) == tuple(TYPED_NAMES):
                # --rest is that of what stays beside int8 and fp8.
                assert long_names(option) in (["--precision"], ["--rest"]), name
            if "MIN:OPT:MAX" in metavar:
                assert long_names(option) == ["--dynamic"], name
            if "DTYPE[" in metavar:
                assert long_names(option) == ["--input"], name
            if metavar.startswith('"N='):
                assert long_names(option) == ["--profile"], name


def test_an_option_says_the_same_on_every_command():
    """Flags, groups and forms; the words of the help may tell what a command does with it."""
    forms: dict[str, tuple[object, ...]] = {}
    for name, command in commands().items():
        for option in (p for p in command.params if isinstance(p, click.Option)):
            flag = (long_names(option) or option.opts)[-1]
            if flag in ("--output", "--json", "--target", "--help", "--html", "--layers", "--force", "--source"):
                continue
            form = (option.multiple, option.is_flag, type(option.type).__name__)
            assert forms.setdefault(flag, form) == form, f"{name} {flag}"


@pytest.mark.parametrize("name", commands())
def test_each_group_of_options_has_an_example_that_the_command_takes(name):
    command = commands()[name]
    context = click.Context(command)
    for group, options in command.grouped_options(context).items():
        words = join_json(group_example(options).split())
        assert words, f"{name}: {group}"
        if isinstance(command, ListCommand):
            words = spread_lists(words)
        values, others, _ = command.make_parser(context).parse_args(list(words))
        assert not others, f"{name}: {group}"
        for option in options:
            if option.name in values and not isinstance(option.type, FilePath):
                option.type_cast_value(context, values[option.name])
        assert f"\n{group}, e.g. {group_example(options)}:\n" in command.get_help(context)


def test_every_option_stands_in_a_group_of_its_own_choice():
    for name, command in commands().items():
        loose = [p.opts for p in command.params if isinstance(p, click.Option) and not isinstance(p, GroupedOption)]
        assert not loose, name


def test_which_cells_a_sweep_runs_is_no_matter_of_the_model():
    groups = commands()["sweep"].grouped_options(click.Context(commands()["sweep"]))
    assert {o.opts[-1] for o in groups["Cells"]} == {"--only", "--resume", "--retry"}
    assert "Model" not in groups
