"""Outputs of which a comparison shows nothing: constants in their place would have passed at every point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.report import OutputComparison
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
    Compare = Callable[[ReferenceSample, Mapping[str, Array]], tuple[OutputComparison, ...]]


@dataclass(frozen=True)
class IdleOutput:
    """An output that a constant equals. `largest` is its largest finite magnitude at any point, None without any."""

    name: str
    constant: str
    largest: float | None

    def describe(self) -> str:
        """`output 'x' was 0 at every point: nothing was shown`."""
        if self.largest is None:
            return f"output '{self.name}' was NaN or infinite at every point: nothing was shown"
        if self.largest == 0.0:
            return f"output '{self.name}' was 0 at every point: nothing was shown"
        if self.constant == "zero":
            return f"output '{self.name}' is at most {self.largest:.2g}, which zeros would equal within what is allowed"
        return f"a constant in place of output '{self.name}' would have passed at every point: little was shown"


class IdleOutputs:
    """Watches samples stream by; an output stays in question as long as a constant in its place passes."""

    def __init__(self, compare: Compare) -> None:
        self._compare = compare
        self._constants: dict[str, dict[str, Array]] = {}
        self._busy: dict[str, set[str]] = {}
        self._largest: dict[str, float | None] = {}
        self._points = 0

    def offer(self, sample: ReferenceSample) -> None:
        """Try the constants at one sample that was compared."""
        if sample.point.advisory:
            return
        self._points += 1
        for name, expected in sample.outputs.items():
            self._offer(sample, name, expected)

    def _offer(self, sample: ReferenceSample, name: str, expected: Array) -> None:
        import numpy as np

        if expected.size == 0:
            return
        if expected.dtype.kind == "f":
            finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
        else:
            finite = np.abs(expected.astype(np.float64)).reshape(-1)
        before = self._largest.get(name)
        self._largest[name] = max(before or 0.0, float(finite.max())) if finite.size else before
        constants = self._constants.setdefault(name, {})
        busy = self._busy.setdefault(name, set())
        for kind in ("zero", "first", "column", "channel"):
            if kind in busy:
                continue
            if kind not in constants:
                constants[kind] = _constant(kind, expected)
            value = constants[kind]
            try:
                guess = np.ascontiguousarray(np.broadcast_to(value, expected.shape)).astype(expected.dtype)
            except ValueError:
                busy.add(kind)
                continue
            results = self._compare(sample, {**sample.outputs, name: guess})
            if any(r.output == name and not r.passed for r in results):
                busy.add(kind)

    @property
    def without_numbers(self) -> bool:
        """True when no output had a finite element at any point."""
        return bool(self._largest) and all(largest is None for largest in self._largest.values())

    def idle(self) -> tuple[IdleOutput, ...]:
        """The outputs that some constant equals at all points; empty when fewer than two were compared."""
        outputs = []
        for name, constants in self._constants.items():
            left = [k for k in constants if k not in self._busy[name]]
            if self._points > 1 and left:
                outputs.append(IdleOutput(name, left[0], self._largest[name]))
        return tuple(outputs)


def _constant(kind: str, expected: Array) -> Array:
    """Zero, the first element, or the first element of each column (last axis) or channel (axis 1)."""
    import numpy as np

    if kind == "zero":
        return np.zeros((), expected.dtype)
    first = expected.reshape(-1)[0]
    if kind == "first" or expected.ndim < 2:
        return np.asarray(first)
    axis = expected.ndim - 1 if kind == "column" else 1
    index = tuple(slice(None) if i == axis else slice(0, 1) for i in range(expected.ndim))
    return expected[index]
