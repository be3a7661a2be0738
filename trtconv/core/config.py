"""`trtconv.toml`: everything that the command line takes, in a file. The command line wins.

The sections are plain frozen dataclasses, so that a caller without a file builds them directly; pydantic validates
what comes from a file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError, did_you_mean

_STRICT = {"extra": "forbid"}


@dataclass(frozen=True)
class ModelSection:
    """`[model]`: `module` is `file.py:factory`, relative to the config file; `args` go to the factory by keyword."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    module: str = ""
    weights: str | None = None
    seed: int = 0
    sample: str | None = None
    path: str | list[str] = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InputSection:
    """`[[input]]`: a forward parameter with its dtype, dims (integers, names, `P+S`), range and name in the model."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    name: str
    dims: list[int | str]
    dtype: str = "float32"
    range: tuple[float, float] | None = None
    rename: str = ""


@dataclass(frozen=True)
class ExportSection:
    """`[export]`. `align` and `pad_to_multiple` ("auto", "reflect", "edge" or "zero") are for odd sizes."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    exporter: str = "auto"
    opset: int | None = None
    align: bool = False
    pad_to_multiple: str = ""
    output_names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RewriteSection:
    """`[rewrite]`. `target` None follows the backend that builds; `keep_fp32` names nodes for a half precision.

    `nms` is "native", "topk" or "auto".
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    target: str | None = None
    only: list[str] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    proof: bool = True
    rules: list[str] = field(default_factory=list)
    script: str = ""
    nms: str = "native"
    max_detections: int = 300
    plugins: str = "never"
    keep_fp32: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class BuildSection:
    """`[build]`. `workspace` like "4GiB"; `profiles` like "N=1:1:1 H=320:640:1280%32"."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    backend: str = "auto"
    precision: str = "auto"
    dynamic: bool = True
    profiles: list[str] = field(default_factory=list)
    workspace: str | None = None
    timing_cache: str | None = None
    opt_level: int | None = None
    compute_capability: list[str] = field(default_factory=list)
    plugins: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OutputSection:
    """`[check.outputs.NAME]`: a tolerance of one output; one looser than the default needs a `why`."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    rtol: float | None = None
    atol: float | None = None
    cosine: float | None = None
    mismatched: float | None = None
    why: str = ""


@dataclass(frozen=True)
class CheckSection:
    """`[check]`. `budgets` are limits and `baseline` ratios by name, see docs/how-to/ci.md; `power` counts faults."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    rtol: float | None = None
    atol: float | None = None
    why: str = ""
    outputs: dict[str, OutputSection] = field(default_factory=dict)
    budgets: dict[str, Any] = field(default_factory=dict)
    baseline: dict[str, float] = field(default_factory=dict)
    power: int | None = None


@dataclass(frozen=True)
class ContractSection:
    """`[contract]`: what an engine has to keep, for `trtconv tune`, and the data of `--precision int8`."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    data: str = ""
    preprocess: str = ""
    calibration: str = "max"
    metric: str | None = None
    max_drop: str | None = None
    precisions: list[str] | None = None
    minutes: float | None = None


@dataclass(frozen=True)
class Config:
    """A whole `trtconv.toml`. `path` is where it was read from; relative paths inside are seen from its folder."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    model: ModelSection = field(default_factory=ModelSection)
    input: list[InputSection] = field(default_factory=list)
    dynamic: dict[str, int | str] = field(default_factory=dict)
    export: ExportSection = field(default_factory=ExportSection)
    rewrite: RewriteSection = field(default_factory=RewriteSection)
    build: BuildSection = field(default_factory=BuildSection)
    check: CheckSection = field(default_factory=CheckSection)
    contract: ContractSection = field(default_factory=ContractSection)
    path: Path | None = None

    @property
    def base(self) -> Path:
        """The folder from which relative paths of the file are seen."""
        return self.path.parent if self.path else Path()


