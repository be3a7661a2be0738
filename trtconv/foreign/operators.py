"""Operators that no TensorRT has, told before anything is run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import UnsupportedError

if TYPE_CHECKING:
    import onnx

# Domain -> what to do about it. Nodes of other domains may be plugins.
REMEDIES = {
    "ai.onnx.ml": "trees and linear models gain little on a GPU: run them in ONNX Runtime, or make tensor operations "
    "of them first (hummingbird-ml)",
    "ai.onnx.training": "export the network for inference",
    "ai.onnx.preview.training": "export the network for inference",
}


def require_operators(model: onnx.ModelProto, path: Path) -> None:
    """Raise UnsupportedError for a file with operators of a domain that no TensorRT has."""
    counts = Counter(f"{n.domain}::{n.op_type}" for n in model.graph.node if n.domain in REMEDIES)
    if counts:
        domain = next(iter(counts)).partition("::")[0]
        raise UnsupportedError(f"'{path}' holds {', '.join(counts)}, which no TensorRT has", hint=REMEDIES[domain])
