"""Fields of a JSON table that somebody else may have written: each is read as the type that it has to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# JSON has no form for these, which an error may well be.
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# No count, size or index in our files is larger.
_MOST = 1 << 62


class Fields:
    """A table of which each method reads one field. All raise ValueError where it is missing or of another type."""

    def __init__(self, value: Any, name: str = "") -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{repr(name) if name else 'it'} is not a table")
        self._table: Mapping[str, Any] = value

    def get(self, name: str) -> Any:
        """The value of a field, whatever it is."""
        if name not in self._table:
            raise ValueError(f"it has no '{name}'")
        return self._table[name]

    def text(self, name: str) -> str:
        """A text that UTF-8 has a form for."""
        return _text(self.get(name), name)

    def digest(self, name: str) -> str:
        """A SHA-256 in hex."""
        text = self.text(name)
        if len(text) != 64 or set(text) - set("0123456789abcdef"):
            raise ValueError(f"'{name}' is not a SHA-256")
        return text

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise ValueError(f"'{name}' is neither true nor false")
        return value

    def optional_flag(self, name: str) -> bool | None:
        """True, false or null."""
        return None if self.get(name) is None else self.flag(name)

    def whole(self, name: str) -> int:
        """A whole number from 0 up."""
        return _whole(self.get(name), name)

    def optional_whole(self, name: str) -> int | None:
        """A whole number from 0 up, or null."""
        return None if self.get(name) is None else self.whole(name)

    def number(self, name: str) -> float:
        """A number; a text stands for one that is not finite."""
        return _number(self.get(name), name)

    def optional_number(self, name: str) -> float | None:
        """A number or null."""
        return None if self.get(name) is None else self.number(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(_text(v, name) for v in self.values(name))

    def wholes(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers from 0 up, such as a shape."""
        return tuple(_whole(v, name) for v in self.values(name))

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of numbers."""
        return tuple(_number(v, name) for v in self.values(name))

    def table(self, name: str) -> Fields:
        """A table in the table."""
        return Fields(self.get(name), name)

    def optional_table(self, name: str) -> Fields | None:
        """A table or null."""
        return None if self.get(name) is None else self.table(name)

    def tables(self, name: str) -> tuple[Fields, ...]:
        """A list of tables."""
        return tuple(Fields(v, name) for v in self.values(name))

    def text_table(self, name: str) -> dict[str, str]:
        """A table of texts."""
        table = self.table(name)
        return {key: table.text(key) for key in table.names()}

    def whole_table(self, name: str) -> dict[str, int]:
        """A table of whole numbers from 0 up."""
        table = self.table(name)
        return {key: table.whole(key) for key in table.names()}

    def settings(self, name: str) -> dict[str, Any]:
        """A table of texts, numbers, truth values, and lists and tables of them."""
        table = self.table(name)
        return {key: _setting(table.get(key), key) for key in table.names()}

    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(_text(name, "a name") for name in self._table)

    def values(self, name: str) -> list[Any]:
        """A list of whatever."""
        value = self.get(name)
        if not isinstance(value, list):
            raise ValueError(f"'{name}' is not a list")
        return value


def _setting(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_setting(v, name) for v in value]
    if isinstance(value, dict):
        return {_text(k, name): _setting(v, name) for k, v in value.items()}
    return value if value is None or isinstance(value, (bool, int, float)) else _text(value, name)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"'{name}' is not text")
    value.encode()
    return value


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise ValueError(f"'{name}' is not a whole number from 0 up")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"'{name}' is not a number")
    return float(value)
