"""The exporter that goes through torch.export, with the shape space as its dynamic shapes."""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.errors import InvalidRequestError
from trtconv.export.branches.guards import ask_for_ones, bounds_some, fails_somewhere, hold_everywhere, unproved_guards
from trtconv.export.branches.memory_layouts import without_layout_guards
from trtconv.export.exporters.detectors.pasted_masks import pasted_masks
from trtconv.export.exporters.detectors.separate_classes import separate_classes
from trtconv.export.exporters.exact_constants import python_floats, widen_exactly
from trtconv.export.exporters.finish import Origins, finish
from trtconv.export.exporters.functional import rewritten_by_node
from trtconv.export.exporters.graph_cleanup import clean_up
from trtconv.export.exporters.scripted.refused_scripts import scripts_without_data
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.exporters.unit_sizes import is_for_units, is_in_multiples, sizes_in_units
from trtconv.export.module.flat_module import PREFIX
from trtconv.export.module.user_code import (
    Frame,
    format_frame,
    innermost_user_frame,
    is_library,
    is_machinery,
    is_tracing_root,
    python_frames,
)
from trtconv.export.recurrent import onnx_form
from trtconv.export.sizes.exact.floats import ranges_of_hints
from trtconv.export.sizes.exact.whole import inexact_sizes
from trtconv.export.sizes.squeezed_axes import state_squeezed_axes
from trtconv.export.symbolic import whole_extremes
from trtconv.export.symbolic.arithmetic import size_roots
from trtconv.export.symbolic.indexing import row_writes
from trtconv.export.symbolic.recording.size_classes import sizes_as_numbers
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


def program_of(trace: Trace) -> torch.export.ExportedProgram:
    """The exported program over the whole shape space."""
    import torch
    from torch._dynamo.exc import UserError, UserErrorType

    def run(shapes: Any) -> torch.export.ExportedProgram:
        with torch.no_grad(), _tracing(trace), scripts_without_data(), fixing_lines() as fixing:
            try:
                program = torch.export.export(trace.flat, trace.inputs, dynamic_shapes=shapes, strict=False)
            except UserError as error:
                kind = error.error_type or UserErrorType.CONSTRAINT_VIOLATION
                # torch says which size was fixed, and not where.
                at = f'\n  File "{fixing[0][0]}", line {fixing[0][1]}, in forward' if fixing else ""
                raise UserError(kind, _with_own_names(f"{error}{at}")) from None
        require_guards(program, trace)
        return program

    try:
        return run(dynamic_shapes(trace))
    except AssertionError as error:
        # torch 2.13 cannot state the range of a named dim in a program that has a negative size, as (7 - W) // 2.
        if "Cannot create Dim" not in str(error) or any(r.multiple > 1 for _, r in trace.space.dims):
            raise
        return run(hinted_shapes(trace))
    except UserError as error:
        # Hints let a guard pass that named dims would have to imply; it holds, and the file is compared as every other.
        if any(r.multiple > 1 for _, r in trace.space.dims):
            raise
        if hold_everywhere(str(error), trace.space, trace.region):
            return run(hinted_shapes(trace))
        if ask_for_ones(str(error)) and (program := _with_ones_as_others(run, trace)) is not None:
            return program
        several = sum(r.min < r.max for _, r in trace.space.dims) > 1
        if several and bounds_some(str(error)) and (joint := _joint_condition(run, trace, str(error))) is not None:
            raise joint from error
        raise


@contextmanager
def _tracing(trace: Trace) -> Iterator[None]:
    """What holds while torch.export traces."""
    with (
        separate_classes(),
        pasted_masks(),
        without_layout_guards(),
        _whole_stacks(),
        ranges_of_hints(trace),
        sizes_as_numbers(),
    ):
        yield


def _with_ones_as_others(run: Callable[[Any], torch.export.ExportedProgram], trace: Trace) -> Any:
    """The program where no size is asked whether it is 1, or None where torch cannot do without.

    What two shapes give together is then told by those that are not 1 at the traced sizes; ONNX broadcasts by itself
    where one becomes 1. It is not done at first: axes of which one is 1 at every size are told by the question.
    """
    from torch.fx.experimental import _config

    with _config.patch(backed_size_oblivious=True):
        try:
            return run(dynamic_shapes(trace))
        except Exception:  # noqa: BLE001 - whatever the module raises; the first error says what is wrong
            return None


def _joint_condition(run: Callable[[Any], Any], trace: Trace, bounds: str) -> Exception | None:
    """torch's error for a condition on several dims from which the `bounds` of each follow; None where there is none.

    Of `h < w` torch says only that H has to stay under the largest W, and W over the smallest H.
    """
    from torch._dynamo.exc import UserError

    try:
        run(hinted_shapes(trace))
    except UserError as error:
        joint = [g for g in unproved_guards(str(error)) if len(g.names) > 1]
        follow = any(hold_everywhere(bounds, trace.space, (*trace.region, (g, True))) for g in joint)
        return error if follow else None
    except Exception:  # noqa: BLE001 - whatever the module raises; the first error says what is wrong
        return None
    return None


