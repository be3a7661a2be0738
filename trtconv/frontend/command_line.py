"""What a command was given, typed: its own options as a dataclass, and requests laid over a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from trtconv.core.config import Config
from trtconv.core.option import Option, described_fields
from trtconv.core.text.numbers import parse_number

T = TypeVar("T")
_MISSING = object()


@dataclass(frozen=True)
class CommandLine:
    """The values of a command's options by `Option.name`, as click parsed them."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def has(self, option: Option) -> bool:
        """True when the user gave the option."""
        return _is_given(self.values.get(option.name))

    def option_value(self, option: Option) -> Any:
        """What an option that was given stands for."""
        return option.parse(self.values[option.name])

    def of(self, kind: type[T]) -> T:
        """A dataclass all of whose fields are options, from the command line alone; what is not given is default."""
        values = {name: self.option_value(o) for name, o in described_fields(kind).items() if self.has(o)}
        return kind(**values)

    def request(
        self,
        kind: type[T],
        config: Config,
        *,
        seen_from: Path | None = None,
        fallbacks: Mapping[str, Callable[[], Any]] | None = None,
        **fixed: Any,
    ) -> T:
        """A request out of the command line laid over the config.

        `fixed` fields are taken as they are. Paths of the config are seen from `seen_from`, its own folder by default;
        `fallbacks` are called for fields that neither side gives. Raises InvalidRequestError as the parsers do.
        """
        values = dict(fixed)
        for name in described_fields(kind):
            if name in fixed:
                continue
            value = self.field_value(kind, name, config, seen_from=seen_from)
            if value is _MISSING and fallbacks and name in fallbacks:
                value = fallbacks[name]()
            if value is not _MISSING:
                values[name] = value
        return kind(**values)

    def field_value(self, kind: type[Any], name: str, config: Config, *, seen_from: Path | None = None) -> Any:
        """One field of a request, as `request` would fill it."""
        option = described_fields(kind)[name]
        recorded = self._recorded(option, config, config.base if seen_from is None else seen_from)
        if not option.merge:
            return self.option_value(option) if self.has(option) else recorded
        override = self.option_value(option) if self.has(option) else None
        return option.merge(None if recorded is _MISSING else recorded, override)

    def _recorded(self, option: Option, config: Config, base: Path) -> Any:
        """What the config says; nothing where it has no such key, or a flag given on the command line silences it."""
        if not option.key or (option.unless and self._has_flag(option.unless)):
            return _MISSING
        value = recorded_value(option, config)
        return _MISSING if value is None else option.parse_config(value, base)

    def _has_flag(self, flag: str) -> bool:
        return _is_given(self.values.get(flag.removeprefix("--").replace("-", "_")))


def recorded_value(option: Option, config: Config) -> Any:
    """What the config says for an option, or None. Raises InvalidRequestError for a number out of its bounds."""
    value: Any = config
    for part in option.key.split("."):
        value = getattr(value, part)
    if option.bounds is not None and value is not None:
        parse_number(value, f"{config.path}: {option.key}", *option.bounds)
    return value


def _is_given(value: Any) -> bool:
    """Click has None, False, 0 for a count, or an empty tuple for what was not given; 0 may also be a number."""
    return not (value is None or value is False or value == () or value == "")
