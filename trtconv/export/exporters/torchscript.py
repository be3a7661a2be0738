"""The exporter that records one run of the module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from trtconv.export.branches.plain_numbers import sizes_as_numbers
from trtconv.export.exporters.finish import Origins, finish
from trtconv.export.exporters.recorded.bits import SINCE, NewerOpsetError
from trtconv.export.exporters.recorded.operators import recorded_forms
from trtconv.export.exporters.scripted.casts import write_casts
from trtconv.export.exporters.scripted.decisions import inexact_decisions
from trtconv.export.exporters.scripted.halves import require_no_decimals_beside_halves
from trtconv.export.exporters.scripted.likeness import require_own_writes
from trtconv.export.exporters.scripted.refused_scripts import require_no_custom_writes, require_no_object
from trtconv.export.exporters.scripted.tables import mixes_floats
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.module.flat_module import PREFIX
from trtconv.export.module.scripted_module import outermost_scripts
from trtconv.export.module.user_code import format_frame, innermost_user_frame, torchscript_frames

DEFAULT_OPSET = 17
NEWEST_OPSET = 20
# torch's word for what torch.compile wraps, where it is recorded.
COMPILED = "dynamo-optimized function"


def export_torchscript(
    trace: Trace, output: Path, opset: int | None, amend: Callable[[Path], None] | None = None
) -> ExportCandidate:
    """Export to `output`, at a newer opset than the default where an operator needs one. Raises what torch raises.

    `amend` rewrites the file as the exporter wrote it.
    """
    started = time.monotonic()
    chosen = min(opset or DEFAULT_OPSET, NEWEST_OPSET)
    try:
        _record(trace, output, chosen)
    except NewerOpsetError:
        if opset is not None:
            raise
        chosen = SINCE
        _record(trace, output, chosen)
    if amend is not None:
        amend(output)
    finish(output, trace, _origins(output, trace))
    notes: list[str] = []
    for graph in _graphs(outermost_scripts(trace.flat)):
        notes += inexact_decisions(graph, trace.base, mixes_floats(graph, trace.flat, trace.specs))
    seconds = time.monotonic() - started
    return ExportCandidate(output, "torchscript", chosen, trace.sizes, seconds, tuple(dict.fromkeys(notes)))


def _record(trace: Trace, output: Path, opset: int) -> None:
    try:
        _record_once(trace, output, opset)
    except RuntimeError as error:
        if COMPILED not in str(error):
            raise
        with _as_written():
            _record_once(trace, output, opset)


def _record_once(trace: Trace, output: Path, opset: int) -> None:
    import torch

    names = [s.name for s in trace.specs]
    axes = {
        s.name: {i: d for i, d in enumerate(s.dims) if isinstance(d, str) and trace.dynamic(d)} for s in trace.specs
    }
    # verbose keeps the stacks as doc strings; what it prints besides goes through this function.
    with (
        torch.no_grad(),
        recorded_forms(opset),
        sizes_as_numbers(),
        mock.patch.object(torch._C, "_jit_onnx_log", return_value=None),
        no_division_by_nothing(),
        without_unseen_writes(),
    ):
        torch.onnx.export(
            _recorded(trace),
            trace.inputs,
            str(output),
            dynamo=False,
            opset_version=opset,
            verbose=True,
            input_names=names,
            output_names=list(trace.outputs),
            dynamic_axes={n: a for n, a in axes.items() if a},
            do_constant_folding=True,
        )


@contextmanager
def without_unseen_writes() -> Iterator[None]:
    """In the block torch.onnx converts no graph of which a file would leave out what is written.

    See `require_no_object` and `require_no_custom_writes`.
    """
    import torch

    remove = torch._C._jit_pass_onnx_remove_inplace_ops_for_onnx

    def checked(graph: Any, *rest: Any) -> Any:
        require_no_object(graph)
        require_no_custom_writes(graph)
        return remove(graph, *rest)

    with mock.patch.object(torch._C, "_jit_pass_onnx_remove_inplace_ops_for_onnx", checked):
        yield


@contextmanager
def no_division_by_nothing() -> Iterator[None]:
    """In the block torch.onnx infers only the rank of a Reshape, where a tensor without elements was recorded.

    For a `-1` it divides by the number of elements that are left, in C++, which ends the process by SIGFPE.
    """
    import torch

    convert, infer = torch._C._jit_pass_onnx, torch._C._jit_pass_onnx_node_shape_type_inference
    infer_all = torch._C._jit_pass_onnx_graph_shape_type_inference
    recorded_nothing = False

    def convert_noting(graph: Any, *rest: Any) -> Any:
        nonlocal recorded_nothing
        recorded_nothing = any(0 in _sizes(value) for node in graph.nodes() for value in node.outputs())
        return convert(graph, *rest)

    def infer_safely(node: Any, *rest: Any) -> None:
        if node.kind() != "onnx::Reshape" or not recorded_nothing:
            infer(node, *rest)
            return
        x, shape = node.inputsAt(0), node.inputsAt(1)
        rank = _sizes(shape)[0] if len(_sizes(shape)) == 1 else None
        if x.type().kind() == "TensorType" and rank is not None:
            node.output().setType(x.type().with_sizes([None] * rank))

    def infer_graph_safely(*args: Any) -> None:
        if not recorded_nothing:
            infer_all(*args)

    with (
        mock.patch.object(torch._C, "_jit_pass_onnx", convert_noting),
        mock.patch.object(torch._C, "_jit_pass_onnx_node_shape_type_inference", infer_safely),
        mock.patch.object(torch._C, "_jit_pass_onnx_graph_shape_type_inference", infer_graph_safely),
    ):
        yield


def _sizes(value: Any) -> list[int | None]:
    """The sizes of a value of a recording, None where it has none in it; empty where its rank is not known."""
    kind = value.type()
    return (kind.varyingSizes() or []) if kind.kind() == "TensorType" else []


@contextmanager
def _as_written() -> Iterator[None]:
    """What the user gave to torch.compile runs as it was written in the block.

    Its wrapper refuses to be recorded, unless it takes the recording for one by torch.fx that may nest.
    """
    import torch
    from torch._dynamo import config

    with (
        config.patch(error_on_nested_fx_trace=False),
        mock.patch.object(torch.fx._symbolic_trace, "_is_fx_tracing_flag", True),
    ):
        yield


def _recorded(trace: Trace) -> Any:
    """The module to export. The exporter's own recording takes no part that is scripted; torch.jit.trace does.

    The branches and loops of that part are then in the file.
    """
    import torch

    scripts = list(outermost_scripts(trace.flat))
    if not scripts:
        return trace.flat
    for script in scripts:
        write_casts(script)
    for graph in _graphs(scripts):
        require_own_writes(graph, trace.base)
    require_no_decimals_beside_halves(_graphs(scripts), trace.flat, trace.inputs)
    return torch.jit.trace(trace.flat, trace.inputs, check_trace=False)


def _graphs(scripts: Iterable[Any]) -> Iterator[Any]:
    for script in scripts:
        if hasattr(script, "inlined_graph"):
            yield script.inlined_graph


def _origins(output: Path, trace: Trace) -> Origins:
    from trtconv.core.model.file import load_model

    origins: Origins = {}
    for node in load_model(output).graph.node:
        frame = innermost_user_frame(torchscript_frames(node.doc_string))
        # A node is called /module/backbone/conv1/Conv; list items come as blocks.0.
        parts = node.name.strip("/").split("/")[:-1] if node.name.startswith("/") else []
        # Those of a container that is the whole module as module.0.
        parts = parts[1:] if parts[:1] == [PREFIX] else parts
        parts = [parts[0].removeprefix(f"{PREFIX}."), *parts[1:]] if parts else []
        origins[node.name] = (".".join(parts), format_frame(frame, trace.base))
    return origins
