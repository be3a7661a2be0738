"""The inputs and the module's outputs at the sample points."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.tensors import TensorSpec
from trtconv.export.module.runner import ModuleRunner, to_array
from trtconv.export.module.source import load_function
from trtconv.export.module.user_code import blame
from trtconv.export.points import Budget, affordable, input_bytes
from trtconv.export.rounding import breaks_down, exact_twin, flush_errors, jump_errors, rounding_errors, weight_bytes
from trtconv.proof.noise_floor import combined, largest_of
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Values at which a network may amplify rounding without bound: logits of 1e4, the variance of a flat image.
ILL_CONDITIONED = ("large", "zeros", "denormal", "full")
# The rounding of a module with more bytes of weights is measured only at points where a file differs: running ViT-B
# in FP64 there takes longer than exporting it.
MEASURED_AT_ONCE = 256 << 20
# What the module's own rounding may allow most elements at random values, in units of the output's root mean square.
MOST_ALLOWED = 0.05
MakeInputs = Callable[[SamplePoint], Mapping[str, "Array"]]


@dataclass(frozen=True)
class Samples:
    """The samples in the order of the points, with notes on points that were changed or left out."""

    items: tuple[ReferenceSample, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def points(self) -> tuple[SamplePoint, ...]:
        """The points that were run."""
        return tuple(s.point for s in self.items)


def inputs_maker(specs: Sequence[TensorSpec], sample: str | None, base: Path) -> MakeInputs:
    """Random inputs, or those of the user's function `file.py:function`, which is loaded here."""
    if sample is None:
        return lambda point: sample_inputs(specs, point)
    function = load_function(sample, base, "function")

    def make(point: SamplePoint) -> Mapping[str, Array]:
        import torch

        generator = torch.Generator().manual_seed(point.seed)
        try:
            made = function(dict(point.dims), generator)
        except Exception as error:
            raise TrtconvError(
                f"the sample function '{sample}' raised {type(error).__name__}: {error}",
                hint="it is called with (dims: dict[str, int], generator: torch.Generator)", where=blame(error, base),
            ) from error
        return _fitted(made, specs, point, sample)

    return make


def _fitted(made: Any, specs: Sequence[TensorSpec], point: SamplePoint, sample: str) -> Mapping[str, Array]:
    import torch

    values = [made[s.name] for s in specs if s.name in made] if isinstance(made, Mapping) else made
    values = (values,) if isinstance(values, torch.Tensor) else tuple(values)
    if len(values) != len(specs):
        raise InvalidRequestError(
            f"the sample function '{sample}' returned {len(values)} tensors for {len(specs)} inputs",
            hint="return them in the order of --input: " + ", ".join(s.name for s in specs),
        )
    arrays = {s.name: to_array(torch.as_tensor(v)) for s, v in zip(specs, values, strict=True)}
    for spec in specs:
        array = arrays[spec.name]
        if tuple(array.shape) != spec.shape(point.sizes) or array.dtype != spec.dtype.numpy():
            raise InvalidRequestError(
                f"the sample function '{sample}' returned {array.dtype} {list(array.shape)} for '{spec.name}'",
                hint=f"at {point} it has to be {spec.dtype.name} {list(spec.shape(point.sizes))}",
            )
    return arrays


def run_samples(
    runner: ModuleRunner, specs: Sequence[TensorSpec], points: Sequence[SamplePoint], make: MakeInputs,
    only_random: bool, budget: Budget,
) -> Samples:  # fmt: skip
    """Run the module at the points that fit the budget; the first point (the traced size) sets the rate.

    `only_random` leaves out zero, large and other special values, for inputs that a user's function makes.
    """
    started = time.monotonic()
    wanted = [p for p in points if p.values == "random" or not only_random]
    twin = exact_twin(runner) if weight_bytes(runner) <= MEASURED_AT_ONCE else None
    first = _run(runner, wanted[0], make, None)
    rate = (time.monotonic() - started) / max(1, input_bytes(specs, wanted[0]))
    kept, notes = affordable(wanted, specs, rate, budget)
    items, refused = [first], []
    for point in kept:
        if point == wanted[0]:
            continue
        try:
            items.append(_run(runner, point, make, twin))
        except TrtconvError:
            # What a module does with NaN or 1e4 is its own affair, where no user would give such values.
            if point.values == "random":
                raise
            refused.append(f"not compared at {point}: the module itself raises there")
    return Samples(tuple(items), (*notes, *refused, *_shows_little(items)), time.monotonic() - started)


