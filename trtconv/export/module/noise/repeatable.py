"""A module is compared with its file only if it is repeatable: noise would pass for rounding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.core.report import OutputComparison
from trtconv.export.module.noise.threads import one_thread
from trtconv.export.module.noise.twins import weight_bytes
from trtconv.export.module.operator_lines import random_line
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.allowance import Allowance, allowances
from trtconv.proof.comparison import compare_outputs, first_failure
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import torch
    from torch import nn

# A counter is set this far on, which is beyond the number of calls after which any warm-up ends; and state of floats
# this far to both sides, which is beyond what a threshold of magnitudes is.
MANY_CALLS, FAR = 10_000_000, 1e6
# Two runs of one module on one machine agree to the last bits, but for the order of sums in threads.
SAME = 1e-5
# Bytes of weights that are compared before and after a run.
MOST_WEIGHTS = 64 << 20
# More calls, and the CPU seconds for them, after which a module must still give the same. Calls that take less than
# `SHORT_CALL` seconds are made in one thread: several would wait for one another.
MORE_CALLS, FEWEST_CALLS, MORE_SECONDS, SHORT_CALL = 128, 2, 0.5, 0.05
# Names in a message.
MOST_NAMED = 3


def require_repeatable(runner: ModuleRunner, sample: ReferenceSample) -> None:
    """Run the module again on the sample's inputs; raise AccuracyError when it gives something else.

    What differs from run to run differs between FP32 and FP64 as well, so its rounding would be measured as large as
    its noise and any file would be found equal. State that forward changes is also set to other values for a run: a
    counter may count to a thousand before it matters, and the file holds what it was at the time of tracing.
    """
    before = state(runner.module)
    require_same_again(runner, sample)
    changed = _changed_since(before, runner.module)
    if changed and runner.caches.initial and _is_cache(runner, sample):
        cached = [key for key, space, name in places(runner.module) if (id(space), name) in runner.caches]
        changed = [key for key in changed if key not in cached]
    require_no_use_of(runner, sample, changed)


def require_same_again(runner: ModuleRunner, sample: ReferenceSample) -> None:
    """Run the module again on the sample's inputs; raise AccuracyError when the outputs are others."""
    differs = difference(sample, runner(sample.inputs))
    if differs is None:
        return
    much = f" by up to {differs.max_abs:.3g}" if differs.max_abs is not None else f" ({differs.reason})"
    before = state(runner.module)
    runner(sample.inputs)
    changed = _changed_since(before, runner.module)
    what = f"; each call changes {quoted_names(changed)}" if changed else ""
    raise AccuracyError(
        f"the module returns a different '{differs.output}' when run again on the same inputs: it differs{much} "
        f"at {sample.point}{what}",
        hint="nothing can be shown equal to noise, or to a state that forward changes: take the random tensor or "
        "the state as an input, or make the module deterministic in eval mode",
        where=random_line(runner, sample.inputs),
    )


def require_same_after_many_calls(runner: ModuleRunner, sample: ReferenceSample) -> None:
    """Run the module on, for a short time; raise AccuracyError when it then gives something else than at first.

    State may be where nobody sees it: in a list, a closure, a global, a generator.
    """
    expected: Mapping[str, Any] = sample.outputs
    base = sample
    started = time.monotonic()
    effort = Effort(MORE_SECONDS, FEWEST_CALLS)
    with ExitStack() as threads:
        for _ in range(MORE_CALLS):
            outputs = runner(sample.inputs)
            # State that goes round matters at some calls only, so the last one alone would not show it.
            differs = None if same_bits(expected, outputs) else difference(base, outputs)
            if differs is not None:
                threads.close()
                if not _is_order_of_sums(runner, sample, outputs):
                    raise AccuracyError(
                        f"the module gives another '{differs.output}' after many calls than at first, on the same "
                        f"inputs: {differs.reason}",
                        hint="an engine keeps no state between calls: do not count calls, or keep what came before, "
                        "in eval mode",
                    )
                base = replace(sample, outputs=outputs)
                threads.enter_context(one_thread())
            if not effort.step():
                break
            if effort.steps == 1 and time.monotonic() - started < SHORT_CALL:
                threads.enter_context(one_thread())
            # With one thread, sums are taken in another order than at first.
            expected = outputs


