"""Click options made from the descriptions beside the fields of dataclasses, in groups; see `trtconv.core.option`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import click

from trtconv.cli.completion import completer
from trtconv.cli.files import FilePath
from trtconv.core.option import Group, Option, described_fields
from trtconv.frontend.command_line import CommandLine

Command = Callable[..., Any]


class GroupedOption(click.Option):
    """An option that knows under which heading of `--help` it stands, and what a person may type there."""

    def __init__(self, *args: Any, group: Group, example: str = "", **facts: Any) -> None:
        self.group = group
        self.example = example
        super().__init__(*args, **facts)


class Number(click.FloatRange):
    """A finite number within bounds; click's own range takes nan for one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Raise InvalidRequestError for nan, inf, 1e400 and what lies out of the bounds."""
        from trtconv.core.text.numbers import parse_number

        what = param.opts[0] if param is not None else "the number"
        assert self.min is not None
        assert self.max is not None
        return parse_number(value, what, self.min, self.max)


def options_of(
    *kinds: type[Any], without: Iterable[str] = (), extra: Iterable[Option] = ()
) -> Callable[[Command], Command]:
    """A decorator: the options of these dataclasses, which the function gets as one `CommandLine` called `line`.

    Where two of them describe one flag, the first does. `without` names flags that the command does not have; `extra`
    are options that belong to no dataclass.
    """
    options: dict[str, tuple[Option, Any]] = {}
    for kind in kinds:
        defaults = {f.name: f.default for f in dataclasses.fields(kind)}
        for name, described in described_fields(kind).items():
            options.setdefault(described.flag, (described, defaults[name]))
    options |= {o.flag: (o, None) for o in extra}
    chosen = [pair for flag, pair in options.items() if flag not in set(without)]

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            line = CommandLine({o.name: values.pop(o.name) for o, _ in chosen})
            return function(line=line, **values)

        wrapped: Command = command
        for option, default in reversed(chosen):
            wrapped = _click_option(option, default)(wrapped)
        return wrapped

    return decorate


def _click_option(option: Option, default: Any) -> Callable[[Command], Command]:
    facts: dict[str, Any] = {
        "help": option.help,
        "group": option.group,
        "example": option.example,
        "cls": GroupedOption,
    }
    if option.completes:
        facts["shell_complete"] = completer(option.completes)
    if option.form == "flag":
        facts["is_flag"] = True
    elif option.form == "count":
        facts["count"] = True
    else:
        facts |= {"type": _click_type(option), "multiple": option.many}
        if option.metavar:
            facts["metavar"] = option.metavar
        if option.shows_default:
            facts |= {"default": default, "show_default": True}
    return click.option(*option.flags, option.name, **facts)


def _click_type(option: Option) -> click.ParamType[Any]:
    if option.form == "choice":
        return click.Choice(option.choices)
    if option.form == "path":
        return FilePath(option.role)
    low, high = option.bounds or (None, None)
    if option.form == "integer":
        return click.IntRange(None if low is None else int(low), None if high is None else int(high))
    if option.form == "number":
        return Number(low, high)
    return click.STRING
