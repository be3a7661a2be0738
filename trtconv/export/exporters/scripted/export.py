"""The exporter that records one run of the module, in which the parts that loop are scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trtconv.export.exporters.scripted.boolean_choices import write_boolean_choices
from trtconv.export.exporters.scripted.parts import with_scripts
from trtconv.export.exporters.scripted.sequences import stack_sequences
from trtconv.export.exporters.scripted.tables import TableLengths, mixes_floats, write_tables
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.module.scripted_module import outermost_scripts


def export_scripted(trace: Trace, output: Path, opset: int | None) -> ExportCandidate:
    """Export to `output` with ONNX's Loop for Python's `for` and `while`.

    Raises UnsupportedError where no part loops over what may be a size or a script would not be the module, and what
    torch raises.
    """
    scripted = replace(trace, flat=with_scripts(trace.flat, trace.inputs))
    lengths = TableLengths(trace.specs, trace.space)
    for script in outermost_scripts(scripted.flat):
        if not mixes_floats(script.graph, script, trace.specs):
            write_tables(script.graph, script, lengths)
    return export_torchscript(scripted, output, opset, _amend)


def _amend(path: Path) -> None:
    stack_sequences(path)
    write_boolean_choices(path)
