"""Tensors whose sizes are values: what `nonzero` finds, what a mask chooses, and what is computed from these.

Python reads such a size like any other, and a recorded run keeps what it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# The parts of a sparse tensor, whose own sizes are no values.
_PARTS = ("indices", "values")
_MASKS = ("torch.bool", "torch.uint8")


class ValueSizes:
    """The tensors of a run whose sizes are values, each with those of its sizes that are.

    They are held, so that no other tensor gets the identity of one.
    """

    def __init__(self) -> None:
        self._sizes: dict[int, frozenset[int]] = {}
        self._held: list[Any] = []

    def __contains__(self, tensor: object) -> bool:
        return id(tensor) in self._sizes

    def add(self, args: Any, result: Any) -> None:
        """The results of an operator that gives as many elements as the values of `args` say."""
        before = {size for tensor in _tensors(args) for size in tensor.shape}
        for tensor in _tensors(result):
            sizes = frozenset(tensor.shape)
            self._hold(tensor, frozenset(sizes - before) or sizes)

    def follow(self, name: str, args: Any, result: Any) -> None:
        """The results of any function: a size that no other argument explains comes from those that are values."""
        arguments = list(_tensors(args))
        sources = [t for t in arguments if t in self or _is_sparse(t)]
        if not sources:
            return
        of_values = {size for t in sources for size in self._sizes.get(id(t), ())}
        explained = {size for t in arguments for size in t.shape if size not in self._sizes.get(id(t), ())}
        explained.update(_leaves(args, int))
        for tensor in _tensors(result):
            if any(tensor is t for t in arguments) or tensor in self or _is_sparse(tensor):
                continue
            if name.endswith(_PARTS) and any(_is_sparse(t) for t in sources):
                sizes = frozenset(tensor.shape)
            elif any(t not in self and t.shape == tensor.shape for t in arguments):
                continue
            else:
                sizes = frozenset(s for s in tensor.shape if s in of_values or s not in explained)
            if sizes:
                self._hold(tensor, sizes)

    def clear(self) -> None:
        """Let go of the tensors of a run."""
        self._sizes.clear()
        self._held.clear()

    def _hold(self, tensor: Any, sizes: frozenset[int]) -> None:
        if tensor not in self and sizes:
            self._sizes[id(tensor)] = sizes
            self._held.append(tensor)


def gives_sizes_of_values(operator: Any, args: Any) -> bool:
    """True for an operator of aten whose result is as large as its values say; an index only by a mask."""
    import torch

    if torch.Tag.dynamic_output_shape not in getattr(operator, "tags", ()):
        return False
    by_index = operator.overloadpacket is torch.ops.aten.index
    return not by_index or any(str(t.dtype) in _MASKS for t in _tensors(args[1]))


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    return _leaves(value, torch.Tensor)


def _leaves(value: Any, kind: type) -> Iterator[Any]:
    """What is of a kind among arguments or results, also in rows and tables."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()), kind)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _leaves(one, kind)


def _is_sparse(tensor: Any) -> bool:
    import torch

    return bool(tensor.layout != torch.strided)
