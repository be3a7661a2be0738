"""Which of the module's forward parameters each named input goes to.

`--input images:float32[...]` goes to the parameter `images`; inputs whose names forward does not have go to the
parameters that are left, in order, where there are as many of them. A parameter that takes a dict, list or dataclass
is filled by inputs with dotted names: `batch.image` and `batch.mask`, or `features.0` and `features.1`.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trtconv.core.errors import InvalidRequestError, did_you_mean

Tree = int | dict[str, "Tree"]
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class InputSlot:
    """One argument of forward: how it is passed, and how it is made of the flat inputs."""

    name: str
    keyword: bool
    tree: Tree
    annotation: Any


@dataclass(frozen=True)
class Binding:
    """The arguments of forward in terms of the flat inputs, in their order.

    `by_position`: input name -> parameter, where the names differ.
    """

    slots: tuple[InputSlot, ...]
    by_position: Mapping[str, str] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """Which inputs went to parameters of other names, for people; empty when names match."""
        return ", ".join(f"'{n}' is forward's '{p}'" for n, p in self.by_position.items())

    def arguments(self, tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments made of the flat inputs."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for slot in self.slots:
            value = _build(slot.tree, slot.annotation, tensors)
            if slot.keyword:
                keywords[slot.name] = value
            else:
                positional.append(value)
        return positional, keywords


def bind_inputs(
    forward: Callable[..., Any], names: Sequence[str], leading: bool = False, claimed: Collection[str] = ()
) -> Binding:
    """Match input names with forward's parameters by name, and what is left over by position.

    `leading`: the parameters before the first one that has a default or no input are passed by position, as they are
    to a decorator's `(*args, **kwargs)`.
    `claimed`: those of `names` that the user called parameters (`--input PARAMETER=NAME:...`); they have to be.

    Raises InvalidRequestError for an input that forward does not take, one given twice, or a parameter without a
    default that has no input.
    """
    parameters = list(inspect.signature(forward).parameters.values())
    named = {p.name: p for p in parameters if p.kind not in _VARIADIC}
    rest = next((p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    takes_more = rest is not None or open_ended
    renamed = {} if takes_more else _match_by_position(names, named, claimed)
    trees, loose = _group([renamed.get(n, n) for n in names], named, takes_more)
    missing = [n for n, p in named.items() if p.default is p.empty and n not in trees]
    if missing:
        raise InvalidRequestError(
            f"the module's input '{missing[0]}' has no --input",
            hint=f"add --input {missing[0]}:DTYPE[D0,D1,...]; its forward takes: {', '.join(named)}",
        )
    hints = annotations_of(forward)
    leading = leading or _is_behind_arguments(forward)
    slots: list[InputSlot] = []
    positional = rest is not None and bool(loose)
    first = list(itertools.takewhile(lambda n: n in trees and named[n].default is inspect.Parameter.empty, named))
    for name, parameter in named.items():
        if name not in trees:
            continue
        by_keyword = parameter.kind is parameter.KEYWORD_ONLY or (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not positional and not (leading and name in first)
        )
        slots.append(InputSlot(name, by_keyword, trees[name], hints.get(name)))
    slots += [InputSlot(name, rest is None, tree, None) for name, tree in loose.items()]
    slots.sort(key=lambda s: s.keyword)
    return Binding(tuple(slots), renamed)


def _is_behind_arguments(forward: Callable[..., Any]) -> bool:
    """True for a function that stands behind another one's `*args` and has lent it its signature (functools.wraps)."""
    code = getattr(forward, "__code__", None)
    return hasattr(forward, "__wrapped__") and code is not None and bool(code.co_flags & inspect.CO_VARARGS)


