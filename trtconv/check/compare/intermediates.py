"""Where a rewritten graph leaves the exported one: tensors with the same name in both are compared in graph order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.blame.origins import nearest_origin
from trtconv.check.compare.precision import arithmetic_of
from trtconv.core.artifacts import beside
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import external_files, load_model
from trtconv.core.model.provenance import Origin, rule_of
from trtconv.core.report import Finding, OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allow
from trtconv.proof.comparison import compare_output, errors_of
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    Array = np.ndarray[Any, np.dtype[Any]]

# Intermediate tensors that are held at once: so many first, then as many as are about that many bytes.
PART = 128
MOST_HELD = 256 << 20
# A picture of the errors is not worth running a model with more weights than that (bytes of the file) twice.
MOST_BYTES_FOR_A_PICTURE = 256 << 20


@dataclass(frozen=True)
class TensorDifference:
    """One tensor in both graphs: who makes it in the rewritten one, and the comparison."""

    node: str
    origin: Origin
    rule: str
    result: OutputComparison


def _computation(model: onnx.ModelProto) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    return list(model.graph.node), list(model.graph.initializer)


def exported_beside(subject: Path) -> Path | None:
    """The exported model that a rewritten one came from; None for the exported model itself."""
    path = subject.with_name(beside(subject, ".onnx").name)
    return path if subject.suffix == ".onnx" and path.exists() and path != subject else None


def tensor_differences(
    subject: Path, exported: Path, sample: ReferenceSample, tolerance: Tolerance | None, judged: bool = True
) -> tuple[TensorDifference, ...]:
    """Every float tensor that both graphs name, in the order of the subject's graph.

    For a picture of the errors none needs to be `judged`, which takes several times as long as running the graphs.
    Empty when a graph cannot be opened that way (weights outside of the file, a node that ONNX Runtime lacks).
    """
    import numpy as np

    try:
        models = load_model(exported), load_model(subject)
    except TrtconvError:
        return ()
    if any(external_files(m) for m in models):
        return ()
    exported_names = {name for node in models[0].graph.node for name in node.output if name}
    makers = {name: node for node in models[1].graph.node for name in node.output if name}
    shared = [name for name in makers if name in exported_names]
    # No rule changed anything: one run tells of both.
    unchanged = _computation(models[0]) == _computation(models[1])
    arithmetic = arithmetic_of(subject)

    def judge(name: str, point: str, expected: Array, actual: Array) -> OutputComparison:
        return compare_output(name, point, expected, actual, allow(expected, None, tolerance, arithmetic))

    compare = judge if judged else _measured
    differences: list[TensorDifference] = []
    try:
        runners = [_with_outputs(model, shared) for model in models[: 1 if unchanged else 2]]
        start, width = 0, PART
        while start < len(shared):
            names = shared[start : start + width]
            expected = runners[0](sample.inputs, names)
            actual = expected if unchanged else runners[1](sample.inputs, names)
            # A value may be a sequence, of a loop that fills a list, or None.
            tensors = [n for n in names if all(isinstance(v[n], np.ndarray) for v in (expected, actual))]
            size = sum(expected[n].nbytes for n in tensors) / len(names)
            start, width = start + width, max(PART, int(MOST_HELD / max(size, 1.0)))
            for name in tensors:
                if expected[name].dtype.kind == "f" and actual[name].dtype.kind == "f":
                    compared = name, str(sample.point), expected[name], actual[name]
                    differences.append(_difference(makers, name, _same_bits(*compared) or compare(*compared)))
    except TrtconvError:
        return tuple(differences)
    return tuple(differences)


def _same_bits(name: str, point: str, expected: Array, actual: Array) -> OutputComparison | None:
    """The comparison of two equal tensors, as most of a good rewrite are; None for others."""
    import numpy as np

    if expected.dtype != actual.dtype or not np.array_equal(expected, actual, equal_nan=True):
        return None
    shape = tuple(expected.shape)
    return OutputComparison(name, point, True, "", shape, shape, 0.0, 0.0, 1.0, 0.0, max_scaled=0.0)


def _measured(name: str, point: str, expected: Array, actual: Array) -> OutputComparison:
    """By how much a tensor is off, as a share of its magnitude (RMS) and the element's own; unjudged, so passed."""
    import numpy as np

    shapes = tuple(expected.shape), tuple(actual.shape)
    if shapes[0] != shapes[1]:
        return OutputComparison(name, point, True, "", *shapes, max_scaled=math.inf)
    values = expected.astype(np.float64).reshape(-1)
    error, same = errors_of(values, actual.astype(np.float64).reshape(-1))
    with np.errstate(all="ignore"):
        sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
        share = np.where(same, 0.0, error / np.maximum(np.sqrt(np.square(sizes).mean()) + sizes, 1e-300))
    largest, scaled = float(error.max(initial=0.0)), float(share.max(initial=0.0))
    return OutputComparison(name, point, True, "", *shapes, largest, max_scaled=scaled)


def _difference(makers: Mapping[str, onnx.NodeProto], name: str, result: OutputComparison) -> TensorDifference:
    node = makers[name]
    rule = rule_of(node)
    return TensorDifference(node.name or name, nearest_origin(node, makers), rule, result)


def tensor_values(model: onnx.ModelProto, names: Sequence[str], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Values of any tensors of a model at some inputs, in ONNX Runtime. Raises TrtconvError when it cannot run."""
    return _with_outputs(model, names)(inputs, names)


def _with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> OnnxRuntimeRunner:
    """A session in which these tensors are outputs as well. Raises TrtconvError for a model that it does not take."""
    import onnx

    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    present = {o.name for o in wider.graph.output}
    # ONNX Runtime infers the type of an output that states none.
    wider.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    return OnnxRuntimeRunner(wider.SerializeToString())


def first_difference(differences: Iterable[TensorDifference]) -> Finding | None:
    """An error at the first tensor that differs: its node, its rule, its line."""
    bad = next((d for d in differences if not d.result.passed), None)
    if bad is None:
        return None
    maker_text = f", which rule {bad.rule} made" if bad.rule else ""
    error = "" if bad.result.max_abs is None else f", largest error {bad.result.max_abs:.3g}"
    return Finding(
        "error",
        "accuracy",
        f"the rewritten graph first differs from the exported one at node '{bad.node}'{maker_text}: "
        f"tensor '{bad.result.output}' at {bad.result.point}{error}",
        f"leave the rule out: --skip {bad.rule}" if bad.rule else "",
        bad.node,
        bad.origin.module,
        bad.origin.source,
    )


def heat_by_module(differences: Iterable[TensorDifference]) -> list[dict[str, Any]]:
    """The largest error of each module's tensors, in graph order, as plain data."""
    modules: dict[str, dict[str, Any]] = {}
    for difference in differences:
        name = difference.origin.module or "(no module)"
        scaled = difference.result.max_scaled
        error = math.inf if scaled is None else scaled
        entry = modules.setdefault(
            name,
            {"module": name, "source": difference.origin.source, "node": difference.node, "error": 0.0, "tensors": 0},
        )
        entry["tensors"] += 1
        if error > entry["error"]:
            entry |= {"error": error, "node": difference.node, "source": difference.origin.source}
    return [e | {"error": _plain(e["error"])} for e in modules.values()]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and value - value != 0.0 else value
