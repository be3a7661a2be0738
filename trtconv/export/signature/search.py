"""The forms of a module's inputs, searched by running it: forward itself says which inputs it takes.

A run that fails shows how far it came, and the operation that failed speaks of the sizes that it expects. The forms
that came furthest are changed first, at the input that this operation read, until forward runs.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.dtypes import parse_dtype
from trtconv.core.effort import Effort
from trtconv.core.tensors import Dim, TensorSpec
from trtconv.export.module.quiet import collected_noise
from trtconv.export.module.runner import set_eval
from trtconv.export.signature.attempt import ForwardRun, attempt_run
from trtconv.export.signature.forms import LENGTHS, SIZES, first_form, forms_of, ranks_for
from trtconv.export.signature.likely_inputs import LikelyInput

if TYPE_CHECKING:
    from torch import nn

MOST_RUNS = 1500
# Of all inputs: a number out of a message may be no size at all.
MOST_ELEMENTS = 1 << 22
# Of the processor, so that a busy machine says the same.
SECONDS, LEAST_RUNS = 30.0, 32
_FREE_NAMES = ("T", "L", "S", *(f"D{i}" for i in range(1, 100)))
_STEPS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class InputSearch:
    """The inputs at which forward ran, and that run; without any, `last` is the run that came furthest."""

    inputs: tuple[TensorSpec, ...] | None
    last: ForwardRun


@dataclass(frozen=True)
class _Candidate:
    specs: tuple[TensorSpec, ...]
    size: int


def search_inputs(
    module: nn.Module,
    likely: Sequence[LikelyInput],
    base: Path,
    seconds: float = SECONDS,
    empty: Collection[str] = (),
) -> InputSearch:
    """Inputs at which forward runs, begun with what is likely. The module is put into eval mode.

    It ends at once where forward asks for a part of an input that is not there: that part is tried next. `empty` are
    the inputs that are dicts of which no part is known yet.
    """
    set_eval(module)
    effort = Effort(seconds, LEAST_RUNS, time.process_time)
    with collected_noise():
        return _search(module, likely, base, effort, empty)


def _search(
    module: nn.Module, likely: Sequence[LikelyInput], base: Path, effort: Effort, empty: Collection[str]
) -> InputSearch:
    ranks, order = ranks_for(module), itertools.count()
    # Failed runs, those that came furthest first. All changes of one are tried before one of them is changed in turn:
    # a wrong form may come further than the right one, where it broadcasts.
    # Of equal ones, those whose message is new lead somewhere else.
    failed: list[tuple[int, int, int, _Candidate, ForwardRun]] = []
    messages: Counter[str] = Counter()
    tried: set[_Candidate] = set()
    furthest = ForwardRun(False, -1)
    # What runs with one size of the batch alone is mostly wrong.
    fallback: tuple[_Candidate, ForwardRun] | None = None
    changes: Iterator[_Candidate] = iter([_Candidate(tuple(first_form(i, leads=i is likely[0]) for i in likely), 0)])
    while len(tried) < MOST_RUNS and not effort.spent:
        candidate = next(changes, None)
        if candidate is None:
            if not failed:
                break
            *_, candidate, attempt = heapq.heappop(failed)
            changes = _others(candidate, attempt, ranks)
            continue
        if candidate in tried or _elements(candidate) > MOST_ELEMENTS:
            continue
        tried.add(candidate)
        effort.step()
        sizes = SIZES[candidate.size]
        attempt = attempt_run(module, candidate.specs, sizes, base, empty=empty)
        if attempt.asked_paths:
            return InputSearch(None, attempt)
        if attempt.passed:
            if attempt_run(module, candidate.specs, {**sizes, "N": 1}, base, watched=False).passed:
                return _settled(module, candidate, attempt, likely, base)
            fallback = fallback or (candidate, attempt)
        elif attempt.operations > furthest.operations:
            furthest = attempt
        message = re.sub(r"\d+", "0", attempt.error)
        messages[message] += 1
        heapq.heappush(failed, (-attempt.operations, messages[message], next(order), candidate, attempt))
    return _settled(module, *fallback, likely, base) if fallback else InputSearch(None, furthest)


def _elements(candidate: _Candidate) -> int:
    return sum(math.prod(s.shape(SIZES[candidate.size])) for s in candidate.specs)


def _others(candidate: _Candidate, attempt: ForwardRun, ranks: Sequence[int]) -> Iterator[_Candidate]:
    """The same with one input changed, those first that the failed operation read; then the same at other sizes."""
    indices = sorted(range(len(candidate.specs)), key=lambda i: candidate.specs[i].name not in attempt.inputs)
    for index in indices:
        for form in forms_of(candidate.specs[index], attempt, SIZES[candidate.size], ranks):
            yield replace(candidate, specs=(*candidate.specs[:index], form, *candidate.specs[index + 1 :]))
    if candidate.size == 0:
        yield from (replace(candidate, size=size) for size in range(1, len(SIZES)))


class _Rerun:
    """Runs beside the one that passed, each with something changed."""

    def __init__(self, module: nn.Module, sizes: Mapping[str, int], base: Path) -> None:
        self._module, self._base = module, base
        self.sizes = dict(sizes)

    def passes(self, specs: Sequence[TensorSpec], **sizes: int) -> bool:
        """True when forward runs with these inputs too."""
        return attempt_run(self._module, specs, {**self.sizes, **sizes}, self._base, watched=False).passed


def _settled(
    module: nn.Module, candidate: _Candidate, attempt: ForwardRun, likely: Sequence[LikelyInput], base: Path
) -> InputSearch:
    """Inputs that passed, with names for the sizes that can move, and for those alone, and with whole numbers where
    forward takes an input for such.
    """
    trial = _Rerun(module, SIZES[candidate.size], base)
    specs = _pinned(_whole(_named(candidate.specs, likely, trial), attempt, trial), trial)
    return InputSearch(specs, attempt)


def _named(specs: tuple[TensorSpec, ...], likely: Sequence[LikelyInput], trial: _Rerun) -> tuple[TensorSpec, ...]:
    """A number that was taken for channels, and is a size that can move, gets a name."""
    free = (n for n in _FREE_NAMES if all(n not in s.dims for s in specs))
    for index, spec in enumerate(specs):
        for axis, size in enumerate(spec.dims):
            if not isinstance(size, int) or size == 1 or size in (likely[index].dims or ()):
                continue
            moved = _replaced(specs, index, (*spec.dims[:axis], size + 1, *spec.dims[axis + 1 :]))
            if trial.passes(moved):
                name = next(free)
                trial.sizes[name] = size
                specs = _replaced(specs, index, (*specs[index].dims[:axis], name, *specs[index].dims[axis + 1 :]))
    return specs


def _whole(specs: tuple[TensorSpec, ...], attempt: ForwardRun, trial: _Rerun) -> tuple[TensorSpec, ...]:
    """Whole numbers where forward compares, converts or looks up an input as such; all rows of its table."""
    for index, spec in enumerate(specs):
        rows = attempt.rows.get(spec.name)
        changed = spec
        if rows is not None and spec.dtype.kind == "int":
            changed = replace(spec, value_range=(0.0, float(rows - 1)))
        elif spec.name in attempt.counts and spec.dtype.kind == "float":
            changed = replace(spec, dtype=parse_dtype("int64"), value_range=LENGTHS)
        others = (*specs[:index], changed, *specs[index + 1 :])
        if changed != spec and trial.passes(others):
            specs = others
    return specs


def _pinned(specs: tuple[TensorSpec, ...], trial: _Rerun) -> tuple[TensorSpec, ...]:
    """Sizes that cannot move are numbers; those that move together only have one name."""
    stuck = []
    for name in dict.fromkeys(n for s in specs for n in s.names()):
        size = trial.sizes[name]
        if not any(trial.passes(specs, **{name: size + step}) for step in (*_STEPS, size)):
            stuck.append(name)
    together = {n: trial.sizes[n] for n in stuck}
    if len(stuck) > 1 and len(set(together.values())) == 1:
        size = trial.sizes[stuck[0]]
        if any(trial.passes(specs, **dict.fromkeys(stuck, size + step)) for step in (*_STEPS, size)):
            return tuple(replace(s, dims=tuple(stuck[0] if d in stuck else d for d in s.dims)) for s in specs)
    return tuple(replace(s, dims=tuple(together.get(d, d) if isinstance(d, str) else d for d in s.dims)) for s in specs)


def _replaced(specs: tuple[TensorSpec, ...], index: int, dims: tuple[Dim, ...]) -> tuple[TensorSpec, ...]:
    return (*specs[:index], replace(specs[index], dims=dims), *specs[index + 1 :])
