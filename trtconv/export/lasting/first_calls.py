"""A module whose first call leaves something outside of it: in a class, a closure, a global, another package.

What is there when a process begins decides then what all of its calls give, and which file is right depends on the
sizes that come first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trtconv.core.errors import AccuracyError
from trtconv.export.lasting.notes import FirstState, changed_outside
from trtconv.export.module.noise.first_call import NO_CALL_BEFORE, changed_inside
from trtconv.export.module.noise.repeatable import difference, of_other_shapes, quoted_names, require_same_again
from trtconv.export.module.noise.threads import one_thread

if TYPE_CHECKING:
    from trtconv.export.module.noise.first_call import UntouchedState
    from trtconv.export.module.noise.fresh_process import FreshProcess
    from trtconv.export.module.runner import ModuleRunner
    from trtconv.proof.reference import ReferenceSample
    from trtconv.proof.sampling import Samples

# Seconds after which no further shape is tried.
ENOUGH = 3.0
# Shapes that are tried besides the two that tell most.
MOST_OTHERS = 4
# Seconds that a first call may take beside all that the samples took.
GRACE = 10.0
NOT_TRIED = "what a first call leaves outside of the module was not looked for: the module ran in no fork"


def require_nothing_left_outside(
    runner: ModuleRunner, before: FirstState, untouched: UntouchedState, samples: Samples, fresh: FreshProcess
) -> Samples:
    """The samples, with a note where first calls could not be tried.

    Raises AccuracyError where a sample's outputs are others when it is the first that a process runs, or when the
    module runs again.

    A table that is made once for all sizes, or for each of them, gives the same. Looked at are first the last sample
    each of whose sizes came before, since what is kept by a part of the sizes was kept by earlier ones, and the
    smallest, since what grows has outgrown it; then those of other shapes, of which a largest size so far shows itself.
    """
    started = time.monotonic()
    for sample in _telling(samples.items):
        if time.monotonic() - started > ENOUGH + samples.seconds:
            break
        outputs = fresh.outputs(sample.inputs, GRACE + samples.seconds)
        if outputs is None:
            return replace(samples, notes=(*samples.notes, NOT_TRIED)) if fresh.is_possible else samples
        if difference(sample, outputs) is None:
            continue
        # The fork has one thread, and sums in another order.
        with one_thread():
            again = replace(sample, outputs=runner(sample.inputs))
            differs = difference(again, outputs)
            if differs is None:
                continue
            # Random numbers that only this size or these values draw are nothing that is left.
            require_same_again(runner, again)
        inside = quoted_names(changed_inside(runner.module, untouched))
        cached = quoted_names(dict.fromkeys(a.name for a in runner.caches.initial))
        unseen = "something outside of the module" + (f" or in {cached}" if cached else "")
        kept_in = changed_outside(runner.module, before) or inside or unseen
        raise AccuracyError(
            f"forward keeps {kept_in} from the first call of a process and depends on it: '{differs.output}' at "
            f"{sample.point} is another one when that is the first call",
            hint=NO_CALL_BEFORE,
        )
    return samples


def _telling(samples: Sequence[ReferenceSample]) -> list[ReferenceSample]:
    others = of_other_shapes(samples)
    smallest = min(others, key=lambda s: sum(v.size for v in s.inputs.values()), default=None)
    met: set[tuple[str, int]] = set()
    last = others[-1:]
    for sample in samples:
        sizes = set(sample.point.dims)
        if sizes <= met and any(sample is s for s in others):
            last = [sample]
        met |= sizes
    telling = [*last, *([smallest] if smallest is not None else []), *others[:MOST_OTHERS]]
    return list({id(sample): sample for sample in telling}.values())
