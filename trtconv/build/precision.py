"""The graph carries its types: the precision asked for has to be the one in the graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.precision import AUTO, FP32, HALF_NAMES, TYPED, TYPED_NAMES
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import all_tensors

if TYPE_CHECKING:
    import onnx

REQUESTED = (AUTO, *TYPED_NAMES)
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


def resolve_precision(model: onnx.ModelProto, precision: str) -> str:
    """What `auto` means for a graph: the lowest precision that its author typed it with. Others stay as they are."""
    if precision != AUTO:
        return precision
    counts = float_types(model)
    return next((p for p in HALF_NAMES if counts[p]), FP32.name)


def require_precision(model: onnx.ModelProto, path: Path, precision: str) -> None:
    """Raise InvalidRequestError unless the graph is typed as `precision` says.

    `fp32` wants no fp16 or bf16 tensors, `fp16` and `bf16` want some: an engine is never silently FP32.
    """
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
        raise InvalidRequestError(f"unknown precision '{precision}'", hint="one of " + ", ".join(TYPED_NAMES))
    if not counts[precision]:
        raise InvalidRequestError(
            f"--precision {precision}, but {path} is an fp32 graph",
            hint=f"type the graph first: `trtconv convert --precision {precision}` does",
        )
