"""The program that torch.export traces, over the whole shape space or within a region of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.shape_space.derived import is_derived, is_name
from trtconv.export.branches.guards import ask_for_ones, bounds_some, fails_somewhere, hold_everywhere, unproved_guards
from trtconv.export.branches.memory_layouts import without_layout_guards
from trtconv.export.exporters.detectors.pasted_masks import pasted_masks
from trtconv.export.exporters.detectors.separate_classes import separate_classes
from trtconv.export.exporters.scripted.refused_scripts import scripts_without_data
from trtconv.export.exporters.trace import Trace
from trtconv.export.exporters.tracing.shapes import derived_sizes, dynamic_shapes, hinted_shapes, with_own_names
from trtconv.export.module.user_code import Frame, innermost_user_frame, is_library, is_machinery, is_tracing_root
from trtconv.export.sizes.exact.floats import ranges_of_hints
from trtconv.export.sizes.shape_caches import same_containers
from trtconv.export.symbolic.recording.size_classes import sizes_as_numbers

if TYPE_CHECKING:
    import torch


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
                raise UserError(kind, with_own_names(f"{error}{at}")) from None
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
            return _by_hints(run, trace)
        if ask_for_ones(str(error)) and (program := _with_ones_as_others(run, dynamic_shapes(trace))) is not None:
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
        derived_sizes(trace),
        same_containers(trace.flat),
    ):
        yield


def _by_hints(run: Callable[[Any], torch.export.ExportedProgram], trace: Trace) -> torch.export.ExportedProgram:
    shapes = hinted_shapes(trace)
    try:
        return run(shapes)
    except Exception as error:
        # A dim of 1 is left out of what torch states in a region, and not of what its trace asks.
        if ask_for_ones(str(error)) and (program := _with_ones_as_others(run, shapes)) is not None:
            return program
        raise


def _with_ones_as_others(run: Callable[[Any], torch.export.ExportedProgram], shapes: Any) -> Any:
    """The program where no size is asked whether it is 1, or None where torch cannot do without.

    What two shapes give together is then told by those that are not 1 at the traced sizes; ONNX broadcasts by itself
    where one becomes 1. It is not done at first: axes of which one is 1 at every size are told by the question.
    """
    from torch.fx.experimental import _config

    with _config.patch(backed_size_oblivious=True):
        try:
            return run(shapes)
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
    shown = " and ".join(f"{dim} = {size_text}" for size_text, dim in sizes.items() if is_name(dim))
    failing = []
    for code in getattr(program, "_guards_code", None) or ():
        for size_text, dim in sizes.items():
            code = code.replace(size_text, f"({dim})") if is_derived(dim) else code
        line = f"  - Not all values of {shown} in the specified ranges satisfy the generated guard {code}."
        if any(fails_somewhere(g, trace.space, trace.region) for g in unproved_guards(line)):
            failing.append(line)
    if failing:
        raise UserError(
            UserErrorType.CONSTRAINT_VIOLATION, "\n".join(["Constraints violated by several dims!", *failing])
        )


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
