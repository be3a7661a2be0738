"""A network as nodes and edges to draw: from an ONNX file, or from the layers of an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.reporters.html.network.dims import infer_dims
from trtconv.core.artifacts import require_file
from trtconv.core.dtypes import dtype_from_onnx
from trtconv.core.errors import TrtconvError
from trtconv.core.files.output_paths import ENGINE_SUFFIXES
from trtconv.core.model.bodies import computing_nodes, values_read
from trtconv.core.model.file import load_structure, signature
from trtconv.core.model.provenance import RULE_KEY, origin_of
from trtconv.core.trust.trust import NO_CODE, EngineCode

if TYPE_CHECKING:
    import onnx

    from trtconv.backends.tensorrt.layers import LayerInfo

# Values of constants up to this many elements are shown in full.
SHOWN_ELEMENTS = 8
# What boxes at the ends of a network have as their operator.
INPUT, OUTPUT = "Input", "Output"
ENDS = (INPUT, OUTPUT)


@dataclass(frozen=True)
class DrawnNode:
    """A box: its operator or layer type, name, and what a click shows. `seconds` is 0 where nothing was measured."""

    op: str
    name: str
    facts: tuple[tuple[str, str], ...] = ()
    rule: str = ""
    dtype: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class DrawnGraph:
    """Boxes and arrows: an edge is (from, to, tensor name, dims as text), by index into `nodes`."""

    title: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[tuple[int, int, str, str], ...]
    facts: tuple[tuple[str, str], ...] = field(default=())

    @property
    def node_count(self) -> int:
        """How many boxes compute something: all but the inputs and outputs."""
        return sum(node.op not in ENDS for node in self.nodes)


def read_graph(path: Path, code: EngineCode = NO_CODE) -> DrawnGraph:
    """The graph of an ONNX file or of an engine. Raises what opening the file raises."""
    require_file(path, "model")
    return _of_engine(path, code) if path.suffix in ENGINE_SUFFIXES else graph_of_model(load_structure(path), path)


def graph_of_model(model: onnx.ModelProto, path: Path) -> DrawnGraph:
    """Nodes of the main graph; constants are shown inside of the nodes that read them."""
    shapes = _shapes(model)
    constants = {t.name: _tensor_text(t) for t in model.graph.initializer}
    constants |= {n.output[0]: _constant_text(n) for n in model.graph.node if n.op_type == "Constant"}
    inputs = [v.name for v in model.graph.input if v.name not in constants]
    nodes = [DrawnNode(INPUT, name, (("tensor", shapes.get(name, "")),)) for name in inputs]
    makers = {name: i for i, name in enumerate(inputs)}
    edges: list[tuple[int, int, str, str]] = []
    for proto in model.graph.node:
        if proto.op_type == "Constant":
            continue
        index = len(nodes)
        nodes.append(_node(proto, constants, shapes))
        edges += [(makers[n], index, n, shapes.get(n, "")) for n in values_read(proto) if n in makers]
        makers |= {n: index for n in proto.output if n}
    for value in model.graph.output:
        edges += (
            [(makers[value.name], len(nodes), value.name, shapes.get(value.name, ""))] if (value.name in makers) else []
        )
        nodes.append(DrawnNode(OUTPUT, value.name, (("tensor", shapes.get(value.name, "")),)))
    opset = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    return DrawnGraph(path.name, tuple(nodes), tuple(edges), (("opset", opset),))


def _node(proto: onnx.NodeProto, constants: Mapping[str, str], shapes: Mapping[str, str]) -> DrawnNode:
    origin = origin_of(proto)
    props = {p.key: p.value for p in getattr(proto, "metadata_props", ())}
    domain = f"{proto.domain}::" if proto.domain not in ("", "ai.onnx") else ""
    facts = [("module", origin.module), ("source", origin.source), ("made by rule", props.get(RULE_KEY, ""))]
    facts += [("input", f"{n}  {constants.get(n) or shapes.get(n, '')}".strip()) for n in proto.input if n]
    facts += [("output", f"{n}  {shapes.get(n, '')}".strip()) for n in proto.output if n]
    facts += [(a.name, _attribute_text(a)) for a in proto.attribute]
    shown = tuple((k, v) for k, v in facts if v)
    dtype = next((shapes[n].split("[")[0] for n in proto.output if n in shapes), "")
    return DrawnNode(domain + proto.op_type, proto.name, shown, props.get(RULE_KEY, ""), dtype)


def _attribute_text(attribute: onnx.AttributeProto) -> str:
    import onnx

    kinds = onnx.AttributeProto
    if attribute.type == kinds.TENSOR:
        return _tensor_text(attribute.t)
    if attribute.type in (kinds.GRAPH, kinds.GRAPHS):
        bodies = [attribute.g] if attribute.type == kinds.GRAPH else list(attribute.graphs)
        return ", ".join(f"body of {len(computing_nodes(b))} nodes" for b in bodies)
    value = onnx.helper.get_attribute_value(attribute)
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 200 else text[:200] + " …"


def _constant_text(node: onnx.NodeProto) -> str:
    return " ".join(_attribute_text(a) for a in node.attribute)


def _tensor_text(tensor: onnx.TensorProto) -> str:
    import onnx
    from onnx import numpy_helper

    dims = ",".join(map(str, tensor.dims))
    text = f"{_dtype_text(tensor.data_type)}[{dims}]"
    count = 1
    for dim in tensor.dims:
        count *= dim
    if count > SHOWN_ELEMENTS or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return text
    try:
        return f"{text} = {numpy_helper.to_array(tensor).tolist()}"
    except (ValueError, TypeError, KeyError):  # too few bytes, or a type that onnx does not know
        return text


def _dtype_text(kind: int) -> str:
    try:
        return dtype_from_onnx(kind).name
    except TrtconvError:
        return f"type {kind}"


def _shapes(model: onnx.ModelProto) -> dict[str, str]:
    """`float32[N,3,H/2,W/2]` by tensor name."""
    space = signature(model).space
    return {
        name: f"{_dtype_text(kind)}[{','.join(map(str, dims))}]"
        for name, (kind, dims) in infer_dims(model, space).items()
        if kind
    }


def _of_engine(path: Path, code: EngineCode) -> DrawnGraph:
    from trtconv.backends.select import backend_of

    runner = backend_of(path).load(path, code=code)
    try:
        layers = runner.layers(runs=20)
    finally:
        runner.close()
    return graph_of_layers(layers, path.name)


def graph_of_layers(layers: Iterable[LayerInfo], title: str) -> DrawnGraph:
    """Layers of an engine; a tensor that no layer makes is an input, one that no layer reads is an output."""
    layers = tuple(layers)
    produced = {t.name for layer in layers for t in layer.outputs}
    free = {t.name: t for layer in layers for t in layer.inputs if t.name not in produced}
    nodes = [DrawnNode(INPUT, n, (("tensor", _layer_tensor(t)),)) for n, t in free.items()]
    makers = {n: i for i, n in enumerate(free)}
    edges: list[tuple[int, int, str, str]] = []
    read: set[str] = set()
    for layer in layers:
        index = len(nodes)
        nodes.append(_layer_node(layer))
        edges += [(makers[t.name], index, t.name, _layer_tensor(t)) for t in layer.inputs if t.name in makers]
        read |= {t.name for t in layer.inputs}
        makers |= {t.name: index for t in layer.outputs}
    for layer in layers:
        for tensor in layer.outputs:
            if tensor.name not in read:
                edges.append((makers[tensor.name], len(nodes), tensor.name, _layer_tensor(tensor)))
                nodes.append(DrawnNode(OUTPUT, tensor.name, (("tensor", _layer_tensor(tensor)),)))
    total = sum(layer.seconds for layer in layers)
    facts = (("layers", str(len(layers))), ("time of all layers", f"{total * 1e3:.3f} ms" if total else "not measured"))
    return DrawnGraph(title, tuple(nodes), tuple(edges), facts)


def _layer_node(layer: LayerInfo) -> DrawnNode:
    facts = [("tactic", layer.tactic), ("time", f"{layer.seconds * 1e6:.1f} µs" if layer.seconds else "")]
    facts += [("input", f"{t.name}  {_layer_tensor(t)}") for t in layer.inputs]
    facts += [("output", f"{t.name}  {_layer_tensor(t)}") for t in layer.outputs]
    facts += [("ONNX node", n) for n in layer.onnx_nodes]
    dtype = next((t.dtype for t in layer.outputs if t.dtype), "")
    shown = tuple((k, v) for k, v in facts if v)
    return DrawnNode(layer.kind or "Layer", layer.name, shown, "", dtype, layer.seconds)


def _layer_tensor(tensor: Any) -> str:
    return f"{tensor.dtype}[{','.join(map(str, tensor.dims))}]"
