"""What the first call leaves in a module because of its values: an engine knows of no first call.

A normalisation that sets its scale from the first batch (ActNorm) gives the same again from then on, so that neither a
second run nor its FP64 shows anything; the file would hold the statistics of the batch that the proof made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.export.module.noise.repeatable import (
    MOST_WEIGHTS,
    content_differs,
    difference,
    of_other_shapes,
    places,
    quoted_names,
    require_no_use_of,
    require_same_again,
    same_elements,
    state,
)
from trtconv.export.module.noise.twins import weight_bytes
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.sizes.shape_caches import CachedAttribute, ShapeCaches, Slot, as_before_first_call

if TYPE_CHECKING:
    from torch import nn

    from trtconv.proof.original import MakeInputs
    from trtconv.proof.reference import ReferenceSample
    from trtconv.proof.sampling import Samples

# The first sample times these is a first call, too: a maximum that begins at 0 stays there for a mean below it.
FACTORS = (1.0, -1.0, 100.0, -100.0)
# Shapes at which a first call is tried.
MOST_SHAPES = 4
# Points with special values that are tried as the first call.
MOST_SPECIAL = 12
HINT = (
    "an engine keeps what was in the module when it was exported: run the module on real data first and save its "
    "state, or load weights with --weights, so that the first call is over"
)


NO_CALL_BEFORE = "an engine knows of no call before: compute it from the sizes in each call, or in __init__"


@dataclass(frozen=True)
class UntouchedState:
    """Of a module that was not run: its attributes by what holds them, the content of its tensors and numbers, and the
    sums of parameters that are too many to keep.
    """

    attributes: Mapping[Slot, CachedAttribute]
    content: Mapping[str, Any]
    sums: Mapping[str, float]


def sums_of_large(module: nn.Module) -> dict[str, float]:
    """By name the sum of each parameter of a module with more than `MOST_WEIGHTS` bytes of them; else nothing."""
    import torch

    parameters = dict(module.named_parameters())
    if weight_bytes(module) <= MOST_WEIGHTS:
        return {}
    return {n: float(p.detach().sum(dtype=torch.float64)) for n, p in parameters.items() if p.is_floating_point()}


def changed_inside(module: nn.Module, untouched: UntouchedState) -> list[str]:
    """The tensors and numbers of a module that have another content than before its first run, by name."""
    now = state(module)
    return [k for k, v in untouched.content.items() if k in now and not _same(v, now[k])]


def require_same_large_parameters(module: nn.Module, untouched: UntouchedState) -> None:
    """Raise AccuracyError where runs changed parameters of which there are too many to put them back."""
    sums = sums_of_large(module)
    grown = [name for name, total in untouched.sums.items() if sums.get(name, total) != total]
    if grown:
        raise AccuracyError(f"forward changes the parameters {quoted_names(grown)} at its first call", hint=HINT)


def require_independent_of_first_call(
    runner: ModuleRunner, untouched: UntouchedState, samples: Sequence[ReferenceSample]
) -> None:
    """Raise AccuracyError where what the first call left in the module changes what a call with other sizes gives.

    A grid that is made once, for the first size, is right for that size alone; which one that is in use, no file knows.
    """
    for other in of_other_shapes(samples)[:MOST_SHAPES]:
        with as_untouched(runner.module, untouched, runner.caches) as names:
            if not names:
                return
            try:
                with runner.caches.emptied():
                    outputs = runner(other.inputs)
            except TrtconvError:
                # What a call does to a class is not put back (`remove_parametrizations` does that). A fork tries it.
                return
        differs = difference(other, outputs)
        if differs is not None:
            raise AccuracyError(
                f"forward keeps {quoted_names(names)} from its first call and depends on it: "
                f"'{differs.output}' at {other.point} is another one when that is the first call",
                hint=NO_CALL_BEFORE,
            )


def require_no_values_of_first_call(
    runner: ModuleRunner, untouched: UntouchedState, samples: Samples, make: MakeInputs
) -> None:
    """Raise AccuracyError where the first of the samples, which was run first, depends on what was run before it.

    What the values of a call leave is also set far away: a running maximum may matter from a threshold on alone.
    """
    first = samples.items[0]
    require_same_again(runner, first)
    others = make(replace(first.point, seed=first.point.seed + 1))
    with _as_first_call(runner, untouched) as names:
        if not names:
            return
        try:
            runner(others)
            left = [state(runner.module)]
            outputs = runner(first.inputs)
        except TrtconvError:
            return
    differs = difference(first, outputs)
    if differs is not None:
        raise AccuracyError(
            f"forward sets {quoted_names(names)} from the values of its first call and depends on them: "
            f"'{differs.output}' at {first.point} is another one when other values came first",
            hint=HINT,
        )
    for factor in FACTORS:
        with _as_first_call(runner, untouched):
            try:
                runner({n: v * v.dtype.type(factor) if v.dtype.kind == "f" else v for n, v in first.inputs.items()})
            except TrtconvError:
                continue
            left.append(state(runner.module))
    # Not parameters: an embedding that renormalises the rows it looks up does that to any weights, as its file does.
    parameters = dict(runner.module.named_parameters())
    kept_from_values = [
        key
        for key, value in left[0].items()
        if key not in parameters and any(key in s and content_differs(value, s[key]) for s in left[1:])
    ]
    require_no_use_of(runner, first, kept_from_values)
    _require_same_at_special_values(runner, untouched, samples)


def _require_same_at_special_values(runner: ModuleRunner, untouched: UntouchedState, samples: Samples) -> None:
    """Raise AccuracyError where a call with the values of a sample gives something else when it is the first.

    The least of the last three maxima is high where all three calls had high values. Such a sample is another one in
    FP64, which is run after other calls, and the difference would pass for rounding.
    """
    special = [s for s in samples.items if s.point.values != "random" and not s.point.advisory]
    for sample in special[:MOST_SPECIAL]:
        with _as_first_call(runner, untouched) as names:
            try:
                outputs = runner(sample.inputs)
            except TrtconvError:
                continue
        differs = difference(sample, outputs)
        if differs is not None:
            raise AccuracyError(
                f"forward keeps {quoted_names(names)} from the values of earlier calls and depends on them: "
                f"'{differs.output}' at {sample.point} is another one when that is the first call",
                hint=NO_CALL_BEFORE,
            )


@contextmanager
def as_untouched(module: nn.Module, untouched: UntouchedState, caches: ShapeCaches) -> Iterator[tuple[str, ...]]:
    """For the time of the block the module is as before its first run, but for the caches.

    What was written into a tensor comes back as well: a running maximum stays where the first call put it. Gives the
    names of what is put back.
    """
    content = {name: untouched.content[name] for name in changed_inside(module, untouched)}
    with as_before_first_call(module, untouched.attributes, caches) as names, _with_content(module, content):
        yield tuple(dict.fromkeys((*content, *names)))


@contextmanager
def _as_first_call(runner: ModuleRunner, untouched: UntouchedState) -> Iterator[tuple[str, ...]]:
    with (
        as_untouched(runner.module, untouched, runner.caches) as names,
        runner.caches.emptied() if runner.caches.initial else nullcontext(),
    ):
        yield names


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return same_elements(one, other)
    return type(one) is type(other) and bool(one == other)


@contextmanager
def _with_content(module: nn.Module, content: Mapping[str, Any]) -> Iterator[None]:
    """For the time of the block the tensors and numbers of these names have this content."""
    import torch

    held = [(space, name, space[name], content[key]) for key, space, name in places(module) if key in content]
    content_after = [v.detach().clone() if isinstance(v, torch.Tensor) else v for _, _, v, _ in held]

    def fill(values: list[Any]) -> None:
        for (space, name, current, _), value in zip(held, values, strict=True):
            # What is expanded has one memory for many elements, which nothing can be copied into.
            is_own = isinstance(current, torch.Tensor) and torch._debug_has_internal_overlap(current) != 1
            if is_own and current.shape == value.shape and current.dtype == value.dtype:
                current.data.copy_(value)
                space[name] = current
            elif isinstance(current, torch.nn.Parameter):
                current.data = value
            else:
                space[name] = value

    try:
        fill([before for *_, before in held])
        yield
    finally:
        fill(content_after)
