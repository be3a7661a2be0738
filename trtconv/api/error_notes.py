"""What a traceback says of an error: where it is and what to do next, in the words of a Python call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from trtconv.core.errors import TrtconvError
from trtconv.core.option import Option, described_fields

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# A command to be typed is left as it is; of an option, the words behind it may be its value.
_COMMAND = r"`?trtconv [a-z]+ [^`;]*`?"
_WORD = r"'[^']*'|\"[^\"]*\"|[^\s;`]+"
_OPTION = rf"(?<![\w-])--(?P<name>[a-z][a-z0-9-]*)(?P<value>[ =](?:{_WORD}))?"
_TEXT = re.compile(rf"{_COMMAND}|{_OPTION}")
# A placeholder (LOW:HIGH, FILE), a number, a path, or an assignment; an English word is none of these.
_VALUE = re.compile(r"[A-Z][A-Z0-9_]+|[-+]?\d.*|\S*[=\[:/]\S*")


def with_notes(kinds: Iterable[type[Any]]) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Let each TrtconvError that a call raises carry its place, details and hint as notes (PEP 678, Python 3.11).

    `kinds` are the dataclasses whose options are arguments of the call: `--opt-level 3` is `opt_level=3` in its errors.
    """
    options = {option.name: option for kind in kinds for option in described_fields(kind).values()}

    def decorate(call: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @wraps(call)
        def noted(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            try:
                return call(*args, **kwargs)
            except TrtconvError as error:
                _speak_python(error, options)
                _add_notes(error)
                raise

        return noted

    return decorate


def _speak_python(error: TrtconvError, options: Mapping[str, Option]) -> None:
    error.message = in_python(error.message, options)
    error.args = (error.message, *error.args[1:])
    if error.hint:
        error.hint = in_python(error.hint, options)


def _add_notes(error: TrtconvError) -> None:
    # A call within a call has added its own.
    if not hasattr(error, "add_note") or getattr(error, "__notes__", None):
        return
    for line in (f"at {error.where}" if error.where else "", *error.details, f"-> {error.hint}" if error.hint else ""):
        if line:
            error.add_note(f"  {line}")


def in_python(text: str, options: Mapping[str, Option]) -> str:
    """The text with options of the command line as arguments of a call; others, and whole commands, as they are."""

    def argument(match: re.Match[str]) -> str:
        flag = match["name"]
        option = options.get(flag.replace("-", "_")) if flag else None
        if option is None:
            return match[0]
        name = {"input": "inputs"}.get(option.name, option.name)
        if option.form == "flag":
            return f"{name}=True{match['value'] or ''}"
        value, rest = _parted((match["value"] or "")[1:])
        if not value or not (value in option.choices or _VALUE.fullmatch(value)):
            return f"{name}={match['value'] or ''}"
        return f"{name}={_literal(option, value)}{rest}"

    return _joined(_TEXT.sub(argument, text))


def _parted(word: str) -> tuple[str, str]:
    """A value without its quotes, and the punctuation of the sentence behind it."""
    if word[:1] in ("'", '"'):
        return word[1:-1], ""
    value = word.rstrip(".,:)")
    return value, word[len(value) :]


def _literal(option: Option, value: str) -> str:
    """The value as one writes it in Python."""
    if option.name in ("arg", "option") and "=" in value:
        key, _, content = value.partition("=")
        return f"{{{json.dumps(key)}: {content if re.fullmatch(r'-?[0-9.]+', content) else json.dumps(content)}}}"
    is_number = option.form in ("integer", "number") and re.fullmatch(r"-?[0-9.]+", value)
    return value if is_number else json.dumps(value)


def _joined(text: str) -> str:
    """Several ranges or inputs as one argument."""
    text = re.sub(r'dynamic="([^"]*)"((?: \w+=[\w:%]+)+)', r'dynamic="\1\2"', text)
    text = re.sub(r'(dynamic="[^"]*)"((?: dynamic="[^"]*")+)', _one_text, text)
    return re.sub(r'inputs=("[^"]*")((?: inputs="[^"]*")+)', _one_list, text)


def _one_text(match: re.Match[str]) -> str:
    return " ".join([match[1], *re.findall(r'"([^"]*)"', match[2])]) + '"'


def _one_list(match: re.Match[str]) -> str:
    texts = [match[1], *re.findall(r'"[^"]*"', match[2])]
    return f"inputs=[{', '.join(texts)}]"
