"""Whether it matters to a module which tensors hold its inputs: an engine knows their values alone.

`if key is query`, a table by `id(x)`, an attribute that forward puts on its input, a weak reference to the last one:
each run of ours is handed tensors of its own, which nobody keeps, so that no sample shows any of it. Users fill one
buffer again and again, and keep the last result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.export.lasting.notes import FirstState, as_at_first
from trtconv.export.module.runner import ModuleRunner, to_tensor
from trtconv.proof.allowance import allowances
from trtconv.proof.comparison import compare_outputs, first_failure
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np
    import torch

    from trtconv.proof.original import MakeInputs
    from trtconv.proof.sampling import Samples

    Array = np.ndarray[Any, np.dtype[Any]]

# Pairs of inputs that are handed over as one tensor, besides all as one.
MOST_PAIRS = 3
VALUES_ALONE = "an engine knows the values alone: the file does what the module does with"


class KeptTensors(ModuleRunner):
    """Runs a module on tensors that live on after a call, as do its outputs, and are filled again in the next.

    `same` names the inputs that are one tensor; they have the same values.
    """

    def __init__(self, inner: ModuleRunner, same: tuple[str, ...] = ()) -> None:
        super().__init__(inner.module, None, inner.base, output_names=inner.output_names, renames=inner.renames)
        self.names, self.binding, self.ranks = inner.names, inner.binding, inner.ranks
        self.caches, self.threads, self.limit = inner.caches, inner.threads, inner.limit
        self.same = same
        self.inputs: dict[str, torch.Tensor] = {}
        self.outputs: list[Mapping[str, torch.Tensor]] = []

    def tensors(self, inputs: Mapping[str, Array]) -> dict[str, torch.Tensor]:
        """Those of the call before, filled with other values."""
        import torch

        if self.inputs:
            with torch.no_grad():
                for name, tensor in self.inputs.items():
                    tensor.copy_(to_tensor(inputs[name]))
            return self.inputs
        self.inputs = super().tensors(inputs)
        self.inputs |= dict.fromkeys(self.same, self.inputs[self.same[0]]) if self.same else {}
        return self.inputs

    def _run(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        outputs = super()._run(tensors)
        self.outputs.append(outputs)
        return outputs


class StridedTensors(KeptTensors):
    """Runs a module on tensors that are not contiguous: every other element of memory twice as large."""

    def tensors(self, inputs: Mapping[str, Array]) -> dict[str, torch.Tensor]:
        """New ones, each in memory of its own."""
        import torch

        return {
            name: torch.stack([tensor, tensor], -1)[..., 0] if tensor.ndim else tensor
            for name, tensor in ModuleRunner.tensors(self, inputs).items()
        }


def notes_on_same_tensors(
    runner: ModuleRunner, before: FirstState, samples: Samples, make: MakeInputs
) -> tuple[str, ...]:
    """A note for each way of handing over the same values in which the module computes something else."""
    if type(runner) is not ModuleRunner:
        return ()
    here = samples.cheapest
    notes = []
    earlier = make(replace(here.point, seed=here.point.seed + 1))
    if _differs(runner, before, KeptTensors(runner), [earlier], here):
        notes.append(
            "with the tensors of an earlier call, filled with other values, the module computes something else (it "
            f"asks whether it knows them, or keeps a reference to them); {VALUES_ALONE} new ones"
        )
    if _differs(runner, before, StridedTensors(runner), [], here):
        notes.append(
            "with inputs that are not contiguous the module computes something else; "
            f"{VALUES_ALONE} contiguous ones"
        )
    for names, sample in _alike(runner, before, samples):
        if _differs(runner, before, KeptTensors(runner, names), [], sample):
            quoted = ", ".join(f"'{n}'" for n in names)
            notes.append(
                f"with one tensor for {quoted} the module computes something else than with several of the same "
                f"values (it asks whether they are one, or writes into them); {VALUES_ALONE} several"
            )
            break
    return tuple(notes)


def _differs(
    runner: ModuleRunner,
    before: FirstState,
    other: ModuleRunner,
    earlier: list[Mapping[str, Array]],
    sample: ReferenceSample,
) -> bool:
    """Whether the other runner gives something else at the sample after the earlier calls; not where either raises."""
    try:
        with as_at_first(runner, before):
            for feed in earlier:
                other(feed)
            outputs = other(sample.inputs)
        if _equal(sample, outputs):
            return False
        # What differs without that too is state, of which others tell.
        with as_at_first(runner, before):
            for feed in earlier:
                runner(feed)
            return _equal(sample, runner(sample.inputs))
    except TrtconvError:
        return False


def _equal(sample: ReferenceSample, outputs: Mapping[str, Array]) -> bool:
    """Whether outputs are those of the sample, within what a file's may differ by."""
    return first_failure(compare_outputs(str(sample.point), sample.outputs, outputs, allowances(sample))) is None


def _alike(
    runner: ModuleRunner, before: FirstState, samples: Samples
) -> Iterator[tuple[tuple[str, ...], ReferenceSample]]:
    """Inputs that may be one tensor, with a sample at which they have the same values."""
    groups: dict[tuple[Any, ...], tuple[tuple[str, ...], ReferenceSample]] = {}
    for sample in samples.items:
        if sample.point.advisory:
            continue
        for names in _of_one_shape(sample.inputs):
            size = sum(v.nbytes for v in sample.inputs.values())
            smaller = groups.get(names)
            if smaller is None or size < sum(v.nbytes for v in smaller[1].inputs.values()):
                groups[names] = names, sample
    sets = list(groups.values())
    sets += [(pair, sample) for names, sample in groups.values() if len(names) > 2 for pair in pairwise(names)]
    for names, sample in sets[: 1 + MOST_PAIRS]:
        feed = {**sample.inputs, **dict.fromkeys(names, sample.inputs[names[0]])}
        try:
            with as_at_first(runner, before):
                outputs = runner(feed)
        except TrtconvError:
            continue
        yield names, ReferenceSample(sample.point, feed, outputs, samples.floors_at(sample.point, outputs))


def _of_one_shape(inputs: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """The names of inputs that agree in shape and dtype, where there are several."""
    shapes = dict.fromkeys((v.shape, v.dtype) for v in inputs.values() if v.ndim)
    groups = [tuple(n for n, v in inputs.items() if (v.shape, v.dtype) == shape) for shape in shapes]
    return [names for names in groups if len(names) > 1]
