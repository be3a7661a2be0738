"""The graph carries its types: the precision asked for has to be the one in the graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import all_tensors
from trtconv.core.precision import AUTO, FP32, HALF_NAMES, QUANTISED, QUANTISED_NAMES, REQUESTED_NAMES, TYPED

if TYPE_CHECKING:
    import onnx

REQUESTED = (AUTO, *REQUESTED_NAMES)
_NAMES = {p.onnx: p.name for p in TYPED}
_SMALL = 2


def require_request_precision(precision: str) -> None:
    """Raise InvalidRequestError for a word that names no precision."""
    if precision not in REQUESTED:
        raise InvalidRequestError(f"unknown precision '{precision}'", hint="one of " + ", ".join(REQUESTED))


def float_types(model: onnx.ModelProto) -> Counter[str]:
    """How many weights, casts and inputs of the graph are fp32, fp16 and bf16."""
    counts: Counter[str] = Counter()
    for tensor in all_tensors(model.graph):
        # Scalars and pairs are epsilons and clip bounds; they do not decide in what a network computes.
        size = 1
        for dim in tensor.dims:
            size *= dim
        if tensor.data_type in _NAMES and size > _SMALL:
            counts[_NAMES[tensor.data_type]] += 1
    for value in model.graph.input:
        kind = value.type.tensor_type.elem_type
        if kind in _NAMES:
            counts[_NAMES[kind]] += 1
    for node in model.graph.node:
        if node.op_type == "Cast":
            for attribute in node.attribute:
                if attribute.name == "to" and attribute.i in _NAMES:
                    counts[_NAMES[attribute.i]] += 1
    return counts


def quantised_types(model: onnx.ModelProto) -> Counter[str]:
    """How many DequantizeLinear nodes read int8 and fp8, by the element type of their zero point."""
    types = {t.name: t.data_type for t in model.graph.initializer}
    names = {p.onnx: p.name for p in QUANTISED}
    pairs = [n for n in model.graph.node if n.op_type == "DequantizeLinear"]
    # Without a zero point the type is that of what is read: int8 wherever TensorRT takes it.
    kinds = [types.get(n.input[2]) if len(n.input) > 2 and n.input[2] else types.get(n.input[0]) for n in pairs]
    return Counter(names[k] for k in kinds if k in names)


def resolve_precision(model: onnx.ModelProto, precision: str) -> str:
    """What `auto` means for a graph: the lowest precision that its author gave it. Others stay as they are."""
    if precision != AUTO:
        return precision
    quantised = quantised_types(model)
    if quantised:
        return next(name for name in QUANTISED_NAMES if quantised[name])
    counts = float_types(model)
    return next((p for p in HALF_NAMES if counts[p]), FP32.name)


def require_precision(model: onnx.ModelProto, path: Path, precision: str) -> None:
    """Raise InvalidRequestError unless the graph is typed as `precision` says.

    `fp32` wants no fp16 or bf16 tensors and no Q/DQ pairs, the others want some of theirs: an engine is never
    silently FP32.
    """
    quantised = quantised_types(model)
    if precision in QUANTISED_NAMES:
        if not quantised[precision]:
            raise InvalidRequestError(
                f"--precision {precision}, but {path} has no Q/DQ pairs in it",
                hint=f"quantise it with data first: `trtconv convert --precision {precision} --data ...`",
            )
        return
    if quantised and precision == FP32.name:
        name = next(iter(quantised))
        raise InvalidRequestError(
            f"{path} has {quantised[name]} Q/DQ pairs in {name}, and --precision is fp32",
            hint=f"build with --precision {name}",
        )
    counts = float_types(model)
    if precision == FP32.name:
        for other in HALF_NAMES:
            if counts[other]:
                raise InvalidRequestError(
                    f"{path} has {counts[other]} {other} tensors, and --precision is fp32",
                    hint=f"build with --precision {other}, or rewrite the fp32 model",
                )
        return
    if precision not in HALF_NAMES:
        raise InvalidRequestError(f"unknown precision '{precision}'", hint="one of " + ", ".join(REQUESTED_NAMES))
    if not counts[precision]:
        raise InvalidRequestError(
            f"--precision {precision}, but {path} is an fp32 graph",
            hint=f"type the graph first: `trtconv convert --precision {precision}` does",
        )