def _match_by_position(
    names: Sequence[str], named: Mapping[str, inspect.Parameter], claimed: Collection[str]
) -> dict[str, str]:
    """Input name -> parameter, for inputs whose names forward does not have; empty where their number does not fit.

    They go to the required parameters that no input names; with fewer inputs than that nothing could run, and with more
    the optional ones would be guessed at.
    """
    foreign = [n for n in dict.fromkeys(names) if n.split(".")[0] not in named]
    bound = {n.split(".")[0] for n in names}
    required = [n for n, p in named.items() if p.default is p.empty and n not in bound]
    if len(foreign) != len(required) or any("." in n or n in claimed for n in foreign):
        return {}
    return dict(zip(foreign, required, strict=True))


def _group(
    names: Sequence[str], named: Mapping[str, inspect.Parameter], takes_more: bool
) -> tuple[dict[str, Tree], dict[str, Tree]]:
    trees: dict[str, Tree] = {}
    loose: dict[str, Tree] = {}
    used_names: set[str] = set()
    for index, name in enumerate(names):
        if name in used_names:
            raise InvalidRequestError(f"the input '{name}' is given twice", hint="keep one --input for it")
        used_names.add(name)
        root, *path = name.split(".")
        if root not in named and not takes_more:
            raise InvalidRequestError(
                f"the module takes no input '{root}'{did_you_mean(root, named)}",
                hint="its forward takes: " + (", ".join(named) or "nothing") + _proposal(named) + _entry(named, root),
            )
        _place(trees if root in named else loose, root, path, index)
    return trees, loose


def _entry(named: Mapping[str, inspect.Parameter], name: str) -> str:
    """How an entry of a dictionary or dataclass is named, where forward takes one thing."""
    return f"; an entry of a dictionary in it is {next(iter(named))}.{name}" if len(named) == 1 else ""


def _proposal(named: Mapping[str, inspect.Parameter]) -> str:
    required = [n for n, p in named.items() if p.default is p.empty]
    return "".join(f" --input {n}:DTYPE[D0,D1,...]" for n in required).replace(" --input", "; say --input", 1)


def _place(trees: dict[str, Tree], root: str, path: list[str], index: int) -> None:
    here, key = trees, root
    for part in path:
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            raise InvalidRequestError(f"the input '{root}' is given as a whole and in parts", hint="keep one form")
        here, key = inner, part
    if key in here:
        raise InvalidRequestError(f"the input '{root}' is given as a whole and in parts", hint="keep one form")
    here[key] = index


def annotations_of(forward: Callable[..., Any]) -> dict[str, Any]:
    """The hints of a function's parameters or of a class's fields; none where they cannot be evaluated."""
    try:
        return typing.get_type_hints(forward)
    except (NameError, TypeError, AttributeError):
        return {}


def _build(tree: Tree, annotation: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(tree, int):
        return tensors[tree]
    kind = container_of(annotation)
    if dataclasses.is_dataclass(kind):
        inner = annotations_of(kind)  # type: ignore[arg-type]
        return kind(**{k: _build(t, inner.get(k), tensors) for k, t in tree.items()})  # type: ignore[operator]
    values = {k: _build(t, element_of(annotation, k), tensors) for k, t in tree.items()}
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(**values)
    if all(k.isdigit() for k in values):
        ordered = [values[k] for k in sorted(values, key=int)]
        return tuple(ordered) if kind is tuple else ordered
    return values


def container_of(annotation: Any) -> Any:
    """The class that a hint names: `dict` of `Optional[dict[str, Tensor]]`; the hint itself where it is one."""
    arguments = [a for a in typing.get_args(annotation) if a is not type(None)]
    origin = typing.get_origin(annotation)
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        return container_of(arguments[0]) if len(arguments) == 1 else None
    return origin or annotation


def element_of(annotation: Any, key: str) -> Any:
    """The hint of what a container of this hint holds under a key; None where it says nothing."""
    arguments = typing.get_args(annotation)
    if not arguments:
        return None
    if typing.get_origin(annotation) is tuple and arguments[-1] is not Ellipsis:
        return arguments[int(key)] if key.isdigit() and int(key) < len(arguments) else None
    return arguments[-1] if typing.get_origin(annotation) is dict else arguments[0]