def _is_order_of_sums(runner: ModuleRunner, sample: ReferenceSample, outputs: Mapping[str, Any]) -> bool:
    """True when these outputs are off by little more than rounding, and calls in all threads give the sample again.

    How sums are shared among threads, and how a library's kernels take what is not aligned, changes the last bits; of
    elements whose floor is small by chance that is more than is allowed. State does not come back.
    """
    limits = {
        n: Allowance(SAME * a.scale, a.scale)
        for n, a in allowances(sample).items()
        if sample.outputs[n].dtype.kind in "fc"
    }
    if first_failure(compare_outputs(str(sample.point), sample.outputs, outputs, limits)):
        return False
    return all(difference(sample, runner(sample.inputs)) is None for _ in range(FEWEST_CALLS))


def same_bits(expected: Mapping[str, Any], outputs: Mapping[str, Any]) -> bool:
    """Whether all that is expected is there, to the bit."""
    return all(
        name in outputs and value.shape == outputs[name].shape and value.tobytes() == outputs[name].tobytes()
        for name, value in expected.items()
    )


def quoted_names(names: Iterable[str]) -> str:
    """The first names, as a message has them."""
    return ", ".join(repr(n) for n in islice(names, MOST_NAMED))


def of_other_shapes(samples: Sequence[ReferenceSample]) -> list[ReferenceSample]:
    """One sample of each shape that the first one has not."""
    others = {tuple(v.shape for v in s.inputs.values()): s for s in samples if not s.point.advisory}
    others.pop(tuple(v.shape for v in samples[0].inputs.values()), None)
    return list(others.values())


def _is_cache(runner: ModuleRunner, sample: ReferenceSample) -> bool:
    """True when the module gives the same with its caches by shape empty."""
    with runner.caches.emptied():
        return difference(sample, runner(sample.inputs)) is None


def require_no_use_of(runner: ModuleRunner, sample: ReferenceSample, changed: Sequence[str]) -> None:
    """Raise AccuracyError where the module gives something else when what it changed has another value."""
    if not changed:
        return
    for move in (_elsewhere, partial(_far_away, sign=1), partial(_far_away, sign=-1)):
        with _set_elsewhere(runner.module, changed, move):
            try:
                differs = difference(sample, runner(sample.inputs))
            except TrtconvError as error:
                # Far away there may be nothing that the module itself could have left there.
                what = f"it raises ({error.message})" if move is _elsewhere else ""
            else:
                what = f"'{differs.output}' changes" if differs is not None else ""
        if not what:
            continue
        raise AccuracyError(
            f"forward changes {quoted_names(changed)} and depends on it: {what} when it has another value",
            hint="an engine keeps no state between calls: take the state as an input and return the new one, or do "
            "not change it in eval mode",
        )


def difference(sample: ReferenceSample, outputs: dict[str, Any]) -> OutputComparison | None:
    """What differs by more than is allowed, or by more than `SAME` of an output's largest value.

    Noise is in the floor of the sample as well, so that the floor would allow it.
    """
    label = str(sample.point)
    tight = {n: Allowance(SAME * _largest(v), _largest(v)) for n, v in sample.outputs.items() if v.dtype.kind in "fc"}
    failure = first_failure(compare_outputs(label, sample.outputs, outputs, allowances(sample)))
    return failure or first_failure(compare_outputs(label, {n: sample.outputs[n] for n in tight}, outputs, tight))


def _largest(output: Any) -> Any:
    import numpy as np

    values = np.abs(output.astype(np.float64))
    return np.asarray(values.max(initial=0.0, where=np.isfinite(values)))


