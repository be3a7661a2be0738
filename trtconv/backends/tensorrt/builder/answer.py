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
from trtconv.core.text.fields import Fields
from trtconv.core.text.json_text import parse_json

RESULT, PLAN = ".result", ".plan"
_FACTS = {f.name for f in dataclasses.fields(BuiltEngine)} - {"plan"}


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
        data = {name: getattr(outcome, name) for name in _FACTS}
    part = work.with_suffix(".part")
    part.write_text(json.dumps(data, default=dict))
    os.replace(part, work.with_suffix(RESULT))


def read_answer(work: Path) -> BuiltEngine:
    """The engine; its files are removed. Raises the child's error, and TrtconvError for an answer of another form."""
    result, plan = work.with_suffix(RESULT), work.with_suffix(PLAN)
    try:
        data = parse_json(result.read_text())
        answer = Fields(data)
        if "error" in answer.names():
            raise _error(answer)
        if {*answer.names()} != _FACTS:
            raise ValueError("it has other fields")
        kernels = answer.table("plugin_kernels")
        return BuiltEngine(
            plan=plan.read_bytes(),
            layers=answer.whole("layers"),
            messages=answer.texts("messages"),
            types=answer.whole_table("types"),
            environment=answer.text_table("environment"),
            timing_cache=answer.settings("timing_cache"),
            plugin_kernels={name: kernels.text_table(name) for name in kernels.names()},
        )
    except (ValueError, OSError) as error:
        raise TrtconvError(f"the builder gave an answer that cannot be read: {error}", hint="build again") from error
    finally:
        result.unlink(missing_ok=True)
        plan.unlink(missing_ok=True)


def _error(answer: Fields) -> TrtconvError:
    """The error that it names, of a class of trtconv's own."""
    kind = getattr(errors, answer.text("error"), None)
    if not (isinstance(kind, type) and issubclass(kind, TrtconvError)):
        kind = TrtconvError
    hint, where = (None if answer.get(name) is None else answer.text(name) for name in ("hint", "where"))
    return kind(answer.text("message"), details=answer.texts("details"), hint=hint, where=where)
