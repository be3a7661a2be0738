"""What is not quantised, on a TensorRT whose half precision is a permission of the builder and no type of the graph.

TensorRT 8.6 reads opset 17, in which a Q/DQ pair has FP32 scales and FP32 values. So the graph stays FP32 there, and
its metadata says that the builder may compute the rest in half precision, and which nodes it may not.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.file import set_metadata
from trtconv.core.model.provenance import REST_FP32_KEY, REST_KEY
from trtconv.core.precision import HALF_NAMES, precision_named
from trtconv.core.targets import Target
from trtconv.rewrite.precision.convert import fp32_nodes
from trtconv.rewrite.precision.qdq.placement import MOVING


def rest_is_a_flag(target: Target) -> bool:
    """True where the builder, and not the graph, holds the precision of what is not quantised."""
    return target.generation == 8


def record_rest(
    model: onnx.ModelProto, source: onnx.ModelProto, rest: str, keep_fp32: Collection[str], quantised: Collection[str]
) -> None:
    """Write into `model` what the builder needs to compute the rest of the FP32 graph `source` in half precision.

    The nodes that stay FP32 are those that a typed graph would keep, without the quantised ones and without those that
    only move values, through which TensorRT moves a Q.
    """
    if rest not in HALF_NAMES:
        return
    keep = [n.node for n in fp32_nodes(source, rest, keep_fp32) if n.op not in MOVING and n.node not in quantised]
    set_metadata(model, REST_KEY, rest)
    set_metadata(model, REST_FP32_KEY, "\n".join(dict.fromkeys(keep)))


def require_rest(rest: str, target: Target) -> None:
    """Raise UnsupportedError where the target does not compute in the precision of the rest."""
    if not precision_named(rest).is_in(target):
        raise UnsupportedError(f"{target} has no {rest}", hint="choose another --rest or --target")
