"""The exporter that records one run of the module, in which the parts that loop are scripts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.file import load_model
from trtconv.export.exporters.scripted.boolean_choices import write_boolean_choices
from trtconv.export.exporters.scripted.parts import with_scripts
from trtconv.export.exporters.scripted.refused_scripts import require_one_name_each
from trtconv.export.exporters.scripted.sequences import stack_sequences
from trtconv.export.exporters.scripted.tables import TableLengths, mixes_floats, write_tables
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.module.runner import to_array
from trtconv.export.module.scripted_module import outermost_scripts


def export_scripted(trace: Trace, output: Path, opset: int | None) -> ExportCandidate:
    """Export to `output` with ONNX's Loop for Python's `for` and `while`.

    Raises UnsupportedError where no part loops over what may be a size or a script would not be the module, and what
    torch raises.
    """
    scripted = replace(trace, flat=with_scripts(trace.flat, trace.inputs))
    lengths = TableLengths(trace.specs, trace.space)
    for script in outermost_scripts(scripted.flat):
        require_one_name_each(script.inlined_graph)
        if not mixes_floats(script.graph, script, trace.specs):
            write_tables(script.graph, script, lengths)
    return export_torchscript(scripted, output, opset, partial(_amend, trace))


def _amend(trace: Trace, path: Path) -> None:
    """Rewrite the file. Lists of what `x[:, t : t + 1]` gives are taken for lists of rows where they are, and lists of
    which elements are read for lists of one shape.
    """
    written = path.read_bytes()
    _rewrite(path)
    if not any(n.op_type in ("ConcatFromSequence", "SequenceAt") for n in walk_nodes(load_model(path).graph.node)):
        return
    of_any = path.read_bytes()
    path.write_bytes(written)
    _rewrite(path, of_rows=True)
    if not _runs(path, trace):
        path.write_bytes(of_any)


def _rewrite(path: Path, *, of_rows: bool = False) -> None:
    stack_sequences(path, of_rows=of_rows)
    write_boolean_choices(path)


def _runs(path: Path, trace: Trace) -> bool:
    """True where the file gives something for the traced inputs."""
    inputs = {spec.name: to_array(tensor) for spec, tensor in zip(trace.specs, trace.inputs, strict=True)}
    try:
        OnnxRuntimeRunner(path, threads=1)(inputs)
    except TrtconvError:
        return False
    return True
