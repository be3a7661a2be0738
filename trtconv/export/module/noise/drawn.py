"""Random numbers in an exported file: running it twice shows what they do to its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.drawing import describe_drawing, drawing_nodes
from trtconv.core.model.file import load_structure
from trtconv.core.report import OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.export.exporters.trace import ExportCandidate
from trtconv.export.module.noise.repeatable import SAME
from trtconv.proof.allowance import Allowance, allowances
from trtconv.proof.comparison import compare_outputs, first_failure
from trtconv.proof.proving import ProofVerdict
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def judge_random_file(
    candidate: ExportCandidate, verdict: ProofVerdict, samples: Sequence[ReferenceSample], tolerance: Tolerance | None
) -> tuple[ExportCandidate, ProofVerdict]:
    """The verdict, failed when the file draws random numbers and differs from itself; with a note when it draws.

    A module that seeds the generator in forward repeats itself, and its file cannot: an engine draws other numbers.
    Noise that is chosen by value shows at some samples only, and beside large values it is small.
    """
    random_nodes = find_random_nodes(candidate.model)
    if not random_nodes:
        return candidate, verdict
    shown = f"the file draws random numbers ({', '.join(random_nodes[:2])})"
    try:
        runner = OnnxRuntimeRunner(candidate.model, rounded=True)
        usual = {n: _largest(v) for n, v in samples[0].outputs.items()}
        differences = (_differs_from_itself(runner, s, usual, tolerance) for s in samples)
        differing = next(((s, d) for s, d in zip(samples, differences, strict=True) if d is not None), None)
    except TrtconvError:
        return candidate, verdict
    if differing is None:
        note = f"{shown}; at each of {len(samples)} points two runs gave the same outputs"
        return replace(candidate, notes=(*candidate.notes, note)), verdict
    sample, differs = differing
    expected = sample.outputs[differs.output]
    reason = f"{shown}, so '{differs.output}' differs from run to run: take the random tensor as an input"
    failure = OutputComparison(differs.output, str(sample.point), False, reason, tuple(expected.shape), ())
    return candidate, replace(verdict, failure=failure, at=sample.point)


def _differs_from_itself(
    runner: OnnxRuntimeRunner, sample: ReferenceSample, usual: Mapping[str, float], tolerance: Tolerance | None
) -> OutputComparison | None:
    """The output by which two runs on the same inputs differ: by more than is allowed, or than a share of its size.

    The noise of a module is in its floor as well, so that the floor would allow it.
    """
    import numpy as np

    label = str(sample.point)
    first, second = runner(sample.inputs), runner(sample.inputs)
    differs = first_failure(compare_outputs(label, first, second, allowances(sample, tolerance)))
    if differs is not None or tolerance is not None:
        return differs
    sizes = {n: max(usual.get(n, 0.0), _largest(v)) for n, v in first.items() if v.dtype.kind == "f"}
    tight = {n: Allowance(np.asarray(SAME * size), np.asarray(size)) for n, size in sizes.items()}
    return first_failure(compare_outputs(label, {n: first[n] for n in tight}, second, tight))


def _largest(output: Array) -> float:
    import numpy as np

    return float(np.abs(output).max(initial=0.0, where=np.isfinite(output))) if output.dtype.kind == "f" else 0.0


def find_random_nodes(model: Path) -> list[str]:
    """`RandomNormalLike of net.py:12` for each node that draws; a Dropout does in training mode."""
    return [describe_drawing(n) for n in drawing_nodes(load_structure(model).graph)]
