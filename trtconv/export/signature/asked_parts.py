"""Dicts and lists that tell which of their parts forward asks for and does not get."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trtconv.export.module.binding import Binding, annotations_of

_UNPACKED = re.compile(r"not enough values to unpack \(expected (?:at least )?(\d+), got (\d+)\)")
_TOO_MANY = re.compile(r"too many values to unpack \(expected (\d+)\b")
_OF_DICTS = re.compile(
    r"'Tensor' object has no attribute '(get|items|keys|values|pop)'|argument after \*\* must be a mapping, not Tensor"
)
_ARGUMENTS = re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)")
# What stands for a part when all that is known of an input is that it is a dict.
ANY_KEY = "*"


class AskedParts:
    """The containers of one run. `empty` are the paths of dicts of which no part is known."""

    def __init__(self, empty: Collection[str]) -> None:
        self._empty = empty
        self.missing: list[str] = []
        # Asked for with `get` or `in`: forward may do without them.
        self.wished: list[str] = []
        self._lists: dict[str, int] = {}
        self._dicts: list[str] = []

    def arguments(self, binding: Binding, tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of forward, their dicts and lists replaced by those that tell."""
        positional, keywords = binding.arguments(tensors)
        names = [slot.name for slot in binding.slots if not slot.keyword]
        return (
            [self._telling(name, value) for name, value in zip(names, positional, strict=True)],
            {name: self._telling(name, value) for name, value in keywords.items()},
        )

    def asked_by(
        self, error: Exception, forward: Callable[..., Any], names: Sequence[str], iterated: Collection[str] = ()
    ) -> tuple[str, ...]:
        """The paths of the parts that a run ended for want of. `iterated`: inputs whose rows forward went through."""
        if self.missing:
            return tuple(self.missing)
        text = str(error)
        arguments = _ARGUMENTS.search(text)
        if arguments is not None and len(self._dicts) == 1:  # of `f(**batch)`
            return tuple(f"{self._dicts[0]}.{name}" for name in re.findall(r"'(\w+)'", arguments[1]))
        return (
            self._unpacked(text)
            or _of_open_parameters(error, forward, names)
            or self._of_tensors(text, forward, names, iterated)
            or tuple(self.wished)
        )

    def _unpacked(self, text: str) -> tuple[str, ...]:
        """Of `a, b = pair`, where a list was too short."""
        unpacked = _UNPACKED.search(text)
        if unpacked is None:
            return ()
        length_unpacked, count = int(unpacked[1]), int(unpacked[2])
        short = next((path for path, length in self._lists.items() if length == count), None)
        return () if short is None else tuple(f"{short}.{i}" for i in range(count, length_unpacked))

    def _of_tensors(
        self, text: str, forward: Callable[..., Any], names: Sequence[str], iterated: Collection[str]
    ) -> tuple[str, ...]:
        """Of inputs without a hint, which were taken for tensors and are dicts or lists."""
        hints = annotations_of(forward)
        whole = [n for n in names if "." not in n and n not in self._empty and n not in hints]
        if _OF_DICTS.search(text) and len(whole) == 1:
            return (f"{whole[0]}.{ANY_KEY}",)
        split, gone_through = _TOO_MANY.search(text), [n for n in whole if n in iterated]
        if split is not None and len(gone_through) == 1:
            return tuple(f"{gone_through[0]}.{i}" for i in range(int(split[1])))
        return ()

    def _telling(self, path: str, value: Any) -> Any:
        if isinstance(value, dict):
            self._dicts.append(path)
            return AskedDict(self, path, {k: self._telling(f"{path}.{k}", v) for k, v in value.items()})
        if isinstance(value, list):
            self._lists[path] = len(value)
            return AskedList(self, path, [self._telling(f"{path}.{i}", v) for i, v in enumerate(value)])
        return self._telling(path, {}) if path in self._empty else value


def _of_open_parameters(error: Exception, forward: Callable[..., Any], names: Sequence[str]) -> tuple[str, ...]:
    """Of `**more` by its key, and of `*rest` by a number."""
    kinds = {p.kind: p.name for p in inspect.signature(forward).parameters.values()}
    if isinstance(error, KeyError) and inspect.Parameter.VAR_KEYWORD in kinds and isinstance(error.args[0], str):
        return (error.args[0],)
    rest = kinds.get(inspect.Parameter.VAR_POSITIONAL)
    if rest is None or not (_UNPACKED.search(str(error)) or "tuple index out of range" in str(error)):
        return ()
    return (f"{rest}{sum(re.fullmatch(rf'{rest}[0-9]+', n) is not None for n in names)}",)


class AskedDict(dict[str, Any]):
    """A dict that remembers the keys it was asked for and does not have."""

    def __init__(self, parts: AskedParts, path: str, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._parts, self._path = parts, path

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, str):
            self._parts.missing.append(f"{self._path}.{key}")
        raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        self._wish(key)
        return super().__contains__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """As of every dict."""
        self._wish(key)
        return super().get(key, default)

    def _wish(self, key: Any) -> None:
        if isinstance(key, str) and not super().__contains__(key):
            self._parts.wished.append(f"{self._path}.{key}")


class AskedList(list[Any]):
    """A list that remembers that it was too short."""

    def __init__(self, parts: AskedParts, path: str, values: Sequence[Any]) -> None:
        super().__init__(values)
        self._parts, self._path = parts, path

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and not -len(self) <= index < len(self):
            count = index + 1 if index >= 0 else -index
            self._parts.missing += [f"{self._path}.{i}" for i in range(len(self), count)]
        return super().__getitem__(index)
