"""An engine's layers: what TensorRT fused, in which type each computes, with which tactic, how long it takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_SHORT = (("BF16", "bfloat16"), ("BFloat16", "bfloat16"), ("FP32", "float32"), ("FP16", "float16"),
          ("Half", "float16"), ("Float", "float32"), ("INT64", "int64"), ("Int64", "int64"), ("Int32", "int32"),
          ("INT32", "int32"),
          ("Int8", "int8"), ("INT8", "int8"), ("FP8", "float8"), ("Bool", "bool"))  # fmt: skip


# What the names of tactics call the types of both operands.
TACTIC_WORDS = {"int8": "i8i8", "float16": "f16f16", "bfloat16": "bf16bf16", "float32": "f32f32"}


@dataclass(frozen=True)
class LayerTensor:
    """An input or output of a layer. `dtype` is our name where TensorRT's words say it, else empty."""

    name: str
    dims: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class LayerInfo:
    """One layer of an engine. `onnx_nodes` are the nodes that it was made from; `seconds` is 0 when not measured."""

    name: str
    kind: str
    inputs: tuple[LayerTensor, ...] = ()
    outputs: tuple[LayerTensor, ...] = ()
    tactic: str = ""
    onnx_nodes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def is_product(self) -> bool:
        """True for convolutions and matrix products."""
        return any(word in self.kind.lower() for word in ("conv", "gemm", "matmul", "matrix", "fullyconnected"))

    @property
    def is_region(self) -> bool:
        """True for nodes that TensorRT compiled into one (`{ForeignNode[a...b]}`), of which it tells no types."""
        return "ForeignNode" in self.name or "myelin" in self.kind.lower()

    @property
    def computes_in(self) -> str:
        """The element type that it multiplies or, for other layers, gives out; empty where TensorRT tells none.

        A product in INT8 often gives floats, so that what it reads decides; a tactic's name has both operands (`i8i8`).
        """
        if self.is_region:
            return ""
        for dtype, word in TACTIC_WORDS.items():
            if f"_{word}" in self.tactic:
                return dtype
        tensors = self.inputs[:1] if self.is_product else (*self.outputs, *self.inputs)
        return next((t.dtype for t in tensors if t.dtype), "")

    def __str__(self) -> str:
        shown = ", ".join(f"{'x'.join(map(str, t.dims)) or 'scalar'} {t.dtype}".strip() for t in self.outputs)
        parts = [self.kind, self.name, f"-> {shown}" if shown else "", self.tactic]
        if self.seconds:
            parts.append(f"{self.seconds * 1e6:.1f} us")
        return "  ".join(p for p in parts if p)


def read_layers(trt: Any, engine: Any, context: Any = None) -> tuple[LayerInfo, ...]:
    """All layers in the engine's order. With a context whose shapes are set, dims are those of that run."""
    inspector = engine.create_engine_inspector()
    if context is not None:
        inspector.execution_context = context
    text = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
    return parse_layers(text)


def parse_layers(text: str) -> tuple[LayerInfo, ...]:
    """Read the inspector's JSON, of 8.6 to 10 and of 11 (where a tensor's format and datatype are apart)."""
    # 8.6 separates ONNX layers by an unescaped control character.
    data = json.loads(text, strict=False)
    return tuple(_layer(item) for item in data.get("Layers", ()))


def _layer(item: Any) -> LayerInfo:
    # Engines built without detailed profiling give names only.
    if isinstance(item, str):
        return LayerInfo(item, "")
    tactic = str(item.get("TacticName") or item.get("TacticValue") or "")
    metadata = str(item.get("Metadata") or "")
    return LayerInfo(
        name=str(item.get("Name", "")),
        kind=str(item.get("ParameterType") or item.get("LayerType", "")),
        inputs=tuple(_tensor(t) for t in item.get("Inputs", ())),
        outputs=tuple(_tensor(t) for t in item.get("Outputs", ())),
        tactic=tactic,
        onnx_nodes=tuple(dict.fromkeys(re.findall(r"\[ONNX Layer: ([^\]]*)\]", metadata))),
    )


def _tensor(item: Mapping[str, Any]) -> LayerTensor:
    format_text = str(item.get("Datatype") or item.get("Format/Datatype") or item.get("Format") or "")
    dtype = next((name for word, name in _SHORT if word in format_text), "")
    dims = item.get("Dimensions") or ()
    return LayerTensor(str(item.get("Name", "")), tuple(int(d) for d in dims), dtype)


def with_times(layers: tuple[LayerInfo, ...], seconds: Mapping[str, float]) -> tuple[LayerInfo, ...]:
    """The layers with measured seconds by name."""
    return tuple(replace(layer, seconds=seconds.get(layer.name, 0.0)) for layer in layers)


def layers_of_type(layers: tuple[LayerInfo, ...], dtype: str) -> int:
    """How many layers write or read a tensor of that float type, or run a kernel whose name says that type.

    8.6 reports no types of tensors for an engine with dynamic shapes, but a tactic's name holds `f16f16` or `f32f32`.
    """
    word = TACTIC_WORDS.get(dtype, dtype)
    return sum(
        any(t.dtype == dtype for t in (*layer.inputs, *layer.outputs)) or f"_{word}" in layer.tactic for layer in layers
    )


def make_profiler(trt: Any) -> Any:
    """An IProfiler that adds up seconds by layer name in `seconds`."""

    class Profiler(trt.IProfiler):  # type: ignore[misc]
        """Called from C++ after each run."""

        def __init__(self) -> None:
            trt.IProfiler.__init__(self)
            self.seconds: dict[str, float] = {}

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            self.seconds[layer_name] = self.seconds.get(layer_name, 0.0) + ms * 1e-3

    return Profiler()
