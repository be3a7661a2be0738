"""What a building child tells its parent: JSON and a plan in files. It parsed a stranger's model; nothing of it is
unpickled.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from trtconv.backends.protocol import BuiltEngine
from trtconv.core import errors
from trtconv.core.errors import TrtconvError
from trtconv.core.text.json_text import parse_json

RESULT, PLAN = ".result", ".plan"
_FORM = {
    "layers": int,
    "messages": list,
    "types": dict,
    "environment": dict,
    "timing_cache": dict,
    "plugin_kernels": dict,
}


def write_answer(work: Path, outcome: BuiltEngine | TrtconvError) -> None:
    """Beside `work`: the plan, then its facts or the error, which the parent waits for."""
    data: dict[str, Any]
    if isinstance(outcome, TrtconvError):
        data = {
            "error": type(outcome).__name__,
            "message": outcome.message,
            "hint": outcome.hint,
            "details": list(outcome.details),
            "where": outcome.where,
        }
    else:
        work.with_suffix(PLAN).write_bytes(outcome.plan)
        data = {f.name: getattr(outcome, f.name) for f in dataclasses.fields(BuiltEngine) if f.name != "plan"}
    part = work.with_suffix(".part")
    part.write_text(json.dumps(data, default=dict))
    os.replace(part, work.with_suffix(RESULT))


def read_answer(work: Path) -> BuiltEngine:
    """The engine; its files are removed. Raises the child's error, and TrtconvError for an answer of another form."""
    result, plan = work.with_suffix(RESULT), work.with_suffix(PLAN)
    try:
        data = parse_json(result.read_text())
        if not isinstance(data, dict):
            raise TypeError("not an object")
        if "error" in data:
            raise _error(data)
        if any(not isinstance(data[name], kind) for name, kind in _FORM.items()) or set(data) != set(_FORM):
            raise TypeError("other fields")
        facts = {**data, "messages": tuple(map(str, data["messages"]))}
        return BuiltEngine(plan=plan.read_bytes(), **facts)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise TrtconvError(f"the builder gave an answer that cannot be read: {error}", hint="build again") from error
    finally:
        result.unlink(missing_ok=True)
        plan.unlink(missing_ok=True)


def _error(data: dict[str, Any]) -> TrtconvError:
    """The error that it names, of a class of trtconv's own."""
    kind = getattr(errors, str(data["error"]), None)
    if not (isinstance(kind, type) and issubclass(kind, TrtconvError)):
        kind = TrtconvError
    texts = {k: None if data[k] is None else str(data[k]) for k in ("hint", "where")}
    details = tuple(map(str, data["details"]))
    return kind(str(data["message"]), details=details, hint=texts["hint"], where=texts["where"])
