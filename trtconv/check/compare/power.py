"""The power of this check, and outputs of which it shows nothing: measured with the comparison that it used itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trtconv.check.blame.origins import graph_of
from trtconv.check.compare.precision import recorded_precision
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.precision import HALVES
from trtconv.core.report import Finding, OutputComparison
from trtconv.core.requests import CheckRequest
from trtconv.proof.power.idle import IdleOutput
from trtconv.proof.power.measure import PowerRequest, measure_power
from trtconv.proof.power.result import LEAST_CHANGE, PowerResult
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
    Compare = Callable[[ReferenceSample, Mapping[str, Array]], tuple[OutputComparison, ...]]

# A change under one rounding of the type is not a fault: 2^-11 for fp16, 2^-8 for bf16.
_UNIT = {p.name: p.unit_roundoff for p in HALVES}
# Under this share the verdict says so. In half precision twenty roundings of the type hide a layer that is off by 1 %.
LEAST_SHARE, LEAST_SHARE_OF_HALVES = 0.9, 0.5
MOST_MODEL_BYTES = 1 << 31


def check_power(
    request: CheckRequest,
    compare: Compare,
    samples: tuple[ReferenceSample, ...],
    again: Callable[[], Iterable[ReferenceSample]],
    seconds: float,
) -> PowerResult:
    """Faults in the subject's graph, or in the graph that an engine was built from, through the check's comparison.

    `seconds` bounds the time. What cannot be measured (no graph beside an engine, a graph that ONNX Runtime does not
    run) is said in the result's note.
    """
    from trtconv.backends.onnxruntime.half_emulation import emulate_halves, has_halves
    from trtconv.backends.onnxruntime.shared_weights import SharedWeights

    path = graph_of(request.subject)
    if path is None:
        return _unmeasured("there is no ONNX file beside the engine")
    try:
        model = load_model(path, weights=True)
        if model.ByteSize() >= MOST_MODEL_BYTES:
            return _unmeasured("the model is larger than 2 GiB")
        if has_halves(model):
            model = emulate_halves(model)
        least = max(LEAST_CHANGE, _UNIT.get(recorded_precision(request.subject), 0.0))
        weights = SharedWeights(model)
        return measure_power(
            PowerRequest(
                model,
                weights.open,
                compare,
                samples,
                again,
                request.power,
                seconds,
                least_change=least,
                stand_ins=weights.stand_ins,
            )
        )
    except TrtconvError as error:
        return _unmeasured(error.message)


def _unmeasured(note: str) -> PowerResult:
    return PowerResult((), (), 0, 0.0, note=note)


def power_findings(
    power: PowerResult | None, idle: Iterable[IdleOutput], flat: Iterable[str] = ()
) -> tuple[Finding, ...]:
    """A warning for each output of which nothing was shown, and for a check that misses many of the small faults.

    `flat` are outputs that vary by no more than is allowed at the points with random values.
    """
    template = "the comparison of '{}' proves nothing: its values vary by no more than what is allowed"
    weak = {**{name: template.format(name) for name in flat}, **{i.name: i.describe() for i in idle}}
    hint = "load real weights (--weights), or give inputs at which the output varies (--sample)"
    findings = [Finding("warning", "power", text, hint) for text in weak.values()]
    share = power.share if power is not None else None
    if power is not None and share is not None:
        missed = power.of("missed")
        if missed:
            worst = max(missed, key=lambda f: f.size)
            words = (
                f"the check misses {len(missed)} of {power.changed} small faults; the largest changes "
                f"'{worst.output}' by {worst.size:.2g} of its scale: {worst.detail} in {worst.op} '{worst.node}'"
            )
            least = LEAST_SHARE if power.least_change <= LEAST_CHANGE else LEAST_SHARE_OF_HALVES
            level = "warning" if share < least else "note"
            hint = "limits of your own that are tighter (--rtol, --atol) would report more"
            findings.append(Finding(level, "power", words, hint, worst.node, worst.module, worst.source))
    return tuple(findings)