def require_guards(program: torch.export.ExportedProgram, trace: Trace) -> None:
    """Raise torch's own error for a condition on several dims that fails at some sizes of the space.

    torch.export refuses one on a single dim. One like `H*W <= 3000` or `H != W` it leaves to a check at run time, which
    no file has. A condition that cannot be read is left to the comparison.
    """
    from torch._dynamo.exc import UserError, UserErrorType

    sizes = {
        f"L['tensors'][{i}].size()[{axis}]": dim
        for i, spec in enumerate(trace.specs)
        for axis, dim in enumerate(spec.dims)
        if isinstance(dim, str)
    }
    shown = " and ".join(f"{dim} = {size_text}" for size_text, dim in sizes.items())
    failing = []
    for code in getattr(program, "_guards_code", None) or ():
        line = f"  - Not all values of {shown} in the specified ranges satisfy the generated guard {code}."
        if any(fails_somewhere(g, trace.space, trace.region) for g in unproved_guards(line)):
            failing.append(line)
    if failing:
        raise UserError(
            UserErrorType.CONSTRAINT_VIOLATION, "\n".join(["Constraints violated by several dims!", *failing])
        )


def hinted_shapes(trace: Trace) -> Any:
    """The space as hints without names; several inputs with one dim are then only found to be equal."""
    from torch.export import Dim

    def hint(name: str) -> Any:
        # As in `dynamic_shapes`: of a size up to 2 torch.export makes the constant 2.
        return Dim.DYNAMIC(min=max(1, trace.space[name].min), max=max(3, trace.space[name].max))

    named = [{i: hint(d) for i, d in enumerate(s.dims) if isinstance(d, str) and trace.dynamic(d)} for s in trace.specs]
    return (tuple(named),)


@contextmanager
def fixing_lines() -> Iterator[list[Frame]]:
    """The user's lines that make a number of a size in the block: `int(h)`, or an operator that takes no symbol."""
    from torch.fx.experimental.sym_node import SymNode

    lines: list[Frame] = []
    fix = SymNode.guard_int

    def noting(self: Any, file: str, line: int) -> int:
        if not self.is_constant() and self.expr.free_symbols:
            frames = [(f.filename, f.lineno or 0) for f in traceback.extract_stack()]
            at = innermost_user_frame([f for f in frames if not is_machinery(f[0])])
            lines.extend([at] if at is not None and not is_library(at[0]) else [])
        return int(fix(self, file, line))

    with mock.patch.object(SymNode, "guard_int", noting):
        yield lines


@contextmanager
def _whole_stacks() -> Iterator[None]:
    """torch.export keeps the frames named `forward` only; a function called by forward is the line that matters."""
    from torch.fx.proxy import TracerBase

    def users_frames(self: Any, summary: traceback.StackSummary) -> traceback.StackSummary:
        roots = [i for i, f in enumerate(summary) if is_tracing_root(f.filename)]
        return traceback.StackSummary.from_list(
            [f for f in summary[roots[-1] + 1 if roots else 0 :] if not is_machinery(f.filename)]
        )

    with mock.patch.object(TracerBase, "_filter_traceback_frames", users_frames):
        yield


def dynamic_shapes(trace: Trace) -> Any:
    """The space as torch.export's dims: `k * Dim` for a multiple, and one Dim for a name that several inputs share.

    A dim that only one input axis has is a named Dim as well: with a name torch.export refuses to make it static,
    which `Dim.AUTO` would do silently.
    """
    from torch.export import Dim

    dims: dict[str, Any] = {}
    for name in Counter(n for s in trace.specs for n in s.names()):
        rng = trace.space[name]
        if trace.dynamic(name):
            # Of a size up to 2 torch.export makes the constant 2, since it takes 0 and 1 for special cases.
            low, high = max(1, rng.min // rng.multiple), max(3, rng.max // rng.multiple)
            unit = Dim(f"{name}_unit" if rng.multiple > 1 else _torch_name(name), min=low, max=high)
            dims[name] = rng.multiple * unit if rng.multiple > 1 else unit
    return (tuple({i: dims[d] for i, d in enumerate(s.dims) if d in dims} for s in trace.specs),)


# torch reads the names of dims in its own message as formulas of SymPy, in which S, N, E and I are something else.
_SUFFIX = "_as_dim"


def _torch_name(name: str) -> str:
    import sympy  # type: ignore[import-untyped]

    return f"{name}{_SUFFIX}" if hasattr(sympy, name) else name


def _with_own_names(message: str) -> str:
    return re.sub(rf"\b(\w+?){_SUFFIX}\b", r"\1", message)


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
