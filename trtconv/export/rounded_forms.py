"""Forms in a file that give other values than torch for a few inputs, which no sample may have: notes, no refusals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.model.file import load_structure
from trtconv.core.model.provenance import origin_of

if TYPE_CHECKING:
    import onnx


def notes_on_forms(model: Path) -> tuple[str, ...]:
    """A note for each kind of such a form in a file, with the line that it comes from."""
    graph = load_structure(model).graph
    makers = {name: node for node in graph.node for name in node.output}
    notes = []
    returned = next((n for n in graph.node if n.op_type == "Add" and _returns_difference(n, makers)), None)
    if returned is not None:
        notes.append(
            f"what is written through an expanded view at {origin_of(returned)} comes back by a difference, as torch "
            "has it: beside values from 1e7 on its digits are lost; write into the tensor itself"
        )
    quantised = next((n for n in graph.node if n.op_type == "QuantizeLinear"), None)
    if quantised is not None:
        notes.append(
            f"a value half-way between two steps may be rounded to the other one at {origin_of(quantised)}: torch "
            "multiplies by 1 / scale and adds the zero point before it rounds, QuantizeLinear divides and adds it after"
        )
    return tuple(notes)


def _returns_difference(node: onnx.NodeProto, makers: dict[str, Any]) -> bool:
    """True for `x + sum(written - x)`, by which torch puts back what was written into `x.expand(...)`."""
    for own, other in (tuple(node.input), tuple(node.input)[::-1]):
        maker = makers.get(other)
        if maker is not None and maker.op_type == "Reshape":
            maker = makers.get(maker.input[0])
        if maker is None or maker.op_type != "ReduceSum":
            continue
        difference = makers.get(maker.input[0])
        if difference is not None and difference.op_type == "Sub" and difference.input[1] == own:
            return True
    return False
