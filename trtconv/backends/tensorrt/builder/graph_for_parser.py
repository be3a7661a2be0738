"""The ONNX graph as it is handed to TensorRT's parser, and what is refused before the parser sees it.

The parser is not asked where it would answer wrongly: it ignores node domains, TensorRT 8.6 drops some attributes
silently, and TensorRT-RTX ends the process when it meets a plugin node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.backends.protocol import Capabilities, EngineSettings, NodeProblem
from trtconv.backends.tensorrt.builder.problems import unsupported_error
from trtconv.backends.tensorrt.builder.weak_types import PLUGIN_DOMAIN, allow_tf32, write_plugin_types
from trtconv.backends.tensorrt.library import as_bool
from trtconv.core.errors import UnsupportedError
from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.file import load_model, signature
from trtconv.core.precision import HALF_NAMES, TF32

if TYPE_CHECKING:
    import onnx

STANDARD_DOMAINS = ("", "ai.onnx")
_OPSET_8_6 = 17


def prepare(settings: EngineSettings, capabilities: Capabilities) -> onnx.ModelProto:
    """The model with pinned dims written into its inputs. Raises UnsupportedError for what must not be parsed."""
    model = load_model(settings.model)
    refuse(model, settings.model, capabilities)
    if capabilities.generation == 8 and settings.precision in HALF_NAMES:
        write_plugin_types(model)
    if as_bool(TF32.name, settings.options.get(TF32.name, False)):
        allow_tf32(model)
    _without_plugin_bodies(model)
    inputs = {v.name: v for v in model.graph.input}
    for name, axis, size in settings.pinned:
        inputs[name].type.tensor_type.shape.dim[axis].dim_value = size
    return model


def _without_plugin_bodies(model: onnx.ModelProto) -> None:
    """Drop the bodies with which ONNX Runtime runs trtconv's plugins: TensorRT 9.0 to 10.6 would prefer them."""
    other_functions = [f for f in model.functions if f.domain != PLUGIN_DOMAIN]
    if len(other_functions) != len(model.functions):
        del model.functions[:]
        model.functions.extend(other_functions)


def refuse(model: onnx.ModelProto, path: Path, capabilities: Capabilities) -> None:
    """Raise UnsupportedError listing every node that the parser would misread."""
    problems = tuple(known_problems(model, capabilities))
    if problems:
        raise unsupported_error(problems, model, path, capabilities, otherwise=_hint(capabilities))
    if capabilities.generation == 8:
        opset = signature(model).opset
        if opset > _OPSET_8_6:
            raise UnsupportedError(
                f"{path} has opset {opset}; TensorRT 8.6 drops attributes of opsets over {_OPSET_8_6} silently",
                hint="make it fit: trtconv rewrite MODEL --target tensorrt==8.6",
            )


def _hint(capabilities: Capabilities) -> str:
    target = f"tensorrt=={'8.6' if capabilities.generation == 8 else capabilities.generation}"
    return f"try `trtconv rewrite --target {'tensorrt-rtx' if capabilities.name == 'tensorrt-rtx' else target}`"


def known_problems(model: onnx.ModelProto, capabilities: Capabilities) -> Iterator[NodeProblem]:
    """Nodes that the parser would take for something else, or die of."""
    import onnx

    standard = {s.name for s in onnx.defs.get_all_schemas() if s.domain in STANDARD_DOMAINS}
    # trtconv's own bodies are for ONNX Runtime; `prepare` takes them out, and what is left needs the plugin.
    functions = {(f.domain, f.name) for f in model.functions if f.domain != PLUGIN_DOMAIN}
    for index, node in enumerate_nodes(model.graph):
        message = _objection(node, capabilities, standard, functions)
        if message:
            yield NodeProblem(message, node.name, node.op_type, index)


def enumerate_nodes(graph: onnx.GraphProto, top: int | None = None) -> Iterator[tuple[int, onnx.NodeProto]]:
    """Every node with the index of the main graph's node that it is or is inside of."""
    for index, node in enumerate(graph.node):
        top_index = index if top is None else top
        yield top_index, node
        for body in bodies_of(node):
            yield from enumerate_nodes(body, top_index)


def _objection(
    node: onnx.NodeProto, capabilities: Capabilities, standard: set[str], functions: set[tuple[str, str]]
) -> str:
    names = {a.name for a in node.attribute}
    foreign = node.domain not in STANDARD_DOMAINS
    if foreign and (node.domain, node.op_type) in functions:
        return "local functions are not known to TensorRT 8.6" if capabilities.generation == 8 else ""
    if foreign and node.op_type in standard and "plugin_namespace" not in names:
        return f"TensorRT ignores the domain '{node.domain}' and would take this for ONNX's own {node.op_type}"
    if (foreign or "plugin_namespace" in names) and not capabilities.plugins:
        return f"{capabilities.name} has no plugins, and '{node.domain}::{node.op_type}' needs one"
    return _dropped_by_8_6(node, names) if capabilities.generation == 8 and not foreign else ""


def _dropped_by_8_6(node: onnx.NodeProto, names: set[str]) -> str:
    """What TensorRT 8.6's importers ignore (onnx-tensorrt 8.6-EA, onnx2trt operator importers)."""
    # start=0 alone is what exporters write for the whole shape.
    if node.op_type == "Shape" and ("end" in names or any(a.i for a in node.attribute if a.name == "start")):
        return "TensorRT 8.6 ignores start and end of Shape"
    if node.op_type in ("ScatterND", "ScatterElements"):
        kinds = [a.s.decode() for a in node.attribute if a.name == "reduction"]
        if kinds and kinds[0] != "none":
            return f"TensorRT 8.6 ignores reduction='{kinds[0]}'"
    return ""
