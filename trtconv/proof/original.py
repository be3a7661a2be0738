"""What the proof asks of the thing that others are proved equal to: a module, or a graph before a rewrite.

The proof runs nothing itself: rooms hand in what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from trtconv.core.shape_space.fixed_rows import FixedRows

if TYPE_CHECKING:
    import numpy as np

    from trtconv.proof.points import SamplePoint

    Array = np.ndarray[Any, np.dtype[Any]]

Run = Callable[[Mapping[str, "Array"]], dict[str, "Array"]]
"""Runs a model: arrays by name in, arrays by name out. Raises TrtconvError when the run fails."""

# What verdicts and errors call the original.
MODULE, FILE, UNQUANTISED = "the module", "the ONNX file", "the model before quantisation"
# What a reference of the user's data records as its source.
DATA = "the user's data"

MakeInputs = Callable[["SamplePoint"], Mapping[str, "Array"]]
"""The inputs at a sample point, by name."""


@runtime_checkable
class Resampling(Protocol):
    """What can run with the coordinates of its interpolations, the scales of its quantised operators and the planes of
    its instance norms moved by a rounding (see `proof.noise`: coordinates, scales, planes).
    """

    def resampled(self, exact: Run | None = None) -> Sequence[Run]:
        """The same, or its FP64 `exact`, moved; empty when it has neither."""


@runtime_checkable
class Stepping(Protocol):
    """What knows whether its last run in FP64 rounded to steps or compared, so that a last digit decides."""

    steps: bool


@runtime_checkable
class Counting(Protocol):
    """An original that can count what a run computes."""

    def counted(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], float]:
        """Run once: the outputs, and the floating point operations of the run. Raises TrtconvError."""


@runtime_checkable
class Branching(Protocol):
    """An original that may be another function in FP64."""

    def is_another_in_fp64(self, inputs: Mapping[str, Array]) -> bool:
        """Whether it takes another path there."""


@runtime_checkable
class Summing(Protocol):
    """An original whose normalisations can be run with their sums added up in another order."""

    def resummed(self, exact: Run) -> Run:
        """Its FP64 `exact`, with the means and variances that FP32 gives when it adds in a row."""


@runtime_checkable
class Gated(Protocol):
    """An original whose recurrent layers can be run with their gates as inexact as others compute them."""

    def inexact(self, exact: Run) -> Sequence[Run]:
        """Its FP64 `exact` with such gates; empty when it has none."""


@runtime_checkable
class Logistic(Protocol):
    """An original whose sigmoids and tanhs can be run as inexact as others compute them."""

    def logistic(self, exact: Run) -> Run:
        """Its FP64 `exact` with such logistics."""


@runtime_checkable
class Reordering(Protocol):
    """An original whose sorts and top-ks can be run with nearly equal elements in another order."""

    def reranked(self, seed: int, ties: bool) -> Run | None:
        """The same in an order that the seed draws, of equal elements too where `ties`; None where it ranks nothing."""


@runtime_checkable
class Perturbing(Protocol):
    """A graph that can run with its weights moved by a rounding."""

    def perturbed(self, seed: int) -> Run | None:
        """The same with each weight moved by a few units in its last place; None when that cannot be had."""


class Original(Protocol):
    """The original, with what its own rounding can be measured by."""

    @property
    def weight_bytes(self) -> int:
        """The bytes of its weights, by which the cost of the other means is judged."""

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once in its own precision. Raises TrtconvError."""

    def exact(self) -> Run | None:
        """The same in FP64, which takes FP64 inputs; None when that cannot be had."""

    def perturbed(self, seed: int) -> Run | None:
        """The same with each weight moved by at most one unit in its last place; None when that cannot be had."""

    def flushed(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once with denormal numbers taken for zero, as GPUs take them. Raises TrtconvError."""


@dataclass(frozen=True)
class FormedRun:
    """A graph with its outputs padded, and with what its noise is measured by."""

    run: Run
    form: FixedRows

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        return self.form.pad(self.run(inputs))

    def perturbed(self, seed: int) -> Run | None:
        """The graph with its weights moved; None where that cannot be had."""
        moved = self.run.perturbed(seed) if isinstance(self.run, Perturbing) else None
        return None if moved is None else self.form.around(moved)

    def resampled(self, exact: Run | None = None) -> Sequence[Run]:
        """The graph with its coordinates and scales moved."""
        moved: Sequence[Run] = self.run.resampled(exact) if isinstance(self.run, Resampling) else ()
        return tuple(self.form.around(m) for m in moved)


def original_of_source(source: str) -> str:
    """What a verdict calls the original whose outputs a reference holds, by the source that the reference records."""
    if source == DATA:
        return UNQUANTISED
    return FILE if source.endswith(".onnx") else MODULE


def widened(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs with FP32 and FP16 as FP64."""
    import numpy as np

    return {n: v.astype(np.float64) if v.dtype in (np.float16, np.float32) else v for n, v in inputs.items()}
