"""The exporter that goes through torch.export, with the shape space as its dynamic shapes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.export.exporters.exact_constants import python_floats, widen_exactly
from trtconv.export.exporters.finish import Origins, finish
from trtconv.export.exporters.functional import rewritten_by_node
from trtconv.export.exporters.graph_cleanup import clean_up
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.exporters.tracing.program import program_of
from trtconv.export.exporters.unit_sizes import is_for_units, is_in_multiples, sizes_in_units
from trtconv.export.module.flat_module import PREFIX
from trtconv.export.module.user_code import (
    format_frame,
    innermost_user_frame,
    python_frames,
)
from trtconv.export.recurrent import onnx_form
from trtconv.export.sizes.exact.whole import inexact_sizes
from trtconv.export.sizes.squeezed_axes import state_squeezed_axes
from trtconv.export.symbolic import whole_extremes
from trtconv.export.symbolic.arithmetic import size_roots
from trtconv.export.symbolic.indexing import row_writes
from trtconv.export.symbolic.rounded_sizes import multiples_as_such

if TYPE_CHECKING:
    import torch

DEFAULT_OPSET = 20
OLDEST_OPSET = 18
EXTERNAL_ABOVE = 1 << 30


def export_dynamo(trace: Trace, output: Path, opset: int | None) -> ExportCandidate:
    """Export to `output`. Raises what torch raises, and InvalidRequestError for an opset it does not write."""
    started = time.monotonic()
    chosen = opset or DEFAULT_OPSET
    if chosen < OLDEST_OPSET:
        raise InvalidRequestError(
            f"the dynamo exporter writes opset {OLDEST_OPSET} and newer, not {chosen}",
            hint=f"use --opset {OLDEST_OPSET} or --exporter torchscript",
        )
    model, program = _traced(trace, chosen)
    state_squeezed_axes(model, trace)
    floors = _python_floors(model)
    origins = _origins(model, trace)
    _write(model, output)
    finish(output, trace, origins, floors, inexact_sizes(program, trace))
    return ExportCandidate(output, "dynamo", chosen, trace.sizes, time.monotonic() - started)


def _traced(trace: Trace, opset: int) -> tuple[Any, torch.export.ExportedProgram]:
    """The model and the decomposed program; sizes in multiples are traced as such where no condition is on them."""
    with multiples_as_such():
        if is_in_multiples(trace):
            try:
                with sizes_in_units(trace):
                    program = program_of(trace)
                return to_onnx(program, trace, opset)
            except Exception as error:  # torch raises whatever a module makes it raise
                if not is_for_units(error):
                    raise
        return to_onnx(program_of(trace), trace, opset)


def to_onnx(
    program: torch.export.ExportedProgram, trace: Trace, opset: int
) -> tuple[Any, torch.export.ExportedProgram]:
    """The ir.Model of a program, tidied; and the program as it was decomposed, whose names the model has."""
    import torch

    with python_floats() as constants, rewritten_by_node():
        onnx_program = torch.onnx.export(
            program,
            dynamo=True,
            optimize=False,
            opset_version=opset,
            verbose=False,
            input_names=[s.name for s in trace.specs],
            output_names=list(trace.outputs),
            custom_translation_table=translations(),
        )
    assert onnx_program is not None
    widen_exactly(constants)
    clean_up(onnx_program.model)
    decomposed = onnx_program.exported_program or program
    # A value that is returned twice, or an input that is returned, has one name alone, the last.
    graph = onnx_program.model.graph
    for index, value in enumerate(graph.outputs):
        value.name = f"{trace.outputs[index]}_of_{index}"
    for spec, value in zip(trace.specs, graph.inputs, strict=True):
        value.name = spec.name
    for name, value in zip(trace.outputs, graph.outputs, strict=True):
        value.name = name
    return onnx_program.model, decomposed


def translations() -> dict[Any, Callable[..., Any]]:
    """By operator, trtconv's forms of what torch.onnx has none of, or another one."""
    parts = (onnx_form, whole_extremes, size_roots, row_writes)
    return {target: form for part in parts for target, form in part.translations().items()}


def _python_floors(model: Any) -> set[str]:
    """The names of the divisions that were Python's `//` of sizes."""
    return {
        node.name or ""
        for node in model.graph.all_nodes()
        if node.op_type == "Div" and "floordiv" in node.metadata_props.get("pkg.torch.onnx.fx_node", "")
    }


def _origins(model: Any, trace: Trace) -> Origins:
    import ast

    origins: Origins = {}
    for node in model.graph.all_nodes():
        frames = python_frames(node.metadata_props.get("pkg.torch.onnx.stack_trace", ""))
        scopes = node.metadata_props.get("pkg.torch.onnx.name_scopes", "")
        try:
            names = [n for n in ast.literal_eval(scopes) if n] if scopes else []
        except (ValueError, SyntaxError):
            names = []
        # The last scope is the name of the operation, the one before it the innermost module.
        module = names[-2] if len(names) > 1 else ""
        source = format_frame(innermost_user_frame(frames), trace.base)
        origins[node.name or ""] = (module.removeprefix(PREFIX).lstrip("."), source)
        for key in [k for k in node.metadata_props if k.startswith("pkg.torch.onnx.") or k == "namespace"]:
            del node.metadata_props[key]
    return origins


def _write(model: Any, output: Path) -> None:
    import onnx_ir

    size = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    data = f"{output.name}.data" if size > EXTERNAL_ABOVE else None
    onnx_ir.save(model, str(output), external_data=data)
