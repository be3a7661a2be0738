"""ONNX into a TensorRT network, with every refusal mapped to its node."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import Capabilities, NodeProblem
from trtconv.backends.tensorrt.builder.problems import unparsed, unsupported_error
from trtconv.backends.tensorrt.engine_io import NUMPY_NAMES
from trtconv.backends.tensorrt.messages import Messages
from trtconv.core.errors import TrtconvError

if TYPE_CHECKING:
    import onnx

_ELEMENT_NAMES = {**NUMPY_NAMES, "FP8": "float8"}


@dataclass(frozen=True)
class ParsedNetwork:
    """The network with what has to outlive the build: the parser owns the weights."""

    builder: Any
    network: Any
    parser: Any


def create_network(trt: Any, capabilities: Capabilities, logger: Any) -> tuple[Any, Any]:
    """A builder and an empty network. Raises TrtconvError when TensorRT gives none."""
    try:
        builder = trt.Builder(logger)
    except TypeError as error:  # what pybind11 makes of a null pointer
        raise TrtconvError(
            f"{capabilities} gives no builder", hint="see `trtconv doctor`: is the driver new enough for it?"
        ) from error
    creation, bits = trt.NetworkDefinitionCreationFlag, 0
    if capabilities.explicit_batch:
        bits |= 1 << int(creation.EXPLICIT_BATCH)
    if capabilities.strongly_typed_flag:
        bits |= 1 << int(creation.STRONGLY_TYPED)
    return builder, builder.create_network(bits)


def parse(
    trt: Any, capabilities: Capabilities, logger: Any, model: onnx.ModelProto, path: Path, messages: Messages
) -> ParsedNetwork:
    """Parse a model that may have external weights beside `path`. Raises UnsupportedError with all bad nodes."""
    builder, network = create_network(trt, capabilities, logger)
    parser = trt.OnnxParser(network, logger)
    try:
        accepted = parser.parse(model.SerializeToString(), str(path.resolve()))
    except RuntimeError as error:
        raise TrtconvError(f"{capabilities} cannot parse {path}: {error}") from error
    problems = parser_problems(parser, model)
    if not accepted:
        if not problems:
            raise unparsed(messages.errors, path, capabilities)
        raise unsupported_error(problems, model, path, capabilities)
    if network.num_outputs == 0:
        raise TrtconvError(f"{path} has no output that {capabilities} keeps", hint="are all outputs constants?")
    return ParsedNetwork(builder, network, parser)


def parser_problems(parser: Any, model: onnx.ModelProto) -> tuple[NodeProblem, ...]:
    """The parser's errors, each once, by node. Version 8.6 stops at the first one."""
    problems: dict[tuple[int, str, str], NodeProblem] = {}
    for number in range(parser.num_errors):
        problem = _problem(parser.get_error(number), model)
        problems.setdefault((problem.index, problem.node, problem.message), problem)
    return tuple(problems.values())


def _problem(error: Any, model: onnx.ModelProto) -> NodeProblem:
    index = int(error.node())
    name = str(error.node_name()) if hasattr(error, "node_name") else ""
    kind = str(error.node_operator()) if hasattr(error, "node_operator") else ""
    if 0 <= index < len(model.graph.node) and (not name or name == model.graph.node[index].name):
        node = model.graph.node[index]
        name, kind = node.name, node.op_type
    code = getattr(error.code(), "name", "")
    message = _plain(str(error.desc()))
    # Operators without an importer are refused by an assertion that is only 'false'.
    if message in ("", "false"):
        message = f"there is no importer for {kind or 'it'}" if code == "UNSUPPORTED_NODE" else code.lower()
    return NodeProblem(message, name, kind, index, code)


def _plain(text: str) -> str:
    """The parser's words on one line, without the source location that it puts in front."""
    line = " ".join(text.split())
    head, separator, tail = line.partition("Assertion failed: ")
    return (tail if separator else head).strip() or line


def element_types(network: Any) -> dict[str, int]:
    """How many tensors of the network have which element type, over all layers' outputs and the network's inputs."""
    counts: Counter[str] = Counter()
    tensors = [network.get_input(i) for i in range(network.num_inputs)]
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        tensors += [layer.get_output(i) for i in range(layer.num_outputs)]
    for tensor in tensors:
        if tensor is not None:
            name = getattr(tensor.dtype, "name", str(tensor.dtype))
            counts[_ELEMENT_NAMES.get(name, name.lower())] += 1
    return dict(counts)
