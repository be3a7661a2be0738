"""The samples that a check compares with: of a reference file, of a module run again, or of another original."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.compare.original import OriginalSamples
from trtconv.check.compare.reference_fit import find_reference, require_fit, sizes_tried, staleness
from trtconv.check.compare.subjects import Subject
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.report import Finding
from trtconv.core.requests import CheckRequest
from trtconv.core.shape_space.fixed_rows import recorded_fixed_rows
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.proof.original import MODULE, original_of_source
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, formed_samples, read_reference_info, read_samples
from trtconv.proof.sampling import measured_sample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
    ModuleRunner = Callable[[Mapping[str, Array]], dict[str, Array]]


@dataclass(frozen=True)
class ComparedSamples:
    """Samples of an original. `label` names their file or module, `original` is what verdicts call what they are of."""

    samples: Iterable[ReferenceSample]
    label: str
    original: str
    findings: tuple[Finding, ...] = ()


def samples_for(
    request: CheckRequest, subject: Subject, runner: ModuleRunner | None, original: OriginalSamples | None
) -> ComparedSamples:
    """The original's samples in the form of the subject's outputs, what they are called, and what is to be told."""
    compared = _originals(request, subject, runner, original)
    return replace(compared, samples=formed_samples(compared.samples, recorded_fixed_rows(request.subject)))


def _originals(
    request: CheckRequest, subject: Subject, runner: ModuleRunner | None, original: OriginalSamples | None
) -> ComparedSamples:
    if original is not None:
        return ComparedSamples(original.samples(subject), original.label, original.original)
    if runner is not None and request.reference is None:
        if subject.kind != "onnx":
            path = find_reference(request.subject, None)
            return ComparedSamples(_rerun(runner, read_samples(path)), "the module itself", MODULE)
        return ComparedSamples(_run_module(runner, subject, request.space), "the module itself", MODULE)
    path = find_reference(request.subject, request.reference)
    info = read_reference_info(path)
    require_fit(subject, info, path)
    ranges_unused = _unused_ranges(request, info, path)
    samples: Iterator[ReferenceSample] = read_samples(path)
    return ComparedSamples(
        _rerun(runner, samples) if runner else samples,
        str(path),
        MODULE if runner else original_of_source(info.source),
        (*ranges_unused, *sizes_tried(request.subject, path), *staleness(request.subject, path)),
    )


def _unused_ranges(request: CheckRequest, info: ReferenceInfo, path: Path) -> tuple[Finding, ...]:
    """A note on ranges that change nothing, as the points are recorded. Raises InvalidRequestError for unknown dims."""
    names = list(dict.fromkeys(n for s in info.inputs for n in s.names()))
    for name in request.space:
        if name not in names:
            raise InvalidRequestError(
                f"no input of '{request.subject}' has a dim called '{name}'{did_you_mean(name, names)}",
                hint=f"the dims are: {', '.join(names)}" if names else "all dims are fixed",
            )
    if not request.space.dims:
        return ()
    text = f"--dynamic changes nothing: the sample points are those that '{path}' records"
    return (Finding("note", "usage", text, "convert again for other ranges, or compare with --against MODULE"),)


def _run_module(runner: ModuleRunner, subject: Subject, ranges: ShapeSpace) -> Iterator[ReferenceSample]:
    space = subject.space.merged(ranges)
    missing = list(dict.fromkeys(n for s in subject.inputs for n in s.names() if n not in space))
    if missing:
        raise InvalidRequestError(
            f"'{subject.path}' does not record a range for its dim '{missing[0]}'",
            hint="give it: --dynamic "
            + " ".join(f"{n}=1:1:4" for n in missing)
            + "; or check it with --reference FILE, whose points are recorded",
        )
    for point in sample_points(space, subject.inputs):
        inputs = sample_inputs(subject.inputs, point)
        yield measured_sample(runner, ReferenceSample(point, inputs, runner(inputs)))


def _rerun(runner: ModuleRunner, samples: Iterable[ReferenceSample]) -> Iterator[ReferenceSample]:
    for sample in samples:
        yield replace(sample, outputs=runner(sample.inputs))
