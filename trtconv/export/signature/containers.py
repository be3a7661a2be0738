"""Inputs that are dicts, lists, tuples or dataclasses of tensors: their parts by the hints, or as forward asks.

A part is an input of its own, called by its path as `--input` calls it: `batch.images`, `levels.0`.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.tensors import TensorSpec
from trtconv.export.module.binding import annotations_of, container_of, element_of
from trtconv.export.module.runner import forward_of
from trtconv.export.signature.asked_parts import ANY_KEY
from trtconv.export.signature.forms import SIZES
from trtconv.export.signature.likely_inputs import LikelyInput, likely_part
from trtconv.export.signature.search import InputSearch, search_inputs

if TYPE_CHECKING:
    from torch import nn

MOST_PARTS = 64
# A list of which all parts are read, however many there are, is given two.
MOST_LISTED, ANY_LENGTH = 6, 2
_DICTS = (dict, Mapping, MutableMapping)
_LISTS = (list, Sequence, MutableSequence)


@dataclass(frozen=True)
class PartSearch:
    """The inputs, containers taken apart, and what the search came to; `any_length` are lists of any length."""

    likely: tuple[LikelyInput, ...]
    search: InputSearch
    any_length: tuple[str, ...] = ()


def search_parts(module: nn.Module, likely: Sequence[LikelyInput], base: Path) -> PartSearch:
    """Inputs at which forward runs, as `search_inputs`, with an input for each tensor in a container."""
    hints = annotations_of(forward_of(module))
    parts, empty = list[LikelyInput](), set[str]()
    for parameter in likely:
        paths = list(_paths(parameter.name, hints.get(parameter.name), empty))
        leads = paths[0] if not parts else ""
        parts += [parameter] if paths == [parameter.name] else [likely_part(module, p, first=p == leads) for p in paths]
    search = search_inputs(module, parts, base, empty=empty)
    while search.inputs is None and len(parts) < MOST_PARTS:
        more = _with_asked(module, parts, empty, hints, search.last.asked_paths)
        if more == parts and not _turned(empty, search.last.asked_paths):
            break
        parts = more
        search = search_inputs(module, parts, base, empty=empty)
    unknown = [p.name for p in parts if p.name in empty]
    if unknown and (search.inputs is not None or not search.last.error):
        why = f"forward takes a dict '{unknown[0]}' and asks for no key of it by name"
        search = InputSearch(None, replace(search.last, error=why, where=""))
    if search.inputs is None:
        named = (replace(p, name=f"{p.name}.KEY", dims=None) if p.name in empty else p for p in parts)
        return PartSearch(tuple(named), search)
    return _lengthened(module, *_as_lists(module, parts, search, base), base)


def _as_lists(
    module: nn.Module, parts: list[LikelyInput], search: InputSearch, base: Path
) -> tuple[list[LikelyInput], InputSearch]:
    """Tensors that forward goes through, and runs with one row of alone, are lists where that runs too."""
    assert search.inputs is not None
    for index, spec in enumerate(search.inputs):
        if spec.name in search.last.iterated and spec.dims[:1] == (1,) and "." not in spec.name:
            listed = [*parts[:index], likely_part(module, f"{spec.name}.0", first=index == 0), *parts[index + 1 :]]
            other = search_inputs(module, listed, base)
            if other.inputs is not None:
                parts, search = listed, other
    return parts, search


def _paths(path: str, hint: Any, empty: set[str]) -> Iterator[str]:
    """The paths of the tensors in an input, by its hint. A dict without known parts is one, and put into `empty`."""
    kind = container_of(hint)
    arguments = [a for a in typing.get_args(hint) if a is not type(None)]
    if len(arguments) == 1 and typing.get_origin(hint) not in (*_DICTS, *_LISTS, tuple):
        yield from _paths(path, arguments[0], empty)  # Optional
    elif dataclasses.is_dataclass(kind):
        required = [f.name for f in dataclasses.fields(kind) if _unset(f)]
        for name in required:
            yield from _paths(f"{path}.{name}", annotations_of(kind).get(name), empty)  # type: ignore[arg-type]
    elif isinstance(kind, type) and (hasattr(kind, "_fields") or typing.is_typeddict(kind)):
        for name, inner in annotations_of(kind).items():
            yield from _paths(f"{path}.{name}", inner, empty)
    elif kind is tuple and arguments and arguments[-1] is not Ellipsis:
        for index, inner in enumerate(arguments):
            yield from _paths(f"{path}.{index}", inner, empty)
    elif kind in _LISTS or kind is tuple:
        yield from _paths(f"{path}.0", arguments[0] if arguments else None, empty)
    else:
        if kind in _DICTS:
            empty.add(path)
        yield path


def _unset(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _turned(empty: set[str], asked_paths: Sequence[str]) -> bool:
    """True where all that is known is that an input is a dict; it is put into `empty`."""
    roots = [path.removesuffix(f".{ANY_KEY}") for path in asked_paths if path.endswith(f".{ANY_KEY}")]
    empty |= set(roots)
    return bool(roots)


def _with_asked(
    module: nn.Module,
    parts: Sequence[LikelyInput],
    empty: set[str],
    hints: Mapping[str, Any],
    asked_paths: Sequence[str],
) -> list[LikelyInput]:
    """The inputs with the parts that forward asked for, each behind those of the same container."""
    result = list(parts)
    for path in asked_paths:
        name = path.rpartition(".")[2]
        if name == ANY_KEY or not name or "." in name or any(p.name == path for p in result):
            continue
        inner = list(_paths(path, _hint_at(hints, path), empty))
        container = path.rpartition(".")[0]
        whole = next((i for i, p in enumerate(result) if p.name == container), None)
        near = [i for i, p in enumerate(result) if container and p.name.startswith(f"{container}.")]
        at = whole if whole is not None else near[-1] + 1 if near else len(result)
        if whole is not None:
            del result[whole]
            empty.discard(container)
        result[at:at] = [likely_part(module, p, first=at == 0 and i == 0) for i, p in enumerate(inner)]
    return result


def _hint_at(hints: Mapping[str, Any], path: str) -> Any:
    root, *keys = path.split(".")
    hint = hints.get(root)
    for key in keys:
        hint = element_of(hint, key)
    return hint


def _lengthened(module: nn.Module, parts: list[LikelyInput], search: InputSearch, base: Path) -> PartSearch:
    """Lists with as many parts as forward reads: one that it leaves unread is one too many."""
    lists = dict.fromkeys(p.name.rpartition(".")[0] for p in parts if p.name.rpartition(".")[2].isdigit())
    hints, free = annotations_of(forward_of(module)), []
    for path in lists:
        if container_of(_hint_at(hints, path)) is tuple:
            continue
        shortest, shortest_search = parts, search
        while True:
            index = [i for i, p in enumerate(parts) if p.name.rpartition(".")[0] == path][-1] + 1
            count = int(parts[index - 1].name.rpartition(".")[2]) + 1
            if count > MOST_LISTED:
                free.append(path)
                parts, search = shortest, shortest_search
                break
            seen_parts = [_as_seen(p, s) for p, s in zip(parts, search.inputs or (), strict=True)]
            more = [*seen_parts[:index], replace(seen_parts[index - 1], name=f"{path}.{count}"), *seen_parts[index:]]
            longer = search_inputs(module, more, base)
            if longer.inputs is None or f"{path}.{count}" not in longer.last.used:
                break
            parts, search = more, longer
            if count + 1 == ANY_LENGTH:
                shortest, shortest_search = parts, search
    return PartSearch(tuple(parts), search, tuple(free))


def _as_seen(likely: LikelyInput, spec: TensorSpec) -> LikelyInput:
    """The form in which an input ran, where its dims have the usual names."""
    if not set(spec.names()) <= set(SIZES[0]):
        return likely
    values = None if spec.value_range is None else (int(spec.value_range[0]), int(spec.value_range[1]))
    return replace(likely, dtype=spec.dtype.name, dims=spec.dims, value_range=values)


def open_parameters(module: nn.Module) -> bool:
    """True where forward takes `*args` or `**kwargs`, whose tensors no signature tells."""
    kinds = {p.kind for p in inspect.signature(forward_of(module)).parameters.values()}
    return bool(kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})