def read_config(path: Path) -> Config:
    """Read and validate a `trtconv.toml`. Raises InvalidRequestError with the key at fault."""
    import dataclasses

    require_file(path, "config")
    try:
        data = toml_reader().loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidRequestError(f"'{path}' is not UTF-8 in line {line}", hint="save it as UTF-8") from error
    except ValueError as error:
        raise InvalidRequestError(f"'{path}' is not TOML: {error}", hint="see `trtconv help config`") from error
    return dataclasses.replace(validate_config(data, str(path)), path=path)


def validate_config(data: dict[str, Any], name: str) -> Config:
    """Turn plain data into a Config."""
    try:
        from pydantic import TypeAdapter, ValidationError
    except ImportError as error:
        from trtconv.core.errors import MissingDependencyError

        raise MissingDependencyError("reading a config file needs pydantic", hint="pip install pydantic") from error
    if "path" in data:
        raise InvalidRequestError(f"{name}: unknown key 'path'")
    try:
        config: Config = TypeAdapter(Config).validate_python(data)
    except ValidationError as error:
        problems = list(dict.fromkeys(_problem(e) for e in error.errors()))
        raise InvalidRequestError(
            f"{name}: {problems[0]}", details=problems[1:], hint="`trtconv help config` lists every key"
        ) from None
    truth = _truth_as_number(data, config)
    if truth:
        raise InvalidRequestError(f"{name}: '{truth}' is a number, not true or false", hint="write the number")
    return config


def _truth_as_number(data: Any, value: Any, key: str = "") -> str:
    """The key of a `true` or `false` that pydantic took for 1 or 0; empty where there is none."""
    if isinstance(data, dict):
        values = value if isinstance(value, dict) else vars(value) if hasattr(value, "__dict__") else {}
        parts = [(f"{key}.{k}" if key else str(k), v, values.get(k)) for k, v in data.items()]
    elif isinstance(data, list) and isinstance(value, (list, tuple)):
        parts = [(key, *pair) for pair in zip(data, value, strict=False)]
    else:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return key if isinstance(data, bool) and is_number else ""
    return next(filter(None, (_truth_as_number(v, now, k) for k, v, now in parts)), "")


def _problem(error: Any) -> str:
    key_path = ".".join(str(p) for p in error["loc"])
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        section: Any = Config
        for part in error["loc"][:-1]:
            section = _section_of(section, part)
        field_names = [f for f in getattr(section, "__dataclass_fields__", {}) if f != "path"]
        return f"unknown key '{key_path}'{did_you_mean(str(error['loc'][-1]), field_names)}"
    if error["loc"][-1] in _SIZE_OR_TEXT:
        other = 'range: write 4, or "1:4:16" for MIN:OPT:MAX' if error["loc"][0] == "dynamic" else "name"
        return f"'{'.'.join(str(p) for p in error['loc'][:-1])}' is no size and no {other}"
    if error["type"] in ("dataclass_type", "dataclass_exact_type"):
        return f"'{key_path}' is a section: write [{key_path}], and its keys below"
    return describe_problem(key_path, error)


def describe_problem(key: str, error: Any) -> str:
    """What pydantic says of a key, in the words of TOML where it asks for a list of sections."""
    if error["type"] in ("list_type", "tuple_type") and isinstance(error["input"], dict):
        return f"'{key}' is a list of sections: write [[{key}]] above each"
    return f"'{key}': {error['msg'][0].lower()}{error['msg'][1:]}"


# What pydantic adds to a key where it is neither of `int | str`: a size, or a text.
_SIZE_OR_TEXT = ("int", "str")
_SECTIONS: dict[str, Any] = {
    "model": ModelSection,
    "input": InputSection,
    "export": ExportSection,
    "rewrite": RewriteSection,
    "build": BuildSection,
    "check": CheckSection,
    "contract": ContractSection,
    "outputs": OutputSection,
}


def _section_of(section: Any, part: Any) -> Any:
    return _SECTIONS.get(part, section) if isinstance(part, str) else section


def toml_reader() -> Any:
    """The module that reads TOML: the standard library's from Python 3.11 on."""
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    import tomli

    return tomli
