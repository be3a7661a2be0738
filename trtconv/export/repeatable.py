"""A module is compared with its file only when it agrees with itself: noise would pass for rounding."""

from __future__ import annotations

from trtconv.core.comparison import DEFAULT_TOLERANCE, compare_outputs, first_failure
from trtconv.core.errors import AccuracyError
from trtconv.core.reference import ReferenceSample
from trtconv.export.module_runner import ModuleRunner


def require_repeatable(runner: ModuleRunner, sample: ReferenceSample) -> None:
    """Run the module again on the sample's inputs; raise AccuracyError when it gives something else.

    What differs from run to run differs between FP32 and FP64 as well, so its rounding would be measured as large as
    its noise and any file would be found equal.
    """
    again = runner(sample.inputs)
    differs = first_failure(compare_outputs(str(sample.point), sample.outputs, again, DEFAULT_TOLERANCE))
    if differs is None:
        return
    much = f" by up to {differs.max_abs:.3g}" if differs.max_abs is not None else f" ({differs.reason})"
    raise AccuracyError(
        f"the module gives another '{differs.output}' when it is run again on the same inputs: it differs{much} at "
        f"{sample.point}",
        hint="nothing can be shown equal to noise, or to a state that forward changes: take the random tensor or the "
        "state as an input, or make the module deterministic in eval mode",
    )
