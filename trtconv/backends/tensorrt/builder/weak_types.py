"""Before TensorRT 10 a network is typed weakly: the FP16 flag lets every layer run in half or in FP32, as is faster.

A graph that trtconv typed keeps sums of squares, means and exponentials in FP32 on purpose. Here each layer is pinned
to the type that the graph gives it, as later versions do by themselves. Layers behind one ONNX node that have no name
in the graph take the type of what they read.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from trtconv.backends.tensorrt.messages import Messages
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.precision import TF32

if TYPE_CHECKING:
    import onnx

# Layers that compute no floats themselves, or whose type follows from their neighbours; TensorRT refuses a precision
# for some of them.
UNTYPED = (
    "SHAPE", "CONSTANT", "CAST", "IDENTITY", "QUANTIZE", "DEQUANTIZE", "TRIP_LIMIT", "RECURRENCE", "ITERATOR",
    "LOOP_OUTPUT", "CONDITION", "CONDITIONAL_INPUT", "CONDITIONAL_OUTPUT", "ASSERTION", "PLUGIN_V2", "NON_ZERO", "NMS",
)  # fmt: skip
PLUGIN_DOMAIN = "trtconv"
PLUGIN_TYPES = "element_types"
"""The field in which the adapters of plugins_src take the type of each tensor, and their numbers of the types."""
TF32_PLUGINS = ("TrtconvAttention", "TrtconvLinear")
"""Plugins with an attribute `tf32`."""
_FLOAT32, _FLOAT16, _OPEN = 0, 1, -1
_LARGE = 4096


def pin_types(trt: Any, network: Any, model: onnx.ModelProto) -> tuple[Any, ...]:
    """Pin every layer that gives floats to the type that the graph gives them; returns the layers pinned to half.

    `network` is what TensorRT parsed from `model`. A builder's flag (`build_pinned`) makes the pins binding.
    """
    halves = _halves(model)
    is_half: dict[str, bool] = {}
    narrow = []
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
        inherited = _reads_half(trt, layer, is_half)
        for tensor in outputs:
            is_half[tensor.name] = halves.get(tensor.name, _cast_type(trt, layer, inherited))
        floats = [i for i, t in enumerate(outputs) if t.dtype in (trt.float32, trt.float16) and not t.is_shape_tensor]
        if layer.type.name in UNTYPED:
            continue
        if not floats:
            _pin_comparison(trt, layer, inherited)
            continue
        half = all(is_half[outputs[i].name] for i in floats)
        layer.precision = trt.float16 if half else trt.float32
        for number in floats:
            layer.set_output_type(number, trt.float16 if is_half[outputs[number].name] else trt.float32)
        if half:
            narrow.append(layer)
    return tuple(narrow)


def write_plugin_types(model: onnx.ModelProto) -> None:
    """Tell each node of a plugin the types that the graph gives its tensors: a plugin layer takes no pin.

    Left alone, TensorRT runs a plugin in FP32 between layers in half where that looked faster as it was tried.
    """
    import onnx

    nodes = [n for n in walk_nodes(model.graph.node) if n.domain == PLUGIN_DOMAIN]
    halves = _halves(model) if nodes else {}
    for node in nodes:
        is_half = [halves.get(name) for name in (*node.input, *node.output)]
        types = [_OPEN if half is None else _FLOAT16 if half else _FLOAT32 for half in is_half]
        if any(t != _OPEN for t in types):
            node.attribute.append(onnx.helper.make_attribute(PLUGIN_TYPES, types))


def allow_tf32(model: onnx.ModelProto) -> None:
    """Tell nodes of plugins whose products can be TF32 that they may be, as the builder's flag tells TensorRT's own."""
    import onnx

    for node in walk_nodes(model.graph.node):
        if node.domain == PLUGIN_DOMAIN and node.op_type in TF32_PLUGINS:
            for attribute in [a for a in node.attribute if a.name == TF32.name]:
                node.attribute.remove(attribute)
            node.attribute.append(onnx.helper.make_attribute(TF32.name, 1))


def _pin_comparison(trt: Any, layer: Any, half: bool) -> None:
    """What compares FP32 values must not round them first."""
    reads = [layer.get_input(i) for i in range(layer.num_inputs)]
    if layer.type.name == "ELEMENTWISE" and not half and all(t is not None and t.dtype == trt.float32 for t in reads):
        layer.precision = trt.float32


def _halves(model: onnx.ModelProto) -> dict[str, bool]:
    """For each float tensor that the graph names: whether it is FP16."""
    import onnx

    light = onnx.ModelProto()
    light.CopyFrom(model)
    # Types need no weights, and a protobuf of 2 GB is refused.
    for tensor in light.graph.initializer:
        if len(tensor.raw_data) > _LARGE:
            tensor.ClearField("raw_data")
    with contextlib.suppress(RuntimeError, ValueError):
        light = onnx.shape_inference.infer_shapes(light)
    types = {t.name: t.data_type for t in light.graph.initializer}
    for value in (*light.graph.input, *light.graph.value_info, *light.graph.output):
        if value.type.HasField("tensor_type"):
            types[value.name] = value.type.tensor_type.elem_type
    for node in light.graph.node:
        if node.op_type == "Cast":
            types[node.output[0]] = next(a.i for a in node.attribute if a.name == "to")
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    return {name: code == onnx.TensorProto.FLOAT16 for name, code in types.items() if code in floats}


def _reads_half(trt: Any, layer: Any, is_half: dict[str, bool]) -> bool:
    """Half unless a float that it reads is known as FP32: an island begins with a cast and ends with one."""
    read = [layer.get_input(i) for i in range(layer.num_inputs)]
    floats = [t for t in read if t is not None and t.dtype in (trt.float32, trt.float16)]
    return all(is_half.get(t.name, True) for t in floats)


def _cast_type(trt: Any, layer: Any, inherited: bool) -> bool:
    if layer.type.name in ("CAST", "IDENTITY") and layer.output_type_is_set(0):
        return bool(layer.get_output_type(0) == trt.float16)
    return inherited


def build_pinned(trt: Any, builder: Any, network: Any, config: Any, narrow: tuple[Any, ...], messages: Messages) -> Any:
    """The plan with all pins kept; else with those to FP32 kept; else as far as there are kernels, with a warning.

    `narrow` are the layers pinned to half. None when nothing can be built.
    """
    flags = trt.BuilderFlag
    config.set_flag(flags.OBEY_PRECISION_CONSTRAINTS)
    plan = builder.build_serialized_network(network, config)
    if plan is not None:
        return plan
    message_count = len(messages.lines)
    for layer in narrow:
        layer.reset_precision()
        for number in range(layer.num_outputs):
            layer.reset_output_type(number)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        return build_preferring(trt, builder, network, config, messages)
    warning = "a layer that the graph holds in fp16 has no kernel for it, and TensorRT chose the types of those in fp16"
    _warn_instead(messages, message_count, warning)
    return plan


def build_preferring(trt: Any, builder: Any, network: Any, config: Any, messages: Messages) -> Any:
    """The plan with pins kept as far as there are kernels, with a warning; None when nothing can be built."""
    message_count = len(messages.lines)
    config.clear_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    config.set_flag(trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    plan = builder.build_serialized_network(network, config)
    if plan is not None:
        warning = "a layer that the graph holds in fp32 has no fp32 kernel: check the engine's accuracy"
        _warn_instead(messages, message_count, warning)
    return plan


def _warn_instead(messages: Messages, message_count: int, warning: str) -> None:
    """The errors of the attempts before are not this engine's."""
    earlier = [line for line in messages.lines[:message_count] if "error" not in line[0]]
    messages.lines[:] = [*earlier, *messages.lines[message_count:]]
    messages.add("warning", warning)