def places(module: nn.Module) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each buffer, each number or tensor that is a plain attribute, and each parameter unless there are many bytes.

    Given are its name, and the dict and key to set it by.
    """
    import torch

    small = weight_bytes(module) <= MOST_WEIGHTS
    internal = {*vars(torch.nn.Module()), "training"}
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        held = [(part._buffers, n) for n in part._buffers]
        held += [(part._parameters, n) for n in part._parameters if small]
        held += [(part.__dict__, n) for n in part.__dict__ if n not in internal]
        for space, name in held:
            value = space[name]
            if isinstance(value, (int, float, torch.Tensor)) and not isinstance(value, bool):
                yield f"{path}.{name}" if path else name, space, name


def state(module: nn.Module) -> dict[str, Any]:
    """By name a copy of each tensor, and each number, of `places`."""
    import torch

    values: dict[str, Any] = {}
    for key, space, name in places(module):
        value = space[name]
        if torch.nn.parameter.is_lazy(value):
            # The first call makes it.
            continue
        values[key] = value.detach().clone() if isinstance(value, torch.Tensor) else value
    return values


def _changed_since(before: Mapping[str, Any], module: nn.Module) -> list[str]:
    """What of `places` has another content than it had in that state."""
    return [key for key, value in state(module).items() if key in before and content_differs(before[key], value)]


def content_differs(before: Any, after: Any) -> bool:
    """True when the same run left another value; a table that grew to fit is made once and then stays."""
    import torch

    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        if before.is_nested or after.is_nested:
            # They have no shape to be asked for.
            rows = [t.unbind() if t.is_nested else (t,) for t in (before, after)]
            return len(rows[0]) == len(rows[1]) and any(map(content_differs, *rows))
        return before.shape == after.shape and not same_elements(before, after)
    return type(before) is type(after) and not isinstance(before, torch.Tensor) and bool(before != after)


def same_elements(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same elements, of which NaN is one."""
    import torch

    plain, others = _plain_elements(one), _plain_elements(other)
    if plain.shape != others.shape or plain.dtype != others.dtype:
        return False
    return torch.equal(plain, others) or bool(((plain == others) | (plain.isnan() & others.isnan())).all())


def _plain_elements(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements in a form that can be compared: dense, of a type for which torch has that.

    Of one that torch cannot write out, as a nested one, nothing is compared.
    """
    import torch

    try:
        if tensor.is_nested:
            return torch.empty(0)
        dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
        if dense.is_quantized:
            return dense.int_repr()
        if dense.is_floating_point() and dense.itemsize == 1:
            return dense.view(torch.uint8)
        if dense.dtype is torch.complex32:
            return torch.view_as_real(dense)
        return dense
    except (RuntimeError, NotImplementedError):
        return torch.empty(0)


@contextmanager
def _set_elsewhere(module: nn.Module, changed: Sequence[str], move: Callable[[Any], Any]) -> Iterator[None]:
    """For the time of the block these have other values."""
    undo = [(space, name, space[name]) for key, space, name in places(module) if key in changed]
    try:
        for space, name, value in undo:
            space[name] = move(value)
        yield
    finally:
        for space, name, value in undo:
            space[name] = value


def _elsewhere(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value + MANY_CALLS
    if value.dtype == torch.bool:
        return ~value
    if value.is_floating_point() or value.is_complex():
        return value * 3.0 + 1.0
    return value + min(MANY_CALLS, torch.iinfo(value.dtype).max // 4)


def _far_away(value: Any, sign: int) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value + sign * MANY_CALLS
    if value.dtype == torch.bool:
        return torch.full_like(value, sign > 0)
    if value.is_complex():
        return torch.full_like(value, sign * FAR)
    if value.is_floating_point():
        return torch.full_like(value, sign * min(FAR, torch.finfo(value.dtype).max / 4))
    limits = torch.iinfo(value.dtype)
    return torch.full_like(value, max(sign * min(MANY_CALLS, limits.max // 4), limits.min))
