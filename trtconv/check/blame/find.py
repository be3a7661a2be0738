"""Where a difference arises, as one finding: a rewritten node, the engine and not its graph, or the export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.blame.module_walk import first_module_off
from trtconv.check.blame.origins import graph_of, named_node
from trtconv.check.compare.intermediates import TensorDifference, exported_beside, first_difference
from trtconv.check.compare.precision import arithmetic_of, recorded_precision
from trtconv.check.compare.reference_fit import find_reference
from trtconv.check.compare.subjects import is_engine, open_subject
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.precision import FP32
from trtconv.core.report import Finding
from trtconv.core.requests import CheckRequest
from trtconv.proof.allowance import allowances
from trtconv.proof.comparison import compare_outputs
from trtconv.proof.reference import ReferenceSample, read_reference_info

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

ModuleOutputs = Callable[[Mapping[str, "Array"]], Mapping[str, tuple["Array", ...]]]
"""Every submodule's outputs by its path, at some inputs."""
_SOME_MODULE = "MODULE"


def blame(
    request: CheckRequest,
    sample: ReferenceSample | None,
    differences: Iterable[TensorDifference],
    module_outputs: ModuleOutputs | None = None,
) -> Finding | None:
    """The cause of a difference at `sample`, as far as the files beside the subject tell it.

    An error with the node and its line where a rewritten graph leaves the exported one, or, with `module_outputs`
    (every submodule's outputs by path), where the exported graph leaves the module. Else a note that says which file
    is to blame and how to look further. None when there is no graph to look at.
    """
    rewritten = first_difference(differences)
    if rewritten is not None and not rewritten.hint and recorded_precision(request.subject) != FP32.name:
        hint = f"the nodes that have to stay FP32: trtconv check {request.subject} --find-fp32"
        rewritten = replace(rewritten, hint=hint)
    if rewritten is not None or sample is None:
        return rewritten
    graph = graph_of(request.subject)
    if graph is None:
        return None
    refused, equal = _run_graph(graph, request, sample)
    if refused is not None:
        return refused
    if is_engine(request.subject) and equal:
        return Finding(
            "note",
            "accuracy",
            f"'{graph.name}', from which the engine was built, is right at {sample.point}: the engine is to blame",
            f"the first layer that differs: trtconv check {request.subject} --layers",
        )
    exported = exported_beside(graph) or graph
    if exported != graph and _run_graph(exported, request, sample)[1]:
        return Finding(
            "note",
            "accuracy",
            f"'{exported.name}' is right at {sample.point}, and '{graph.name}', which was made from it, is not: its "
            "rewrite is to blame",
            f"without a rule: trtconv rewrite {exported} --skip RULE; what fired is in the .rewrites.json beside it",
        )
    if module_outputs is None:
        return Finding(
            "note",
            "accuracy",
            f"'{exported.name}' itself differs from the module, and the reference keeps the module's outputs only",
            f"the first submodule that differs: {_check_against(_module_of(request), exported)}",
        )
    return first_module_off(exported, sample, module_outputs(sample.inputs), request.tolerance)


def _check_against(module: str, exported: Path) -> str:
    """What to type. The module of a Python call is told by the name of its class, which no command line can load."""
    if ":" in module or module.endswith((".pt2", ".onnx")) or module == _SOME_MODULE:
        return f"trtconv check {exported} --against {module}"
    return f"trtconv.check({str(exported)!r}, against=...) in Python, with the {module} that was converted"


def _module_of(request: CheckRequest) -> str:
    """The module that the reference was made with, where it says so."""
    try:
        return read_reference_info(find_reference(request.subject, request.reference)).source or _SOME_MODULE
    except InvalidRequestError:
        return _SOME_MODULE


def _run_graph(graph: Path, request: CheckRequest, sample: ReferenceSample) -> tuple[Finding | None, bool]:
    """An error at the node at which ONNX Runtime stops, and whether the file computes the reference's outputs."""
    try:
        actual = open_subject(graph).run(sample.inputs)
    except TrtconvError as error:
        return locate_stop(graph, sample, error.message), False
    allowed = allowances(sample, request.tolerance, dict(request.outputs), arithmetic_of(graph))
    compared = compare_outputs(str(sample.point), sample.outputs, actual, allowed)
    return None, all(c.passed for c in compared)


def locate_stop(graph: Path, sample: ReferenceSample, ort_message: str) -> Finding | None:
    """An error at the node that ONNX Runtime's message names; None when it names no node of the graph."""
    named = named_node(load_model(graph), ort_message)
    if named is None:
        return None
    node, origin = named
    return Finding(
        "error",
        "accuracy",
        f"'{graph.name}' does not run at {sample.point}, it stops at node '{node}': {ort_message}",
        "",
        node,
        origin.module,
        origin.source,
    )
