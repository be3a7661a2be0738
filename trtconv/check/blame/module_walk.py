"""Where an exported graph leaves the module: every submodule's output beside the tensor that the graph has for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.blame.origins import nearest_origin
from trtconv.check.compare.intermediates import PART, tensor_values
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import origin_of
from trtconv.core.report import Finding, OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allow
from trtconv.proof.comparison import compare_output
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ModuleTensor:
    """The one tensor that leaves the nodes of a submodule; `index` is that of the node that makes it."""

    module: str
    tensor: str
    index: int


def leaving_tensors(model: onnx.ModelProto) -> tuple[ModuleTensor, ...]:
    """Submodules whose nodes hand on exactly one tensor other than a size, in the order in which it is computed.

    Where two submodules share the tensor (one calls the other last), both are there.
    """
    nodes = list(model.graph.node)
    paths = [origin_of(n).module for n in nodes]
    readers: dict[str, list[str]] = {o.name: [""] for o in model.graph.output}
    for node, path in zip(nodes, paths, strict=True):
        for name in node.input:
            readers.setdefault(name, []).append(path)
    leaving: dict[str, list[ModuleTensor]] = {}
    for index, (node, path) in enumerate(zip(nodes, paths, strict=True)):
        for module in _prefixes(path):
            for name in node.output:
                if any(not _inside(p, module) for p in readers.get(name, ())) and node.op_type != "Shape":
                    leaving.setdefault(module, []).append(ModuleTensor(module, name, index))
    single = [tensors[0] for tensors in leaving.values() if len(tensors) == 1]
    return tuple(sorted(single, key=lambda t: (t.index, -t.module.count("."))))


def _prefixes(path: str) -> list[str]:
    """`a.b.c` as `a.b.c`, `a.b`, `a`."""
    parts = path.split(".") if path else []
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _inside(path: str, module: str) -> bool:
    return path == module or path.startswith(module + ".")


def first_module_off(
    path: Path, sample: ReferenceSample, outputs: Mapping[str, tuple[Array, ...]], tolerance: Tolerance | None
) -> Finding | None:
    """The first submodule, in the graph's order, whose output the graph computes otherwise.

    `outputs` are those of the module's submodules at the sample, by path; only those with one output of the shape
    that the graph has are compared. Where all agree, the difference arises after them: the finding says so at the
    first node that reads the last one. None when nothing could be compared.
    """
    model = load_model(path)
    comparable = [t for t in leaving_tensors(model) if len(outputs.get(t.module, ())) == 1]
    compared: list[tuple[ModuleTensor, OutputComparison]] = []
    for start in range(0, len(comparable), PART):
        part = comparable[start : start + PART]
        try:
            values = tensor_values(load_model(path, weights=True), [t.tensor for t in part], sample.inputs)
        except TrtconvError:
            break
        for tensor in part:
            expected = outputs[tensor.module][0]
            if expected.shape == values[tensor.tensor].shape and expected.dtype.kind == "f":
                allowed = allow(expected, tolerance=tolerance)
                comparison = compare_output(tensor.tensor, str(sample.point), expected, values[tensor.tensor], allowed)
                compared.append((tensor, comparison))
    bad = next((c for c in compared if not c[1].passed), None)
    if bad is not None:
        return _wrong(model, path, *bad, before=compared.index(bad))
    return _after(model, path, compared[-1][0], len(compared)) if compared else None


_OTHER_WEIGHTS = (
    "is it a mistake in the module, or has it other weights than those that were converted? Random ones are drawn from "
    "the seed of the conversion (--seed, by default 0): torch.manual_seed(0) before the module is made"
)


def _wrong(
    model: onnx.ModelProto, path: Path, tensor: ModuleTensor, comparison: OutputComparison, *, before: int
) -> Finding:
    makers = {name: n for n in model.graph.node for name in n.output if name}
    node = model.graph.node[tensor.index]
    error = "" if comparison.max_abs is None else f", largest error {comparison.max_abs:.3g}"
    agree = f"; the {before} submodules before it agree" if before else ""
    return Finding(
        "error",
        "accuracy",
        f"'{path.name}' first differs from the module in submodule '{tensor.module}': tensor '{tensor.tensor}' at "
        f"{comparison.point}{error}{agree}",
        "" if before else _OTHER_WEIGHTS,
        node.name or tensor.tensor,
        tensor.module,
        nearest_origin(node, makers).source,
    )


def _after(model: onnx.ModelProto, path: Path, last: ModuleTensor, count: int) -> Finding:
    makers = {name: n for n in model.graph.node for name in n.output if name}
    node = next((n for n in model.graph.node if last.tensor in n.input), model.graph.node[last.index])
    origin = nearest_origin(node, makers)
    return Finding(
        "error",
        "accuracy",
        f"'{path.name}' differs from the module after submodule '{last.module}': the outputs of all {count} submodules "
        f"that can be compared agree",
        "",
        node.name,
        origin.module,
        origin.source,
    )
