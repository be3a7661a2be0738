"""The cures in their order, each tried only when those before it did not hold: the first that holds ends the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trtconv.backends.protocol import FASTER_SHAPES
from trtconv.core.precision import FP32, HALF_NAMES, TF32
from trtconv.core.progress import Progress
from trtconv.core.text.listing import list_names
from trtconv.heal.trial import CureTrial, Diagnosis, Variant, Workbench
from trtconv.proof.halving import largest_that_holds

# 3 is TensorRT's default. Lower levels time fewer tactics, and higher ones compile some of their own.
LEVELS = (2, 4, 1, 5, 0)


def try_cures(bench: Workbench, diagnosis: Diagnosis, progress: Progress) -> tuple[CureTrial, ...]:
    """All trials in order; the last one holds, or none does."""
    trials: list[CureTrial] = []
    for stage in (_fusion, _form, _in_fp32, _levels, _moving_sizes, _tactics, _all_fp32):
        for trial in stage(bench, diagnosis):
            trials.append(trial)
            outcome = "holds" if trial.holds else f"does not hold: {trial.reason}"
            progress.note(f"{trial.variant.what}: {outcome}")
        # A stage that bisects ends with its best part somewhere on the way.
        holding = [t for t in trials if t.holds]
        if holding:
            best = max(holding, key=lambda t: -len(t.variant.keep_fp32))
            return (*(t for t in trials if t is not best), best)
    return tuple(trials)


def _until_one_holds(bench: Workbench, variants: Iterable[Variant]) -> Iterator[CureTrial]:
    for variant in variants:
        trial = bench.try_variant(variant)
        yield trial
        if trial.holds:
            return


def _fusion(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    """An output cannot be fused away: the engine gets one that nobody has to read."""
    if diagnosis.fused and diagnosis.tensor:
        what = f"break the fusion at '{diagnosis.tensor}', which becomes an output"
        yield bench.try_variant(Variant("fusion", what, options=(("debug_outputs", diagnosis.tensor),)))


def _form(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    """A rule's two sides are equal, and the builder may get right the one that is not in the graph."""
    rule = diagnosis.rule
    before = [Variant("form", f"the form before rule {rule}", skip=(rule,))] if rule else []
    others = [Variant("form", f"the form that rule {name} writes", also=(name,)) for name in diagnosis.forms]
    return _until_one_holds(bench, (*before, *others))


def _in_fp32(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    """The node alone, then as few modules as halving finds."""
    if diagnosis.tf32:
        yield bench.try_variant(Variant(FP32.name, "fp32 without TF32", options=((TF32.name, "false"),)))
    if diagnosis.precision not in HALF_NAMES:
        return
    if diagnosis.node:
        alone = bench.try_variant(Variant(FP32.name, f"'{diagnosis.node}' in fp32", keep_fp32=(diagnosis.node,)))
        yield alone
        if alone.holds:
            return

    def measure(groups: tuple[str, ...]) -> CureTrial:
        rest = [name for name in diagnosis.groups if name not in groups]
        nodes = tuple(node for name in rest for node in diagnosis.groups[name])
        return bench.try_variant(Variant(FP32.name, f"in fp32: {list_names(rest)}", keep_fp32=nodes))

    yield from largest_that_holds(tuple(diagnosis.groups), measure, lambda trial: trial.holds)


def _levels(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    levels = (Variant("opt level", f"optimization level {level}", opt_level=level) for level in LEVELS)
    return _until_one_holds(bench, levels)


def _moving_sizes(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    """TensorRT 8.6 has another way to build for sizes that move, which cured a decoder with a cache."""
    if diagnosis.generation == 8:
        what = "moving sizes as before TensorRT 8.5"
        yield bench.try_variant(Variant("moving sizes", what, options=((FASTER_SHAPES, "false"),)))


def _tactics(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    """All sources but one, for each of them."""
    variants = []
    for source in diagnosis.sources if len(diagnosis.sources) > 1 else ():
        others = ",".join(s for s in diagnosis.sources if s != source)
        variants.append(Variant("tactics", f"tactics without {source}", options=(("tactic_sources", others),)))
    return _until_one_holds(bench, variants)


def _all_fp32(bench: Workbench, diagnosis: Diagnosis) -> Iterator[CureTrial]:
    if diagnosis.precision in HALF_NAMES:
        yield bench.try_variant(Variant("all fp32", "everything in fp32", precision=FP32.name))
