"""Elements of values that are worked out for many sizes at once, and what moves them about."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# These take elements as they are, in another shape or order, or some of them.
STRUCTURAL = ("Identity", "Squeeze", "Unsqueeze", "Reshape", "Concat", "Gather", "Slice")


class NotSizesError(Exception):
    """The value is not arithmetic on shapes and constants."""


class Elements:
    """The elements of a value in their order, each an array over the joint sizes, and the value's shape."""

    def __init__(self, items: list[Array], several: bool = True) -> None:
        self.items = items
        self.shape: tuple[int, ...] = (len(items),) if several else ()

    @classmethod
    def shaped(cls, items: list[Array], shape: tuple[int, ...]) -> Elements:
        """Elements of a value of a shape."""
        elements = cls(items)
        elements.shape = shape
        return elements

    def mapped(self, function: Any) -> Elements:
        """The function of each."""
        import numpy as np

        return Elements.shaped([np.asarray(function(e)) for e in self.items], self.shape)

    def positions(self) -> Array:
        """The numbers of the elements, in the value's shape."""
        import numpy as np

        return np.arange(len(self.items)).reshape(self.shape)

    def constant(self) -> Array:
        """Whole numbers that are the same at all sizes, in the value's shape. Raises NotSizesError for others."""
        import numpy as np

        if any(e.ndim or e.dtype.kind not in "iu" for e in self.items):
            raise NotSizesError
        return np.array([int(e) for e in self.items], np.int64).reshape(self.shape)


def arrange(op: str, attributes: Mapping[str, Any], inputs: list[Elements]) -> Elements:
    """The elements in another shape, or some of them: the operator is applied to the numbers of their positions."""
    import numpy as np

    first, *others = inputs
    axis = attributes["axis"].i if "axis" in attributes else 0
    positions = first.positions()
    try:
        if op == "Concat":
            items = [e for part in inputs for e in part.items]
            starts = itertools.accumulate((len(part.items) for part in inputs), initial=0)
            parts = [part.positions() + start for part, start in zip(inputs, starts, strict=False)]
            return _chosen(items, np.concatenate(parts, axis))
        if op == "Gather":
            return _chosen(first.items, np.take(positions, others[0].constant(), axis))
        if op == "Slice" and others:
            return _chosen(first.items, _sliced(positions, [part.constant() for part in others]))
        if op == "Reshape" and others:
            shape = [first.shape[i] if n == 0 else int(n) for i, n in enumerate(others[0].constant())]
            return _chosen(first.items, positions.reshape(shape))
        if op in ("Squeeze", "Unsqueeze"):
            axes = tuple(others[0].constant()) if others else tuple(attributes["axes"].ints) if attributes else None
            if op == "Unsqueeze":
                return _chosen(first.items, np.expand_dims(positions, axes or ()))
            return _chosen(first.items, np.squeeze(positions, axes))
    except (ValueError, IndexError) as error:
        raise NotSizesError from error
    if op == "Identity":
        return first
    raise NotSizesError


def _sliced(positions: Array, parts: list[Array]) -> Array:
    starts, ends = parts[:2]
    axes = parts[2] if len(parts) > 2 else range(len(starts))
    steps = parts[3] if len(parts) > 3 else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # An end that lies before the first is no end for NumPy.
        stop = None if step < 0 and end < -positions.shape[axis] else int(end)
        positions = positions[(slice(None),) * (int(axis) % positions.ndim) + (slice(int(start), stop, int(step)),)]
    return positions


def _chosen(items: list[Array], positions: Array) -> Elements:
    return Elements.shaped([items[int(i)] for i in positions.reshape(-1)], positions.shape)


def broadcast(function: Any, inputs: list[Elements]) -> Elements:
    """The function of the elements that ONNX's broadcasting brings together."""
    import numpy as np

    try:
        together = np.broadcast_arrays(*(part.positions() for part in inputs))
    except ValueError as error:
        raise NotSizesError from error
    turns = zip(*(p.reshape(-1).tolist() for p in together), strict=True)
    items = [np.asarray(function(*(part.items[i] for part, i in zip(inputs, turn, strict=True)))) for turn in turns]
    return Elements.shaped(items, together[0].shape)
