"""How a field of a request is given on the command line and in trtconv.toml: a plain description beside the field.

`trtconv.cli.click_options` makes the options of a command from the descriptions, `trtconv.api.keywords` the keyword
arguments of a Python call, and `trtconv.frontend.command_line` puts requests together from both; none knows a request.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Form = Literal["text", "flag", "count", "choice", "integer", "number", "path"]
Group = Literal[
    "Model", "Shapes", "Rewrite", "Build", "Check", "Trust", "Cells", "Machines", "Serving", "Cache", "Output"
]
Role = Literal["read", "file", "report", "folder", "folder or file", "update"]
# In the order in which `--help` shows them.
GROUPS: tuple[Group, ...] = get_args(Group)


def _as_it_is(value: Any) -> Any:
    return value


def _config_as_it_is(value: Any, base: Path) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Option:
    """One option of the command line, and the key of trtconv.toml that stands for it.

    `many` options may be repeated, their value is a tuple. `bounds` are inclusive. `role` is what a path is for.
    `key` is a dotted name in `Config`, or empty where no file can say it; `unless` is a flag that silences the key.
    `parse` turns what the command line gives into the field's value, `parse_config` does so with what the file holds
    and the folder from which its paths are seen; `merge` lays the former over the latter, else the former wins.
    `example` is what a person may type, such as `--precision fp16`, for the help of its group.
    `completes` is what the shell offers for it: target, rule, range, input or factory (`trtconv.cli.completion`).
    """

    flags: tuple[str, ...]
    help: str
    group: Group
    form: Form = "text"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    role: Role = "read"
    many: bool = False
    shows_default: bool = False
    key: str = ""
    unless: str = ""
    parse: Callable[[Any], Any] = _as_it_is
    parse_config: Callable[[Any, Path], Any] = _config_as_it_is
    merge: Callable[[Any, Any], Any] | None = None
    completes: str = ""
    example: str = ""

    @property
    def flag(self) -> str:
        """The long form, such as `--opt-level`."""
        return self.flags[-1]

    @property
    def name(self) -> str:
        """The flag as a Python name, such as `opt_level`; unique within a command."""
        return self.flag.removeprefix("--").replace("-", "_")


def option(*flags: str, help: str, group: Group, **facts: Any) -> dict[str, Option]:
    """The metadata of a dataclass field that is given with these flags; `facts` are further fields of `Option`."""
    return {"option": Option(flags, help, group, **facts)}


def described_fields(kind: type[Any]) -> dict[str, Option]:
    """The options of a dataclass by field name, in order; fields without one are left out."""
    return {f.name: f.metadata["option"] for f in dataclasses.fields(kind) if "option" in f.metadata}


def paths_seen_from(paths: Any, base: Path) -> Any:
    """Paths of a config, seen from its folder: one or a list of them."""
    if isinstance(paths, (list, tuple)):
        return tuple(base / p for p in paths)
    return base / paths


def key_values(error: str, hint: str) -> Callable[[tuple[str, ...]], dict[str, str]]:
    """A parser of `KEY=VALUE` texts; `error` has a place for the text that is not of that form."""
    from trtconv.core.errors import InvalidRequestError

    def parse(texts: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in texts:
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise InvalidRequestError(error.format(text), hint=hint)
            pairs[key.strip()] = value.strip()
        return pairs

    return parse


def comma_list(flag: str, example: str, form: str = r".+") -> Callable[[str], tuple[str, ...]]:
    """A parser of `A,B`, each word of the given form. It raises InvalidRequestError for a text without words too."""
    from trtconv.core.errors import InvalidRequestError

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        wrong = next((word for word in words if not re.fullmatch(form, word)), None if words else text)
        if wrong is not None:
            raise InvalidRequestError(f"cannot read '{wrong}' of {flag}", hint=f"write {flag} {example}")
        return words

    return parse
