"""Models that a Python function lists: `registry = "networks/models.py:models"`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from trtconv.core.data.iterator import is_function, load_function
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.shape_space.space import parse_space
from trtconv.sweep.plan.file import validate_section
from trtconv.sweep.plan.sections import SweepModelSection

HINT = "it returns a dict: name -> a table with the keys of [[model]]"
# What a sweep file says of all models of a registry, where it says anything.
_LISTS = ("targets", "precisions", "spaces", "gpus", "options")


def read_registry(section: SweepModelSection, base: Path) -> list[SweepModelSection]:
    """The sections of the registry's models that `names` choose, in its order; all without `names`.

    Raises InvalidRequestError for a function that is not there, fails or returns something else, for an entry that is
    not a model, and for a pattern that matches none.
    """
    tables = _call(section.registry, base)
    for pattern in section.names:
        if not any(fnmatchcase(name, pattern) for name in tables):
            raise InvalidRequestError(
                f"'{section.registry}' has no model '{pattern}'{did_you_mean(pattern, tables)}",
                hint=f"it has {len(tables)}: {', '.join(list(tables)[:5])} ...",
            )
    chosen = [n for n in tables if not section.names or any(fnmatchcase(n, p) for p in section.names)]
    return [_entry(section, name, tables[name]) for name in chosen]


def _call(spec: str, base: Path) -> Mapping[str, Any]:
    if not is_function(spec):
        raise InvalidRequestError(f"'{spec}' is not FILE.py:function", hint=HINT)
    function = load_function(str(base / spec), "registry")
    try:
        tables = function()
    except Exception as error:
        raise InvalidRequestError(f"the registry '{spec}' raised {type(error).__name__}: {error}", hint=HINT) from error
    if not (isinstance(tables, Mapping) and tables and all(isinstance(n, str) for n in tables)):
        raise InvalidRequestError(f"the registry '{spec}' did not return models by name", hint=HINT)
    return tables


def _entry(section: SweepModelSection, name: str, table: Any) -> SweepModelSection:
    where = f"{section.registry}: {name}"
    entry: SweepModelSection = validate_section(SweepModelSection, table, where)
    if bool(entry.module) == bool(entry.config) or entry.registry or entry.name:
        raise InvalidRequestError(f"{where}: needs one of 'module' and 'config', and no other name", hint=HINT)
    if entry.dynamic:
        parse_space(entry.dynamic.split())
    lists = {key: getattr(section, key) for key in _LISTS if getattr(section, key)}
    return dataclasses.replace(entry, name=name, variables={**entry.variables, **section.variables}, **lists)
