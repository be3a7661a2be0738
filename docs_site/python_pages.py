"""The reference of Python: every name of the door, from its docstring and its types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import click

import trtconv
from trtconv import _CALLS, _MODULES
from trtconv.api.keywords import CheckKeywords, ConvertKeywords, EqualKeywords
from trtconv.cli.main import cli

FOLDER = "reference/api"
# The options of a call and the command that has them too.
KEYWORDS = (("convert", ConvertKeywords, "convert"), ("check", CheckKeywords, "check"),
            ("assert_equal", EqualKeywords, "check"))  # fmt: skip


def python_pages() -> Iterator[tuple[str, str]]:
    """(path in docs/, Markdown) of the calls, the results, what engines may run, and the errors."""
    errors = [name for name in trtconv.__all__ if name.endswith("Error")]
    calls = [name for name in trtconv.__all__ if name.islower()]
    results = [name for name in trtconv.__all__ if name not in (*errors, *calls)]
    yield f"{FOLDER}/calls.md", _page("Calls", calls)
    yield f"{FOLDER}/options.md", _options_page()
    yield f"{FOLDER}/results.md", _page("Results, sessions and trust", results)
    yield f"{FOLDER}/errors.md", _page("Errors", errors)


def _page(title: str, names: Iterable[str]) -> str:
    entries = "\n\n".join(f"::: {_defined_in(name)}.{name}" for name in names)
    return f"# {title}\n\nAll of these are names of `trtconv`. Examples: [Python](../python.md).\n\n{entries}\n"


def _options_page() -> str:
    """What `**options` of each call takes: the names of the typed dict, with the help of the command's option."""
    parts = ["# Options of the calls", "The options of the command line, under the same names, as keyword arguments."]
    for call, keywords, command_name in KEYWORDS:
        command = cli.get_command(click.Context(cli), command_name)
        assert command is not None
        helps = {p.name: p.help or "" for p in command.params if isinstance(p, click.Option)}
        rows = [f"| `{name}` | `{_type(hint)}` | {_help(helps, name)} |" for name, hint in _annotations(keywords)]
        parts.append(f"## {call}\n\n| option | type | meaning |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _annotations(keywords: type) -> list[tuple[str, object]]:
    return list(keywords.__annotations__.items())


def _type(hint: object) -> str:
    text = getattr(hint, "__forward_arg__", None) or str(hint)
    return text.replace("PathText", "str | PathLike").replace("Texts", "str | Sequence[str]").replace("Paths", "paths")


def _help(helps: Mapping[str | None, str], name: str) -> str:
    text = helps.get(name) or helps.get(f"{name}s") or helps.get(name.removesuffix("s")) or ""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _defined_in(name: str) -> str:
    # `trtconv.check`, `sweep` and `tune` are packages as well as calls.
    modules = {known: module for module, names in _MODULES.items() for known in names}
    return {**modules, **_CALLS}[name]
