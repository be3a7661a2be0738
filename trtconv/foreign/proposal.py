"""Ranges to propose for dims that nobody gave one: sizes at which the file was seen to run.

A file seldom says which sizes it takes. A hint that ends in another error helps nobody, so the file is asked: it is
run at a few small sizes, each dim is moved alone, and dims that only move together are given one name.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from trtconv.core.effort import Effort
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.foreign.interface import shared_axes, split_dim
from trtconv.proof.original import Run
from trtconv.proof.points import SamplePoint, batch_dims, sample_inputs

# Sizes that are tried together for all dims but the batch, the usual ones first.
COMMON = (64, 32, 128, 48, 224, 256, 16, 320, 640, 512, 8, 80, 112, 96, 4, 2, 1, 160, 400, 1024, 16000)
BATCHES = (1, 2, 4, 8, 16, 32)
STEPS = (1, 2, 4, 8, 16, 32, 64)
APART = (48, 64, 1, 16, 128, 80, 224, 2)
MOST_APART = 3
# Of all inputs at a size that is tried: 16000 is meant for samples of sound, not for both sides of an image.
MOST_ELEMENTS = 1 << 22
# Of the processor, so that a busy machine proposes the same.
SECONDS, LEAST_RUNS = 30.0, 64
# The width of a proposed range, in elements.
WIDTH = 32
BATCH = DimRange(1, 1, 4)


@dataclass(frozen=True)
class Proposal:
    """Ranges for the missing dims and, where some move together only, the inputs with those dims under one name.

    `refusal` is what the file said last where it ran at no size that was tried.
    """

    space: ShapeSpace = field(default_factory=ShapeSpace)
    inputs: tuple[TensorSpec, ...] = ()
    refusal: str = ""

    @property
    def options(self) -> str:
        """What to type."""
        inputs = [f"--input '{s}'" for s in self.inputs]
        return " ".join([*inputs, *([f"--dynamic {self.space}"] if self.space.dims else [])])


def propose_ranges(run: Run, inputs: Sequence[TensorSpec], space: ShapeSpace, seconds: float = SECONDS) -> Proposal:
    """Ranges for the dims of `inputs` that `space` lacks."""
    missing = list(dict.fromkeys(n for s in inputs for n in s.names() if n not in space))
    effort = Effort(seconds, LEAST_RUNS, time.process_time)
    runs, base = _first_that_runs(run, inputs, space, missing, effort)
    if base is None:
        return Proposal(refusal=runs.refusal or "the time was up")
    small = runs.inputs
    ranges: dict[str, DimRange] = {}
    stuck = []
    for name in missing:
        dim_range = _range_of(base[name], name in batch_dims(inputs), partial(_works_at, runs, base, (name,)))
        if dim_range is None:
            stuck.append(name)
        else:
            ranges[name] = dim_range
    together, joined = _join(stuck, base, inputs, runs)
    ranges |= joined
    tied = _tied(ranges, base, runs)
    together |= tied
    ranges = {n: r for n, r in ranges.items() if n not in tied}
    ranges |= {n: DimRange(base[n], base[n], base[n]) for n in stuck if n not in ranges and n not in together}
    ordered = ShapeSpace(tuple((n, ranges[n]) for n in missing if n in ranges))
    return Proposal(ordered, _renamed(inputs, small, together))


def _first_that_runs(
    run: Run, inputs: Sequence[TensorSpec], space: ShapeSpace, missing: Sequence[str], effort: Effort
) -> tuple[_Runs, dict[str, int] | None]:
    """Sizes at which the file runs, with whole numbers as they are drawn, else with 0 and 1: indices into a table."""
    small = [
        replace(s, value_range=(0.0, 1.0)) if s.dtype.kind == "int" and s.value_range is None else s for s in inputs
    ]
    runs = _Runs(run, inputs, space, effort)
    for specs in [inputs, small] if small != list(inputs) else [inputs]:
        runs = _Runs(run, specs, space, effort)
        base = next((sizes for sizes in _candidates(missing, batch_dims(inputs)) if runs.works(sizes)), None)
        if base is not None:
            return runs, base
    return runs, None


class _Runs:
    """Does the file run at these sizes? Until the time is up; then nothing works."""

    def __init__(self, run: Run, inputs: Sequence[TensorSpec], space: ShapeSpace, effort: Effort) -> None:
        self._run, self.inputs, self._space, self._effort = run, inputs, space, effort
        self.refusal = ""

    def works(self, sizes: Mapping[str, int]) -> bool:
        if not self._effort.step():
            return False
        point = SamplePoint("proposal", tuple({**self._space.pick("opt"), **sizes}.items()))
        if sum(math.prod(s.shape(point.sizes)) for s in self.inputs) > MOST_ELEMENTS:
            return False
        try:
            self._run(sample_inputs(self.inputs, point))
        except (TrtconvError, InvalidRequestError) as error:
            self.refusal = error.message
            return False
        return True


def _works_at(runs: _Runs, base: Mapping[str, int], names: Sequence[str], size: int) -> bool:
    return runs.works({**base, **dict.fromkeys(names, size)})


def _candidates(missing: Sequence[str], batch: Sequence[str]) -> Iterator[dict[str, int]]:
    ones = {n: 1 for n in missing if n in batch}
    others = [n for n in missing if n not in batch]
    if not others:
        yield from (dict.fromkeys(missing, size) for size in BATCHES)
        return
    for size in COMMON:
        yield {**ones, **dict.fromkeys(others, size)}
    if 1 < len(others) <= MOST_APART:
        for sizes in product(APART, repeat=len(others)):
            yield {**ones, **dict(zip(others, sizes, strict=True))}


def _range_of(base: int, is_batch: bool, works: Callable[[int], bool]) -> DimRange | None:
    """The range of one dim, or of some that move together; None when no other size works."""
    if is_batch and base == 1:
        return BATCH if works(2) and works(BATCH.max) else None
    for step in STEPS:
        width = -(-WIDTH // step) * step
        if base % step == 0 and works(base + step) and works(base + 2 * width):
            return DimRange(base, base + width, base + 2 * width, step)
    return None


def _join(
    stuck: Sequence[str], base: Mapping[str, int], inputs: Sequence[TensorSpec], runs: _Runs
) -> tuple[dict[str, str], dict[str, DimRange]]:
    """Dims that move with an earlier one, and the ranges of those that lead: all of one size, then two by two."""
    together: dict[str, str] = {}
    ranges: dict[str, DimRange] = {}
    batch = batch_dims(inputs)

    def range_for(group: Sequence[str]) -> DimRange | None:
        first = group[0]
        is_batch = first in batch
        return _range_of(base[first], is_batch, partial(_works_at, runs, base, group))

    for size in dict.fromkeys(base[n] for n in stuck):
        group = [n for n in stuck if base[n] == size]
        pairs = [[a, b] for i, a in enumerate(group) for b in group[i + 1 :]]
        for members in [group, *pairs] if len(group) > 2 else pairs:
            if any(n in together or n in ranges for n in members):
                continue
            shared_range = range_for(members)
            if shared_range is not None:
                ranges[members[0]] = shared_range
                together |= dict.fromkeys(members[1:], members[0])
    return together, ranges


def _tied(ranges: Mapping[str, DimRange], base: Mapping[str, int], runs: _Runs) -> dict[str, str]:
    """Dims that must equal an earlier one, although each could move alone: beside a size of 1, any size broadcasts."""
    tied: dict[str, str] = {}
    names = list(ranges)
    for index, name in enumerate(names):
        for earlier in names[:index]:
            if name in tied or earlier in tied or ranges[earlier] != ranges[name]:
                continue
            values = ranges[name].values()
            largest, other = values[-1], values[len(values) // 2]
            apart = {**base, earlier: largest, name: other}
            if not runs.works(apart) and runs.works({**apart, name: largest}):
                tied[name] = earlier
    return tied


def _renamed(
    inputs: Sequence[TensorSpec], runs: Sequence[TensorSpec], together: Mapping[str, str]
) -> tuple[TensorSpec, ...]:
    """The inputs that have to be named: with shared dims, or with values other than those that are drawn."""
    changed = []
    for spec, other in zip(inputs, runs, strict=True):
        dims = tuple(together.get(d, d) if isinstance(d, str) else d for d in spec.dims)
        if dims != spec.dims or other != spec:
            changed.append(replace(other, dims=dims))
    return tuple(changed)


def require_complete(path: str, run: Run, inputs: Sequence[TensorSpec], space: ShapeSpace) -> None:
    """Raise InvalidRequestError for dims without a range, with the line to type; and for ranges of unknown dims."""
    names = list(dict.fromkeys(n for s in inputs for n in s.names()))
    unknown = [n for n in space if n not in names]
    listed = "; ".join(str(s) for s in inputs)
    if unknown:
        raise InvalidRequestError(
            f"no input of '{path}' has a dim called '{unknown[0]}'",
            hint=f"the dims are: {', '.join(names)}" if names else f"all dims are fixed: {listed}",
        )
    missing = [n for n in names if n not in space]
    if not missing:
        return
    proposal = propose_ranges(run, inputs, space)
    if proposal.refusal:
        proposal = _proposal_apart(run, inputs, missing, space) or proposal
    dims = "the dim" if len(missing) == 1 else "the dims"
    details = [listed]
    if proposal.refusal:
        example = " ".join(f"{n}=1:1:4" for n in missing)
        details.append(f"it ran at no size that was tried: {proposal.refusal}")
        hint = f"give ranges for which it works: --dynamic {example}; and the values that its inputs take: "
        hint += "--input NAME:DTYPE[DIMS]=LOW:HIGH"
    else:
        hint = f"add {proposal.options} (small sizes at which it ran; widen them to what you serve)"
    raise InvalidRequestError(
        f"nothing says how large {dims} {', '.join(missing)} of '{path}' can be", hint=hint, details=details
    )


def require_shared_sizes(path: str, run: Run, inputs: Sequence[TensorSpec], space: ShapeSpace) -> None:
    """Raise InvalidRequestError for a dim that the file calls alike on axes that cannot have one size."""
    shared = shared_axes(inputs)
    if not shared or _Runs(run, inputs, space, Effort(SECONDS, LEAST_RUNS, time.process_time)).works({}):
        return
    for name, uses in shared.items():
        rest = ShapeSpace(tuple((n, r) for n, r in space.dims if n != name))
        proposal = propose_ranges(run, split_dim(inputs, name), rest)
        if proposal.space.dims:
            axes = " and ".join(f"axis {axis} of '{tensor}'" for tensor, axis in uses)
            raise InvalidRequestError(
                f"'{path}' calls {axes} '{name}', and does not run where both have one size",
                hint=f"in place of {name}, give each a range: {proposal.options}",
            )


def _proposal_apart(
    run: Run, inputs: Sequence[TensorSpec], missing: Sequence[str], space: ShapeSpace
) -> Proposal | None:
    """A proposal in which dims that the file calls alike have ranges of their own; None where that helps nothing."""
    split = tuple(inputs)
    for name in shared_axes(inputs):
        split = split_dim(split, name) if name in missing else split
    proposal = propose_ranges(run, split, space) if split != tuple(inputs) else None
    return None if proposal is None or proposal.refusal else proposal
