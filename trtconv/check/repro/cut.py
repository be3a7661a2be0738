"""`trtconv repro`: the smallest part of a model that still fails, with inputs, expected outputs and the command."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.blame.origins import graph_of
from trtconv.check.compare.intermediates import exported_beside, tensor_values
from trtconv.check.compare.precision import arithmetic_of
from trtconv.check.compare.reference_fit import find_reference, within_profiles
from trtconv.check.compare.subjects import is_engine, open_subject
from trtconv.check.repro.bisection import smallest_failing
from trtconv.check.repro.cutting import boundary, cut, cut_inputs
from trtconv.check.repro.failures import (
    AccuracyFailure,
    BuildFailure,
    CutFailure,
    Failure,
    RunFailure,
    describe_difference,
    same_reason,
)
from trtconv.check.repro.files import require_repro_output, write_repro
from trtconv.core.artifacts import beside
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.model.bodies import values_read
from trtconv.core.model.file import load_model, model_files, signature
from trtconv.core.model.provenance import SOURCE_KEY
from trtconv.core.precision import FP32
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import CheckRequest
from trtconv.proof.allowance import UNIT_ROUNDOFF, Arithmetic, resolve_tolerance
from trtconv.proof.reference import ReferenceSample, read_samples

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

KINDS = ("auto", "accuracy", "run", "build", "engine")


@dataclass(frozen=True)
class Repro:
    """What was found. `nodes` of `nodes_before` are left; `folder` holds the files (a .zip file when asked for)."""

    kind: str
    reason: str
    nodes: int
    nodes_before: int
    bytes: int
    bytes_before: int
    folder: Path
    node: str = ""
    source: str = ""


def make_repro(
    request: CheckRequest,
    output: Path,
    *,
    kind: str = "auto",
    backend: str = "auto",
    precision: str = FP32.name,
    progress: Progress | None = None,
) -> Repro | None:
    """Find the failure of a model and cut it down. None when nothing fails.

    `kind` says which failure to look for. The values at the border of the cut are those of the exported model where
    it is beside a rewritten one, else those of the model itself, at the smallest sample point that fails. Raises
    InvalidRequestError when there is no ONNX file to cut, and what the backend raises where it cannot build here.
    """
    progress = progress or SilentProgress()
    path = graph_of(request.subject)
    if path is None:
        raise InvalidRequestError(f"there is no ONNX file beside '{request.subject}' to cut", hint="name the ONNX file")
    bare = load_model(path)
    references = (beside(path, ".reference.safetensors"), *([request.reference] if request.reference else ()))
    require_repro_output(output, (request.subject, *model_files(path, bare), *references))
    model = load_model(path, weights=True)
    for failure in _candidates(request, kind, backend, precision):
        progress.phase(f"looking for a failure: {failure.kind}")
        smallest = _seek(request, path, model, failure, progress)
        if smallest is not None:
            return _write(output, smallest, path, model)
    return None


def _write(output: Path, smallest: CutFailure, path: Path, model: onnx.ModelProto) -> Repro:
    """Write what was cut out of `model`, the graph in `path`, and say what it is."""
    node = smallest.model.graph.node[-1]
    return Repro(
        smallest.failure.kind,
        smallest.reason,
        len(smallest.model.graph.node),
        len(model.graph.node),
        smallest.model.ByteSize(),
        model.ByteSize(),
        write_repro(output, smallest, path),
        node.name,
        next((p.value for p in node.metadata_props if p.key == SOURCE_KEY), ""),
    )


def _candidates(request: CheckRequest, kind: str, backend: str, precision: str) -> list[Failure]:
    graph, limits = graph_of(request.subject) or request.subject, resolve_tolerance("", request.tolerance)
    engine = Arithmetic(precision if precision in UNIT_ROUNDOFF else FP32.name, engine=True)
    chosen: dict[str, Failure] = {
        "run": RunFailure(),
        "accuracy": AccuracyFailure(limits, arithmetic_of(graph)),
        "build": BuildFailure(backend, precision),
        "engine": BuildFailure(backend, precision, tolerance=limits, kind="engine", arithmetic=engine),
    }
    if kind != "auto":
        return [chosen[kind]]
    # An engine is asked for what only an engine can show; that needs a GPU, which the user then has named by the file.
    return [chosen[k] for k in ("run", "accuracy", "build", *(("engine",) if is_engine(request.subject) else ()))]


def _seek(
    request: CheckRequest, path: Path, model: onnx.ModelProto, failure: Failure, progress: Progress
) -> CutFailure | None:
    samples = sorted(_samples(request), key=lambda s: sum(a.size for a in s.inputs.values()))
    if failure.kind == "run":
        return next((f for s in samples if (f := _seek_run(model, s, failure)) is not None), None)
    if failure.kind == "accuracy":
        exported = exported_beside(path)
        truth = load_model(exported, weights=True) if exported else model
        return next((f for s in samples if (f := _seek_difference(model, truth, s, failure, progress))), None)
    if failure.kind == "engine" and is_engine(request.subject):
        samples = _failing_first(request, samples, failure)
    return _seek_build(model, samples, failure, progress)


def _failing_first(
    request: CheckRequest, samples: Sequence[ReferenceSample], failure: Failure
) -> list[ReferenceSample]:
    """The samples at which the engine itself differs before the others; as they are when it cannot run."""
    if not isinstance(failure, BuildFailure) or failure.tolerance is None:
        return list(samples)
    try:
        subject = open_subject(request.subject, request.plugins)
    except TrtconvError:
        return list(samples)
    try:
        inner = [s for s in samples if within_profiles(s, subject.profiles)]
        bad = [
            s
            for s in inner
            if describe_difference(subject.run(s.inputs), s.outputs, failure.tolerance, failure.arithmetic)
        ]
    except TrtconvError:
        return list(samples)
    finally:
        subject.close()
    return [*bad, *(s for s in samples if all(s is not b for b in bad))]


def _samples(request: CheckRequest) -> Iterable[ReferenceSample]:
    reference = find_reference(request.subject, request.reference)
    return [s for s in read_samples(reference) if not s.point.advisory]


def _seek_run(model: onnx.ModelProto, sample: ReferenceSample, failure: Failure) -> CutFailure | None:
    """The first node that fails: the nodes before it run, so its inputs are known."""
    reason = failure.ask(model, sample.inputs, {})
    if not reason:
        return None
    nodes = list(model.graph.node)
    low, end = 0, len(nodes)
    while low + 1 < end:
        middle = (low + end) // 2
        low, end = (low, middle) if _prefix_fails(model, middle, sample) else (middle, end)
    last = end - 1
    needed = [n for n in values_read(nodes[last]) if n not in sample.inputs]
    values = {**sample.inputs, **_prefix_values(model, last, needed, sample)}
    node_outputs = {o: v for o, v in sample.outputs.items() if o in nodes[last].output}
    for name in nodes[last].output:
        values.setdefault(name, node_outputs.get(name, _empty()))
    small = cut(model, [last], values)
    # What the node would give is not known, so its outputs state no shape; their type is the first input's.
    for value in small.graph.output:
        value.type.tensor_type.ClearField("shape")
    inputs = cut_inputs(small, values)
    again = failure.ask(small, inputs, {})
    if again:
        return CutFailure(small, inputs, node_outputs, again, failure)
    return CutFailure(model, sample.inputs, sample.outputs, reason, failure)


def _empty() -> Array:
    import numpy as np

    return np.zeros((), np.float32)


def _prefix(model: onnx.ModelProto, count: int, names: Sequence[str]) -> onnx.ModelProto:
    import onnx

    shorter = onnx.ModelProto()
    shorter.CopyFrom(model)
    del shorter.graph.node[count:]
    del shorter.graph.output[:]
    shorter.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    return shorter


def _prefix_fails(model: onnx.ModelProto, count: int, sample: ReferenceSample) -> bool:
    last = [o for o in model.graph.node[count - 1].output if o]
    return bool(RunFailure().ask(_prefix(model, count, last), sample.inputs, {}))


def _prefix_values(
    model: onnx.ModelProto, count: int, names: Sequence[str], sample: ReferenceSample
) -> dict[str, Array]:
    constants = {t.name for t in model.graph.initializer}
    computed_names = [n for n in names if n not in constants]
    if not computed_names:
        return {}
    return tensor_values(_prefix(model, count, computed_names), computed_names, sample.inputs)


def _seek_difference(
    model: onnx.ModelProto, truth: onnx.ModelProto, sample: ReferenceSample, failure: Failure, progress: Progress
) -> CutFailure | None:
    reason = failure.ask(model, sample.inputs, sample.outputs)
    if not reason:
        return None
    exported_values = _all_values(truth, sample) | dict(sample.inputs) | dict(sample.outputs)
    nodes = list(model.graph.node)
    value_names = [n for node in nodes for n in node.output if n]
    outputs = {o.name for o in model.graph.output}
    # What the model makes under names that the exported one does not have cannot be a border of a cut.
    shared = (
        [n for n in value_names if n in exported_values]
        if truth is not model
        else [n for n in value_names if n in outputs]
    )
    for name in shared:
        progress.phase(f"cutting at {name}")
        part = _between(nodes, name, set(exported_values) - {name} if truth is not model else set(sample.inputs))
        if not part:
            continue
        small = cut(model, part, {**_dtypes_of(model, sample, part), **exported_values})
        del small.graph.output[:]
        small.graph.output.extend([_output(name, exported_values[name])])
        inputs = cut_inputs(small, exported_values)
        again = failure.ask(small, inputs, {name: exported_values[name]})
        if again:
            return CutFailure(small, inputs, {name: exported_values[name]}, again, failure)
    return CutFailure(model, sample.inputs, sample.outputs, reason, failure)


def _output(name: str, array: Array) -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))


def _between(nodes: Sequence[onnx.NodeProto], name: str, border: set[str]) -> list[int]:
    """The nodes that make a value, back to values of the border."""
    makers = {out: i for i, node in enumerate(nodes) for out in node.output if out}
    if name not in makers:
        return []
    waiting, chosen = [makers[name]], {makers[name]}
    for index in waiting:
        for read in values_read(nodes[index]):
            maker = makers.get(read)
            if read not in border and maker is not None and maker not in chosen:
                chosen.add(maker)
                waiting.append(maker)
    return sorted(chosen)


def _dtypes_of(model: onnx.ModelProto, sample: ReferenceSample, part: Sequence[int]) -> dict[str, Array]:
    """Values at the border of a part that only the model itself has, for their types."""
    _, outer = boundary(model, part)
    return tensor_values(model, outer, sample.inputs) if outer else {}


def _all_values(model: onnx.ModelProto, sample: ReferenceSample) -> dict[str, Array]:
    names = [n for node in model.graph.node for n in node.output if n]
    return tensor_values(model, names, sample.inputs)


def _seek_build(
    model: onnx.ModelProto, samples: Sequence[ReferenceSample], failure: Failure, progress: Progress
) -> CutFailure | None:
    sample = samples[0]
    values = _all_values(model, sample) | dict(sample.inputs)
    every = range(len(model.graph.node))
    dims: Mapping[str, Sequence[int | str]] | None = None
    chosen = failure
    reason = _ask(model, every, values, None, chosen)
    if not reason and signature(model).space.dims:
        # Static shapes do not fail; then the same with the axes free that differ between two points.
        dims, profile = _moving(model, samples[0], samples[-1])
        if isinstance(failure, BuildFailure):
            chosen = dataclasses.replace(failure, profile=profile)
        reason = _ask(model, every, values, dims, chosen)
    if not reason:
        return None

    def fails(part: Sequence[int]) -> bool:
        progress.phase(f"bisecting: {len(part)} nodes")
        return same_reason(reason, _ask(model, part, values, dims, chosen))

    part = smallest_failing(len(every), fails)
    small = cut(model, part, values, dims)
    expected = {o.name: values[o.name] for o in small.graph.output}
    return CutFailure(small, cut_inputs(small, values), expected, _ask(model, part, values, dims, chosen), chosen)


def _ask(
    model: onnx.ModelProto,
    part: Sequence[int],
    values: Mapping[str, Array],
    dims: Mapping[str, Sequence[int | str]] | None,
    failure: Failure,
) -> str:
    small = cut(model, part, values, dims)
    if not small.graph.output:
        return ""
    expected = {o.name: values[o.name] for o in small.graph.output}
    return failure.ask(small, cut_inputs(small, values), expected)


def _moving(
    model: onnx.ModelProto, low: ReferenceSample, high: ReferenceSample
) -> tuple[dict[str, list[int | str]], dict[str, Any]]:
    """Dims by name with the moving axes named by their two sizes, and a profile from the smaller to the larger."""
    first = _all_values(model, low) | dict(low.inputs)
    second = _all_values(model, high) | dict(high.inputs)
    dims: dict[str, list[int | str]] = {}
    profile: dict[str, Any] = {}
    for name, array in first.items():
        a, b = array.shape, second[name].shape
        if len(a) != len(b):
            continue
        dims[name] = [x if x == y else f"d{min(x, y)}_{max(x, y)}" for x, y in zip(a, b, strict=True)]
        if a != b:
            least = tuple(min(x, y) for x, y in zip(a, b, strict=True))
            profile[name] = (least, a, tuple(max(x, y) for x, y in zip(a, b, strict=True)))
    return dims, profile
