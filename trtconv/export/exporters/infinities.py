"""What an infinity in an input changes: a file that makes NaN of it where the module leaves the element out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trtconv.core.errors import TrtconvError
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.proof.comparison import describe_failure
from trtconv.proof.probes.masks import MASK_KINDS, structured_mask
from trtconv.proof.probes.values import INFINITE_KINDS
from trtconv.proof.proving import compare_defined
from trtconv.proof.reference import ReferenceSample

# Where the one infinity of an input stands, in shares of its elements. Which NaN a maximum passes on depends on where
# it is met, and attention leaves out what a mask hides.
PLACES = (0.0, 0.5, 1.0)


def spread_infinities(job: ExportTask, result: Attempt) -> tuple[str, ...]:
    """A note where a file differs at an infinite input value, in elements of which the module makes no NaN."""
    for probe in job.samples.items:
        if probe.point.values not in INFINITE_KINDS or result.runs is None:
            continue
        for sample in (probe, *_moved(job, probe)):
            worse = next((c for c in compare_defined(result.runs, sample) if not c.passed), None)
            if worse is not None:
                return (f"with an infinity in an input the file differs: {describe_failure(worse)}",)
    return ()


def _moved(job: ExportTask, probe: ReferenceSample) -> Iterator[ReferenceSample]:
    """The same point with one infinity in each input, at another place, and beside masks of each form."""
    import numpy as np

    for index, share in enumerate(PLACES):
        inputs = {}
        for name, values in probe.inputs.items():
            moved = np.array(values)
            if moved.dtype.kind == "f" and np.isinf(moved).any():
                flat = moved.reshape(-1)
                infinity = flat[np.isinf(flat)][0]
                flat[np.isinf(flat)] = 0.5
                flat[int(share * (flat.size - 1))] = infinity
            elif moved.dtype.kind == "b" and moved.size:
                moved = structured_mask(MASK_KINDS[index % len(MASK_KINDS)], moved)
            inputs[name] = moved
        try:
            outputs = job.runner(inputs)
        except TrtconvError:
            # The module is undefined there.
            continue
        yield replace(probe, inputs=inputs, outputs=outputs, floors=job.samples.floors_at(probe.point, outputs))
