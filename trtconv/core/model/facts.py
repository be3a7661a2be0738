"""What `trtconv inspect` reports about an ONNX file; weights are not read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.ledger.facts import raw_rewrite_facts, rewrite_facts
from trtconv.core.model.bodies import computing_nodes, graphs_of
from trtconv.core.model.file import all_tensors, external_files, load_model, signature
from trtconv.core.model.provenance import RULE_KEY, origin_of
from trtconv.core.sizes import format_bytes
from trtconv.core.tensors import TensorSpec

if TYPE_CHECKING:
    import onnx


def onnx_facts(path: Path, *, layers: bool = False) -> dict[str, Any]:
    """Inputs, outputs, shape space, opset, operators, weights; with `layers` a line per node in graph order.

    Raises InvalidRequestError for a ledger beside it that was edited or is another graph's.
    """
    model = load_model(path)
    interface = signature(model)
    computing = computing_nodes(model.graph)
    counts = Counter(_operator(n) for n in computing)
    facts: dict[str, Any] = {
        "file": f"{path} ({format_bytes(path.stat().st_size)})",
        "kind": "ONNX",
        "opset": ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import),
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "inputs": [str(s) for s in interface.inputs],
        "outputs": [str(s) for s in interface.outputs],
        "shape space": str(interface.space) or "not recorded",
        "nodes by type": ", ".join(f"{n} {c}" for n, c in counts.most_common()),
        "node count": _node_count(model.graph),
        "weights": _weights(model),
    }
    rewritten = Counter(p.value for n in model.graph.node for p in _props(n) if p.key == RULE_KEY)
    if rewritten:
        facts["nodes made by rules"] = ", ".join(f"{n} {c}" for n, c in sorted(rewritten.items()))
    facts |= rewrite_facts(path)
    if layers:
        facts["nodes"] = [_node_line(n) for n in model.graph.node]
    return facts


def raw_onnx_facts(path: Path, *, layers: bool = False) -> dict[str, Any]:
    """The same as `onnx_facts` in numbers and lists, for JSON: sizes in bytes, ranges as they are."""
    model = load_model(path)
    interface = signature(model)
    inside = sum(len(t.raw_data) or t.ByteSize() for t in all_tensors(model.graph))
    computing = computing_nodes(model.graph)
    facts: dict[str, Any] = {
        "file": path,
        "format": "onnx",
        "bytes": path.stat().st_size,
        "opsets": {o.domain or "ai.onnx": o.version for o in model.opset_import},
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "inputs": [raw_tensor(s) for s in interface.inputs],
        "outputs": [raw_tensor(s) for s in interface.outputs],
        "space": interface.space,
        "node_count": len(computing),
        "constant_count": len(model.graph.node) - len(computing),
        "body_node_count": _body_node_count(model.graph),
        "nodes_by_type": Counter(_operator(n) for n in computing),
        "nodes_by_rule": Counter(p.value for n in model.graph.node for p in _props(n) if p.key == RULE_KEY),
        "weights": {"tensors": len(model.graph.initializer), "bytes": inside, "external": list(external_files(model))},
    }
    facts["rewrite"] = raw_rewrite_facts(path) or None
    if layers:
        facts["nodes"] = [_raw_node(n) for n in model.graph.node]
    return facts


def raw_tensor(spec: TensorSpec) -> dict[str, Any]:
    """Name, dtype, dims (sizes and names) and value range of a tensor, for JSON."""
    return {"name": spec.name, "dtype": spec.dtype.name, "dims": spec.dims, "range": spec.value_range}


def _raw_node(node: onnx.NodeProto) -> dict[str, Any]:
    return {
        "name": node.name,
        "operator": _operator(node),
        "inputs": list(node.input),
        "outputs": list(node.output),
        "origin": str(origin_of(node) or ""),
    }


def _operator(node: onnx.NodeProto) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def _props(node: onnx.NodeProto) -> Any:
    return getattr(node, "metadata_props", ())


def _node_count(graph: onnx.GraphProto) -> str:
    """`260; besides 306 Constants, 12 in bodies of If, Loop and Scan`."""
    computing = len(computing_nodes(graph))
    constants, inner = len(graph.node) - computing, _body_node_count(graph)
    others = [
        *([f"{constants} Constant{'s' * (constants != 1)}"] if constants else []),
        *([f"{inner} in bodies of If, Loop and Scan"] if inner else []),
    ]
    return f"{computing}; besides {', '.join(others)}" if others else str(computing)


def _body_node_count(graph: onnx.GraphProto) -> int:
    return sum(len(computing_nodes(body)) for body in graphs_of(graph)) - len(computing_nodes(graph))


def _weights(model: onnx.ModelProto) -> str:
    inside = sum(len(t.raw_data) or t.ByteSize() for t in all_tensors(model.graph))
    outside = external_files(model)
    text = f"{len(model.graph.initializer)} tensors, {format_bytes(inside)} in the file"
    return text + (f", more in {', '.join(outside)}" if outside else "")


def _node_line(node: onnx.NodeProto) -> str:
    origin = origin_of(node)
    where = f"  [{origin}]" if origin else ""
    return f"{node.name or '(no name)'}: {_operator(node)}({', '.join(node.input)}) -> {', '.join(node.output)}{where}"