def _run(runner: ModuleRunner, point: SamplePoint, make: MakeInputs, twin: ModuleRunner | None) -> ReferenceSample:
    inputs = make(point)
    outputs = runner(inputs)
    measured = twin is not None and point.values in ILL_CONDITIONED
    rounding = rounding_errors(runner, inputs, outputs, twin) if measured else {}
    if any(not isinstance(r, float) for r in rounding.values()):
        # Some elements are decisions; others of their kind show when the inputs move by less than they are exact.
        jumps = jump_errors(runner, inputs, outputs)
        rounding = {n: combined(r, jumps.get(n, 0.0)) for n, r in rounding.items()}
    if measured and point.values == "denormal":
        flushed = flush_errors(runner, inputs, outputs)
        rounding = {n: combined(rounding.get(n, 0.0), flushed.get(n, 0.0)) for n in outputs}
    return ReferenceSample(point, inputs, outputs, rounding)


def _shows_little(items: Sequence[ReferenceSample]) -> list[str]:
    """Notes on outputs whose own rounding is so large that equality there says hardly anything."""
    import numpy as np

    notes = []
    for sample in items:
        for name, error in sample.rounding.items():
            output = sample.outputs[name]
            scale = max(1.0, float(np.abs(output).max(initial=0.0, where=np.isfinite(output))))
            if largest_of(error) > 0.01 * scale:
                where = "" if isinstance(error, float) else " at some elements"
                exact = "its FP64"
                if sample.point.values == "denormal":
                    exact = "its FP64 or from what it is where denormals count as zero, as on GPUs"
                notes.append(
                    f"at {sample.point} the module itself is ill conditioned: its FP32 '{name}' is "
                    f"{largest_of(error):.2g} from {exact}{where}, so the comparison there shows little"
                )
    return notes


def with_rounding(samples: Samples, at: SamplePoint, runner: ModuleRunner, sorts: bool = False) -> Samples | None:
    """The samples with the module's own uncertainty measured at a point; None when that tells nothing new.

    It is the rounding (FP32 against FP64); at special values also how far the outputs jump when the inputs move by
    less than they are exact: with all inputs zero, which elements a top-k takes is an accident.
    """
    import numpy as np

    index = next((i for i, s in enumerate(samples.items) if s.point == at), None)
    if index is None:
        return None
    sample = samples.items[index]
    rounding = own_rounding(runner, sample, sorts)
    if not any(np.any(error > sample.rounding.get(n, 0.0)) for n, error in rounding.items()):
        return None
    measured = replace(sample, rounding=rounding)
    items = (*samples.items[:index], measured, *samples.items[index + 1 :])
    shown = ", ".join(f"'{n}' {largest_of(e):.2g}" for n, e in rounding.items() if largest_of(e) > 0)
    note = f"at {at} the module's own uncertainty was measured and allowed for: {shown}"
    return replace(samples, items=items, notes=(*samples.notes, note))


def own_rounding(runner: ModuleRunner, sample: ReferenceSample, sorts: bool = False) -> dict[str, float | Array]:
    """What the module's uncertainty at a sample allows, by output; see `with_rounding`.

    `sorts` says that equal elements are put into an order: of ties at a probe that is an accident, of a boundary not.
    """
    probe = sample.point.probes and not sorts
    rounding = dict(sample.rounding) or rounding_errors(runner, sample.inputs, sample.outputs, probe=probe)
    if sample.point.values == "random":
        return {n: e for n, e in rounding.items() if _leaves_something(e, sample.outputs[n])}
    if probe:
        return rounding
    jumps = jump_errors(runner, sample.inputs, sample.outputs)
    return {n: combined(rounding.get(n, 0.0), jumps.get(n, 0.0)) for n in sample.outputs}


def _leaves_something(error: float | Array, output: Array) -> bool:
    """False when most elements may be off by as much as they are large: any file would be found equal then."""
    import numpy as np

    finite = output[np.isfinite(output)].astype(np.float64)
    scale = max(1.0, float(np.sqrt(np.mean(finite * finite)))) if finite.size else 1.0
    return float(np.median(error)) <= MOST_ALLOWED * scale


def without_breakdown(samples: Samples, at: SamplePoint, runner: ModuleRunner) -> Samples | None:
    """The samples without a point of special values at which the module itself leaves FP32's range; else None."""
    sample = next((s for s in samples.items if s.point == at), None)
    if sample is None or at.values == "random" or not breaks_down(runner, sample.inputs, sample.outputs):
        return None
    note = f"not compared at {at}: the module's own FP32 outputs are not finite there, though FP64 ones are"
    items = tuple(s for s in samples.items if s.point != at)
    return replace(samples, items=items, notes=(*samples.notes, note))
