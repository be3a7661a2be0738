"""Keyword arguments of a Python call: the options of the command line, under the same names, with Python's values.

`--opt-level 3` is `opt_level=3`, `--no-proof` is `no_proof=True`. What may be repeated takes a list; `arg` and
`option`, which are KEY=VALUE there, take a dict. A test compares the names with the options of the commands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from trtconv.api.inputs import path_of
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.option import Option, described_fields
from trtconv.core.text.numbers import parse_number
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    PathText = str | PathLike[str]
    Paths = PathText | Sequence[PathText]
    Texts = str | Sequence[str]


class SourceKeywords(TypedDict, total=False):
    """Of a module that a file makes; `sample`, `seed` and `path` go with a live module too."""

    arg: Mapping[str, Any]
    weights: PathText
    sample: str
    seed: int
    path: Paths


class ToleranceKeywords(TypedDict, total=False):
    """Limits of your own; by default the noise floor decides."""

    rtol: float
    atol: float


class EngineKeywords(SourceKeywords, total=False):
    """What a conversion and a search for the fastest engine have in common, besides inputs, ranges and output."""

    config: PathText
    exporter: Literal["auto", "dynamo", "torchscript"]
    opset: int
    output_names: Texts
    target: str
    only: Texts
    skip: Texts
    also: Texts
    no_proof: bool
    rules: Paths
    script: str
    nms: Literal["native", "topk", "auto"]
    max_detections: int
    plugins: Texts
    data: PathText
    preprocess: str
    calibration: str
    backend: Literal["auto", "tensorrt", "tensorrt-rtx"]
    profile: Texts
    workspace: str | int
    timing_cache: PathText
    opt_level: int
    compute_capability: Texts
    plugin: Paths
    option: Mapping[str, Any]


class ConvertKeywords(EngineKeywords, ToleranceKeywords, total=False):
    """What `trtconv convert` takes besides its inputs, ranges and output."""

    static: bool
    force: bool
    align: bool
    pad_to_multiple: Literal["auto", "reflect", "edge", "zero"]
    keep_fp32: Texts
    precision: str
    rest: str


class TuneKeywords(EngineKeywords, total=False):
    """What `trtconv.tune` takes besides its inputs, ranges and output."""

    repeat: PathText
    metric: str
    max_drop: str
    precisions: Texts
    minutes: float
    restart: bool


class EqualKeywords(SourceKeywords, ToleranceKeywords, total=False):
    """What `trtconv.assert_equal` takes besides the module and the file."""

    config: PathText
    reference: PathText
    plugin: Paths
    foreign_engine: bool
    allow_code: Texts
    power: int


class CheckKeywords(EqualKeywords, total=False):
    """What `trtconv.check` takes besides its subject and the module."""

    no_source_check: bool
    baseline: PathText
    update_baseline: bool
    baseline_engine: PathText
    processes: int


def command_line(
    call: str, kinds: Iterable[type[Any]], keywords: Mapping[str, Any], *, without: Collection[str] = ()
) -> CommandLine:
    """The keyword arguments as the command line would give them; None is as good as not given.

    `without` are names that the call does not take although a dataclass describes them. Raises InvalidRequestError for
    a name that none of the dataclasses describes, and for a value of the wrong kind.
    """
    options: dict[str, Option] = {}
    for kind in kinds:
        for option in described_fields(kind).values():
            if option.name not in without:
                options.setdefault(option.name, option)
    unknown = next((name for name in keywords if name not in options), None)
    if unknown is not None:
        raise InvalidRequestError(
            f"trtconv.{call} takes no argument '{unknown}'{did_you_mean(unknown, options)}",
            hint="its arguments are: " + ", ".join(sorted(options)),
        )
    return CommandLine({n: _value(options[n], v) for n, v in keywords.items() if v is not None})


def _value(option: Option, value: Any) -> Any:
    """A value in the form in which click gives it."""
    if option.form == "flag":
        if not isinstance(value, bool):
            raise _wrong(option, value, "True or False", True)
        return value
    if option.many:
        return tuple(_single(option, v) for v in _listed(option, value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ",".join(str(v) for v in value)
    return _single(option, value)


def _listed(option: Option, value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        # The command line reads factory arguments as JSON, where they are JSON.
        return [f"{k}={_json(option, v) if option.name == 'arg' else v}" for k, v in value.items()]
    if isinstance(value, (str, PathLike)) or not isinstance(value, Iterable):
        return [value]
    return list(value)


def _json(option: Option, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(
            f"the factory argument {value!r} is not a plain value", hint="call the factory, and pass the module itself"
        ) from error


def _single(option: Option, value: Any) -> Any:
    if option.form == "path":
        if not isinstance(value, (str, PathLike)):
            raise _wrong(option, value, "a path", "out")
        return path_of(value, option.name, "a path")
    if option.form == "choice":
        if value not in option.choices:
            near = next((c for c in option.choices if c == str(value).lower()), option.choices[0])
            raise _wrong(option, value, "one of " + ", ".join(option.choices), near)
        return value
    if option.form in ("integer", "number"):
        low, high = option.bounds or (0.0, 1e30)
        number = parse_number(value, option.name, low, high)
        if option.form == "integer" and not float(value).is_integer():
            raise _wrong(option, value, "an integer", math.floor(float(value)))
        return int(value) if option.form == "integer" else number
    if not isinstance(value, (str, int, PathLike)) or isinstance(value, bool):
        raise _wrong(option, value, "a text", option.metavar or "TEXT")
    return str(value)


def _wrong(option: Option, value: Any, what: str, example: Any) -> InvalidRequestError:
    text = repr(value)
    shown = text if len(text) <= 60 else text[:60] + "..."
    return InvalidRequestError(
        f"{option.name} must be {what}, got {shown}",
        hint=f"write {option.name}={example!r:.60}, or leave it out ({option.help.rstrip('.')})",
    )
