"""Check, bench and repro with a foreign ONNX file as the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import beside
from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import CheckRequest
from trtconv.core.shape_space.space import DimRange, ShapeSpace, space_of_axes
from trtconv.core.tensors import TensorSpec
from trtconv.proof.original import FILE

if TYPE_CHECKING:
    from trtconv.check.compare.original import OriginalSamples
    from trtconv.check.compare.subjects import Subject
    from trtconv.proof.reference import ReferenceSample


@dataclass(frozen=True)
class FileInterface:
    """What the command line says of a file's inputs: `--input` and `--dynamic`."""

    inputs: tuple[TensorSpec, ...] = ()
    space: ShapeSpace = field(default_factory=ShapeSpace)


def is_onnx(spec: str | Path) -> bool:
    """True where a source is an ONNX file and no module."""
    return str(spec).endswith(".onnx")


def against_file(request: CheckRequest) -> OriginalSamples:
    """`trtconv check X --against third.onnx`: what the file computes at the points that X takes."""
    from trtconv.check.compare.original import OriginalSamples

    assert request.against is not None
    path = request.against.base / request.against.spec
    return OriginalSamples(f"{FILE} '{path}'", FILE, lambda subject: _samples_for(subject, path, request))


def _samples_for(subject: Subject, path: Path, request: CheckRequest) -> Iterator[ReferenceSample]:
    from trtconv.core.model.file import load_model
    from trtconv.foreign import points_for
    from trtconv.foreign.interface import read_interface

    interface = read_interface(path, load_model(path), request.inputs, request.space)
    names = _pairs([s.name for s in interface.inputs], [s.name for s in subject.inputs], "inputs")
    space = _taken_sizes(subject, interface.inputs, names).merged(request.space)
    file = points_for(path, request.inputs, space)
    outputs: dict[str, str] | None = None
    for sample in file.samples().items:
        inputs = {names[n]: v for n, v in sample.inputs.items()}
        if outputs is None:
            outputs = _pairs(list(sample.outputs), list(subject.run(inputs)), "outputs")
        yield replace(
            sample,
            inputs=inputs,
            outputs={outputs[n]: v for n, v in sample.outputs.items()},
            floors={outputs[n]: f for n, f in sample.floors.items()},
        )


def _pairs(originals: Sequence[str], others: Sequence[str], what: str) -> dict[str, str]:
    """The file's names -> the subject's: by name, else by position where the count fits."""
    if set(originals) <= set(others):
        return {n: n for n in originals}
    if len(originals) == len(others):
        return dict(zip(originals, others, strict=True))
    raise InvalidRequestError(
        f"the {what} of the two differ in number: {', '.join(originals)} of the file, {', '.join(others)} of the "
        "subject",
        hint="compare with the file that it was made from",
    )


def _taken_sizes(subject: Subject, inputs: Sequence[TensorSpec], names: Mapping[str, str]) -> ShapeSpace:
    """The ranges that the subject says it takes, under the file's names: an engine's first profile, a file's record."""
    subject_specs = {s.name: s for s in subject.inputs}
    ranges: list[tuple[int | str, DimRange]] = []
    for spec in inputs:
        other = subject_specs.get(names[spec.name])
        if other is None or len(other.dims) != len(spec.dims):
            continue
        triple: Any = subject.profiles[0].get(other.name) if subject.profiles else None
        for axis, (dim, own) in enumerate(zip(spec.dims, other.dims, strict=True)):
            if triple is not None:
                ranges.append((dim, DimRange(triple[0][axis], triple[1][axis], triple[2][axis])))
            elif isinstance(own, int) and own >= 0:
                ranges.append((dim, DimRange(own, own, own)))
            elif isinstance(own, str) and own in subject.space:
                ranges.append((dim, subject.space[own]))
    return space_of_axes(ranges)


@contextmanager
def file_reference(
    subject: Path, reference: Path | None, interface: FileInterface | None, points: Sequence[str] | None = None
) -> Iterator[Path | None]:
    """The reference that is named or lies beside the subject; for an ONNX file without one, a temporary one."""
    if reference is not None or not is_onnx(subject) or beside(subject, ".reference.safetensors").exists():
        yield reference
        return
    from trtconv.core.artifacts import require_file
    from trtconv.foreign import temporary_reference

    require_file(subject, "model")
    chosen = interface or FileInterface()
    with temporary_reference(subject, chosen.inputs, chosen.space, labels=points) as path:
        yield path
