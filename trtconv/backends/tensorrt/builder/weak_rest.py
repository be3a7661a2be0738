"""The rest of a quantised network on a weakly typed TensorRT: half precision by a flag, but for nodes pinned to FP32.

Q/DQ pairs say by themselves what computes in INT8. What else runs in half is the builder's choice; the model's
metadata names the nodes for which half precision has too little range or too few bits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trtconv.backends.tensorrt.builder.weak_types import UNTYPED, build_preferring
from trtconv.backends.tensorrt.messages import Messages
from trtconv.core.model.provenance import REST_FP32_KEY, REST_KEY
from trtconv.core.precision import precision_named

if TYPE_CHECKING:
    import onnx


def build_quantised(
    trt: Any, builder: Any, network: Any, config: Any, model: onnx.ModelProto, messages: Messages
) -> Any:
    """The plan of a quantised network, its rest as the model's metadata says; None when nothing can be built."""
    metadata = {p.key: p.value for p in model.metadata_props}
    rest = metadata.get(REST_KEY, "")
    if not rest:
        return builder.build_serialized_network(network, config)
    config.set_flag(getattr(trt.BuilderFlag, precision_named(rest).flag))
    if not pin_fp32(trt, network, model, set(metadata.get(REST_FP32_KEY, "").splitlines())):
        return builder.build_serialized_network(network, config)
    config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    plan = builder.build_serialized_network(network, config)
    return plan if plan is not None else build_preferring(trt, builder, network, config, messages)


def pin_fp32(trt: Any, network: Any, model: onnx.ModelProto, nodes: set[str]) -> int:
    """Pin the layers of these ONNX nodes to FP32; returns how many were."""
    makers = {output: node.name for node in model.graph.node for output in node.output if output}
    count = 0
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
        floats = [i for i, t in enumerate(outputs) if t.dtype in (trt.float32, trt.float16) and not t.is_shape_tensor]
        if layer.type.name in UNTYPED or not floats or not nodes & _onnx_nodes(layer, outputs, makers):
            continue
        layer.precision = trt.float32
        for number in floats:
            layer.set_output_type(number, trt.float32)
        count += 1
    return count


def _onnx_nodes(layer: Any, outputs: list[Any], makers: dict[str, str]) -> set[str]:
    """The ONNX nodes behind a layer: by what it gives, and by its metadata where a node became several layers."""
    named = {makers[t.name] for t in outputs if t.name in makers}
    return named | set(re.findall(r"\[ONNX Layer: ([^\]]*)\]", str(getattr(layer, "metadata", "") or "")))
