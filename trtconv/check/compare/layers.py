"""`trtconv check --layers`: the first place inside the network at which the engine differs.

The engine is built again with inner tensors as outputs and compared with ONNX Runtime tensor by tensor, in graph
order. When that engine is right although the plain one is wrong, a fusion is to blame: outputs break fusions, so the
place is found by marking fewer and fewer of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.model.provenance import Origin, origin_of
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.report import Finding, OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import FP32_ENGINE, Allowance, Arithmetic, allow
from trtconv.proof.comparison import compare_output

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Allow = Callable[["Array"], Allowance]
RunMarked = Callable[[Sequence[str]], Mapping[str, "Array"]]
"""Builds and runs an engine with these inner tensors as extra outputs; gives all outputs that it has."""


@dataclass(frozen=True)
class GraphTensor:
    """A tensor of the graph with the node that makes it and the place in the PyTorch code that the node is from."""

    name: str
    node: str
    op_type: str
    origin: Origin


@dataclass(frozen=True)
class LayerRow:
    """One tensor compared."""

    tensor: GraphTensor
    comparison: OutputComparison

    @property
    def error(self) -> float:
        """The largest absolute error; infinite when the shapes differ."""
        largest = self.comparison.max_abs
        return float("inf") if largest is None else largest


@dataclass(frozen=True)
class LayerReport:
    """All tensors in graph order. `fused` names the tensor whose marking makes the outputs right, if only that does."""

    rows: tuple[LayerRow, ...]
    outputs: tuple[OutputComparison, ...]
    fused: GraphTensor | None = None
    builds: int = 0

    @property
    def first_off(self) -> LayerRow | None:
        """The first tensor in graph order that differs by more than the tolerance."""
        return next((r for r in self.rows if not r.comparison.passed), None)


def graph_tensors(model: onnx.ModelProto) -> tuple[GraphTensor, ...]:
    """Every tensor that a node of the main graph makes, in order; constants and graph outputs are left out."""
    outputs = {o.name for o in model.graph.output}
    return tuple(
        GraphTensor(name, node.name, node.op_type, origin_of(node))
        for node in model.graph.node
        if node.op_type not in ("Constant", "Shape", "ConstantOfShape")
        for name in node.output
        if name and name not in outputs
    )


def compare_layers(
    model: Path,
    inputs: Mapping[str, Array],
    run_marked: RunMarked,
    tolerance: Tolerance | None = None,
    progress: Progress | None = None,
    arithmetic: Arithmetic = FP32_ENGINE,
) -> LayerReport:
    """Compare the engine with ONNX Runtime at every inner tensor, at one sample's inputs.

    Tensors that either side does not give (folded, fused away in the parser, shape arithmetic) are left out.
    """
    from trtconv.core.model.file import load_model

    progress = progress or SilentProgress()

    def allowed(expected: Array) -> Allowance:
        return allow(expected, None, tolerance, arithmetic)

    proto = load_model(model)
    tensors = graph_tensors(proto)
    progress.phase("ONNX Runtime, all tensors")
    expected = _expected(proto, model, [t.name for t in tensors], inputs)
    finals = [o.name for o in proto.graph.output]
    names = [t.name for t in tensors if t.name in expected]
    progress.phase(f"engine with {len(names)} outputs")
    actual = run_marked(names)
    rows = tuple(
        LayerRow(t, compare_output(t.name, "", expected[t.name], actual[t.name], allowed(expected[t.name])))
        for t in tensors
        if t.name in expected and t.name in actual and expected[t.name].dtype.kind == "f"
    )
    outputs = _finals(finals, expected, actual, allowed)
    if not all(o.passed for o in outputs) or any(not r.comparison.passed for r in rows):
        return LayerReport(rows, outputs, builds=1)
    fused, builds = _bisect([r.tensor for r in rows], finals, expected, run_marked, allowed, progress)
    return LayerReport(rows, outputs, fused, builds + 1)


def _expected(
    proto: onnx.ModelProto, path: Path, names: Sequence[str], inputs: Mapping[str, Array]
) -> dict[str, Array]:

    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.core.model.file import save_model

    present = {o.name for o in proto.graph.output}
    marked = type(proto)()
    marked.CopyFrom(proto)
    for name in names:
        if name not in present:
            marked.graph.output.add(name=name)
    with private_temporary_folder("layers") as folder:
        target = Path(folder) / "marked.onnx"
        save_model(marked, target, weights_from=path)
        return OnnxRuntimeRunner(target)(inputs)


def _finals(
    names: Sequence[str], expected: Mapping[str, Array], actual: Mapping[str, Array], allowed: Allow
) -> tuple[OutputComparison, ...]:
    return tuple(compare_output(n, "", expected[n], actual[n], allowed(expected[n])) for n in names if n in actual)


def _bisect(
    tensors: Sequence[GraphTensor],
    finals: Sequence[str],
    expected: Mapping[str, Array],
    run_marked: RunMarked,
    allowed: Allow,
    progress: Progress,
) -> tuple[GraphTensor | None, int]:
    """The last tensor of the shortest list of marked ones, from the front, that makes the final outputs right."""

    def right(count: int) -> bool:
        progress.phase(f"engine with {count} of {len(tensors)} fusions broken")
        actual = run_marked([t.name for t in tensors[:count]])
        return all(o.passed for o in _finals(finals, expected, actual, allowed))

    if right(0):
        return None, 1
    low, high, builds = 0, len(tensors), 1
    while high - low > 1:
        middle = (low + high) // 2
        builds += 1
        if right(middle):
            high = middle
        else:
            low = middle
    return (tensors[high - 1] if tensors else None), builds


def describe_layers(report: LayerReport, shown: int = 12) -> tuple[str, ...]:
    """The verdict in lines: the first tensor that is off with what lies around it, or the fusion, or that all agree."""
    lines = []
    first = report.first_off
    if first is not None:
        index = report.rows.index(first)
        lines.append(f"the first tensor that differs is '{first.tensor.name}', made by {_node(first.tensor)}")
        for row in report.rows[max(0, index - 3) : index + shown - 3]:
            mark = "  " if row.comparison.passed else "->"
            lines.append(f"{mark} error {row.error:9.2e}  {row.tensor.name}  {_node(row.tensor)}")
    elif report.fused is not None:
        lines.append(
            f"each tensor is right by itself: a fusion around '{report.fused.name}' is wrong, {_node(report.fused)}"
        )
        lines.append(f"found with {report.builds} builds; making that tensor an output works around it")
    else:
        worst = max((r.error for r in report.rows), default=0.0)
        lines.append(f"all {len(report.rows)} inner tensors agree, largest error {worst:.2g}")
    return tuple(lines)


def layer_finding(report: LayerReport) -> Finding | None:
    """An error at the first tensor that differs, or at the fusion that is wrong; None when all agree."""
    first = report.first_off
    tensor = first.tensor if first is not None else report.fused
    if tensor is None:
        return None
    if first is not None:
        message = f"the engine first differs from its graph at {tensor.op_type} '{tensor.node}'"
        message += f": tensor '{tensor.name}', largest error {first.error:.3g}"
    else:
        message = f"a fusion around {tensor.op_type} '{tensor.node}' is wrong: each tensor is right by itself"
    return Finding("error", "accuracy", message, "", tensor.node, tensor.origin.module, tensor.origin.source)


def _node(tensor: GraphTensor) -> str:
    source_text = f" from {tensor.origin}" if tensor.origin else ""
    return f"{tensor.op_type} '{tensor.node}'{source_text}"


def dump_tensors(folder: Path, inputs: Mapping[str, Array], run_marked: RunMarked, names: Sequence[str]) -> Path:
    """Write every tensor of the marked engine as `engine.npz` into a folder (`--dump`)."""
    import io

    import numpy as np

    from trtconv.core.artifacts import write_bytes

    arrays: dict[str, Any] = {**{f"input/{n}": a for n, a in inputs.items()}, **run_marked(names)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{k.replace("/", "__"): v for k, v in arrays.items()})
    path = folder / "engine.npz"
    write_bytes(path, buffer.getvalue())
    return path
