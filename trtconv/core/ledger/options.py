"""The options of a rewrite as its ledger records them, by which it can be done again."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.ledger.records import RewriteLedger
from trtconv.core.option import Option
from trtconv.core.requests import RewriteRequest
from trtconv.core.text.fields import Fields

# As far as it decides the graph, besides the target. Of rule files and scripts only the names, in FILES.
RECORDED = ("precision", "proof", "keep_fp32", "only", "skip", "also", "plugins", "nms", "max_detections", "fold_norms",
            "align", "pad_to_multiple")  # fmt: skip
FILES = "files"


def recorded_options(request: RewriteRequest) -> dict[str, Any]:
    """What a rewrite was asked for besides its target, as far as it decides the graph; of files only their names."""
    files = tuple(Path(f).name for f in (*request.rule_files, *([request.script] if request.script else ())))
    return {**{name: getattr(request, name) for name in RECORDED}, FILES: files}


def read_options(table: Fields) -> dict[str, Any]:
    """The options out of a ledger, each of the type and within the bounds that the request has for it.

    Raises ValueError for any other.
    """
    options: dict[str, Any] = {FILES: table.texts(FILES)}
    for field in fields(RewriteRequest):
        if field.name in RECORDED:
            options[field.name] = _option(table, field.name, field.default, field.metadata.get("option"))
    return options


def _option(table: Fields, name: str, default: Any, described: Option | None) -> Any:
    if isinstance(default, bool):
        return table.flag(name)
    if isinstance(default, tuple):
        return table.texts(name)
    value = table.whole(name) if isinstance(default, int) else table.text(name)
    if described and described.choices and value not in (*described.choices, default):
        raise ValueError(f"'{name}' is none of {', '.join(described.choices)}")
    if described and described.bounds and not described.bounds[0] <= float(value) <= described.bounds[1]:
        raise ValueError(f"'{name}' is {value}")
    return value


def same_rewrite(ledger: RewriteLedger, model: Path, output: Path) -> RewriteRequest:
    """The request for what was done to another model: the same target, rules and precision.

    Raises InvalidRequestError for rules and scripts of the user's own, which may be other files by now.
    """
    if ledger.options[FILES]:
        raise InvalidRequestError(
            f"the graph was rewritten with {', '.join(ledger.options[FILES])}, which may be another file by now",
            hint="convert the module again",
        )
    return RewriteRequest(model, output, ledger.target, **{name: ledger.options[name] for name in RECORDED})
