"""Whether ONNX can say a replacement in the opset of the graph around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import onnx

from trtconv.rewrite.graph.index import DEFAULT_DOMAINS


def obstacle(
    nodes: Iterable[onnx.NodeProto], opset: int, dtypes: Mapping[str, int] = MappingProxyType({})
) -> tuple[str, int]:
    """The first node that the opset does not have, in words with the cure, and the opset that has it; ("", 0): all.

    `dtypes` are the ONNX element types of what the nodes give, as far as they are known.
    """
    for node in nodes:
        since = _since(node, dtypes) if node.domain in DEFAULT_DOMAINS and not _is_of(node, opset, dtypes) else 0
        if since:
            reason = (
                f"it writes {node.op_type} as ONNX has it since opset {since}, and the graph has opset {opset}: export "
                f"it with opset {max(since, 13)} or later, or convert it with onnx.version_converter"
            )
            return reason, since
    return "", 0


def _since(node: onnx.NodeProto, dtypes: Mapping[str, int]) -> int:
    """The first opset that has an operator in the node's form; 0 for one that no opset has, which is another error."""
    return next((o for o in range(1, onnx.defs.onnx_opset_version() + 1) if _is_of(node, o, dtypes)), 0)


def _is_of(node: onnx.NodeProto, opset: int, dtypes: Mapping[str, int]) -> bool:
    try:
        schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=opset, domain="")
    except onnx.defs.SchemaError:
        return False
    counts = schema.min_input <= len(node.input) <= schema.max_input and len(node.output) <= schema.max_output
    if not counts or any(attribute.name not in schema.attributes for attribute in node.attribute):
        return False
    # Max of integers came later than Max. What a schema has of outputs may be the last one, of any number.
    return all(
        f"tensor({onnx.TensorProto.DataType.Name(dtypes[name]).lower()})" in schema.outputs[min(i, last)].types
        for last in [len(schema.outputs) - 1]
        for i, name in enumerate(node.output)
        if dtypes.get(name)
    )
