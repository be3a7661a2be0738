"""What means the same is called the same on every command, in trtconv.toml and in Python."""

import click

from tests.cli.test_json import commands
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
