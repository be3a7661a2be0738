"""Masks that come out the same at every sample point, turned round in the module and in a file of it.

What `torch.where(x == 777.0, f(x), x)` takes from `f` shows in no output where no sample has 777. An exporter's form of
`f` may be wrong, a number in it may be that of the traced size, or of the first call. So the module is run, and
exported once more, with `x == 777.0` as its opposite, and the two are compared.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.text.listing import list_first
from trtconv.export.module.user_code import Frame, calling_frames, is_library, is_machinery, quote_frame
from trtconv.export.symbolic.recording.aliases import tensors_in
from trtconv.proof.comparison import errors_of
from trtconv.proof.joint_sizes import covering_sizes
from trtconv.proof.points import batch_dims

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.exporters.attempt import ExportTask, Way
    from trtconv.export.exporters.choice import ChosenExport
    from trtconv.export.sizes.shape_caches import CachedAttribute, Slot

    Array = np.ndarray[Any, np.dtype[Any]]

# A line of a comparison, and how many came before on that line in the same run.
Place = tuple[Frame, int]
# These make masks of nothing.
_MAKING = ("new_", "zeros", "ones", "full", "empty", "rand")
# Beside rounding, which no floor is measured of here: an element is another one that is off by this share of the root
# mean square of its output; in two runs of the module, by this one.
SHARE, SAME = 1e-2, 1e-5
# CPU seconds for further sizes of a file with fitted formulas, and how many are looked at whatever they take.
SECONDS, LEAST = 5.0, 64
MOST_NAMED = 3
# Kinds of values at which forms of operators differ that agree for random ones.
VALUES = ("ties", "bytes")
_TURNED: ContextVar[frozenset[Place]] = ContextVar("turned", default=frozenset())


@dataclass
class Outcomes:
    """How each comparison of tensors came out in some runs; `leaves` where Python reads values itself."""

    by_place: dict[Place, set[bool]] = field(default_factory=dict)
    leaves: bool = False

    @property
    def constant(self) -> frozenset[Place]:
        """The comparisons in the user's code that were true, or false, for all elements of all runs."""
        lines = (p for p, outcomes in self.by_place.items() if len(outcomes) == 1)
        return frozenset(p for p in lines if not is_library(p[0][0]))


def turned_within() -> AbstractContextManager[Any]:
    """The mode under which the comparisons that are to be turned come out the other way, in a run or a trace."""
    places = _TURNED.get()
    return _mode()(places) if places else nullcontext()


@cache
def _mode() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    from trtconv.export.branches.value_exits import DECIDING, READING

    leaving = frozenset((*DECIDING, *READING))

    class Comparing(TorchFunctionMode):  # type: ignore[misc]
        """Turns comparisons at some places round, or notes how all come out."""

        def __init__(self, turned: frozenset[Place] = frozenset(), outcomes: Outcomes | None = None) -> None:
            super().__init__()
            self._turned, self._outcomes, self._counts = turned, outcomes, Counter[Frame]()

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "")
            if self._outcomes is not None and name in leaving:
                self._outcomes.leaves = True
            if not isinstance(result, torch.Tensor) or result.dtype != torch.bool or name.startswith(_MAKING):
                return result
            operands = list(tensors_in((*args, *(kwargs or {}).values())))
            if not operands or any(t.dtype == torch.bool for t in operands):
                return result
            frame = next((frame for _, frame in calling_frames() if not is_machinery(frame[0])), ("", 0))
            position = frame, self._counts[frame]
            self._counts[frame] += 1
            # Inside torch.vmap nobody can look at a value.
            if self._outcomes is not None and not torch._C._functorch.is_batchedtensor(result) and result.numel():
                outcomes = {True} if bool(result.all()) else {True, False} if bool(result.any()) else {False}
                self._outcomes.by_place.setdefault(position, set()).update(outcomes)
            return result.logical_not() if position in self._turned else result

    return Comparing


@contextmanager
def _turned(places: frozenset[Place]) -> Iterator[None]:
    token = _TURNED.set(places)
    try:
        yield
    finally:
        _TURNED.reset(token)


