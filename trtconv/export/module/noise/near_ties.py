"""What a file decides within its own rounding is told: an index or a row that no machine promises to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.core.effort import Effort
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import external_files, load_model, load_structure
from trtconv.core.model.provenance import origin_of
from trtconv.core.text.listing import list_first
from trtconv.export.module.user_code import format_frame
from trtconv.proof.noise.rounding import TIES
from trtconv.proof.points import SamplePoint
from trtconv.proof.probes.near_ties import NearTie, find_rankings, near_ties
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.module.runner import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]

NEARLY_TIED = "nearly tied values are ranked"
EQUAL = "equal values are ranked"
# Each is run a few times up to the last ranking; more points find more pairs and the same nodes.
MOST_POINTS = 3
# A larger graph is not copied for this.
MOST_BYTES = 1 << 29
MOST_NAMED = 3
# A difference of more than this share of an output's magnitude is another choice, and no rounding.
ANOTHER = 1e-4
# Even steps that floats are rounded to, so that rows are alike.
FEW_STEPS = (4, 1)
# CPU seconds after which no further inputs are tried; the first few are whatever they take.
ENOUGH, FEWEST = 3.0, 3


def told_ties(path: Path, samples: Sequence[ReferenceSample], runner: ModuleRunner) -> tuple[str, ...]:
    """Notes on the rankings of a file that tie within their noise at the cheapest points with random values, and on
    those of equal values, of which torch takes others than the first where rows are alike.
    """
    equals = tuple(_told_equals(samples, runner))
    structure = load_structure(path)
    if not find_rankings(structure.graph) or external_files(structure) or path.stat().st_size > MOST_BYTES:
        return equals
    model = load_model(path)
    random = [s for s in samples if s.point.values == "random"]
    cheapest = sorted(random, key=_input_bytes)[:MOST_POINTS]
    closest: dict[str, tuple[NearTie, SamplePoint]] = {}
    for sample in cheapest:
        try:
            ties = near_ties(model, sample.inputs, GraphRunner)
        except TrtconvError:
            # What cannot be run with its inner values as outputs is compared by its outputs alone.
            return equals
        for tie in ties:
            before = closest.get(tie.ranking.node)
            if before is None or tie.margin / tie.noise < before[0].margin / before[0].noise:
                closest[tie.ranking.node] = tie, sample.point
    nearly = (_in_words(model, list(closest.values())),) if closest else ()
    return (*nearly, *equals)


def _told_equals(samples: Sequence[ReferenceSample], runner: ModuleRunner) -> Iterator[str]:
    """A note where torch puts equal values in another order than the first one first, and the outputs show it."""
    if not runner.ranks:
        return
    effort = Effort(ENOUGH, FEWEST)
    for where, inputs, outputs in _with_equals(samples, runner):
        try:
            actual, lines = runner.as_torch_ranks(inputs)
            differs = bool(lines) and any(_is_another(v, o) for v, o in _pairs(outputs(), actual))
        except TrtconvError:
            continue
        if differs:
            listed = [format_frame(line, runner.base) for line in lines]
            yield (
                f"{EQUAL}: at {where} torch takes others of them than the first, as ONNX and the proof do, and the "
                f"outputs differ; so they may wherever values are alike, as of padding (stable=True gives sort and "
                f"argsort ONNX's order): {list_first(listed, MOST_NAMED)}"
            )
            return
        if not effort.step():
            return


def _with_equals(
    samples: Sequence[ReferenceSample], runner: ModuleRunner
) -> Iterator[tuple[str, Mapping[str, Array], Callable[[], Mapping[str, Array]]]]:
    """Where values are alike: its name, the inputs, and a call that gives the outputs.

    What is alike everywhere may be below a threshold, or hidden by a mask, and few values show which one was taken.
    torch's order is that of the first one first up to 16 elements of a sort.
    """
    by_size = sorted((s for s in samples if s.point.values == "random"), key=_input_bytes, reverse=True)
    alike = [s for s in samples if s.point.values in (*TIES, "full")]
    for sample in (*by_size[:1], *alike):
        yield str(sample.point), sample.inputs, partial(_outputs_of, sample)
    ends_and_middle = (*by_size[:1], *by_size[len(by_size) // 2 :][:1], *by_size[-1:])
    for sample in {id(s): s for s in ends_and_middle}.values():
        for steps in FEW_STEPS:
            inputs = {n: in_steps(v, steps) for n, v in sample.inputs.items()}
            yield f"{sample.point} with {steps + 1} values", inputs, partial(runner, inputs)


def _input_bytes(sample: ReferenceSample) -> int:
    return sum(v.nbytes for v in sample.inputs.values())


def _outputs_of(sample: ReferenceSample) -> Mapping[str, Array]:
    return sample.outputs


def in_steps(values: Array, steps: int) -> Array:
    """Floats rounded to about `steps` even steps between the lowest and the highest of them, powers of two apart, so
    that sums and differences of them are exact; what is no float as it is.
    """
    import numpy as np

    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values[:0]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if high <= low:
        return values
    step = 2.0 ** np.floor(np.log2((high - low) / steps))
    rounded = np.rint(values.astype(np.float64) / step) * step
    return np.asarray(np.clip(rounded, low, high), values.dtype)


def _pairs(outputs: Mapping[str, Array], actual: Mapping[str, Array]) -> Iterator[tuple[Array, Array]]:
    return ((v, actual[n]) for n, v in outputs.items() if n in actual and v.shape == actual[n].shape)


def _is_another(expected: Array, actual: Array) -> bool:
    import numpy as np

    one, other = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    if np.any(np.isfinite(one) != np.isfinite(other)):
        return True
    magnitude = float(np.abs(one).max(initial=0.0, where=finite))
    return bool(np.abs(one - other).max(initial=0.0, where=finite) > ANOTHER * magnitude)


def _in_words(model: onnx.ModelProto, ties: list[tuple[NearTie, SamplePoint]]) -> str:
    origins = {n.name: origin_of(n) for n in model.graph.node}
    places = []
    for tie, point in ties:
        origin = origins.get(tie.ranking.node)
        line = origin.source if origin and origin.source else f"node '{tie.ranking.node}'"
        cut = ", some at the cut" if tie.cut and tie.ranking.values else ""
        places.append(
            f"{line} ({tie.ranking.op} at {point}: {tie.count} {'pair' if tie.count == 1 else 'pairs'}{cut}; the "
            f"closest, {tie.first:.7g} and {tie.second:.7g}, part by {tie.margin:.2g} and rounding moves them by "
            f"{tie.noise:.2g})"
        )
    return (
        f"{NEARLY_TIED}, which other machines, thread counts and precisions may rank "
        f"otherwise: {list_first(places, MOST_NAMED, '; ')}"
    )
