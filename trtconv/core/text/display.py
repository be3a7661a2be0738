"""Foreign text that is safe to show: names out of a model must steer neither a terminal nor a CI system."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")
# C0 but tab and newline, DEL and C1; bidi controls, lone surrogates, noncharacters.
_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\ufffe\uffff" + "".join(chr(plane << 16 | end) for plane in range(1, 17) for end in (0xFFFE, 0xFFFF)) + "]"
)
# GitHub's runner reads a command where a line begins so, blanks aside, and the older form anywhere.
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)")
# What click.style writes: colours and bold.
_STYLE = re.compile("(\x1b\\[(?:0|1|2|3[0-7])m)")


def display_text(text: str) -> str:
    """The text with what cannot be seen as a visible escape (`\\x1b`, `\\u202e`), and no workflow command in it."""
    return _COMMAND.sub(r"\1\\x3a", _HOSTILE.sub(_escape, text)).replace("##[", "##\\x5b")


def display_styled(text: str) -> str:
    """The same for a line with our own colours in it, which stay."""
    if "\x1b" not in text:
        return display_text(text)
    return "".join(part if _STYLE.fullmatch(part) else display_text(part) for part in _STYLE.split(text))


def displayable(value: T) -> T:
    """A dataclass, mapping, tuple or list with every text in it as `display_text` shows it."""
    result: Any = value
    if isinstance(value, str):
        result = display_text(value)
    elif isinstance(value, Mapping):
        result = {displayable(k): displayable(v) for k, v in value.items()}
    elif type(value) in (tuple, list):
        result = type(value)(displayable(v) for v in value)  # type: ignore[call-arg, attr-defined]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        result = dataclasses.replace(value, **{n: displayable(getattr(value, n)) for n in fields})
    return result  # type: ignore[no-any-return]


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
