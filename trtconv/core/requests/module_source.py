"""Where a module comes from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.option import option, paths_seen_from
from trtconv.core.text.json_text import parse_json

LARGEST_SEED = 2**63 - 1
_BRACKETS = ("(", "[", "{", "'")


def _factory_arguments(texts: tuple[str, ...]) -> dict[str, Any]:
    return dict(_factory_argument(t) for t in texts)


def _factory_argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise InvalidRequestError(f"cannot read the argument '{text}'", hint="write --arg KEY=VALUE")
    try:
        return key, parse_json(value)
    except ValueError:
        return key, _python_literal(value)


def _python_literal(text: str) -> Any:
    """What Python writes otherwise than JSON: True, False, None, tuples, quotes; the text itself for anything else."""
    if text not in ("True", "False", "None") and not text.startswith(_BRACKETS):
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _merged_arguments(
    config: Mapping[str, Any] | None, overrides: Mapping[str, Any] | None
) -> tuple[tuple[str, Any], ...]:
    return tuple({**(config or {}), **(overrides or {})}.items())


def _spec_seen_from(spec: str, folder: Path) -> str:
    """`file.py:function` with the folder in front; `package.module:function` stays."""
    return str(folder / spec) if spec.rpartition(":")[0].endswith(".py") else spec


@dataclass(frozen=True)
class LiveModule:
    """An `nn.Module` of this process: `name` is that of its class, `package.module.Net`; `file` holds the class.

    `file` is None for a class that no file of the user's defines (a notebook's, or one of torch). The manifest
    records name and file; the module itself is never pickled or copied.
    """

    module: Any = field(repr=False)
    name: str
    file: Path | None = None


@dataclass(frozen=True)
class ModuleSource:
    """Where the `nn.Module` comes from.

    `spec` is `path/to/file.py:factory`, `package.module:factory` or `program.pt2`; relative paths are seen from
    `base`. `args` are keyword arguments of the factory. `weights` is safetensors or a state dict.
    `paths` are put before `sys.path` while the module is made. `sample` is
    `file.py:function` with the signature `(dims: dict[str, int], generator: torch.Generator) -> tuple of tensors`.
    `live` is a module that is there already; `spec` is then the name of its class.
    Raises InvalidRequestError for a seed that is not from 0 to 2^63 - 1.
    """

    spec: str
    args: tuple[tuple[str, Any], ...] = field(
        default=(),
        metadata=option(
            "--arg",
            help="Keyword argument of the factory.",
            group="Model",
            example="--arg classes=21",
            metavar="KEY=VALUE",
            many=True,
            key="model.args",
            parse=_factory_arguments,
            merge=_merged_arguments,
        ),
    )
    weights: Path | None = field(
        default=None,
        metadata=option(
            "--weights",
            help="Safetensors file, or a state dict (loaded with weights_only).",
            group="Model",
            example="--weights net.safetensors",
            form="path",
            key="model.weights",
            parse=lambda path: path.absolute(),
            parse_config=lambda text, base: paths_seen_from(text, base) if text else None,
        ),
    )
    sample: str | None = field(
        default=None,
        metadata=option(
            "--sample",
            help="Makes inputs that random values would not make valid.",
            group="Model",
            metavar="FILE.py:FUNCTION",
            key="model.sample",
            parse=lambda spec: _spec_seen_from(spec, Path.cwd()),
            parse_config=lambda spec, base: _spec_seen_from(spec, base) if spec else None,
        ),
    )
    seed: int = field(
        default=0,
        metadata=option(
            "--seed",
            help="Seed of the factory's weights and of the sample values (default 0).",
            group="Model",
            form="integer",
            bounds=(0, LARGEST_SEED),
            key="model.seed",
        ),
    )
    paths: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "--path",
            help="A folder that the module's imports are looked for in (repeatable).",
            group="Model",
            form="path",
            many=True,
            key="model.path",
            parse=lambda paths: tuple(p.absolute() for p in paths),
            parse_config=lambda texts, base: tuple(base / t for t in ([texts] if isinstance(texts, str) else texts)),
        ),
    )
    base: Path = Path()
    live: LiveModule | None = None

    def __post_init__(self) -> None:
        """Check the seed."""
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InvalidRequestError(f"seed must be from 0 to 2^63 - 1, got {self.seed}", hint="write another number")

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are named: module, weights, sample function; some may not exist (`package.module`)."""
        named = (self.sample or "",) if self.live else (self.spec, self.sample or "")
        specs = [self.base / (spec.rpartition(":")[0] or spec) for spec in named if spec]
        own = [self.live.file] if self.live and self.live.file else []
        return (*own, *specs, *([self.base / self.weights] if self.weights else ()))
