"""Forms in a file that give other values than torch for a few inputs, which no sample may have: notes, no refusals."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import graphs_of
from trtconv.core.model.file import load_structure
from trtconv.core.model.provenance import origin_of

if TYPE_CHECKING:
    import onnx

# A line that writes into a tensor: `y.clamp_(0, 1)`, `y[0] = x`, `y += x`.
WRITES = re.compile(r"\w_\(|\]\s*=[^=]|[-+*/%&|^]=|\bout=")


def notes_on_forms(model: Path, base: Path) -> tuple[str, ...]:
    """A note for each kind of such a form in a file, with the line, under `base`, that it comes from."""
    graphs = list(graphs_of(load_structure(model).graph))
    nodes = [node for graph in graphs for node in graph.node]
    makers = {name: node for node in nodes for name in node.output}
    notes = []
    returned = next((n for n in nodes if n.op_type == "Add" and _returns_difference(n, makers, base)), None)
    if returned is not None:
        notes.append(
            f"what is written through an expanded view at {origin_of(returned)} comes back by a difference, as torch "
            "has it: beside values from 1e7 on its digits are lost; write into the tensor itself"
        )
    quantised = next((n for n in nodes if n.op_type == "QuantizeLinear"), None)
    if quantised is not None:
        notes.append(
            f"a value half-way between two steps may be rounded to the other one at {origin_of(quantised)}: torch "
            "multiplies by 1 / scale and adds the zero point before it rounds, QuantizeLinear divides and adds it after"
        )
    return tuple(notes)


def _returns_difference(node: onnx.NodeProto, makers: dict[str, Any], base: Path) -> bool:
    """True for `x + sum(written - x)`, by which torch puts back what was written into `x.expand(...)`.

    Where the view has the size of `x` there is no sum: that is told from a difference of the user's by the line.
    """
    for own, other in (tuple(node.input), tuple(node.input)[::-1]):
        maker = makers.get(other)
        if maker is not None and maker.op_type == "Reshape":
            maker = makers.get(maker.input[0])
        summed = maker is not None and maker.op_type == "ReduceSum"
        difference = makers.get(maker.input[0]) if maker is not None and summed else maker
        if difference is None or difference.op_type != "Sub" or difference.input[1] != own:
            continue
        if summed or WRITES.search(_line_of(node, base)):
            return True
    return False


def _line_of(node: onnx.NodeProto, base: Path) -> str:
    """The text of the line of the user's that a node comes from; empty where it is not known."""
    path, _, number = origin_of(node).source.rpartition(":")
    return linecache.getline(str(base / path), int(number)) if path and number.isdecimal() else ""