def notes_on_masks(
    job: ExportTask, choice: ChosenExport, untouched: Mapping[Slot, CachedAttribute]
) -> tuple[str, ...]:
    """A note where the file differs behind masks that no sample turned, or where a second call of the module does.

    `untouched` are the attributes of before the first call. Nothing where every mask came out both ways, where Python
    decides by values (other notes speak of that), and where the module cannot be run or exported with the masks turned.
    """
    attempt = next((a for a in choice.attempts if a.candidate is not None and a.candidate == choice.candidate), None)
    samples = _spread_over_sizes(job)
    if attempt is None or attempt.way.scripts:
        return ()
    try:
        places = _constant_places(job, samples)
        difference = _compared(job, attempt.way, untouched, places, samples) if places else ""
    except Exception:  # noqa: BLE001 - a module may raise whatever it likes where its masks are turned
        return ()
    if not difference:
        return ()
    lines = dict.fromkeys(quote_frame(frame, job.request.source.base) for frame, _ in sorted(places))
    return (
        f"a mask comes out the same at every sample point: {list_first(list(lines), MOST_NAMED)}; where it does not, "
        f"{difference}",
    )


def _constant_places(job: ExportTask, samples: Sequence[Mapping[str, Array]]) -> frozenset[Place]:
    """The comparisons that come out the same in all runs; none where Python reads values itself."""
    outcomes = Outcomes()
    for inputs in samples:
        _run(job, inputs, _mode()(outcomes=outcomes))
        if outcomes.leaves or not outcomes.constant:
            return frozenset()
    return outcomes.constant


def _spread_over_sizes(job: ExportTask) -> list[Mapping[str, Array]]:
    """Inputs of samples that were compared: of the cheapest, the largest, and those of other kinds of values."""
    largest = max(job.samples.items, key=lambda s: sum(v.size for v in s.inputs.values()))
    others = [s for s in job.samples.items if s.point.values in VALUES and s is not job.samples.cheapest]
    return [s.inputs for s in (job.samples.cheapest, largest, *others)]


def _after(
    job: ExportTask, untouched: Mapping[Slot, CachedAttribute], calls: Sequence[Mapping[str, Array]], places: Any
) -> dict[str, Array]:
    """What the last of some calls gives, the first of which finds the module as it was before any."""
    from trtconv.export.sizes.shape_caches import as_before_first_call

    with as_before_first_call(job.runner.module, untouched, job.runner.caches):
        *_, outputs = (job.runner.watched(inputs, lambda tensors: _mode()(places)) for inputs in calls)
    return outputs


def _run(job: ExportTask, inputs: Mapping[str, Array], mode: Any) -> dict[str, Array]:
    with job.runner.caches.emptied():
        return job.runner.watched(inputs, lambda tensors: mode)


def _compared(
    job: ExportTask,
    way: Way,
    untouched: Mapping[Slot, CachedAttribute],
    places: frozenset[Place],
    samples: Sequence[Mapping[str, Array]],
) -> str:
    """How a file with the masks turned differs from the module with the masks turned; empty where it does not."""
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.export.exporters.attempt import write_attempt

    alone, later = (_after(job, untouched, [samples[i] for i in order], places) for order in ((0,), (1, 0)))
    for name, value in alone.items():
        if _share_of_others(value, later[name], SAME):
            return f"the module computes another '{name}' at its second call; the file has no state"
    folder = job.folder / "turned"
    folder.mkdir()
    with _turned(places):
        candidate, _ = write_attempt(way, job, folder, [])
    run = OnnxRuntimeRunner(candidate.model)
    for inputs in itertools.chain(samples, _at_many_sizes(job) if way.generalises else ()):
        outputs = _run(job, inputs, _mode()(places))
        for (name, value), other in zip(outputs.items(), run(inputs).values(), strict=True):
            share = _share_of_others(value, other, SHARE)
            if share:
                return f"the file differs from the module: {share:.2g} of the elements of '{name}' are others"
    return ""


def _at_many_sizes(job: ExportTask) -> Iterator[Mapping[str, Array]]:
    """Inputs of many joint sizes, for a file whose formulas were fitted to a few."""
    effort = Effort(SECONDS, LEAST)
    for sizes in covering_sizes(job.request.space, batch_dims(job.request.inputs)):
        if not effort.step():
            break
        yield job.make(job.point(sizes))


def _share_of_others(expected: Array, own: Array, beside: float) -> float:
    """The share of elements that are others, among those that the module computes as finite numbers."""
    import numpy as np

    if expected.shape != own.shape:
        return 1.0
    if expected.dtype.kind not in "fV":
        return float(np.mean(expected != own)) if expected.size else 0.0
    first, second = expected.astype(np.float64), own.astype(np.float64)
    finite = np.isfinite(first)
    if not finite.any():
        return 0.0
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.mean(np.square(first[finite])))
        error, _ = errors_of(first[finite], second[finite])
        off = error > beside * np.maximum(scale, np.abs(first[finite]))
    return float(np.mean(off))
