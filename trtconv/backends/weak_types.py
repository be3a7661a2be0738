"""Before TensorRT 10 a network is typed weakly: the FP16 flag lets every layer run in half, whatever the graph says.

A graph that trtconv typed keeps sums of squares, means and exponentials in FP32 on purpose. Here those layers are
pinned to FP32, so that the builder may choose half only where the graph is half. Layers behind one ONNX node that
have no name in the graph take the type of what they read.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from trtconv.backends.messages import Messages

if TYPE_CHECKING:
    import onnx

# Layers that compute no floats themselves, or whose type follows from their neighbours; TensorRT refuses a precision
# for some of them.
_UNTYPED = (
    "SHAPE", "CONSTANT", "CAST", "IDENTITY", "QUANTIZE", "DEQUANTIZE", "TRIP_LIMIT", "RECURRENCE", "ITERATOR",
    "LOOP_OUTPUT", "CONDITION", "CONDITIONAL_INPUT", "CONDITIONAL_OUTPUT", "ASSERTION", "PLUGIN_V2", "NON_ZERO", "NMS",
)  # fmt: skip
_LARGE = 4096


def pin_fp32(trt: Any, network: Any, model: onnx.ModelProto) -> int:
    """Pin every layer to FP32 whose outputs the graph holds in FP32; returns how many.

    `network` is what TensorRT parsed from `model`. The builder's flag OBEY_PRECISION_CONSTRAINTS makes it binding.
    """
    halves = _halves(model)
    known: dict[str, bool] = {}
    pinned = 0
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
        inherited = _reads_half(trt, layer, known)
        for tensor in outputs:
            known[tensor.name] = halves.get(tensor.name, _cast_type(trt, layer, inherited))
        floats = [i for i, t in enumerate(outputs) if t.dtype in (trt.float32, trt.float16) and not t.is_shape_tensor]
        if not floats or layer.type.name in _UNTYPED or any(known[outputs[i].name] for i in floats):
            continue
        layer.precision = trt.float32
        for number in floats:
            layer.set_output_type(number, trt.float32)
        pinned += 1
    return pinned


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


def _reads_half(trt: Any, layer: Any, known: dict[str, bool]) -> bool:
    """Half unless a float that it reads is known as FP32: an island begins with a cast and ends with one."""
    read = [layer.get_input(i) for i in range(layer.num_inputs)]
    floats = [t for t in read if t is not None and t.dtype in (trt.float32, trt.float16)]
    return all(known.get(t.name, True) for t in floats)


def _cast_type(trt: Any, layer: Any, inherited: bool) -> bool:
    if layer.type.name in ("CAST", "IDENTITY") and layer.output_type_is_set(0):
        return bool(layer.get_output_type(0) == trt.float16)
    return inherited


def build_pinned(trt: Any, builder: Any, network: Any, config: Any, messages: Messages) -> Any:
    """The plan with the pinned types kept, else with as many as there are kernels for and a warning; else None."""
    flags = trt.BuilderFlag
    config.set_flag(flags.OBEY_PRECISION_CONSTRAINTS)
    plan = builder.build_serialized_network(network, config)
    if plan is not None:
        return plan
    said = len(messages.lines)
    config.clear_flag(flags.OBEY_PRECISION_CONSTRAINTS)
    config.set_flag(flags.PREFER_PRECISION_CONSTRAINTS)
    plan = builder.build_serialized_network(network, config)
    if plan is not None:
        # The errors of the first attempt are none of this engine's.
        kept = [line for line in messages.lines[:said] if "error" not in line[0]]
        messages.lines[:] = [*kept, *messages.lines[said:]]
        messages.add("warning", "a layer that the graph holds in fp32 has no fp32 kernel: check the engine's accuracy")
    return plan
