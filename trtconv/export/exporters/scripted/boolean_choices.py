"""`torch.where` of booleans as `(c and a) or (not c and b)`: ONNX Runtime has no Where of them.

Elsewhere the choice is written so before it is exported; what is in a script has no type there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, replace_nodes
from trtconv.core.model.file import load_model
from trtconv.core.model.inference import inferred_types

if TYPE_CHECKING:
    import onnx


def write_boolean_choices(path: Path) -> None:
    """Rewrite a file in place."""
    import onnx

    model = load_model(path)
    graphs = [g for g in graphs_of(model.graph) if any(n.op_type == "Where" for n in g.node)]
    if not graphs:
        return
    types = inferred_types(model)
    for graph in graphs:
        replace_nodes(graph, [new for node in graph.node for new in _written(node, types)])
    onnx.save(model, str(path))


def _written(node: onnx.NodeProto, types: dict[str, int]) -> list[onnx.NodeProto]:
    import onnx

    if node.op_type != "Where" or onnx.TensorProto.BOOL not in (types.get(n) for n in (*node.input[1:], *node.output)):
        return [node]
    condition, first, second = node.input
    name = node.output[0]
    steps = (
        ("Not", [condition], f"{name}/otherwise"),
        ("And", [condition, first], f"{name}/first"),
        ("And", [f"{name}/otherwise", second], f"{name}/second"),
        ("Or", [f"{name}/first", f"{name}/second"], name),
    )
    nodes = [onnx.helper.make_node(op, inputs, [output], output) for op, inputs, output in steps]
    for new in nodes:
        new.doc_string = node.doc_string
        new.metadata_props.extend(node.metadata_props)
    return nodes
