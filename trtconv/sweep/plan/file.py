"""Reading `sweep.toml`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from trtconv.core.artifacts import require_file
from trtconv.core.config import describe_problem, toml_reader
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, did_you_mean
from trtconv.core.precision import REQUESTED_NAMES, TYPED_NAMES, precision_named
from trtconv.core.requests.tune import parse_precisions
from trtconv.core.shape_space.space import parse_space
from trtconv.core.sizes import parse_bytes
from trtconv.core.targets import parse_target
from trtconv.sweep.plan.sections import EXPORT, KINDS, SweepContractSection, SweepFile, SweepModelSection, SweepSection

HINT = "`trtconv help sweep` lists every key"
# A contract's name is a part of a cell's id and of patterns.
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def read_sweep(path: Path) -> SweepFile:
    """Read and validate a `sweep.toml`. Raises InvalidRequestError with the key at fault."""
    require_file(path, "sweep file")
    try:
        data = toml_reader().loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"'{path}' is not UTF-8", hint="save it as UTF-8") from error
    except ValueError as error:
        raise InvalidRequestError(f"'{path}' is not valid TOML: {error}", hint=HINT) from error
    return validate_sweep(data, str(path))


def validate_sweep(data: dict[str, Any], name: str) -> SweepFile:
    """Turn plain data into a SweepFile. Raises InvalidRequestError naming the key at fault; `name` is the file's."""
    sweep: SweepFile = validate_section(SweepFile, data, name)
    try:
        _require_values(sweep)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{name}: {error.message}", hint=error.hint or HINT) from None
    return sweep


def validate_section(kind: type[Any], data: Any, name: str) -> Any:
    """Plain data as the dataclass `kind`. Raises InvalidRequestError naming the key at fault, and where it stands."""
    try:
        from pydantic import TypeAdapter, ValidationError
    except ImportError as error:
        raise MissingDependencyError("reading a sweep file needs pydantic", hint="pip install pydantic") from error
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        problems = [_problem(e, kind) for e in error.errors()]
        raise InvalidRequestError(f"{name}: {problems[0]}", details=problems[1:], hint=HINT) from None


def _problem(error: Any, kind: type[Any]) -> str:
    location = [part for part in error["loc"] if part != "[key]"]
    key = ".".join(str(p) for p in location)
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"unknown key '{key}'{did_you_mean(str(location[-1]), _keys_at(location[:-1], kind))}"
    if error["type"] == "missing":
        return f"'{key}' is missing"
    return describe_problem(key, error)


def _keys_at(location: list[Any], kind: Any) -> list[str]:
    """The keys of the section at a location; numbers and free names lead to the elements of a list or a table."""
    for part in location:
        hints = get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
        kind = hints[part] if part in hints else (get_args(kind) or (kind,))[-1]
    return [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


def _require_values(sweep: SweepFile) -> None:
    _require_contracts(sweep.contracts)
    if not sweep.model:
        raise InvalidRequestError("there is no model", hint='add [[model]] with config = "trtconv.toml"')
    for number, model in enumerate(sweep.model):
        if sum(map(bool, (model.config, model.module, model.registry))) != 1:
            raise InvalidRequestError(f"model.{number} needs one of 'config', 'module' and 'registry'")
        if model.names and not model.registry:
            raise InvalidRequestError(f"model.{number} has 'names', which choose from a 'registry'")
        if model.dynamic:
            parse_space(model.dynamic.split())
    axes: list[SweepSection | SweepModelSection] = [sweep.sweep, *sweep.model]
    for section in axes:
        for target in section.targets:
            parse_target(target)
        for precision in section.precisions:
            _require_precision(precision, sweep.contracts)
        for space in section.spaces:
            parse_space([space])
    for cell in sweep.include:
        parse_target(cell.target)
        _require_precision(cell.precision, sweep.contracts)
        parse_space([cell.space])
    if sweep.sweep.retries < 0:
        raise InvalidRequestError(f"sweep.retries must be non-negative, got {sweep.sweep.retries}")
    _require_resources(sweep)


def _require_precision(name: str, contracts: Iterable[str]) -> None:
    if name in TYPED_NAMES or name in contracts:
        return
    if contracts and name not in REQUESTED_NAMES:
        choices = (*TYPED_NAMES, *contracts)
        raise InvalidRequestError(
            f"'{name}' is neither a precision nor a contract{did_you_mean(name, choices)}",
            hint="one of " + ", ".join(choices),
        )
    precision_named(name)
    raise InvalidRequestError(
        f"a graph cannot be typed as '{name}'",
        hint="one of " + ", ".join(TYPED_NAMES) + "; a [contracts.NAME] with data finds where it can be used",
    )


def _require_contracts(contracts: Mapping[str, SweepContractSection]) -> None:
    for name, contract in contracts.items():
        if name in REQUESTED_NAMES or not _NAME.fullmatch(name):
            raise InvalidRequestError(f"a contract cannot be called '{name}'", hint="letters, digits, '-', '_', '.'")
        if contract.precisions:
            parse_precisions(",".join(contract.precisions))
        if contract.minutes < 0:
            raise InvalidRequestError(f"contracts.{name}.minutes must be positive, got {contract.minutes:g}")


def _require_resources(sweep: SweepFile) -> None:
    for kind, section in sweep.resources.items():
        if kind not in KINDS:
            raise InvalidRequestError(f"unknown kind of job 'resources.{kind}'{did_you_mean(kind, KINDS)}")
        if not section.cpus > 0 or not section.seconds > 0:
            raise InvalidRequestError(f"resources.{kind}: cpus and seconds must be positive")
        if section.memory:
            parse_bytes(section.memory)
    for target in sweep.environments:
        if target != EXPORT:
            parse_target(target)
