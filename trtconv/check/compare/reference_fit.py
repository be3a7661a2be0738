"""Checks that a reference fits a subject, by names, dtypes and shapes, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trtconv.check.compare.subjects import Subject, is_engine
from trtconv.core.artifacts import beside, manifest_path
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.files.artifact_set import EXPORT_AGAIN, MIXED_SET, read_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import load_structure
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.core.report import Finding
from trtconv.proof.joint_sizes import coverage_of
from trtconv.proof.reference import ReferenceInfo, ReferenceSample


def reference_beside(subject: Path) -> Path:
    """Where the reference of a subject lies: that of its data where it was quantised with data, else its export's."""
    data = beside(subject, ".data.safetensors")
    if data.is_file() and subject.exists() and recorded_reference(subject) == sha256_file(data):
        return data
    return beside(subject, ".reference.safetensors")


def find_reference(subject: Path, named_path: Path | None) -> Path:
    """The reference that is named, or the one beside the subject. Raises InvalidRequestError when there is none."""
    path = named_path or reference_beside(subject)
    if named_path is None and not path.exists():
        raise InvalidRequestError(
            f"there is no reference beside '{subject}' (looked for {path.name})",
            hint="name one with --reference FILE, or compare with the module itself: --against MODULE",
        )
    return path


def recorded_reference(subject: Path) -> str:
    """The SHA-256 of the reference that the subject was exported with; empty where it does not say."""
    if is_engine(subject):
        from trtconv.backends.tensorrt.manifest import read_engine_manifest

        return read_engine_manifest(subject, verify=False).reference_sha256 if manifest_path(subject).exists() else ""
    props: dict[str, str] = {p.key: p.value for p in load_structure(subject).metadata_props}
    return props.get(REFERENCE_KEY, "")


def reference_binding(subject: Path, reference: Path | None) -> tuple[Finding, ...]:
    """An error when the reference beside the subject is of another export; a warning when nothing binds the two.

    A reference that was named (`reference`) and is not the subject's own is a warning: somebody chose it.
    """
    beside_it = reference_beside(subject)
    path = reference or beside_it
    if not path.is_file():
        return ()
    recorded = recorded_reference(subject)
    if not recorded:
        message = f"'{subject}' does not record which reference belongs to it: '{path.name}' may be of another export"
        return (Finding("warning", "usage", message, "export the module again with this trtconv"),)
    if sha256_file(path) == recorded:
        return ()
    if path.resolve() == beside_it.resolve():
        return (Finding("error", "usage", f"'{path.name}' belongs to another export than '{subject}'", MIXED_SET),)
    message = f"'{path}' is not the reference that '{subject}' was exported with"
    return (Finding("warning", "usage", message, "leave out --reference to compare with its own"),)


def require_own_reference(subject: Path, reference: Path | None) -> None:
    """Raise InvalidRequestError where `reference_binding` finds an error."""
    for finding in reference_binding(subject, reference):
        if finding.level == "error":
            raise InvalidRequestError(finding.message, hint=finding.hint)


def require_fit(subject: Subject, info: ReferenceInfo, reference: Path) -> None:
    """Raise InvalidRequestError when the reference was made for a model with other inputs."""
    expected = {s.name: s for s in info.inputs}
    for spec in subject.inputs:
        if spec.name not in expected:
            raise InvalidRequestError(
                f"the reference '{reference}' is of another model: it has no input '{spec.name}'",
                hint=f"its inputs are {', '.join(expected)}; export again, or name the right one with --reference",
            )
        other = expected[spec.name]
        fixed = [(a, b) for a, b in zip(spec.dims, other.dims, strict=False) if isinstance(a, int) and a >= 0]
        wrong = [f"{a} against {b}" for a, b in fixed if isinstance(b, int) and a != b]
        if len(spec.dims) != len(other.dims) or wrong:
            raise InvalidRequestError(
                f"the reference '{reference}' is of another model: input '{spec.name}' is {other} there",
                hint=f"the subject has {spec}; export again, or name the right one with --reference",
            )


