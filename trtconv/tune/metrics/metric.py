"""What a metric is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Outputs = Mapping[str, Sequence["Array"]]
"""For each output by name one array per sample, without the batch axis."""


@dataclass(frozen=True)
class Metric:
    """`compute` takes outputs and labels of some samples; more is better. A `share` lies between 0 and 1."""

    name: str
    share: bool
    compute: Callable[[Outputs, Sequence[Any]], float]
    needs_labels: bool = True

    def require_labels(self, labels: Sequence[Any]) -> None:
        """Raise InvalidRequestError for samples without labels."""
        missing = sum(label is None for label in labels)
        if self.needs_labels and missing:
            raise InvalidRequestError(
                f"{self.name} needs labels, and {missing} of {len(labels)} samples have none",
                hint="an array `labels` in the .npz, labels.npy in the folder, or (inputs, labels) from a function",
            )


def first_of(outputs: Outputs, least_rank: int, what: str) -> Sequence[Array]:
    """The first output that has at least this rank (without the batch axis)."""
    for arrays in outputs.values():
        if arrays and arrays[0].ndim >= least_rank and arrays[0].dtype.kind == "f":
            return arrays
    shapes = ", ".join(f"{n} {list(a[0].shape)}" for n, a in outputs.items() if a)
    raise InvalidRequestError(
        f"{what} is not in the outputs of the network ({shapes})", hint="write a metric of your own: FILE.py:function"
    )
