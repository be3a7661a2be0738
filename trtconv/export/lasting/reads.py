"""Whether a call reads what an earlier one left: much that forward keeps is there to be looked at, and no call does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trtconv.export.lasting.outside import Slot
from trtconv.export.sizes.number_classes import OPERATIONS

# What reads a number, and gives what the number itself does.
READING = (*OPERATIONS, "neg", "pos", "abs", "int", "float", "bool", "index", "hash", "str", "repr", "format")


class WatchedNumber:
    """Marks the class of a number that stands in for another."""


@contextmanager
def reads_of_number(slot: Slot, number: float) -> Iterator[list[str]]:
    """The operations on the number of a slot in the block; it stands there again after it, where nothing else does."""
    operations: list[str] = []
    watched = _watched_class(type(number), operations.append)(number)
    slot.put(watched)
    try:
        yield operations
    finally:
        slot.put(number)


@contextmanager
def reads_of_tensors(tensors: Sequence[Any]) -> Iterator[list[str]]:
    """The functions of torch that get one of the tensors in the block."""
    from torch.overrides import TorchFunctionMode
    from torch.utils import _pytree

    operations: list[str] = []
    addresses = frozenset(map(id, tensors))

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(id(value) in addresses for value in _pytree.tree_leaves((args, kwargs or {}))):
                operations.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    with Watching():
        yield operations


def _watched_class(kind: type, note: Callable[[str], None]) -> type:
    def reading(name: str) -> Callable[..., Any]:
        method = getattr(kind, name)

        def read(own: Any, *others: Any) -> Any:
            note(name)
            return method(own, *others)

        return read

    names = [f"__{n}__" for n in READING if hasattr(kind, f"__{n}__")]
    return type(kind.__name__, (WatchedNumber, kind), {name: reading(name) for name in names})
