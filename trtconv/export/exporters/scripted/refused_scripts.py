"""What torch.jit.script means when it does not take a function, in one line."""

from __future__ import annotations

import re

_NONE = re.compile(r"Variable '(\w+)' previously had type NoneType")
_TYPES = re.compile(r"instead found type '([^']+)'")
_MARKED = re.compile(r"^(.*)\n\s*[~^]+ <--- HERE", re.MULTILINE)
_CALL = "Arguments for call are not valid"


def why_no_script(error: Exception) -> str:
    """The reason that an error of the compiler gives; with the user's code where its first line tells nothing."""
    text = str(error).strip()
    starts_as_none = _NONE.search(text)
    if starts_as_none is not None:
        return f"'{starts_as_none[1]}' is None before it and a tensor in it, and a loop of a file carries on one type"
    first = text.split("\n")[0] or repr(error)
    marked = _MARKED.search(text)
    if not first.startswith(_CALL) or marked is None:
        return first
    code = marked[1].strip()
    if any("NoneType" in kind or kind.startswith("Optional") for kind in _TYPES.findall(text)):
        return f"`{code}` takes what may be None at some steps"
    return f"`{code}` has no form for the types of its operands"
