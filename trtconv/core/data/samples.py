"""Samples: what a network is fed, one at a time, with what is right for each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np

    from trtconv.core.shape_space.space import ShapeSpace
    from trtconv.core.tensors import TensorSpec

    Array = np.ndarray[Any, np.dtype[Any]]

# How many samples are run at once where the network leaves it open.
LARGEST_BATCH = 32


@dataclass(frozen=True)
class Sample:
    """One sample: its inputs without the batch axis, and its label (an array or plain data), None without one."""

    inputs: Mapping[str, Array]
    label: Any = None

    def digest(self) -> str:
        """SHA-256 over the inputs' names, types, shapes and bytes; equal inputs have equal digests."""
        import numpy as np

        hashed = hashlib.sha256()
        for name in sorted(self.inputs):
            array = np.ascontiguousarray(self.inputs[name])
            hashed.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
            hashed.update(array.tobytes())
        return hashed.hexdigest()


@dataclass(frozen=True)
class Batch:
    """Inputs as a network takes them. The first `count` rows are samples; those after them repeat the last one."""

    inputs: Mapping[str, Array]
    count: int


def batches(
    samples: Sequence[Sample], specs: Sequence[TensorSpec], space: ShapeSpace, *, opt: bool = False
) -> Iterator[Batch]:
    """The samples in their order, as many at once as the batch axis (axis 0 of every input) allows.

    With `opt` there are as many as its opt size says, in every batch. Samples of different shapes never share a batch.
    Raises InvalidRequestError for an input without a batch axis.
    """
    import numpy as np

    least, most = batch_sizes(specs, space)
    if opt:
        names = [s.dims[0] for s in specs]
        least = most = next((space[n].opt for n in names if isinstance(n, str) and n in space), most)
    start = 0
    while start < len(samples):
        shapes = _shapes(samples[start])
        end = start + 1
        while end < len(samples) and end - start < most and _shapes(samples[end]) == shapes:
            end += 1
        rows = [*samples[start:end], *[samples[end - 1]] * max(0, least - (end - start))]
        yield Batch({s.name: np.stack([r.inputs[s.name] for r in rows]) for s in specs}, end - start)
        start = end


def batch_sizes(specs: Sequence[TensorSpec], space: ShapeSpace) -> tuple[int, int]:
    """The fewest and the most rows that one run takes."""
    least, most = 1, LARGEST_BATCH
    for spec in specs:
        if not spec.dims:
            raise InvalidRequestError(
                f"the input '{spec.name}' is a scalar: samples are rows along axis 0 of every input",
                hint="make the value a constant of the module",
            )
        dim = spec.dims[0]
        low, high = (dim, dim) if isinstance(dim, int) else (1, LARGEST_BATCH)
        if isinstance(dim, str) and dim in space:
            low, high = space[dim].min, space[dim].max
        least, most = max(least, low), min(most, high) if low <= most else high
    return least, max(least, most)


def _shapes(sample: Sample) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((name, tuple(array.shape)) for name, array in sample.inputs.items()))


def rows_to_samples(arrays: Mapping[str, Array], labels: Any, origin: str) -> list[Sample]:
    """Arrays of equal length along axis 0 as samples.

    `labels` is a sequence of that length, a mapping of such by name, or None. Raises InvalidRequestError, naming
    `origin`, where lengths differ.
    """
    lengths = {name: (array.shape[0] if array.ndim else 0) for name, array in arrays.items()}
    count = next(iter(lengths.values()), 0)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"'{n}' {c}" for n, c in lengths.items())
        raise InvalidRequestError(
            f"{origin}: the inputs hold different numbers of samples: {listed}", hint="axis 0 counts samples"
        )
    columns = labels if isinstance(labels, Mapping) else {"": labels}
    for name, column in columns.items():
        if column is not None and _length(column) != count:
            what = f"labels '{name}'" if name else "labels"
            raise InvalidRequestError(
                f"{origin}: {count} samples and {_length(column)} {what}", hint="give one label for each sample"
            )
    return [Sample({n: a[i] for n, a in arrays.items()}, _label(labels, i)) for i in range(count)]


def _length(column: Any) -> int:
    try:
        return len(column)
    except TypeError:
        return 1


def _label(labels: Any, index: int) -> Any:
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        return {name: column[index] for name, column in labels.items()}
    return labels[index]