def require_common_output(subject: Subject, sample: ReferenceSample, actual: Mapping[str, Any]) -> None:
    """Raise InvalidRequestError when a subject gives none of the reference's outputs: it is another model's."""
    if sample.outputs and not set(sample.outputs) & set(actual):
        raise InvalidRequestError(
            f"the reference is of another model: it has none of the outputs of '{subject.path}'",
            hint=f"its outputs are {', '.join(sample.outputs)}, the subject's {', '.join(actual)}; export again, or "
            "name the right one with --reference",
        )


def require_outputs(sample: ReferenceSample, named: Iterable[str]) -> None:
    """Raise InvalidRequestError for a tolerance of an output that there is not."""
    for name in named:
        if name not in sample.outputs:
            raise InvalidRequestError(
                f"[check.outputs.{name}]: no output is called '{name}'{did_you_mean(name, sample.outputs)}",
                hint="the outputs are: " + ", ".join(sample.outputs),
            )


def staleness(subject: Path, reference: Path) -> tuple[Finding, ...]:
    """An error when the exported model beside the reference is not the one that the reference was made with."""
    model = subject.with_name(beside(subject, ".onnx").name)
    manifest = manifest_path(model)
    if not (model.exists() and manifest.exists() and reference == beside(subject, ".reference.safetensors")):
        return ()
    recorded = read_sealed(manifest, "manifest", EXPORT_AGAIN).get("sha256")
    if recorded in (None, sha256_file(model)):
        return ()
    return (
        Finding(
            "error",
            "usage",
            f"'{model}' is not the file that its manifest and reference were made with",
            "convert it again",
        ),
    )


def sizes_tried(subject: Path, reference: Path) -> tuple[Finding, ...]:
    """What the export tried of the shape space: a warning where the module decides by sizes that were not tried.

    It stands in the manifest of the exported model, and nowhere else: how much the time allowed differs by run.
    """
    manifest = manifest_path(subject.with_name(beside(subject, ".onnx").name))
    if not manifest.exists() or reference != beside(subject, ".reference.safetensors"):
        return ()
    facts = read_sealed(manifest, "manifest", EXPORT_AGAIN)
    try:
        coverage = coverage_of(facts.get("sizes") or {})
    except (KeyError, TypeError, ValueError):
        return ()
    if coverage.total == 1:
        return ()
    open_question = not coverage.complete and bool(coverage.lines or coverage.tables)
    if not open_question:
        return (Finding("note", "sizes", str(coverage)),)
    hint = "give narrower ranges with --dynamic, or compute with torch.where what the module decides by size"
    return (Finding("warning", "sizes", str(coverage), hint, source=(*coverage.tables, *coverage.lines)[0]),)


def nan_outputs(sample: ReferenceSample) -> tuple[str, ...]:
    """The outputs in which the original itself gives NaN, at a point that is not a NaN point."""
    import numpy as np

    if sample.point.advisory:
        return ()
    return tuple(n for n, a in sample.outputs.items() if a.dtype.kind == "f" and bool(np.isnan(a).any()))


def nan_findings(points: Mapping[str, Sequence[str]], original: str) -> tuple[Finding, ...]:
    """A warning for each output in which the original gives NaN, by the points at which: equality shows little."""
    hint = "the comparison there only shows that NaN stays NaN"
    messages = (
        f"{original} itself returns NaN in '{name}' at {where[0]}"
        + (f" and at {len(where) - 1} more points" if len(where) > 1 else "")
        for name, where in points.items()
    )
    return tuple(Finding("warning", "accuracy", message, hint) for message in messages)


def within_profiles(sample: ReferenceSample, profiles: Iterable[Mapping[str, Any]]) -> bool:
    """True when every input's shape lies within one of the profiles; an empty set of profiles takes all."""
    shapes = {name: tuple(array.shape) for name, array in sample.inputs.items()}
    profile_list = list(profiles)
    return not profile_list or any(
        all(_within(shapes[n], t) for n, t in p.items() if n in shapes) for p in profile_list
    )


def _within(shape: tuple[int, ...], triple: Any) -> bool:
    low, _, high = triple
    return len(shape) == len(low) and all(a <= s <= b for a, s, b in zip(low, shape, high, strict=True))
